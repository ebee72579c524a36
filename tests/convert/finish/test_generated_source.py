"""What the finished files are generated from: lines are broken without another meaning, guards are true."""

import ast
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from pytorch_to_triton.convert.finish.converted import split_kernel_file
from pytorch_to_triton.convert.finish.files import WIDTH, files, fold_long_lines
from pytorch_to_triton.convert.finish.guards import conditions
from pytorch_to_triton.convert.finish.interpreted import behind_the_kernels, for_the_interpreter
from pytorch_to_triton.convert.finish.recipe import Recipe, received
from pytorch_to_triton.draft.file.kernel_text import import_block
from pytorch_to_triton.draft.ir.functions import QUOTIENT
from pytorch_to_triton.inputs.comparison import parse_comparisons
from pytorch_to_triton.inputs.declaration import parse_declaration

from ..draft.graphs import graph

NAMES = [f"a_rather_long_name_{i}" for i in range(8)]
KERNEL = '''"""f in Triton.

Shapes:
    x: [M, N]
"""
import torch

def reference(x, w, scale=2.0):
    return x * w * scale

def run(x, w, scale=2.0):
    return x * w * scale
'''

LOOP = """\
import torch
import triton
import triton.language as tl


@triton.jit
def count_kernel(out_ptr, n):
    total = tl.zeros([1], tl.int32)
    for _ in range(0, n, 2):
        total += 1
    tl.store(out_ptr + tl.arange(0, 1), total)
"""
CALL = """\
out = torch.zeros(1, dtype=torch.int32)
count_kernel[(1,)](out, 9)
print(out.item())
"""


def recipe(inputs: dict[str, Any], **more: Any) -> Recipe:
    """Of a function with these inputs."""
    declaration = parse_declaration(
        inputs, more.pop("dims", {"M": [1, 4], "N": [8, 100]}), more.pop("requires", ())
    )
    signs = {name: str(next(iter(value))) for name, value in inputs.items() if isinstance(value, dict)}
    signs = {name: sign.removesuffix("()") for name, sign in signs.items() if sign in ("*()", "**()")}
    parameters = [signs.get(name, "") + name for name in inputs]
    given: dict[str, Any] = {
        "function": "f", "name": "f", "module_name": "f_triton", "origin": "f of user.py",
        "file": split_kernel_file(KERNEL), "parameters": ", ".join(parameters), "declaration": declaration,
        "fixed": frozenset(), "structure": "single", "outputs": 1,
        "backward": False,
    }  # fmt: skip
    return Recipe(**{**given, **more})


def why_not(made: Recipe, *arguments: Any, interpreted: bool = True) -> str:
    """What the guards say of a call."""
    names = received(made.parameters)
    body = "\n".join(f"    {line}" for line in conditions(made, "INTERPRETED"))
    scope: dict[str, Any] = {"torch": torch, "INTERPRETED": interpreted}
    exec(f"def why_not({names}):\n{body}", scope)
    found: str = scope["why_not"](*arguments)
    return found


@pytest.mark.parametrize(
    "line",
    [
        f"def f({', '.join(f'{name}: int' for name in NAMES)}) -> tuple[int, int]:\n    pass",
        f"found = called({', '.join(NAMES)}, key=[{', '.join(NAMES)}])",
        f"if not ({' or '.join(NAMES)}):\n    pass",
        f"found = [called(item, {NAMES[0]}) for item in ({', '.join(NAMES)}) if item in {NAMES[1]}]",
        f"for name, tensor in (({NAMES[0]!r}, {NAMES[0] * 4}),):\n    pass",
        f"text = f'{{{NAMES[0]}}}, ({', '.join(NAMES)})'",
    ],
)
def test_a_long_line_is_broken_and_means_the_same(line: str) -> None:
    assert ast.dump(ast.parse(fold_long_lines(line))) == ast.dump(ast.parse(line))
    if "text =" in line:  # Before Python 3.12 no line may be broken inside of an f-string.
        assert fold_long_lines(line) == line
    else:
        assert max(map(len, fold_long_lines(line).splitlines())) <= WIDTH


