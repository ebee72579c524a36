"""Wrong names and arguments are reported where they stand; what is right, unsure or guarded is not."""

import re
from pathlib import Path

import pytest

from pytorch_to_triton import places
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.triton_api.check import Misuse, check
from pytorch_to_triton.triton_api.history import history

TESTS = Path(__file__).parents[1]
HEAD = (
    "import torch\nimport triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n"
)
BLOCK_POINTER = "b = tl.make_block_ptr(p, (n,), (1,), (0,), (16,), (0,))"


def complaints(source: str, version: str = "3.7.1") -> list[Misuse]:
    return list(check(source, history().surface(version), history()))


def reported(source: str, version: str = "3.7.1") -> list[str]:
    """The names that are reported of in a file with the usual imports."""
    return [complaint.name for complaint in complaints(HEAD + source, version)]


def test_a_complaint_says_where_what_and_how_to_fix_it() -> None:
    (found,) = complaints(HEAD + "def kernel(p):\n    x = tl.relu(tl.load(p))\n")
    assert (found.line, found.at.col_offset, found.at.end_col_offset) == (6, 8, 15)
    assert (found.fault, found.name) == ("unknown", "triton.language.relu")
    assert found.message == "There is no tl.relu in Triton 3.7.1."
    assert found.suggestion == "Use tl.maximum(x, 0.0)."
    assert found.versions == ()


def test_a_wrong_use_is_found_through_any_import() -> None:
    for imports, wrong in [
        ("import triton.language as L", "L.relu(1)"),
        ("import triton", "triton.language.relu(1)"),
        ("from triton import language", "language.relu(1)"),
        ("import triton.language as tl\nlang = tl", "lang.relu(1)"),
        ("import triton.language as tl\nmath = tl.math", "math.relu(1)"),
        ("from triton.language import sum as total", "total(1, dim=0)"),
        ("from triton.language import math", "math.tanh(1)"),
        ("import triton.language.extra.libdevice as ld", "ld.tanhh(1)"),
        ("import triton.language.extra.cuda.libdevice as ld", "ld.tanhh(1)"),
        ("from triton import Config as C", "C({}, num_warp=4)"),
    ]:
        assert len(complaints(f"{imports}\nx = {wrong}\n")) == 1


def test_an_import_of_what_is_missing_is_reported_at_each_name() -> None:
    for line in [
        "from triton.language import relu",
        "from triton.ops import matmul, blocksparse",
        "import triton.ops.blocksparse as bs",
        "from triton.tools.experimental_descriptor import create_2d_tma_descriptor",
    ]:
        found = complaints(line + "\n")
        assert found
        assert {complaint.fault for complaint in found} == {"unknown"}


def test_a_missing_import_is_reported_once_and_not_at_its_uses() -> None:
    assert len(complaints("from triton.language import relu\nx = relu(relu(1))\ny = relu.z\n")) == 1


def test_a_wrong_use_is_found_wherever_it_stands() -> None:
    for place in [
        "@triton.autotune([triton.Config({}, num_warp=4)], key=[])\ndef f(): ...",
        "def f(BLOCK: tl.constexp): ...",
        "def f(x=tl.float33): ...",
        "class A:\n    x = tl.float33\n    def f(self): ...",
        "class A:\n    def f(self):\n        return tl.float33",
        "grid = lambda meta: (triton.cdivv(1, meta['B']),)",
        "def outer():\n    import triton.language as q\n    def inner():\n        return q.float33",
    ]:
        assert len(reported(place + "\n")) == 1


def test_the_nearest_name_or_its_home_is_advised() -> None:
    for wrong, nearest in [
        ("tl.dto(x, x)", "The nearest name is tl.dot."),
        ("tl.arrange(0, 16)", "The nearest names are tl.arange and tl.range."),
        ("tl.atomic_addd(1, 2)", "tl.atomic_add"),
        ("triton.heuristic({})", "triton.heuristics"),
        ("libdevice.rsqrtt(1)", "libdevice.rsqrt"),
        ("tl.load(1, masks=2)", "The keyword is `mask`."),
        ("tl.dot(1, 2, out_type=3)", "The keyword is `out_dtype`."),
        ("tl.jit", "Use triton.jit."),
        ("triton.load(1)", "Use tl.load."),
        ("triton.TensorDescriptor", "Use triton.tools.tensor_descriptor.TensorDescriptor."),
        ("libdevice.sigmoid(1)", "Use tl.sigmoid."),
        ("libdevice.relu(1)", "Use tl.maximum(x, 0.0)."),
        ("tl.zzzzzzz", "No replacement is known: compose it from what there is."),
        ("tl.abs(1, zzzzzzz=2)", "Its parameters are `x`."),
        ("tl.debug_barrier(zzzzzzz=2)", "It takes none."),
    ]:
        (complaint,) = complaints(f"{HEAD}x = {wrong}\n")
        assert nearest in complaint.suggestion


