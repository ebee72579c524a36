"""All that the finished files are made from."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pytorch_to_triton.draft.file.kernel_text import KernelText
from pytorch_to_triton.graph.dtype_rules import FLOATS
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.input_spec import ConstantSpec, InputSpec, ListSpec, TensorSpec
from pytorch_to_triton.schema.graph import Graph

Structure = Literal["single", "tuple", "list", "none"]


@dataclass(frozen=True)
class DropIn:
    """The module class that the kernels stand for."""

    name: str
    constructed: str
    """The call that makes the module that was traced: `Block(width=64)`."""
    training: bool
    """In which mode it was traced."""
    parameters: str
    """Of forward, without `self`, as source."""
    state: Mapping[str, str]
    """Arguments of `run` that are parameters and buffers -> their keys in the state_dict."""


@dataclass(frozen=True)
class Operand:
    """A tensor or a free number of a call, as the registered operator takes it."""

    name: str
    """Of the operator's parameter: `x`, `xs_0`."""
    source: str
    """In the call: `x`, `xs[0]`."""
    spec: TensorSpec | None
    """None: a number."""

    @property
    def annotation(self) -> str:
        return "float" if self.spec is None else "torch.Tensor"

    @property
    def shaped(self) -> TensorSpec:
        """Of a tensor."""
        assert self.spec is not None
        return self.spec

    @property
    def has_gradient(self) -> bool:
        return self.spec is not None and not set(FLOATS).isdisjoint(self.spec.dtypes)


@dataclass(frozen=True)
class Recipe:
    """A kernel file that passed, with what its function takes and returns."""

    function: str
    """The user's name of it: `layer_norm`, or a class's."""
    name: str
    """What the finished function is called."""
    module_name: str
    """Its file without the `.py`."""
    origin: str
    """Where the user's function lies: a file's name and the function's."""
    file: KernelText
    """With `reference` and `run`."""
    parameters: str
    """Of `reference` and `run`, as source, with defaults and without annotations."""
    declaration: Declaration
    """What each parameter takes, and conditions: the declared ones and those under which the kernels hold."""
    fixed: frozenset[str]
    """Constants of which only the declared value was validated."""
    structure: Structure | None
    """What it returns; None: what no operator of PyTorch can."""
    outputs: int
    backward: bool
    """Whether `run` has gradients."""
    module: DropIn | None = None
    autocast: bool = False
    """Whether the function casts by torch.autocast("cuda"), which does nothing on a CPU."""
    graph: Graph | None = None
    """What was traced; None where nothing was."""

    @property
    def text(self) -> str:
        """The whole kernel file."""
        return self.file.text

    @property
    def inputs(self) -> Mapping[str, InputSpec]:
        """What each parameter takes."""
        return self.declaration.inputs

    @property
    def arguments(self) -> tuple[str, ...]:
        """The parameters in their order."""
        positional, keyword = self._parameters()
        return (*positional, *keyword)

    @property
    def passed(self) -> str:
        """The parameters as they are handed on: `x, weight, eps=eps`."""
        return self.call({name: name for name in self.arguments})

    def call(self, values: Mapping[str, str]) -> str:
        """The arguments of a call with these expressions."""
        positional, keyword = self._parameters()
        return ", ".join([*(values[n] for n in positional), *(f"{n}={values[n]}" for n in keyword)])

    @property
    def operands(self) -> tuple[Operand, ...]:
        """What differs from call to call, the tensors of lists one by one."""
        operands: list[Operand] = []
        for name, spec in self.inputs.items():
            match spec:
                case TensorSpec():
                    operands.append(Operand(name, name, spec))
                case ListSpec(items=items):
                    operands += [Operand(f"{name}_{i}", f"{name}[{i}]", item) for i, item in enumerate(items)]
                case ConstantSpec() if name not in self.fixed:
                    operands.append(Operand(name, name, None))
        return tuple(operands)

    @property
    def tensors(self) -> tuple[Operand, ...]:
        return tuple(operand for operand in self.operands if operand.spec is not None)

    @property
    def written(self) -> tuple[str, ...]:
        """The arguments that it writes to."""
        return tuple(self.graph.written) if self.graph else ()

    @property
    def from_operands(self) -> str:
        """The arguments of `run` out of the operator's parameters."""
        return self.call(self._operand_sources())

    @property
    def from_copies(self) -> str:
        """The same, with copies of what is written to."""
        sources = self._operand_sources()
        return self.call(sources | {name: f"{sources[name]}.clone()" for name in self.written})

    def _operand_sources(self) -> dict[str, str]:
        """Each parameter of `run` out of the operator's."""
        values = {}
        for name, spec in self.inputs.items():
            match spec:
                case ListSpec(items=items):
                    values[name] = f"[{', '.join(f'{name}_{i}' for i in range(len(items)))}]"
                case ConstantSpec(value=value) if name in self.fixed:
                    values[name] = repr(list(value) if isinstance(value, tuple) else value)
                case _:
                    values[name] = name
        return values

    def _parameters(self) -> tuple[list[str], list[str]]:
        """Those that may be positional, and those that are by keyword only."""
        arguments = signature(self.parameters)
        positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        return positional, [a.arg for a in arguments.kwonlyargs]


def signature(parameters: str) -> ast.arguments:
    """Parameters out of their source."""
    function = ast.parse(f"def f({parameters}): ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    return function.args


def defaults(parameters: str) -> dict[str, str]:
    """The default of each parameter that has one, as source."""
    arguments = signature(parameters)
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    values = dict(zip(reversed(names), (ast.unparse(d) for d in reversed(arguments.defaults)), strict=False))
    by_keyword = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return values | {a.arg: ast.unparse(d) for a, d in by_keyword if d is not None}


def names_used(text: str) -> frozenset[str]:
    """Every name that a file binds or uses: none of them may get another meaning."""
    used: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Name(id=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                used.add(name)
            case ast.alias(name=name, asname=alias):
                used.add(alias or name.partition(".")[0])
    return frozenset(used)
