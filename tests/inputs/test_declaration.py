"""The input grammar: what it reads, and that every mistake is answered with its place and a way out."""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytorch_to_triton.errors import BadDeclaration, BadInput
from pytorch_to_triton.inputs.case import ConstantArgument, PackedArgument, TensorArgument
from pytorch_to_triton.inputs.declaration import (
    Declaration,
    Options,
    parse_declaration,
    parse_options,
    parse_points,
)
from pytorch_to_triton.inputs.expression import holds, parse_requirement, parse_size, value_of
from pytorch_to_triton.inputs.input_spec import ConstantSpec, TensorSpec, parse_input
from pytorch_to_triton.inputs.option_text import option_of_value
from pytorch_to_triton.inputs.packed_input import written
from pytorch_to_triton.inputs.text_span import TextSpan
from pytorch_to_triton.inputs.timing_dims import timing_dims
from pytorch_to_triton.schema.dtype import OF_INPUTS, DType
from pytorch_to_triton.worker.wire.packing import Packing

DIMS = {"M": [1, 7, 256], "N": [1, 64, 1000]}


def declared(*requires: str, **inputs: object) -> Declaration:
    """A declaration over M and N, both in use."""
    return parse_declaration({"x": "float32[M, N]", **inputs}, DIMS, requires)


def refusal_of(parse: Callable[[], object]) -> BadDeclaration:
    with pytest.raises(BadDeclaration) as caught:
        parse()
    return caught.value


# What is read


def test_a_tensor_is_read() -> None:
    for text, spec in [
        ("float32[M, N]", TensorSpec(dtypes=("float32",), shape=("M", "N"))),
        ("torch.float16[M]", TensorSpec(dtypes=("float16",), shape=("M",))),
        (
            " float32 | bfloat16 [ M , N//2 ] ",
            TensorSpec(dtypes=("float32", "bfloat16"), shape=("M", "N//2")),
        ),
        ("int64[M] in 0..N", TensorSpec(dtypes=("int64",), shape=("M",), low="0", high="N")),
        ("float32[M] in 0.1..1.0", TensorSpec(dtypes=("float32",), shape=("M",), low="0.1", high="1.0")),
        ("float32[M] in -1..+1e3", TensorSpec(dtypes=("float32",), shape=("M",), low="-1", high="+1e3")),
        ("float8_e4m3fn[(M + 1) * 2]", TensorSpec(dtypes=("float8_e4m3fn",), shape=("(M + 1) * 2",))),
        ("float32[]", TensorSpec(dtypes=("float32",), shape=())),
    ]:
        assert parse_input("x", text, DIMS) == spec


def test_text_that_names_dims_alone_is_a_whole_number_of_that_size() -> None:
    inputs = {"n_groups": "M", "k": "2*(N + 1)", "shape": ["M", "N"], "mode": "mean", "text": "'M'"}
    declaration = declared(**inputs)
    values = {
        a.name: a.value for a in declaration.arguments({"M": 7, "N": 3}) if isinstance(a, ConstantArgument)
    }
    assert values == {"n_groups": 7, "k": 8, "shape_0": 7, "shape_1": 3, "mode": "mean", "text": "M"}
    assert written(declaration.inputs)["shape"] == ["M", "N"]
    assert declaration.fixed_at({"M": 7}).inputs["n_groups"] == ConstantSpec(value=7)


def test_values_listed_for_a_whole_number_are_the_sizes_of_a_dim_of_its_name() -> None:
    declaration = parse_declaration({"x": "float32[n*D]", "n": "1 | 4|8"}, {"D": [3, 9]}, ["D > n"])
    assert declaration.dims == {"D": (3, 9), "n": (1, 4, 8)}
    assert declaration.requires == ("D > n", "n in (1, 4, 8)")
    assert declaration.violated({"D": 9, "n": 3}) == "n in (1, 4, 8)"
    assert declaration.arguments({"D": 9, "n": 4})[1] == ConstantArgument(name="n", value=4)
    again = parse_declaration(written(declaration.inputs), declaration.dims, declaration.requires)
    assert again == declaration


def test_values_of_an_option_replace_those_of_the_file_and_dim_narrows_them() -> None:
    inputs = {"x": "float32[n*D]", "n": "1|4"}
    other = parse_options(["n=2|3"], [])
    assert parse_declaration(inputs, {"D": 3}, (), other).dims["n"] == (2, 3)
    narrowed = parse_options([], ["n=4"])
    assert parse_declaration(inputs, {"D": 3}, (), narrowed).dims["n"] == (4,)


