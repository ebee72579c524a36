"""Only the listed places are asked, over HTTPS, at public addresses."""

import anyio
import httpx
import pytest

from pytorch_to_triton.docs.address import AddressRefused, Gate, Unreachable, is_public
from pytorch_to_triton.docs.transport import Client, FetchLimits

pytestmark = pytest.mark.anyio

SITE = "https://triton-lang.org/main/"


def gate_to(*addresses: str) -> Gate:
    async def resolve(host: str) -> tuple[str, ...]:
        return addresses

    return Gate(resolve=resolve)


@pytest.mark.parametrize(
    "url",
    [
        f"{SITE}index.html",
        "https://raw.githubusercontent.com/triton-lang/triton/v3.7.1/docs/index.rst",
        "https://TRITON-LANG.org:443/main/",
    ],
)
def test_the_places_of_the_documentation_may_be_asked(url: str) -> None:
    assert Gate().checked(url).scheme == "https"


def test_no_other_url_may_be_asked() -> None:
    for url in [
        "http://triton-lang.org/main/",
        "https://triton-lang.org:8443/main/",
        "https://triton-lang.org.example.org/main/",
        "https://triton-lang.org@example.org/",
        "https://user@triton-lang.org/main/",
        "https://example.org#@triton-lang.org/",
        "https://example.org\\@triton-lang.org/",
        "https://raw.githubusercontent.com/somebody/else/main/x.py",
        "https://raw.githubusercontent.com/triton-lang/triton/../../somebody/else/x.py",
        "https://raw.githubusercontent.com/triton-lang/triton/%2e%2e/%2E%2E/somebody/x.py",
        "https://raw.githubusercontent.com/triton-lang/triton/..%2f..%2fsomebody/x.py",
        "https://127.0.0.1/main/",
        "https://[::1]/main/",
        "https://2130706433/",
        "file:///etc/passwd",
        "//triton-lang.org/main/",
        "javascript:alert(1)",
        "https://triton-lang.org/\r\nHost: example.org",
        "https://[",
        "",
    ]:
        with pytest.raises(AddressRefused):
            Gate().checked(url)


def test_a_redirect_is_read_from_where_it_stands() -> None:
    page = httpx.URL(f"{SITE}a/b.html")
    assert str(Gate().checked("../c.html#part", page)) == f"{SITE}c.html"
    with pytest.raises(AddressRefused, match="not among the places"):
        Gate().checked("//example.org/c.html", page)


def test_a_refusal_shows_a_hostile_url_as_harmless_text() -> None:
    with pytest.raises(AddressRefused) as refused:
        Gate().checked("https://example.org/\u202e" + "x" * 1000)
    assert refused.value.reason.isascii()
    assert len(refused.value.reason) < 500


@pytest.mark.parametrize("address", ["185.199.108.153", "2606:50c0:8000::153", "64:ff9b::b9c7:6c99"])
def test_public_addresses_are_connected_to(address: str) -> None:
    assert is_public(address)


def test_other_addresses_are_not() -> None:
    for address in [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.5.4",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "192.0.2.1",
        "::1",
        "::",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "fec0::1",
        "ff02::1",
        "2001:db8::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2002:a00:1::1",
        "::127.0.0.1",
    ]:
        assert not is_public(address)


async def test_one_private_address_among_public_ones_is_reason_enough() -> None:
    with pytest.raises(
        AddressRefused, match=r"resolves to 169\.254\.169\.254, which is not a public address"
    ):
        await gate_to("185.199.108.153", "169.254.169.254").addresses("triton-lang.org")
    assert await gate_to("185.199.108.153").addresses("triton-lang.org") == ("185.199.108.153",)


async def test_a_name_without_an_address_is_unreachable() -> None:
    async def resolve(host: str) -> tuple[str, ...]:
        raise OSError("no network")

    with pytest.raises(Unreachable, match="could not be resolved: no network"):
        await Gate(resolve=resolve).addresses("triton-lang.org")
    with pytest.raises(Unreachable, match="has no address"):
        await gate_to().addresses("triton-lang.org")


async def test_a_name_that_nobody_resolves_in_time_is_looked_up_once() -> None:
    looked_up: list[str] = []

    async def silent(host: str) -> tuple[str, ...]:
        looked_up.append(host)
        await anyio.Event().wait()
        return ()

    gate = Gate(resolve=silent)
    async with Client(gate, FetchLimits(connect_seconds=0.01)) as client:
        for page in ("index.html", "other.html"):
            with pytest.raises(Unreachable, match=r"triton-lang\.org was not resolved within 0\.01 s"):
                await client.get(f"{SITE}{page}", frozenset({"text/html"}))
    assert looked_up == ["triton-lang.org"]


async def test_the_system_s_resolver_gives_each_address_once() -> None:
    gate = Gate(may_connect=lambda address: address in ("127.0.0.1", "::1"))
    found = await gate.addresses("localhost")
    assert found
    assert len(set(found)) == len(found)
