"""What a function writes to its arguments: stored where they lie, or copied there in the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytorch_to_triton.draft.file import run as runs
from pytorch_to_triton.draft.file.lines import Lines
from pytorch_to_triton.draft.file.part import Part
from pytorch_to_triton.draft.groups import Group, made_by, read_by
from pytorch_to_triton.draft.ir.values import Load, Reduce, Scan
from pytorch_to_triton.draft.program import Call

NEW = "torch.empty"


def given(part: Part) -> dict[str, str]:
    """The arguments that are written to, each with the name of the caller's tensor: where a kernel reads it
    in order, the argument's own is that of a copy."""
    graph = part.program.graph
    ordered = runs.read_in_order(part.program, part.items)
    taken = {*graph.parameters, *part.program.steps}
    names = {name: f"{name}_given" if name in ordered else name for name in graph.written}
    return {name: f"{text}_" if text != name and text in taken else text for name, text in names.items()}


def kept(part: Part) -> list[Lines]:
    """The statements that keep the caller's tensors."""
    return [(f"{text} = {name}",) for name, text in given(part).items() if text != name]


def in_place(part: Part, statements: Sequence[Lines]) -> list[Lines]:
    """The statements with an argument's own memory for its new value, where nothing reads the old one."""
    names = given(part)
    memory = {value: name for name, value in values(part).items() if _may_overwrite(part, name, value)}
    found: list[Lines] = []
    for lines in statements:
        value, _, allocation = lines[0].partition(f" = {NEW}")
        if not allocation or value not in memory:
            found.append(lines)
        elif names[memory[value]] != memory[value]:
            found.append((f"{value} = {memory[value]}",))
        else:
            name = memory[value]
            found.append((f"{value} = {name} if {name}.is_contiguous() else {NEW}{allocation}",))
    return found


def written_back(part: Part) -> Iterator[Lines]:
    """The statements that leave in the caller's tensors what the function writes to them."""
    new = values(part)
    for name, text in given(part).items():
        copied = f"{text}.copy_({new[name]})"
        overwritten = _may_overwrite(part, name, new[name])
        yield (f"if {new[name]} is not {text}:", f"    {copied}") if overwritten else (copied,)


def returned(part: Part) -> list[Lines]:
    """The statement that returns the results, if there are any."""
    paths = {path: name for name, path in part.program.graph.written.items()}
    names = given(part)
    own = {r.node: names[paths[r.path]] for r in part.program.results if r.path in paths}
    text = runs.returned(part.program, own)
    return [(text,)] if text else []


def values(part: Part) -> Mapping[str, str]:
    """The source of each written argument's value after the call."""
    results = {r.path: runs.result_text(part.program, r) for r in part.program.results}
    return {name: results[path] for name, path in part.program.graph.written.items()}


def _may_overwrite(part: Part, name: str, value: str) -> bool:
    """Whether a kernel may store the value in the argument's own memory: only it reads the argument from
    then on, each element where it is stored, and once: an autotuner runs a kernel many times."""
    program = part.program
    if value not in program.steps or program.kept.get(value) != program.kept.get(name):
        return False
    groups = [item for item in part.items if isinstance(item, Group)]
    launched = next(group for group in groups if value in made_by(group))
    making = next(group for group in launched.apart or (launched,) if value in made_by(group))
    beside = (group for group in launched.apart if group is not making)
    later = (*part.items[part.items.index(launched) + 1 :], *beside)
    store = next(s for s in making.cluster.stores if s.buffer.name == value)
    loads = [v for v in making.cluster.loads() if v.buffer.name == name]
    shown = (r.tensor.value for r in program.results)
    calls = [item for item in part.items if isinstance(item, Call)]  # Their results may be views of it.
    read_later = {n for item in (*later, *calls) for n in read_by(item)}
    read_later |= {v.buffer.name for v in shown if isinstance(v, Load)}
    reduces = any(isinstance(v, Reduce | Scan) for v in making.cluster.values())
    repeated = any(kernel.lines[0].startswith("@triton.autotune") for kernel in part.kernels)
    same_place = all(v.index == store.index for v in loads) and not (loads and (reduces or repeated))
    same_shape = any(v.buffer.shape == store.buffer.shape for v in loads) or not loads
    return same_place and same_shape and name not in read_later