def test_a_dim_that_only_a_whole_number_names_is_in_use() -> None:
    declaration = parse_declaration({"x": "float32[8]", "n": "G"}, {"G": [1, 4]})
    assert declaration.dims == {"G": (1, 4)}


def test_a_constant_is_passed_as_it_is() -> None:
    for value, constant in [
        (1e-5, 1e-5),
        (True, True),
        (None, None),
        ("tanh", "tanh"),
        ("ij,jk->ik", "ij,jk->ik"),
        ("'float32'", "float32"),
        ('"float32[M]"', "float32[M]"),
        ("", ""),
        ([2, 3], (2, 3)),
        ((), ()),
        (["mean", None], ("mean", None)),
    ]:
        spec = parse_input("x", value, DIMS)
        assert isinstance(spec, ConstantSpec)
        assert spec.value == constant
        assert type(spec.value) is type(constant)


def test_packed_inputs_have_names_of_their_own_and_are_written_as_they_were() -> None:
    inputs = {
        "batch": {"x": "float32[M]", "boxes": ["int8[N] in 0..5", {"()": ["bool[M]", 3]}], "sizes": [1, 2]},
        "pair": {"Pair()": {"low": "float32[]", "eps": 1e-5}},
        "more": {"**()": {"mask": "bool[M]"}},
        "batch_x": "float32[N]",
    }
    declaration = parse_declaration(inputs, DIMS)
    assert list(declaration.tensors()) == [
        "batch_x_", "batch_boxes_0", "batch_boxes_1_0", "pair_low", "mask", "batch_x",
    ]  # fmt: skip
    assert declaration.parameters() == ("batch", "pair", "more", "batch_x")
    assert declaration.packings()["batch"].sources("batch") == {
        "batch_x_": 'batch["x"]',
        "batch_boxes_0": 'batch["boxes"][0]',
        "batch_boxes_1_0": 'batch["boxes"][1][0]',
        "batch_boxes_1_1": 'batch["boxes"][1][1]',
        "batch_sizes": 'batch["sizes"]',
    }
    assert written(declaration.inputs) == {**inputs, "more": {"mask": "bool[M]"}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"x": "float32[M,N]", mask: bool[M]}', {"x": "float32[M,N]", "mask": "bool[M]"}),
        ('["float32[M,N]", int64[M] in 0..N]', ["float32[M,N]", "int64[M] in 0..N"]),
        ("(float32[M], [2, 3], None,)", {"()": ["float32[M]", [2, 3], None]}),
        ("Pair(low=float32[M], mode='max')", {"Pair()": {"low": "float32[M]", "mode": "max"}}),
        ("gelu(tanh)", "gelu(tanh)"),
    ],
)
def test_an_option_reads_containers_as_python_writes_them(text: str, value: object) -> None:
    assert parse_options([f"x={text}"], []).inputs == {"x": value}
    assert parse_options([f"x={option_of_value(value)}"], []).inputs == {"x": value}


def test_inputs_keep_the_order_of_the_declaration() -> None:
    declaration = declared(eps=1e-5, a="float32[N]")
    assert list(declaration.inputs) == ["x", "eps", "a"]


def test_a_declaration_survives_json() -> None:
    declaration = declared("N <= 4096", eps=1e-5, axes=[0, 1], xs=["float32[M]"], flag=True, none=None)
    assert Declaration.model_validate_json(declaration.model_dump_json()) == declaration


def test_a_single_size_and_a_text_of_sizes_are_read_as_lists() -> None:
    declaration = parse_declaration({"x": "float32[M, N]"}, {"M": 7, "N": "1, 64"})
    assert declaration.dims == {"M": (7,), "N": (1, 64)}


def test_the_dimensions_used_include_those_of_bounds_and_requirements() -> None:
    dims = {"M": 4, "N": 8, "K": 2}
    declaration = parse_declaration({"target": "int64[M] in 0..N"}, dims, ["M % K == 0"])
    assert declaration.dims_used() == {"M", "N", "K"}


def test_a_shape_is_computed_from_the_dimensions() -> None:
    declaration = declared(y="float32[M * 2, (N + 1) // 2, 3]")
    assert declaration.shape_of("y", {"M": 7, "N": 64}) == (14, 32, 3)


