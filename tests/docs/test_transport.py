"""Whatever a server does, the client stays polite, bounded and behind the gate."""

import asyncio
from collections.abc import Mapping

import httpx
import pytest

from pytorch_to_triton.docs.transport import Absent, NotFetched, Origins, may_be_asked

from .local_server import Request, Server, Write, answer, client_of, local_server

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


async def test_redirects_within_the_list_are_followed_and_in_a_circle_end() -> None:
    async with local_server() as server:
        server.routes["/main/page"] = answer(301, location="/main/a/b")
        server.routes["/main/a/b"] = answer(302, location=f"{server.origin}main/a/c")
        server.routes["/main/a/c"] = answer(200, b"here")
        assert await get(server) == b"here"
    async with local_server() as server:
        server.routes["/main/page"] = answer(302, location="/main/page")
        with pytest.raises(NotFetched, match="redirects"):
            await get(server)


async def test_a_redirect_to_anything_outside_of_the_list_is_refused_and_that_host_is_not_asked() -> None:
    async with local_server() as server, local_server() as foreign:
        server.routes["/main/page"] = answer(302, location=f"{foreign.origin}page")
        with pytest.raises(NotFetched, match="not among the places"):
            await get(server)
    assert foreign.asked == []
    for location in ["file:///etc/passwd", "https://example.org/", "http://[", "//10.0.0.1/"]:
        async with local_server() as server:
            server.routes["/main/page"] = answer(307, location=location)
            with pytest.raises(NotFetched):
                await get(server)
    async with local_server() as server:
        server.routes["/main/page"] = answer(302, location="https://example.org/" + "x" * 1000)
        with pytest.raises(NotFetched, match="not among the places") as refused:
            await get(server)
    assert len(str(refused.value)) < 500


async def test_a_silent_server_is_left_after_a_while_and_for_all_pages() -> None:
    async with local_server() as server, client_of(server, whole_seconds=0.1) as client:
        server.routes |= {"/main/page": never, "/main/other": answer(200, b"x")}
        for path in ("page", "other"):
            with pytest.raises(NotFetched, match=r"page did not answer in full within 0\.1 s"):
                await client.get(f"{server.origin}main/{path}")
    assert server.paths == ["/main/page"]


async def test_a_truncated_body_is_no_document_and_a_compressed_one_stays_as_it_is() -> None:
    async with local_server() as server:
        server.routes["/main/page"] = answer(200, b"hel", content_length="5")
        with pytest.raises(NotFetched, match="broke off"):
            await get(server)
    async with local_server() as server:
        server.routes["/main/page"] = answer(200, b"x", content_encoding="gzip")
        assert await get(server) == b"x"


async def test_an_answer_of_no_use_is_not_asked_for_twice() -> None:
    for sent, reported in [
        (answer(403), "status 403"),
        (answer(502), "status 502"),
        (answer(204), "status 204"),
        (answer(302), "status 302"),
    ]:
        async with local_server() as server:
            server.routes["/main/page"] = sent
            with pytest.raises(NotFetched, match=reported):
                await get(server)
        assert len(server.asked) == 1


@pytest.mark.parametrize("status", [404, 410])
async def test_a_page_that_is_not_there_is_absent(status: int) -> None:
    async with local_server() as server:
        server.routes["/main/page"] = answer(status)
        with pytest.raises(Absent):
            await get(server)


async def test_an_endless_page_is_left_at_the_cap() -> None:
    async def endless(request: Request, write: Write) -> None:
        await write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n")
        while True:
            await write(b"x" * 65536)

    async with local_server() as server:
        server.routes["/main/page"] = endless
        with pytest.raises(NotFetched, match="larger than"):
            await get(server)


async def test_a_server_that_asks_for_patience_is_left_alone() -> None:
    for status, patience in [(429, "7"), (503, "3600"), (503, "Sat, 99 Nov 2026")]:
        async with local_server() as server, client_of(server) as client:
            server.routes |= {
                "/main/page": answer(status, retry_after=patience),
                "/main/other": answer(200, b"x"),
            }
            for path in ("page", "other"):
                with pytest.raises(NotFetched, match=f"Retry-After: {patience}"):
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
