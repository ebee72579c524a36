"""What Triton's own interpreter lacks: libdevice, products in parts, loops, and anything to time by."""

from __future__ import annotations

import ast

from pytorch_to_triton.benchmark.tuning.freeze import autotuned_kernels
from pytorch_to_triton.draft.ir.functions import QUOTIENT

PYTORCH = {
    "acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atan": "atan", "atan2": "atan2",
    "atanh": "atanh", "ceil": "ceil", "copysign": "copysign", "cos": "cos",
    "cosh": "cosh", "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "exp": "exp", "exp2": "exp2",
    "expm1": "expm1", "fabs": "abs", "floor": "floor", "fmax": "fmax", "fmin": "fmin", "fmod": "fmod",
    "hypot": "hypot", "lgamma": "lgamma", "log": "log", "log10": "log10", "log1p": "log1p", "log2": "log2",
    "nextafter": "nextafter", "pow": "pow", "rint": "round",
    "nearbyint": "round", "rsqrt": "rsqrt", "sin": "sin", "sinh": "sinh", "sqrt": "sqrt", "tan": "tan",
    "tanh": "tanh", "trunc": "trunc",
}  # fmt: skip
"""libdevice's functions of numbers -> PyTorch's."""

FOR_THE_INTERPRETER = """\
if {interpreted} and libdevice.{first}.__module__ == libdevice.__name__:
    # Triton's interpreter has stubs for libdevice: there PyTorch computes what the kernels use of it.
    from triton.runtime.interpreter import TensorHandle

    def {computed}(function):
        def apply(*operands):
            given = tl.broadcast(*operands) if len(operands) > 1 else operands
            computed = function(*(torch.from_numpy(x.handle.data.copy()) for x in given))
            return tl.tensor(TensorHandle(computed.numpy(), given[0].dtype), given[0].type)

        return staticmethod(apply)

    class libdevice:
{functions}"""


FLOAT32 = '''\
    def float32_precision(setting, device):
        """Triton's interpreter knows no products in parts: it multiplies float32 as it is."""
        return "ieee"'''
"""In place of the function of that name in a drafted file, which says how tl.dot multiplies float32."""
DIVISION = '''\
    @triton.jit
    def quotient_rn(x, y):
        """Triton's interpreter rounds the product of a tl.fma, and divides exactly."""
        return x / y'''
"""In place of a drafted file's exact quotients."""
COUNTING = '''\
    def {counting}(tensor, *scope, patch=triton.runtime.interpreter._patch_lang_tensor):
        """As Triton's interpreter has it; that of 3.6 cannot count to a number with NumPy 2.5."""
        patch(tensor, *scope)
        tensor.__index__ = lambda self: self.handle.data.item()

    triton.runtime.interpreter._patch_lang_tensor = {counting}'''
"""In place of what makes its tensors, for kernels with loops: a number is an array of one dimension there."""
UNTIMED = """\
    # Triton's interpreter has nothing to time by: the first configuration that pruning leaves is taken.
    if {first}._bench.__module__ == "triton.runtime.autotuner":
{lines}"""


def libdevice_functions(text: str) -> tuple[str, ...]:
    """The functions that a file calls as `libdevice.NAME`."""
    names = (
        node.attr
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "libdevice"
    )
    return tuple(sorted(dict.fromkeys(names)))


def behind_the_kernels(text: str, interpreted: str, counting: str) -> str:
    """Source that changes what the file itself defines; empty where there is nothing to change."""
    defined = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    parts = [FLOAT32] if "float32_precision" in defined else []
    parts += [DIVISION] if QUOTIENT.source in text else []
    parts += [COUNTING.format(counting=counting)] if "range(" in text else []
    if tuned := [name for name in autotuned_kernels(text) if name in defined]:
        lines = (f"        {name}._bench = lambda *args, **options: 0.0" for name in tuned)
        parts.append(UNTIMED.format(first=tuned[0], lines="\n".join(lines)))
    inside = "\n\n".join(parts)
    return f"if {interpreted}:\n{inside}" if parts else ""


def for_the_interpreter(text: str, interpreted: str, computed: str) -> str:
    """Source that stands in for libdevice under the interpreter; empty where the file uses none of it."""
    functions = [name for name in libdevice_functions(text) if name in PYTORCH]
    if not functions:
        return ""
    lines = [f"        {name} = {computed}(torch.{PYTORCH[name]})" for name in functions]
    return FOR_THE_INTERPRETER.format(
        interpreted=interpreted, first=functions[0], computed=computed, functions="\n".join(lines)
    )
