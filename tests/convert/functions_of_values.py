"""Functions whose Python needs the values of tensors, as people write them."""

import torch

INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [1, 7, 32], "N": [1, 33, 64]}


def early_return(x, **kwargs):
    y = torch.relu(x) * 2
    if y.sum() <= 10:
        return y
    z = y - y.mean(dim=-1, keepdim=True)
    return torch.sigmoid(z)


def clamped_until_small(x):
    y = x * 4
    worst = y.abs().max()
    while worst > 1:
        y = torch.where(y.abs() > 1, y * 0.5, y)
        worst = y.abs().max()
    return y + 1


def squares_of_low_values(x):
    mask = x > 0
    y = x.exp()
    y[mask] = 0.5
    kept = y[x < -1]
    return (kept * kept).sum()


def scaled_by_an_item(x):
    scale = x.abs().max().item() + 1.0
    return torch.sigmoid(x / scale)


def branch_on_the_maximum(x):
    if x.max() > 2:
        y = torch.log(1 + x.abs())
    else:
        y = x.exp()
        y = y / (1 + y)
    return y.sum(dim=-1)


def rows_above_zero(x):
    rows = torch.nonzero(x.sum(dim=-1) > 0).squeeze(1)
    chosen = x[rows]
    return torch.softmax(chosen, dim=-1)


def entropies_of_labels(x):
    labels = (x * 2).round().clamp(-2, 2)
    values, counts = torch.unique(labels, return_counts=True)
    share = counts / counts.sum()
    return values, -(share * share.log())


def sum_until_steps_are_small(x):
    total = torch.zeros_like(x)
    for i in range(5):
        step = torch.sin(x + i) / (i + 1)
        total = total + step
        if step.abs().mean() < 0.1:
            break
    return total * 2


def until_it_changes_little(x, tol: float = 1e-3, most: int = 20):
    """Both loops end by values, one has its test in its head."""
    rows, cols = x.shape
    y = x / (x.abs().max() + 1)
    steps = 0
    while (y - y.mean()).abs().max() > tol:
        y = y * 0.5 + y.mean() * 0.4
        steps += 1
        if steps >= most:
            break
    return y.reshape(cols, rows) / rows


def masked_loss(x, y):
    valid = ~torch.isnan(y)
    difference = x[valid] - y[valid]
    if difference.numel() == 0:
        return x.sum() * 0
    return (difference * difference).mean()


def rows_one_by_one(x):
    outs = []
    for i in range(x.shape[0]):
        row = x[i]
        if row.sum() > 0:
            outs.append(torch.relu(row) * i)
        else:
            outs.append(row.exp() + x[i, 0])
    return torch.stack(outs)


def three_branches(x):
    m = x.mean().item()
    if m > 0.5:
        y = x - m
    elif m > 0:
        y = x * m
    else:
        return torch.zeros_like(x)
    return y * 2 if (y > -1).all() and y.numel() > 1 else torch.exp(-y)


def halved_until_small(x):
    assert torch.isfinite(x).all(), "not finite"
    y = x
    halvings = 0
    while True:
        y = y * 0.5 + 0.1
        halvings += 1
        if (y.abs() < 1).all() or halvings > 10:
            break
    return y * halvings


def loop_through_dlpack(x):
    scale = x.abs().max().item()
    y = x * scale
    step = torch.sigmoid(x)
    for _ in range(3):
        step = step * 0.5
        y = torch.tanh(y) + step
        z = torch.from_dlpack(y) * 2
        y = torch.sigmoid(z) + y
    return torch.relu(y) * 2


def share_of_labels(x):
    y = torch.sigmoid(x) * 7
    counts = torch.bincount(y.long().flatten(), minlength=8)
    share = counts.float() / counts.sum()
    return y * (share * share).sum()


def around_a_masked_mean(x):
    y = torch.tanh(x) * 2
    z = (y - y[y > -3].mean()) ** 2
    return z.sum(dim=-1)


def sorted_to_a_number(x):
    kept = int((x.exp() > 2).sum().item()) + 1
    return torch.sort(x.flatten()).values[:kept]


def times_a_count(x):
    count = (x.exp() > 2).sum().item()
    steps = torch.arange(x.shape[1]) * count
    return steps, x * count


def only_values(x):
    return torch.unique(x)
