"""Kernels that compute the same of different tensors, in one launch: those of a rotary embedding's queries
and keys. The second's programs begin where the first's end, and none waits for a launch in between.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from pytorch_to_triton.draft.emit.kernel import PrintedKernel, signature
from pytorch_to_triton.draft.emit.tidy import wrapped
from pytorch_to_triton.draft.file.launches import Choice, Kernel, Stage, autotuned
from pytorch_to_triton.draft.fresh_names import fresh
from pytorch_to_triton.draft.groups import Group, made_by, read_by
from pytorch_to_triton.draft.program import Call

MOST = 4
"""Kernels that one launch computes."""
PROGRAM = "program_id"
"""What the device function calls its program among those of one kernel."""


def joint(kernels: Sequence[Kernel], stage: Stage) -> Kernel | None:
    """One kernel for all of these; None where they differ in more than names, sizes and tensors.

    Products of matrices, and what looks at a size itself, are launched by themselves.
    """
    first, *others = kernels
    plain = all(size in first.printed.parameters for size in first.printed.sizes)
    if first.printed.multiplies or not plain or not all(_is_alike(first, other) for other in others):
        return None
    names = _names(kernels)
    programs = [_programs(k.printed, to) for k, to in zip(kernels, names, strict=True)]
    aligned = {to.get(k.printed.aligned) for k, to in zip(kernels, names, strict=True)}
    if None in programs or len(aligned) > 1:
        return None
    printed = _together(kernels, names)
    function = f"{first.name.removesuffix('_kernel')}_program"
    stored = " and ".join(", ".join(b.name for b in dict.fromkeys(k.printed.stores)) for k in kernels)
    doc = f"Compute {stored}: the same of different tensors, in one launch."
    calls = [_call(function, k.printed, to) for k, to in zip(kernels, names, strict=True)]
    tuned = autotuned(printed) if stage == 2 and len(printed.schedule.configs) > 1 else ()
    lines = (
        "@triton.jit",
        *signature(function, [PROGRAM, *first.printed.parameters]),
        f'    """{first.doc}"""',
        *(line.replace("tl.program_id(0)", PROGRAM) for line in first.printed.body),
        "",
        "",
        *tuned,
        "@triton.jit",
        *signature(printed.name, printed.parameters),
        f'    """{doc}"""',
        *(line for text in _dispatched([p for p in programs if p], calls) for line in wrapped(f"    {text}")),
    )
    variants = tuple(replace(v, kernel=printed.name) for v in first.variants)
    return Kernel(printed.name, doc, lines, printed, first.passes, variants)


def _is_alike(kernel: Kernel, other: Kernel) -> bool:
    """Whether both are one function of what they are given, launched in the same configuration."""
    mine, its = kernel.printed, other.printed
    launched = [(p.schedule.configs, p.schedule.sized, p.schedule.untuned, p.arguments) for p in (mine, its)]
    code = ["\n".join((*signature(p.name, p.parameters), *p.body)) for p in (mine, its)]
    bare = [_nameless(c, p.name, frozenset(p.blocks)) for c, p in zip(code, (mine, its), strict=True)]
    return launched[0] == launched[1] and bare[0] == bare[1]


def _names(kernels: Sequence[Kernel]) -> list[dict[str, str]]:
    """For each kernel the names of its sizes among those of all: sizes of one name may differ."""
    sources: dict[str, str] = {}
    found = []
    for kernel in kernels:
        made = kernel.printed
        names = dict[str, str]()
        counted = (size for size, _ in made.grids[0] if size.isidentifier() and size not in made.sizes)
        for size in (*made.sizes, *counted):
            source = made.size_sources.get(size, size)
            known = (n for n, s in sources.items() if s == source)
            names[size] = next(known, None) or fresh(size, sources)
            sources[names[size]] = source
        found.append(names)
    return found


def _programs(made: PrintedKernel, names: Mapping[str, str]) -> str | None:
    """How many programs a kernel has, in Triton; None where a size is none of its arguments."""
    if not all(size.isdigit() or size in names for size, _ in made.grids[0]):
        return None
    counts = [(names.get(size, size), block) for size, block in made.grids[0]]
    return " * ".join(f"tl.cdiv({size}, {block})" if block else size for size, block in counts) or "1"


def _together(kernels: Sequence[Kernel], names: Sequence[Mapping[str, str]]) -> PrintedKernel:
    """The interface of the kernel that computes all."""
    first, base = kernels[0].printed, kernels[0].name.removesuffix("_kernel")
    names_of_others = (k.printed.stores[0].name for k in kernels[1:])
    every = [(k.printed, to) for k, to in zip(kernels, names, strict=True)]
    buffers = tuple(dict.fromkeys(b for made, _ in every for b in made.buffers))
    sizes = tuple(dict.fromkeys(n for _, to in every for n in to.values()))
    return replace(
        first,
        name=f"{'_and_'.join((base, *names_of_others))}_kernel",
        buffers=buffers,
        sizes=sizes,
        parameters=(
            *(f"{b.name}_ptr" for b in buffers),
            *sizes,
            *first.parameters[len(first.buffers) + len(first.sizes) :],
        ),
        grids=tuple(
            tuple((to.get(size, size), block) for size, block in made.grids[0]) for made, to in every
        ),
        size_sources={to.get(n, n): source for made, to in every for n, source in made.size_sources.items()},
        stores=tuple(dict.fromkeys(b for made, _ in every for b in made.stores)),
    )


def _call(function: str, made: PrintedKernel, names: Mapping[str, str]) -> str:
    """The call of the device function for a kernel's tensors; `{}` stands for its program."""
    pointers = (f"{b.name}_ptr" for b in made.buffers)
    others = (text.partition(":")[0] for text in made.parameters[len(made.buffers) :])
    return f"{function}({', '.join(('{}', *pointers, *(names.get(n, n) for n in others)))})"


