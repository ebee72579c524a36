"""The drafted file of a function in parts: their kernels, and the function with calls in their place."""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import indent
from typing import Any

from pytorch_to_triton.convert.cuts.cutting import Cut, Part, attribute
from pytorch_to_triton.convert.cuts.function_text import Replacing, blocks_of, loaded
from pytorch_to_triton.draft.file.checks import Checks, checks
from pytorch_to_triton.draft.file.kernel_text import KernelText
from pytorch_to_triton.draft.file.launches import Stage
from pytorch_to_triton.draft.file.module import STAGE_NAMES, Drafted, declarations, draft, with_limits
from pytorch_to_triton.draft.file.part import snake
from pytorch_to_triton.draft.file.reference import (
    Reference,
    construction_lines,
    plain,
    registration_lines,
)
from pytorch_to_triton.draft.library import PURE, Ways, ways_of
from pytorch_to_triton.draft.schedule.schedule import Config
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.graph.tracing import Traced
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.expression import names_in
from pytorch_to_triton.inputs.input_spec import TensorSpec
from pytorch_to_triton.schema.graph import Graph, Shape, TensorInput


@dataclass(frozen=True)
class CutOrigin:
    """What the drafts of a function in parts are made from."""

    cut: Cut
    reference: Reference
    declaration: Declaration
    """Of the function itself ..."""
    declared: Mapping[str, Any]
    """... and as source."""
    made: str = ""
    """The expression that makes the module in parts; empty for a function."""
    needs_memory: bool = False
    """It cannot be made on the meta device."""
    attributes: Sequence[str] = ()
    """Of the module, those that are buffers in `run`."""

    @property
    def state(self) -> Mapping[str, TensorSpec]:
        """A module's parameters and buffers."""
        return self.cut.state

    @property
    def state_keys(self) -> Mapping[str, str]:
        """The state_dict's key of each of them."""
        return self.cut.state_keys

    @property
    def holds_where(self) -> tuple[str, ...]:
        """The conditions on sizes under which all parts hold."""
        guards = (guard for part in self.cut.parts for guard in part.traced.holds_where)
        return tuple(dict.fromkeys(guards))

    def traced_at(self, dims: Collection[str]) -> tuple[Traced, ...]:
        """The traces of the parts that have no other dims than these."""
        parts = (p for p in self.cut.parts if p.source.declared["DIMS"].keys() <= {*dims})
        return tuple(part.traced for part in parts)

    def ways(self) -> tuple[Ways, ...]:
        """Who may compute convolutions and products of the parts."""
        found = (ways_of(part.traced.graph) for part in self.cut.parts)
        return max(found, key=len)

    def drafted(
        self,
        stage: Stage,
        ways: Ways | None = None,
        tuned: Mapping[str, Config] | None = None,
        note: str = "",
    ) -> Drafted:
        """One stage; `note` is a comment above the first part, and what is left by `ways` are whole parts.

        Raises NotConvertible.
        """
        if ways and ways.left:
            fewer = replace(self, cut=self.cut.without(dict(ways.left)))
            return fewer.drafted(stage, replace(ways, left=()), tuned, note)
        first, *others = self.cut.parts
        parts = [replace(first, source=replace(first.source, note=note)), *others]
        drafts = [drafted_part(part, stage, ways, tuned) for part in parts]
        calls = [*(call for drafted in drafts for call in drafted.calls), *self.cut.operators]
        left = [*(text for drafted in drafts for text in drafted.left), *self.cut.left_to_pytorch]
        return Drafted(
            self._file(drafts, stage, left),
            tuple(kernel for drafted in drafts for kernel in drafted.kernels),
            tuple(dict.fromkeys(calls)),
            tuple(left),
            tuned or {},
            ways or PURE,
        )

    def _file(self, drafts: Sequence[Drafted], stage: Stage, left: Sequence[str]) -> KernelText:
        cut = self.cut
        limits = dict.fromkeys(limit for drafted in drafts for limit in drafted.file.limits)
        limits = dict.fromkeys(text for text in limits if names_in(text) <= self.declaration.dims.keys())
        checked = checks(arguments_alone(self), self.reference, (), backward=False)
        blocks = [
            "\n".join([declarations(with_limits(self.declared, tuple(limits))), *checked.accepted]),
            *self.reference.definitions,
            *dict.fromkeys(text for drafted in drafts for text in drafted.definitions),
            *checked.definition,
            *self._with_calls(checked),
        ]
        doc = (
            f"Drafted from {cut.target}, in {cut.extent}. "
            "What is between them needs values, and stays Python."
        )
        remark = f"\n\nLeft to PyTorch: {'; '.join(left)}." if left else ""
        return KernelText(
            f"{cut.name} in Triton, stage {stage} of 3 ({STAGE_NAMES[stage]}).",
            f"{doc}{remark}",
            {*self.reference.imports, *(line for drafted in drafts for line in drafted.file.imports)},
            "\n\n\n".join(block for block in blocks if block),
            tuple(limits),
        )

    def _with_calls(self, checked: Checks) -> list[str]:
        """`run`, which is the function with calls of the parts, or makes a module whose `forward` is that."""
        function = copy.deepcopy(self.cut.function.tree)
        calls = {part.range.line: part for part in self.cut.parts}
        body = with_calls(without_docstring(function.body), calls)
        count = len(calls)
        doc = f"The same as `reference`, {count} part{'s' if count > 1 else ''} of it by the kernels above."
        head = ast.parse("\n".join([repr(doc), *checked.call])).body
        if not self.made:
            own = imports_of_reference(self.reference, function)
            return [as_run(function, self.reference.parameters, [*head, *own, *body])]
        alone = self._without_module(body)
        if alone is not None:
            return [as_run(function, self.reference.parameters, [*head, *alone])]
        return [self._module(function, body), self._run_of_module(head)]

    def _without_module(self, body: list[ast.stmt]) -> list[ast.stmt] | None:
        """Statements of `forward` with arguments of `run` in place of parameters and buffers; None where they
        need more of the module, or give another value one of these names."""
        cut, keys = self.cut, self.cut.state_keys
        receiver = cut.function.receiver
        names = {attribute(receiver, key): name for name, key in keys.items()}

        def argument(node: ast.AST) -> ast.Name | None:
            name = names.get(ast.unparse(node)) if isinstance(node, ast.Attribute) else None
            return ast.Name(name, ast.Load()) if name else None

        alone = [Replacing(argument).visit(copy.deepcopy(statement)) for statement in body]
        read = {name for statement in alone for name in loaded(statement)}
        return None if receiver in read or cut.function.names() & keys.keys() else alone

    def _module(self, forward: ast.FunctionDef, body: list[ast.stmt]) -> str:
        """The class of the module with calls of the parts, and the module, whose state `run` is given."""
        forward.args, forward.returns, forward.body = plain(forward.args), None, body
        doc = f"{self.cut.name} with parts of its forward by the kernels above."
        head = f'class {self.cut.class_name}({self.cut.name}):\n    """{doc}"""'
        methods = indent(ast.unparse(ast.fix_missing_locations(forward)), "    ")
        made = construction_lines(f"{self._module_name} = {self.made}", needs_memory=self.needs_memory)
        lines = "\n".join([*made, *registration_lines(self._module_name, self.attributes)])
        return f"{head}\n\n{methods}\n\n\n{lines}"

    @property
    def _module_name(self) -> str:
        return snake(self.cut.class_name)

    def _run_of_module(self, head: list[ast.stmt]) -> str:
        """`run`, which does as `reference` does with the module in parts."""
        (function,) = ast.parse(self.reference.definitions[-1]).body
        assert isinstance(function, ast.FunctionDef)
        made, *calling = function.body  # It makes its module first.
        assert isinstance(made, ast.Assign)
        own = ast.unparse(made.targets[0])
        for name in (n for statement in calling for n in ast.walk(statement) if isinstance(n, ast.Name)):
            name.id = self._module_name if name.id == own else name.id
        return as_run(function, self.reference.parameters, [*head, *calling])