def test_the_kernels_take_what_is_declared_and_nothing_else() -> None:
    made = recipe(
        {"x": "float32|bfloat16[M, N]", "w": "float32[N // 2]", "scale": 2.0},
        fixed=frozenset({"scale"}),
        requires=["N % 4 == 0"],
    )
    x, w = torch.ones(3, 8), torch.ones(4)
    assert why_not(made, x, w, 2.0) == ""
    assert why_not(made, x.bfloat16(), w, 2.0) == ""
    assert why_not(made, x, w, 3.0) == "scale is 3.0, and the kernels are for 2.0"
    assert why_not(made, x.half(), w, 2.0) == "x is torch.float16"
    assert why_not(made, x, None, 2.0) == "w is a NoneType"
    assert why_not(made, x[0], w, 2.0) == "x has 1 dimensions, not 2"
    assert why_not(made, x, torch.ones(5), 2.0) == "w has shape (5,), not (4,)"
    assert why_not(made, torch.ones(3, 6), torch.ones(3), 2.0) == "N % 4 == 0 does not hold"
    assert why_not(made, x, w, 2.0, interpreted=False) == "x is on cpu, and Triton needs a GPU"
    assert why_not(made, x.requires_grad_(), w, 2.0) == "gradients are wanted, and the kernels have none"
    with torch.no_grad():
        assert why_not(made, x, w, 2.0) == ""
    with torch.autocast("cpu"):
        assert why_not(made, x.detach(), w, 2.0).startswith("autocast is on")


def test_another_value_than_those_listed_is_said_to_need_a_declaration() -> None:
    made = recipe({"x": "float32[M, N]", "n": "1|4"}, requires=["n in (1, 4)"])
    assert why_not(made, torch.ones(3, 8), 4) == ""
    assert why_not(made, torch.ones(3, 8), 2) == "n is not one of 1, 4: declare it too, and convert again"


def test_the_finished_tests_compare_what_is_free_of_order_sorted() -> None:
    made = recipe({"x": "float32[M, N]"})
    free = parse_comparisons("unordered(out[1], out[0])")
    made = replace(made, declaration=made.declaration.model_copy(update={"unordered": free}))
    (text,) = (text for name, text in files(made, "").texts.items() if name.startswith("test_"))
    body = text[text.index("def in_one_order") : text.index("def tensors_of")]
    scope: dict[str, Any] = {"torch": torch}
    exec(body, scope)
    weights, indices = torch.tensor([[0.5, 0.1, 0.4]]), torch.tensor([[7, 2, 5]])
    ordered = scope["in_one_order"]([weights, indices])
    assert [one.tolist() for one in ordered] == [[pytest.approx([0.1, 0.4, 0.5])], [[2, 5, 7]]]
    assert "in_one_order" not in "".join(files(recipe({"x": "float32[M, N]"}), "").texts.values())


def test_the_finished_tests_name_the_element_its_values_and_the_tolerance() -> None:
    (text,) = (t for name, t in files(recipe({"x": "float32[M, N]"}), "").texts.items() if "test_" in name)
    body = text[text.index("def described") : text.index("@every_size")]
    scope: dict[str, Any] = {"torch": torch}
    exec(body, scope)
    exact = torch.tensor([[1.0, float("nan"), 2.0], [float("inf"), 0.0, 4.0]], dtype=torch.float64)
    scope["assert_as_exact"](exact.float(), exact.float(), exact)
    for place, value in (((0, 2), 2.5), ((1, 0), 3.0), ((1, 1), float("inf"))):
        wrong = exact.float()
        wrong[place] = value
        expected = rf"1 of 6 are wrong, the first at \[{place[0]}, {place[1]}\]: {value}, PyTorch "
        with pytest.raises(AssertionError, match=expected) as caught:
            scope["assert_as_exact"](wrong, exact.float(), exact)
        assert ("is allowed" in str(caught.value)) == bool(exact[place].isfinite())
    whole = torch.tensor([3, 5])
    with pytest.raises(AssertionError, match=r"1 of 2 are wrong, the first at \[1\]: 4, PyTorch 5, exact 5"):
        scope["assert_as_exact"](torch.tensor([3, 4]), whole, whole)


