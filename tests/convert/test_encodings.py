"""A target's file in any encoding that Python reads, and what is said of one that it does not."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pytorch_to_triton.convert.finish.converted import recipe_of
from pytorch_to_triton.convert.finish.files import files
from pytorch_to_triton.errors import TargetBroken
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.worker.loading.sides import text_of

from .conftest import Resolving

pytestmark = pytest.mark.anyio

SOURCE = """{cookie}
# 按行归一化
import torch

INPUTS = {{"输入": "float32[M, N]"}}
DIMS = {{"M": [5], "N": [3]}}


def 居中(输入):
    return 输入 - 输入.mean(-1, keepdim=True)
"""


@pytest.mark.parametrize(("cookie", "encoding"), [("", "utf-8-sig"), ("# -*- coding: gbk -*-", "gbk")])
async def test_a_file_in_another_encoding_is_drafted(
    cookie: str, encoding: str, resolved: Resolving, tmp_path: Path
) -> None:
    path = tmp_path / "target.py"
    path.write_text(SOURCE.format(cookie=cookie), encoding=encoding)
    target = await resolved(Target(path=path, name="居中"))
    drafted = ast.parse(target.convertible().drafted(1).text)
    functions = {f.name: f for f in drafted.body if isinstance(f, ast.FunctionDef)}
    assert [a.arg for a in functions["reference"].args.args] == ["输入"]
    kernels = [name for name in functions if name.endswith("_kernel")]
    assert kernels
    assert all(name.isascii() for name in kernels), "Triton compiles no function of another name"
    last_stage = target.convertible().drafted(3).file
    written = files(recipe_of(target, last_stage, drafted=True), "")
    finished = written.texts[written.kernels]
    registered = re.search(r'custom_op\("(.+?)".*\ndef \S+_operator\((.+?)\) ->', finished)
    assert registered is not None
    assert "".join(registered.groups()).isascii(), "PyTorch takes no operator of another name"
    file = tmp_path / "居中_triton.py"
    file.write_text(finished, encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select", "F821", str(file)]
    assert subprocess.run(ruff, capture_output=True, check=False).returncode == 0, "a name has no definition"
    assert text_of(path) == SOURCE.format(cookie=cookie.replace("gbk", "utf-8"))


async def test_a_file_that_python_cannot_decode_is_refused_with_what_to_write(
    resolved: Resolving, tmp_path: Path
) -> None:
    path = tmp_path / "target.py"
    path.write_text(SOURCE.format(cookie=""), encoding="gbk")
    with pytest.raises(TargetBroken, match=r"is not UTF-8, .*coding: gbk"):
        await resolved(Target(path=path, name="居中"))
