"""A Ray cluster does what one machine does, also when it loses a node. Needs Ray, which nothing installs."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytorch_to_triton.sweep.journal import Journal

pytestmark = [
    pytest.mark.corpora,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray"),
]
KERNELS = Path(__file__).parents[2] / "reference_kernels"
ITEMS = ("asin", "vector_add", "swiglu", "transpose", "logsumexp", "bias_gelu")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Two nodes of one core each."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    settings = {"num_cpus": 1, "object_store_memory": 200 << 20}
    made = Cluster(initialize_head=True, head_node_args={**settings, "include_dashboard": False})
    yield made, made.add_node(**settings)
    made.shutdown()


def test_a_lost_node_costs_no_item(cluster: Any, tmp_path: Path) -> None:
    made, node = cluster
    pairs = tmp_path / "pairs.jsonl"
    lines = [{"key": name, "candidate": str(KERNELS / f"{name}.py")} for name in ITEMS]
    pairs.write_text("\n".join(map(json.dumps, lines)))
    journal = Journal(tmp_path / "out" / "journal.sqlite")
    program = [sys.executable, "-m", "pytorch_to_triton_server", "sweep", str(pairs), "--json"]
    options = ["--into", str(tmp_path / "out"), "--device", "interpreter", "--ray", made.address]
    with subprocess.Popen([*program, *options], stdout=subprocess.PIPE, text=True, env=os.environ) as sweep:
        while sweep.poll() is None and len(list(journal)) < 2:
            pass
        made.remove_node(node, allow_graceful=False)
        printed, _ = sweep.communicate()
    assert json.loads(printed)["states"] == {"right": len(ITEMS)}
