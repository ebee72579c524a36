"""What a target's inputs are: tensors over named dimensions, constants, and which sizes are allowed.

One grammar for kernel files (INPUTS, DIMS, REQUIRES), the command line (--input, --dim) and MCP arguments.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from keyword import iskeyword
from math import prod

from pydantic import Field

from pytorch_to_triton.errors import BadDeclaration
from pytorch_to_triton.inputs.case import Argument, Case, tensors_in
from pytorch_to_triton.inputs.comparison import parse_comparisons
from pytorch_to_triton.inputs.expression import at_sizes, holds, names_in, parse_requirement, point_name
from pytorch_to_triton.inputs.input_spec import (
    ConstantSpec,
    InputSpec,
    PackedSpec,
    SizeSpec,
    TensorSpec,
    argument_of,
    sizes_listed_for,
)
from pytorch_to_triton.inputs.option_text import value_of_option
from pytorch_to_triton.inputs.packed_input import parse_inputs
from pytorch_to_triton.inputs.sizes import Point, middle_point, nearby
from pytorch_to_triton.inputs.text_span import TextSpan
from pytorch_to_triton.schema.dtype import DType, Scalar
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.worker.wire.comparison import Unordered
from pytorch_to_triton.worker.wire.packing import Packing

POINTS_TRIED = 10_000
MOST_CHARACTERS = 10_000
"""Of one option."""
MOST_SIZES = 1000
"""Of one dimension: each is at least a case."""


class Declaration(Value):
    """The inputs of a target, in the order of its parameters."""

    inputs: dict[str, InputSpec]
    """Tensors and constants, each by a name of its own, and parameters that hold some of those before them.
    Empty when the target makes its own inputs from the dimensions."""
    dims: dict[str, tuple[int, ...]]
    """The sizes that each dimension should be tried at; never empty."""
    requires: tuple[str, ...] = ()
    """Conditions that every tried combination of sizes meets."""
    unordered: tuple[Unordered, ...] = ()
    """Results whose order is free."""
    generated: dict[str, int] = Field(default_factory=dict)
    """The sizes that the file's get_inputs() gives the dims; empty where it has none, or has no dims."""
    same_program: tuple[str, ...] = ()
    """Conditions on the sizes of a trace, for it to be that of the sizes in `generated`."""

    def tensors(self) -> dict[str, TensorSpec]:
        """Every tensor by name."""
        return {name: spec for name, spec in self.inputs.items() if isinstance(spec, TensorSpec)}

    def sizes(self) -> dict[str, SizeSpec]:
        """Every whole number that is a size, by name."""
        return {name: spec for name, spec in self.inputs.items() if isinstance(spec, SizeSpec)}

    def listed(self) -> dict[str, tuple[Scalar, ...]]:
        """The constants of which several values are declared, with these."""
        constants = {name: spec for name, spec in self.inputs.items() if isinstance(spec, ConstantSpec)}
        return {name: spec.values for name, spec in constants.items() if spec.others}

    def each_value(self) -> Iterator[tuple[dict[str, Scalar], "Declaration"]]:
        """The listed values, each with each, the first ones first, with the declaration of these alone."""
        listed = self.listed()
        for values in product(*listed.values()):
            chosen = {name: ConstantSpec(value=value) for name, value in zip(listed, values, strict=True)}
            declaration = self.model_copy(update={"inputs": {**self.inputs, **chosen}})
            yield dict(zip(listed, values, strict=True)), declaration

    def packings(self) -> dict[str, Packing]:
        """The parameters that hold several inputs."""
        return {name: spec.packing for name, spec in self.inputs.items() if isinstance(spec, PackedSpec)}

    def types(self) -> frozenset[str]:
        """The classes of inputs that are objects."""
        containers = (c for name, p in self.packings().items() for _, c in p.containers(name))
        return frozenset(container.type for container in containers if container.kind == "fields")

    def parameters(self) -> tuple[str, ...]:
        """The inputs that are no part of another."""
        inside = {name for packing in self.packings().values() for name in packing.names()}
        return tuple(name for name in self.inputs if name not in inside)

    def dims_used(self) -> frozenset[str]:
        """The dimensions that an input's sizes or bounds, or a requirement, name."""
        named = (spec.names() for spec in self.inputs.values() if isinstance(spec, TensorSpec | SizeSpec))
        return frozenset().union(*named, *(names_in(text) for text in self.requires))

    def shape_of(self, tensor: str, dims: Mapping[str, int]) -> tuple[int, ...]:
        """The shape of a tensor at these dimensions.

        Raises BadDeclaration where a size is negative or divides by zero there.
        """
        return self.tensors()[tensor].shape_at(dims)

    def violated(self, dims: Mapping[str, int]) -> str | None:
        """The first requirement that these dimensions break; None when they meet all."""
        return next((text for text in self.requires if not holds(text, dims)), None)

    def elements_at(self, dims: Mapping[str, int]) -> int:
        """What a call's tensors hold together. Raises BadDeclaration like `shape_of`."""
        return sum(prod(tensor.shape_at(dims)) for tensor in self.tensors().values())

    def takes(self, dims: Mapping[str, int]) -> bool:
        """Whether these dimensions meet the requirements, and a call can be generated there."""
        if self.violated(dims):
            return False
        try:
            self.arguments(dims)
        except BadDeclaration:
            return False
        return True

    def bytes_at(self, dims: Mapping[str, int]) -> int:
        """What a call's tensors hold; 0 where it cannot be generated."""
        try:
            return sum(tensor.bytes for tensor in tensors_in(self.arguments(dims)))
        except BadDeclaration:
            return 0

    def fixed_at(self, sizes: Mapping[str, int]) -> "Declaration":
        """The same with these dims as numbers in shapes, ranges and requirements."""
        inputs = {name: spec.fixed_at(sizes) for name, spec in self.inputs.items()}
        return self.model_copy(
            update={
                "inputs": inputs,
                "dims": {name: tried for name, tried in self.dims.items() if name not in sizes},
                "requires": _conditions_at(self.requires, sizes),
                "same_program": _conditions_at(self.same_program, sizes),
            }
        )

    def arguments(
        self, dims: Mapping[str, int], dtypes: Mapping[str, DType] | None = None
    ) -> tuple[Argument, ...]:
        """The call at these dimensions, ready to be generated: random values, contiguous.

        `dtypes` by tensor name; the first declared dtype where it has none. Raises BadDeclaration where
        a tensor cannot be generated: a negative size, a range without values.
        """
        return tuple(argument_of(name, spec, dims, dtypes or {}) for name, spec in self.inputs.items())

    def case(self, dims: Mapping[str, int], name: str = "") -> Case:
        """The same as a case, which is named after the dimensions by default."""
        name = name or point_name(dims) or "base"
        return Case(name=name, group="declared", dims=dict(dims), arguments=self.arguments(dims))

    def nearest(self, point: Mapping[str, int], fixed: Collection[str] = ()) -> Point | None:
        """The declared sizes nearest to the point with which a call can be made, those `fixed` as they are;
        None where there are none."""
        choices = {name: sizes for name, sizes in self.dims.items() if name not in fixed}
        return next(filter(self.takes, islice(nearby(point, choices), POINTS_TRIED)), None)


