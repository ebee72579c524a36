"""Names and keywords that people write and Triton does not have: a row for each thing to write instead.

They come from PyTorch, NumPy, CUDA, from Triton's forks and from releases long gone. A row counts only where
the installed Triton does not have the name or keyword, or warns of it; a name of another module needs no row.
"""

from collections import defaultdict
from collections.abc import Mapping
from itertools import product

EVERY_OTHER = "*"
"""Stands for each keyword that has no row."""

_Rows = tuple[tuple[str, str], ...]
_KeywordRows = tuple[tuple[str, str, str], ...]

_CUDA_THREADS = "Programs work on blocks: use tl.program_id and tl.arange."
_BARRIER = "Leave it out: Triton places barriers itself. Where one is needed, use tl.debug_barrier()."
_SHARED = "Leave it out: the compiler places blocks in shared memory."
_PIPELINE = (
    "Write plain tl.load in `for ... in tl.range(..., num_stages=3)`: that makes its copies asynchronous; "
    "explicit copies exist only in Gluon."
)
_DESCRIPTOR = "Use tl.make_tensor_descriptor(base, shape, strides, block_shape), and its load and store."
_TENSOR_MAP = f"{_DESCRIPTOR} That makes the tensor map, and fences it."
_BLOCK_POINTER = f"{_DESCRIPTOR} Or build a block of pointers from tl.arange, and mask it."
_SCAN = "Use tl.associative_scan with a @triton.jit function of two values."
_CONVERT = "Use tl.tensor.to: x.to(tl.{0})."

