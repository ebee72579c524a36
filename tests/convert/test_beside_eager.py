"""References that look at dtypes, sizes, defaults and constants: drafted rightly, or refused by name.

Nothing of validate judges here: the drafts are run beside eager PyTorch, in every declared dtype.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import JsonValue

from pytorch_to_triton.errors import BadInput, NotConvertible
from pytorch_to_triton.inputs.declaration import parse_declaration
from pytorch_to_triton.schema.target import Target

from .conftest import Comparing, Resolving
from .drafting import written_drafts
from .eager_calls import calls, draft_of

pytestmark = pytest.mark.anyio

HEAD = "import dataclasses\nimport math\n\nimport torch\nimport torch.nn.functional as F\n\n"
SIZES = ((3, 9), (3, 130))
EDGES = ((1, 1), (3, 9), (5, 1), (5, 33), (3, 130))
REFUSED = {"a branch on two dtypes that no single one decides", "a large table of the module"}
"""The rows that are refused."""
EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass(frozen=True)
class Row:
    """A reference with what it needs of its file, its tensors as declared, and how large values are."""

    body: str
    tensors: dict[str, str]
    scale: float = 1.0
    sizes: tuple[tuple[int, int], ...] = SIZES
    """M and N of the calls."""
    name: str = "f"

    def target(self, path: Path) -> Target:
        declared = f"INPUTS = {self.tensors!r}\nDIMS = {{'M': [3], 'N': [9, 130]}}\n\n\n"
        text = self.body if "INPUTS" in self.body else declared + self.body
        path.write_text(HEAD + text, encoding="utf-8")
        return Target(path=path, name=self.name)

    def calls(self) -> list[JsonValue]:
        sizes = [{"M": m, "N": n} for m, n in self.sizes]
        declaration = parse_declaration(self.tensors, {"M": [3], "N": [9, 130]})
        return calls(declaration, sizes, self.scale)


def example(name: str) -> str:
    return (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")


def pitfall(body: str) -> Row:
    return Row(body, {"x": "float32[M, N]"}, sizes=EDGES)


X = {"x": "float32|float16[M, N]"}
ALL = {"x": "float32|bfloat16|float16[M, N]"}
XW = {"x": "float32|bfloat16[M, N]", "w": "float32|bfloat16[N]"}

ROWS = {
    "a branch on the dtype": Row(
        "def f(x):\n    h = x * 2.0\n    if h.dtype == torch.float16:\n        h = h.clamp(-100, 100)\n"
        "    return h + 1.0\n",
        X,
        300.0,
    ),
    "what PyTorch sorts, which lies in the input's order": Row(
        "def f(x):\n    return torch.sort(x.t(), dim=0).values + 1\n", X
    ),
    "sorted rows, quantiles of them and the median of all, of few": Row(
        "INPUTS = {'x': 'float32|bfloat16|int32[M, N]', 'y': 'float32[M, N]'}\n"
        "DIMS = {'M': [3], 'N': [9, 130]}\nREQUIRES = ['M <= 64', 'N <= 256']\n\n\n"
        "def f(x, y):\n    values, places = torch.sort(x, dim=-1, descending=True, stable=True)\n"
        "    return values, places, y.quantile(0.3, dim=-1), y.relu().median()\n",
        {"x": "float32|bfloat16|int32[M, N]", "y": "float32[M, N]"},
        sizes=EDGES,
    ),
    "two layers alike": Row(
        "def f(x, w):\n    h = F.layer_norm(x * w, (x.shape[-1],))\n"
        "    return F.layer_norm(h * w, (x.shape[-1],))\n",
        XW,
    ),
    "a branch on the dtype of a sum": Row(
        "def f(x, w):\n    h = x + w\n    if h.dtype == torch.bfloat16:\n        h = h.clamp(-1, 1)\n"
        "    return h\n",
        XW,
    ),
    "a branch on two dtypes that no single one decides": Row(
        "def f(x, w):\n    if x.dtype == torch.bfloat16 and w.dtype == torch.float32:\n        return x - w\n"
        "    return x + w\n",
        XW,
    ),
    "a branch on a kind of dtype": Row(
        "def f(x):\n    h = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x\n"
        "    return torch.softmax(h, -1).to(x.dtype)\n",
        ALL,
    ),
    "an epsilon by dtype": Row(
        "def f(x):\n    eps = 1e-3 if x.dtype == torch.float16 else 1e-6\n"
        "    return x * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + eps).to(x.dtype)\n",
        ALL,
        1e-3,
    ),
    "a table of constants by dtype": Row(
        "EPS = {torch.float32: 1e-6, torch.bfloat16: 1e-2, torch.float16: 1e-3}\n\n\n"
        "def f(x):\n    return x / (x.abs() + EPS[x.dtype])\n",
        ALL,
        1e-3,
    ),
    "finfo's epsilon": Row(
        "def f(x):\n    return x / (x.abs().sum(-1, keepdim=True) + torch.finfo(x.dtype).eps)\n", ALL, 1e-3
    ),
    "finfo's smallest number as a mask": Row(
        "def f(x):\n    return x.masked_fill(x > 0.5, torch.finfo(x.dtype).min)\n", ALL
    ),
    "finfo's largest number as a bound": Row(
        "def f(x):\n    return (x.float() * 1e5).clamp(max=torch.finfo(x.dtype).max).to(x.dtype)\n", X
    ),
    "rms_norm with the epsilon of its dtype": Row(
        "def f(x):\n    return F.rms_norm(x, x.shape[-1:])\n", ALL, 1e-3
    ),
    "the size of an element": Row("def f(x):\n    return x * x.element_size()\n", X),
    "promote_types": Row(
        "def f(x, w):\n    dtype = torch.promote_types(x.dtype, w.dtype)\n"
        "    return x.to(dtype) * w.to(dtype)\n",
        XW,
    ),
    "a weight in another dtype": Row(
        "def f(x, w):\n    h = x.float()\n    h = h * torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-6)\n"
        "    return h.to(x.dtype) * w\n",
        XW,
    ),
    "three tensors of one promotion": Row(
        "def f(x, w, b):\n    return x * w + b\n", {**XW, "b": "float32|bfloat16[N]"}
    ),
    "short dtypes alone": Row(
        "def f(x, w):\n    return (x.float().exp().to(x.dtype) * w.float()).to(w.dtype)\n",
        {"x": "float16|bfloat16[M, N]", "w": "float16|bfloat16[N]"},
    ),
    "a single number as a scale": Row(
        "def f(x, s):\n    return x * s\n", {"x": "float32|bfloat16[M, N]", "s": "float32|float16[]"}
    ),
    "integers and floats": Row("def f(x):\n    return x * 2 + x\n", {"x": "float32|int32[M, N]"}, 50.0),
    "a rounding of its own": Row("def f(x):\n    return (x - x.half().float()) * 1024.0\n", ALL),
    "float64 within float32": Row(
        "def f(x):\n    return ((x.double() + 1e6) - 1e6).float()\n", {"x": "float32[M, N]"}
    ),
    "the default dtype": Row("def f(x):\n    return x.to(torch.get_default_dtype()) * 0.1\n", ALL),
    "a branch on a size": Row(
        "def f(x):\n    if x.shape[-1] > 100:\n        return x * 2.0\n    return x * 3.0\n", X
    ),
    "a power of a size": Row("def f(x):\n    return x * x.shape[-1] ** -0.5\n", X),
    "the root of a size": Row("def f(x):\n    return torch.softmax(x / math.sqrt(x.shape[-1]), -1)\n", X),
    "one over a size": Row("def f(x):\n    return x.sum(-1) * (1.0 / x.shape[-1])\n", X),
    "a default that is a constant of the module": Row(
        "EPS = 1e-2\n\n\ndef f(x, eps=EPS):\n    return x / (x.abs() + eps)\n", X
    ),
    "a keyword with a default": Row("def f(x, *, alpha=0.25):\n    return x * alpha\n", X),
    "a default of None": Row("def f(x, scale=None):\n    return x * (2.0 if scale is None else scale)\n", X),
    "constants of the module": Row(
        "SCALE, SHIFT = 0.5, 2.0\nBOTH: float = SCALE * SHIFT\n\n\n"
        "def f(x):\n    return x * BOTH + SHIFT\n",
        X,
    ),
    "a constant tensor of the module": Row(
        "TABLE = torch.arange(9.0)\n\n\ndef f(x):\n    return x * TABLE.sum()\n", X
    ),
    "a large table of the module": Row(
        "TABLE = torch.linspace(0.0, 1.0, 40)\n\n\ndef f(x):\n    return x * TABLE.sum()\n", X
    ),
    "a small table of the module": Row(
        "TABLE = torch.tensor([0.5, 0.25, 4.0])\n\n\ndef f(x):\n    return x[:, :3] * TABLE\n", X
    ),
    "a constant in the dtype of its input": Row(
        "def f(x):\n    return x * torch.tensor(0.1, dtype=x.dtype)\n", ALL
    ),
    "an object of settings": Row(
        "@dataclasses.dataclass(frozen=True)\nclass Settings:\n    eps: float = 1e-2\n"
        "    gated: bool = True\n\n\nSETTINGS = Settings()\n\n\n"
        "def f(x):\n    h = x / (x.abs() + SETTINGS.eps)\n"
        "    return h * torch.sigmoid(x) if SETTINGS.gated else h\n",
        X,
    ),
    # What drafts have got wrong before.
    "two axes of one size": pitfall(
        "def f(x):\n"
        "    return (x[:, None, :] - x[None, :, :]).abs().sum(-1)\n"
    ),
    "a product of matrices over no elements": pitfall(
        "def f(x):\n"
        "    hidden = x[:, :0].relu()\n"
        "    return torch.sigmoid(hidden @ x[:, :0].t()), hidden.sum(-1), x[:, :0].cumsum(-1).sum(0).sum()\n"
    ),
    "a variable named like an accumulator": pitfall(
        "def f(x):\n"
        "    total_acc = x * 2.0\n"
        "    total = total_acc.sum(-1, keepdim=True)\n"
        "    return total_acc / (total.abs() + 1.0)\n"
    ),
    "the standard deviation of rows with too few elements": pitfall(
        "def f(x):\n"
        "    return x.std(-1)\n"
    ),
    "two normalisations of one row": pitfall(
        "def f(x):\n"
        "    y = x + x.square()\n"
        "    return F.layer_norm(x, x.shape[-1:]), F.layer_norm(y, y.shape[-1:])\n"
    ),
    "moments and a maximum of one row": pitfall(
        "def f(x):\n"
        "    return F.layer_norm(x, x.shape[-1:]) + F.log_softmax(x, dim=-1)\n"
    ),
    "reductions over different axes": pitfall(
        "def f(x):\n"
        "    return torch.softmax(x - x.mean(0, keepdim=True), dim=-1)\n"
    ),
    "an infinite constant": pitfall(
        "def f(x):\n"
        "    return torch.softmax(x.masked_fill(x > 1.0, float('-inf')), -1)\n"
    ),
    "variables named like the kernel's own": pitfall(
        "def f(x):\n"
        "    mask = x * 2.0\n"
        "    col = mask.sum(-1, keepdim=True)\n"
        "    row = col + mask\n"
        "    count = row * 2.0\n"
        "    return count\n"
    ),
    "extremes of short whole numbers below zero": Row(
        "def f(x, y):\n    return (x.to(torch.int32) - 100).amax(1), (y.abs() + 7).amin(1), y.amax(0)\n",
        {"x": "int32[M, N]", "y": "int32[M, N]"},
    ),
    "several inputs and a constant": Row(
        example("layer_norm"),
        {"x": "float32|bfloat16[M, N]", "weight": "float32|bfloat16[N]", "bias": "float32|bfloat16[N]"},
        name="layer_norm",
    ),
    "results that hold one number": Row(
        "def f(x):\n    return torch.zeros_like(x), torch.ones_like(x[0]) * 3, x + 1\n", X
    ),
    "the data of a tensor": Row("def f(x):\n    return x.data.exp() * x\n", X),
    "rows rolled by half of them": Row(
        "def f(x):\n    return torch.roll(x, (x.shape[0] // 2, x.shape[1] // 2), (0, 1))\n", X, sizes=EDGES
    ),
    "constants of one element, which give a number and a row their dims": Row(
        "def f(x):\n    w = torch.FloatTensor(1).fill_(2)\n"
        "    return w * x.sum(), torch.tensor([[2.0]]) * x.sum(-1), x * torch.full((x.shape[0], 1), 2.0)\n",
        {"x": "float32[M, N]"},
    ),
    "the one element of an identity matrix": Row("def f(x):\n    return x + 0.5 * torch.eye(1)\n", X),
    "a softmax of equal scores": Row(
        "def f(x):\n"
        "    w = torch.softmax(torch.zeros(*x.shape, 4), dim=1)\n"
        "    return (w * x[:, :, None]).sum(1)\n",
        X,
    ),
    "literals of float64 that float32 would round": Row(
        "def f(x):\n    filled = torch.full_like(x, 4.412055988104102)\n"
        "    return filled, x * 0.1 + 0.7\n",
        {"x": "float64[M, N]"},
    ),
    "powers of one number a row": Row(
        "def f(x):\n    return torch.linalg.vander(x[:, 0], N=6), x[:, :1].expand(-1, 5).cumsum(1)\n",
        {"x": "float32[M, N]"},
        sizes=SIZES,
    ),
    "powers and remainders of float64 by numbers": Row(
        "def f(x):\n    return x.abs() ** 2.5, 1.5**x, torch.fmod(x, 0.75), torch.hypot(x, x * 0 + 2.0)\n",
        {"x": "float64[M, N]"},
    ),
    "special functions by their formulas": Row(
        "def f(x):\n    s = torch.special\n"
        "    waves = s.airy_ai(x), s.bessel_j0(x), s.bessel_j1(x), s.bessel_y0(x), s.spherical_bessel_j0(x)\n"
        "    series = s.i0e(x), s.i1e(x), s.modified_bessel_k0(x), s.scaled_modified_bessel_k1(x)\n"
        "    return *waves, *series, s.log_ndtr(x), torch.digamma(x), torch.polygamma(2, x)\n",
        {"x": "float32[M, N]"},
        8.0,
        sizes=EDGES,
    ),
    "a fraction, its power of 2 and the number after it": Row(
        "def f(x):\n    return *torch.frexp(x), torch.nextafter(x, x * 0)\n", {"x": "float32[M, N]"}
    ),
    "a filter of any size, moved back over what it saw": Row(
        "def f(x, w):\n"
        "    up = F.conv_transpose1d(x[None], w[:, None], stride=2, padding=1, output_padding=1)\n"
        "    return up, F.conv_transpose1d(x[None], w[:, None], dilation=2, padding=3)\n",
        {"x": "float32[M, N]", "w": "float32[M, 6]"},
        sizes=SIZES,
    ),
    "an image read along cubic curves, mirrored at its edges": Row(
        "def f(x):\n    grid = torch.stack([x, x.flip(0)], -1)[None]\n"
        "    options = {'mode': 'bicubic', 'padding_mode': 'reflection', 'align_corners': True}\n"
        "    return F.grid_sample(x[None, None], grid, **options)\n",
        {"x": "float32[M, N]"},
        sizes=SIZES,
    ),
    "padding in a circle, and parts copied out": Row(
        "def f(x):\n    padded = F.pad(x[None], (1, 2), 'circular')\n"
        "    return padded, torch.unbind_copy(x[:3])[1], torch.narrow_copy(x, 0, 1, 2)\n",
        {"x": "float32[M, N]"},
        sizes=SIZES,
    ),
    "covariances and correlations of rows": Row(
        "def f(x, w):\n    weighted = torch.cov(x, aweights=w.abs())\n"
        "    return torch.cov(x), weighted, x.cov(correction=0), torch.corrcoef(x), x[0].corrcoef()\n",
        {"x": "float32[M, N]", "w": "float32[N]"},
        sizes=SIZES,
    ),
    "elements put where a mask holds": Row(
        "def f(x, w):\n    moved = x.masked_scatter(x > w, w[:, None] - x.t())\n"
        "    return x.masked_scatter(w > 0, x * 2) + moved\n",
        {"x": "float32[M, N]", "w": "float32[N]"},
        sizes=SIZES,
    ),
    "halves of a row": Row(
        example("swiglu"), {"x": "float32|bfloat16[M, N]"}, sizes=((1, 2), (7, 130)), name="swiglu"
    ),
}  # fmt: skip


PARTS = 12


# Each row is traced in every combination of its dtypes, which takes a second.
@pytest.mark.parametrize("part", [0, *(pytest.param(n, marks=pytest.mark.corpora) for n in range(1, PARTS))])
async def test_a_reference_is_drafted_rightly_or_refused_by_name(
    part: int, resolved: Resolving, compared: Comparing, tmp_path: Path
) -> None:
    rows = dict(list(ROWS.items())[part::PARTS])
    drafts, refused = [], {}
    for number, (name, row) in enumerate(rows.items()):
        target = row.target(tmp_path / f"target_{number}.py")
        try:
            files = written_drafts((await resolved(target)).convertible(), target, tmp_path)
        except (NotConvertible, BadInput) as refusal:
            refused[name] = refusal
        else:
            drafts.append(draft_of(name, target, files, row.calls()))
    assert await compared(*drafts) == {name: [] for name in rows if name not in refused}
    assert refused.keys() == REFUSED & rows.keys()
    assert all(len(refusal.message) > 20 and refusal.hint for refusal in refused.values())
