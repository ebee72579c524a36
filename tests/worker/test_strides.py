"""How far apart the lanes of a block lie."""

import numpy as np

from pytorch_to_triton.worker.interpreter.guarded_launch import step_of

LANES = np.arange(64, dtype=np.uint64)
ROWS, COLUMNS = LANES[:, None], LANES[None, :]
BASE = np.uint64(2**40)


STEPS = [
    (4 * LANES, 4),
    (4096 * LANES, 4096),
    (4096 * LANES[::-1], 4096),
    (4096 * ROWS + 4 * COLUMNS, 4),
    (4096 * ROWS + 64 * COLUMNS, 64),
    (4096 * ROWS, 4096),
    (4096 * ROWS + 0 * COLUMNS, 0),
    (4 * (7 * LANES % np.uint64(64)), None),
    (4 * LANES[:8], None),
]


def test_the_nearest_axis_gives_the_step() -> None:
    for number, (offsets, step) in enumerate(STEPS):
        assert step_of(BASE + offsets) == step, number