def _dispatched(programs: Sequence[str], calls: Sequence[str]) -> Iterator[str]:
    """The statements that give each program its tensors."""
    yield f"{PROGRAM} = tl.program_id(0)"
    ends = [f"end_{number}" for number in range(1, len(calls))]
    for end, before, count in zip(ends, ["", *ends], programs, strict=False):
        yield f"{end} = {before} + {count}" if before else f"{end} = {count}"
    heads = [*(f"{'elif' if n else 'if'} {PROGRAM} < {end}:" for n, end in enumerate(ends)), "else:"]
    for head, before, call in zip(heads, ["", *ends], calls, strict=True):
        yield head
        yield f"    {call.format(f'{PROGRAM} - {before}' if before else PROGRAM)}"


def without_names(kernel: Kernel) -> str:
    """The kernel's code with numbers for its names, but for those by which `run` passes its blocks."""
    code = "\n".join(kernel.lines).replace(f'"""{kernel.doc}"""', "pass")
    return _nameless(code, kernel.name, frozenset(kernel.printed.blocks))


@lru_cache(maxsize=1024)
def _nameless(code: str, kernel: str, kept: frozenset[str]) -> str:
    tree = ast.parse(code)
    names = dict.fromkeys(n.arg for n in ast.walk(tree) if isinstance(n, ast.arg))
    names |= dict.fromkeys(
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    )
    own = [name for name in names if name not in kept]
    numbers = {kernel: "kernel", **{name: f"name_{number}" for number, name in enumerate(own)}}
    for node in ast.walk(tree):  # An attribute keeps its name: the variable `cos` is not that of tl.cos.
        match node:
            case ast.arg(arg=name):
                node.arg = numbers.get(name, name)
            case ast.Name(id=name):
                node.id = numbers.get(name, name)
            case ast.FunctionDef(name=name):
                node.name = numbers.get(name, name)
    return ast.unparse(tree)


@dataclass(frozen=True)
class Launched:
    """A group, and the kernels that `run` launches for it."""

    group: Group
    taken: tuple[Choice, ...]

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """One after the other; empty where there are others at other sizes."""
        return self.taken[0].kernels if len(self.taken) == 1 else ()


def together(items: Sequence[Launched | Call], stage: Stage) -> list[Launched | Call]:
    """The items in order, each with what does the same of other tensors, and waits for nothing in between."""
    left, done = list(items), list[Launched | Call]()
    while left:
        first, *left = left
        if isinstance(first, Launched):
            first, left = _with_alike(first, left, stage)
        done.append(first)
    return done


def _with_alike(
    first: Launched, items: Sequence[Launched | Call], stage: Stage
) -> tuple[Launched, list[Launched | Call]]:
    """The first with those of the items that it is launched with, and the others."""
    alike, left, whole = [first], list[Launched | Call](), None
    made = set(made_by(first.group))
    for item in items:
        group = item.group if isinstance(item, Launched) else item
        found = None
        if isinstance(item, Launched) and len(alike) < MOST and not read_by(group) & made:
            found = _joint_choice([*alike, item], stage)
        if found and isinstance(item, Launched):
            alike, whole = [*alike, item], found
        else:
            left.append(item)
        made |= set(made_by(group))
    if whole is None:
        return first, left
    return Launched(_one([each.group for each in alike]), (whole,)), left


def _joint_choice(alike: Sequence[Launched], stage: Stage) -> Choice | None:
    """The kernels of each, those of one place joined; None where some cannot be, or limits differ."""
    conditions = {each.taken[0].condition for each in alike}
    counts = {len(each.kernels) for each in alike}
    if len(conditions) > 1 or len(counts) > 1 or 0 in counts:
        return None
    found = [joint(each, stage) for each in zip(*(one.kernels for one in alike), strict=True)]
    whole = tuple(kernel for kernel in found if kernel)
    return Choice(conditions.pop(), whole) if len(whole) == len(found) else None


def _one(groups: Sequence[Group]) -> Group:
    """The groups as one, which reads and makes what each does."""
    first = groups[0]
    stores = tuple(store for group in groups for store in group.cluster.stores)
    operators = frozenset[str]().union(*(group.operators for group in groups))
    steps = tuple(step for group in groups for step in group.steps)
    return Group(replace(first.cluster, stores=stores), first.pattern, steps, operators, tuple(groups))
