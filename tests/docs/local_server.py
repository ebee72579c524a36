"""A web server on this machine that misbehaves as it is reported, and a client that may ask it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from ssl import PROTOCOL_TLS_CLIENT, SSLContext
from typing import Any

from pytorch_to_triton.docs.transport import Client, FetchLimits, Origins

HTML = "text/html; charset=utf-8"
QUICK = FetchLimits(connect_seconds=5, whole_seconds=5)


@dataclass(frozen=True)
class Request:
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""


Write = Callable[[bytes], Awaitable[None]]
Handler = Callable[[Request, Write], Awaitable[None]]
"""Writes the whole answer, head included; the connection ends with it."""


@dataclass
class Server:
    """`routes` may be changed while it runs; what has no route is answered with 404."""

    routes: dict[str, bytes | Handler]
    origin: str = ""
    asked: list[Request] = field(default_factory=list)
    open: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.asked]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self.open.add(task)
        task.add_done_callback(self.open.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def write(data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii").split("\r\n")
            fields = (line.partition(":") for line in head[1:] if line)
            headers = {name.lower(): value.strip() for name, _, value in fields}
            request = Request(head[0].split()[1], headers)
            self.asked.append(request)
            route = self.routes.get(request.path, answer(404, b"no such page"))
            await (write(route) if isinstance(route, bytes) else route(request, write))
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client left, as it may
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


def answer(status: int, body: bytes = b"", *, content_type: str = "text/plain", **headers: str) -> bytes:
    """An answer as it goes over the wire; `retry_after="3"` becomes `Retry-After: 3`."""
    fields = {"content-length": str(len(body)), "content-type": content_type, "connection": "close"}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status} Told\r\n{lines}\r\n".encode() + body


@asynccontextmanager
async def local_server() -> AsyncIterator[Server]:
    """A server on a free port of the loopback address, until the block ends."""
    server = Server(routes={})
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    server.origin = f"http://127.0.0.1:{port}/"
    try:
        yield server
    finally:
        listening.close()
        waiting = set(server.open)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await listening.wait_closed()


@dataclass
class Hands:
    """The hands of a clock that stands still."""

    at: datetime = datetime(2026, 11, 21, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at


def origins_of(server: Server) -> Origins:
    return Origins(site=f"{server.origin}main/", sources=f"{server.origin}sources/")


@asynccontextmanager
async def client_of(server: Server, hands: Hands | None = None, **limits: Any) -> AsyncIterator[Client]:
    """A client that may ask below /main/ and /sources/ of the server, and nobody else."""
    trusting_nobody = SSLContext(PROTOCOL_TLS_CLIENT)  # the usual one takes a while to load
    client = Client(origins_of(server), replace(QUICK, **limits), (hands or Hands()).now, trusting_nobody)
    async with aclosing(client):
        yield client