def test_the_violated_requirement_is_named() -> None:
    declaration = declared("N % 16 == 0 or N < 8", "0 < M <= N")
    assert declaration.violated({"M": 7, "N": 64}) is None
    assert declaration.violated({"M": 7, "N": 65}) == "N % 16 == 0 or N < 8"
    assert declaration.violated({"M": 65, "N": 64}) == "0 < M <= N"


def test_a_requirement_may_list_sizes() -> None:
    declaration = declared("N in (1, 64) and M not in (N, 7)")
    assert declaration.violated({"M": 1, "N": 64}) is None
    assert declaration.violated({"M": 7, "N": 64}) == declaration.violated({"M": 1, "N": 65}) != ""


def test_a_requirement_that_divides_by_zero_is_not_met() -> None:
    assert not holds("N % G == 0", {"N": 8, "G": 0})
    assert not holds("G > 0 and N % G == 0", {"N": 8, "G": 0})


def test_arguments_carry_shapes_ranges_and_chosen_dtypes() -> None:
    declaration = parse_declaration(
        {"x": "float32|bfloat16[M, N]", "t": "int64[M] in 0..N", "xs": ["uint8[M]"], "eps": 1e-5},
        {"M": 7, "N": 64},
    )
    x, t, xs_0, xs, eps = declaration.arguments({"M": 7, "N": 64}, {"x": "bfloat16"})
    assert x == TensorArgument(name="x", dtype="bfloat16", shape=(7, 64))
    assert t == TensorArgument(name="t", dtype="int64", shape=(7,), low=0, high=64)
    assert xs_0 == TensorArgument(name="xs_0", dtype="uint8", shape=(7,), low=0, high=256)
    assert xs == PackedArgument(name="xs", packing=Packing(kind="list", items=("xs_0",)))
    assert eps == ConstantArgument(name="eps", value=1e-5)


def test_a_value_outside_of_the_range_is_declared_behind_or() -> None:
    declaration = parse_declaration({"t": "int64[M] in 0..N or -N"}, {"M": 7, "N": 64})
    (argument,) = declaration.arguments({"M": 7, "N": 64})
    assert argument == TensorArgument(name="t", dtype="int64", shape=(7,), low=0, high=64, outside=-64)
    spec = declaration.inputs["t"]
    assert parse_input("t", str(spec), ("M", "N")) == spec


def test_integers_without_a_range_lie_within_a_hundred_of_zero() -> None:
    (argument,) = parse_declaration({"i": "int32[4]"}, {}).arguments({})
    assert argument == TensorArgument(name="i", dtype="int32", shape=(4,), low=-100, high=100)


def test_an_empty_range_is_no_obstacle_to_a_tensor_without_elements() -> None:
    declaration = parse_declaration({"t": "int64[M] in 0..N"}, {"M": 4, "N": 4})
    (argument,) = declaration.arguments({"M": 0, "N": 0})
    assert isinstance(argument, TensorArgument)
    assert argument.shape == (0,)


def test_sizes_at_which_nothing_can_be_generated_are_refused() -> None:
    for spec, dims, problem in [
        ("int64[M] in 0..N", {"M": 7, "N": 0}, "0..0 at M=7 N=0: it is empty"),
        ("int8[M] in 0..N", {"M": 7, "N": 999}, "int8 holds -128..128"),
        ("float32[M - N]", {"M": 7, "N": 8}, "the size M - N is -1 at M=7 N=8"),
        ("float32[M // N]", {"M": 7, "N": 0}, "M // N divides by zero at M=7 N=0"),
    ]:
        declaration = parse_declaration({"x": spec}, {"M": 7, "N": 2})
        assert problem in refusal_of(partial(declaration.arguments, dims)).message


# Mistakes in inputs: the text, what the message holds, the caret's column, what the hint holds

