"""Fused cross entropy for language-model heads.

Used for training with long contexts: a micro-batch is up to 65536 tokens and the vocabulary has 128256
entries. Never materialises the softmax; backward recomputes it from the saved log-sum-exp.
"""
import torch
import triton
import triton.language as tl

MAX_BLOCK = 8192


@triton.jit
def _row_start(ptr, stride):
    """First element of the row that this program works on."""
    return ptr + tl.program_id(0) * stride


@triton.jit
def _ce_forward(logits_ptr, labels_ptr, loss_ptr, lse_ptr, stride, vocab, ignore_index, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    label = tl.load(labels_ptr + row)
    logits = _row_start(logits_ptr, stride)

    # online softmax: running maximum and running sum of exp(x - maximum)
    m = -1.0e30
    s = 0.0
    for start in range(0, vocab, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(logits + offs, mask=offs < vocab, other=-float("inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        s = s * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new), axis=0)
        m = m_new
    lse = m + tl.log(s)

    valid = label != ignore_index
    target = tl.load(logits + label, mask=valid, other=0.0).to(tl.float32)
    tl.store(loss_ptr + row, tl.where(valid, lse - target, 0.0))
    tl.store(lse_ptr + row, lse)


@triton.jit
def _ce_backward(
    logits_ptr, labels_ptr, lse_ptr, dloss_ptr, grad_ptr, stride, grad_stride, vocab, ignore_index,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < vocab
    label = tl.load(labels_ptr + row)
    lse = tl.load(lse_ptr + row)
    dloss = tl.load(dloss_ptr + row).to(tl.float32)
    dloss = tl.where(label != ignore_index, dloss, 0.0)

    x = tl.load(_row_start(logits_ptr, stride) + offs, mask=mask, other=-float("inf")).to(tl.float32)
    p = tl.exp(x - lse)
    grad = (p - tl.where(offs == label, 1.0, 0.0)) * dloss
    tl.store(_row_start(grad_ptr, grad_stride) + offs, grad, mask=mask)


class FusedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, labels, ignore_index):
        n_tokens, vocab = logits.shape
        if logits.stride(-1) != 1:
            logits = logits.contiguous()
        labels = labels.contiguous()
        loss = torch.empty(n_tokens, dtype=torch.float32, device=logits.device)
        lse = torch.empty_like(loss)
        if n_tokens > 0:
            block = min(triton.next_power_of_2(vocab), MAX_BLOCK)
            _ce_forward[(n_tokens,)](
                logits, labels, loss, lse, logits.stride(0), vocab, ignore_index, BLOCK=block, num_warps=8
            )
        ctx.save_for_backward(logits, labels, lse)
        ctx.ignore_index = ignore_index
        return loss

    @staticmethod
    def backward(ctx, dloss):
        logits, labels, lse = ctx.saved_tensors
        n_tokens, vocab = logits.shape
        grad = torch.empty((n_tokens, vocab), dtype=logits.dtype, device=logits.device)
        if n_tokens > 0:
            block = min(triton.next_power_of_2(vocab), MAX_BLOCK)
            _ce_backward[(n_tokens, triton.cdiv(vocab, block))](
                logits, labels, lse, dloss.contiguous(), grad, logits.stride(0), grad.stride(0), vocab,
                ctx.ignore_index, BLOCK=block, num_warps=8,
            )
        return grad, None, None


def cross_entropy(logits, labels, ignore_index=-100):
    """Mean cross entropy over the labels that are not ignore_index.

    logits: [tokens, vocab] float, labels: [tokens] int64.
    """
    loss = FusedCrossEntropy.apply(logits, labels, ignore_index)
    return loss.sum() / (labels != ignore_index).sum()
