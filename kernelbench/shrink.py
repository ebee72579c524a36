"""Write the problems with smaller sizes: `python -m kernelbench.shrink FOLDER INTO`.

Sizes that a module fixes (features, channels) are constants of its file, and no interpreter runs a product
with 8192 x 8192 weights in dozens of cases. Equal sizes stay equal, and most ratios.
The written folder is one for `python -m kernelbench.run`.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from kernelbench.problems import Problem, problems_in

LIMITS = (16, 8, 32, 64, 128, 256)
"""Tried in this order: the first with which the model still runs, on few elements if it can."""
FEW = 2**18
"""Elements of inputs and results: five dims of 16 have four times as many, and take minutes."""
GIVEN = ("get_inputs", "get_init_inputs")
"""Functions whose own literals are sizes too."""
SECONDS = 60.0
RUNS = """
import importlib.util, sys, torch
spec = importlib.util.spec_from_file_location("problem", sys.argv[1])
problem = importlib.util.module_from_spec(spec)
spec.loader.exec_module(problem)
with torch.no_grad():
    found = problem.Model(*problem.get_init_inputs())(*problem.get_inputs())
outputs = found if isinstance(found, (tuple, list)) else [found]
assert all(output.numel() for output in outputs)
given = [x for x in problem.get_inputs() if isinstance(x, torch.Tensor)]
print(sum(x.numel() for x in [*given, *outputs]))
"""
"""Fails where a window is larger than what it slides over, groups do not divide channels, and the like."""


def shrunken(text: str, limit: int) -> str:
    """The file's text with all sizes at most `limit`."""
    lines = text.splitlines(keepends=True)
    for constant in sorted(sizes_of(ast.parse(text)), key=lambda c: (c.lineno, c.col_offset), reverse=True):
        line = lines[constant.lineno - 1].encode()
        before, after = line[: constant.col_offset], line[constant.end_col_offset :]
        lines[constant.lineno - 1] = (
            before + str(smaller(int(str(constant.value)), limit)).encode() + after
        ).decode()
    return "".join(lines)


def sizes_of(tree: ast.Module) -> Iterator[ast.Constant]:
    """Integers that the file assigns at its top level, and those of its two functions."""
    for statement in tree.body:
        assigns = isinstance(statement, ast.Assign | ast.AnnAssign)
        gives = isinstance(statement, ast.FunctionDef) and statement.name in GIVEN
        for node in ast.walk(statement) if assigns or gives else ():
            if isinstance(node, ast.Constant) and type(node.value) is int:
                yield node


def smaller(size: int, limit: int) -> int:
    """The size without its smallest prime factors, until it is at most `limit`; of a large prime, `limit`."""
    factor = 2
    while size > limit:
        if factor * factor > size:
            return limit
        if size % factor == 0:
            size //= factor
        else:
            factor += 1
    return size


def write(problem: Problem, into: Path) -> str:
    """Write a small form that runs, else the problem as it is; a line about it."""
    text = problem.path.read_text(encoding="utf-8")
    file = into / f"level{problem.group}" / problem.path.name
    file.parent.mkdir(parents=True, exist_ok=True)
    counts: dict[int, int] = {}
    for limit in LIMITS:
        file.write_text(shrunken(text, limit), encoding="utf-8")
        if (count := elements(file)) is not None:
            counts[limit] = count
        if counts and (min(counts.values()) <= FEW or limit > min(counts)):
            break
    best = next((limit for limit, count in counts.items() if count <= FEW), min(counts, default=None))
    file.write_text(text if best is None else shrunken(text, best), encoding="utf-8")
    return f"{problem.key} {problem.name}: {'as it is' if best is None else f'sizes up to {best}'}"


def elements(file: Path) -> int | None:
    """How many elements the file's model takes and returns, on the CPU; None where it does not run."""
    command = [sys.executable, "-c", RUNS, str(file)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return None
    return int(done.stdout) if done.returncode == 0 else None


def main(given: Sequence[str] | None = None) -> int:
    """Write all problems of the levels."""
    parser = argparse.ArgumentParser(prog="kernelbench.shrink", description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="a checkout of KernelBench")
    parser.add_argument("into", type=Path, help="the folder to write")
    parser.add_argument("--levels", default="1,2", help="default: 1,2")
    options = parser.parse_args(given)
    levels = options.levels.split(",")
    problems = [problem for problem in problems_in(options.folder) if problem.group in levels]
    with ThreadPoolExecutor(2) as pool:
        for line in pool.map(partial(write, into=options.into), problems):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
