"""The drafted kernel file: docstring, reference, kernels and `run`, put together."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from pytorch_to_triton.draft.defects import DraftingDefect
from pytorch_to_triton.draft.file import run as runs
from pytorch_to_triton.draft.file import write_back
from pytorch_to_triton.draft.file.autograd import Halves, applied, class_name, function_class, loads
from pytorch_to_triton.draft.file.checks import Checks, checks, names_in
from pytorch_to_triton.draft.file.kernel_text import KernelText
from pytorch_to_triton.draft.file.launches import Kernel, Stage
from pytorch_to_triton.draft.file.lines import Lines, decided
from pytorch_to_triton.draft.file.part import DraftSetting, Part, computed, conditions
from pytorch_to_triton.draft.file.programs import halves_of, parts_of, suffixes
from pytorch_to_triton.draft.file.reference import Reference
from pytorch_to_triton.draft.fresh_names import underscored
from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.library import PURE, Ways, ways_of
from pytorch_to_triton.draft.program import Call, Seed
from pytorch_to_triton.draft.schedule.conditions import strictest
from pytorch_to_triton.draft.schedule.schedule import Config
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.graph.joint import Backward
from pytorch_to_triton.graph.size_programs import declared_points, not_small
from pytorch_to_triton.graph.skeleton import UNKNOWN, TensorDtypes
from pytorch_to_triton.graph.tracing import Branch
from pytorch_to_triton.inputs.packed_input import marked
from pytorch_to_triton.schema.graph import Graph

KERNELS_ABOVE = "The same as `reference`, by the kernels above."
DRAWN = (
    "Its kernels draw random numbers from a seed of torch's generator: others than eager PyTorch,\n"
    "as under torch.compile."
)
STAGE_NAMES: Mapping[Stage, str] = {1: "correct", 2: "optimised", 3: "tuned"}


ON_THE_HOST = {
    "cdiv": '''\
def cdiv(n, block):
    """How many blocks hold n elements, without the microseconds that triton.cdiv takes on the host."""
    return (n + block - 1) // block''',
    "next_power_of_2": '''\
def next_power_of_2(n):
    """The smallest that is not below n, without the microseconds of triton.next_power_of_2."""
    return 1 << (n - 1).bit_length()''',
    "dtype_of_offsets": '''\
def dtype_of_offsets(*tensors):
    """Offsets take 64 bits only where a tensor is that large: divisions of indices are slower then."""
    return tl.int64 if max(t.numel() for t in tensors) > 2**31 - 2**16 else tl.int32''',
    "float32_precision": '''\
def float32_precision(setting, device):
    """How tl.dot multiplies float32: in TF32 where PyTorch may, else in parts that err less than float32."""
    return "tf32" if device.type == "cuda" and setting.fp32_precision == "tf32" else "bf16x6"''',
}
"""What `run` calls beside kernels."""


@dataclass(frozen=True)
class Source:
    """What a drafted file says about where it comes from."""

    target: str
    """The user's target, as given."""
    reference: Reference
    declared: Mapping[str, Any]
    """INPUTS, DIMS and REQUIRES, in the grammar."""
    output_dtypes: Mapping[str, str]
    """Result path -> dtype as source, e.g. `x.dtype` or `torch.float32`."""
    timed: tuple[Mapping[str, int], ...] = ()
    """The sizes at which the drafts are timed, which may be far larger than the declared ones."""
    tensor_dtypes: TensorDtypes = UNKNOWN
    """Those of all tensors of the graph."""
    note: str = ""
    """A comment on measured launch configurations."""
    branches: tuple[Branch, ...] = ()
    """What the target computes instead in some dtypes or at some sizes."""
    backward: Backward | None = None
    """Its gradients, where the drafted file is to have them."""
    implied: frozenset[str] = frozenset()
    """The guards that hold where no branch is taken."""
    part: str = ""
    """Which part of the target it is, for a docstring; empty: all of it."""

    def programs(self, graph: Graph) -> list[Branch]:
        """The graph as a program without a condition, then the branches."""
        outputs = dict(self.output_dtypes)
        main = Branch(None, (), graph, outputs, self.tensor_dtypes, self.backward, implied=self.implied)
        return [main, *self.branches]


