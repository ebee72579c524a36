"""A mutant is refused, or survives, or stands where no case comes by; what is known is not judged again."""

from pathlib import Path

import pytest

from mutants.bases import Base, drafted, functions, references
from mutants.judging import Judging, judge
from mutants.mutate import mutants_of
from mutants.run import MutantRun
from mutants.table import markdown
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.sweep.journal import IN_MEMORY, Journal

from ..validate.kernel_files import double_file

pytestmark = pytest.mark.anyio

SAMPLE = Path(__file__).with_name("sample.txt").read_text(encoding="utf-8").splitlines()
"""Mutants that validate is known to refuse, by their keys: `sample.txt` of a whole run's results."""
SAMPLED = sorted({key.partition("/")[0] for key in SAMPLE})
JUDGED = {"mask_dropped": "refused", "cast_dropped": "equivalent", "number_changed": "unreached"}


def judging_in(folder: Path, worker: WorkerClient, runtime: Runtime) -> Judging:
    return Judging(worker, runtime, folder, seed=7, call_seconds=60.0, mutant_seconds=600.0)


async def test_each_mutant_is_judged_once(
    worker: WorkerClient, interpreter: Runtime, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = double_file(
        tmp_path,
        ('"float32[N]"', '"float32[N] in -4..4"'),
        ("x = tl.load(x_ptr + index, mask=mask)", "x = tl.load(x_ptr + index, mask=mask).to(tl.float32)"),
        (
            "x * 2, mask=mask)\n",
            "x * 2, mask=mask)\n    if n < 0:\n        tl.store(out_ptr + index - n - 1, x)\n",
        ),
    )
    base = Base("double", path)
    mutants = [
        m
        for m in mutants_of("double", base.text)
        if m.operator in JUDGED
        and ("load" in m.before or (m.operator == "number_changed" and "- n" in m.before))
    ]
    assert len(mutants) == len(JUDGED)
    journal = Journal(tmp_path / "out" / "journal.sqlite")
    judging = judging_in(tmp_path, worker, interpreter)
    await MutantRun(judging, journal, jobs=2).judge([base], mutants)
    assert {r["operator"]: r["status"] for r in journal if "operator" in r} == JUDGED
    capsys.readouterr()
    await MutantRun(judging, Journal(tmp_path / "out" / "journal.sqlite"), jobs=2).judge([base], mutants)
    assert capsys.readouterr().out == "3 mutants, of which 0 are to be judged\n"
    assert "| all |  | 3 | 1 | 1 | 1 | 0 | 0 | 100.0% |" in markdown(journal, {})
    # Where the compiler does not tell, a list of known ones does.
    records = [{**r, "status": "survived"} if r["status"] == "equivalent" else r for r in journal]
    same = {m.key: "float32 is all it takes" for m in mutants if m.operator == "cast_dropped"}
    assert "| all |  | 3 | 1 | 0 | 1 | 0 | 1 | 50.0% |" in markdown(records, {})
    assert "| all |  | 3 | 1 | 1 | 1 | 0 | 0 | 100.0% |" in markdown(records, same)


@pytest.mark.corpora
@pytest.mark.parametrize("name", SAMPLED)
async def test_mutants_that_are_known_to_be_refused_still_are(
    name: str, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    """Those whose line has changed since are left out: `make mutants` names others for sample.txt."""
    bases = references([name])
    for draft, target in functions(tmp_path, [name]).items():
        bases.append(await drafted(worker, interpreter, draft, target, tmp_path))
    (base,) = bases
    mutants = [m for m in mutants_of(name, base.text) if m.key in SAMPLE]
    judging, journal = judging_in(tmp_path, worker, interpreter), Journal(IN_MEMORY)
    known = {"limits": [], "never_launched": (), "skipped": ()}
    await judge(judging, base, known, mutants, journal.add)
    assert {r["id"]: r["why"] for r in journal if r["status"] != "refused"} == {}
