"""Run by the environment's Python: the checkout's program, with its packages importable here alone.

PYTHONPATH would lead the processes that run kernels to the checkout as well.
"""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    root = Path(__file__).resolve().parents[2]
    sys.path[:1] = [str(root / "server"), str(root / "tools")]
    runpy.run_module("pytorch_to_triton_server", run_name="__main__", alter_sys=True)