@dataclass(frozen=True)
class Drafted:
    """One stage of a conversion."""

    file: KernelText
    kernels: tuple[Kernel, ...]
    """In order of launch."""
    calls: tuple[str, ...] = ()
    """Operators that stay calls of PyTorch, by name."""
    left: tuple[str, ...] = ()
    """The same with their lines and why: ends of a sentence."""
    tuned: Mapping[str, Config] = field(default_factory=dict)
    ways: Ways = PURE
    """Who computes convolutions and products."""
    definitions: tuple[str, ...] = ()
    """The kernels and `run`, without declarations and `reference`."""

    @property
    def text(self) -> str:
        """The whole file."""
        return self.file.text


def draft(
    graph: Graph,
    source: Source,
    stage: Stage,
    tuned: Mapping[str, Config] | None = None,
    ways: Ways | None = None,
) -> Drafted:
    """The kernel file of one stage. `tuned` gives measured launch configurations by kernel.

    `ways` says what libraries compute; None: nothing in stage 1, later what is usually the fastest. Raises
    NotConvertible where no kernel would be left.
    """
    *usual, last = (ways,) if ways else ways_of(graph) if stage > 1 else (PURE,)
    for better in usual:
        with suppress(NotConvertible):
            return _drafted_around_defects(graph, source, stage, tuned or {}, better)
    return _drafted_around_defects(graph, source, stage, tuned or {}, last)


def _drafted_around_defects(
    graph: Graph, source: Source, stage: Stage, tuned: Mapping[str, Config], ways: Ways
) -> Drafted:
    """The draft, with what drafting itself fails at left to PyTorch."""
    around = ways
    while True:
        try:
            return replace(_draft(graph, source, stage, tuned, around), ways=ways)
        except DraftingDefect as defect:
            left = dict(around.left)
            if defect.left.keys() <= left.keys():
                raise
            around = replace(around, left=(*left.items(), *defect.left.items()))


def _draft(graph: Graph, source: Source, stage: Stage, tuned: Mapping[str, Config], ways: Ways) -> Drafted:
    declared = source.declared
    points = declared_points(declared.get("DIMS") or {}, declared.get("REQUIRES") or ())
    deciding = [*not_small(graph, points), *source.timed]
    setting = DraftSetting(ways, stage, tuned, [*points, *source.timed], deciding)
    gradients: list[Halves] = []
    if source.backward:
        gradients = halves_of(source.programs(graph), setting)
        parts = [part for halves in gradients for part in (halves.forward, halves.backward)]
    else:
        parts = parts_of(source.programs(graph), setting)
    kernels = tuple(k for part in parts for k in part.kernels)
    calls = [c for part in parts for c in part.items if isinstance(c, Call)]
    left = described(calls)
    if not kernels:
        raise nothing_drafted(graph, left)
    file, definitions = _file(graph, parts, source, stage, gradients)
    return Drafted(file, kernels, tuple(c.node.op for c in calls), left, tuned, ways, definitions)


def described(calls: Sequence[Call]) -> tuple[str, ...]:
    """Every call that stays PyTorch's, with its line and why."""

    def line(call: Call) -> str:
        return f" (line {call.node.line})" if call.node.line else ""

    left = (c for c in calls if not isinstance(c, Seed))
    found = (f"`{c.node.op.removesuffix('.default')}`{line(c)}: {c.why}" for c in left)
    return tuple(dict.fromkeys(found))


def by_reason(left: Sequence[str]) -> str:
    """Calls that stay PyTorch's, as `described` has them, with each reason said once."""
    calls: dict[str, list[str]] = {}
    for text in left:
        call, _, why = text.partition(": ")
        calls.setdefault(why, []).append(call)
    return "; ".join(f"{', '.join(names)}: {why}" for why, names in calls.items())


def nothing_drafted(graph: Graph, left: Sequence[str]) -> NotConvertible:
    """A refusal that names every call with its line."""
    return NotConvertible(
        f"{graph.function} cannot be drafted, for all of it would stay calls of PyTorch: "
        f"{by_reason(left) or 'it computes nothing'}.",
        "`convert start` writes a file for its kernel, with signature, inputs and reference filled in.",
    )


