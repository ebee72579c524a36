"""Reductions and normalisations along the last axis: each row from its own elements.

Stage 1 takes every statistic in a pass of its own; stage 2 takes maximum and sum, or mean and variance,
together and fuses the element-wise work around them; stage 3 holds the row in registers, so that memory is
read once, and keeps the loop for rows that do not fit.
"""

from dataclasses import replace

from pytorch_to_triton.convert.draft.axes import Misfit, Nest
from pytorch_to_triton.convert.draft.cells import Statistics
from pytorch_to_triton.convert.draft.form import Form
from pytorch_to_triton.convert.draft.kernel import (
    Config,
    Draft,
    Kernel,
    Launch,
    Names,
    Plan,
    Rows,
    Stage,
    Variant,
    blocks_of,
    call,
    drafted,
    either,
    kernel,
    named,
    power_of_2,
    row_names,
    rows,
    source,
    why_larger,
)

LOOPS = tuple(
    {"BLOCK_N": block, "num_warps": warps}
    for block, warps in ((128, 1), (512, 4), (1024, 4), (2048, 8), (4096, 8), (8192, 16))
)
LONGEST_IN_REGISTERS = 16384
"""Columns. Longer rows leave one program a multiprocessor, whose loads nothing overlaps: a loop is faster."""
ROWS = tuple(
    {"ELEMENTS": elements, "PER_WARP": per_warp}
    for elements, per_warp in (
        (2048, 512),
        (4096, 512),
        (4096, 1024),
        (8192, 1024),
        (4096, 256),
        (1024, 256),
        (4096, 2048),
    )
)
"""Elements a program holds at least (short rows share a program), and elements a warp."""

EXAMPLES = (
    "def softmax(x):\n    return torch.softmax(x, dim=-1)",
    "def layer_norm(x, w, b):\n    return torch.nn.functional.layer_norm(x, x.shape[-1:], w, b)",
    "def row_mean(x):\n    return x.mean(dim=-1)",
    "def largest(x):\n    return x.amax(dim=-1, keepdim=True)",
)
"""Over x: float32[M, N], w and b: float32[N]."""


def match(nest: Nest) -> Misfit | None:
    """The reduced axis is the last one, and there are rows beside it."""
    if nest.reduced is None:
        return Misfit("it reduces nothing")
    if nest.reduced != len(nest.axes) - 1:
        return Misfit("the reduced axis is not the last one")
    if any(a.reduced for a in nest.axes[:-1]):
        return Misfit("it reduces axes that do not lie together")
    if len(nest.axes) == 1:
        return Misfit("it reduces a whole tensor to one number, which needs a kernel of two phases")
    return None


def write(plan: Plan, stage: Stage) -> Kernel:
    """A loop over each row, or whole rows at once."""
    names = named(plan.nest.axes, (*row_names(len(plan.nest.axes) - 1), "n_cols"))
    row = rows(plan.nest.axes[:-1], names)
    names = Names(names.axes, names.of_size, (*names.defined, *row.defined))
    if stage == 3:
        return in_registers(plan, names, row)
    draft = loop(plan, names, row, stage)
    launch = Launch(row.count, {"BLOCK_N": 1024, "num_warps": 4}, LOOPS, LOOPS[2], (names.axes[-1],))
    return kernel(plan, draft, names, launch, stage)


def loop(plan: Plan, names: Names, row: Rows, stage: Stage) -> Draft:
    """One program a row, a block of columns at a time."""
    n_cols = names.axes[-1]
    form = Form(
        setup=(("row", "tl.program_id(0).to(tl.int64)"), *row.setup),
        index=(*row.indices, "col"),
        masks=(*(None for _ in row.indices), "mask"),
        loop=f"for start in range(0, {n_cols}, BLOCK_N):",
        loop_setup=(("col", "start + tl.arange(0, BLOCK_N)"), ("mask", f"col < {n_cols}")),
        tile="[BLOCK_N]",
        narrow=frozenset({"col"}),
        flat=(tuple(range(len(row.indices))), "row"),
    )
    statistics: Statistics = "in_passes" if stage == 1 else "online"
    return drafted(plan, form, names, statistics=statistics, row_length=n_cols)


