"""Reductions and normalisations along an axis that others follow: each column from its own elements.

Neighbouring columns lie side by side in memory, so a program takes a block of them and walks down, a tile at
a time: the rows of the tile add up apart, which keeps long sums accurate. Stage 1 takes each statistic in a
walk of its own; stage 2 takes maximum and sum, or mean and variance, together; stage 3 holds the columns in
registers where they fit.
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
    rows,
    source,
    why_larger,
)

LOOPS = tuple(
    {"BLOCK_N": down, "BLOCK_K": across, "num_warps": warps}
    for down, across, warps in (
        (32, 128, 4),
        (64, 64, 4),
        (64, 128, 8),
        (128, 64, 8),
        (256, 32, 8),
        (16, 256, 4),
    )
)
LARGEST_IN_REGISTERS = 1024
"""Elements down one column; a program then holds at least eight columns."""
COLUMNS = tuple(
    {"ELEMENTS": elements, "ACROSS": across, "PER_WARP": 1024}
    for elements, across in ((8192, 32), (16384, 32), (4096, 32), (8192, 64), (8192, 16), (16384, 64))
)
"""Elements a program holds, and how many columns at least."""

EXAMPLES = (
    "def column_sum(x):\n    return x.sum(dim=0)",
    "def channel_softmax(y):\n    return torch.softmax(y, dim=1)",
    "def channel_logsumexp(y):\n    return torch.logsumexp(y, dim=1)",
)
"""Over x: float32[M, N], y: float32[M, N, K]."""


def match(nest: Nest) -> Misfit | None:
    """One reduced axis with others after it."""
    if nest.reduced is None:
        return Misfit("it reduces nothing")
    if nest.reduced == len(nest.axes) - 1:
        return Misfit("no axis follows the reduced one")
    if sum(a.reduced for a in nest.axes) > 1:
        return Misfit("it reduces axes that do not lie together")
    return None


def write(plan: Plan, stage: Stage) -> Kernel:
    """A walk down each block of columns, or whole columns at once."""
    at = plan.nest.reduced
    assert at is not None
    outer, inner = plan.nest.axes[:at], plan.nest.axes[at + 1 :]
    fallbacks = ("n_outer",) if len(outer) == 1 else tuple(f"outer_{i}" for i in range(len(outer)))
    fallbacks += (
        "n_rows",
        *(("n_cols",) if len(inner) == 1 else tuple(f"inner_{i}" for i in range(len(inner)))),
    )
    names = named(plan.nest.axes, fallbacks)
    across = rows(inner, names, index="col", count="n_cols")
    above = rows(outer, names, index="outer", count="n_outer", taken=across.indices)
    names = Names(names.axes, names.of_size, (*names.defined, *above.defined, *across.defined))
    if stage == 3:
        return in_registers(plan, names, above, across)
    draft = loop(plan, names, (above, across), "in_passes" if stage == 1 else "online")
    launch = Launch(grid(above, across), LOOPS[0], LOOPS, LOOPS[0], (names.axes[at], across.count))
    return kernel(plan, draft, names, launch, stage)


def grid(above: Rows, across: Rows) -> str:
    """A block of columns a program, for everything above them."""
    blocks = f"triton.cdiv({across.count}, {{BLOCK_K}})"
    return blocks if above.count == "1" else f"{above.count} * {blocks}"


def programs(above: Rows, across: Rows) -> tuple[tuple[str, str], ...]:
    """Which columns a program takes."""
    return (
        ("pid", "tl.program_id(0).to(tl.int64)"),
        ("n_col_blocks", f"tl.cdiv({across.count}, BLOCK_K)"),
        ("outer", "pid // n_col_blocks"),
        ("col", "pid % n_col_blocks * BLOCK_K + tl.arange(0, BLOCK_K)[None, :]"),
        ("col_mask", f"col < {across.count}"),
        *above.setup,
        *across.setup,
    )


def loop(plan: Plan, names: Names, around: tuple[Rows, Rows], statistics: Statistics) -> Draft:
    """Down the columns a tile at a time."""
    above, across = around
    n = names.axes[plan.nest.reduced or 0]
    form = Form(
        programs(above, across),
        index=(*above.indices, "row", *across.indices),
        masks=(*(None for _ in above.indices), "row_mask", *("col_mask" for _ in across.indices)),
        loop=f"for start in range(0, {n}, BLOCK_N):",
        loop_setup=(("row", "start + tl.arange(0, BLOCK_N)[:, None]"), ("row_mask", f"row < {n}")),
        tile="[BLOCK_N, BLOCK_K]",
        collapsed="[1, BLOCK_K]",
        narrow=frozenset({"row"}),
        collapse="axis=0, keep_dims=True",
    )
    return drafted(plan, form, names, statistics=statistics, row_length=n)


def in_registers(plan: Plan, names: Names, above: Rows, across: Rows) -> Kernel:
    """Whole columns in registers; columns too tall for that by the loop."""
    n = names.axes[plan.nest.reduced or 0]
    if n.isdigit() and int(n) > LARGEST_IN_REGISTERS:
        return launched_loop(plan, names, above, across)
    setup = (
        *programs(above, across),
        ("row", "tl.arange(0, BLOCK_N)[:, None]"),
        ("row_mask", f"row < {n}"),
    )
    form = Form(
        setup,
        index=(*above.indices, "row", *across.indices),
        masks=(*(None for _ in above.indices), "row_mask", *("col_mask" for _ in across.indices)),
        collapse="axis=0, keep_dims=True",
        narrow=frozenset({"row"}),
    )
    short = drafted(plan, form, names, row_length=n)
    text = source(plan, short, ("BLOCK_N", "BLOCK_K"))
    chosen, blocks = whole_column_blocks(n, plan.tuned.get(plan.name, COLUMNS[0]))
    programs_text = f"({grid(above, across).format(**blocks)},)"
    launch = (*chosen, *call(plan.name, programs_text, short.arguments, {**blocks, **short.options}))
    variant = Variant(
        plan.name, COLUMNS, f"{plan.nest.axes[plan.nest.reduced or 0].size} <= {LARGEST_IN_REGISTERS}"
    )
    sizes = (*names.defined, *short.numbers)
    whole_columns = Kernel(plan.name, text, sizes, launch, short.helpers, short.passes, (variant,))
    if n.isdigit():
        return whole_columns
    tall_plan = replace(plan, name=plan.name.replace("_kernel", "_tall_kernel"))
    tall_columns = launched_loop(tall_plan, names, above, across)
    return either(whole_columns, tall_columns, f"{n} <= {LARGEST_IN_REGISTERS}")


def whole_column_blocks(n: str, config: Config) -> tuple[tuple[str, ...], dict[str, object]]:
    """Lines of `run` that choose the blocks, and the launch's keywords; plain numbers for a plain size."""
    if n.isdigit():
        block_n = power_of_2(int(n))
        block_k = max(config["ELEMENTS"] // block_n, config["ACROSS"])
        num_warps = min(max(block_n * block_k // config["PER_WARP"], 1), 16)
        return why_larger(int(n)), {"BLOCK_N": block_n, "BLOCK_K": block_k, "num_warps": num_warps}
    lines = (
        f"block_n = triton.next_power_of_2(max({n}, 1))",
        f"block_k = max({config['ELEMENTS']} // block_n, {config['ACROSS']})",
        f"num_warps = min(max(block_n * block_k // {config['PER_WARP']}, 1), 16)",
    )
    return lines, {"BLOCK_N": "block_n", "BLOCK_K": "block_k", "num_warps": "num_warps"}


def launched_loop(plan: Plan, names: Names, above: Rows, across: Rows) -> Kernel:
    """The loop with one configuration."""
    draft = loop(plan, names, (above, across), "online")
    config = plan.tuned.get(plan.name, LOOPS[2])
    text = source(plan, draft, blocks_of(LOOPS[2]))
    launch = grid(above, across).format(**config)
    lines = call(plan.name, f"({launch},)", draft.arguments, {**config, **draft.options})
    variant = Variant(
        plan.name, LOOPS, f"{plan.nest.axes[plan.nest.reduced or 0].size} > {LARGEST_IN_REGISTERS}"
    )
    sizes = (*names.defined, *draft.numbers)
    return Kernel(plan.name, text, sizes, lines, draft.helpers, draft.passes, (variant,))
