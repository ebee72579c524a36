"""What torch.export imports and makes at its first call: a fork server imports this once for all that trace.

It runs no tensor operation. With a GPU it is torch.export alone: among the rest is what asks CUDA for its
devices, and then no process that is forked from the server can use them. A module that this torch lacks is
passed over.
"""

from contextlib import suppress
from importlib import import_module

from .runtime import interpreting

ON_A_CPU = (
    "sympy.tensor.tensor",
    "torch._export.passes._node_metadata_hook",
    "torch._export.passes.replace_autocast_with_hop_pass",
    "torch._export.passes.replace_set_grad_with_hop_pass",
    "torch._functorch._aot_autograd.subclass_parametrization",
    "torch._inductor.compiler_bisector",
    "torch._inductor.fx_passes.dedupe_symint_uses",
    "torch._inductor.sizevars",
    "torch._subclasses.schema_check_mode",
    "torch.fx.experimental.validator",
    "triton.experimental.gluon",
    "pytorch_to_triton_worker.tracing.export",
)

for name in ("torch.export._trace", *(ON_A_CPU if interpreting() else ())):
    with suppress(ImportError):
        import_module(name)
if interpreting():
    decomposition = import_module("pytorch_to_triton_worker.tracing.decomposition")
    decomposition.known_decompositions()
    decomposition.composites()