def _conditions_at(texts: Sequence[str], sizes: Mapping[str, int]) -> tuple[str, ...]:
    """Conditions with dims as numbers; those that name no other dim are met."""
    return tuple(text for text in (at_sizes(text, sizes) for text in texts) if names_in(text))


@dataclass(frozen=True)
class Options:
    """What was given beside a file, in the values a kernel file would hold; each wins over the file's."""

    inputs: Mapping[str, object] = field(default_factory=dict)
    dims: Mapping[str, object] = field(default_factory=dict)
    requires: tuple[str, ...] = ()
    compare: tuple[str, ...] = ()

    def at(self, points: Sequence[Point]) -> "Options":
        """With the sizes that the points name. Raises BadDeclaration for a dim that has sizes already."""
        named: dict[str, list[int]] = {}
        for point in points:
            for name, size in point.items():
                named.setdefault(name, []).append(size)
        for name in named.keys() & self.dims.keys():
            text = f"{name}={self.dims[name]}"
            raise BadDeclaration(
                f"--dim: --at names sizes of {name} too.", text, 0, f"Keep {name} in one of the two."
            )
        return replace(self, dims={**self.dims, **named})


NO_OPTIONS = Options()


def parse_declaration(
    inputs: Mapping[str, object],
    dims: Mapping[str, object],
    requires: Sequence[str] = (),
    options: Options = NO_OPTIONS,
) -> Declaration:
    """INPUTS, DIMS and REQUIRES as a kernel file holds them, with options on top.

    An option replaces the file's entry of that name; requirements add up. A whole number whose values are
    listed is a size: a dim of its own name, with these sizes and no others. Dimensions of the file that no
    input uses once options replaced some inputs are left out. Raises BadDeclaration for whatever cannot be
    read, is unbound or unused, and for requirements that none of the declared sizes meets.
    """
    given = {_checked_name("Input", name): value for name, value in {**inputs, **options.inputs}.items()}
    listed = {name: values for name, value in given.items() if (values := sizes_listed_for(name, value))}
    sizes = {
        name: _parse_sizes(name, value)
        for name, value in {**_without(listed, dims, options), **listed, **options.dims}.items()
    }
    specs = parse_inputs({**given, **{name: name for name in listed}}, sizes)
    texts = [
        *([requires] if isinstance(requires, str) else requires),
        *(f"{name} in {values}" for name, values in listed.items()),
        *options.requires,
    ]
    conditions = tuple(
        parse_requirement(TextSpan.of("Requirement", text).stripped(), sizes) for text in texts
    )
    declaration = Declaration(inputs=specs, dims=sizes, requires=conditions)
    _refuse_contradiction(declaration)
    return _without_unused_dims(declaration, excused=frozenset(dims if options.inputs else ()))