def _file(
    graph: Graph, parts: Sequence[Part], source: Source, stage: Stage, gradients: Sequence[Halves]
) -> tuple[KernelText, tuple[str, ...]]:
    """The file, and its definitions of kernels and `run`."""
    kernels = [kernel for part in parts for kernel in part.kernels]
    helpers = {n: h.source for k in kernels for n, h in k.printed.helpers.items()}
    in_triton = [*(helpers[n] for n in sorted(helpers)), *("\n".join(k.lines) for k in kernels)]
    locals_ = {step for part in parts for step in part.program.steps}
    # What a part takes, the whole has checked or made.
    checked = Checks() if source.part else checks(graph, source.reference, locals_, backward=bool(gradients))
    if gradients:
        suffixed = suffixes(source.programs(graph))
        names = [class_name(graph, source.reference, suffix) for suffix in suffixed]
        classes = ["\n".join(function_class(*one)) for one in zip(gradients, names, strict=True)]
        run = "\n".join(_applying_run(graph, gradients, names, checked, source))
    else:
        classes, run = [], "\n".join(_run(graph, parts, checked, source))
    *on_the_host, run = with_what_is_called([*classes, run], names_in(source.reference))
    bodies = [*in_triton, *on_the_host]
    limits = strictest(limit for part in parts for limit in part.limits)
    declared = "\n".join([declarations(with_limits(source.declared, limits)), *checked.accepted])
    packings = parts[0].program.graph.packings.values()
    named = any(c.kind == "fields" for packing in packings for _, c in packing.containers(""))
    definitions = (*bodies, *checked.definition, (f"{source.note}\n" if source.note else "") + run)
    blocks = [
        # Inputs that are objects are declared by their classes.
        *([*source.reference.definitions, declared] if named else [declared, *source.reference.definitions]),
        *definitions,
    ]
    text = KernelText(
        f"{graph.function} in Triton, stage {stage} of 3 ({STAGE_NAMES[stage]}).",
        _shapes(graph, parts, source, gradients),
        _imports(source.reference, [*bodies, run]),
        "\n\n\n".join(block for block in blocks if block),
        limits,
    )
    return text, definitions


def with_what_is_called(sources: Sequence[str], taken: Collection[str]) -> list[str]:
    """The definitions, after those of what they call on the host."""
    found, text = list(sources), "\n".join(sources)
    for name, definition in reversed(ON_THE_HOST.items()):
        call = re.compile(rf"(?<![\w.]){name}(?=\()")
        if call.search(text):
            free = underscored(name, taken)  # A function of the user's may be called alike.
            found = [call.sub(free, one) for one in (definition, *found)]
    return found


def _shapes(graph: Graph, parts: Sequence[Part], source: Source, gradients: Sequence[Halves]) -> str:
    """Where it comes from, what it takes and returns, and what PyTorch still does."""
    inputs = "\n".join(f"    {i.name}: [{', '.join(i.shape.expressions)}]" for i in graph.inputs)
    outputs = "\n".join(_results([one.forward for one in gradients] or parts))
    calls = [c for part in (parts if gradients else parts[:1]) for c in part.program.calls]
    left = dict.fromkeys(f"{c.node.op.split('.')[1]} ({c.why})" for c in calls if not isinstance(c, Seed))
    remark = f"\n\nLeft to PyTorch: {', '.join(left)}." if left else ""
    if any(isinstance(c, Seed) for c in calls):
        remark += "\n\n" + DRAWN
    if gradients:
        remark += f"\n\nSaved for the backward pass: {', '.join(gradients[0].saved) or 'nothing'}."
    return f"Drafted from {source.target}. Shapes:\n\n{inputs}\n    ->\n{outputs}{remark}"


def _results(parts: Sequence[Part]) -> Iterator[str]:
    """A line for each result with its shape, and for those that have another in another program."""
    known: set[str] = set()
    for part in parts:
        for result in part.program.results:
            line = f"    {result.path}: [{', '.join(sizes.text(s) for s in result.tensor.shape)}]"
            if line not in known:
                yield f"{line} where {part.condition}" if known and part.condition else line
            known.add(line)


def _imports(reference: Reference, bodies: Sequence[str]) -> set[str]:
    lines = {"import torch", "import triton", "import triton.language as tl", *reference.imports}
    text = "\n".join(bodies)
    if "libdevice." in text:
        lines.add("from triton.language.extra import libdevice")
    if any(isinstance(n, ast.Name) and n.id == "math" for n in ast.walk(ast.parse(text))):
        lines.add("import math")
    return lines


