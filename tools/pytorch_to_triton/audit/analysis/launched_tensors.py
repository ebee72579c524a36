"""The tensors that a launching function hands to its kernel: where they come from, what it asks of them."""

import ast
from collections.abc import Container, Iterator, Mapping
from functools import lru_cache

from pytorch_to_triton.audit.analysis.addresses import may_be_block
from pytorch_to_triton.audit.analysis.passed import Extent, unpacked_axes
from pytorch_to_triton.audit.call_arguments import argument
from pytorch_to_triton.audit.source import LaunchSite, SourceKernel
from pytorch_to_triton.triton_api.name_scope import parameters_of

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


def is_made_from(value: ast.expr, name: str, methods: Container[str]) -> bool:
    """Whether a value is the tensor of that name, or what these methods make of it."""
    match owner_of(value, methods):
        case ast.Name(id=own):
            return own == name
        case ast.IfExp(body=body, orelse=orelse):
            return is_made_from(body, name, methods) and is_made_from(orelse, name, methods)
    return False


def rank_of(tensor: str, launch: LaunchSite) -> int | None:
    """How many axes a tensor has, where its shape is unpacked into names."""
    ranks = {
        len(targets)
        for node in launch.nodes
        for owner, targets in unpacked_axes(node, "shape")
        if owner == tensor and not any(isinstance(target, ast.Starred) for target in targets)
    }
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


def tensors_of(launch: LaunchSite, kernel: SourceKernel) -> Mapping[str, str]:
    """The names that are passed for the kernel's pointers, by parameter."""
    pointers = {access.pointer for access in kernel.accesses}
    return {
        parameter: value.id
        for parameter, value in launch.given(kernel).items()
        if parameter in pointers and isinstance(value, ast.Name)
    }


def allocation(name: str, launch: LaunchSite) -> tuple[str, ast.Call] | None:
    """The call that makes a tensor in the launching function, with its path or its method's name.

    None where the name is assigned anywhere else, too.
    """
    bindings = launch.scope.bindings.get(name, ())
    if len(bindings) != 1 or not isinstance(bindings[0].value, ast.Call):
        return None
    call = bindings[0].value
    path = launch.scope.path(call.func)
    if path is None and isinstance(call.func, ast.Attribute):
        path = call.func.attr
    return (path, call) if path else None


def attributes_of(name: str, launch: LaunchSite) -> frozenset[str]:
    """The attributes and methods of a name that the launching function uses."""
    return frozenset(attribute for owner, attribute in _attributes(launch) if owner == name)


@lru_cache(maxsize=64)
def _attributes(launch: LaunchSite) -> frozenset[tuple[str, str]]:
    """Each `name.attribute` in the launching function."""
    return frozenset(
        (node.value.id, node.attr)
        for node in launch.nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    )


def unknown_layouts(launch: LaunchSite, kernel: SourceKernel) -> Iterator[str]:
    """The caller's tensors whose layout nothing in the launching function touches."""
    handed_on = _names_handed_on(launch)
    for parameter, name in tensors_of(launch, kernel).items():
        only_given = name in callers_parameters(launch) and len(launch.scope.bindings[name]) == 1
        if not only_given or name in handed_on or attributes_of(name, launch) & _RESOLVES_LAYOUT:
            continue
        if any(one.pointer == parameter and may_be_block(one.address, kernel) for one in kernel.accesses):
            yield name


def _names_handed_on(launch: LaunchSite) -> frozenset[str]:
    """The names that other functions are given, which may look at the layout, or that are assigned on."""
    names: set[str] = set()
    for node in launch.nodes:
        match node:
            case ast.Call(func=func, args=arguments, keywords=keywords) if not isinstance(
                func, ast.Subscript
            ):
                builtin = isinstance(func, ast.Name) and func.id in _BUILTINS
                if not builtin and launch.scope.path(func) not in _ASKS_LITTLE:
                    given = [*arguments, *(keyword.value for keyword in keywords)]
                    names |= {one.id for one in given if isinstance(one, ast.Name)}
            case ast.For(iter=ast.Tuple(elts=elements) | ast.List(elts=elements)):
                names |= {one.id for one in elements if isinstance(one, ast.Name)}
            case ast.GeneratorExp() | ast.ListComp():
                names |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return frozenset(names)
