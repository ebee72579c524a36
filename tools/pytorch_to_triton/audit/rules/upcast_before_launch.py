"""An input is converted to float32 by PyTorch before the launch.

The conversion reads the tensor and writes it at twice its size, in a kernel of its own, and the Triton
kernel then reads the larger copy: three to five times the traffic of reading the original.

Fix: pass the tensor as it is and convert in the kernel: `tl.load(...).to(tl.float32)`.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.callers import is_trial
from pytorch_to_triton.audit.analysis.launched_tensors import callers_parameters
from pytorch_to_triton.audit.analysis.movement import escapes
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import LaunchSite, SourceKernel
from pytorch_to_triton.triton_api.name_scope import own_nodes

SEVERITY = "low"
CATEGORY = "performance"
_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)
"""
_RUN = """
def run(x, out):
    {}
    kernel[(triton.cdiv(x.numel(), 64),)]({}, out, x.numel(), B=64)
"""
BAD = (
    _KERNEL + _RUN.format("x = x.float()", "x"),
    _KERNEL + _RUN.format("wide = x.to(torch.float32)", "wide"),
    _KERNEL + _RUN.format("pass", "x.to(dtype=torch.float32)"),
    _KERNEL + _RUN.format("wide = x.contiguous().float()", "wide"),
)
GOOD = (
    _KERNEL + _RUN.format("pass", "x"),
    _KERNEL + _RUN.format("x = x.to(torch.bfloat16)", "x"),
    # PyTorch needs it too.
    _KERNEL + _RUN.format("wide = x.float()\n    out += wide.sum()", "wide"),
    # The kernel changes the copy.
    _KERNEL.replace("out_ptr + i", "x_ptr + i") + _RUN.format("wide = x.float()", "wide"),
    _KERNEL + _RUN.format("x = x.to(out.device)", "x"),
    _KERNEL + _RUN.format("if x.dtype == torch.float64:\n        x = x.float()", "x"),
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Conversions of the caller's tensors to float32 for one launch alone, whose kernel only loads them."""
    reported: set[ast.expr] = set()
    for launch in kernel.launches:
        for parameter, value in launch.given(kernel).items():
            cast = _cast(value, launch)
            if cast is None or cast in reported or is_trial(kernel.file, launch.function):
                continue
            uses = [one for one in kernel.accesses if one.pointer == parameter]
            if uses and not any(one.writes for one in uses) and not escapes(kernel, parameter):
                reported.add(cast)
                yield Fault(
                    cast,
                    f"{ast.unparse(cast)} writes a copy of the tensor to memory for {kernel.node.name}, "
                    f"which could convert the values of {parameter} as it loads them.",
                    f"Pass the tensor as it is, and load {parameter} with `.to(tl.float32)`.",
                )


def _cast(value: ast.expr, launch: LaunchSite) -> ast.expr | None:
    """The conversion of a caller's tensor that an argument is and that nothing else uses."""
    name = value.id if isinstance(value, ast.Name) else None
    made = value if name is None else _assigned(name, launch)
    match made:
        case ast.Call(func=ast.Attribute(value=owner, attr="float"), args=[], keywords=[]):
            pass
        case (
            ast.Call(func=ast.Attribute(value=owner, attr="to"), args=[dtype], keywords=[])
            | ast.Call(
                func=ast.Attribute(value=owner, attr="to"),
                args=[],
                keywords=[ast.keyword(arg="dtype", value=dtype)],
            )
        ) if launch.scope.path(dtype) in ("torch.float32", "torch.float"):
            pass
        case _:
            return None
    match owner:
        case ast.Call(func=ast.Attribute(value=inner, attr="contiguous"), args=[]):
            owner = inner
    given = isinstance(owner, ast.Name) and owner.id in callers_parameters(launch)
    return made if given and (name is None or _serves_launch(name, launch)) else None


def _assigned(name: str, launch: LaunchSite) -> ast.expr | None:
    """What every call gives a name, once."""
    values = launch.flow.feeds(name)
    body = launch.function.body if launch.function else []
    plain = len(values) == 1 and launch.flow.parents.get(values[0]) in body
    return values[0] if plain else None


def _serves_launch(name: str, launch: LaunchSite) -> bool:
    """Whether a tensor is only asked for attributes, and passed to this one launch."""
    made = {*ast.walk(launch.flow.feeds(name)[0])}
    for node in own_nodes(launch.function.body if launch.function else []):
        if (
            not isinstance(node, ast.Name)
            or node.id != name
            or isinstance(node.ctx, ast.Store)
            or node in made
        ):
            continue
        around = launch.flow.parents.get(node)
        passed = around is launch.call or around in launch.call.keywords
        if not passed and not _is_metadata(around, launch):
            return False
    return True


def _is_metadata(node: ast.AST | None, launch: LaunchSite) -> bool:
    """`x.shape`, `x.numel()`, `torch.empty_like(x)`"""
    asked = ("shape", "numel", "stride", "device", "size", "dim", "ndim", "dtype")
    if isinstance(node, ast.Call):
        return launch.scope.path(node.func) in ("torch.empty_like", "torch.zeros_like")
    return isinstance(node, ast.Attribute) and node.attr in asked
