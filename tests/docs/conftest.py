from collections.abc import Callable

import pytest

from pytorch_to_triton.docs.library import Library, collect
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.page import Page
from pytorch_to_triton.triton_api.surface import Surface, surface

Libraries = Callable[..., Library]


@pytest.fixture(scope="session")
async def installed(worker: WorkerClient, interpreter: Runtime) -> Surface:
    """The names of the installed Triton."""
    return await surface(worker, interpreter)


@pytest.fixture(scope="session")
async def library(installed: Surface) -> Library:
    """The installed Triton and the guides: what there is without a network and with an empty cache."""
    return collect(installed, [])


@pytest.fixture
def library_of() -> Libraries:
    """A library of the given texts alone, each a page by its name; of one source."""

    def library_of(texts: dict[str, str], source: str = "guide") -> Library:
        pages = [
            Page.model_validate(
                {"name": name, "title": name, "source": source, "applies_to": "Triton 3.7", "text": text}
                | ({"url": f"https://triton.test/{name}"} if source == "fetched" else {})
            )
            for name, text in texts.items()
        ]
        return Library(pages={page.name: page for page in pages}, spellings={}, surface=None, missing=())

    return library_of
