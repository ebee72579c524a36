"""Functions of all families, whose drafts are mutated: texts, annotated with shapes as INPUTS has them."""

from __future__ import annotations

import ast
import re

FLOATS = "float32|bfloat16"
"""What tensors are whose annotation is a shape alone."""
FUNCTIONS = (
    # Element by element.
    "def leaky(x: '[M, N]', slope=0.1):\n    return torch.where(x > 0, x, slope * x)",
    "def hard_swish(x: '[M, N]'):\n    return x * torch.clamp(x + 3.0, 0.0, 6.0) / 6.0",
    "def turned(x: '[M, N]'):\n    return x.t() * 2.0",
    "def outer_sum(x: '[M]', y: '[N]'):\n    return x[:, None] + y[None, :]",
    "def joined(x: '[M, N]', y: '[M, K]'):\n    return torch.cat([x, y], dim=1)",
    "def looked_up(table: '[V, N]', index: 'int64[M] in 0..V'):\n    return F.embedding(index, table)",
    # Along rows.
    "def row_maximum(x: '[M, N]'):\n    return x.amax(dim=1)",
    "def winner(x: '[M, N]'):\n    return x.argmax(dim=1)",
    "def row_deviation(x: '[M, N]', eps=1e-5):\n    return torch.sqrt(x.float().var(dim=1) + eps)",
    "def log_softmax(x: '[M, N]'):\n    return F.log_softmax(x, dim=-1)",
    "def unit_rows(x: '[M, N]'):\n    return F.normalize(x, dim=1)",
    "def mean_square(x: '[M, N]'):\n    return (x * x).mean()",
    "def squared_error(x: '[M, N]', y: '[M, N]'):\n    return F.mse_loss(x, y)",
    "def cross_entropy(x: '[M, N]', y: 'int64[M] in 0..N'):\n    return F.cross_entropy(x, y)",
    "def similarity(x: '[M, N]', y: '[M, N]'):\n    return F.cosine_similarity(x, y, dim=1)",
    # Along columns.
    "def column_sums(x: '[M, N]'):\n    return x.sum(dim=0)",
    "def column_maximum(x: '[M, N]'):\n    return x.amax(dim=0)",
    "def standardised(x: '[M, N]', eps=1e-5):\n"
    "    return (x - x.mean(dim=0)) * torch.rsqrt(x.var(dim=0, correction=0) + eps)",
    # Scans.
    "def running(x: '[M, N]'):\n    return torch.cumsum(x, dim=1)",
    "def from_the_end(x: '[M, N]'):\n    return torch.cumsum(x.flip(1), dim=1).flip(1)",
    # Products.
    "def projected(a: '[M, K]', b: '[N, K]', c: '[N]'):\n    return F.relu(F.linear(a, b, c))",
    "def batched(a: '[B, M, K]', b: '[B, K, N]'):\n    return torch.bmm(a, b)",
    "def attention(q: '[B, M, 16]', k: '[B, N, 16]', v: '[B, N, 16]'):\n"
    "    return F.scaled_dot_product_attention(q, k, v)",
    # Windows.
    "def pooled(x: '[B, C, H, W]'):\n    return F.max_pool2d(x, 3, 2, 1)",
)
SIZES = {
    "B": [1, 3],
    "C": [1, 5],
    "H": [4, 17],
    "K": [1, 20, 70],
    "M": [1, 7, 40],
    "N": [1, 33, 300],
    "V": [50],
    "W": [4, 33],
}
HEAD = "import torch\nimport torch.nn.functional as F\n\n"


def files() -> dict[str, str]:
    """The text of a file for each function, by its name."""
    return dict(map(file_of, FUNCTIONS))


def file_of(function: str) -> tuple[str, str]:
    """The function's name, and a file that declares what its annotations and defaults say."""
    annotated = re.sub(r"'\[", f"'{FLOATS}[", function)
    (tree,) = ast.parse(annotated).body
    assert isinstance(tree, ast.FunctionDef)
    parameters = tree.args.args
    inputs = {p.arg: ast.literal_eval(p.annotation) for p in parameters if p.annotation}
    with_default = parameters[len(parameters) - len(tree.args.defaults) :]
    defaults = map(ast.literal_eval, tree.args.defaults)
    inputs |= dict(zip((p.arg for p in with_default), defaults, strict=True))
    names = sorted(set(re.findall(r"\b[A-Z]\b", " ".join(map(str, inputs.values())))))
    dims = {name: SIZES[name] for name in names}
    return tree.name, f"{HEAD}INPUTS = {inputs!r}\nDIMS = {dims!r}\n\n\n{annotated}\n"
