"""What follows an input's dtype is told apart from what does not, from traces in several dtypes."""

from itertools import product
from pathlib import Path

import pytest

from pytorch_to_triton.graph.dtype_rules import (
    FINFO,
    FLOATS,
    MOST_TRACED,
    SIGNED,
    DtypeRule,
    deciding_dtype,
    dtype_combinations,
    dtype_source,
    promoted_dtype,
    tensors_of_one_dtype,
)
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.dtype import DType
from pytorch_to_triton.schema.job import Job, Runtime

pytestmark = pytest.mark.anyio

PROMOTIONS = Path(__file__).parent / "jobs" / "promotions.py"
LONG_OR_SHORT: tuple[DType, ...] = ("float32", "bfloat16")
BOTH: list[dict[str, DType]] = [{"x": x, "w": w} for x, w in product(LONG_OR_SHORT, repeat=2)]


async def test_promotion_and_finfo_are_torchs_own(worker: WorkerClient, interpreter: Runtime) -> None:
    dtypes: list[DType] = [*FLOATS[:4], *SIGNED, "uint8", "bool"]
    job = Job(kind=str(PROMOTIONS), arguments={"dtypes": list(dtypes), "figures": list(FINFO)})
    answer = (await worker.ask(job, interpreter, seconds=60.0)).answer
    assert answer is not None
    assert {f"{a} {b}": promoted_dtype(a, b) for a, b in product(dtypes, repeat=2)} == answer["promoted"]
    written = {f"{name} {dtype}": value for name, known in FINFO.items() for dtype, value in known.items()}
    assert written == {key: answer["finfo"][key] for key in written}


def test_all_combinations_are_tried_where_they_are_few_the_widest_first() -> None:
    tried = dtype_combinations({"x": ("bfloat16", "float32"), "w": ("float32", "bfloat16"), "i": ("int64",)})
    assert tried[0] == {"x": "float32", "w": "float32", "i": "int64"}
    assert len(tried) == 4


def test_of_many_tensors_each_is_tried_apart_from_the_others() -> None:
    claims = dict.fromkeys("abcde", LONG_OR_SHORT)
    tried = dtype_combinations(claims)
    assert MOST_TRACED < len(tried) <= 2 + 2 * len(claims)
    assert dict.fromkeys(claims, "bfloat16") in tried
    for name in claims:
        assert {**dict.fromkeys(claims, "float32"), name: "bfloat16"} in tried
        assert {**dict.fromkeys(claims, "bfloat16"), name: "float32"} in tried


def test_tensors_with_the_same_claims_change_together() -> None:
    claims: dict[str, tuple[DType, ...]] = {
        **dict.fromkeys(("a", "b"), LONG_OR_SHORT),
        **dict.fromkeys(("c", "d"), ("float32", "float16")),
    }
    tried = dtype_combinations(claims)
    assert {"a": "bfloat16", "b": "bfloat16", "c": "float32", "d": "float32"} in tried
    assert {"a": "float32", "b": "float32", "c": "float16", "d": "float16"} in tried


def test_an_output_of_many_tensors_is_promoted_from_just_those_that_explain_it() -> None:
    tried = dtype_combinations(dict.fromkeys("abcde", LONG_OR_SHORT))
    found = [promoted_dtype(dtypes["b"], dtypes["d"]) for dtypes in tried]
    assert dtype_source(found, tried) == "torch.promote_types(b.dtype, d.dtype)"


def test_an_output_follows_a_tensor_a_promotion_or_nothing() -> None:
    follows = [d["w"] for d in BOTH]
    assert dtype_source(follows, BOTH) == "w.dtype"
    assert dtype_source([DtypeRule(("x", "w")).of(d) for d in BOTH], BOTH) == (
        "torch.promote_types(x.dtype, w.dtype)"
    )
    assert dtype_source(["float32"] * 4, BOTH) == "torch.float32"
    assert dtype_source(["float32", "bfloat16", "bfloat16", "bfloat16"], BOTH) is None


def test_the_dtype_that_decides_is_found_or_there_is_none() -> None:
    by_sum = [[d for d in BOTH if promoted_dtype(d["x"], d["w"]) == dtype] for dtype in LONG_OR_SHORT]
    chosen = deciding_dtype(by_sum)
    assert chosen is not None
    assert chosen == (DtypeRule(("x", "w")), [("float32",), ("bfloat16",)])
    odd_one = [d for d in BOTH if d == {"x": "bfloat16", "w": "float32"}]
    assert deciding_dtype([[d for d in BOTH if d not in odd_one], odd_one]) is None


def test_tensors_that_always_change_together_are_alike() -> None:
    traced: list[dict[str, DType]] = [
        {"x": d, "y": d, "w": e, "mask": "bool", "index": "bool"} for d, e in product(LONG_OR_SHORT, repeat=2)
    ]
    assert tensors_of_one_dtype(traced) == (("x", "y"),)
