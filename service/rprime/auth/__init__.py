"""API keys, their scopes, and the sessions of browsers."""
