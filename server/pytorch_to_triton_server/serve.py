"""The catalogue over MCP: stdio, or streamable HTTP on this machine only."""

import hmac
import logging
import os
import secrets
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp.server import MCPServer
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError, UnexpectedToolError
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS
from pydantic import AnyHttpUrl, ValidationError

from pytorch_to_triton.errors import BadInput, Refusal
from pytorch_to_triton.places import version
from pytorch_to_triton_server.names import brief
from pytorch_to_triton_server.over_mcp.answers import in_callers_words
from pytorch_to_triton_server.over_mcp.completions import add_completions
from pytorch_to_triton_server.over_mcp.fit import fit_text
from pytorch_to_triton_server.over_mcp.long_calls import LongCalls, open_long_calls
from pytorch_to_triton_server.over_mcp.prompts import add_prompts
from pytorch_to_triton_server.over_mcp.resources import NothingThere, add_resources
from pytorch_to_triton_server.over_mcp.served_tools import job_tool, serve_tool, with_own_names
from pytorch_to_triton_server.over_mcp.stdio_transport import stdio
from pytorch_to_triton_server.settings import ServerSettings
from pytorch_to_triton_server.tool import refusal_of

NAME = "pytorch-to-triton"
HOST = "127.0.0.1"
INSTRUCTIONS = (
    "Turns PyTorch functions into Triton kernels and checks that kernels are right. Paths are relative to "
    "the folder in which the server runs. A call that takes over 45 s returns a job_id for the tool job. An "
    "answer has up to 4,000 tokens, with detail full 20,000."
)
MOST_OF_AN_ERROR = 6000
"""Characters."""
LONGEST_NAMED = 4000
"""Characters of an address, or of a prompt's argument: nearly as many as a path may have."""
DISK = "Check that the disk is not full, and that the folder and the cache are writable."
DEFECT = "The server's log has the traceback. Other calls are not affected."
TOKEN_VARIABLE = "PYTORCH_TO_TRITON_TOKEN"
LEAST_OF_TOKEN = 20


class ToolServer(MCPServer[LongCalls]):
    """An MCP server whose errors say how to correct the call."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[LongCalls, Any] | None = None
    ) -> Any:
        """As the SDK's. Raises ToolError with message and hint for a Refusal and for wrong arguments."""
        tool = next((tool for tool in await self.list_tools() if tool.name == name), None)
        given = with_own_names(arguments, tool.input_schema) if tool else arguments
        try:
            return await super().call_tool(name, given, context)
        except ToolError as error:
            why = in_callers_words(await self._why(error, name))
            raise ToolError(fit_text(why, MOST_OF_AN_ERROR)) from error

    async def run_stdio_async(self) -> None:
        """As the SDK's, but each message is answered."""
        lowlevel = self._lowlevel_server
        async with stdio() as (read, write):
            await lowlevel.run(read, write, lowlevel.create_initialization_options())

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: Context[LongCalls, Any] | None = None,
    ) -> Any:
        """As the SDK's. Raises MCPError for a prompt or an argument that does not exist."""
        prompts = {prompt.name: prompt for prompt in await self.list_prompts()}
        if name not in prompts:
            raise invalid(f"There is no prompt {brief(name)}. The prompts are {', '.join(prompts)}.")
        known = [argument.name for argument in prompts[name].arguments or ()]
        unknown = [argument for argument in arguments or {} if argument not in known]
        if unknown:
            raise invalid(f"{name} has no argument {brief(unknown[0])}. It takes {', '.join(known)}.")
        for argument, value in (arguments or {}).items():
            refuse_too_long(argument, value)
        return await super().get_prompt(name, arguments, context)

    async def read_resource(self, uri: Any, context: Context[LongCalls, Any] | None = None) -> Any:
        """As the SDK's. Raises ResourceNotFoundError, which says why, or names the resources that exist."""
        refuse_too_long("The address", str(uri))
        try:
            return await super().read_resource(uri, context)
        except NothingThere as error:
            raise NothingThere(fit_text(str(error), MOST_OF_AN_ERROR)) from error
        except ResourceNotFoundError as error:
            known = ", ".join(resource.uri for resource in await self.list_resources())
            text = f"There is no resource {brief(str(uri))}. The resources are {known}."
            raise ResourceNotFoundError(fit_text(text, MOST_OF_AN_ERROR)) from error

    async def _why(self, error: ToolError, name: str) -> str:
        """What the caller did wrong, or which defect of this program ended the call."""
        tools = {tool.name: tool for tool in await self.list_tools()}
        cause = error.__cause__
        if name not in tools:
            return str(BadInput(f"There is no tool {brief(name)}.", f"The tools are {', '.join(tools)}."))
        if isinstance(cause, Refusal):
            return str(cause)
        if isinstance(cause, ValidationError) and not isinstance(error, UnexpectedToolError):
            return str(refusal_of(cause, name, tools[name].input_schema["properties"]))
        if isinstance(cause, OSError):
            place = f" ({cause.filename})" if cause.filename else ""
            return f"{name} failed: {cause.strerror or cause}{place}.\n{DISK}"
        if isinstance(error, UnexpectedToolError):
            logging.getLogger(__name__).error("%s failed", name, exc_info=cause)
            return f"{name} failed because of a defect in {NAME}: {type(cause).__name__}: {cause}.\n{DEFECT}"
        return str(error)