def _without(listed: Collection[str], dims: Mapping[str, object], options: Options) -> Mapping[str, object]:
    """The file's dims without those for which an option lists values.

    Raises BadDeclaration where the file itself gives a parameter values and a dim of its name sizes.
    """
    for name in listed:
        if name in dims and name not in options.inputs:
            problem = f"Input {name}: its values are listed, and DIMS has sizes of {name} too."
            raise BadDeclaration(problem, f"{name}: {dims[name]}", 0, "Keep one of the two.")
    return {name: sizes for name, sizes in dims.items() if name not in listed}


def parse_options(
    inputs: Sequence[str], dims: Sequence[str], requires: Sequence[str] = (), compare: Sequence[str] = ()
) -> Options:
    """`--input x=float32[M,N]`, `--input eps=1e-5`, `--input batch={"x": "float32[M,N]"}`, `--dim M=1,7,256`.

    A value that reads as None, a bool or a number is one; quote it to pass it as text. Raises BadDeclaration
    for an option without `=`, a bad name, a name given twice, or what is no size.
    """
    return Options(
        inputs={name: value_of_option(value) for name, value in _assignments("--input", inputs).items()},
        dims={name: _sizes_text(name, value) for name, value in _assignments("--dim", dims).items()},
        requires=tuple(requires),
        compare=tuple(map(str, parse_comparisons(compare))),
    )


def parse_points(texts: Sequence[str]) -> tuple[Point, ...]:
    """`--at M=8192,N=4096`: dims that have these sizes together, each text a point.

    Raises BadDeclaration for what is no such text, and for a dim that only some of the points name.
    """
    points = tuple(dict(_sizes_at(TextSpan.of("--at", text))) for text in texts)
    for text, point in zip(texts, points, strict=True):
        if missing := points[0].keys() ^ point.keys():
            names = ", ".join(sorted(missing))
            hint = "Name the same dims in every --at."
            raise TextSpan.of("--at", text).refusal(f"{names} is not named in every --at.", hint)
    return points


def _sizes_at(span: TextSpan) -> Iterator[tuple[str, int]]:
    named: set[str] = set()
    for part in span.split(","):
        name, equals, _ = part.text.partition("=")
        if not equals:
            raise part.refusal("'=' is missing.", "Write --at M=8192,N=4096.", at=len(part.text))
        key = _checked_name("--at", name.strip(), part)
        if key in named:
            raise part.refusal(f"{key} is given twice.", "Repeat --at for another point.")
        named.add(key)
        yield key, _parse_integer(key, part.cut(len(name) + 1).stripped())


