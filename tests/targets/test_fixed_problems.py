"""A file with Model and get_inputs() declares its own sizes; free ones are dims, tried small too."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pytorch_to_triton.inputs.declaration import Declaration, parse_options
from pytorch_to_triton.inputs.timing_dims import timing_dims
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.description import Description
from pytorch_to_triton.schema.graph import Graph
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.describe import declaration_of, describe

from ..conftest import Tracing

pytestmark = pytest.mark.anyio

Described = Callable[[str], Awaitable[Description]]

HEAD = "import torch\nfrom torch import nn\n\n\n"
RELU = """
class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs(): return [torch.rand(4096, 393216)]
"""
EQUAL_SIZES = """
class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)

def get_inputs(): return [torch.rand(512, 512), torch.rand(512, 512)]
"""
CONVOLUTION = """
class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, 8, 7)
        self.norm = nn.BatchNorm2d(8)
    def forward(self, x):
        return self.norm(self.conv(x))

def get_inputs(): return [torch.rand(16, 3, 100, 120)]
def get_init_inputs(): return [3]
"""
WRITTEN_SIZE = """
class Model(nn.Module):
    def forward(self, x):
        return x.view(x.shape[0], 4, 25).sum(-1)

def get_inputs(): return [torch.rand(64, 100)]
"""
LOSS = """
class Model(nn.Module):
    def forward(self, scores, labels):
        return nn.functional.cross_entropy(scores, labels)

def get_inputs(): return [torch.rand(256, 40), torch.randint(0, 40, (256,))]
"""
TABLE = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.ones(1024))
    def forward(self, x):
        return x + self.table[: x.shape[1]]

def get_inputs(): return [torch.rand(256, 512)]
"""
READS_A_VALUE = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.rand(3).sum().item()
    def forward(self, x):
        return x * self.scale

def get_inputs(): return [torch.rand(64, 100)]
"""


@pytest.fixture
def described(worker: WorkerClient, interpreter: Runtime, tmp_path: Path) -> Described:
    """Describes the file with this text as a reference."""

    async def described(text: str) -> Description:
        path = tmp_path / "problem.py"
        path.write_text(HEAD + text, encoding="utf-8")
        return await describe(worker, Target(path=path), "reference", interpreter)

    return described


def declaration(description: Description) -> Declaration:
    return declaration_of(description, description)


def inputs(description: Description) -> list[str]:
    return [str(spec) for spec in declaration(description).inputs.values()]


async def test_gigabytes_become_dims_with_small_sizes_beside_the_files(described: Described) -> None:
    found = declaration(await described(RELU))
    assert str(found.inputs["x"]) == "float32[M, N]"
    assert found.dims == {"M": (3, 64, 4096), "N": (3, 64, 393216)}
    assert found.requires == ()


async def test_it_is_timed_at_its_own_sizes_and_no_larger_ones(described: Described) -> None:
    found = declaration(await described(EQUAL_SIZES))
    assert timing_dims(found, at_least_bytes=2**40) == {"M": 512, "K": 512, "N": 512}


async def test_equal_sizes_are_one_dim_only_where_the_program_needs_them_equal(described: Described) -> None:
    assert inputs(await described(EQUAL_SIZES)) == ["float32[M, K]", "float32[K, N]"]


async def test_sizes_below_which_the_module_fails_are_required(described: Described) -> None:
    found = declaration(await described(CONVOLUTION))
    assert str(found.inputs["x"]) == "float32[N, 3, H, W]"
    # Batch normalisation in training wants two values a channel, in whichever dim.
    assert set(found.requires) == {"N >= 2", "H >= 7", "W >= 7"}
    assert found.violated({"N": 2, "H": 7, "W": 7}) is None


async def test_a_size_that_the_program_has_written_into_it_stays_a_number(described: Described) -> None:
    assert inputs(await described(WRITTEN_SIZE)) == ["float32[M, 100]"]


async def test_a_size_that_a_parameter_bounds_is_required_to_stay_below(described: Described) -> None:
    found = declaration(await described(TABLE))
    assert str(found.inputs["x"]) == "float32[M, N]"
    assert found.requires == ("N <= 1024",)


async def test_indices_along_a_dim_stay_below_its_size(described: Described) -> None:
    assert inputs(await described(LOSS)) == ["float32[M, N]", "int64[M] in 0..N"]


async def test_a_constructor_that_needs_values_gets_them(described: Described) -> None:
    assert inputs(await described(READS_A_VALUE)) == ["float32[M, N]"]


async def test_sizes_given_beside_the_file_win(described: Described) -> None:
    description = await described(RELU)
    found = declaration_of(description, description, parse_options([], ["M=7"]))
    assert found.dims == {"M": (7,), "N": (3, 64, 393216)}
    assert timing_dims(found, at_least_bytes=0) == {"M": 7, "N": 393216}


async def graph_of(described: Described, traced: Tracing, text: str) -> Graph:
    return (await traced((await described(text)).target)).graph


async def test_a_module_is_traced_in_the_mode_that_its_file_leaves_it_in(
    described: Described, traced: Tracing
) -> None:
    training = await graph_of(described, traced, CONVOLUTION)
    assert training.updated == ("norm_running_mean", "norm_running_var", "norm_num_batches_tracked")
    assert [output.path for output in training.outputs] == ["out"]
    assert training.dims.keys() == {"N", "H", "W"}
    resting = CONVOLUTION.replace("BatchNorm2d(8)", "BatchNorm2d(8).eval()")
    assert (await graph_of(described, traced, resting)).updated == ()


SHRINKING = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.Sequential(*(nn.Conv2d(3, 3, 3, stride=2, padding=1) for _ in range(4)))
    def forward(self, x):
        return self.convs(x).mean((2, 3))

def get_inputs(): return [torch.rand(10, 3, 224, 224)]
"""


async def test_it_is_traced_at_sizes_that_take_the_path_of_its_own(
    described: Described, traced: Tracing
) -> None:
    graph = await graph_of(described, traced, SHRINKING)
    # Below 17 the last image has one row, which torch.export takes for another program.
    assert graph.dims["H"] > 16
    assert not [guard for guard in graph.guards if "==" in guard]
