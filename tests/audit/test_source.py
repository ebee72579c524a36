"""Kernels, their launches and what names mean are found through imports, scopes and annotations."""

from pathlib import Path

import pytest

from pytorch_to_triton.audit.source import SourceFile, parse

USUAL = "import triton\nimport triton.language as tl\n"


def source_of(text: str) -> SourceFile:
    return parse(Path("file.py"), text.encode())


@pytest.mark.parametrize(
    ("imports", "decorator", "store"),
    [
        ("import triton\nimport triton.language as tl", "@triton.jit", "tl.store"),
        ("import triton as tr\nfrom triton import language as L", "@tr.jit", "L.store"),
        ("from triton import jit\nimport triton.language as tl", "@jit", "tl.store"),
        (
            "import triton\nimport triton.language",
            "@triton.jit(do_not_specialize=['n'])",
            "triton.language.store",
        ),
        ("import triton.language as tl, triton", "@triton.runtime.jit.jit", "tl.store"),
        (
            "try:\n    import triton\n    import triton.language as tl\n"
            "except ImportError:\n    triton = tl = None",
            "@triton.jit",
            "tl.store",
        ),
        ("import triton\nfrom triton.language import store as put", "@triton.jit", "put"),
    ],
)
def test_a_kernel_and_its_calls_are_found_under_any_alias(imports: str, decorator: str, store: str) -> None:
    file = source_of(f"{imports}\n\n{decorator}\ndef kernel(x_ptr, n):\n    {store}(x_ptr, n)\n")
    (kernel,) = file.kernels
    assert [operation.name for operation in kernel.operations] == ["store"]


@pytest.mark.parametrize(
    "rebound", ["tl = object()", "def tl(): ...", "for tl in range(3): pass", "import numpy as tl"]
)
def test_a_name_that_means_two_things_means_nothing_certain(rebound: str) -> None:
    file = source_of(f"{USUAL}{rebound}\n\n@triton.jit\ndef kernel(x_ptr):\n    tl.store(x_ptr, 0)\n")
    assert file.kernels[0].operations == ()


def test_a_parameter_hides_the_module_s_name() -> None:
    (kernel,) = source_of(f"{USUAL}@triton.jit\ndef kernel(tl):\n    tl.store(tl, 0)\n").kernels
    assert kernel.operations == ()


def test_kernels_in_functions_and_classes_are_found_through_the_imports_around_them() -> None:
    file = source_of(
        "def make():\n    import triton\n    @triton.jit\n    def inner(): pass\n    return inner\n\n"
        "import triton as t\nclass Ops:\n    @t.jit\n    def method(): pass\n"
    )
    assert [kernel.name for kernel in file.kernels] == ["inner", "method"]


def test_decorators_above_jit_are_known_and_strangers_make_a_kernel_not_plain() -> None:
    plain, strange = source_of(
        f"{USUAL}@triton.autotune([], key=[])\n@triton.heuristics({{}})\n@triton.jit\ndef one(): pass\n"
        "@trace\n@triton.jit\ndef two(): pass\n"
    ).kernels
    assert plain.decorators.keys() == {"triton.autotune", "triton.heuristics", "triton.jit"}
    assert plain.plain
    assert not strange.plain


def test_only_parameters_that_are_neither_constexpr_nor_rebound_are_known_at_run_time_only() -> None:
    (kernel,) = source_of(
        f"{USUAL}from triton.language import constexpr as C\n@triton.jit\n"
        "def kernel(x_ptr, n: int, A: tl.constexpr, B: 'tl.constexpr', D: C, m, *, k=1):\n    m = 2\n"
    ).kernels
    assert kernel.parameters == ("x_ptr", "n", "A", "B", "D", "m", "k")
    assert kernel.runtime_parameters == {"x_ptr", "n", "k"}


def test_launches_are_linked_to_the_kernel_that_they_name() -> None:
    file = source_of(
        f"{USUAL}@triton.jit\ndef one(x): pass\n@triton.jit\ndef two(x): pass\n"
        "def run(x, one_of):\n    def grid(meta):\n        return (1,)\n"
        "    one[grid](x)\n    one_of[0](x)\n    table[1](x)\n"
    )
    one, two = file.kernels
    (launch,) = one.launches
    assert launch.function is not None
    assert launch.function.name == "run"
    assert two.launches == ()
    assert (one.is_launched, two.is_launched) == (True, False)


def test_a_kernel_that_is_defined_twice_is_linked_to_no_launch() -> None:
    file = source_of(
        f"{USUAL}if fast:\n    @triton.jit\n    def kernel(x): pass\nelse:\n    @triton.jit\n"
        "    def kernel(x, n): pass\ndef run(x):\n    kernel[(1,)](x)\n"
    )
    assert file.launches == ()


@pytest.mark.parametrize(
    ("text", "imports"),
    [
        (USUAL, True),
        ("def run():\n    from triton import cdiv\n    return cdiv\n", True),
        ("import tritonclient\nword = 'triton'\n", False),
    ],
)
def test_a_file_imports_triton_only_where_an_import_says_so(text: str, imports: bool) -> None:
    assert source_of(text).imports_triton is imports


def test_a_very_deep_expression_is_no_obstacle() -> None:
    text = f"{USUAL}@triton.jit\ndef kernel(x_ptr):\n    x = {' + '.join(['1'] * 900)}\n"
    (kernel,) = source_of(text).kernels
    assert len(kernel.nodes) > 1800
