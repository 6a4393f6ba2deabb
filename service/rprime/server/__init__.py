"""The HTTP server: connections, admission, bodies, worker pools, logs and metrics."""
