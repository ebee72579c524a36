"""What a kernel file's own code says: which kernels it launches, and at which sizes it takes another way."""

from textwrap import dedent

import pytest

from pytorch_to_triton.inputs.declaration import parse_declaration
from pytorch_to_triton.validate.cases import plan_cases
from pytorch_to_triton.validate.host_code import Switch, kernels_in, switches_in

DECLARED = parse_declaration({"x": "float32[M, N]", "w": "float32[2 * N]"}, {"M": [1, 3], "N": [1, 64]})
SWITCHES = {
    "a size by its declared name": ("if N <= 16384:\n    pass", {16384: ("N",)}),
    "a variable from a shape": ("n_rows, n_cols = x.shape\nif n_cols > 2**12:\n    pass", {4096: ("N",)}),
    "one dimension of a shape": ("n = x.shape[-1]\nif 512 < n:\n    pass", {512: ("N",)}),
    "a size() with a sum": ("n = w.size(0)\nBLOCK = 2 * n\nif BLOCK >= 1 << 10:\n    pass", {1024: ("N",)}),
    "the number of elements": ("n = x.numel()\nif n > 5000:\n    pass", {5000: ("M", "N")}),
    "a number with a name": ("if M < LIMIT:\n    pass", {300: ("M",)}),
    "an expression that chooses": ("warps = 4 if N < 2048 else 8", {2048: ("N",)}),
    "one of several conditions": (
        "if M > 1 and N > 100 and torch.cuda.is_available():\n    pass",
        {100: ("N",)},
    ),
    "a condition that has a name": ("long = N > 5000\nif not long:\n    pass", {5000: ("N",)}),
    "a limit by the size of an element": (
        "most = 65536 // x.element_size()\nif x.shape[1] <= most:\n    pass",
        {65536: ("N",)},
    ),
    "a block of at most some size": (
        "block = min(8192, triton.next_power_of_2(N))\nif block >= N:\n    pass",
        {8192: ("N",)},
    ),
    "a function that decides": (
        "if fits(N):\n    pass\n\n\ndef fits(n):\n    return n * 4 <= 32768",
        {32768: ("N",)},
    ),
    "several": ("if N > 100:\n    pass\nif M >= 64:\n    pass", {64: ("M",), 100: ("N",)}),
    "a refusal": ("if N > 4096:\n    raise ValueError(N)", {}),
    "an assertion": ("assert N <= 4096", {}),
    "another number": ("if warps > 16:\n    pass", {}),
    "small numbers": ("if N > 8:\n    pass", {}),
    "equality": ("if N == 64:\n    pass", {}),
}


@pytest.mark.parametrize("name", SWITCHES)
def test_a_size_that_the_code_compares_with_belongs_to_its_dimension(name: str) -> None:
    body, found = SWITCHES[name]
    lines = "\n".join(f"    {line}" for line in body.splitlines()).replace("    def fits", "def fits")
    source = f"LIMIT = 3 * 100\n\n\ndef run(x, w):\n{lines}\n"
    assert switches_in(source, DECLARED) == tuple(Switch(size, dims) for size, dims in found.items())


def test_a_kernel_that_takes_another_way_does_so_too() -> None:
    source = "@triton.jit\ndef kernel(x_ptr, N):\n    if N > 1000:\n        pass\n"
    assert switches_in(source, DECLARED) == (Switch(1000, ("N",)),)


def test_kernels_are_those_that_the_code_around_them_names() -> None:
    source = dedent("""
    @triton.jit
    def part(x):
        return x

    @triton.autotune(configs=CONFIGS, key=["n"])
    @triton.jit
    def launched_kernel(x_ptr):
        part(1)

    @triton.jit(do_not_specialize=["n"])
    def passed_on_kernel(x_ptr):
        part(1)

    @triton.jit
    def forgotten_kernel(x_ptr):
        part(1)

    def run(x):
        launched_kernel[(1,)](x)
        launch(passed_on_kernel, x)
    """)
    assert kernels_in(source) == {"launched_kernel", "passed_on_kernel"}


def test_what_is_not_python_says_nothing() -> None:
    assert kernels_in("def run(:") == frozenset()
    assert switches_in("def run(:", DECLARED) == ()


def test_past_each_such_size_there_is_a_case_with_the_other_sizes_small_enough() -> None:
    plan = plan_cases(DECLARED, limit_elements=2**21, seed=7, switches=[Switch(16384, ("N",))])
    past, strided = (case for case in plan.cases if case.dims["N"] > 16384)
    assert (past.dims["N"], past.group) == (16385, "beyond")
    assert (strided.dims, strided.group, strided.label) == (past.dims, "layout", "all strided")


def test_a_size_that_a_case_is_past_already_needs_no_other() -> None:
    plain = plan_cases(DECLARED, limit_elements=2**21, seed=7)
    found = plan_cases(DECLARED, limit_elements=2**21, seed=7, switches=[Switch(60, ("N",))])
    (added,) = (case for case in found.cases if case not in plain.cases)
    assert added.label == "all strided", "but no case has its other layouts there"
    assert any(case.dims == added.dims for case in plain.cases)


def test_with_two_other_dimensions_each_is_once_smaller_than_the_one_before() -> None:
    three = parse_declaration({"x": "float32[M, N, D]"}, {"M": [1, 33], "N": [33], "D": [64]})
    plan = plan_cases(three, limit_elements=2**21, seed=7, switches=[Switch(128, ("D",))])
    past = [case.dims for case in plan.cases if case.dims["D"] > 128]
    assert {"M": 33, "N": 33, "D": 129} in past
    assert {"M": 33, "N": 17, "D": 129} in past


def test_where_sizes_must_be_multiples_the_next_multiple_is_tried() -> None:
    by_16 = parse_declaration({"x": "float32[N]"}, {"N": [16, 32]}, ["N % 16 == 0"])
    plan = plan_cases(by_16, limit_elements=2**21, seed=7, switches=[Switch(1024, ("N",))])
    assert 1040 in {case.dims["N"] for case in plan.cases}