def as_run(function: ast.FunctionDef, parameters: str, body: list[ast.stmt]) -> str:
    """A function as `run` with these parameters and this body."""
    signature = ast.parse(f"def run({parameters}): ...").body[0]
    assert isinstance(signature, ast.FunctionDef)
    function.name, function.args, function.returns, function.body = "run", signature.args, None, body
    return ast.unparse(ast.fix_missing_locations(function))


def drafted_part(part: Part, stage: Stage, ways: Ways | None, tuned: Mapping[str, Config] | None) -> Drafted:
    """One part, by its own kernels where these ways would leave it none."""
    try:
        return draft(part.traced.graph, part.source, stage, tuned, ways)
    except NotConvertible:
        return draft(part.traced.graph, part.source, stage, tuned, PURE)


def arguments_alone(origin: CutOrigin) -> Graph:
    """The function's inputs as a graph that computes nothing."""
    inputs = tuple(
        TensorInput(
            name=name,
            shape=Shape(expressions=spec.shape, traced=(0,) * len(spec.shape)),
            dtype=spec.dtypes[0],
            dtypes=spec.dtypes,
        )
        for name, spec in {**origin.declaration.tensors(), **origin.state}.items()
    )
    return Graph(
        function=origin.cut.name, parameters=(), inputs=inputs, state={}, constants={}, fixed=(), nodes=(),
        outputs=(), dims={}, guards=(),
    )  # fmt: skip


def without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    match body:
        case [ast.Expr(value=ast.Constant(value=str())), *rest]:
            return rest
    return body


def imports_of_reference(reference: Reference, function: ast.FunctionDef) -> list[ast.stmt]:
    """What `reference` imports beside the function's own imports."""
    (copied,) = ast.parse(reference.definitions[-1]).body
    assert isinstance(copied, ast.FunctionDef)
    own = {ast.unparse(statement) for statement in function.body}
    imports = (s for s in copied.body if isinstance(s, ast.Import | ast.ImportFrom))
    return [statement for statement in imports if ast.unparse(statement) not in own]


def with_calls(block: Sequence[ast.stmt], parts: Mapping[int, Part]) -> list[ast.stmt]:
    """The statements with a call in place of each part's."""
    found: list[ast.stmt] = []
    skipped = 0
    for statement in block:
        if skipped:
            skipped -= 1
        elif part := parts.get(statement.lineno):
            found.append(call_of(part))
            skipped = len(part.range.statements) - 1
        else:
            for inner in blocks_of(statement):
                inner[:] = with_calls(inner, parts)
            found.append(statement)
    return found


def call_of(part: Part) -> ast.stmt:
    """The statement that takes the place of a part."""
    arguments = ", ".join(part.outline.arguments.values())
    call = f"{part.name}({arguments})"
    if isinstance(part.range.statements[-1], ast.Return):
        text = f"return {call}"
    else:
        text = f"{', '.join(part.range.gives)} = {call}" if part.range.gives else call
    return ast.parse(text).body[0]