BAD_INPUTS = [
    ("flot32[M, N]", "'flot32' is not a dtype", 0, "float32"),
    ("float[M]", "'float' is not a dtype", 0, "Did you mean float32?"),
    ("float32|half[M]", "'half' is not a dtype", 8, "Did you mean float16?"),
    ("float32|[M]", "a dtype is missing", 8, "float32[M, N]"),
    ("[M]", "a dtype is missing", 0, "float32[M, N]"),
    ("complex128[M]", "complex128 is not among", 0, "Declare complex64"),
    ("complex64", "'[' is missing", 9, "float32[M, N]"),
    ("float32[M, K]", "no dimension 'K' is declared", 11, "--dim K=1,7,256"),
    ("float32[M, K]", "no dimension 'K' is declared", 11, "declared so far: M, N"),
    ("float32[M, n]", "no dimension 'n' is declared", 11, "--dim n="),
    ("float32[M, N", "']' is missing", 12, "float32[M, N]"),
    ("float32 M, N]", "'[' is missing", 9, "float32[M, N]"),
    ("float32]M[", "']' comes before '['", 7, "float32[M, N]"),
    ("float32", "'[' is missing", 7, "quotes"),
    ("float32[M,, N]", "an expression is missing", 10, "A size is made of"),
    ("float32[M, N,]", "an expression is missing", 13, "A size is made of"),
    ("float32[M, -1]", "the size -1 is negative", 11, "0 or more"),
    ("float32[M, 2.5]", "2.5 is not an integer", 11, "integers"),
    ("float32[M, N / 2]", "/ does not give an integer", 13, "//"),
    ("float32[M, (N // 2) / 2]", "/ does not give an integer", 20, "//"),
    ("float32[M, N // 0]", "this divides by zero", 16, "1 or more"),
    ("float32[M, N ** 2]", "not allowed", 11, "+ - * // %"),
    ("float32[M, N < 2]", "a condition stands where a number belongs", 11, "A size is made of"),
    ("float32[M, True]", "this is not a number", 11, "A size is made of"),
    ("float32[M, len(N)]", "not allowed", 11, "A size is made of"),
    ("float32[M, N.x]", "not allowed", 11, "A size is made of"),
    ("float32[M, (N + 1]", "does not parse", 11, "A size is made of"),
    ("float32[M, N N]", "does not parse", 13, "A size is made of"),
    ("float32[M, é + K]", "no dimension 'é'", 11, "--dim é="),
    ("float32[N + K]", "no dimension 'K'", 12, "--dim K="),
    ("float32[M] 0..1", "nothing but a range", 11, "in LOW..HIGH"),
    ("float32[M] inside", "nothing but a range", 11, "in LOW..HIGH"),
    ("float32[M]]", "nothing but a range", 10, "in LOW..HIGH"),
    ("float32[M] in 1", "needs '..'", 14, "in 0..N"),
    ("float32[M] in ..1", "an expression is missing", 14, "A bound is"),
    ("float32[M] in 0..", "an expression is missing", 17, "A bound is"),
    ("float32[M] in 0..K", "no dimension 'K'", 17, "--dim K="),
    ("float32[M] in 1..0", "it is empty", 14, "half-open"),
    ("int64[M] in 3..3", "it is empty", 12, "half-open"),
    ("int64[M] in 0.5..3", "integer bounds", 12, "half-open"),
    ("uint8[M] in -1..3", "uint8 holds 0..256", 12, "half-open"),
    ("float16[M] in 0..1e6", "float16 holds -65504..65504", 14, "half-open"),
    ("bool[M] in 0..1", "bool takes no range", 11, "half-open"),
    ("float32[M] in 0..1 or 5", "float32 takes no 5 beside", 22, "for integers"),
    ("uint8[M] in 0..9 or -1", "uint8 takes no -1 beside", 20, "for integers"),
    ("int64[M] in 0..9 or", "an expression is missing", 19, "A bound is"),
    (["float32[M]", "float32"], "Input y[1]: '[' is missing", 7, "float32[M, N]"),
    ({"a": "float32[K]"}, 'Input y["a"]', 8, "K"),
    (float("-inf"), "-inf cannot be passed", 0, "default"),
    ([1.0, float("nan")], "nan cannot be passed", 0, "default"),
    ([{1, 2}], "a set cannot be passed", 0, "Declare a tensor"),
]


def test_a_bad_input_is_answered_with_its_place_and_a_way_out() -> None:
    for value, problem, column, hint in BAD_INPUTS:
        error = refusal_of(partial(declared, y=value))
        assert error.message.startswith("Input y")
        assert problem in error.message
        assert error.position == column
        assert hint in error.hint


def test_the_caret_stands_below_the_offending_character() -> None:
    error = refusal_of(lambda: declared(y="float32[M, K]"))
    _, text, caret = error.message.split("\n")
    assert text[caret.index("^")] == "K"


