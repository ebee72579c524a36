"""The four tools of the documentation, docs search, read, fetch and status."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from pytorch_to_triton.schema.documentation import Form
from pytorch_to_triton.schema.page import Source
from pytorch_to_triton_server.tool import ToolCall

if TYPE_CHECKING:
    from pytorch_to_triton.docs.library import Library
    from pytorch_to_triton.schema.documentation import DocsStatus, PageExcerpt, SearchResult
    from pytorch_to_triton.schema.fetch import FetchReport

RULES, KERNELS = "rules/", "kernels/"


async def docs_search(
    call: ToolCall,
    query: Annotated[
        str, Field(description="What to look for, e.g. 'masked reduction', or a name, e.g. tl.load")
    ],
    source: Annotated[
        Source | None, Field(description="Only pages of this source; default: all sources")
    ] = None,
    form: Annotated[
        Form, Field(description="concise: a one-line excerpt; full: the whole passage")
    ] = "concise",
    limit: Annotated[int, Field(ge=1, le=50, description="Hits per page of results")] = 6,
    page: Annotated[int, Field(ge=1, description="Which page of results")] = 1,
) -> "SearchResult":
    """Search the documentation of the installed Triton, and the guides.

    Each hit is a page with its best passage and the Triton version that it describes. For a name that the
    installed Triton does not have, suggests what to write. Fetched pages are marked as untrusted. Needs no
    network.
    """
    from anyio import to_thread

    from pytorch_to_triton.docs.search import SearchRequest, search

    library = await _library(call)
    request = SearchRequest(query=query, limit=limit, page=page, form=form, source=source)
    return await to_thread.run_sync(search, library, request)


async def docs_read(
    call: ToolCall,
    name: Annotated[str, Field(description="A page listed by docs search, or a name such as tl.load")],
    section: Annotated[str | None, Field(description="A heading of the page, or part of one")] = None,
    page: Annotated[int, Field(ge=1, description="Which part of a long page")] = 1,
) -> "PageExcerpt":
    """Read a page of the documentation, or one section of it.

    The page `triton.language.load`, or `tl.load`, has the signature, the parameters and the docstring of the
    installed version; `guides/masks` is a guide with tested code; `names` lists every public name;
    `rules/access_without_mask` explains a rule of audit; `kernels/softmax` is a reference kernel.
    """
    from anyio import to_thread

    from pytorch_to_triton.docs.read import read

    if name.startswith(RULES):
        library = _rules()
    else:
        library = _kernels() if name.startswith(KERNELS) else await _library(call)
    return await to_thread.run_sync(read, library, name, section, page)


async def docs_fetch(
    call: ToolCall,
    refresh: Annotated[
        bool, Field(description="Check pages again even if they were checked less than a day ago")
    ] = False,
) -> "FetchReport":
    """Fetch Triton's public documentation: its website, and the documents of the installed release.

    Contacts fixed hosts only, over HTTPS, and downloads only what has changed. Resumes an interrupted fetch.
    """
    from pytorch_to_triton import places
    from pytorch_to_triton.docs.fetch import fetch
    from pytorch_to_triton.docs.page_store import PageStore

    known = (await _library(call)).surface
    version = known.version if known else None
    return await fetch(PageStore(places.docs()), version, refresh=refresh, listener=call.listener)


async def docs_status(call: ToolCall) -> "DocsStatus":
    """List the available documentation: for which Triton, how old it is, and what is missing."""
    from datetime import UTC, datetime

    from pytorch_to_triton.docs.library import status

    return status(await _library(call), datetime.now(UTC))


def _rules() -> "Library":
    """The rules of audit as pages, each written from the rule itself."""
    from pytorch_to_triton.audit.registry import all_rules
    from pytorch_to_triton.audit.report.rule_pages import page
    from pytorch_to_triton.docs.library import Library, guide

    pages = (guide(f"{RULES}{rule.name}", rule.title, page(rule)) for rule in all_rules())
    return Library(pages={entry.name: entry for entry in pages}, spellings={}, surface=None, missing=())


def _kernels() -> "Library":
    """The reference kernels as pages: each file as it is."""
    from pytorch_to_triton import places
    from pytorch_to_triton.docs.library import Library, guide

    files = sorted(places.shipped("reference_kernels").glob("*.py"))
    texts = {file.stem: file.read_text(encoding="utf-8") for file in files}
    pages = [guide(f"{KERNELS}{name}", name, f"```python\n{text}```\n") for name, text in texts.items()]
    return Library(pages={page.name: page for page in pages}, spellings={}, surface=None, missing=())


async def _library(call: ToolCall) -> "Library":
    from pytorch_to_triton.docs.library import open_library
    from pytorch_to_triton_server.machine import choose_runtime

    # Names are read without running a kernel, so there is no need to look for a GPU.
    return await open_library(call.worker, await choose_runtime(call.worker, "interpreter", call.python))
