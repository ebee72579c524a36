"""Jobs that do what they should."""

import os
import subprocess
from typing import Any

import torch


def work(report: Any, what: str, **arguments: Any) -> dict[str, Any]:
    answer: dict[str, Any] = globals()[what](report, **arguments)
    return answer


def double(report: Any, number: int) -> dict[str, Any]:
    return {"number": 2 * number, "folder": str(report.folder)}


def multiply(report: Any, size: int) -> dict[str, Any]:
    ones = torch.ones(size, size)
    return {"sum": (ones @ ones).sum().item()}


def export(report: Any) -> dict[str, Any]:
    class Softmax(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(x, -1)

    program = torch.export.export(Softmax(), (torch.ones(5, 6),)).run_decompositions()
    return {"nodes": len(list(program.graph.nodes))}


def meet(report: Any, pipe: str, flags: int) -> dict[str, Any]:
    """Opening a named pipe returns once somebody else opens its other end."""
    os.close(os.open(pipe, flags))
    return {}


def report_on_the_way(report: Any) -> dict[str, Any]:
    report.during("counting")
    for count in range(3):
        report.item({"count": count})
        report.progress(count + 1, 3, f"counted {count}")
    return {}


def chatter(report: Any) -> dict[str, Any]:
    print("from print")
    os.write(1, b"from the file descriptor\n")
    subprocess.run(["echo", "from a child"], check=True)
    return {}


def talk_at_length(report: Any) -> dict[str, Any]:
    print("the beginning")
    print("and so on " * 2000)
    print("the end")
    return {}


def parentage(report: Any) -> dict[str, Any]:
    return {"fork_server": os.getppid()}