BAD_DIMS = [
    ({"M": []}, "M has no sizes", 2, "--dim M=1,7,256"),
    ({"M": ""}, "M has no sizes", 2, "--dim M=1,7,256"),
    ({"M": [1, -7]}, "the size -7 is negative", 4, "0 or more"),
    ({"M": [1, 2.5]}, "'2.5' is not an integer", 4, "integers"),
    ({"M": [1, True]}, "'True' is not an integer", 4, "integers"),
    ({"M": "1,x"}, "'x' is not an integer", 4, "integers"),
    ({"M": "1,,2"}, "'' is not an integer", 4, "integers"),
    ({"M": None}, "'None' is not an integer", 2, "integers"),
    ({"M": 4, "two words": 4}, "'two words' is not a name", 0, "letters"),
    ({"M": 4, "in": 4}, "'in' is not a name", 0, "letters"),
    ({"M": 4, "K": [1, 2]}, "no input uses K", 0, "M"),
]


BAD_REQUIREMENTS = [
    ("N % 16", "must be true or false", 0, "N % 16 == 0"),
    ("N % 16 = 0", "does not parse", 7, "Compare sizes"),
    ("K < N", "no dimension 'K'", 0, "--dim K="),
    ("M < N and M < K", "no dimension 'K'", 14, "--dim K="),
    ("N is M", "only == != < <= > >=", 0, "Compare sizes"),
    ("N in [1, 2]", "in (1, 4) several", 0, "Compare sizes"),
    ("not N", "must be true or false", 4, "Compare sizes"),
    ("", "an expression is missing", 0, "Compare sizes"),
    ("M in (1, K)", "no dimension 'K'", 9, "--dim K="),
    ("N in (2, 3)", "none of the declared sizes meets it", 0, "N [1, 64, 1000]"),
    ("N > 5000", "none of the declared sizes meets it", 0, "N [1, 64, 1000]"),
    ("M == N and M > 1", "none of the declared sizes meets it", 0, "M [1, 7, 256]"),
    ("N < " + "9" * 300, "longer than 200 characters", 200, "Compare sizes"),
]


def test_a_bad_dimension_or_requirement_is_answered_with_its_place_and_a_way_out() -> None:
    dims = ((partial(parse_declaration, {"x": "float32[M]"}, sizes), *rest) for sizes, *rest in BAD_DIMS)
    requirements = ((partial(declared, text), *rest) for text, *rest in BAD_REQUIREMENTS)
    for declaring, problem, column, hint in (*dims, *requirements):
        error = refusal_of(declaring)
        assert problem in error.message
        assert error.position == column
        assert hint in error.hint


def test_requirements_that_exclude_each_other_are_refused() -> None:
    error = refusal_of(lambda: declared("N > 64", "N < 64", "N != 64"))
    assert "none of the declared sizes meets" in error.message


def test_a_requirement_met_only_far_from_the_middle_is_accepted() -> None:
    assert declared("M > N and N == 1 and M == 256").requires == ("M > N and N == 1 and M == 256",)


# Options of the command line


def test_options_read_tensors_constants_and_lists() -> None:
    texts = [
        "x=float32[M,N]",
        "eps=1e-5",
        "axes=[0, 1]",
        "flag=true",
        "none=None",
        "how=tanh",
        "t='1'",
        "n=3",
    ]
    options = parse_options([*texts, "xs=[float32[M,N], int8[M]]"], ["M=1,7", "N=64"], ["N > 1"])
    declaration = parse_declaration({}, {}, options=options)
    constants = {name: spec.value for name, spec in declaration.inputs.items() if spec.form == "constant"}
    expected = {"eps": 1e-5, "axes": (0, 1), "flag": True, "none": None, "how": "tanh", "t": "1", "n": 3}
    assert constants == expected
    assert list(declaration.tensors()) == ["x", "xs_0", "xs_1"]
    assert declaration.dims == {"M": (1, 7), "N": (64,)}
    assert declaration.requires == ("N > 1",)


def test_an_option_with_no_sizes_is_refused_before_any_file_is_looked_at() -> None:
    for text in ("M=abc", "M=", "M=1,-7"):
        refusal_of(partial(parse_options, [], [text]))


