"""A known miscompilation is named only for kernels that show what is compiled wrongly."""

from pathlib import Path
from textwrap import indent
from typing import get_args

from pytorch_to_triton.hardware.miscompilations import MISCOMPILATIONS, Pattern, concerning
from pytorch_to_triton.validate.at_fault import PATTERNS, shown_in

from ..hardware.test_miscompilations import machine

REFERENCE_KERNELS = Path(__file__).parents[2] / "reference_kernels"
SHOWN: dict[Pattern, tuple[str, ...]] = {
    "register_operand": (
        "for i in range(n):\n    acc = tl.dot(p.to(tl.float16), v, acc)",
        "q = tl.load(q_ptr)\nq = q * 2\nfor i in range(n):\n    acc = tl.dot(q, tl.load(k_ptr), acc)",
    ),
    "remainder_of_index": (
        "i = tl.arange(0, 1024)\ntl.store(out_ptr + i // 28 * 28 + i % 28, x)",
        "i = row * 8 + tl.arange(0, 8)\nj = (i + 1) % 1000",
    ),
    "two_dots_into_one": (
        "for i in range(n):\n    acc = tl.dot(a, b, acc)\n    acc = tl.dot(c, d, acc)",
        "for i in range(n):\n    acc += tl.dot(a, b)\n    acc += tl.dot(c, d)",
    ),
    "two_reductions_of_a_loop": (
        "for i in range(n):\n    x = tl.load(x_ptr + i)\n    acc += tl.max(x, axis=1)",
        "for i in r:\n    x = tl.load(p).to(tl.float32)\n    y = tl.sum(x, 1)\n    acc = tl.maximum(acc, y)",
        "for i in range(n):\n    x = tl.load(x_ptr + i)\n    acc = acc + tl.reduce(x, 1, combine_fn=nan_max)",
    ),
}
NOT_SHOWN: dict[Pattern, tuple[str, ...]] = {
    "register_operand": (
        "q = tl.load(q_ptr)\nfor i in range(n):\n    acc = tl.dot(q, tl.load(k_ptr), acc)",
        "s = tl.dot(q * 2, k)",
    ),
    "remainder_of_index": (
        "row = tl.program_id(0) % rows\ni = tl.arange(0, 8)\nx = tl.load(x_ptr + row + i)",
    ),
    "two_dots_into_one": (
        "for i in range(n):\n    s = tl.dot(q, k)\n    acc = tl.dot(s, v, acc)",
        "acc = tl.dot(a, b)\nacc = tl.dot(c, d, acc)",
    ),
    "two_reductions_of_a_loop": (
        "for i in range(n):\n    x = tl.load(x_ptr + i)\n    acc += tl.sum(x, axis=1)",
        "for i in range(n):\n    x = tl.load(x_ptr + i)\n    acc = tl.maximum(acc, tl.max(x, axis=1))",
        "for i in range(n):\n    x = tl.load(x_ptr + i)\n    acc += tl.max(x + 0.0, axis=1)",
        "for i in range(n):\n    x = tl.load(x_ptr + i)\n    acc += 2 * tl.max(x, axis=1)",
    ),
}


def kernel(body: str) -> str:
    return f"@triton.jit\ndef kernel(out_ptr):\n{indent(body, '    ')}\n"


def shown(source: str) -> set[Pattern]:
    return {entry.pattern for entry in shown_in(source, MISCOMPILATIONS)}


def test_each_pattern_is_seen_where_it_is_and_not_where_it_is_not() -> None:
    assert set(PATTERNS) == set(SHOWN) == set(NOT_SHOWN) == set(get_args(Pattern))
    for name in PATTERNS:
        for body in SHOWN[name]:
            assert name in shown(kernel(body)), body
        for body in NOT_SHOWN[name]:
            assert name not in shown(kernel(body)), body


def test_the_attention_that_ptxas_compiled_wrongly_shows_its_pattern_and_an_addition_none() -> None:
    attention = (REFERENCE_KERNELS / "flash_attention.py").read_text()
    addition = (REFERENCE_KERNELS / "vector_add.py").read_text()
    assert "register_operand" in shown(attention)
    assert shown(addition) == set()


def test_an_entry_fits_where_both_the_machine_and_the_source_do() -> None:
    source = kernel(SHOWN["two_dots_into_one"][0])
    entry = next(entry for entry in MISCOMPILATIONS if entry.pattern == "two_dots_into_one")
    entries = concerning(machine("3.7.1", "12.7", (10, 0)))
    assert shown_in(source, entries) == (entry,)
    assert shown_in(source, concerning(machine("3.9.0", "12.7", (10, 0)))) == ()
    assert shown_in(kernel("pass"), entries) == shown_in("not Python", entries) == ()
