"""Which tensors a launching function hands on without asking how they lie in memory."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.launched_tensors import asked_of, callers_parameters, tensors_of
from pytorch_to_triton.audit.analysis.movement import is_scalar
from pytorch_to_triton.audit.source import LaunchSite, SourceKernel
from pytorch_to_triton.triton_api.name_scope import own_nodes

_SETTLES = frozenset(
    {"stride", "contiguous", "is_contiguous", "view", "reshape", "flatten", "as_strided", "to_local"}
)
_ASKS_LITTLE = frozenset(
    {"torch.empty_like", "torch.zeros_like", "torch.ones_like", "torch.is_tensor", "torch.full_like"}
)
_BUILTINS = frozenset({"len", "isinstance", "type", "print"})


def unsettled(launch: LaunchSite, kernel: SourceKernel) -> Iterator[str]:
    """The caller's tensors whose layout nothing in the launching function touches."""
    handed_on = _handed_on(launch)
    for parameter, name in tensors_of(launch, kernel).items():
        only_given = name in callers_parameters(launch) and len(launch.scope.bindings[name]) == 1
        if not only_given or name in handed_on or asked_of(name, launch) & _SETTLES:
            continue
        if any(one.pointer == parameter and not is_scalar(kernel, one.address) for one in kernel.accesses):
            yield name


def _handed_on(launch: LaunchSite) -> frozenset[str]:
    """The names that other functions are given, which may look at the layout, or that are assigned on."""
    found: set[str] = set()
    for node in own_nodes(launch.function.body if launch.function else []):
        match node:
            case ast.Call(func=func, args=arguments, keywords=keywords) if not isinstance(
                func, ast.Subscript
            ):
                builtin = isinstance(func, ast.Name) and func.id in _BUILTINS
                if not builtin and launch.scope.path(func) not in _ASKS_LITTLE:
                    given = [*arguments, *(keyword.value for keyword in keywords)]
                    found |= {one.id for one in given if isinstance(one, ast.Name)}
            case ast.For(iter=ast.Tuple(elts=elements) | ast.List(elts=elements)):
                found |= {one.id for one in elements if isinstance(one, ast.Name)}
            case ast.GeneratorExp() | ast.ListComp():
                found |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return frozenset(found)
