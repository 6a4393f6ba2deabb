"""Errors as problem details (RFC 9457)."""
