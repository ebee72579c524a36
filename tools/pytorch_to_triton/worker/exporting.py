"""What torch.export imports and makes at its first call: a fork server imports this once for all that trace.

It runs no tensor operation. A module that this torch does not have is passed over.
"""

from contextlib import suppress
from importlib import import_module

import torch

for name in (
    "sympy.tensor.tensor",
    "torch._functorch._aot_autograd.subclass_parametrization",
    "torch._inductor.compiler_bisector",
    "torch._inductor.fx_passes.dedupe_symint_uses",
    "torch._inductor.pattern_matcher",
    "torch._inductor.sizevars",
    "torch._subclasses.schema_check_mode",
    "torch.export._trace",
    "torch.fx.experimental.validator",
    "triton.experimental.gluon",
    "pytorch_to_triton_worker.jobs.describe",
    "pytorch_to_triton_worker.tracing.export",
):
    with suppress(ImportError):
        import_module(name)
# Its keys are all operators of PyTorch, each of which torch makes when it is first asked for.
list(torch.export.default_decompositions())
