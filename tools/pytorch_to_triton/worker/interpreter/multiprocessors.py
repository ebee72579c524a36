"""How many multiprocessors the GPU has that the interpreter plays."""

import ast
import importlib.util
from pathlib import Path

SEVERAL = 3
"""Programs that share out blocks show mistakes only where there are several. No power of two, as in GPUs."""


def multiprocessors_for(file: Path) -> int:
    """SEVERAL, or one where a kernel of the file has a `while` loop.

    It may wait for programs that are to run at the same time, and here they run one after the other.
    """
    try:
        tree = ast.parse(importlib.util.decode_source(file.read_bytes()))
    except (OSError, ValueError, SyntaxError, RecursionError):
        return SEVERAL  # loading the file says what is wrong with it
    kernels = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and is_jitted(node))
    return 1 if any(isinstance(n, ast.While) for kernel in kernels for n in ast.walk(kernel)) else SEVERAL


def is_jitted(function: ast.FunctionDef) -> bool:
    return any("jit" in ast.unparse(decorator) for decorator in function.decorator_list)
