"""A function that launches a kernel allocates on a fixed device.

`device="cuda"` is the current GPU, and not the one the inputs lie on; on a machine with several, the kernel
gets memory of two.

Fix: pass the device of an input: `device=x.device`, or torch.empty_like(x).
"""

import ast
import re
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.callers import is_trial, launchers, tensor_parameters
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceFile
from pytorch_to_triton.triton_api.name_scope import own_nodes

SEVERITY = "low"
CATEGORY = "best practices"
_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n):
    i = tl.program_id(0) * 16 + tl.arange(0, 16)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
"""
BAD = (
    _KERNEL
    + """
def run(x):
    out = torch.empty(x.shape, device="cuda")
    kernel[(1,)](x, out, x.numel())
    return out
""",
    _KERNEL
    + """
def run(x):
    out = x.new_empty(x.numel(), device=torch.device("cuda:0"))
    kernel[(1,)](x, out, x.numel())
    return out
""",
    _KERNEL
    + """
def run(x):
    out = torch.empty(x.numel()).cuda()
    kernel[(1,)](x, out, x.numel())
    return out
""",
)
GOOD = (
    _KERNEL
    + """
def run(x):
    out = torch.empty(x.shape, device=x.device)
    kernel[(1,)](x, out, x.numel())
    return out
""",
    _KERNEL
    + """
def fill(n):
    out = torch.empty(n, device="cuda")
    kernel[(1,)](out, out, n)
    return out
""",
    _KERNEL
    + """
def benchmark(x):
    out = torch.empty(x.shape, device="cuda")
    kernel[(1,)](x, out, x.numel())
""",
    _KERNEL
    + """
def run(x):
    assert x.device.type == "cuda"
    out = torch.empty(x.shape, device="cpu", pin_memory=True)
    kernel[(1,)](x, out, x.numel())
""",
)
_GPU = re.compile(r"(?:cuda|hip|xpu|npu)(?::\d+)?")


def check(file: SourceFile) -> Iterator[Fault]:
    """Literal GPUs in functions that launch a kernel on tensors they are given."""
    scopes = dict(file.functions)
    for function in launchers(file) if not is_trial(file) else ():
        tensors = tensor_parameters(function)
        if not tensors or is_trial(file, function):
            continue
        for node in own_nodes(function.body):
            match node:
                case ast.keyword(arg="device", value=value) if _is_gpu(value):
                    pass
                case ast.Call(func=ast.Attribute(value=ast.Call(func=made), attr="cuda"), args=[]) if (
                    scopes[function].path(made) or ""
                ).startswith("torch."):
                    pass
                case _:
                    continue
            name = sorted(tensors)[0]
            yield Fault(
                node,
                f"{function.name} allocates on a fixed GPU; {name} may lie on another.",
                f"Write device={name}.device.",
                fix=f"device={name}.device" if isinstance(node, ast.keyword) else "",
            )


def _is_gpu(value: ast.expr) -> bool:
    match value:
        case ast.Constant(value=str(device)):
            return _GPU.fullmatch(device) is not None
        case ast.Call(func=ast.Attribute(attr="device"), args=[ast.Constant(value=str(device)), *_]):
            return _GPU.fullmatch(device) is not None
    return False
