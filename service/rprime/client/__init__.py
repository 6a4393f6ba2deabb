"""Python client: call a service over HTTP, or the same engine in-process, for equal reports."""
