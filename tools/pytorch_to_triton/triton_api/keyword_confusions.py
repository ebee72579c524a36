"""Keywords that people give and the functions of Triton do not take, with what to write instead.

A row counts only where the installed Triton does not have the keyword.
"""

from collections import defaultdict
from collections.abc import Mapping
from itertools import product

EVERY_OTHER = "*"
"""Stands for each keyword that has no row."""

_Rows = tuple[tuple[str, str, str], ...]

_AXIS = "The keyword is `axis`."
_REGISTERS = "Leave it out: blocks live in registers."
_BLOCK_POINTER = "Block pointers are gone: load and store by tl.make_tensor_descriptor, or give a mask."
_LAST_AXIS = "Leave it out: the last axis is the contiguous one; its stride must be 1."

_TL: _Rows = (
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
    ("load store", "boundary_check", _BLOCK_POINTER),
    ("load", "padding_option", _BLOCK_POINTER),
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

_TRITON: _Rows = (
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
    for module, rows in (("triton.language", _TL), ("triton", _TRITON)):
        for functions, keywords, suggestion in rows:
            for function, keyword in product(functions.split(), keywords.split()):
                known = by_path[f"{module}.{function}"]
                assert keyword not in known, f"{module}.{function}({keyword}=) has two rows"
                known[keyword] = suggestion
    return by_path


KEYWORDS: Mapping[str, Mapping[str, str]] = _by_path()
"""By the function's dotted path, then by keyword."""
