"""Which addresses may be contacted at all: fixed places over HTTPS, at public addresses only."""

import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import anyio
import httpx

Resolver = Callable[[str], Awaitable[Sequence[str]]]
"""From a host's name to all its addresses as text. Raises OSError where the name has none."""

ALLOWED = ("https://triton-lang.org/", "https://raw.githubusercontent.com/triton-lang/triton/")
"""The beginnings of every URL that may be asked; each fixes scheme, host and port."""

_SHOWN = 200
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_DISGUISED = (b"%2e", b"%2f", b"%5c", b"\\")
"""A server may read these as dots and slashes, and so leave the path that was checked."""


class NotFetched(Exception):
    """A page that could not be fetched; `reason` is a whole sentence."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class AddressRefused(NotFetched):
    """An address that may not be asked, or an answer that leads to one."""


class Unreachable(NotFetched):
    """No use in asking `host` for anything now."""

    def __init__(self, host: str, reason: str) -> None:
        super().__init__(reason)
        self.host = host


def shown(text: object) -> str:
    """Text from outside for a message: on one line, visible, not long."""
    return ascii(str(text))[1:-1][:_SHOWN]


def is_public(address: str) -> bool:
    """Whether an address, as text, is one of the public internet; an IPv4 address inside of IPv6 counts."""
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
        if ip.is_site_local or ip.scope_id is not None:
            return False
    return ip.is_global and not (ip.is_multicast or ip.is_reserved or ip.is_unspecified)


async def resolved(host: str) -> Sequence[str]:
    """All addresses of a host by the system's resolver, in its order. Raises OSError where it has none."""
    found = await anyio.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


@dataclass(frozen=True)
class Gate:
    """Lets requests through to what begins like one of `allowed`, at addresses that `may_connect` accepts."""

    allowed: tuple[str, ...] = ALLOWED
    resolve: Resolver = resolved
    may_connect: Callable[[str], bool] = is_public

    def checked(self, url: str, relative_to: httpx.URL | None = None) -> httpx.URL:
        """The URL as it is to be asked. Raises AddressRefused where it may not be."""
        try:
            read = relative_to.join(url) if relative_to else httpx.URL(url)
        except (httpx.InvalidURL, ValueError) as error:
            raise AddressRefused(f"{shown(url)} is not a URL: {shown(error)}.") from error
        disguised = any(part in read.raw_path.lower() for part in _DISGUISED)
        if read.userinfo or disguised or not any(_begins(read, httpx.URL(place)) for place in self.allowed):
            raise AddressRefused(
                f"{shown(read)} is not among the places that may be asked: {', '.join(self.allowed)}."
            )
        return read.copy_with(fragment=None)

    async def addresses(self, host: str) -> tuple[str, ...]:
        """The addresses to connect to. Raises Unreachable where there is none, else AddressRefused.

        One private address among public ones is reason enough: it may be the one that answers next time.
        """
        try:
            found = tuple(await self.resolve(host))
        except (OSError, UnicodeError) as error:
            raise Unreachable(host, f"The name {host} could not be resolved: {shown(error)}.") from error
        for address in found:
            if not self.may_connect(address):
                raise AddressRefused(f"{host} resolves to {shown(address)}, which is not a public address.")
        if not found:
            raise Unreachable(host, f"The name {host} has no address.")
        return found


def _begins(url: httpx.URL, place: httpx.URL) -> bool:
    same = (url.scheme, url.host, url.port) == (place.scheme, place.host, place.port)
    return same and url.path.startswith(place.path)
