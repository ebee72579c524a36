"""Hands expressions to the front end of the Triton of this Python, which needs nothing else installed.

    python front_end.py < expressions.json > answers.json

Each expression stands in a kernel `(p, x, m)`: a pointer, a number, a mask. Its compilation is ended right
after it by an assertion that fails, so that an answer says what the front end made of the expression alone:
empty where the assertion was reached, else what it refused.
"""

import importlib.util
import json
import sys
import tempfile
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

END = "reached the end"
HEAD = """import triton
import triton.language as tl
from triton.language.extra import libdevice


"""
KERNEL = """@triton.jit
def kernel_{number}(p, x, m):
    {expression}
    tl.static_assert(False, "{end}")


"""
SIGNATURE = {"p": "*fp32", "x": "fp32", "m": "i1"}


def answer(kernel: object) -> str:
    try:
        triton.compile(ASTSource(kernel, SIGNATURE, {}), target=GPUTarget("cuda", 90, 32))
    except Exception as error:
        reported = str(error)
        return "" if reported.rstrip().endswith(END) else reported
    raise AssertionError("a static assertion held that cannot")


def main() -> None:
    expressions = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernels.py")
        kernels = (KERNEL.format(number=n, expression=e, end=END) for n, e in enumerate(expressions))
        file.write_text(HEAD + "".join(kernels), encoding="utf-8")
        spec = importlib.util.spec_from_file_location("kernels", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        answers = [answer(getattr(module, f"kernel_{number}")) for number in range(len(expressions))]
    json.dump({"version": triton.__version__, "answers": answers}, sys.stdout)


if __name__ == "__main__":
    main()
