"""What is timed: each reference kernel at sizes where its peers were measured, and at small ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pytorch_to_triton.schema.benchmark import Baseline

Passes = Literal["forward", "backward", "both"]
ROW_SIZES = ("M=64,N=64", "M=16384,N=1024", "M=8192,N=4096", "M=4096,N=32768", "M=2048,N=131072")
"""Tiny, short, ordinary, long, and longer than registers hold."""
ORDINARY_ROWS = ROW_SIZES[1:]
SQUARES = ("M=4096,N=4096,K=4096", "M=8192,N=8192,K=8192")
SKINNY, LONG_K = "M=16,N=8192,K=8192", "M=1024,N=1024,K=65536"
"""Few rows, and a small output with a long K."""
VECTOR = ("N=134217728",)
MATRIX = ("M=16384,N=8192",)
LIGER, FLAG_GEMS = "liger", "flag_gems"
EAGER_AND_COMPILE: tuple[Baseline, ...] = ("eager", "compile")


@dataclass(frozen=True)
class Row:
    """One call of `benchmark`: a line of the table for each size."""

    kernel: str
    """A file of reference_kernels/."""
    sizes: tuple[str, ...]
    """As --at takes them."""
    inputs: tuple[str, ...] = ()
    """As --input takes them; other inputs are as the kernel's file declares them, in their first dtype."""
    peers: tuple[str, ...] = ()
    """Modules of peers/ that have a function of the kernel's name."""
    passes: Passes = "forward"
    form: str = ""
    """What tells it from another row of the same kernel."""
    baselines: tuple[Baseline, ...] = EAGER_AND_COMPILE
    is_product: bool = False
    """Whether its rate is in operations."""

    @property
    def name(self) -> str:
        """Unique, and a file's name."""
        dtype = next((text.partition("=")[2].partition("[")[0] for text in self.inputs if "[" in text), "")
        return "-".join(filter(None, (self.kernel, self.form, self.passes, dtype)))

    @property
    def key(self) -> str:
        return self.name


def rows() -> list[Row]:
    """All of them, the quick ones first."""
    return [*elementwise(), *row_wise(), *gathers(), *products(), *attentions(), crf()]


def elementwise() -> Iterator[Row]:
    """A pass over much memory."""
    yield Row("vector_add", VECTOR, ("x=bfloat16[N]", "y=bfloat16[N]"), (FLAG_GEMS,))
    yield Row("asin", VECTOR, ("x=float32[N] in -1..1",))
    yield Row("dropout", VECTOR, ("x=bfloat16[N]",))
    yield Row("bias_gelu", MATRIX, ("x=bfloat16[M,N]", "b=bfloat16[N]"))
    yield Row("transpose", MATRIX, ("x=bfloat16[M,N]",))
    for passes in both_ways():
        yield Row("swiglu", MATRIX, ("a=bfloat16[M,N]", "b=bfloat16[M,N]"), (LIGER,), passes)


def row_wise() -> Iterator[Row]:
    """Norms, softmax, reductions and scans."""
    norm = ("x=bfloat16[M,N]", "w=bfloat16[N]")
    for passes in both_ways():
        yield Row("softmax", ROW_SIZES, ("x=bfloat16[M,N]",), (LIGER, FLAG_GEMS), passes)
        yield Row("layer_norm", ROW_SIZES, (*norm, "b=bfloat16[N]"), (LIGER, FLAG_GEMS), passes)
        yield Row("rms_norm", ROW_SIZES, (*norm, "residual=None"), (LIGER,), passes, "plain")
        yield Row("rms_norm", ORDINARY_ROWS, (*norm, "residual=bfloat16[M,N]"), (), passes, "residual")
        yield Row("logsumexp", ORDINARY_ROWS, ("x=bfloat16[M,N]",), (), passes)
    experts = tuple(f"T={tokens},E=256,G=8,P=4,K=8" for tokens in (64, 1024, 16384))
    yield Row("grouped_top_k", experts, ("logits=float32[T,E]", "bias=float32[E]"))
    for kernel in ("argmax", "column_sum", "cumulative_sum"):
        yield Row(kernel, ORDINARY_ROWS, ("x=float32[M,N]",), (FLAG_GEMS,))


def gathers() -> Iterator[Row]:
    """Lookups, rotations and the loss over a large vocabulary."""
    for passes in both_ways():
        tables = ("cos=bfloat16[T,D//2] in -1..1", "sin=bfloat16[T,D//2] in -1..1")
        heads = ("B=4,T=4096,H=32,D=128",)
        yield Row("rotary_embedding", heads, ("x=bfloat16[B,T,H,D]", *tables), (), passes)
        words = ("table=bfloat16[V,N]", "index=int64[M] in 0..V")
        yield Row("embedding", ("V=128256,N=4096,M=16384",), words, (), passes)
        logits = ("logits=bfloat16[M,V]", "ignore_index=-100", "label_smoothing=0.0")
        target = "target=int64[M] in 0..V"
        yield Row("cross_entropy", ("M=8192,V=128256",), (*logits, target), (LIGER,), passes)


def products() -> Iterator[Row]:
    """Matrix products, in bfloat16 and float32, each kernel at the sizes that it is for."""

    def row(kernel: str, sizes: tuple[str, ...], inputs: tuple[str, ...], *peers: str) -> Row:
        return Row(
            kernel, sizes, inputs, peers, baselines=(*EAGER_AND_COMPILE, "max-autotune"), is_product=True
        )

    half = ("x=bfloat16[M,K]", "w=bfloat16[K,N]")
    sizes = (*SQUARES, "M=8192,N=4096,K=4096", SKINNY)
    yield row("matmul_bias_activation", sizes, (*half, "b=bfloat16[N]"))
    yield row("persistent_matmul", SQUARES, half, FLAG_GEMS)
    yield row("split_k_matmul", (SKINNY, LONG_K), half, FLAG_GEMS)
    single = ("x=float32[M,K]", "w=float32[K,N]", "b=float32[N]")
    yield row("matmul_bias_activation", SQUARES[:1], single)
    norm = ("x=bfloat16[M,K]", "g=bfloat16[K]", "b=bfloat16[K]", "w=bfloat16[N,K]", "bias=bfloat16[N]")
    yield row("layer_norm_linear", ("M=8192,N=4096,K=4096",), norm)


def attentions() -> Iterator[Row]:
    """Causal and not, with as many groups as heads and with fewer."""
    sizes = tuple(f"B=4,H=32,G={groups},M=4096,N=4096,D=128" for groups in (32, 8))
    inputs = ("q=bfloat16[B,H,M,D]", "k=bfloat16[B,G,N,D]", "v=bfloat16[B,G,N,D]")
    for form, causal in (("full", False), ("causal", True)):
        for passes in both_ways():
            given = (*inputs, f"causal={causal}")
            yield Row("flash_attention", sizes, given, (), passes, form, is_product=True)


def crf() -> Row:
    """Sequences of 128 steps with segments of up to 16; torch.compile would take minutes for the steps."""
    return Row("semi_markov_crf", ("B=32,N=128,K=16,C=24",), passes="both", baselines=("eager",))


def both_ways() -> Sequence[Passes]:
    """Of a kernel with a gradient."""
    return ("forward", "backward")
