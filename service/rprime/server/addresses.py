"""Whom requests are for, and whom they come from: names of the service, addresses of clients."""

import re
from collections.abc import Collection, Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from starlette.datastructures import Headers
from starlette.types import Scope

from rprime.problems.problem import Problem

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_PROBES = ("/livez", "/readyz")
"""Orchestrators request them by any address, and they reveal nothing."""
_HOST = re.compile(rb"(?:\[[\da-fA-F:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?")
_HOST_PORT = re.compile(rb":\d*")
_MOST_HOPS = 32
"""Proxies that are followed; a longer list costs time and has no other use."""
_FOR = re.compile(r'(?:^|;)\s*for\s*=\s*"?([^";]+)"?', re.IGNORECASE)
_PORT = re.compile(r"\[(?P<v6>[^\]]+)\](?::\d+)?|(?P<v4>[^:]+):\d+")


class TrustedHosts:
    """Rejects requests with other names in the header Host; None allows any.

    A page of another site can have its name resolved to this machine (DNS rebinding). Its requests
    come from the browser of a user who may reach the service; only the name tells them apart.
    """

    def __init__(self, names: Collection[str] | None) -> None:
        self._names = None if names is None else {name.lower().encode() for name in names}

    def check(self, scope: Scope, hosts: list[bytes]) -> None:
        """Check the headers Host: 400 unless there is exactly one, 421 if it has another name."""
        if len(hosts) != 1:
            # RFC 9112, 3.2: exactly one; clients of HTTP/1.0 may have none.
            if hosts or scope["http_version"] != "1.0":
                raise Problem("bad_request", "A request has one header Host.")
        elif self._names is not None and scope["path"] not in _PROBES:
            host = hosts[0].lower()
            # An address of IPv6 has colons within its brackets.
            end = host.find(b"]") + 1 if host.startswith(b"[") else host.find(b":")
            name, port = (host[:end], host[end:]) if end >= 0 else (host, b"")
            if name not in self._names or (port and not _HOST_PORT.fullmatch(port)):
                raise Problem("misdirected")
        elif self._names is None and not _HOST.fullmatch(hosts[0]):
            raise Problem("bad_request", "The header Host is a name or an address, and a port.")


class TrustedProxies:
    """Finds the client of a request: its peer, or whom trusted proxies name.

    A proxy appends the address of its own peer to X-Forwarded-For, or to Forwarded (RFC 7239). What
    stands before it came from that peer, so only the part that trusted proxies wrote is believed.
    """

    def __init__(self, networks: Sequence[Network]) -> None:
        self._networks = networks

    def client_of(self, scope: Scope) -> str | None:
        """Return the address of the client; None if its connection has no address."""
        peer = scope.get("client")
        if peer is None:
            return None
        if not self._networks:
            return str(peer[0])
        client = _address(peer[0])
        for hop in _forwarded(Headers(scope=scope)):
            if client is None or not any(client in network for network in self._networks):
                break
            before = _address(hop)
            if before is None:
                break
            client = before
        return str(peer[0] if client is None else client)


def _forwarded(headers: Headers) -> Iterator[str]:
    """Yield the addresses that proxies added, the last one first."""
    # Most proxies pass a Forwarded of their clients on, and few write it themselves.
    plain = headers.getlist("x-forwarded-for")
    hops = ",".join(plain or headers.getlist("forwarded")).rsplit(",", _MOST_HOPS)[-_MOST_HOPS:]
    for hop in reversed(hops):
        if plain:
            yield hop
        else:
            named = _FOR.search(hop)
            yield named[1] if named else ""


def _address(text: str) -> Address | None:
    text = text.strip()
    if port := _PORT.fullmatch(text):
        text = port["v6"] or port["v4"]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