def test_a_condition_that_would_divide_by_zero_leaves_the_call_to_pytorch() -> None:
    made = recipe({"x": "float32[M, N]"}, requires=["N % (N // 2) == 0"])
    assert why_not(made, torch.ones(3, 8)) == ""
    assert why_not(made, torch.ones(3, 0)) == "N % (N // 2) == 0 does not hold"


def test_containers_optional_tensors_and_free_numbers_are_looked_at_too() -> None:
    batch = {"x": "float32[M]", "scale": 2.0, "pair": {"()": ["float32[M]"]}}
    made = recipe(
        {"batch": batch, "bias": None, "xs": {"*()": ["float32[M]"]}, "more": {"**()": {"eps": 1e-5}}},
        dims={"M": [3]},
        fixed=frozenset({"bias"}),
    )
    x = torch.ones(3)

    def reason(bias: object = None, *xs: torch.Tensor, more: object = 0.5, **of_batch: object) -> str:
        given = {"x": x, "scale": 0.5, "pair": (x,), **of_batch}
        text = "\n".join(f"    {line}" for line in conditions(made, "True"))
        scope: dict[str, Any] = {"torch": torch}
        exec(f"def why_not({received(made.parameters)}):\n{text}", scope)
        found: str = scope["why_not"](given, bias, *(xs or (x,)), eps=more)
        return found

    assert reason() == ""
    assert reason(None, x, x) == "xs takes 1 item"
    assert reason(pair=(x, x)) == "batch[pair] takes 1 item"
    assert reason(mask=x) == "batch takes x, scale, pair"
    assert reason(pair=(torch.ones(4),)) == "batch_pair_0 has shape (4,), not (3,)"
    assert reason(x).endswith("and the kernels are for None")
    assert reason(more=x) == "eps is a Tensor"


def test_a_mixture_of_dtypes_that_was_not_traced_goes_to_pytorch() -> None:
    traced = graph({"x": ("M", "N"), "w": ("N",)}, (), ()).model_copy(update={"alike": (("x", "w"),)})
    made = recipe({"x": "float32|bfloat16[M, N]", "w": "float32|bfloat16[N]"}, graph=traced)
    x, w = torch.ones(3, 8), torch.ones(8)
    assert why_not(made, x, w) == why_not(made, x.bfloat16(), w.bfloat16()) == ""
    assert why_not(made, x.bfloat16(), w) == "x and w are not of one dtype"


def test_a_dim_named_like_a_parameter_is_not_confused_with_it() -> None:
    made = recipe({"M": "float32[N, M]"})
    assert why_not(made, torch.ones(8, 4)) == ""


def test_a_whole_number_that_is_a_size_is_free_within_the_conditions() -> None:
    made = recipe(
        {"x": "float32[B, D]", "n": "G", "k": "2*G"}, dims={"B": [2], "D": [8], "G": [1, 4]},
        requires=("D % G == 0",),
    )  # fmt: skip
    x = torch.ones(3, 12)
    for n, k, why in [
        (6, 12, ""),
        (5, 10, "D % G == 0 does not hold"),
        (0, 0, "D % G == 0 does not hold"),
        (6, 6, "k is 6, not 12"),
        (6.0, 12, "n is a float"),
    ]:
        assert why_not(made, x, n, k) == why


