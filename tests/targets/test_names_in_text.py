"""What a file's text shows not to be there is refused before anything is imported, and nothing else is; a
function that is alone in its file needs no name.
"""

from pathlib import Path

import pytest

from pytorch_to_triton.errors import TargetNotFound
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.names_in_text import refuse_absent_name, with_only_function

FILE = "import torch\n\n\ndef softmax(x):\n    return torch.softmax(x, -1)\n\n\nclass Block:\n    pass\n"
MAY_DEFINE_IT = (
    "from torch.nn.functional import *\n",
    "globals()['so' + 'ftmin'] = softmax\n",
    "exec(open('other.py').read())\n",
    "import lazy\n\nlazy.attach(__name__)\n",
    "def __getattr__(name):\n    return softmax\n",
    "try:\n    from fast import softmin\nexcept ImportError:\n    softmin = softmax\n",
    "def broken(:\n",
)


ALONE = """
import torch

EPS = 1e-5  # as in the run of the reference Model


def norm(x):
    reference = x + EPS
    return reference
"""
NOT_ALONE = (
    "def scale(x):\n    return 2 * x\n",
    "class Net(torch.nn.Module):\n    pass\n",
    "from kernels import run\n",
    "from models import Net as Model\n",
    "reference = torch.compile(norm)\n",
    *MAY_DEFINE_IT[:4],
)


def target_in(folder: Path, text: str, name: str | None = None) -> Target:
    file = folder / "f.py"
    file.write_text(text, encoding="utf-8")
    return Target(path=file, name=name)


def refuse(folder: Path, text: str, name: str | None) -> None:
    refuse_absent_name(target_in(folder, text, name))


def test_a_name_that_stands_nowhere_in_the_file_is_refused_with_what_the_file_has(tmp_path: Path) -> None:
    with pytest.raises(TargetNotFound, match=r"has no `softmin`; nearest: `softmax`\."):
        refuse(tmp_path, FILE, "softmin")
    with pytest.raises(TargetNotFound, match=r"has no `zzz`; it defines: `softmax`, `Block`\."):
        refuse(tmp_path, FILE, "zzz")
    with pytest.raises(TargetNotFound, match="it defines: nothing"):
        refuse(tmp_path, 'if __name__ == "__main__":\n    print()\n', "f")


def test_what_importing_may_define_is_left_to_the_import(tmp_path: Path) -> None:
    for text in MAY_DEFINE_IT:
        refuse(tmp_path, FILE + text, "softmin")
    refuse(tmp_path, FILE, "softmax")
    refuse(tmp_path, FILE, None)


def test_the_one_public_function_of_a_file_needs_no_name(tmp_path: Path) -> None:
    for beside in ("", "def _helper(x):\n    return x\n", "def get_inputs():\n    return []\n"):
        assert with_only_function(target_in(tmp_path, ALONE + beside)).name == "norm"
    assert with_only_function(target_in(tmp_path, ALONE, "EPS")).name == "EPS"
    kernel = "\n\n@triton.jit\ndef kernel(x_ptr):\n    pass\n"
    assert with_only_function(target_in(tmp_path, ALONE + kernel)).name == "norm"


def test_no_function_is_chosen_where_others_could_be_meant(tmp_path: Path) -> None:
    for beside in NOT_ALONE:
        assert with_only_function(target_in(tmp_path, ALONE + beside)).name is None, beside
    assert with_only_function(target_in(tmp_path, "def run(x):\n    return x\n")).name is None