def with_limits(declared: Mapping[str, object], limits: Sequence[str]) -> Mapping[str, object]:
    """The declarations with the largest sizes that the kernels take among the requirements."""
    requires = declared.get("REQUIRES") or ()
    assert isinstance(requires, Sequence)
    return {**declared, "REQUIRES": [*requires, *limits]} if limits else declared


def declarations(declared: Mapping[str, object]) -> str:
    """INPUTS, DIMS and REQUIRES as source; what is empty is left out."""
    return "\n".join(f"{name} = {_literal(value)}" for name, value in declared.items() if value)


def _literal(value: Any) -> str:
    """A dict, list, tuple or object as source, an entry a line where it is long."""
    if mark := marked(value):
        of, held = mark
        fields = held.items() if isinstance(held, dict) else ()
        entries = [f"{k}={_literal(v)}" for k, v in fields] or [_literal(v) for v in held]
        return _bracketed(f"{of}(", entries, ",)" if len(entries) == 1 and not fields else ")")
    match value:
        case dict():
            return _bracketed("{", [f"{_literal(k)}: {_literal(v)}" for k, v in value.items()], "}")
        case list():
            return _bracketed("[", [_literal(v) for v in value], "]")
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _bracketed(opening: str, entries: Sequence[str], closing: str) -> str:
    line = f"{opening}{', '.join(entries)}{closing}"
    if len(line) <= 90:
        return line
    return "\n".join([opening, *(f"    {e}," for e in entries), closing.removeprefix(",")])


def _applying_run(
    graph: Graph, gradients: Sequence[Halves], names: Sequence[str], checked: Checks, source: Source
) -> list[str]:
    """`run` by way of the functions that have gradients: that of the dtypes and sizes, else the first."""
    parts = [one.forward for one in gradients]
    applying = [tuple(applied(one, name)) for one, name in zip(gradients, names, strict=True)]
    bodies = [[*_checked(part), lines] for part, lines in zip(parts, applying, strict=True)]
    looked_at = [*(part.condition for part in parts), *(text for part in parts for text in conditions(part))]
    used = loads(looked_at)
    return [
        f"def run({source.reference.parameters}):",
        '    """The same as `reference`, with gradients, by the kernels above."""',
        *(f"    {line}" for line in _checks_of_call(graph, checked, source)),
        *(f"    {line}" for line in (runs.dims(graph, used) if used & graph.dims.keys() else ())),
        *(f"    {line}" for line in _decided(parts, bodies)),
    ]


def _run(graph: Graph, parts: Sequence[Part], checked: Checks, source: Source) -> list[str]:
    bodies = [_returned(part) for part in parts]
    text = "\n".join(line for body in bodies for lines in body for line in lines)
    used = loads([text.replace("return ", "result = "), *(part.condition for part in parts)])
    body = [
        *_checks_of_call(graph, checked, source),
        *runs.dims(graph, used),
        *runs.shape_checks(graph),
        *([f"device = {graph.inputs[0].name}.device"] if "device" in used else []),
        *runs.on_its_device(graph, _decided(parts, bodies)),
    ]
    name, doc = (graph.function, source.part) if source.part else ("run", KERNELS_ABOVE)
    return [
        f"def {name}({source.reference.parameters}):",
        f'    """{doc}"""',
        *(f"    {line}" for line in body),
    ]


def _checks_of_call(graph: Graph, checked: Checks, source: Source) -> list[str]:
    """What `run` asks of its arguments before it looks at sizes."""
    return [
        *runs.unpacked(graph),
        *runs.guards(graph),
        *checked.call,
        *runs.defaults(graph, source.reference),
    ]


def _decided(parts: Sequence[Part], bodies: Sequence[Sequence[Lines]]) -> list[str]:
    """The body of the first part whose condition holds, else that of the part without one."""
    return decided([part.condition for part in parts[1:]], [*bodies[1:], bodies[0]])


def _returned(part: Part) -> list[Lines]:
    statements = write_back.in_place(part, computed(part))
    ends = [*write_back.written_back(part), *write_back.returned(part)]
    return [*_checked(part), *write_back.kept(part), *statements, *ends]


def _checked(part: Part) -> list[Lines]:
    return [(line,) for line in conditions(part)]
