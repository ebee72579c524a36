"""Element-wise work with broadcasting: every output element from the input elements at its place.

Tensors that all walk through memory together become one flat loop; broadcast ones (a bias along the columns,
a scale along the rows) a tile of rows and columns, so that no index needs a division per element.
"""

from pytorch_to_triton.convert.draft.axes import Misfit, Nest
from pytorch_to_triton.convert.draft.form import Form
from pytorch_to_triton.convert.draft.kernel import (
    Kernel,
    Launch,
    Names,
    Plan,
    Stage,
    drafted,
    kernel,
    named,
    row_names,
    rows,
)

FLAT = tuple(
    {"BLOCK_SIZE": block, "num_warps": warps} for block, warps in ((1024, 4), (2048, 4), (2048, 8), (4096, 8))
)
TILES = tuple(
    {"BLOCK_M": m, "BLOCK_N": n, "num_warps": 8}
    for m, n in ((1, 2048), (2, 1024), (4, 1024), (8, 512), (64, 64))
)

EXAMPLES = (
    "def gelu(x):\n    return torch.nn.functional.gelu(x)",
    "def bias_relu(x, w):\n    return torch.relu(x + w)",
    "def scaled_rows(x, v):\n    return x * v[:, None] + 1.0",
)
"""Over x: float32[M, N], w: float32[N], v: float32[M]."""


def match(nest: Nest) -> Misfit | None:
    """Anything without a reduction."""
    if nest.reduced is not None:
        return Misfit("it reduces an axis")
    if not nest.axes:
        return Misfit("it computes a single number")
    return None


def write(plan: Plan, stage: Stage) -> Kernel:
    """One flat loop where one axis is left, else a tile of rows and columns."""
    return flat(plan, stage) if len(plan.nest.axes) == 1 else tiled(plan, stage)


def flat(plan: Plan, stage: Stage) -> Kernel:
    """All tensors as one long row."""
    names = named(plan.nest.axes, ("n_elements",))
    (count,) = names.axes
    setup = (
        ("i", "tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)"),
        ("mask", f"i < {count}"),
    )
    draft = drafted(plan, Form(setup, index=("i",), masks=("mask",)), names)
    launch = Launch(f"triton.cdiv({count}, {{BLOCK_SIZE}})", FLAT[0], FLAT, FLAT[2], (count,))
    return kernel(plan, draft, names, launch, stage)


def tiled(plan: Plan, stage: Stage) -> Kernel:
    """Tiles of rows and columns; the columns are the last axis, the rows all others."""
    outer = plan.nest.axes[:-1]
    names = named(plan.nest.axes, (*row_names(len(outer)), "n_cols"))
    n_cols = names.axes[-1]
    row = rows(outer, names)
    names = Names(names.axes, names.of_size, (*names.defined, *row.defined))
    setup = (
        ("pid", "tl.program_id(0).to(tl.int64)"),
        ("n_col_blocks", f"tl.cdiv({n_cols}, BLOCK_N)"),
        ("row", "pid // n_col_blocks * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]"),
        ("col", "pid % n_col_blocks * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]"),
        ("row_mask", f"row < {row.count}"),
        ("col_mask", f"col < {n_cols}"),
        *row.setup,
    )
    form = Form(
        setup,
        index=(*row.indices, "col"),
        masks=(*("row_mask" for _ in outer), "col_mask"),
        flat=(tuple(range(len(outer))), "row"),
    )
    draft = drafted(plan, form, names)
    grid = f"triton.cdiv({row.count}, {{BLOCK_M}}) * triton.cdiv({n_cols}, {{BLOCK_N}})"
    fixed = {"BLOCK_M": 4, "BLOCK_N": 256, "num_warps": 4}
    return kernel(plan, draft, names, Launch(grid, fixed, TILES, TILES[2], (n_cols,)), stage)