def test_an_option_wins_over_the_file_by_name() -> None:
    options = parse_options(["eps=0.5"], ["M=3"], ["N > 1"])
    inputs = {"x": "float32[M, N]", "eps": 1e-5}
    declaration = parse_declaration(inputs, DIMS, ["M < 999"], options)
    assert declaration.inputs["eps"] == ConstantSpec(value=0.5)
    assert declaration.dims == {"M": (3,), "N": (1, 64, 1000)}
    assert declaration.requires == ("M < 999", "N > 1")
    assert list(declaration.inputs) == ["x", "eps"]


def test_an_option_may_bind_what_the_file_leaves_unbound() -> None:
    declaration = parse_declaration({"x": "float32[M, K]"}, {"M": 7}, options=Options(dims={"K": "5"}))
    assert declaration.dims == {"M": (7,), "K": (5,)}


def test_dimensions_of_the_file_that_an_option_made_idle_are_left_out() -> None:
    options = parse_options(["x=float32[M]"], [])
    assert parse_declaration({"x": "float32[M, N]"}, DIMS, options=options).dims == {"M": (1, 7, 256)}


def test_an_option_for_a_dimension_that_nothing_uses_is_refused() -> None:
    options = parse_options(["x=float32[M]"], ["m=3"])
    error = refusal_of(lambda: parse_declaration({"x": "float32[M, N]"}, DIMS, options=options))
    assert "no input uses m" in error.message


def test_a_bad_option_is_answered_with_its_place() -> None:
    for inputs, dims, problem, column in [
        (["x"], [], "'=' is missing", 1),
        ([], ["M"], "'=' is missing", 1),
        (["=1"], [], "'' is not a name", 0),
        (["x y=1"], [], "'x y' is not a name", 0),
        (["x=1", "x=2"], [], "x is given twice", 0),
        ([], ["M=1", "M=2"], "M is given twice", 0),
        (["x=[1, 2"], [], "']' is missing", 7),
    ]:
        error = refusal_of(partial(parse_options, inputs, dims))
        assert problem in error.message
        assert error.position == column


# Sizes for timing


def test_timing_doubles_the_first_dimension_that_no_requirement_mentions() -> None:
    dims = timing_dims(declared("M <= 256"), at_least_bytes=2**24)
    assert dims == {"M": 256, "N": 32000}
    assert timing_dims(declared("M % 2 == 0"), at_least_bytes=2**24) == {"M": 256, "N": 32000}


def test_timing_stops_where_requirements_allow_no_more() -> None:
    dims = timing_dims(declared("M <= 256", "N <= 2000"), at_least_bytes=2**40)
    assert dims == {"M": 256, "N": 2000}


def test_timing_stops_where_what_is_computed_is_large_enough() -> None:
    declaration = parse_declaration({"a": "float32[N, 4]", "b": "float32[M, 4]"}, {"N": 64, "M": 64})
    dims = timing_dims(declaration, at_least_bytes=2**24, held=lambda point: 4 * point["N"] * point["M"])
    assert dims == {"N": 65536, "M": 64}


def test_timing_counts_bytes_in_the_first_claimed_dtype() -> None:
    declaration = parse_declaration({"x": "bfloat16|float32[M]"}, {"M": 1024})
    assert timing_dims(declaration, at_least_bytes=4096) == {"M": 2048}


def test_timing_starts_below_sizes_that_the_requirements_exclude() -> None:
    assert timing_dims(declared("N % 64 == 0"), at_least_bytes=0) == {"M": 256, "N": 64}


def test_timing_keeps_fixed_shapes_as_they_are() -> None:
    assert timing_dims(parse_declaration({"x": "float32[5]"}, {}), at_least_bytes=2**30) == {}


def test_timing_refuses_sizes_at_which_nothing_can_be_generated() -> None:
    declaration = parse_declaration({"x": "float32[M - 9]"}, {"M": 4})
    with pytest.raises(BadInput, match="cannot be generated at any"):
        timing_dims(declaration, at_least_bytes=1)


# Properties

NAMES = ("M", "N", "K")
dtypes = st.lists(st.sampled_from(OF_INPUTS), min_size=1, max_size=3, unique=True).map(tuple)
leaves = st.sampled_from(NAMES) | st.integers(0, 99).map(str)
expressions = st.recursive(
    leaves,
    lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from(("+", "-", "*", "//", "%")), inner),
    max_leaves=5,
)