_NAMES: _Rows = (
    ("abs_", "Use tl.abs."),
    ("all", "Use tl.min of the mask as tl.int32."),
    ("alloc local_alloc local_load local_store shared shared_memory", _SHARED),
    ("amax", "Use tl.max."),
    ("amin", "Use tl.min."),
    ("any", "Use tl.reduce_or, or tl.max of the mask as tl.int32."),
    ("argsort", "Sort packed pairs: the key in the high bits, the index in the low ones."),
    ("astype to", "Use x.to(dtype)."),
    ("async_copy async_load async_wait cp_async pipeline prefetch", _PIPELINE),
    ("atomic_compare_exchange", "Use tl.atomic_cas(pointer, cmp, val)."),
    ("atomic_dec", "Use tl.atomic_add with -1."),
    ("atomic_exchange atomic_store", "Use tl.atomic_xchg(pointer, val)."),
    ("atomic_inc", "Use tl.atomic_add with 1."),
    ("atomic_load", "Use tl.atomic_add(pointer, 0), or tl.load with volatile=True."),
    ("atomic_mul", "Loop over tl.atomic_cas, or multiply in a second kernel."),
    ("atomic_sub", "Use tl.atomic_add with the negated value."),
    ("bar_sync barrier fence memory_fence sync sync_threads sync_warp syncthreads threadfence", _BARRIER),
    ("bf16", "Use tl.bfloat16."),
    ("bincount", "Use tl.histogram(input, num_bins)."),
    ("bitcast", "Use x.to(dtype, bitcast=True)."),
    ("bitwise_and logical_and", "Use `&`."),
    ("bitwise_not", "Use `~`."),
    ("bitwise_or logical_or", "Use `|`."),
    ("bitwise_xor", "Use `^`."),
    ("block_dim blockDim lane_id thread_id thread_idx threadIdx warp_id", _CUDA_THREADS),
    ("block_id block_idx blockIdx get_program_id", "Use tl.program_id."),
    ("bmm", "Use tl.dot; it takes a leading batch axis."),
    ("bool", "Use tl.int1."),
    ("clip", "Use tl.clamp."),
    ("concat concatenate", "Use tl.cat or tl.join."),
    ("contiguous", "Leave it out: blocks lie in registers and have no strides."),
    ("conv1d", "Compose it of tl.load and tl.dot."),
    ("conv2d", "Compose it of tl.load and tl.dot over the filter's positions."),
    ("cummax cummin scan", _SCAN),
    ("debug_print print", "Use tl.device_print, or tl.static_print for constants."),
    ("device", "Leave it out: a kernel runs where its launch does."),
    ("div", "Use `/`, or `//` for integers."),
    ("dot_product", "Use tl.sum(x * y, axis=0)."),
    ("double", "Use tl.float64."),
    ("dropout", "Compare tl.rand(seed, offsets) with p: tl.where(keep, x / (1 - p), 0.0)."),
    ("einsum", "Use tl.dot, or broadcasting with tl.sum."),
    ("elu", "Use tl.where(x > 0, x, alpha * (tl.exp(x) - 1.0))."),
    ("empty", "Use tl.zeros."),
    ("empty_like", "Use tl.zeros_like."),
    ("equal", "Use `==`."),
    ("expand", "Use tl.broadcast_to."),
    ("eye", "Compare indices: tl.where(rows[:, None] == cols[None, :], 1.0, 0.0)."),
    ("float fp32", "Use tl.float32."),
    ("float8", "Use tl.float8e4nv or tl.float8e5."),
    ("float8_e4m3fn float8e4 float8e4m3 float8e4m3fn", "Use tl.float8e4nv."),
    ("float8_e5m2 float8e5m2", "Use tl.float8e5."),
    ("floor_div floor_divide", "Use `//`."),
    ("fp16 half", "Use tl.float16."),
    ("full_like", "Use tl.full(x.shape, value, x.dtype)."),
    ("function kernel", "Use @triton.jit."),
    ("gelu", "Use 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))."),
    ("greater", "Use `>`."),
    ("grid_dim gridDim", "Use tl.num_programs."),
    ("index_select take", "Use tl.gather, or tl.load from the computed addresses."),
    ("inf", 'Use float("inf").'),
    ("int", "Use tl.int32."),
    ("int4", "Load tl.int8 and take its halves with `&` and `>>`."),
    ("isfinite", "Use tl.abs(x) < float(\"inf\")."),
    ("isinf", "Use tl.abs(x) == float(\"inf\")."),
    ("isnan", "Use x != x."),
    ("item", "Use tl.sum or tl.max over the axis; a loaded scalar is a number already."),
    ("layer_norm rms_norm", "Compose it of tl.sum and tl.rsqrt."),
    ("leaky_relu", "Use tl.where(x > 0, x, slope * x)."),
    ("left_shift", "Use `<<`."),
    ("less", "Use `<`."),
    ("lerp", "Use x + weight * (y - x)."),
    ("libdevice", "Use `from triton.language.extra import libdevice`."),
    ("linspace", "Use start + step * tl.arange(0, N)."),
    ("log_softmax", "Subtract tl.max first, then tl.log of the tl.sum of tl.exp."),
    ("logical_not", "Use `~` on a mask."),
    ("logical_xor", "Use `^` on masks."),
    ("logsumexp", "Subtract tl.max first; add it again to tl.log of the tl.sum of tl.exp."),
    ("long", "Use tl.int64."),
    ("make_block_ptr", _BLOCK_POINTER),
    ("advance", f"Block pointers are gone. {_BLOCK_POINTER}"),
    ("masked_fill", "Use tl.where(mask, value, x)."),
    ("masked_load", "Use tl.load(pointer, mask=mask, other=0.0)."),
    ("masked_store", "Use tl.store(pointer, value, mask=mask)."),
    ("matmul mm mma", "Use tl.dot."),
    ("mean", "Divide tl.sum by the count."),
    ("meshgrid", "Use x[:, None] and y[None, :], which broadcast."),
    ("mish", "Use x * libdevice.tanh(tl.log(1.0 + tl.exp(x)))."),
    ("mod", "Use `%`."),
    ("nan", 'Use float("nan").'),
    ("neg negative", "Use `-x`."),
    ("next_power_of_2", "Use triton.next_power_of_2 where the kernel is launched, and pass a tl.constexpr."),
    ("nonzero", "Compact with tl.cumsum of the mask, and store to the positions that it gives."),
    ("norm", "Use tl.sqrt(tl.sum(x * x))."),
    ("normal", "Use tl.randn(seed, offsets)."),
    ("not_equal", "Use `!=`."),
    ("numel", "Use x.numel."),
    ("one_hot", "Compare indices: tl.where(cols[None, :] == index[:, None], 1.0, 0.0)."),
    ("ones", "Use tl.full(shape, 1.0, dtype)."),
    ("ones_like", "Use tl.full(x.shape, 1.0, x.dtype)."),
    ("outer", "Use x[:, None] * y[None, :]."),
    ("pad", "Load with a mask, and with `other` as the padding."),
    ("parallel_for", "Programs run in parallel already: give each its part by tl.program_id."),
    ("pid", "Use tl.program_id(axis)."),
    ("pointer ptr", "Use tl.pointer_type(tl.float32)."),
    (
        "pow power",
        "Use libdevice.pow of `from triton.language.extra import libdevice`; write squares as x * x.",
    ),
    ("printf", "Use tl.device_print."),
    ("prod", "Use tl.reduce with a @triton.jit function that multiplies."),
    ("reciprocal", "Use 1.0 / x."),
    ("relu", "Use tl.maximum(x, 0.0)."),
    ("relu6", "Use tl.clamp(x, 0.0, 6.0)."),
    ("remainder", "Use `%`; it has C's sign."),
    ("repeat tile", "Use tl.broadcast_to, then tl.reshape."),
    ("right_shift", "Use `>>`."),
    ("scatter", "Use tl.store, or tl.atomic_add, to the computed addresses."),
    ("select", "Use tl.where."),
    ("shape", "Use x.shape."),
    (
        "shfl_down shuffle warp_reduce",
        "Use tl.sum, tl.max or tl.reduce: they exchange values between threads.",
    ),
    ("sign", "Use tl.where(x > 0, 1.0, tl.where(x < 0, -1.0, 0.0))."),
    ("silu swish", "Use x * tl.sigmoid(x)."),
    ("size", "Use x.shape[axis]."),
    ("softplus", "Use tl.where(x > 20.0, x, tl.log(1.0 + tl.exp(x)))."),
    ("square", "Use x * x."),
    ("squeeze view", "Use tl.reshape."),
    ("stack", "Use tl.join."),
    ("std", "Use tl.sqrt of the mean of the squared deviations from the mean."),
    ("stride", "Pass the strides to the kernel: x.stride(0) where it is launched."),
    ("tma_async_copy tma_load tma_store", f"{_DESCRIPTOR} That is what uses TMA."),
    ("to_tensor", "Write x + 0, or tl.full(shape, x, dtype)."),
    ("transpose", "Use tl.trans, or tl.permute."),
    ("tril", "Use tl.where(rows[:, None] >= cols[None, :], x, 0.0)."),
    ("triu", "Use tl.where(rows[:, None] <= cols[None, :], x, 0.0)."),
    ("true_divide", "Use `/`."),
    ("uniform", "Use tl.rand(seed, offsets)."),
    ("unroll", "Loop over tl.static_range, or use loop_unroll_factor of tl.range."),
    ("unsqueeze", "Use tl.expand_dims(x, axis), or x[:, None]."),
    ("var", "Use the mean of the squared deviations from the mean."),
    ("warp_specialize", "Write `for ... in tl.range(..., warp_specialize=True)`."),
    ("wgmma", "Use tl.dot; the compiler chooses the instruction."),
)  # fmt: skip

