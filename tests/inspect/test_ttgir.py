"""Reading TTIR and TTGIR: lines recorded from Triton 3.6 to 3.9, cut to what is read."""

from pytorch_to_triton.inspect.ttgir import (
    BlockAccess,
    Dot,
    Loop,
    ShortSum,
    SourceRows,
    block_accesses,
    dots,
    float_atomics,
    loops,
    short_sums,
)

WAITING = """\
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#loc = loc("/home/me/k.py":8:0)
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @k(%x_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x_ptr"(#loc))) {
    %s = tt.load %scalar : !tt.ptr<f32> loc(#loc5)
    %total:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %cst) -> (tensor<512xf32, #blocked>)  : i32 {
      %x = tt.load %ptrs, %mask, %cst : tensor<512x!tt.ptr<f32>, #blocked> loc(#loc20)
      %more = scf.if %c -> (tensor<512xf32, #blocked>) {
        %h = tt.load %others : tensor<16x32x!tt.ptr<f16>, #blocked> loc(#loc21)
        scf.yield %h : tensor<512xf32, #blocked> loc(#loc21)
      } else {
        scf.yield %x : tensor<512xf32, #blocked> loc(#loc21)
      } loc(#loc21)
      scf.yield %x : tensor<512xf32, #blocked> loc(#loc3)
    } loc(#loc3)
    tt.store %outs, %total#0, %mask : tensor<512x!tt.ptr<bf16>, #blocked> loc(#loc4)
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc3 = loc("/home/me/k.py":12:28)
#loc4 = loc("/home/me/k.py":20:30)
#loc5 = loc("/home/me/k.py":10:16)
#loc20 = loc("x"(#loc22))
#loc21 = loc(callsite(#loc23 at #loc24))
#loc22 = loc("/home/me/k.py":13:20)
#loc23 = loc("/usr/lib/triton/language/standard.py":170:27)
#loc24 = loc("/home/me/k.py":15:16)
"""
PREFETCHING = """\
    %acc:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %cst) -> (tensor<64x64xf32, #mma>)  : i32 {
      %x_203 = ttg.async_wait %x_190, %w_194 {num = 6 : i32} loc(#loc1)
      %x_253 = ttg.async_copy_global_to_local %p, %m mask %k other %c : tensor<16x32x!tt.ptr<f32>, #blocked> -> <16x32xf32, #shared, #smem, mutable> loc(#loc1)
      scf.yield %d : tensor<64x64xf32, #mma> loc(#loc2)
    } loc(#loc2)
    amdg.buffer_store %v, %out_ptr[%offsets], %mask : tensor<1024xf32, #blocked> loc(#loc1)
#loc1 = loc("/k.py":7:1)
#loc2 = loc("/k.py":6:1)
"""  # noqa: E501
TTIR = """\
      %d = tt.dot %a, %b, %acc, inputPrecision = tf32 : tensor<64x32xf32> * tensor<32x64xf32> -> tensor<64x64xf32> loc(#loc1)
      %e = tt.dot %a, %b, %acc : tensor<64x32xf32> * tensor<32x64xf32> -> tensor<64x64xf32> loc(#loc1)
      %f = tt.dot %a, %b, %acc : tensor<64x32xf8E4M3FN> * tensor<32x64xf8E4M3FN> -> tensor<64x64xf32> loc(#loc1)
#loc1 = loc("/k.py":7:1)
"""  # noqa: E501
SUMS = """\
    %s = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%a: f16 loc(unknown), %b: f16 loc(unknown)):
      %t = arith.addf %a, %b : f16 loc(#loc2)
      tt.reduce.return %t : f16 loc(#loc1)
    }) : (tensor<16x64xf16>) -> tensor<16xf16> loc(#loc1)
    %m = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%a: f16 loc(unknown), %b: f16 loc(unknown)):
      %t = arith.maxnumf %a, %b : f16 loc(#loc2)
      tt.reduce.return %t : f16 loc(#loc1)
    }) : (tensor<16x64xf16>) -> tensor<16xf16> loc(#loc1)
    %c = "tt.scan"(%y) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: bf16 loc(unknown), %b: bf16 loc(unknown)):
      %t = arith.addf %a, %b : bf16 loc(#loc2)
      tt.scan.return %t : bf16 loc(#loc2)
    }) : (tensor<32xbf16>) -> tensor<32xbf16> loc(#loc2)
    %z = arith.addf %x, %x : tensor<16x64xf16> loc(#loc2)
    %o = tt.atomic_rmw fadd, acq_rel, gpu, %p, %v, %k : (!tt.ptr<f32>, f32, i1) -> f32 loc(#loc2)
    %u = tt.atomic_rmw add, acq_rel, gpu, %p, %w, %k : (!tt.ptr<i32>, i32, i1) -> i32 loc(#loc1)
#loc1 = loc("/k.py":7:1)
#loc2 = loc("/k.py":9:1)
"""


def test_loads_and_stores_of_blocks_are_reported_with_their_lines_amds_too() -> None:
    assert block_accesses(SourceRows(WAITING, "k.py")) == [
        BlockAccess("load", 512, 32, 13),
        BlockAccess("load", 512, 16, 15),
        BlockAccess("store", 512, 16, 20),
    ]
    assert BlockAccess("store", 1024, 32, 7) in block_accesses(SourceRows(PREFETCHING, "k.py"))
    assert {access.line for access in block_accesses(SourceRows(WAITING, "other.py"))} == {None}


def test_a_loop_knows_the_loads_that_it_waits_for_and_its_matrix_products() -> None:
    assert loops(SourceRows(WAITING, "k.py")) == [Loop(line=12, loads=(13, 15), prefetches=0)]
    assert loops(SourceRows(PREFETCHING, "k.py")) == [Loop(line=6, loads=(), prefetches=1)]
    product = "      %d = tt.dot %a, %b, %acc : tensor<64x32xf32> * tensor<32x64xf32> -> tensor<64x64xf32>\n"
    text = PREFETCHING.replace("      scf.yield", product + "      scf.yield")
    assert [loop.dots for loop in loops(SourceRows(text, "k.py"))] == [1]
    nested = "    scf.for %o = %c0 to %n step %c1  : i32 {\n" + WAITING + "    } loc(#loc4)\n"
    assert [loop.line for loop in loops(SourceRows(nested, "k.py"))] == [12]


def test_dots_are_reported_with_the_type_and_the_precision_of_their_operands() -> None:
    assert dots(SourceRows(TTIR, "k.py")) == [
        Dot("f32", "tf32", 7, "f32"),
        Dot("f32", "", 7, "f32"),
        Dot("f8E4M3FN", "", 7, "f32"),
    ]


def test_sums_in_short_types_and_additions_of_floats_by_atomics_are_reported() -> None:
    assert short_sums(SourceRows(SUMS, "k.py")) == [ShortSum("f16", 64, 7), ShortSum("bf16", 32, 9)]
    assert float_atomics(SourceRows(SUMS, "k.py")) == [9]
