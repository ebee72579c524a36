"""Problems at smaller sizes: every size that a file fixes shrinks, and the model still runs."""

from pathlib import Path

import pytest

from kernelbench.problems import Problem
from kernelbench.shrink import shrunken, smaller, write

GROUPED = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features, groups, eps=1e-5):
        super().__init__()
        self.norm = nn.GroupNorm(groups, features, eps)
        self.threshold = 4096.0

    def forward(self, x):
        return self.norm(x)


batch_size = 128  # "größe" is no ASCII: 4096
features, groups = 512, 32
shape = (features, 224, 224)
scale = 2.0


def get_inputs():
    return [torch.rand(batch_size, *shape)]


def get_init_inputs():
    return [features, groups, 1e-5]
"""


@pytest.mark.parametrize(
    ("size", "limit", "expected"),
    [(8192, 16, 16), (224, 16, 14), (1000, 16, 5), (50257, 16, 16), (7, 16, 7), (768, 32, 24)],
)
def test_a_size_loses_its_smallest_factors(size: int, limit: int, expected: int) -> None:
    assert smaller(size, limit) == expected


def test_constants_shrink_and_the_model_stays_as_it_is() -> None:
    text = shrunken(GROUPED, 16)
    assert 'batch_size = 16  # "größe" is no ASCII: 4096' in text
    assert "features, groups = 16, 16" in text
    assert "shape = (features, 14, 14)" in text
    assert "self.threshold = 4096.0" in text
    assert shrunken(GROUPED, 10**6) == GROUPED


@pytest.mark.corpora
def test_a_model_that_does_not_run_at_the_smallest_sizes_gets_larger_ones(tmp_path: Path) -> None:
    file = tmp_path / "1_Grouped.py"
    file.write_text(
        GROUPED.replace("[features, groups, 1e-5]", "[features, 24 * groups // 24, 1e-5]").replace(
            "return self.norm(x)", "assert x.shape[1] >= 32\n        return self.norm(x)"
        ),
        encoding="utf-8",
    )
    line = write(Problem("1/1", "1_Grouped", file), tmp_path / "into")
    assert line == "1/1 1_Grouped: sizes up to 32"
    assert "features, groups = 32, 32" in (tmp_path / "into/level1/1_Grouped.py").read_text(encoding="utf-8")