_EXPERIMENTAL: _Rows = (
    ("descriptor_load", "Use desc.load(offsets) of tl.make_tensor_descriptor."),
    ("descriptor_store", "Use desc.store(offsets, value) of tl.make_tensor_descriptor."),
    ("device_tensormap_create1d device_tensormap_create2d", _TENSOR_MAP),
    ("make_tensor_descriptor", "Use tl.make_tensor_descriptor."),
    ("tensormap_fenceproxy_acquire", f"Leave it out. {_TENSOR_MAP}"),
)
"""After `experimental_`; releases wrote it with and without an underscore before it."""

_MEMBERS: _Rows = (
    ("amax", "Use tl.max(x, axis)."),
    ("astype", "Use x.to(dtype)."),
    ("bfloat16", _CONVERT.format("bfloat16")),
    ("bool", _CONVERT.format("int1")),
    ("clamp", "Use tl.clamp(x, min, max)."),
    ("clone", "Leave it out: values of a kernel never change in place."),
    ("contiguous", "Leave it out: blocks lie in registers and have no strides."),
    ("cuda", "Leave it out: a kernel runs on the device already."),
    ("dim ndim", "Use len(x.shape)."),
    ("double", _CONVERT.format("float64")),
    ("float", _CONVERT.format("float32")),
    ("half", _CONVERT.format("float16")),
    ("int", _CONVERT.format("int32")),
    ("long", _CONVERT.format("int64")),
    ("mean", "Divide tl.sum(x, axis) by the count."),
    ("pow", "Use libdevice.pow(x, y); write squares as x * x."),
    ("relu", "Use tl.maximum(x, 0.0)."),
    ("size", "Use x.shape[axis]."),
    ("squeeze", "Use tl.reshape."),
    ("stride", "Pass the strides to the kernel: x.stride(0) where it is launched."),
    ("t", "Use tl.trans(x)."),
    ("transpose", "Use tl.trans(x), or tl.permute."),
    ("unsqueeze", "Use tl.expand_dims(x, axis), or x[:, None]."),
)

