"""A function returns a tensor that it keeps and overwrites at the next call.

The output comes out of a cache that outlives the call. The next call of the same shape overwrites the
result that the first caller still holds.

Fix: allocate outputs in every call, torch.empty is cheap with PyTorch's caching allocator; keep only
scratch memory that is never returned.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.callers import launchers, stored, tensor_parameters
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import Function, LaunchSite, SourceFile
from pytorch_to_triton.triton_api.name_scope import NameScope, own_nodes

SEVERITY = "high"
CATEGORY = "correctness"
_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n):
    i = tl.program_id(0) * 16 + tl.arange(0, 16)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
"""
BAD = (
    "_outputs = {}\n"
    + _KERNEL
    + """
def run(x):
    if x.shape not in _outputs:
        _outputs[x.shape] = torch.empty_like(x)
    out = _outputs[x.shape]
    kernel[(1,)](x, out, x.numel())
    return out
""",
    "_cache = dict()\n"
    + _KERNEL
    + """
def run(x):
    if x.data_ptr() in _cache:
        return _cache[x.data_ptr()]
    out = torch.empty_like(x)
    kernel[(1,)](x, out, x.numel())
    _cache[x.data_ptr()] = out
    return out
""",
    "from functools import lru_cache\n"
    + _KERNEL
    + """
@lru_cache(maxsize=None)
def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, x.numel())
    return out
""",
)
GOOD = (
    _KERNEL
    + """
def run(x):
    outputs = {}
    outputs.get(x.shape)
    out = torch.empty_like(x)
    outputs["copy"] = out
    kernel[(1,)](x, out, x.numel())
    return out
""",
    "_scratch = {}\n"
    + _KERNEL
    + """
def run(x):
    out = torch.empty_like(x)
    buffer = _scratch[x.shape]
    kernel[(1,)](x, buffer, x.numel())
    kernel[(1,)](buffer, out, x.numel())
    return out
""",
    "_sizes = {}\n"
    + _KERNEL
    + """
def run(x):
    out = torch.empty_like(x)
    n = _sizes[x.shape]
    kernel[(1,)](x, out, n)
    return out
""",
    # A table that depends on nothing but its key.
    "_tables = {}\n"
    + _KERNEL
    + """
def table(n):
    if n not in _tables:
        out = torch.empty(n)
        kernel[(1,)](out, out, n)
        _tables[n] = out
    out = _tables[n]
    return out
""",
    "import functools\n"
    + _KERNEL
    + """
@functools.cache
def fill(n):
    out = torch.empty(n)
    kernel[(1,)](out, out, n)
    return out
""",
)
_CACHES = frozenset({"functools.cache", "functools.lru_cache"})
_TENSOR_MEMBERS = frozenset({"numel", "shape", "stride", "data_ptr", "dtype", "device"})


def check(file: SourceFile) -> Iterator[Fault]:
    """Outputs of launches that a dict of the file holds, and cached functions of tensors that launch."""
    scopes = dict(file.functions)
    for function, launches in launchers(file).items():
        returned = {
            node.value.id
            for node in own_nodes(function.body)
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Name)
        }
        outputs = {name for launch in launches for name in _written(launch, file)} & returned
        for name in sorted(outputs) if _reads_tensors(function, launches, outputs) else ():
            if _is_cached(function, scopes[function]):
                message = (
                    f"{function.name} is cached by its tensors: changed in place, they get the old result."
                )
                yield Fault(function, message, "Do not cache it.")
            elif (place := _kept(name, function, file)) and _is_looked_up(place.value, function):
                yield Fault(
                    place,
                    f"{function.name} keeps {name} in `{ast.unparse(place.value)}`, which outlives the call, "
                    "and returns it: the next call with the same key gives the same memory.",
                    f"Allocate {name} in every call.",
                )


def _written(launch: LaunchSite, file: SourceFile) -> Iterator[str]:
    """The names that a launch passes for what its kernel writes through."""
    kernel = file.kernel_of(launch)
    for parameter, value in launch.given(kernel).items() if kernel else ():
        if isinstance(value, ast.Name) and kernel and parameter in stored(kernel):
            yield value.id


def _reads_tensors(function: Function, launches: list[LaunchSite], outputs: set[str]) -> bool:
    """Whether a launch is passed a tensor that may change while the key stays the same."""
    passed = {
        value.id
        for launch in launches
        for value in (*launch.call.args, *launch.options.values())
        if isinstance(value, ast.Name)
    }
    return bool(passed & tensor_parameters(function) - outputs)


def _is_looked_up(kept: ast.expr, function: Function) -> bool:
    """Whether the function also reads from the dict."""
    name = ast.unparse(kept)
    for node in own_nodes(function.body):
        match node:
            case (
                ast.Subscript(value=ast.Name(id=read), ctx=ast.Load())
                | ast.Attribute(value=ast.Name(id=read), attr="get")
            ) if read == name:
                return True
    return False


def _kept(name: str, function: Function, file: SourceFile) -> ast.Subscript | None:
    """The element of a dict of the file that the name comes from or goes to."""
    for node in own_nodes(function.body):
        match node:
            case ast.Assign(targets=[ast.Name(id=assigned)], value=ast.Subscript() as element) if (
                assigned == name
            ):
                pass
            case ast.Assign(targets=[ast.Subscript() as element], value=ast.Name(id=assigned)) if (
                assigned == name
            ):
                pass
            case _:
                continue
        if isinstance(element.value, ast.Name) and _is_dict(element.value.id, file):
            return element
    return None


def _is_dict(name: str, file: SourceFile) -> bool:
    """Whether the file itself starts the name as an empty dict."""
    binding = file.scope.find(name)
    match binding.value if binding else None:
        case ast.Dict(keys=[]) | ast.Call(func=ast.Name(id="dict"), args=[], keywords=[]):
            return True
    return False


def _is_cached(function: Function, scope: NameScope) -> bool:
    """Whether functools caches it by a parameter that is used as a tensor."""
    around = scope.parent or scope
    targets = [one.func if isinstance(one, ast.Call) else one for one in function.decorator_list]
    members = [node for node in own_nodes(function.body) if isinstance(node, ast.Attribute)]
    return any(around.path(target) in _CACHES for target in targets) and any(
        isinstance(node.value, ast.Name)
        and node.attr in _TENSOR_MEMBERS
        and _is_parameter(node.value.id, scope)
        for node in members
    )


def _is_parameter(name: str, scope: NameScope) -> bool:
    return any(isinstance(binding.node, ast.arg) for binding in scope.bindings.get(name, ()))
