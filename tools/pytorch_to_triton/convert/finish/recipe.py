"""All that the finished files are made from."""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from pytorch_to_triton.draft.file.kernel_text import KernelText
from pytorch_to_triton.draft.fresh_names import in_ascii
from pytorch_to_triton.graph.dtype_rules import FLOATS
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.input_spec import ConstantSpec, InputSpec, PackedSpec, SizeSpec, TensorSpec
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.schema.dtype import TORCH_DTYPES, Scalar, source_of
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
    needs_memory: bool
    """It cannot be made on the meta device."""
    state: Mapping[str, str]
    """Arguments of `run` that are parameters and buffers -> their keys in the state_dict."""
    attributes: Collection[str]
    """Keys of plain attributes, which may lie on another device than the module."""


@dataclass(frozen=True)
class Operand:
    """A tensor, a free number or one of several values in a call, as the registered operator takes it."""

    name: str
    """`x`, `batch_x`."""
    source: str
    """In the call: `x`, `batch["x"]`."""
    spec: TensorSpec | SizeSpec | ConstantSpec
    has_gradient: bool
    """Whether PyTorch differentiates by it."""

    @property
    def is_tensor(self) -> bool:
        return isinstance(self.spec, TensorSpec)

    @property
    def parameter(self) -> str:
        """The operator's."""
        return in_ascii(self.name)

    @property
    def annotated(self) -> str:
        """The operator's parameter: `x: torch.Tensor`."""
        match self.spec:
            case TensorSpec():
                kind = "torch.Tensor"
            case SizeSpec():
                kind = "int"
            case ConstantSpec(others=()):
                kind = "float"
            case ConstantSpec(values=values):
                kind = type_of(values)
        return f"{self.parameter}: {kind}"

    @property
    def listed(self) -> tuple[Scalar, ...]:
        """Of a constant with several declared values these."""
        return self.spec.values if isinstance(self.spec, ConstantSpec) and self.spec.others else ()

    @property
    def shaped(self) -> TensorSpec:
        """Of a tensor."""
        assert isinstance(self.spec, TensorSpec)
        return self.spec


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
    """Constants of which only the declared values were validated."""
    structure: Structure | None
    """What it returns; None: what no operator of PyTorch can, or random numbers, which a backward pass that
    is an operator would draw again."""
    outputs: int
    backward: bool
    """Whether `run` has gradients."""
    without_gradient: frozenset[str] = frozenset()
    """Floating-point tensors by which PyTorch does not differentiate, such as weights of classes."""
    module: DropIn | None = None
    autocast: bool = False
    """Whether the function casts by torch.autocast("cuda"), which does nothing on a CPU."""
    random: bool = False
    """Whether the function draws random numbers."""
    graph: Graph | None = None
    """What was traced; None where nothing was."""
    drafted: bool = False
    """Whether the file is a draft as it was, of what the graph holds."""
    points: tuple[Point, ...] = ()
    """The sizes that matter; none: the benchmark grows the declared ones."""

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
        return tuple(name for _, name in parameters_of(self.parameters))

    @property
    def passed(self) -> str:
        """The parameters as they are handed on: `x, weight, eps=eps`."""
        return passed(self.parameters)

    @property
    def sources(self) -> Mapping[str, str]:
        """Where each input lies in a call, packed ones too: `x`, `batch["x"]`."""
        sources = {name: name for name in self.inputs}
        for name, packing in self.declaration.packings().items():
            sources |= packing.sources(name)
        return sources

    @property
    def operands(self) -> tuple[Operand, ...]:
        """What differs from call to call, what is packed one by one."""
        operands = [
            Operand(name, self.sources[name], spec, name not in self.without_gradient and is_float(spec))
            for name, spec in self.inputs.items()
            if not isinstance(spec, PackedSpec)
        ]
        return tuple(operand for operand in operands if operand.name not in self.fixed or operand.listed)

    @property
    def tensors(self) -> tuple[Operand, ...]:
        return tuple(operand for operand in self.operands if operand.is_tensor)

    @property
    def written(self) -> tuple[str, ...]:
        """The arguments that it writes to."""
        return tuple(self.graph.written) if self.graph else ()

    @property
    def operator(self) -> str:
        """What PyTorch registers it as."""
        return f"{self.module_name}::{in_ascii(self.name)}"

    @property
    def from_operands(self) -> str:
        """The arguments of `run` out of the operator's parameters."""
        return passed(self.parameters, self.assembled({o.name: o.parameter for o in self.operands}))

    @property
    def from_copies(self) -> str:
        """The same, with copies of what is written to."""
        copies = {o.name: o.parameter + ".clone()" * (o.name in self.written) for o in self.operands}
        return passed(self.parameters, self.assembled(copies))

    def assembled(self, values: Mapping[str, str]) -> dict[str, str]:
        """Each parameter out of expressions for inputs; constants that are not given are as declared."""
        declared = {n: constant_source(s) for n, s in self.inputs.items() if isinstance(s, ConstantSpec)}
        packings = self.declaration.packings()
        sources = {**declared, **values}
        return sources | {name: packing.made_of(sources) for name, packing in packings.items()}


