"""Hosts: the names under which the service may be asked."""

from collections.abc import Collection

from starlette.types import Scope

from rprime.problems.problem import Problem

_PROBES = ("/livez", "/readyz")
"""What starts and stops the service asks for them by any address, and they tell nothing."""


class TrustedHosts:
    """Refuses requests to other names.

    A page of another site can have its name resolved to this machine (DNS rebinding): its
    requests come from the browser of someone who may reach the service, and are told by the name.

    Parameters
    ----------
    names
        Without ports; None for any.
    """

    def __init__(self, names: Collection[str] | None) -> None:
        self._names = None if names is None else {name.lower().encode() for name in names}

    def check(self, scope: Scope, given: list[bytes]) -> None:
        """Look at the headers Host of a request.

        Raises
        ------
        Problem
            400 if it has not one, 421 if that names somebody else.
        """
        if len(given) != 1:
            # RFC 9112, 3.2: exactly one, but for clients from before there was such a header.
            if given or scope["http_version"] != "1.0":
                raise Problem("bad_request", "A request has one header Host.")
        elif not (
            self._names is None or _name(given[0]) in self._names or scope["path"] in _PROBES
        ):
            raise Problem("misdirected")


def _name(host: bytes) -> bytes:
    if host.startswith(b"["):
        return host[: host.find(b"]") + 1].lower()
    return host.partition(b":")[0].lower()