def test_a_dim_that_only_a_product_names_is_found_by_its_other_factor() -> None:
    made = recipe(
        {"x": "float32[B, G*D]", "w": "float32[G*D]", "n": "G"}, dims={"B": [2], "D": [8], "G": [1, 4]},
        requires=("D <= 8",),
    )  # fmt: skip
    for columns, n, why in [
        (12, 6, ""),
        (12, 1, "D <= 8 does not hold"),
        (12, 5, "x has shape (3, 12), not (3, 10)"),
        (12, 0, "x has shape (3, 12), not (3, 0)"),
    ]:
        assert why_not(made, torch.ones(3, columns), torch.ones(columns), n).startswith(why)
        assert bool(why) == bool(why_not(made, torch.ones(3, columns), torch.ones(columns), n))


def test_names_that_are_added_meet_none_of_the_kernel_file() -> None:
    clashing = KERNEL.replace("import torch", "import torch\nLOGGER = why_not = compute = f_operator = None")
    made = recipe({"x": "float32[M, N]", "w": "float32[N]"}, file=split_kernel_file(clashing))
    text = files(made, "").texts["f_triton.py"]
    bound = [
        target.id
        for node in ast.parse(text).body
        for target in getattr(node, "targets", [])
        if isinstance(target, ast.Name)
    ]
    bound += [n.name for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name != "_"]
    assert len(bound) == len(set(bound))


def test_a_kernel_file_is_taken_apart_without_losing_a_line() -> None:
    parts = split_kernel_file(
        "# a remark\n" + KERNEL.replace("import torch\n", "import torch\nimport math\n")
    )
    assert parts.first == "f in Triton."
    assert parts.shapes == "Shapes:\n    x: [M, N]"
    assert parts.body.startswith("def reference(")
    assert parts.body.endswith("return x * w * scale")
    assert import_block(["import torch", "from __future__ import annotations", *parts.imports]) == (
        "from __future__ import annotations\n\nimport math\n\nimport torch"
    )


def test_only_what_the_kernels_use_of_libdevice_is_replaced() -> None:
    text = "def k(x):\n    return libdevice.tanh(x) + libdevice.rint(x)"
    source = for_the_interpreter(text, "INTERPRETED", "by_pytorch")
    assert "tanh = by_pytorch(torch.tanh)" in source
    assert "rint = by_pytorch(torch.round)" in source
    assert "sinh" not in source
    assert for_the_interpreter("def k(x):\n    return x", "INTERPRETED", "by_pytorch") == ""


def test_what_the_interpreter_cannot_do_is_changed_for_it_alone() -> None:
    kernel = "@triton.jit\ndef k(x):\n    pass"
    tuned = f"import triton\n\n\n@triton.autotune([], key=[])\n{kernel}"
    text = f"{tuned}\n\n\n{QUOTIENT.source}\n\n\ndef float32_precision(s, d):\n    pass"
    source = behind_the_kernels(text, "INTERPRETED", "counting")
    ast.parse(source)
    assert source.startswith("if INTERPRETED:\n")
    assert "k._bench = lambda *args, **options: 0.0" in source
    assert 'return "ieee"' in source
    assert "def quotient_rn(x, y):" in source
    assert behind_the_kernels(kernel, "INTERPRETED", "counting") == ""


def test_a_loop_counts_to_a_size_in_the_interpreter_of_every_triton(tmp_path: Path) -> None:
    (tmp_path / "looping.py").write_text(
        f"{LOOP}\n\n{behind_the_kernels(LOOP, 'True', 'counting')}\n\n{CALL}"
    )
    # With NumPy 2.5 it is an error what older ones deprecate: an array of one element as a number.
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:triton", "looping.py"],
        cwd=tmp_path,
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == "5\n"


def test_a_tuner_behind_a_name_is_seen_and_a_kernel_inside_of_a_function_left_alone() -> None:
    named = "import triton\nTUNED = triton.autotune([], key=[])\n\n\n@TUNED\ndef k(x):\n    pass"
    assert "k._bench = lambda *args, **options: 0.0" in behind_the_kernels(named, "INTERPRETED", "counting")
    inside = "import triton\n\n\ndef make():\n    @triton.autotune([], key=[])\n    def k(x):\n        pass"
    assert behind_the_kernels(inside, "INTERPRETED", "counting") == ""
