"""An output is filled before a kernel that writes all of it.

torch.zeros writes the whole tensor to memory in a kernel of its own; then the Triton kernel writes it again,
and never reads what was there.

Fix: allocate it with torch.empty or torch.empty_like.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.launched_tensors import allocation, made_like, tensors_of
from pytorch_to_triton.audit.analysis.movement import escapes
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import KernelAccess, LaunchSite, SourceKernel
from pytorch_to_triton.triton_api.name_scope import own_nodes

SEVERITY = "low"
CATEGORY = "performance"
_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x * 2, mask=i < n)
"""
_RUN = """
def run(x):
    n = x.numel()
    out = {}
    kernel[(triton.cdiv(n, 64),)](x, out, n, B=64)
    return out
"""
BAD = (
    _KERNEL + _RUN.format("torch.zeros_like(x)"),
    _KERNEL + _RUN.format("torch.full_like(x, 0.0)").replace("x.numel()", "x.shape[0]"),
)
GOOD = (
    _KERNEL + _RUN.format("torch.empty_like(x)"),
    # Read, and added to.
    _KERNEL.replace("x * 2", "x + tl.load(out_ptr + i)") + _RUN.format("torch.zeros_like(x)"),
    _KERNEL.replace("tl.store", "tl.atomic_add") + _RUN.format("torch.zeros_like(x)"),
    # Written in part.
    _KERNEL.replace("    tl.store", "    if tl.max(x) > 0:\n        tl.store")
    + _RUN.format("torch.zeros_like(x)"),
    _KERNEL.replace("x * 2, mask=i < n", "x, mask=x > 0") + _RUN.format("torch.zeros_like(x)"),
    _KERNEL.replace("out_ptr + i, x", "out_ptr + x, i") + _RUN.format("torch.zeros_like(x)"),
    _KERNEL + _RUN.format("torch.zeros_like(x)").replace("return", "out[0] += 1\n    return"),
)
_FILLS = frozenset({"torch.zeros_like", "torch.ones_like", "torch.full_like"})


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Tensors made like an input, which the kernel stores at the very offsets at which it loads the input."""
    for launch in kernel.launches:
        given = tensors_of(launch, kernel)
        for parameter, name in given.items():
            made = allocation(name, launch)
            like = made_like(made[1]) if made and made[0] in _FILLS else None
            sources = [source for source, tensor in given.items() if tensor == like]
            if not made or not sources or _times_used(name, launch) > 2:
                continue
            if not escapes(kernel, parameter) and _is_covered(kernel, parameter, sources[0]):
                yield Fault(
                    made[1],
                    f"{made[0]} fills {name}, and {kernel.node.name} writes all of it again without reading "
                    "it.",
                    "Use torch.empty_like.",
                    f"torch.empty_like({like})",
                )


def _is_covered(kernel: SourceKernel, parameter: str, source: str) -> bool:
    """Whether a tensor is written once, unconditionally, wherever a load of another of its shape is made."""
    accesses = [access for access in kernel.accesses if access.pointer == parameter]
    if len(accesses) != 1 or accesses[0].name != "store" or _may_be_left_out(kernel, accesses[0]):
        return False
    place = _place(accesses[0])
    loads = (one for one in kernel.accesses if one.name == "load" and one.pointer == source)
    return place is not None and any(_place(load) == place for load in loads)


def _place(access: KernelAccess) -> tuple[str, ...] | None:
    """The addends of the address after the pointer, and the mask; None where it does not start so."""
    address, found = access.address, [ast.dump(access.mask) if access.mask else ""]
    while isinstance(address, ast.BinOp) and isinstance(address.op, ast.Add):
        found.append(ast.dump(address.right))
        address = address.left
    starts = isinstance(address, ast.Name) and address.id == access.pointer
    return tuple(found) if starts and len(found) > 1 else None


def _may_be_left_out(kernel: SourceKernel, access: KernelAccess) -> bool:
    """Whether a store stands in a branch, below a return, or where loaded values decide."""
    branches = any(isinstance(outer, ast.If | ast.While) for outer in kernel.flow.around(access.call))
    returns = any(isinstance(node, ast.Return) for node in kernel.nodes)
    deciding = [access.address, *([access.mask] if access.mask else [])]
    loaded = any(path == "triton.language.load" for path, _ in kernel.flow.calls(*deciding))
    return branches or returns or loaded


def _times_used(name: str, launch: LaunchSite) -> int:
    """How often the launching function reads a name, a plain mention in its return counted once."""
    nodes = own_nodes(launch.function.body if launch.function else [])
    return sum(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load) for node in nodes
    )
