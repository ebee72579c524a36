"""What a file's text shows not to be there is refused before anything is imported, and nothing else is."""

from pathlib import Path

import pytest

from pytorch_to_triton.errors import TargetNotFound
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.absent_name import refuse_absent_name

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


def refuse(folder: Path, text: str, name: str | None) -> None:
    file = folder / "f.py"
    file.write_text(text, encoding="utf-8")
    refuse_absent_name(Target(path=file, name=name))


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
