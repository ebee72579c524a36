"""Arguments of operators, and sizes used as numbers, beside eager PyTorch: drafted, run and compared plainly.

One process runs all drafts. Nothing of validate takes part.
"""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from pytorch_to_triton.draft.file.launches import Stage
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Job, Runtime
from pytorch_to_triton.schema.target import Target

from ..drafting import drafted as drafts

pytestmark = pytest.mark.anyio

BESIDE_EAGER = Path(__file__).parent / "jobs" / "beside_eager.py"
STAGES: tuple[Stage, ...] = (1, 3)
HEAD = "import math\nfrom math import sqrt as root\n\nimport torch\nimport torch.nn.functional as F\n\n"
DECLARED = 'INPUTS = {{"x": "{dtype}[M, N]"{constants}}}\nDIMS = {{"M": [5], "N": [9]}}\nEPS = 1e-3\n\n\n'

ARGUMENTS = {
    "selu": "return F.selu(x)",
    "celu": "return F.celu(x, 2.0)",
    "elu with all its arguments": "return torch.ops.aten.elu.default(x, 0.5, 2.0, 3.0)",
    "gelu by tanh": "return F.gelu(x, approximate='tanh') + F.gelu(x)",
    "leaky relu": "return F.leaky_relu(x, 0.3)",
    "softplus": "return F.softplus(x, 2, 3)",
    "hardtanh": "return F.hardtanh(x, -2, 2) + F.relu6(x) + x.clamp(-1, 1)",
    "scaled sums": (
        "return torch.add(x, x.exp(), alpha=2) + torch.rsub(x, 2.0, alpha=3) - torch.sub(x, x, alpha=0.5)"
    ),
    "variances": "return x.var(-1, correction=2) + x.var(-1, unbiased=False)",
    "a logical and of floats": "return torch.where(torch.logical_and(x > 0, x), x, -x)",
}
SIZES = {
    "a square root of a size": "return x / math.sqrt(x.shape[-1]) + x * root(x.shape[0])",
    "a quotient by a size": "return x * (1.0 / x.shape[-1])",
    "a power of a size": "scale = x.shape[-1] ** -0.5\n    return torch.softmax(x * scale, -1)",
    "a product of sizes": "return x.sum(-1) / (x.shape[0] * x.shape[1])",
    "the number of elements": "return x / x.numel()",
    "a size made a float": "n = float(x.shape[1])\n    return x / n + int(x.shape[0]) + len(x)",
    "a logarithm of a size": "return x * (math.log2(x.shape[1]) + 1.0) - math.log(x.shape[0])",
    "a size cut and rounded": "return x * (x.shape[1] // 2) + math.ceil(x.shape[1] / 2) + x.shape[1] % 4",
    "the larger of two sizes": "return x.sum(-1) / max(x.shape[1] - 1, 1)",
    "a whole root of a size": "return x * int(math.sqrt(x.shape[1]))",
    "a tensor filled with a size": "return x * torch.full((), x.shape[1]) + torch.full((1,), 1 / x.shape[0])",
    "a tensor computed from a size": "return x / torch.sqrt(torch.tensor(float(x.shape[1])))",
    "constant tensors of one element": "return x * torch.tensor(2.7, dtype=torch.int64) + torch.ones_like(x)",
    "a size as an exponent, a bound and a factor": (
        "return torch.add(x.abs() ** (x.shape[0] / 4), x, alpha=x.shape[1]).clamp(max=x.shape[1])"
    ),
    "a row cut out": "return x + x[:1]",
    "every other element of rows put together": (
        "y = x.view(len(x), -1, 3).exp().view(len(x), -1); return y[:, ::2].sum(-1) - y[:, :1].sum(-1)"
    ),
}
MIXED = {
    "a size times an argument": "return x * (k * x.shape[1]) + EPS",
    "a default that is a constant of the module": "return x + k + EPS",
    "a number that happens to be an operator's default": "return F.leaky_relu_(x * 2.0, k + 0.008)",
    "numbers computed of an argument": "return torch.add(x * (1 - k), x.exp(), alpha=-k / 2)",
}
FIXED = {
    "an argument that takes plain numbers only": "return F.layer_norm(x, x.shape[-1:], eps=1 / x.shape[1])",
    "a power of two below a size": "return x * 2 ** math.floor(math.log2(x.shape[1]))",
    "a logarithm that is asked whether it is whole": (
        "n = math.log2(x.shape[1])\n    return x * n if n.is_integer() else x + torch.arange(int(n))[-1]"
    ),
    "a size that counts steps": "return x * list(range(x.shape[1]))[-1]",
}

Drafted = Callable[[str, str], Awaitable[dict[str, object]]]


