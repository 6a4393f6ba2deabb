"""Headers: what every answer carries, whichever part of the service gives it."""

import re

CSP = b"content-security-policy"
NO_CONTENT_AT_ALL = (
    CSP,
    b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
)
"""For whatever is no page: should a browser show it, it can do nothing."""
SECURITY = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
REQUEST_ID = b"x-request-id"
SAFE_ID = re.compile(rb"[A-Za-z0-9._~:/+=@-]{1,128}")
"""What a client may call its request, so that it is repeated."""