_OTHERS: _Rows = (
    ("torch.tensor_strides", "Use x.stride()."),
    ("triton.Autotune triton.autotuner", "Use @triton.autotune."),
    ("triton.ceil_div triton.ceildiv", "Use triton.cdiv."),
    ("triton.function triton.kernel", "Use @triton.jit."),
    ("triton.grid", "Give the grid as a tuple or a function: kernel[(triton.cdiv(n, BLOCK),)](...)."),
    ("triton.language.math.max", "Use tl.maximum of two values, or tl.max along an axis."),
    ("triton.language.math.min", "Use tl.minimum of two values, or tl.min along an axis."),
    ("triton.launch", "Call kernel[grid](...)."),
    ("triton.next_pow2 triton.next_power_of_two", "Use triton.next_power_of_2."),
    ("triton.ops", "It is gone: copy the kernel that you need, or call PyTorch."),
    ("triton.synchronize", "Use torch.cuda.synchronize()."),
    ("triton.testing.allclose", "Use torch.testing.assert_close."),
    ("triton.testing.benchmark", "Use triton.testing.do_bench, or @triton.testing.perf_report."),
    ("triton.tools.experimental_descriptor", "Use TensorDescriptor of triton.tools.tensor_descriptor."),
)
"""By dotted path."""


def _names(rows: _Rows, before: str = "") -> dict[str, str]:
    """The advice by dotted path, in alphabetical order."""
    by_name = {name: advice for names, advice in rows for name in names.split()}
    return {before + name: by_name[name] for name in sorted(by_name, key=str.lower)}


NAMES: Mapping[str, str] = {
    **_names(_NAMES, "triton.language."),
    **_names(_EXPERIMENTAL, "triton.language.experimental_"),
    **_names(_EXPERIMENTAL, "triton.language._experimental_"),
    **_names(_MEMBERS, "triton.language.tensor."),
    **_names(_OTHERS),
}
"""The advice by dotted path."""

_AXIS = "The keyword is `axis`."
_REGISTERS = "Leave it out: blocks live in registers."
_NO_BLOCK_POINTER = "Block pointers are gone: load and store by tl.make_tensor_descriptor, or give a mask."
_LAST_AXIS = "Leave it out: the last axis is the contiguous one; its stride must be 1."

