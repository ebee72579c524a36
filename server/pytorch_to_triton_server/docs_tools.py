"""The four tools of the documentation, as the catalogue holds them: search, read, fetch, status."""

# A tool's parameters are its options: as many as it takes.
# ruff: noqa: PLR0913, FBT002

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from pytorch_to_triton.schema.documentation import Form
from pytorch_to_triton.schema.page import Source
from pytorch_to_triton_server.parameters import Python

if TYPE_CHECKING:
    from pytorch_to_triton.docs.library import Library
    from pytorch_to_triton.schema.documentation import DocsStatus, PageExcerpt, SearchResult
    from pytorch_to_triton.schema.fetch import FetchReport
    from pytorch_to_triton_server.catalogue import Call


async def docs_search(
    call: "Call",
    query: Annotated[str, Field(description="Some words, e.g. 'masked reduction', or a name, e.g. tl.load")],
    source: Annotated[
        Source | None, Field(description="Only pages of this source; default: all of them")
    ] = None,
    form: Annotated[
        Form, Field(description="concise: an excerpt on one line; full: the whole passage")
    ] = "concise",
    limit: Annotated[int, Field(ge=1, le=50, description="Hits on one page of the result")] = 6,
    page: Annotated[int, Field(ge=1, description="Which page of the result")] = 1,
    python: Python = None,
) -> "SearchResult":
    """Find what the documentation of the installed Triton, and the guides, say about something.

    Each hit is a page with its best passage and the Triton that it applies to. A name that the installed
    Triton lacks is told with what to write instead. Fetched pages are marked as untrusted. Needs no network.
    """
    from anyio import to_thread

    from pytorch_to_triton.docs.search import SearchRequest, search

    library = await _library(call, python)
    request = SearchRequest(query=query, limit=limit, page=page, form=form, source=source)
    return await to_thread.run_sync(search, library, request)


async def docs_read(
    call: "Call",
    name: Annotated[str, Field(description="A page as docs search names it, or a name such as tl.load")],
    section: Annotated[str | None, Field(description="A heading of the page, or a part of one")] = None,
    page: Annotated[int, Field(ge=1, description="Which part of a long page")] = 1,
    python: Python = None,
) -> "PageExcerpt":
    """Read a page of the documentation, or one section of it.

    A page `triton.language.load` or `tl.load` has the signature, the parameters and the docstring of the
    installed version; `guides/masks` is a guide with tested code; `names` lists every public name.
    """
    from anyio import to_thread

    from pytorch_to_triton.docs.read import read

    library = await _library(call, python)
    return await to_thread.run_sync(read, library, name, section, page)


async def docs_fetch(
    call: "Call",
    refresh: Annotated[
        bool, Field(description="Ask also for pages that were confirmed less than a day ago")
    ] = False,
    python: Python = None,
) -> "FetchReport":
    """Fetch Triton's public documentation: its site, and the documents of the installed release.

    Asks fixed hosts only, over HTTPS, for what has changed. Goes on where an earlier fetch stopped.
    """
    from pytorch_to_triton import places
    from pytorch_to_triton.docs.fetch import fetch
    from pytorch_to_triton.docs.store import PageStore

    known = (await _library(call, python)).surface
    version = known.version if known else None
    return await fetch(PageStore(places.docs()), version, refresh=refresh, listener=call.listener)


async def docs_status(call: "Call", python: Python = None) -> "DocsStatus":
    """Say what documentation there is, of which Triton, how old it is, and what is missing."""
    from datetime import UTC, datetime

    from pytorch_to_triton.docs.status import status

    return status(await _library(call, python), datetime.now(UTC))


async def _library(call: "Call", python: str | None) -> "Library":
    from pytorch_to_triton.docs.library import kept_library, open_library
    from pytorch_to_triton_server.machine import choose_runtime, executable_of

    # Names are read without running a kernel, so no GPU is looked for.
    runtime = await choose_runtime(call.worker, "interpreter", python)
    if call.unattended and runtime.python != executable_of(None):
        return await kept_library(runtime)
    return await open_library(call.worker, runtime)
