"""The arguments of triton.autotune, as far as the file spells them out."""

import ast
from collections.abc import Mapping

from pytorch_to_triton.audit.call_arguments import argument
from pytorch_to_triton.audit.source import SourceKernel

_ORDER = ("configs", "key", "prune_configs_by", "reset_to_zero", "restore_value", "pre_hook")
"""The first parameters of triton.autotune."""
_GROWS = frozenset({"append", "extend", "insert"})


def setting(kernel: SourceKernel, name: str) -> ast.expr | None:
    """The argument of that name of a kernel's triton.autotune; None where there is none.

    A name that the file assigns just once stands for its value.
    """
    autotune = kernel.decorators.get("triton.autotune")
    if not isinstance(autotune, ast.Call):
        return None
    given = argument(autotune, _ORDER.index(name), name)
    return (_spelled(given, kernel) or given) if isinstance(given, ast.Name) else given


def names(given: ast.expr | None) -> Mapping[str, ast.Constant] | None:
    """The literal names of a list, with where they stand; None where it is anything else."""
    match given:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            literals = [one for one in elements if isinstance(one, ast.Constant)]
            found = {one.value: one for one in literals if isinstance(one.value, str)}
            return found if len(literals) == len(elements) else None
    return None


def configuration_count(kernel: SourceKernel) -> int | None:
    """How many configurations the autotuner has; None where literals alone do not decide."""
    return _count(setting(kernel, "configs"), kernel)


def _count(configs: ast.expr | None, kernel: SourceKernel) -> int | None:
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


def _spelled(name: ast.Name, kernel: SourceKernel) -> ast.expr | None:
    """What the file assigns to a name, once; None where it is more than that or grows afterwards."""
    binding = (kernel.scope.parent or kernel.file.scope).find(name.id)
    if binding is None or _grows(name.id, kernel):
        return None
    return binding.value


def _grows(name: str, kernel: SourceKernel) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in _GROWS
        and isinstance(node.value, ast.Name)
        and node.value.id == name
        for node in kernel.file.nodes
    )


def sizes_of_loops(kernel: SourceKernel) -> tuple[str, ...]:
    """The runtime parameters that a loop's end is computed from alone, in the order of the parameters.

    What `do_not_specialize` names is left out: such sizes are known to change all the time.
    """
    jit = ast.dump(kernel.decorators.get("triton.jit") or ast.Constant(None))
    found: set[str] = set()
    for node in kernel.nodes:
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Call):
            found |= _ends(node.iter, kernel)
    return tuple(name for name in kernel.parameters if name in found and repr(name) not in jit)


def _ends(loop: ast.Call, kernel: SourceKernel) -> frozenset[str]:
    """The parameters of `range(n)` and of `range(0, tl.cdiv(n, BLOCK))`."""
    last = loop.args[1] if len(loop.args) > 1 else argument(loop, 0, "arg1")
    if last is None:
        return frozenset()
    paths = {path for path, _ in kernel.flow.calls(last)}
    if not paths <= {"triton.language.cdiv"}:
        return frozenset()
    return kernel.flow.parameters(last) & kernel.runtime_parameters
