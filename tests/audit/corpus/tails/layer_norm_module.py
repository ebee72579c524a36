import torch, triton
import triton.language as tl

@triton.jit
def ln_fwd(X, Wt, Bs, Y, N, eps, BN: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BN)
    ok = i < N
    x = tl.load(X + row * N + i, mask=ok, other=0.).to(tl.float32)
    mu = tl.sum(x, 0) / N
    d = tl.where(ok, x - mu, 0.)
    inv = tl.rsqrt(tl.sum(d * d, 0) / N + eps)
    g = tl.load(Wt + i)
    b = tl.load(Bs + i)
    tl.store(Y + row * N + i, d * inv * g + b, mask=ok)

class LayerNorm(torch.nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))
        self.bias = torch.nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        x = x.contiguous()
        N = x.shape[-1]
        y = torch.empty_like(x)
        ln_fwd[(x.numel() // N,)](x, self.weight, self.bias, y, N, self.eps, BN=triton.next_power_of_2(N))
        return y
