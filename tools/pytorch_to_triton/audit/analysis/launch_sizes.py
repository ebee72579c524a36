"""Which sizes and block lengths a launch is made with: by INPUTS, DIMS and REQUIRES, and by literals."""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, product
from math import prod

from pytorch_to_triton.audit.analysis.configurations import configurations
from pytorch_to_triton.audit.analysis.launched_tensors import (
    Extent,
    allocation,
    callers_parameters,
    is_kept,
    owner_of,
    size_of,
)
from pytorch_to_triton.audit.call_arguments import argument, literal_integer
from pytorch_to_triton.audit.source import LaunchSite, SourceFile, SourceKernel
from pytorch_to_triton.errors import BadDeclaration
from pytorch_to_triton.inputs.declaration import Declaration, parse_declaration
from pytorch_to_triton.inputs.expression import holds, names_in, value_of
from pytorch_to_triton.inputs.input_spec import TensorSpec
from pytorch_to_triton.triton_api.name_scope import NameScope, defaults_of, own_nodes, parameters_of

_KEEP_SHAPE = frozenset({"contiguous", "to", "float", "half", "bfloat16", "detach", "clone", "cuda", "type"})
_MAKERS = frozenset(f"torch.{name}" for name in ("rand", "randn", "empty", "zeros", "ones", "full"))
_MOST_POINTS = 10_000
_LIKES = 5
"""How many torch.empty_like one behind the other are followed."""
_POWERS_TRIED = 64


@dataclass(frozen=True)
class DeclaredSize:
    """The size of a declared input along one axis, or its number of elements."""

    text: str
    """Over the dimensions: `N // 2`."""
    declaration: Declaration

    def values(self) -> Iterator[int]:
        """What it comes to at the declared sizes that REQUIRES allows."""
        names = sorted(names_in(self.text))
        choices = product(*(self.declaration.dims[name] for name in names))
        return self._allowed_values(dict(zip(names, sizes, strict=True)) for sizes in choices)

    def is_always(self, fits: Callable[[int], bool], upto: int = _POWERS_TRIED) -> bool:
        """Whether REQUIRES speaks of it and allows only sizes that fit, among those up to a number."""
        names = sorted(names_in(self.text))
        if len(names) != 1 or not self._conditions():
            return False
        return all(
            fits(size) for size in self._allowed_values({names[0]: size} for size in range(1, upto + 1))
        )

    def allows(self, size: int) -> bool:
        """Whether REQUIRES has nothing against a size of its one dimension."""
        names = sorted(names_in(self.text))
        return len(names) != 1 or any(True for _ in self._allowed_values([{names[0]: size}]))

    def _allowed_values(self, points: Iterable[Mapping[str, int]]) -> Iterator[int]:
        conditions = self._conditions()
        for point in islice(points, _MOST_POINTS):
            if all(holds(text, point) for text in conditions):
                yield int(value_of(self.text, point))

    def _conditions(self) -> list[str]:
        return [text for text in self.declaration.requires if names_in(text) <= names_in(self.text)]


def declaration_for(launch: LaunchSite) -> Declaration | None:
    """What the file declares of the launching function's parameters; None of any function but `run`."""
    is_run = launch.function is not None and launch.function.name == "run"
    return declaration_of(launch.kernel.file) if is_run else None


def declared_size(size: Extent, launch: LaunchSite) -> DeclaredSize | None:
    """The size of a parameter of `run` by the file's INPUTS and DIMS; None where they do not declare it."""
    declaration = declaration_for(launch)
    tensor = declaration.inputs.get(size.tensor) if declaration else None
    if not declaration or not isinstance(tensor, TensorSpec):
        return None
    if not is_kept(size.tensor, _KEEP_SHAPE, launch):
        return None
    if size.axis is None:
        return DeclaredSize(_product(tensor.shape), declaration)
    if -len(tensor.shape) <= size.axis < len(tensor.shape):
        return DeclaredSize(tensor.shape[size.axis], declaration)
    return None


def _product(sizes: Sequence[str]) -> str:
    """`M * (N // 2)`"""
    return (
        " * ".join(size if size.isidentifier() or len(sizes) == 1 else f"({size})" for size in sizes) or "1"
    )


def most_elements(value: ast.expr, launch: LaunchSite) -> int | None:
    """The most elements that a tensor of a launch has at the declared sizes; None where it is unknown."""
    for _ in range(_LIKES):
        value = owner_of(value, _KEEP_SHAPE)
        if not isinstance(value, ast.Name):
            return None
        if value.id in callers_parameters(launch):
            return _most_declared(Extent(value.id, None), launch)
        path, call = allocation(value.id, launch) or ("", None)
        if call is None or not call.args or path.removesuffix("_like") not in _MAKERS:
            return None
        if not path.endswith("_like"):
            return _elements([_most(size, launch) for size in _sizes_in(call)])
        value = call.args[0]
    return None


def _elements(shape: Sequence[int | None]) -> int | None:
    known = [size for size in shape if size is not None]
    return prod(known) if len(known) == len(shape) else None


