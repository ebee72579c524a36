"""Several values of a constant: how they are written, and what no parameter can have."""

import pytest

from pytorch_to_triton.errors import BadDeclaration
from pytorch_to_triton.inputs.declaration import Declaration, parse_declaration, parse_options
from pytorch_to_triton.inputs.input_spec import ConstantSpec
from pytorch_to_triton.inputs.listed_values import is_none_of, is_one_of
from pytorch_to_triton.inputs.packed_input import written

VALUES = {
    "30.0|0.0": (30.0, 0.0),
    "30 | 0.5": (30, 0.5),
    "-1|-2": (-1, -2),
    "silu|gelu": ("silu", "gelu"),
    "True|false": (True, False),
    "None|128": (None, 128),
    "'float32'|\"a|b\"|'3'": ("float32", "a|b", "3"),
}


WITH_DTYPES = {**VALUES, "torch.float32|torch.bfloat16|None": ("torch.float32", "torch.bfloat16", None)}


def declared(values: object) -> Declaration:
    return parse_declaration({"x": "float32[M]", "v": values}, {"M": [1, 7]})


@pytest.mark.parametrize("text", WITH_DTYPES)
def test_values_between_bars_are_those_of_a_constant_and_are_written_as_they_are_read(text: str) -> None:
    first, *others = WITH_DTYPES[text]
    assert declared(text).inputs["v"] == ConstantSpec(value=first, others=tuple(others))
    again = written(declared(text).inputs)["v"]
    assert declared(again) == declared(text)
    assert [*map(repr, declared(again).listed()["v"])] == [*map(repr, WITH_DTYPES[text])]
    options = parse_options([f"v={text}"], [])
    assert parse_declaration({"x": "float32[M]", "v": 1}, {"M": [1, 7]}, (), options) == declared(text)


def test_quotes_around_bars_make_one_text() -> None:
    assert declared("'a|b'").inputs["v"] == ConstantSpec(value="a|b")


REFUSED = {
    "30.0|": ("a value is missing", "30.0|0.0"),
    "silu||gelu": ("a value is missing", "quotes"),
    "1|4|1": ("1 is listed twice", "once"),
    "30.0|30": ("30 is listed twice", "once"),
    "None|None": ("None is listed twice", "once"),
    "silu|3": ("3 is of another kind", "all text"),
    "1|True": ("True is of another kind", "True and False"),
    "torch.half|torch.float32": ("'half' is not a dtype", "float16"),
    "M|N": ("M names a dim", "quotes"),
    "1.0|inf": ("inf cannot be passed", "default"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_values_that_no_parameter_can_have_are_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(BadDeclaration) as caught:
        declared(text)
    problem, hint = REFUSED[text]
    assert f"Input v: {problem}" in caught.value.message
    assert hint in caught.value.hint


def test_values_inside_of_a_container_are_refused() -> None:
    with pytest.raises(BadDeclaration, match="inside of a container"):
        declared({"key": "silu|gelu"})


def test_a_test_for_values_tells_none_true_and_false_from_numbers_that_are_equal_to_them() -> None:
    for values in [*VALUES.values(), (False, True), (None, 0.0), (None, "None", 'say "x"')]:
        for value in (*values, 0, 1, 0.25, "other"):
            among = any(value is one or (value == one and not isinstance(one, bool)) for one in values)
            assert eval(is_one_of("v", values), {"v": value}) is among
            assert eval(is_none_of("v", values), {"v": value}) is not among