def is_float(spec: InputSpec) -> bool:
    return isinstance(spec, TensorSpec) and not set(FLOATS).isdisjoint(spec.dtypes)


TYPES = {bool: "bool", str: "str", int: "int", float: "float"}


def type_of(values: Collection[Scalar]) -> str:
    """The annotation of an operator's parameter that has these values, as source."""
    types = {type(value) for value in values if value is not None}
    kind = "float" if len(types) > 1 else TYPES[types.pop()]
    kind = "torch.dtype" if TORCH_DTYPES.intersection(values) else kind
    return f"{kind} | None" if None in values else kind


def constant_source(spec: ConstantSpec) -> str:
    """A constant as Python has it."""
    if isinstance(spec.value, float) and math.isinf(spec.value):
        return f'float("{spec.value}")'
    return source_of(list(spec.value) if isinstance(spec.value, tuple) else spec.value)


def passed(parameters: str, values: Mapping[str, str] | None = None) -> str:
    """The arguments of a call with these expressions, by default the parameters' own names."""
    parts = [(kind, name, values[name] if values else name) for kind, name in parameters_of(parameters)]
    return ", ".join(f"{n}={value}" if kind == "=" else f"{kind}{value}" for kind, n, value in parts)


def received(parameters: str) -> str:
    """The parameters without their defaults: `x, *, eps`."""
    arguments = signature(parameters)
    arguments.defaults, arguments.kw_defaults = [], [None] * len(arguments.kwonlyargs)
    return ast.unparse(arguments)


def without(parameters: str, names: Collection[str]) -> str:
    """The other parameters, with their defaults."""
    arguments, kept = signature(parameters), defaults(parameters)
    arguments.args = [a for a in arguments.args if a.arg not in names]
    arguments.kwonlyargs = [a for a in arguments.kwonlyargs if a.arg not in names]
    positional = (kept.get(a.arg) for a in (*arguments.posonlyargs, *arguments.args))
    arguments.defaults = [ast.parse(text, mode="eval").body for text in positional if text]
    arguments.kw_defaults = [
        ast.parse(text, mode="eval").body if (text := kept.get(a.arg)) else None for a in arguments.kwonlyargs
    ]
    return ast.unparse(arguments)


def parameters_of(parameters: str) -> list[tuple[str, str]]:
    """Each parameter with what stands before its value in a call that hands it on.

    That is nothing, `*` or `**` of one that collects, `=` (behind its name) of one that is by keyword only.
    """
    arguments = signature(parameters)
    parts = [("", a) for a in (*arguments.posonlyargs, *arguments.args)]
    parts += [("*", arguments.vararg)] if arguments.vararg else []
    parts += [("=", a) for a in arguments.kwonlyargs]
    parts += [("**", arguments.kwarg)] if arguments.kwarg else []
    return [(kind, argument.arg) for kind, argument in parts]


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
