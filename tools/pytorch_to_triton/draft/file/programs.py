"""The programs that a target is, in some dtypes or at some sizes: drafted, with when `run` takes each."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pytorch_to_triton.draft.file.autograd import Halves, dtypes_with_saved, halves, with_saved
from pytorch_to_triton.draft.file.joint import without_names
from pytorch_to_triton.draft.file.part import DraftSetting, Part, part_of, programmed
from pytorch_to_triton.draft.storage import with_storage
from pytorch_to_triton.graph.size_programs import met
from pytorch_to_triton.graph.trace_sizes import joined
from pytorch_to_triton.graph.tracing import ARGUMENT, Branch

WORDS: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "", ast.NotEq: "not_", ast.Gt: "over_", ast.GtE: "from_", ast.Lt: "below_", ast.LtE: "upto_",
    ast.Is: "",
}  # fmt: skip
QUOTES = "'\""


def parts_of(programs: Sequence[Branch], setting: DraftSetting) -> list[Part]:
    """The first program, which is taken where no other is, then the others."""
    first, *others = zip(programs, suffixes(programs), strict=True)
    parts = [_part(*first, setting)]
    return with_shared_kernels([*parts, *(_untuned(_part(*p, replace(setting, tuned={}))) for p in others)])


def halves_of(programs: Sequence[Branch], setting: DraftSetting) -> list[Halves]:
    """The same with gradients."""
    first, *others = zip(programs, suffixes(programs), strict=True)
    every = [_halves(*first, setting)]
    for other in others:
        drafted = _halves(*other, replace(setting, tuned={}))
        every.append(replace(drafted, forward=_untuned(drafted.forward), backward=_untuned(drafted.backward)))
    parts = with_shared_kernels([part for each in every for part in (each.forward, each.backward)])
    pairs = zip(every, parts[::2], parts[1::2], strict=True)
    return [replace(each, forward=forward, backward=backward) for each, forward, backward in pairs]


def _part(program: Branch, suffix: str, setting: DraftSetting) -> Part:
    how = _at(program, suffix, setting)
    read = programmed(program.graph, how.ways, how.points)
    return _taken(part_of(with_storage(read, program.tensor_dtypes, program.output_dtypes), how), program)


def _halves(program: Branch, suffix: str, setting: DraftSetting) -> Halves:
    """A program with what it saves, and its gradients."""
    graph, backward, how = program.graph, program.backward, _at(program, suffix, setting)
    assert backward is not None
    dtypes = dtypes_with_saved(graph, backward, program.tensor_dtypes, program.output_dtypes)
    read = programmed(with_saved(graph, backward), how.ways, how.points)
    part = part_of(with_storage(read, program.tensor_dtypes, dtypes), how)
    return halves(_taken(part, program), backward, replace(how, suffix=f"_backward{suffix}"))


def _at(program: Branch, suffix: str, setting: DraftSetting) -> DraftSetting:
    """The setting at the sizes at which the program is taken."""
    points, deciding = (
        [p for p in group if all(met(guard, dict(p)) for guard in program.graph.guards)]
        for group in (setting.points, setting.deciding)
    )
    single = {i.name: i.dtype for i in program.graph.inputs if len({*i.dtypes, i.dtype}) == 1}
    forms = ("{}.dtype", ARGUMENT)
    arguments = {form.format(name): dtype for form in forms for name, dtype in single.items()}
    return replace(setting, points=points, deciding=deciding or points, suffix=suffix, arguments=arguments)


def _taken(part: Part, program: Branch) -> Part:
    """The part with what `run` looks at before it takes it, and what it checks then."""
    return replace(part, condition=_condition(program), guards=program.checked)


def _untuned(part: Part) -> Part:
    """What is timed is the first program in the widest dtypes, so other launches are never tuned."""
    return replace(part, kernels=tuple(replace(kernel, variants=()) for kernel in part.kernels))


def with_shared_kernels(parts: Sequence[Part]) -> list[Part]:
    """The parts, each kernel that several have, whatever its names are, in the first of them alone."""
    first: dict[str, str] = {}
    shared = []
    for part in parts:
        names = {k.name: first.setdefault(without_names(k), k.name) for k in part.kernels}
        blocks = tuple(
            tuple(tuple(_renamed(line, names) for line in lines) for lines in block) for block in part.blocks
        )
        kernels = tuple(k for k in part.kernels if names[k.name] == k.name)
        shared.append(replace(part, kernels=kernels, blocks=blocks))
    return shared


def _renamed(line: str, names: Mapping[str, str]) -> str:
    return re.sub(r"\b[^\W\d]\w*\b", lambda word: names.get(word[0], word[0]), line)


def suffixes(programs: Sequence[Branch]) -> list[str]:
    """What the names of each program's kernels end with; of the first nothing."""
    found = [""]
    for program in programs[1:]:
        words = [*_words((*program.values, *program.sizes)), *program.dtypes]
        suffix = "".join(f"_{word}" for word in words)
        found.append(suffix if suffix and suffix not in found else f"{suffix}_{len(found) + 1}")
    return found


def _words(conditions: Sequence[str]) -> Iterator[str]:
    """`n_over_32`, `m_upto_n`, `odd_h`, `mode_gelu`: conditions as words, where they are as short as that."""
    for text in conditions if len(conditions) <= 2 else ():
        match ast.parse(text, mode="eval").body:
            case ast.Compare(
                left=ast.Name(id=name),
                ops=[op],
                comparators=[ast.Name() | ast.Constant() as other],
            ):
                word = ast.unparse(other).strip(QUOTES)
                yield re.sub(r"\W+", "_", f"{name}_{WORDS[type(op)]}{word}").lower()
            case ast.Compare(
                left=ast.BinOp(left=ast.Name(id=name), op=ast.Mod(), right=ast.Constant(value=2)),
                ops=[ast.Eq()],
                comparators=[ast.Constant(value=0 | 1 as rest)],
            ):
                yield f"{'odd' if rest else 'even'}_{name}".lower()


def _condition(program: Branch) -> str:
    """When `run` takes the program, as source; empty: where it takes no other."""
    names = [f"torch.{dtype}" for dtype in program.dtypes]
    test = f"== {names[0]}" if len(names) == 1 else f"in ({', '.join(names)})"
    return joined([*program.values, *program.sizes, *([f"{program.rule} {test}"] if program.rule else [])])
