"""Trusted hosts: the names that clients may use for the service."""

from collections.abc import Collection

from starlette.types import Scope

from rprime.problems.problem import Problem

_PROBES = ("/livez", "/readyz")
"""Orchestrators request them by any address, and they reveal nothing."""


class TrustedHosts:
    """Rejects requests with other names in the header Host.

    A page of another site can have its name resolved to this machine (DNS rebinding). Its requests
    come from the browser of a user who may reach the service; only the name tells them apart.

    Parameters
    ----------
    names
        Names without ports; None for any.
    """

    def __init__(self, names: Collection[str] | None) -> None:
        self._names = None if names is None else {name.lower().encode() for name in names}

    def check(self, scope: Scope, hosts: list[bytes]) -> None:
        """Check the headers Host of a request.

        Raises
        ------
        Problem
            400 unless there is exactly one, 421 if it has another name.
        """
        if len(hosts) != 1:
            # RFC 9112, 3.2: exactly one; clients of HTTP/1.0 may have none.
            if hosts or scope["http_version"] != "1.0":
                raise Problem("bad_request", "A request has one header Host.")
        elif self._names is not None and scope["path"] not in _PROBES:
            host = hosts[0].lower()
            # An address of IPv6 has colons within its brackets.
            end = host.find(b"]") + 1 if host.startswith(b"[") else host.find(b":")
            name = host[:end] if end >= 0 else host
            if name not in self._names:
                raise Problem("misdirected")
