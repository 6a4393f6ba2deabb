"""For Python: a service asked over HTTP, or the same engine in-process, with the same reports."""