def test_too_many_positional_arguments_are_reported_with_the_parameters() -> None:
    (found,) = complaints(HEAD + "x = tl.program_id(0, 1)\n")
    assert found.fault == "positional"
    assert found.message == "tl.program_id takes at most 1 positional argument; 2 are given."
    assert found.suggestion == "Its positional parameters are axis."
    assert found.at.col_offset == 21


def test_arguments_that_became_keyword_only_are_reported_from_then_on() -> None:
    line = "x = tl.load(p, m, 0.0, '.cg')\n"
    assert reported(line, "3.8.0") == []
    (found,) = complaints(HEAD + line, "3.9.0")
    assert "Give cache_modifier, eviction_policy, volatile by name." in found.suggestion


def test_block_pointers_are_right_then_deprecated_then_removed() -> None:
    for version, faults in [
        ("3.6.0", []),
        ("3.7.1", ["deprecated"]),
        ("3.8.0", ["deprecated"]),
        ("3.9.0", ["removed"]),
    ]:
        found = complaints(f"{HEAD}def kernel(p, n):\n    {BLOCK_POINTER}\n", version)
        assert [complaint.fault for complaint in found] == faults
        assert all("tl.make_tensor_descriptor" in complaint.suggestion for complaint in found)


def test_a_name_that_other_releases_have_is_reported_with_them() -> None:
    (earlier,) = complaints(HEAD + "p = tl.advance(p, (16,))\n", "3.9.0")
    assert earlier.versions == ("3.6.0", "3.7.1", "3.8.0")
    assert earlier.message == "There is no tl.advance in Triton 3.9.0; Triton 3.6.0, 3.7.1 and 3.8.0 have it."
    (later,) = complaints(HEAD + "x = tl.squeeze(x, 0)\n", "3.6.0")
    assert later.versions[0] == "3.7.1"
    (keyword,) = complaints(HEAD + "x = tl.load(p, boundary_check=(0,))\n", "3.9.0")
    assert keyword.versions == ("3.6.0", "3.7.1", "3.8.0")


def test_members_of_what_certainly_is_a_tensor_are_checked() -> None:
    for body, name in [
        ("return tl.load(p).float()", "triton.language.tensor.float"),
        ("x = tl.load(p)\n    return x.float()", "triton.language.tensor.float"),
        ("x = tl.load(p).to(tl.float32)\n    return x.mean()", "triton.language.tensor.mean"),
        ("x = tl.zeros((4,), tl.int32)\n    return x.sum(dim=0)", "triton.language.tensor.sum(dim=)"),
        (
            "d = tl.make_tensor_descriptor(p, [n], [1], [16])\n    return d.load([0], mask=p)",
            "triton.language.tensor_descriptor.load(mask=)",
        ),
    ]:
        assert reported(f"def kernel(p, n):\n    {body}\n") == [name]


