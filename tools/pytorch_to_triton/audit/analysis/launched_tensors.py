"""The tensors that a launching function hands to its kernel: sizes, strides, and where they come from."""

import ast
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from pytorch_to_triton.audit.analysis.addresses import may_be_block
from pytorch_to_triton.audit.call_arguments import argument, literal_integer
from pytorch_to_triton.audit.source import LaunchSite
from pytorch_to_triton.triton_api.name_scope import parameters_of


@dataclass(frozen=True)
class Extent:
    """The size or the stride of a tensor along one axis, or its number of elements."""

    tensor: str
    """As the source spells it."""
    axis: int | None
    """From 0, from the end where negative; None: all elements."""


def size_of(value: ast.expr, launch: LaunchSite) -> Extent | None:
    """The size that a value certainly is; names are followed, `rows, cols = x.shape` among them."""
    value = launch.flow.resolved(value)
    match value:
        case ast.BinOp(op=ast.Mult()):
            return _whole([size_of(factor, launch) for factor in factors_of(value, launch)], launch)
        case ast.Subscript(value=ast.Attribute(value=owner, attr="shape"), slice=index):
            return _extent(owner, index)
        case (
            ast.Call(func=ast.Attribute(value=owner, attr="size"), args=[index], keywords=[])
            | ast.Subscript(
                value=ast.Call(func=ast.Attribute(value=owner, attr="size"), args=[]), slice=index
            )
        ):
            return _extent(owner, index)
        case ast.Call(func=ast.Attribute(value=owner, attr="numel" | "nelement"), args=[]):
            return Extent(ast.unparse(owner), None)
        case ast.Call(func=ast.Name(id="len"), args=[owner]):
            return Extent(ast.unparse(owner), 0)
    return None


def factors_of(value: ast.expr, launch: LaunchSite) -> list[ast.expr]:
    """What a product multiplies, names for products followed; the value itself where it is none."""
    match launch.flow.resolved(value):
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return [*factors_of(left, launch), *factors_of(right, launch)]
    return [value]


def _whole(factors: list[Extent | None], launch: LaunchSite) -> Extent | None:
    """All elements, where the factors are the sizes along all axes of a tensor whose shape is unpacked."""
    tensors = {factor.tensor if factor else None for factor in factors}
    axes = sorted(factor.axis for factor in factors if factor and factor.axis is not None)
    tensor = (tensors.pop() or "") if len(tensors) == 1 else ""
    return Extent(tensor, None) if tensor and axes == [*range(rank_of(tensor, launch) or -1)] else None


def stride_of(value: ast.expr, launch: LaunchSite) -> Extent | None:
    """The stride that a value certainly is; names are followed, `sm, sn = x.stride()` among them."""
    match launch.flow.resolved(value):
        case (
            ast.Call(func=ast.Attribute(value=owner, attr="stride"), args=[index], keywords=[])
            | ast.Subscript(
                value=ast.Call(func=ast.Attribute(value=owner, attr="stride"), args=[]), slice=index
            )
        ):
            return _extent(owner, index)
    return None


def _extent(owner: ast.expr, index: ast.expr) -> Extent | None:
    axis = literal_integer(index)
    return None if axis is None else Extent(ast.unparse(owner), axis)


_RESOLVES_LAYOUT = frozenset(
    {"stride", "contiguous", "is_contiguous", "view", "reshape", "flatten", "as_strided", "to_local"}
)
_ASKS_LITTLE = frozenset(
    {"torch.empty_like", "torch.zeros_like", "torch.ones_like", "torch.is_tensor", "torch.full_like"}
)
_KEEPS_SHAPE = frozenset({"contiguous", "clone", "detach", "to", "float", "half"})
_BUILTINS = frozenset({"len", "isinstance", "type", "print"})


def owner_of(value: ast.expr, methods: Container[str] | None = None) -> ast.expr:
    """x of `x.contiguous()`: calls of these methods are left out; None: of any."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if methods is not None and value.func.attr not in methods:
            break
        value = value.func.value
    return value


def is_kept(tensor: str, methods: Container[str], launch: LaunchSite) -> bool:
    """Whether all that the launching function assigns to a tensor's name is what these methods make of it."""
    return all(_is_made_from(value, tensor, methods) for value in launch.flow.feeds(tensor))


def _is_made_from(value: ast.expr, name: str, methods: Container[str]) -> bool:
    match owner_of(value, methods):
        case ast.Name(id=own):
            return own == name
        case ast.IfExp(body=body, orelse=orelse):
            return _is_made_from(body, name, methods) and _is_made_from(orelse, name, methods)
    return False