def invalid(message: str) -> MCPError:
    """The protocol's error for what the caller got wrong."""
    return MCPError(code=INVALID_PARAMS, message=fit_text(message, MOST_OF_AN_ERROR))


def refuse_too_long(name: str, text: str) -> None:
    """Raises MCPError, which does not repeat the text."""
    if len(text) > LONGEST_NAMED:
        raise invalid(f"{name} has {len(text)} characters: more than {LONGEST_NAMED} are not read.")


def build_server(settings: ServerSettings | None = None, **over_http: Any) -> ToolServer:
    """The server, not yet running; `over_http` is what the SDK wants to know of tokens."""
    settings = settings or ServerSettings()
    server = ToolServer(
        NAME,
        title="PyTorch to Triton",
        version=version(),
        instructions=INSTRUCTIONS,
        log_level="WARNING",
        lifespan=lambda _: open_long_calls(settings.patience),
        tools=[*(serve_tool(tool, settings) for tool in settings.tools), job_tool(settings)],
        **over_http,
    )
    add_prompts(server)
    add_resources(server, settings)
    add_completions(server, settings)
    return server


def serve_stdio(settings: ServerSettings) -> None:
    """Serve until stdin closes."""
    # The SDK waits in a read of stdin that nothing can interrupt; the worker's processes end with this one,
    # however it ends.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    build_server(settings).run("stdio")


def serve_http(settings: ServerSettings, port: int) -> None:
    """Serve on http://127.0.0.1:PORT/mcp until SIGINT or SIGTERM, to clients that send the token.

    The SDK refuses requests whose Host or Origin is another. Raises BadInput for a token that is none.
    """
    token = chosen_token()
    url = AnyHttpUrl(f"http://{HOST}:{port}")
    # There is one token and one server: none that would issue one, and nothing else that it could be for.
    auth = AuthSettings(issuer_url=url, resource_server_url=url, validate_token_resource=False)
    server = build_server(settings, token_verifier=Bearer(token), auth=auth)
    print(f"Serving on http://{HOST}:{port}/mcp\nAuthorization: Bearer {token}", file=sys.stderr, flush=True)
    server.run("streamable-http", host=HOST, port=port)


@dataclass(frozen=True)
class Bearer:
    """One token, which gives all rights; the SDK refuses requests without it."""

    token: str

    async def verify_token(self, token: str) -> AccessToken | None:
        """What a request with this token may do; None: nothing."""
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            return None
        return AccessToken(token=token, client_id="local", scopes=[])


def chosen_token(environment: Mapping[str, str] = os.environ) -> str:
    """The token that the environment sets, else a new one. Raises BadInput for one that is easily guessed."""
    given = environment.get(TOKEN_VARIABLE)
    if given is None:
        return secrets.token_urlsafe(32)
    if len(given) < LEAST_OF_TOKEN or not given.isascii() or not given.isprintable() or " " in given:
        raise BadInput(
            f"{TOKEN_VARIABLE} is not a usable token.",
            f"Set it to {LEAST_OF_TOKEN} or more letters and digits, or leave it unset for a new one.",
        )
    return given
