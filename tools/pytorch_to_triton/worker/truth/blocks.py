"""Large tensors in blocks of rows, so that what is computed of them in float64 stays small."""

from collections.abc import Iterator, Mapping

import torch

WHOLE_ELEMENTS = 2**26
"""Up to this many elements, 256 MB of float32, a tensor is one block."""
BLOCK_ELEMENTS = 2**24


def blocks(tensors: Mapping[str, torch.Tensor]) -> Iterator[dict[str, torch.Tensor]]:
    """Tensors of one shape, block by block in memory order: views of rows, or of parts of long rows.

    As they are where none is large; else each block has two dimensions.
    """
    if all(tensor.numel() <= WHOLE_ELEMENTS for tensor in tensors.values()):
        yield dict(tensors)
        return
    columns = next(iter(tensors.values())).shape[-1]
    flat = {name: tensor.reshape(-1, columns) for name, tensor in tensors.items()}
    rows = len(next(iter(flat.values())))
    step = max(1, BLOCK_ELEMENTS // columns)
    for row in range(0, rows, step):
        for column in range(0, columns, BLOCK_ELEMENTS):
            yield {
                name: tensor[row : row + step, column : column + BLOCK_ELEMENTS]
                for name, tensor in flat.items()
            }


def pieces(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The elements in pieces of one dimension; the tensor itself where it is not large."""
    if tensor.numel() <= WHOLE_ELEMENTS:
        return (tensor,)
    return torch.split(tensor.reshape(-1), BLOCK_ELEMENTS)
