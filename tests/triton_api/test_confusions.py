"""Every row of the tables is reported where Triton lacks the name, and what it advises exists."""

import re
from collections.abc import Iterator

import pytest

from pytorch_to_triton.triton_api.check import Misuse, check
from pytorch_to_triton.triton_api.confusions import EVERY_OTHER, KEYWORDS, NAMES
from pytorch_to_triton.triton_api.history import history
from pytorch_to_triton.triton_api.surface import Surface

HEAD = (
    "import torch\nimport triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n"
)
RELEASES = history().releases
SURFACES = [history().surface(release) for release in RELEASES]
DESCRIPTOR = "tl.make_tensor_descriptor(p, [m, n], [n, 1], [16, 16])"
KEYWORD_ROWS = [
    (path, keyword, suggestion) for path, rows in KEYWORDS.items() for keyword, suggestion in rows.items()
]
each_release = pytest.mark.parametrize("surface", SURFACES, ids=RELEASES)


def reported(line: str, surface: Surface) -> tuple[Misuse, ...]:
    return check(f"{HEAD}def kernel(p, m, n):\n    return {line}\n", surface, history())


def use_of(path: str) -> str:
    owner, _, name = path.rpartition(".")
    return {
        "triton.language.tensor": f"tl.load(p).{name}",
        "triton.language.tensor_descriptor": f"{DESCRIPTOR}.{name}",
    }.get(owner, path)


def lacking(path: str, surface: Surface) -> bool:
    entry = surface.find(path)
    return entry is None or entry.standing != "current"


def takes(path: str, keyword: str, surface: Surface) -> bool:
    entry = surface.find(path)
    return entry is None or keyword in entry.keywords


@each_release
def test_every_row_of_names_is_reported_with_its_fix_where_the_name_is_missing(surface: Surface) -> None:
    rows = [(path, suggestion) for path, suggestion in NAMES.items() if lacking(path, surface)]
    wrong = [
        path
        for path, suggestion in rows
        if [(c.name, c.suggestion) for c in reported(use_of(path), surface)] != [(path, suggestion)]
    ]
    assert wrong == []


@each_release
def test_every_row_of_keywords_is_reported_with_its_fix_where_it_is_missing(
    surface: Surface,
) -> None:
    rows = [row for row in KEYWORD_ROWS if not takes(row[0], row[1], surface)]
    wrong = []
    for path, keyword, suggestion in rows:
        given = "MY_BLOCK_SIZE" if keyword == EVERY_OTHER else keyword
        complaints = reported(f"{use_of(path)}({given}=1)", surface)
        if [c.suggestion for c in complaints if c.fault == "keyword"] != [suggestion]:
            wrong.append((path, keyword))
    assert wrong == []


def test_no_row_is_for_what_every_release_has() -> None:
    assert [
        path for path, _ in NAMES.items() if not any(lacking(path, surface) for surface in SURFACES)
    ] == []
    idle = [row for row in KEYWORD_ROWS if all(takes(row[0], row[1], surface) for surface in SURFACES)]
    assert idle == []


def advised() -> Iterator[tuple[str, str, Surface]]:
    """Each text, the name that it is about, and a release to which it speaks."""
    for path, suggestion in NAMES.items():
        yield from ((path, suggestion, surface) for surface in SURFACES if lacking(path, surface))
    for path, keyword, suggestion in KEYWORD_ROWS:
        yield from ((path, suggestion, surface) for surface in SURFACES if not takes(path, keyword, surface))


def test_every_name_that_a_row_advises_exists_where_the_row_speaks() -> None:
    expressions = [
        (path, match, surface)
        for path, suggestion, surface in advised()
        for match in re.findall(r"(?<![\w.])(?:tl|triton|libdevice)(?:\.\w+)+", suggestion)
    ]
    assert expressions
    assert [(path, found) for path, found, surface in expressions if reported(found, surface)] == []


RESEARCHED = {
    "tl.tanh(p)": "libdevice.tanh",
    "tl.math.tanh(p)": "libdevice.tanh",
    "tl.asin(p)": "libdevice.asin",
    "tl.math.log1p(p)": "libdevice.log1p",
    "tl.libdevice.exp(p)": "from triton.language.extra import libdevice",
    "tl.make_tensor_descriptor(p, [m], [1], [16], order=[0])": "Leave it out",
    "tl.extra.cuda.experimental_tensormap_fenceproxy_acquire(p)": "tl.make_tensor_descriptor",
    "tl.syncthreads()": "tl.debug_barrier",
    "triton.Config(BLOCK=128)": "dictionary",
    "tl.load(p).float()": "x.to(tl.float32)",
}


@each_release
def test_what_assistants_write_is_reported_once_with_the_right_way(surface: Surface) -> None:
    for line in RESEARCHED:
        (complaint,) = reported(line, surface)
        assert RESEARCHED[line] in complaint.suggestion
