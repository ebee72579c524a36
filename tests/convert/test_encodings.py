"""A target's file in any encoding that Python reads, and what is said of one that it does not."""

from pathlib import Path

import pytest

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


def f(输入):
    return 输入 - 输入.mean(-1, keepdim=True)
"""


@pytest.mark.parametrize(("cookie", "encoding"), [("", "utf-8-sig"), ("# -*- coding: gbk -*-", "gbk")])
async def test_a_file_in_another_encoding_is_drafted(
    cookie: str, encoding: str, resolved: Resolving, tmp_path: Path
) -> None:
    path = tmp_path / "target.py"
    path.write_text(SOURCE.format(cookie=cookie), encoding=encoding)
    target = await resolved(Target(path=path, name="f"))
    assert "输入" in target.convertible().drafted(1).text
    assert text_of(path) == SOURCE.format(cookie=cookie.replace("gbk", "utf-8"))


async def test_a_file_that_python_cannot_decode_is_refused_with_what_to_write(
    resolved: Resolving, tmp_path: Path
) -> None:
    path = tmp_path / "target.py"
    path.write_text(SOURCE.format(cookie=""), encoding="gbk")
    with pytest.raises(TargetBroken, match=r"is not UTF-8, .*coding: gbk"):
        await resolved(Target(path=path, name="f"))