_KEYWORDS: _KeywordRows = (
    (
        "sum max min argmax argmin xor_sum cumsum cumprod",
        "mask",
        "First fill the masked lanes with what it ignores: tl.where(mask, x, 0.0) for a sum.",
    ),
    ("sum max min argmax argmin xor_sum cumsum cumprod", "dim", _AXIS),
    ("sum max min argmax argmin xor_sum", "keepdim keepdims", "The keyword is `keep_dims`."),
    ("program_id num_programs expand_dims gather", "dim", _AXIS),
    ("sort softmax topk flip", "axis", "The keyword is `dim`."),
    ("reshape view", "shape", "Give the sizes by position: tl.reshape(x, (M, N))."),
    ("broadcast_to", "shape", "Give the sizes by position: tl.broadcast_to(x, (M, N))."),
    ("permute trans", "dims", "Give the axes by position: tl.permute(x, (1, 0))."),
    ("range static_range", "start end stop", "Give start, end and step by position: tl.range(0, n, BLOCK)."),
    ("load", "padding padding_value default fill fill_value pad", "The keyword is `other`."),
    ("load store", "eviction evict", "The keyword is `eviction_policy`: eviction_policy='evict_first'."),
    ("load store", "cache", "The keyword is `cache_modifier`: cache_modifier='.cg'."),
    ("load", "dtype", "Convert what was loaded: tl.load(pointer).to(dtype)."),
    ("load store", "boundary_check", _NO_BLOCK_POINTER),
    ("load", "padding_option", _NO_BLOCK_POINTER),
    ("store", "other", "Leave it out: masked lanes are not stored."),
    ("store", "val", "The keyword is `value`."),
    ("arange", "step", "Multiply: tl.arange(0, N) * step."),
    ("arange", "dtype", "Cast it: tl.arange(0, N).to(tl.int64)."),
    ("arange zeros full", "device", _REGISTERS),
    ("zeros full", "size", "The keyword is `shape`."),
    ("full", "fill_value", "The keyword is `value`."),
    ("dot", "trans_a", "Transpose the operand: tl.dot(tl.trans(a), b)."),
    ("dot", "trans_b", "Transpose the operand: tl.dot(a, tl.trans(b))."),
    ("dot", "accumulator", "The keyword is `acc`."),
    ("dot", "precision", "The keyword is `input_precision`."),
    ("atomic_add atomic_max atomic_min atomic_xchg", "value", "The keyword is `val`."),
    ("atomic_add atomic_max atomic_min atomic_xchg", "other", "Leave it out: masked lanes are left alone."),
    ("atomic_cas", "mask", "Leave it out: no atomic_cas can be masked; branch on a scalar condition."),
    ("atomic_cas", "expected", "The keyword is `cmp`."),
    ("atomic_cas", "desired", "The keyword is `val`."),
    ("cat", "axis", "The keyword is `dim`; before Triton 3.7 there is none."),
    ("cat", "dim", "Use tl.join, then tl.permute and tl.reshape."),
    ("topk", "largest", "Leave it out: it takes the largest; negate x for the smallest."),
    ("topk", "descending", "Leave it out: it takes the largest; negate x for the smallest."),
    ("rand randn", "shape size", "The result has the shape of the offsets: tl.rand(seed, tl.arange(0, N))."),
    ("randint", "low high", "Take the remainder: low + tl.randint(seed, offset).to(tl.uint32) % count."),
    ("cumprod", "dtype", "Convert x first: tl.cumprod(x.to(dtype))."),
    ("make_tensor_descriptor", "order", _LAST_AXIS),
    ("make_tensor_descriptor", "padding", "The keyword is `padding_option`."),
    ("make_tensor_descriptor", "offsets", "Give them to its load and store: desc.load([row, col])."),
    (
        "tensor_descriptor.load",
        "mask other boundary_check",
        "Leave it out: the descriptor fills what lies outside of the tensor, as its padding_option says.",
    ),
    (
        "tensor_descriptor.store",
        "mask boundary_check",
        "Leave it out: what lies outside of the tensor is not stored.",
    ),
    ("device_print", "end", "Leave it out: each call prints lines of its own."),
)
"""Functions of triton.language, their keywords, what to write."""

_TRITON_KEYWORDS: _KeywordRows = (
    (
        "Config",
        "waves_per_eu",
        "Put it into the dictionary: triton.Config({'BLOCK': 128, 'waves_per_eu': 2}).",
    ),
    (
        "Config",
        "num_consumer_groups num_buffers_warp_spec",
        "Use tl.range(..., warp_specialize=True) in the kernel.",
    ),
    (
        "Config",
        EVERY_OTHER,
        "Put meta-parameters into the dictionary: triton.Config({'BLOCK': 128}, num_warps=4).",
    ),
    ("autotune", "keys", "The keyword is `key`."),
    ("jit", "num_warps num_stages", "Give it at the launch: kernel[grid](..., num_warps=4)."),
    ("jit", "interpret", "Set the environment variable TRITON_INTERPRET=1 before Triton is imported."),
    ("jit", "static_argnums", "Annotate the parameter with tl.constexpr."),
    (
        "compile",
        "signature constants constexprs fn num_warps",
        "Describe the kernel first: triton.compile(ASTSource(fn, signature, constexprs), target=target).",
    ),
    ("testing.do_bench", "percentiles", "The keyword is `quantiles`."),
    ("testing.do_bench", "fast_flush", "Leave it out: the cache is always cleared."),
    ("testing.do_bench", "iters n_iter n_repeat", "The keyword is `rep`, in milliseconds."),
    ("tools.tensor_descriptor.TensorDescriptor", "order", _LAST_AXIS),
    ("tools.tensor_descriptor.TensorDescriptor", "padding_option", "The keyword is `padding`."),
)
"""The same for other parts of Triton."""


def _by_path() -> Mapping[str, Mapping[str, str]]:
    by_path: dict[str, dict[str, str]] = defaultdict(dict)
    for module, rows in (("triton.language", _KEYWORDS), ("triton", _TRITON_KEYWORDS)):
        for functions, keywords, suggestion in rows:
            for function, keyword in product(functions.split(), keywords.split()):
                known = by_path[f"{module}.{function}"]
                assert keyword not in known, f"{module}.{function}({keyword}=) has two rows"
                known[keyword] = suggestion
    return by_path


KEYWORDS: Mapping[str, Mapping[str, str]] = _by_path()
"""By the function's dotted path, then by keyword."""
