"""Random programs as traced graphs, and as the source of target files."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pytorch_to_triton.draft.ir.sizes import text
from pytorch_to_triton.schema.graph import (
    ArgumentList,
    Graph,
    GraphOutput,
    Literal_,
    Node,
    NodeArgument,
    NodeRef,
    Shape,
    SizeRef,
    TensorInput,
)
from pytorch_to_triton.worker.wire.packing import Packing

from .random_statements import DIMS, INPUTS, RANGES, Composer, Dtype, Statement, Variable, traced

TRACED = {
    "aten.reshape.default": "aten.view.default",
    "aten.to.dtype": "aten._to_copy.default",
    "aten.var.dim": "aten.var.correction",
}
"""What a trace has in place of other operators, with the same arguments."""


@dataclass(frozen=True)
class RandomProgram:
    """Inputs and statements; the last value is returned, and what nothing reads with it."""

    inputs: tuple[Variable, ...]
    statements: tuple[Statement, ...]
    returned: tuple[Variable, ...]

    @property
    def dims(self) -> dict[str, int]:
        names = {str(s) for v in self.inputs for n in v.shape for s in n.free_symbols}
        return {n: DIMS[n] for n in sorted(names)}

    def graph(self) -> Graph:
        """As a trace would give it."""
        return Graph(
            function="f",
            parameters=tuple(v.name for v in self.inputs),
            inputs=tuple(TensorInput(name=v.name, shape=shape_of(v), dtype=v.dtype) for v in self.inputs),  # type: ignore[arg-type]
            state={},
            constants={},
            fixed=(),
            nodes=tuple(
                Node(
                    name=s.result.name,
                    op=TRACED.get(s.op, s.op),
                    args=tuple(map(as_argument, s.arguments)),
                    kwargs={},
                    shape=shape_of(s.result),
                    dtype=s.result.dtype,  # type: ignore[arg-type]
                )
                for s in self.statements
            ),
            outputs=tuple(GraphOutput(path=f"out[{i}]", name=v.name) for i, v in enumerate(self.returned)),
            result=Packing(kind="tuple", items=tuple(f"out[{i}]" for i in range(len(self.returned)))),
            dims=self.dims,
            guards=(),
        )

    def source(self) -> str:
        """As a target file, with its declaration."""
        declared = {v.name: declaration_of(v) for v in self.inputs}
        places = {
            text(n): f"{text(n)} = {v.name}.shape[{d}]"
            for v in reversed(self.inputs)
            for d, n in enumerate(v.shape)
            if n.is_Symbol
        }
        body = [
            *places.values(),
            *(f"{s.result.name} = torch.ops.{s.op}({written(s)})" for s in self.statements),
        ]
        body.append(f"return {', '.join(v.name for v in self.returned)}")
        lines = "\n".join(f"    {line}" for line in body)
        dims = {n: [v] for n, v in self.dims.items()}
        return (
            f"import torch\n\nINPUTS = {declared!r}\nDIMS = {dims!r}\n\n\n"
            f"def f({', '.join(declared)}):\n{lines}\n"
        )


def shape_of(v: Variable) -> Shape:
    return Shape(expressions=tuple(map(text, v.shape)), traced=tuple(map(traced, v.shape)))


def declaration_of(v: Variable) -> str:
    low, high = RANGES.get(v.name, (None, None))
    span = f" in {low}..{high}" if low is not None else ""
    return f"{v.dtype}[{', '.join(map(text, v.shape))}]{span}"


def as_argument(x: Any) -> NodeArgument:
    match x:
        case Variable(name=name):
            return NodeRef(name=name)
        case list():
            return ArgumentList(items=tuple(map(as_argument, x)))
        case Dtype(name=name):
            return Literal_(value=name)
        case None | bool() | int() | float():
            return Literal_(value=x)
    return Literal_(value=int(x)) if x.is_Integer else SizeRef(expression=text(x), traced=traced(x))


def written(s: Statement) -> str:
    return ", ".join(map(as_text, s.arguments))


def as_text(x: Any) -> str:
    match x:
        case Variable(name=name):
            return name
        case list():
            return f"[{', '.join(map(as_text, x))}]"
        case Dtype(name=name):
            return f"torch.{name}"
        case None | bool() | int() | float():
            return repr(x)
    return text(x)


def random_program(seed: int) -> RandomProgram:
    """Up to 9 statements or a few more; always the same for a seed."""
    choose = random.Random(seed)
    composer = Composer(INPUTS[choose.choice(list(INPUTS))], choose)
    composer.compose(choose.randint(4, 9))
    read = {v.name for s in composer.statements for v in variables(s.arguments)}
    unread = [s.result for s in composer.statements if s.result.name not in read]
    returned = unread[-choose.choice((1, 2, 3)) :]
    statements = live(composer.statements, returned)
    used = {v.name for s in statements for v in variables(s.arguments)}
    inputs = [v for v in composer.inputs if v.name in used]
    return RandomProgram(tuple(inputs), tuple(statements), tuple(returned))


def with_column_sums(program: RandomProgram) -> RandomProgram:
    """The program that also returns the sums across rows of what it returns, as gradients of weights are."""
    sums = tuple(
        Statement(
            Variable(f"{v.name}_sums", v.shape[-1:], v.dtype),
            "aten.sum.dim_IntList",
            (v, list(range(len(v.shape) - 1)), False),
        )
        for v in program.returned
        if v.is_float and len(v.shape) > 1
    )
    statements, returned = (*program.statements, *sums), (*program.returned, *(s.result for s in sums))
    return RandomProgram(program.inputs, statements, returned)


def live(statements: Sequence[Statement], returned: Sequence[Variable]) -> list[Statement]:
    needed, found = {v.name for v in returned}, []
    for s in reversed(statements):
        if s.result.name in needed:
            found.append(s)
            needed |= {v.name for v in variables(s.arguments)}
    return found[::-1]


def variables(arguments: Sequence[Any]) -> list[Variable]:
    found = []
    for a in arguments:
        if isinstance(a, Variable):
            found.append(a)
        elif isinstance(a, list):
            found += variables(a)
    return found