def in_registers(plan: Plan, names: Names, row: Rows) -> Kernel:
    """Whole rows in registers, several short ones a program; rows too long for that by the loop."""
    n_cols = names.axes[-1]
    if n_cols.isdigit() and int(n_cols) > LONGEST_IN_REGISTERS:
        return launched_loop(plan, names, row)
    setup = (
        ("row", "tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]"),
        ("col", "tl.arange(0, BLOCK_N)[None, :]"),
        ("row_mask", f"row < {row.count}"),
        ("col_mask", f"col < {n_cols}"),
        *row.setup,
    )
    form = Form(
        setup,
        index=(*row.indices, "col"),
        masks=(*("row_mask" for _ in row.indices), "col_mask"),
        collapse="axis=1, keep_dims=True",
        narrow=frozenset({"col"}),
        flat=(tuple(range(len(row.indices))), "row"),
    )
    short = drafted(plan, form, names, row_length=n_cols)
    text = source(plan, short, ("BLOCK_M", "BLOCK_N"))
    chosen, blocks = whole_row_blocks(n_cols, plan.tuned.get(plan.name, ROWS[1]))
    grid = f"(triton.cdiv({row.count}, {blocks['BLOCK_M']}),)"
    launch = (*chosen, *call(plan.name, grid, short.arguments, {**blocks, **short.options}))
    variant = Variant(plan.name, ROWS, f"{plan.nest.axes[-1].size} <= {LONGEST_IN_REGISTERS}")
    sizes = (*names.defined, *short.numbers)
    whole_rows = Kernel(plan.name, text, sizes, launch, short.helpers, short.passes, (variant,))
    if n_cols.isdigit():
        return whole_rows
    long_plan = replace(plan, name=plan.name.replace("_kernel", "_long_rows_kernel"))
    long_rows = launched_loop(long_plan, names, row)
    return either(whole_rows, long_rows, f"{n_cols} <= {LONGEST_IN_REGISTERS}")


def whole_row_blocks(n_cols: str, config: Config) -> tuple[tuple[str, ...], dict[str, object]]:
    """Lines of `run` that choose the blocks, and the launch's keywords; plain numbers for a plain size."""
    if n_cols.isdigit():
        block_n = power_of_2(int(n_cols))
        block_m = max(config["ELEMENTS"] // block_n, 1)
        num_warps = min(max(block_m * block_n // config["PER_WARP"], 1), 32)
        return why_larger(int(n_cols)), {"BLOCK_M": block_m, "BLOCK_N": block_n, "num_warps": num_warps}
    lines = (
        f"block_n = triton.next_power_of_2(max({n_cols}, 1))",
        f"block_m = max({config['ELEMENTS']} // block_n, 1)",
        f"num_warps = min(max(block_m * block_n // {config['PER_WARP']}, 1), 32)",
    )
    return lines, {"BLOCK_M": "block_m", "BLOCK_N": "block_n", "num_warps": "num_warps"}


def launched_loop(plan: Plan, names: Names, row: Rows) -> Kernel:
    """The loop with one configuration."""
    draft = loop(plan, names, row, 3)
    config = {**plan.tuned.get(plan.name, LOOPS[4]), **draft.options}
    text = source(plan, draft, blocks_of(LOOPS[4]))
    lines = call(plan.name, f"({row.count},)", draft.arguments, config)
    variant = Variant(plan.name, LOOPS, f"{plan.nest.axes[-1].size} > {LONGEST_IN_REGISTERS}")
    sizes = (*names.defined, *draft.numbers)
    return Kernel(plan.name, text, sizes, lines, draft.helpers, draft.passes, (variant,))
