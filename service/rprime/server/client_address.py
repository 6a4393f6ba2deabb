"""The address of a client, also behind proxies."""

import re
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from starlette.datastructures import Headers
from starlette.types import Scope

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_MOST_HOPS = 32
"""Proxies that are followed; a longer list costs time and has no other use."""
_FOR = re.compile(r'(?:^|;)\s*for\s*=\s*"?([^";]+)"?', re.IGNORECASE)
_PORT = re.compile(r"\[(?P<v6>[^\]]+)\](?::\d+)?|(?P<v4>[^:]+):\d+")


class TrustedProxies:
    """Finds the client of a request: its peer, or whom trusted proxies name.

    A proxy appends the address of its own peer to X-Forwarded-For, or to Forwarded (RFC 7239). What
    stands before it came from that peer, so only the part that trusted proxies wrote is believed.

    Parameters
    ----------
    networks
        The addresses of the proxies.
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
        found = _address(peer[0])
        for hop in _forwarded(Headers(scope=scope)):
            if found is None or not any(found in network for network in self._networks):
                break
            before = _address(hop)
            if before is None:
                break
            found = before
        return str(peer[0] if found is None else found)


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
        found = ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
