"""How schemathesis sends what it has no serializer for."""

from typing import Any

import orjson
import schemathesis


# Any: what schemathesis passes and takes, which depends on the transport.
@schemathesis.serializer("application/x-ndjson")
def lines_of_json(_context: Any, value: Any) -> Any:
    """Send an example as it is, and another value as one line."""
    return value if isinstance(value, str | bytes) else orjson.dumps(value) + b"\n"
