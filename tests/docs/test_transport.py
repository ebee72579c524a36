"""Whatever a server does, the client stays polite, bounded and behind the gate."""

import asyncio
from collections.abc import Mapping

import httpx
import pytest

from pytorch_to_triton.docs.transport import Absent, NotFetched, Origins, may_be_asked

from .local_server import Handler, Request, Server, Write, answer, client_of, local_server

pytestmark = pytest.mark.anyio

KNOWN = {"If-None-Match": '"1"', "If-Modified-Since": "Sat, 21 Nov 2026 12:00:00 GMT"}


async def get(
    server: Server, path: str = "page", known: Mapping[str, str] | None = None, **limits: float
) -> bytes:
    """The body at `path`, fetched by a new client; empty where it is unchanged."""
    async with client_of(server, **limits) as client:
        document = await client.get(f"{server.origin}main/{path}", known)
        return document.body if document else b""


async def never(request: Request, write: Write) -> None:
    await asyncio.get_running_loop().create_future()


def test_the_places_of_the_documentation_may_be_asked_and_no_others() -> None:
    for url in [*Origins().allowed, "https://TRITON-LANG.org:443/main/"]:
        assert may_be_asked(httpx.URL(url), Origins())
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
        "",
    ]:
        assert not may_be_asked(httpx.URL(url), Origins()), url


async def test_a_first_fetch_brings_the_body_and_what_to_ask_with_next_time() -> None:
    async with local_server() as server, client_of(server) as client:
        sent = answer(200, b"hello", etag='"1"', last_modified="Sat, 21 Nov 2026 12:00:00 GMT")
        server.routes["/main/page"] = sent
        document = await client.get(f"{server.origin}main/page")
    assert document is not None
    assert document.body == b"hello"
    assert document.conditions == KNOWN
    headers = server.asked[0].headers
    assert headers["user-agent"].startswith("pytorch-to-triton/")
    assert (headers["accept-encoding"], headers["host"]) == ("identity", server.origin[7:-1])
    assert not headers.keys() & {"if-none-match", "if-modified-since", "cookie"}


async def test_a_known_page_need_not_be_sent_and_an_unknown_one_cannot_be_unchanged() -> None:
    async with local_server() as server:
        server.routes["/main/page"] = answer(304)
        assert await get(server, known=KNOWN) == b""
    assert server.asked[0].headers["if-none-match"] == '"1"'
    assert server.asked[0].headers["if-modified-since"] == "Sat, 21 Nov 2026 12:00:00 GMT"
    async with local_server() as server:
        server.routes["/main/page"] = answer(304)
        with pytest.raises(NotFetched, match="status 304"):
            await get(server)


async def test_redirects_within_the_list_are_followed() -> None:
    async with local_server() as server:
        server.routes["/main/page"] = answer(301, location="/main/a/b")
        server.routes["/main/a/b"] = answer(302, location=f"{server.origin}main/a/c")
        server.routes["/main/a/c"] = answer(200, b"here")
        assert await get(server) == b"here"


async def test_a_host_outside_of_the_list_to_which_a_redirect_leads_is_not_asked() -> None:
    async with local_server() as server, local_server() as foreign:
        server.routes["/main/page"] = answer(302, location=f"{foreign.origin}page")
        with pytest.raises(NotFetched, match="not among the places"):
            await get(server)
    assert foreign.asked == []


async def endless(request: Request, write: Write) -> None:
    await write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n")
    while True:
        await write(b"x" * 65536)


OF_NO_USE: dict[str, tuple[bytes | Handler, type[Exception], str]] = {
    "forbidden": (answer(403), NotFetched, "status 403"),
    "broken": (answer(502), NotFetched, "status 502"),
    "without content": (answer(204), NotFetched, "status 204"),
    "redirected nowhere": (answer(302), NotFetched, "status 302"),
    "not there": (answer(404), Absent, "404"),
    "gone": (answer(410), Absent, "410"),
    "truncated": (answer(200, b"hel", content_length="5"), NotFetched, "broke off"),
    "without an end": (endless, NotFetched, "larger than"),
    **{
        f"redirected to {location[:20]}": (answer(307, location=location), NotFetched, ".")
        for location in ("file:///etc/passwd", "https://example.org/", "http://[", "//10.0.0.1/")
    },
    "redirected far": (answer(302, location="https://example.org/" + "x" * 1000), NotFetched, "not among"),
}


@pytest.mark.parametrize(("sent", "kind", "reported"), OF_NO_USE.values(), ids=[*OF_NO_USE])
async def test_an_answer_of_no_use_is_reported_in_short_and_not_asked_for_twice(
    sent: bytes | Handler, kind: type[Exception], reported: str
) -> None:
    async with local_server() as server:
        server.routes["/main/page"] = sent
        with pytest.raises(kind, match=reported) as refused:
            await get(server)
    assert len(server.asked) == 1
    assert len(str(refused.value)) < 500


async def test_a_redirect_in_a_circle_ends_and_a_compressed_body_stays_as_it_is() -> None:
    async with local_server() as server:
        server.routes["/main/page"] = answer(302, location="/main/page")
        with pytest.raises(NotFetched, match="redirects"):
            await get(server)
        server.routes["/main/page"] = answer(200, b"x", content_encoding="gzip")
        assert await get(server) == b"x"


@pytest.mark.parametrize(
    ("sent", "reported"),
    [
        (never, r"page did not answer in full within 0\.1 s"),
        *(
            (answer(status, retry_after=patience), f"Retry-After: {patience}")
            for status, patience in ((429, "7"), (503, "3600"), (503, "Sat, 99 Nov 2026"))
        ),
    ],
)
async def test_a_server_that_is_silent_or_asks_for_patience_is_left_alone_for_all_pages(
    sent: bytes | Handler, reported: str
) -> None:
    async with local_server() as server, client_of(server, whole_seconds=0.1) as client:
        server.routes |= {"/main/page": sent, "/main/other": answer(200, b"x")}
        for path in ("page", "other"):
            with pytest.raises(NotFetched, match=reported):
                await client.get(f"{server.origin}main/{path}")
    assert server.paths == ["/main/page"]


async def test_a_closed_port_is_unreachable_at_once_and_for_all_pages() -> None:
    async with local_server() as server:
        pass
    async with client_of(server) as client:
        for path in ("page", "other"):
            with pytest.raises(NotFetched, match="No connection"):
                await client.get(f"{server.origin}main/{path}")


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with local_server() as server, local_server() as proxy:
        server.routes["/main/page"] = answer(200, b"x")
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.origin)
        assert await get(server) == b"x"
    assert proxy.asked == []
