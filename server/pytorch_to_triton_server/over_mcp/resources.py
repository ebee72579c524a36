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
from pytorch_to_triton_server.names import Boundary, brief
from pytorch_to_triton_server.over_mcp.answers import in_callers_words
from pytorch_to_triton_server.over_mcp.roots import boundary_of
from pytorch_to_triton_server.settings import ServerSettings
from pytorch_to_triton_server.tool_functions.convert_session import SESSIONS, open_within


class NothingThere(ResourceNotFoundError):
    """What an address of this server's names does not exist, or cannot be read: the text says why."""


def add_resources(server: MCPServer[Any], settings: ServerSettings) -> None:
    """Offer every guide and kernel by itself, and templates for all that has a name."""

    async def session(name: str, ctx: Context[Any, Any]) -> str:
        """A session in the folder `sessions`, as convert_status shows it."""
        return await to_thread.run_sync(read_session, name, await boundary_of(ctx, settings))

    for file in kernel_files():
        about = "A validated kernel file: reference, Triton kernel, run, INPUTS and DIMS."
        server.add_resource(resource(f"kernel://{file.stem}", file.stem, about, file))
    for file in guide_files():
        title = file.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        server.add_resource(resource(f"docs://guides/{file.stem}", f"guides/{file.stem}", title, file))
    for uri, title, kind, read in (
        ("docs://{+page}", "A guide or a rule", "text/markdown", read_page),
        ("rule://{name}", "A rule of audit", "text/markdown", read_rule),
        ("kernel://{name}", "A kernel", "text/x-python", read_kernel),
        ("session://{name}", "A conversion in steps", "application/json", session),
    ):
        server.resource(uri, name=uri.partition(":")[0], title=title, mime_type=kind)(read)


def kernel_files() -> list[Path]:
    return sorted(places.shipped("reference_kernels").glob("*.py"))


def guide_files() -> list[Path]:
    return sorted(places.shipped("docs_cache/guides").glob("*.md"))


def resource(uri: str, name: str, description: str, file: Path) -> FileResource:
    """A kernel's source, or a guide as docs_read reads it."""
    kind = "text/x-python" if file.suffix == ".py" else "text/markdown"
    return FileResource(uri=uri, name=name, description=description, mime_type=kind, path=file)


def read_page(page: str) -> str:
    """A guide, `guides/masks` or `masks`, or a rule, `rules/NAME`."""
    folder, _, name = page.rpartition("/")
    if folder == "rules":
        return read_rule(name)
    return read_file("guide", name if folder in ("", "guides") else page, guide_files())


def read_kernel(name: str) -> str:
    """A reference kernel's source."""
    return read_file("kernel", name, kernel_files())


def read_file(kind: str, name: str, files: list[Path]) -> str:
    """One of the files by its name. Raises NothingThere."""
    by_name = {file.stem: file for file in files}
    if name not in by_name:
        raise NothingThere(f"There is no {kind} {brief(name)}. The {kind}s are {', '.join(by_name)}.")
    return by_name[name].read_text(encoding="utf-8")


def read_rule(name: str) -> str:
    """What a rule finds, why it matters, and how to fix it."""
    from pytorch_to_triton.audit.registry import all_rules
    from pytorch_to_triton.audit.report.rule_pages import page

    rule = next((rule for rule in all_rules() if rule.name == name), None)
    if rule is None:
        raise NothingThere(f"There is no rule {brief(name)}. docs_search finds rules.")
    return page(rule)


def read_session(name: str, boundary: Boundary) -> str:
    """A session in the folder `sessions`, as convert_status shows it."""
    from pytorch_to_triton.convert.session.answers import session_of

    try:
        session = session_of(open_within(f"{SESSIONS}/{name}", boundary))
    except Refusal as refusal:
        raise NothingThere(in_callers_words(str(refusal))) from refusal
    return json.dumps(session.model_dump(mode="json"), indent=1)


def session_names(boundary: Boundary) -> list[str]:
    """The folders in `sessions` that a call may name."""
    folder = Path(SESSIONS)
    if not boundary.holds(folder) or not folder.is_dir():
        return []
    return sorted(entry.name for entry in folder.iterdir() if boundary.holds(entry) and entry.is_dir())
