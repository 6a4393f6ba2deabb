"""Headers that every response has."""

import re

CSP = b"content-security-policy"
CSP_NONE = (CSP, b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
"""The policy of every response but pages: a browser that shows it loads and runs nothing."""
SECURITY = ((b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"))
PRIVATE = ((b"cache-control", b"private, no-cache"), (b"vary", b"Authorization, Cookie"))
"""Headers of a response that does not say who may keep it: what one may see another may not."""
CLOSE = (b"connection", b"close")
REQUEST_ID = b"x-request-id"
SAFE_ID = re.compile(rb"[A-Za-z0-9._~:/+=@-]{1,128}")
"""The ids of clients that responses and logs repeat."""
