"""What a name holds where it is used follows the assignments that reach it, in host code as in kernels."""

import ast

import pytest

from pytorch_to_triton.audit.flow import Flow
from pytorch_to_triton.triton_api.name_scope import function_scope, module_scope


def held(body: str) -> set[str]:
    """What `out` may be made of where a function returns it: each value as text, `x` for a parameter."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    tree = ast.parse(f"def run(x, flag):\n{lines}    return out\n")
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    flow = Flow(function.body, function_scope(function, module_scope(tree)))
    (returned,) = (node for node in flow.nodes if isinstance(node, ast.Return))
    assert isinstance(returned.value, ast.Name)
    values = flow.definitions(returned.value)
    return {value.arg if isinstance(value, ast.arg) else ast.unparse(value) for value in values}


@pytest.mark.parametrize(
    ("body", "values"),
    [
        ("out = 1\nout = 2", {"2"}),
        ("out = 1\nif flag:\n    out = 2", {"1", "2"}),
        ("out = 1\nif flag:\n    out = 2\n    raise ValueError", {"1"}),
        ("out = 1\nout += x", {"out + x"}),
        ("out = 1\nfor i in x:\n    out = 2\nelse:\n    out = 3", {"3"}),
        ("with x as out:\n    pass", {"x"}),
        ("out = 1\nif (out := x):\n    pass", {"x"}),
        ("try:\n    out = 1\nexcept ValueError:\n    out = 2", {"1", "2"}),
        ("out = 1\ntry:\n    out = 2\nexcept ValueError:\n    pass", {"1", "2"}),
        ("out = 1\nmatch x:\n    case 1:\n        out = 2", {"1", "2"}),
        ("_, out = x.shape", {"x.shape[1]"}),
        ("first, *_, out = x.shape", {"x.shape[-1]"}),
        ("out, other = 1, 2", {"1"}),
        ("out = 1\ndef inner():\n    out = 2", {"1"}),
        ("out = 1\ndef out(): ...", set()),
    ],
)
def test_a_name_holds_what_the_assignments_that_reach_it_give(body: str, values: set[str]) -> None:
    assert held(body) == values


def test_what_a_nested_function_reads_is_what_the_names_hold_around_it() -> None:
    source = "def run(n):\n    n = 2\n    def grid(meta):\n        m = n\n        return (m, n)\n"
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    flow = Flow(function.body, function_scope(function, module_scope(ast.parse(source))))
    used = [n for top in function.body for n in ast.walk(top) if isinstance(n, ast.Name) and n.id in "mn"]
    texts = [
        [ast.unparse(value) for value in flow.definitions(n)] for n in used if isinstance(n.ctx, ast.Load)
    ]
    assert texts == [["2"], [], ["2"]]