def _most_declared(size: Extent, launch: LaunchSite) -> int | None:
    declared = declared_size(size, launch)
    return max(declared.values(), default=None) if declared else None


def _most(size: ast.expr, launch: LaunchSite) -> int | None:
    """The most that one size comes to."""
    if (number := constant(size, launch)) is not None:
        return number
    extent = size_of(size, launch)
    return _most_declared(extent, launch) if extent else None


def _sizes_in(call: ast.Call) -> Sequence[ast.expr]:
    """The sizes that torch.empty and the like are given."""
    first = call.args[0] if call.args else None
    return first.elts if isinstance(first, ast.Tuple | ast.List) else call.args


@lru_cache(maxsize=16)
def declaration_of(file: SourceFile) -> Declaration | None:
    """INPUTS, DIMS and REQUIRES where they are literals; None where there are none, or they do not read."""
    inputs, dims, requires = (_literal(name, file) for name in ("INPUTS", "DIMS", "REQUIRES"))
    if not isinstance(inputs, dict) or not isinstance(dims, dict):
        return None
    try:
        return parse_declaration(inputs, dims, requires if isinstance(requires, str | list | tuple) else ())
    except (BadDeclaration, TypeError, ValueError, AttributeError):
        return None


def literal_sizes(size: Extent, launch: LaunchSite) -> Sequence[int]:
    """The sizes of tensors that the file makes with literal shapes and passes to the launching function."""
    if launch.function is None:
        return ()
    names = [parameter.arg for parameter in parameters_of(launch.function)]
    if size.tensor not in names or not is_kept(size.tensor, _KEEP_SHAPE, launch):
        return ()
    place = names.index(size.tensor)
    given = (
        (argument(call, place, size.tensor), scope)
        for call, scope in _calls(launch.function.name, launch.kernel.file)
    )
    shapes = (_shape(value, scope) for value, scope in given if value is not None)
    return [
        size_along_axis
        for shape in shapes
        if shape and (size_along_axis := _along(shape, size.axis)) is not None
    ]


def constant(value: ast.expr, launch: LaunchSite) -> int | None:
    """What a value of the launching function comes to by literals and constants of the file; else None."""
    return literal_integer(_resolve(launch.flow.resolved(value), launch.flow.scope))


def _literal(name: str, file: SourceFile) -> object:
    binding = file.scope.find(name)
    try:
        return ast.literal_eval(binding.value) if binding and binding.value else None
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _calls(name: str, file: SourceFile) -> Iterator[tuple[ast.Call, NameScope]]:
    """The calls of a function by its name, each with the scope that it stands in."""
    for _, scope, body in file.bodies:
        for node in own_nodes(body):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                yield node, scope


def _shape(value: ast.expr, scope: NameScope) -> Sequence[int | None]:
    """The sizes that torch.randn and the like are given; None where one is no literal."""
    value = _resolve(value, scope)
    if not isinstance(value, ast.Call) or scope.path(value.func) not in _MAKERS:
        return ()
    return [literal_integer(_resolve(one, scope)) for one in _sizes_in(value)]


def _resolve(value: ast.expr, scope: NameScope) -> ast.expr:
    binding = scope.find(value.id) if isinstance(value, ast.Name) else None
    return binding.value if binding and binding.value else value


def _along(shape: Sequence[int | None], axis: int | None) -> int | None:
    if axis is not None:
        return shape[axis] if -len(shape) <= axis < len(shape) else None
    return _elements(shape)


def most_lanes(length: str, launch: LaunchSite) -> int | None:
    """The most that a length of the kernel comes to; None where nothing bounds it."""
    kernel = launch.kernel
    if length not in kernel.parameters:
        return int(length) if length.isdigit() else _file_constant(length, kernel)
    given = launch.given.get(length)
    if given is not None:
        return _upper_bound(given, launch)
    if "triton.heuristics" in kernel.decorators:
        return None
    chosen = [configuration.values.get(length) for configuration in configurations(kernel)]
    if chosen:
        lengths = [_upper_bound(value, launch) if value is not None else None for value in chosen]
        known = [one for one in lengths if one is not None]
        return max(known) if len(known) == len(lengths) else None
    if "triton.autotune" in kernel.decorators:
        return None
    return literal_integer(defaults_of(kernel.node).get(length))


def _file_constant(name: str, kernel: SourceKernel) -> int | None:
    """What a constant of the file comes to, `BLOCK = tl.constexpr(1024)` among them."""
    binding = kernel.file.scope.find(name)
    match binding.value if binding else None:
        case ast.Call(args=[number]) as call if (kernel.file.scope.path(call.func) or "").endswith(
            ".constexpr"
        ):
            return literal_integer(number)
        case value:
            return literal_integer(value)


def _upper_bound(value: ast.expr, launch: LaunchSite) -> int | None:
    """What a value comes to, or the number that `min(1024, ...)` keeps it from passing."""
    if (number := constant(value, launch)) is not None:
        return number
    match launch.flow.resolved(value):
        case ast.Call(func=ast.Name(id="min"), args=[*parts], keywords=[]):
            known = [number for part in parts if (number := _upper_bound(part, launch)) is not None]
            return min(known, default=None)
    return None