@given(dtypes, st.lists(st.sampled_from(("M", "N // 2", "K % 3 + 1", "8")), max_size=4).map(tuple))
def test_a_tensor_reads_back_from_its_own_text(declared: tuple[DType, ...], shape: tuple[str, ...]) -> None:
    spec = TensorSpec(dtypes=declared, shape=shape)
    assert parse_input("x", str(spec), NAMES) == spec


@given(st.integers(-1000, 1000), st.integers(1, 1000), st.sampled_from(("int64", "float32", "float64")))
def test_a_range_reads_back_from_its_own_text(low: int, width: int, dtype: DType) -> None:
    spec = TensorSpec(dtypes=(dtype,), shape=("M",), low=str(low), high=str(low + width))
    assert parse_input("x", str(spec), NAMES) == spec


@given(expressions, st.fixed_dictionaries({name: st.integers(0, 50) for name in NAMES}))
def test_sizes_are_computed_as_python_computes_them(text: str, dims: dict[str, int]) -> None:
    try:
        expected = eval(text, {}, dict(dims))
    except ZeroDivisionError:
        assert "divides by zero" in refusal_of(lambda: value_of(text, dims)).message
    else:
        assert value_of(text, dims) == expected


@given(st.text(alphabet="MNfloat32in8|[](), .+-*/%<=and'\"\n\té0", max_size=40))
def test_any_text_is_read_or_refused_at_a_place_in_it(text: str) -> None:
    refusals = []
    for parse in (
        lambda: parse_input("x", text, NAMES),
        lambda: parse_size(TextSpan.of("Size", text).stripped(), NAMES),
        lambda: parse_requirement(TextSpan.of("Requirement", text).stripped(), NAMES),
    ):
        try:
            parse()
        except BadDeclaration as error:
            refusals.append(error)
    assert all(0 <= refusal.position <= len(refusal.text) and refusal.hint for refusal in refusals)


def test_an_option_that_is_huge_or_deep_is_refused_in_short() -> None:
    for option, problem in [
        ("x=" + "[" * 3000 + "]" * 3000, "nested more than 16 deep"),
        ("x=" + "[1," * 2400 + "1" + "]" * 2400, "nested more than 16 deep"),
        ("x=float32[" + "N," * 3000 + "N]", "a tensor has at most 64"),
        ("x=float32[" + "(" * 99 + "N" + ")" * 99 + ")]", "unmatched"),
        ("x=float32[" + "-" * 199 + "K]", "no dimension 'K'"),
        ("x=" + "a" * 10**6, "at most 10000 are read"),
        ("=" * 10**6, "at most 10000 are read"),
    ]:

        def parse(option: str = option) -> None:
            options = parse_options([option], [])
            parse_declaration(options.inputs, DIMS)

        refusal = refusal_of(parse)
        assert problem in refusal.message
        assert len(str(refusal)) < 2000


def test_more_sizes_of_a_dimension_than_can_be_tried_are_refused() -> None:
    refusal = refusal_of(lambda: declared_with_sizes("1," * 2000 + "1"))
    assert "N has 2001 sizes; at most 1000 are tried" in refusal.message


def declared_with_sizes(text: str) -> Declaration:
    return parse_declaration({"x": "float32[N]"}, {"N": text})


def test_a_refusal_of_a_long_text_shows_what_is_near_the_mistake() -> None:
    options = parse_options(["x=float32[M, N] in 0.." + "1 + " * 1000 + "K"], [])
    refusal = refusal_of(lambda: parse_declaration(options.inputs, DIMS))
    line, caret = refusal.message.splitlines()[-2:]
    assert len(line) < 500
    assert caret.index("^") < len(line)


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (["M"], "'=' is missing"),
        (["M=7,M=8"], "M is given twice"),
        (["M=x"], "not an integer"),
        (["M=-1"], "negative"),
        (["M=7,N=8", "M=9"], "N is not named in every --at"),
    ],
)
def test_points_that_cannot_be_read_are_refused(texts: list[str], problem: str) -> None:
    assert problem in refusal_of(partial(parse_points, texts)).message


def test_a_dim_has_its_sizes_from_points_or_from_the_option_dim() -> None:
    options = parse_options([], ["M=1,7"])
    assert "names sizes of M too" in refusal_of(partial(options.at, parse_points(["M=7,N=8"]))).message
