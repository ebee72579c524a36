"""Resources: guides and pages, rules, reference kernels and sessions, each at its address."""

import json
from pathlib import Path
from typing import Any

from anyio import to_thread
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.server.mcpserver.resources import FileResource

from pytorch_to_triton import places
from pytorch_to_triton.errors import Refusal
from pytorch_to_triton_server.boundary import Boundary
from pytorch_to_triton_server.names import brief
from pytorch_to_triton_server.over_mcp.roots import boundary_of
from pytorch_to_triton_server.over_mcp.wording import in_callers_words
from pytorch_to_triton_server.settings import ServerSettings
from pytorch_to_triton_server.tool_functions.convert_session import SESSIONS, opened_within


class NothingThere(ResourceNotFoundError):
    """What an address of this server's names does not exist, or cannot be read: the text says why."""


def add_resources(server: MCPServer[Any], settings: ServerSettings) -> None:
    """Offer every guide and kernel by itself, and templates for all that has a name."""

    async def session(name: str, ctx: Context[Any, Any]) -> str:
        """A session in the folder `sessions`, as convert_status shows it."""
        return await to_thread.run_sync(read_session, name, await boundary_of(ctx, settings))

    for file in kernel_files():
        server.add_resource(kernel_resource(file))
    for file in guide_files():
        server.add_resource(guide_resource(file))
    markdown = "text/markdown"
    server.resource("docs://{+page}", name="docs", title="A guide or a rule", mime_type=markdown)(read_page)
    server.resource("rule://{name}", name="rule", title="A rule of audit", mime_type=markdown)(read_rule)
    server.resource("kernel://{name}", name="kernel", title="A kernel", mime_type="text/x-python")(
        read_kernel
    )
    server.resource(
        "session://{name}", name="session", title="A conversion in steps", mime_type="application/json"
    )(session)


def kernel_files() -> list[Path]:
    return sorted(places.shipped("reference_kernels").glob("*.py"))


def guide_files() -> list[Path]:
    return sorted(places.shipped("docs_cache/guides").glob("*.md"))


def rule_names() -> list[str]:
    """The rules of audit, without loading them."""
    from pytorch_to_triton.audit.registry import all_rules

    return [rule.name for rule in all_rules()]


def kernel_resource(file: Path) -> FileResource:
    """A reference kernel's source."""
    return FileResource(
        uri=f"kernel://{file.stem}",
        name=file.stem,
        description="A validated kernel file: reference, Triton kernel, run, INPUTS and DIMS.",
        mime_type="text/x-python",
        path=file,
    )


def guide_resource(file: Path) -> FileResource:
    """A guide, as docs_read reads it."""
    return FileResource(
        uri=f"docs://guides/{file.stem}",
        name=f"guides/{file.stem}",
        description=file.read_text(encoding="utf-8").partition("\n")[0].lstrip("# "),
        mime_type="text/markdown",
        path=file,
    )


def read_page(page: str) -> str:
    """A guide, `guides/masks` or `masks`, or a rule, `rules/NAME`."""
    folder, _, name = page.rpartition("/")
    if folder == "rules":
        return read_rule(name)
    found = {file.stem: file for file in guide_files()}
    if folder not in ("", "guides") or name not in found:
        raise NothingThere(f"There is no guide {brief(page)}. The guides are {', '.join(found)}.")
    return found[name].read_text(encoding="utf-8")


def read_rule(name: str) -> str:
    """What a rule finds, why it matters, and how to fix it."""
    from pytorch_to_triton.audit.registry import all_rules
    from pytorch_to_triton.audit.report.rule_pages import page

    found = {rule.name: rule for rule in all_rules()}
    if name not in found:
        raise NothingThere(f"There is no rule {brief(name)}. docs_search finds rules.")
    return page(found[name])


def read_kernel(name: str) -> str:
    """A reference kernel's source."""
    found = {file.stem: file for file in kernel_files()}
    if name not in found:
        raise NothingThere(f"There is no kernel {brief(name)}. The kernels are {', '.join(found)}.")
    return found[name].read_text(encoding="utf-8")


def read_session(name: str, boundary: Boundary) -> str:
    """A session in the folder `sessions`, as convert_status shows it."""
    from pytorch_to_triton.convert.session.answers import session_of

    try:
        session = session_of(opened_within(f"{SESSIONS}/{name}", boundary))
    except Refusal as refusal:
        raise NothingThere(in_callers_words(str(refusal))) from refusal
    return json.dumps(session.model_dump(mode="json"), indent=1)


def session_names(boundary: Boundary) -> list[str]:
    """The folders in `sessions` that a call may name."""
    folder = Path(SESSIONS)
    if not boundary.holds(folder) or not folder.is_dir():
        return []
    return sorted(each.name for each in folder.iterdir() if boundary.holds(each) and each.is_dir())
