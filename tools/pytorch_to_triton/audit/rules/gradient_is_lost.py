"""A module launches a kernel on its parameters in forward, outside of autograd.

PyTorch does not see what a kernel computes: the result has no gradient function, backward() stops there,
and the module's parameters are never trained. There is no warning.

Fix: launch in a torch.autograd.Function with a backward, or register the kernel with
torch.library.triton_op and register_autograd. Where the module is for inference, decorate forward with
torch.no_grad().
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.callers import is_trial, launchers, makes_tensor, stored
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import Function, LaunchSite, SourceFile

SEVERITY = "low"
CATEGORY = "correctness"
_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n):
    i = tl.program_id(0) * 16 + tl.arange(0, 16)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
"""
_INIT = """
class Scale(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(n))
"""
BAD = (
    _KERNEL
    + _INIT
    + """
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[(1,)](self.weight, out, x.numel())
        return out
""",
    _KERNEL
    + _INIT
    + """
    def forward(self, x):
        weight = self.weight.contiguous()
        out = torch.empty(x.shape, device=x.device)
        kernel[(1,)](weight, out_ptr=out, n=x.numel())
        return out.view(-1)
""",
)
GOOD = (
    _KERNEL
    + _INIT
    + """
    @torch.no_grad()
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[(1,)](self.weight, out, x.numel())
        return out
""",
    _KERNEL
    + _INIT.replace(
        "torch.nn.Parameter(torch.ones(n))", "torch.nn.Parameter(torch.ones(n), requires_grad=False)"
    )
    + """
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[(1,)](self.weight, out, x.numel())
        return out
""",
    _KERNEL
    + _INIT
    + """
    def forward(self, x):
        return ScaleFunction.apply(x, self.weight)
""",
    _KERNEL
    + _INIT
    + """
    def forward(self, x):
        assert not torch.is_grad_enabled()
        out = torch.empty_like(x)
        kernel[(1,)](self.weight, out, x.numel())
        return out
""",
)
_AWARE = frozenset(
    {"requires_grad", "requires_grad_", "no_grad", "inference_mode", "is_grad_enabled", "set_grad_enabled"}
    | {"training", "detach", "triton_op", "custom_op", "register_autograd"}
)
"""A file that has one of these has thought of gradients."""


def check(file: SourceFile) -> Iterator[Fault]:
    """Launches in `forward` on parameters of the module, where the file never speaks of gradients."""
    launching = launchers(file)
    if not any(function.name == "forward" for function in launching) or is_trial(file) or _is_aware(file):
        return
    for module in file.nodes:
        if not isinstance(module, ast.ClassDef):
            continue
        parameters = _parameters(module, file)
        for function in module.body:
            launches = launching.get(function, []) if isinstance(function, Function) else []
            for launch in launches:
                used = sorted(_members(launch) & parameters)
                if used and _writes_new(launch, file):
                    yield Fault(
                        launch.call,
                        f"Autograd does not see this launch: {module.name}.{used[0]} gets no gradient.",
                        "Launch in a torch.autograd.Function, or decorate forward with torch.no_grad().",
                    )


def _is_aware(file: SourceFile) -> bool:
    return any(
        (isinstance(node, ast.Attribute) and node.attr in _AWARE)
        or (isinstance(node, ast.keyword) and node.arg in _AWARE)
        for node in file.nodes
    )


def _parameters(module: ast.ClassDef, file: SourceFile) -> frozenset[str]:
    """The members that are assigned a torch.nn.Parameter."""
    found = set()
    for node in ast.walk(module):
        match node:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=ast.Call(func=func)
            ) if file.scope.path(func) in ("torch.nn.Parameter", "torch.nn.parameter.Parameter"):
                found.add(name)
    return frozenset(found)


def _members(launch: LaunchSite) -> frozenset[str]:
    """The members of self that its arguments are made from."""
    arguments = [*launch.call.args, *launch.options.values()]
    return frozenset(
        node.attr
        for node in launch.flow.origins(*arguments)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    )


def _writes_new(launch: LaunchSite, file: SourceFile) -> bool:
    """Whether its kernel writes to a tensor that the function makes."""
    kernel = file.kernel_of(launch)
    given = launch.given(kernel) if kernel else {}
    return kernel is not None and any(
        makes_tensor(launch.flow.resolved(value), launch.scope)
        for name, value in given.items()
        if name in stored(kernel)
    )
