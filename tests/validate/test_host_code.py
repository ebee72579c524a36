"""What a kernel file's own code says: which kernels it launches, and at which sizes it takes another way."""

from textwrap import dedent, indent

import pytest

from pytorch_to_triton.inputs.declaration import parse_declaration
from pytorch_to_triton.validate.host_code import groups_in, kernels_in, multiples_in, numbers_in, switches_in

DECLARED = parse_declaration({"x": "float32[M, N]", "w": "float32[2 * N]"}, {"M": [1, 3], "N": [1, 64]})
SWITCHES = {
    "a size by its declared name": ("if N <= 16384: pass", {16384: ("N",)}),
    "a variable from a shape": ("n_rows, n_cols = x.shape\nif n_cols > 2**12: pass", {4096: ("N",)}),
    "one dimension of a shape": ("n = x.shape[-1]\nif 512 < n: pass", {512: ("N",)}),
    "a size() with a sum": ("n = w.size(0)\nBLOCK = 2 * n\nif BLOCK >= 1 << 10: pass", {1024: ("N",)}),
    "the number of elements": ("n = x.numel()\nif n > 5000: pass", {5000: ("M", "N")}),
    "a number with a name": ("if M < LIMIT: pass", {300: ("M",)}),
    "an expression that chooses": ("warps = 4 if N < 2048 else 8", {2048: ("N",)}),
    "one of several conditions": ("if M > 1 and N > 100 and torch.cuda.is_available(): pass", {100: ("N",)}),
    "a condition that has a name": ("long = N > 5000\nif not long: pass", {5000: ("N",)}),
    "a limit by the size of an element": (
        "most = 65536 // x.element_size()\nif x.shape[1] <= most: pass",
        {65536: ("N",)},
    ),
    "a block of at most some size": (
        "block = min(8192, triton.next_power_of_2(N))\nif block >= N: pass",
        {8192: ("N",)},
    ),
    "a bound of the grid": ("grid = (min(M, 1024),)", {1024: ("M",)}),
    "a bound of a block": ("BLOCK = max(512, triton.next_power_of_2(N))", {512: ("N",)}),
    "a bound of the count of blocks": ("grid = (min(triton.cdiv(M, 64), 256),)", {64 * 256: ("M",)}),
    "a bound of the count of whole blocks": ("grid = (min(M // 8, 32),)", {256: ("M",)}),
    "a function that decides": ("if fits(N): pass\ndef fits(n): return n * 4 <= 32768", {32768: ("N",)}),
    "several": ("if N > 100: pass\nif M >= 64: pass", {64: ("M",), 100: ("N",)}),
    "a refusal": ("if N > 4096: raise ValueError(N)", {}),
    "an assertion": ("assert N <= 4096", {}),
    "a refusal of what is bounded": ("assert min(N, 4096) == N", {}),
    "a bound of something else": ("warps = min(threads // 32, 16)", {}),
    "another number": ("if warps > 16: pass", {}),
    "small numbers": ("if N > 8: pass", {}),
    "equality": ("if N == 64: pass", {}),
}


@pytest.mark.parametrize("name", SWITCHES)
def test_a_size_that_the_code_compares_with_belongs_to_its_dimension(name: str) -> None:
    body, found = SWITCHES[name]
    lines = indent(body, "    ").replace("    def fits", "def fits")
    source = f"LIMIT = 3 * 100\n\n\ndef run(x, w):\n{lines}\n"
    assert switches_in(source, DECLARED) == tuple((size, dim) for size, dims in found.items() for dim in dims)


def test_a_kernel_that_takes_another_way_does_so_too() -> None:
    source = "@triton.jit\ndef kernel(x_ptr, N):\n    if N > 1000:\n        pass\n"
    assert switches_in(source, DECLARED) == ((1000, "N"),)


LOOP = """
BLOCK_K = 2048


{decorator}@triton.jit
def kernel(x_ptr, n_cols, BLOCK: tl.constexpr):
    for {loop}:
        pass


def run(x, w):
    n_rows, n_cols = x.shape
    kernel[(n_rows,)](x, n_cols{launch})
"""
TUNED = "@triton.autotune([triton.Config({'BLOCK': 256}), triton.Config({'BLOCK': 512})], key=[])\n"