def rank_of(tensor: str, launch: LaunchSite) -> int | None:
    """How many axes a tensor has, where its shape is unpacked into names."""
    ranks: set[int] = set()
    for node in launch.flow.nodes:
        match node:
            case ast.Assign(
                targets=[ast.Tuple(elts=targets)],
                value=ast.Attribute(value=owner, attr="shape")
                | ast.Call(func=ast.Attribute(value=owner, attr="size"), args=[]),
            ) if ast.unparse(owner) == tensor and not any(isinstance(one, ast.Starred) for one in targets):
                ranks.add(len(targets))
    return ranks.pop() if len(ranks) == 1 else None


def text_of(size: Extent) -> str:
    """`x.shape[0]`"""
    return f"{size.tensor}.numel()" if size.axis is None else f"{size.tensor}.shape[{size.axis}]"


def callers_parameters(launch: LaunchSite) -> frozenset[str]:
    """The parameters of the launching function."""
    return frozenset(p.arg for p in parameters_of(launch.function)) if launch.function else frozenset()


def callers_size(size: Extent, launch: LaunchSite) -> Extent | None:
    """A size as one of a tensor that the caller passes: this one, or the one that it is made like."""
    if size.tensor in callers_parameters(launch):
        return size
    path, call = allocation(size.tensor, launch) or ("", None)
    like = None
    if call and path.endswith("_like"):
        like = argument(call, 0, "input")
    elif call and path in _KEEPS_SHAPE:
        like = owner_of(call, _KEEPS_SHAPE)
    elif call and call.args and isinstance(call.args[0], ast.Attribute) and call.args[0].attr == "shape":
        like = call.args[0].value
    return callers_size(Extent(like.id, size.axis), launch) if isinstance(like, ast.Name) else None


def tensors_of(launch: LaunchSite) -> Mapping[str, str]:
    """The names that are passed for the kernel's pointers, by parameter."""
    pointers = {access.pointer for access in launch.kernel.accesses}
    return {
        parameter: value.id
        for parameter, value in launch.given.items()
        if parameter in pointers and isinstance(value, ast.Name)
    }


def allocation(name: str, launch: LaunchSite) -> tuple[str, ast.Call] | None:
    """The call that makes a tensor in the launching function, with its path or its method's name.

    None where the name is assigned anywhere else, too.
    """
    bindings = launch.flow.scope.bindings.get(name, ())
    if len(bindings) != 1 or not isinstance(bindings[0].value, ast.Call):
        return None
    call = bindings[0].value
    path = launch.flow.scope.path(call.func)
    if path is None and isinstance(call.func, ast.Attribute):
        path = call.func.attr
    return (path, call) if path else None


def unknown_layouts(launch: LaunchSite) -> Iterator[str]:
    """The caller's tensors whose layout nothing in the launching function touches."""
    looked_at = _names_handed_on(launch) | {
        node.value.id
        for node in launch.flow.nodes
        if isinstance(node, ast.Attribute) and node.attr in _RESOLVES_LAYOUT
        if isinstance(node.value, ast.Name)
    }
    for parameter, name in tensors_of(launch).items():
        only_given = name in callers_parameters(launch) and len(launch.flow.scope.bindings[name]) == 1
        if not only_given or name in looked_at:
            continue
        if any(
            access.pointer == parameter and may_be_block(access.address, launch.kernel)
            for access in launch.kernel.accesses
        ):
            yield name


def _names_handed_on(launch: LaunchSite) -> frozenset[str]:
    """The names that other functions are given, which may look at the layout, or that are assigned on."""
    names: set[str] = set()
    for node in launch.flow.nodes:
        match node:
            case ast.Call(func=func, args=arguments, keywords=keywords) if not isinstance(
                func, ast.Subscript
            ):
                builtin = isinstance(func, ast.Name) and func.id in _BUILTINS
                if not builtin and launch.flow.scope.path(func) not in _ASKS_LITTLE:
                    given = [*arguments, *(keyword.value for keyword in keywords)]
                    names |= {passed.id for passed in given if isinstance(passed, ast.Name)}
            case ast.For(iter=ast.Tuple(elts=elements) | ast.List(elts=elements)):
                names |= {element.id for element in elements if isinstance(element, ast.Name)}
            case ast.GeneratorExp() | ast.ListComp():
                names |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return frozenset(names)