SPARED = {
    "an object that may be anything": "def f(x):\n    return x.float().mean(dim=0)\n",
    "a parameter of the module's name": "def f(tl):\n    return tl.relu(1)\n",
    "a lambda's parameter of that name": "f = lambda tl: tl.relu(1)\n",
    "a name that is bound twice": "if f():\n    tl = other\nx = tl.relu(1)\n",
    "a tensor that is rebound": "def f(p, g):\n    x = tl.load(p)\n    x = g(x)\n    return x.float()\n",
    "a name that is defined by itself": "def f():\n    y = y.to(1)\n    return y.float()\n",
    "an import with a fallback": (
        "try:\n    from triton.language import tanh\nexcept ImportError:\n    tanh = tl.tanh\nx = tanh(1)\n"
    ),
    "an attribute that may be missing": "try:\n    relu = tl.relu\nexcept AttributeError:\n    relu = None\n",
    "a call that may be refused": "try:\n    tl.sum(1, mask=2)\nexcept Exception:\n    pass\n",
    "what is expected to raise": "with pytest.raises(AttributeError):\n    tl.relu(1)\n",
    "what is suppressed": "with contextlib.suppress(AttributeError):\n    f = tl.relu\n",
    "hasattr": "if hasattr(tl, 'relu'):\n    relu = tl.relu\n",
    "hasattr with an early exit": (
        "def f():\n    if not hasattr(tl, 'relu'):\n        return 0\n    return tl.relu(1)\n"
    ),
    "getattr": "f = getattr(tl, 'relu', None) or tl.relu\n",
    "a name that the file adds": "tl.relu = my_relu\nx = tl.relu(1)\n",
    "a version": "if triton.__version__ < '3.0':\n    x = tl.relu(1)\nelse:\n    x = tl.gelu(1)\n",
    "a parsed version": "x = tl.relu(1) if version.parse(triton.__version__).major < 3 else 0\n",
    "a version with an early exit": (
        "def f():\n    if Version(triton.__version__) > OLD:\n        return 0\n    return tl.relu(1)\n"
    ),
    "a flag of the file": "OLD = triton.__version__ < '3'\nif OLD:\n    x = tl.relu(1)\n",
    "a function that tells": (
        "def is_old():\n    return triton.__version__ < '3'\nif is_old():\n    x = tl.relu(1)\n"
    ),
    "a flag from elsewhere": "from my.env import HAS_RELU\nif HAS_RELU:\n    x = tl.relu(1)\n",
    "a decorated test": (
        "@pytest.mark.skipif(triton.__version__ > '3', reason='')\ndef f():\n    return tl.relu(1)\n"
    ),
    "a keyword that is asked for": (
        "if 'fast' in inspect.signature(triton.autotune).parameters:\n"
        "    t = triton.autotune([], [], fast=True)\n"
    ),
    "a keyword that is asked for by its absence": (
        "if 'fast' not in parameters:\n    raise OSError\nt = triton.autotune([], [], fast=True)\n"
    ),
    "an import on a condition": "if is_fork():\n    from triton.fork import thing\n",
    "another backend's module": "from triton.language.extra.npu import libdevice as npu\nx = npu.relu(1)\n",
    "modules that are not read": "x = triton.runtime.driver.active.get_target()\ny = tl.core.anything\n",
    "private names": "x = tl._secret(1)\ny = tl.load(1, _semantic=None)\n",
    "arguments that only Python knows": "def f(a, k):\n    return tl.load(*a, **k), tl.program_id(*a, 1)\n",
    "any number of sizes": "x = tl.reshape(x, 1, 2, 3, 4, 5, 6)\n",
    "torch": "x = torch.sum(y, dim=0, keepdim=True).float()\n",
    "a relative import": "from .triton import ops\nx = ops.relu(1)\n",
    "a star": "from triton.language import *\n",
}


def test_nothing_is_reported_of() -> None:
    for source in SPARED.values():
        assert reported(source) == []


def test_a_guard_spares_only_what_it_guards() -> None:
    assert reported("if hasattr(tl, 'relu'):\n    pass\nx = tl.gelu(1)\n") == ["triton.language.gelu"]
    source = "try:\n    import numpy\nexcept ImportError:\n    numpy = None\nx = tl.gelu(1)\n"
    assert reported(source) == ["triton.language.gelu"]
    source = "try:\n    import numpy\n    x = tl.gelu(1)\nexcept ImportError:\n    numpy = None\n"
    assert reported(source) == ["triton.language.gelu"]
    source = "def f(n, BLOCK: tl.constexpr):\n    if BLOCK > 4:\n        return tl.gelu(n)\n"
    assert reported(source) == ["triton.language.gelu"]


def test_of_a_newer_triton_only_known_mistakes_are_reported() -> None:
    unknown = "x = tl.brand_new(1)\ny = tl.load(1, brand_new=2)\nz = tl.program_id(0, 1)\n"
    assert reported(unknown, "3.99.0") == []
    assert reported("x = tl.relu(1)\ny = tl.sum(1, mask=2)\n", "3.99.0") == [
        "triton.language.relu",
        "triton.language.sum(mask=)",
    ]


def right_sources() -> list[tuple[str, str]]:
    """Code that is known to be right: whole files, and what the guides show."""
    folders = (
        places.shipped("reference_kernels"),
        TESTS / "convert" / "draft" / "golden",
        TESTS / "kernels" / "honest",
        TESTS.parent / "examples",
    )
    files = [
        (file.name, file.read_text(encoding="utf-8")) for folder in folders for file in folder.glob("*.py")
    ]
    pages = [*places.shipped("docs_cache/guides").glob("*.md"), *places.shipped("references").glob("*.md")]
    pages.remove(places.shipped("references") / "auditing_rules.md")  # which shows faults
    for page in pages:
        blocks = re.findall(
            r"^```python(?: compiled| no-run)?\n(.*?)^```",
            page.read_text(encoding="utf-8"),
            re.DOTALL | re.MULTILINE,
        )
        files += [(page.name, HEAD + block) for block in blocks]
    return files


def test_nothing_is_reported_of_right_kernels_and_guides() -> None:
    sources = right_sources()
    assert sources
    for release in (history().releases[0], history().releases[-1]):
        assert [(name, found.message) for name, text in sources for found in complaints(text, release)] == []


def test_what_is_not_python_is_refused() -> None:
    with pytest.raises(BadInput, match="not Python source"):
        complaints("def kernel(:\n")
