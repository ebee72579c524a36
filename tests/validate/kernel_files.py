"""Little kernel files, each a right one with a few passages changed, and the kernels of tests/kernels/."""

from pathlib import Path

from ..kernels.mutations.write import Change, changed, mutations

KERNELS = Path(__file__).parents[1] / "kernels"
MUTATIONS = mutations()

DOUBLE = """
import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[N]"}
DIMS = {"N": [4, 9]}
BLOCK = 8


def reference(x):
    return x * 2


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = index < n
    x = tl.load(x_ptr + index, mask=mask)
    tl.store(out_ptr + index, x * 2, mask=mask)


def double(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel() > 0:
        double_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK=BLOCK)
    return out


def run(x):
    return double(x)
"""
"""Right: x: float32[N] doubled by a Triton kernel."""
PLAIN = """
import torch

INPUTS = {"x": "float32[N]"}
DIMS = {"N": [4, 9]}


def reference(x: torch.Tensor) -> torch.Tensor:
    REFERENCE


def run(x: torch.Tensor) -> torch.Tensor:
    CANDIDATE
"""


def double_file(folder: Path, *changes: Change) -> Path:
    """DOUBLE with each first passage replaced by the second; the file is called `kernel.py`."""
    return changed_file(folder, DOUBLE, *changes)


def plain_file(folder: Path, reference: str, candidate: str) -> Path:
    """A reference and a candidate in plain PyTorch: the body of each as one line."""
    return changed_file(folder, PLAIN, ("REFERENCE", reference), ("CANDIDATE", candidate))


def changed_file(folder: Path, text: str, *changes: Change) -> Path:
    path = folder / "kernel.py"
    path.write_text(changed(text, *changes))
    return path


def kernels(*folders: str) -> list[str]:
    """The names of the kernels in these folders of tests/kernels/, such as `wrong/drops_tail`."""
    files = [f"{folder}/{path.stem}" for folder in folders for path in (KERNELS / folder).glob("*.py")]
    return sorted([*files, *(name for name in MUTATIONS if name.startswith(folders))])


def corpus_file(folder: Path, name: str) -> Path:
    """A kernel of tests/kernels/ by its name; one that is a mutation is written into `folder`."""
    if name not in MUTATIONS:
        return KERNELS / f"{name}.py"
    path = folder / f"{Path(name).name}.py"
    path.write_text(MUTATIONS[name].text())
    return path


def body(*lines: str) -> Change:
    """The change that gives `run(x)` of DOUBLE these lines."""
    return "    return double(x)\n", "".join(f"    {line}\n" for line in lines)