def _assignments(option: str, texts: Sequence[str]) -> dict[str, TextSpan]:
    found: dict[str, TextSpan] = {}
    for text in texts:
        span = TextSpan.of(option, text)
        if len(text) > MOST_CHARACTERS:
            problem = f"this has {len(text)} characters; at most {MOST_CHARACTERS} are read."
            raise span.refusal(problem, "Declare the inputs in a file: INPUTS and DIMS.")
        name, equals, _ = span.text.partition("=")
        if not equals:
            example = "x=float32[M,N]" if option == "--input" else "M=1,7,256"
            raise span.refusal("'=' is missing.", f"Write {option} {example}.", at=len(span.text))
        key = _checked_name(option, name.strip(), span)
        if key in found:
            raise span.refusal(f"{key} is given twice.", f"Keep one {option} {key}=....")
        found[key] = span.cut(len(name) + 1).stripped()
    return found


def _sizes_text(name: str, value: TextSpan) -> str:
    """The text as it was given. Raises BadDeclaration for what is no sizes."""
    _parse_sizes(name, value.text)
    return value.text


def _parse_sizes(name: str, value: object) -> tuple[int, ...]:
    """The sizes of one dimension, each once: 7, [1, 7, 256] or the text `1,7,256`."""
    _checked_name("Dimension", name)
    values = value if isinstance(value, list | tuple) else [value]
    listed = TextSpan.of("Dimension", f"{name}={','.join(str(item) for item in values)}").cut(len(name) + 1)
    if not listed.text.strip():
        raise listed.refusal(f"{name} has no sizes.", f"Give it some: --dim {name}=1,7,256.")
    parts = listed.split(",")
    if len(parts) > MOST_SIZES:
        hint = "Name those that matter: small, odd, typical and large ones."
        raise listed.refusal(f"{name} has {len(parts)} sizes; at most {MOST_SIZES} are tried.", hint)
    return tuple(dict.fromkeys(_parse_integer(name, part) for part in parts))


def _parse_integer(name: str, span: TextSpan) -> int:
    if not re.fullmatch(r"[+-]?\d{1,18}", span.text):
        problem = f"{span.text!r} is not an integer."
        raise span.refusal(problem, f"Sizes are integers: --dim {name}=1,7,256.")
    if span.text.startswith("-"):
        raise span.refusal(f"the size {span.text} is negative.", "Sizes are 0 or more.")
    return int(span.text)


def _checked_name(kind: str, name: str, span: TextSpan | None = None) -> str:
    if name.isidentifier() and not iskeyword(name):
        return name
    problem, hint = f"{name!r} is not a name.", "Use letters, digits and _ (no Python keyword)."
    raise (span or TextSpan.of(kind, name)).refusal(problem, hint)


def _refuse_contradiction(declaration: Declaration) -> None:
    """Raises BadDeclaration when no combination of declared sizes meets the requirements."""
    middle = middle_point(declaration.dims)
    broken = declaration.violated(middle)
    points = islice(nearby(middle, declaration.dims), 10 * POINTS_TRIED)
    if broken and all(declaration.violated(point) for point in points):
        problem = "Requirement: none of the declared sizes meets it."
        used = {name: sizes for name, sizes in declaration.dims.items() if name in names_in(broken)}
        declared = ", ".join(f"{name} {list(sizes)}" for name, sizes in used.items())
        hint = f"Declare sizes that meet all requirements together ({declared or 'no dimension'})."
        raise BadDeclaration(problem, broken, 0, hint)


def _without_unused_dims(declaration: Declaration, *, excused: frozenset[str]) -> Declaration:
    """Without the excused dimensions that nothing uses. Raises BadDeclaration for any other unused one."""
    used = declaration.dims_used()
    if not declaration.inputs or used == declaration.dims.keys():
        return declaration
    for name, sizes in declaration.dims.items():
        if name not in used and name not in excused:
            raise unused_dim(name, sizes, used)
    kept = {name: sizes for name, sizes in declaration.dims.items() if name in used}
    return declaration.model_copy(update={"dims": kept})


def unused_dim(name: str, sizes: Sequence[int], used: Collection[str]) -> BadDeclaration:
    """The refusal of sizes of a dimension that is not among those in use."""
    text = f"{name}={','.join(map(str, sizes))}"
    hint = f"Remove it, or use one of {', '.join(sorted(used)) or 'no dimensions'} instead."
    return BadDeclaration(f"Dimension: no input uses {name}.", text, 0, hint)
