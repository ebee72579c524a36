"""What triton.autotune is told, as far as the file spells it out."""

import ast

from pytorch_to_triton.audit.arguments import argument
from pytorch_to_triton.audit.source import Kernel

_PLACES = {"configs": 0, "key": 1, "prune_configs_by": 2, "reset_to_zero": 3, "restore_value": 4}
_GROWS = frozenset({"append", "extend", "insert"})


def setting(kernel: Kernel, name: str) -> ast.expr | None:
    """What a kernel's triton.autotune is given by that name; None where it is given none, or has no autotune.

    A name that the file assigns just once stands for its value.
    """
    autotune = kernel.decorators.get("triton.autotune")
    if not isinstance(autotune, ast.Call):
        return None
    given = argument(autotune, _PLACES[name], name)
    return _spelled(given, kernel) if isinstance(given, ast.Name) else given


def names(given: ast.expr | None) -> tuple[ast.Constant, ...] | None:
    """The literal names of a list; None where it is anything else."""
    match given:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            found = [one for one in elements if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            return tuple(found) if len(found) == len(elements) else None
    return None


def configuration_count(kernel: Kernel) -> int | None:
    """How many configurations the autotuner has; None where literals alone do not tell."""
    return _count(setting(kernel, "configs"), kernel)


def _count(configs: ast.expr | None, kernel: Kernel) -> int | None:
    match configs:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return None if any(isinstance(one, ast.Starred) for one in elements) else len(elements)
        case ast.ListComp(generators=generators) if not any(one.ifs for one in generators):
            product = 1
            for one in generators:
                choices = _count(one.iter, kernel)
                if choices is None:
                    return None
                product *= choices
            return product
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = _count(left, kernel), _count(right, kernel)
            return None if first is None or second is None else first + second
        case ast.Name():
            return _count(_spelled(configs, kernel), kernel)
    return None


def _spelled(name: ast.Name, kernel: Kernel) -> ast.expr | None:
    """What the file assigns to a name, once; None where it is more than that or grows afterwards."""
    binding = (kernel.scope.parent or kernel.file.scope).find(name.id)
    if binding is None or _grows(name.id, kernel):
        return None
    return binding.value


def _grows(name: str, kernel: Kernel) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in _GROWS
        and isinstance(node.value, ast.Name)
        and node.value.id == name
        for node in ast.walk(kernel.file.tree)
    )
