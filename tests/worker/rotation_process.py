"""Run by test_rotation.py in a process of its own: what a rotation does to an autotuner, as JSON."""

import json
import sys
from typing import Any

import triton
from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime.autotuner import Autotuner

from pytorch_to_triton.worker.tuning.rotation import Rotation


class Kernel:
    """In place of a JIT function: notes the block size of each run."""

    __name__ = "kernel"

    def __init__(self) -> None:
        self.fn, self.arg_names, self.runs = named, ["x", "n", "BLOCK"], []

    def run(self, x: Any, n: int, BLOCK: int, **options: Any) -> None:
        if BLOCK == TOO_LARGE:
            raise CompileTimeAssertionFailure(None, None, "too large")
        self.runs.append(BLOCK)


def named() -> None: ...


TOO_LARGE = 4096
rotation = Rotation(int(sys.argv[1]))
kernel = Kernel()
configs = [triton.Config({"BLOCK": block}) for block in (64, TOO_LARGE, 128)]
tuner = Autotuner(kernel, kernel.arg_names, configs, ["n"], None, None)
chosen = []
for n in (1, 2, 3, 3, 4):
    kernel.runs.clear()
    tuner.run(None, n, grid=(1,), warmup=False)
    chosen.append({"n": n, "runs": list(kernel.runs)})
print(json.dumps({"chosen": chosen, "summary": rotation.summary()}))