@pytest.mark.parametrize(
    ("decorator", "loop", "launch", "size"),
    [
        ("", "start in range(0, n_cols, BLOCK)", ", BLOCK=1024", 2048),
        ("", "start in tl.range(0, n_cols, BLOCK)", ", BLOCK=BLOCK_K", 4096),
        ("", "block in range(tl.cdiv(n_cols, BLOCK))", ", BLOCK=1024", 2048),
        (TUNED, "start in range(0, n_cols, BLOCK)", "", 1024),
        ("", "start in range(0, n_cols, BLOCK)", ", BLOCK=32", 64),
        ("", "start in range(0, n_cols, BLOCK)", ", BLOCK=16", None),
    ],
    ids=["a literal", "a name", "a count of blocks", "tuned", "the largest size", "sizes go past it"],
)
def test_a_loop_that_no_declared_size_takes_three_times_is_another_way(
    decorator: str, loop: str, launch: str, size: int | None
) -> None:
    source = LOOP.format(decorator=decorator, loop=loop, launch=launch)
    assert switches_in(source, DECLARED) == (((size, "N"),) if size else ())


@pytest.mark.parametrize(
    "grouped",
    [
        "tl.minimum(n_blocks - tl.program_id(0) * GROUP, GROUP)",
        "tl.swizzle2d(0, 0, n_blocks, 1, GROUP)",
    ],
    ids=["counted", "swizzled"],
)
def test_a_group_of_programs_takes_so_many_blocks(grouped: str) -> None:
    loop = f"_ in range({grouped})"
    source = LOOP.format(decorator="", loop=loop, launch=", BLOCK=64, GROUP=8").replace(
        "    for", "    n_blocks = tl.cdiv(n_cols, BLOCK)\n    for"
    )
    assert switches_in(source, DECLARED) == ((128, "N"),)
    assert groups_in(source, DECLARED) == ((512, "N"),)


def test_of_rows_that_are_counted_together_the_longest_dimension_passes_a_block() -> None:
    source = LOOP.format(decorator="", loop="start in range(0, n, BLOCK)", launch=", BLOCK=1024")
    source = source.replace("(x, n_cols", "(x, n_rows * n_cols").replace("(x_ptr, n_cols", "(x_ptr, n")
    assert switches_in(source, DECLARED) == ((2048, "N"),)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("even = N % 128 == 0", ((384, "N"),)),
        ("tiles = x.shape[0] // TILE", ((192, "M"),)),
        ("even = n_cols % BLOCK == 0", ((192, "N"),)),
        ("half = N // 2", ()),
        ("warps = threads // 32", ()),
        ("lanes = (tl.arange(0, 64) + N) % 32", ()),
    ],
    ids=["a remainder", "a division", "by a block", "a half", "of something else", "of lanes"],
)
def test_what_divides_a_dimension_tells_a_size_of_three_whole_tiles(
    line: str, found: tuple[tuple[int, str], ...]
) -> None:
    launch = "kernel[(1,)](x, BLOCK=64)"
    source = f"TILE = 64\n\n\ndef run(x, w):\n    n_rows, n_cols = x.shape\n    {line}\n    {launch}\n"
    assert multiples_in(source, DECLARED) == found


def test_the_numbers_of_a_reference_are_those_that_it_writes_out_itself() -> None:
    source = dedent("""
    LIMIT = 7.5

    def scaled(x):
        return x * 0.5

    def reference(x, low=-0.25):
        "Clamped at 3.0."
        y = scaled(x).clamp(low, 6).masked_fill(x > 1e9, True)
        return y.sum(-1) + 0.75 + 0 + 6

    class Model:
        def forward(self, x):
            return x.clamp(-448.0)
    """)
    assert numbers_in(source, "reference") == (0.25, 0.75, 6, 1)
    assert numbers_in(source, "Model") == (448.0,)
    assert numbers_in(source, "run") == ()
    many = f"def reference(x): return [*{[*range(1, 100)]}, 0.5]"
    assert numbers_in(many, "reference") == (0.5, *range(1, 12))


def test_a_mask_is_no_other_way() -> None:
    body = "rows = tl.arange(0, 64) + M\n    cols = rows % N\n    if cols < 192: pass\n    if N > 100: pass"
    assert switches_in(f"def kernel(M, N):\n    {body}\n", DECLARED) == ((100, "N"),)


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
