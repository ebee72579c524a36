"""Every kernel file loads from either of its staged copies, and computes the same."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from run_checks import refused

from pytorch_to_triton.worker.loading.staging import only, stage, without
from pytorch_to_triton.worker.loading.target import Loaded, load

ROOT = Path(__file__).parents[3]
MATMUL = {"x": (5, 8), "w": (8, 6), "b": (6,)}
ROWS = {"x": (5, 8), "w": (8,), "b": (8,)}
COMPUTED = {"matmul_bias_activation": MATMUL, "softmax": ROWS, "layer_norm": ROWS}
"""Those that are called too, with the shapes of their tensors."""
FOLDERS = ("reference_kernels", "tests/kernels", "tests/kernels/honest", "tests/kernels/wrong")
KERNELS = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.py"))]
STEP = 1 if os.environ.get("ALL_KERNELS") else 6


def staged(path: Path, role: Any, source: str, folder: Path) -> Loaded:
    return load({"path": str(path), "name": None}, role, {str(path): str(stage(path, source, folder / role))})


def a_kernel_file_loads_from_either_copy_and_computes_the_same() -> None:
    for path in [p for i, p in enumerate(KERNELS) if i % STEP == 0 or p.stem in COMPUTED]:
        text = path.read_text()
        with TemporaryDirectory() as folder:
            copy = without(text, ["reference", "Model"], ["run", "ModelNew"])
            candidate = staged(path, "candidate", copy, Path(folder))
            copy = only(text, ["reference", "Model", "get_init_inputs"])
            reference = staged(path, "reference", copy, Path(folder))
        assert not {"run", "ModelNew"} & vars(reference.contents).keys(), path
        if shapes := COMPUTED.get(path.stem):
            given = {n: 1e-5 if n == "eps" else torch.randn(shapes[n]) for n in reference.parameters}
            torch.testing.assert_close(candidate(given, {}), reference(given, {}))
            withheld = refused(RuntimeError, candidate.contents.reference, *given.values())
            assert withheld == "the reference is not available while the candidate runs"