def source(body: str, dtype: str = "float32", constants: str = "") -> str:
    parameters = "x, k=2 * EPS" if constants or "+ k +" in body else "x"
    declaration = DECLARED.format(dtype=dtype, constants=constants)
    return f"{HEAD}{declaration}def f({parameters}):\n    {body}\n"


def together(bodies: Mapping[str, str]) -> str:
    """A file whose `f` gives what each of the bodies does: traced once."""
    parts = [f"def part_{number}(x):\n    {body}\n\n\n" for number, body in enumerate(bodies.values())]
    calls = ", ".join(f"part_{number}(x)" for number in range(len(parts)))
    declared, function, rest = source(f"return {calls}").partition("def f(")
    return "".join([declared, *parts, function, rest])


@pytest.fixture
def drafted(worker: WorkerClient, interpreter: Runtime, tmp_path: Path) -> Drafted:
    """Drafts all stages of a file with `f`, and says where everything lies."""

    async def drafted(name: str, text: str) -> dict[str, object]:
        stem = name.replace(" ", "_")
        target = Target(path=tmp_path / f"{stem}.py", name="f")
        target.path.write_text(text, encoding="utf-8")
        files = await drafts(worker, interpreter, target, tmp_path, STAGES)
        return {
            "name": name,
            "source": str(target.path),
            "drafts": files,
            "dims": {"M": [5], "N": [9, 33]},
            "inputs": {"x": ["M", "N"]},
        }

    return drafted


async def test_drafts_equal_eager_pytorch_in_all_stages(
    worker: WorkerClient, interpreter: Runtime, drafted: Drafted
) -> None:
    functions = [
        await drafted(name, together(bodies))
        for name, bodies in {"arguments": ARGUMENTS, "sizes": SIZES}.items()
    ]
    for name, body in MIXED.items():
        constants = "" if "+ k +" in body else ', "k": 0.002'
        given = await drafted(name, source(body, constants=constants))
        functions.append({**given, "constants": {"k": 0.002}})
    body = "return torch.rsqrt(x * x + k) * math.sqrt(x.shape[1])"
    double = await drafted("float64", source(body, "float64", ', "k": 0.1'))
    functions.append({**double, "dtype": "float64", "tolerance": 1e-13, "constants": {"k": 0.1}})
    job = Job(kind=str(BESIDE_EAGER), arguments={"functions": functions})  # type: ignore[dict-item]
    outcome = await worker.ask(job, interpreter, seconds=300.0)
    assert outcome.answer is not None, outcome.detail
    assert {name: why for name, why in outcome.answer.items() if why} == {}


@pytest.mark.parametrize("what", FIXED)
async def test_a_size_that_the_trace_fixed_has_a_program_for_each_declared_one(
    what: str, drafted: Drafted, worker: WorkerClient, interpreter: Runtime
) -> None:
    given = await drafted(what, source(FIXED[what]).replace('"N": [9]', '"N": [9, 33]'))
    job = Job(kind=str(BESIDE_EAGER), arguments={"functions": [given]})  # type: ignore[dict-item]
    outcome = await worker.ask(job, interpreter, seconds=300.0)
    assert outcome.answer == {what: ""}, outcome.detail


async def test_a_number_bears_the_name_of_the_callers_variable(drafted: Drafted) -> None:
    given = await drafted("scaled", source(SIZES["a power of a size"]))
    text = Path(given["drafts"][-1]).read_text(encoding="utf-8")  # type: ignore[index]
    assert "    scale = N ** -0.5\n" in text
    assert "x * scale" in text


async def test_parts_of_a_tensor_bear_the_names_of_the_callers_variables(drafted: Drafted) -> None:
    text_of_source = source(
        "value, gate = x.chunk(2, -1)\n    first = x[:, :1]\n    return value * gate + first"
    )
    given = await drafted("parts", text_of_source.replace('"N": [9]', '"N": [8, 34]'))
    text = Path(given["drafts"][-1]).read_text(encoding="utf-8")  # type: ignore[index]
    assert all(f"    {name} = tl.load(" in text for name in ("value", "gate", "first"))


async def test_branches_on_sizes_and_lines_of_constants_are_named(drafted: Drafted) -> None:
    given = await drafted("odd", source("return x * 2 if x.shape[1] % 2 == 1 else x * 3"))
    text = Path(given["drafts"][0]).read_text(encoding="utf-8")  # type: ignore[index]
    assert "drafted for N % 2" in text
    table = source("y = x + 1\n    return y * TABLE[:1]").replace("EPS = 1e-3", "TABLE = torch.rand(99)")
    message = r"a constant tensor is used in line 14: `return y \* TABLE\[:1\]`"
    with pytest.raises(NotConvertible, match=message):
        await drafted("table", table)
