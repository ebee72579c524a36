"""The installed Triton is read as it is, kept in the cache, and agrees with the history that ships."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from pytorch_to_triton.errors import MissingRequirement
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.triton_api.history import FILE, History, history
from pytorch_to_triton.triton_api.surface import PublicName, Surface, installed_version, surface

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def installed(anyio_backend: str, worker: WorkerClient) -> Surface:
    """The names of the Triton beside this Python."""
    return await surface(worker, Runtime(python=sys.executable, interpreter=True))


def parameters(entry: PublicName | None) -> list[str]:
    assert entry is not None
    return [parameter.name for parameter in entry.parameters or ()]


async def test_a_builtin_is_read_with_its_parameters_and_its_docstring(installed: Surface) -> None:
    load = installed.find("triton.language.load")
    assert load is not None
    assert load.kind == "builtin"
    assert parameters(load)[:3] == ["pointer", "mask", "other"]
    assert [p.name for p in load.parameters or () if p.required] == ["pointer"]
    assert "mask" in load.doc


async def test_a_class_is_reported_in_triton_s_words_or_in_none(installed: Surface) -> None:
    doc = {path: entry.doc for path, entry in installed.entries.items() if entry.kind == "class"}
    assert doc["triton.OutOfResources"] == doc["triton.JITFunction"] == ""
    assert "kernel configuration" in doc["triton.Config"]
    assert "N-dimensional array" in doc["triton.language.tensor"]


async def test_what_only_the_compiler_gives_is_no_parameter(installed: Surface) -> None:
    given = [name for entry in installed.entries.values() for name in parameters(entry)]
    assert "pointer" in given
    assert [name for name in given if name.startswith("_")] == []


async def test_a_function_of_libdevice_shows_what_it_calls_for_each_dtype(installed: Surface) -> None:
    tanh = installed.find("triton.language.extra.libdevice.tanh")
    assert tanh is not None
    assert tanh.symbols == {"fp32": "__nv_tanhf", "fp64": "__nv_tanh"}
    assert installed.find("triton.language.extra.cuda.libdevice.tanh") == tanh


async def test_a_method_of_a_tensor_is_read_without_the_tensor(installed: Surface) -> None:
    assert parameters(installed.find("triton.language.tensor.sum")) == ["axis", "keep_dims", "dtype"]
    assert parameters(installed.find("triton.language.tensor.to"))[0] == "dtype"


async def test_each_kind_of_name_is_read(installed: Surface) -> None:
    for path, kind in [
        ("triton.jit", "function"),
        ("triton.Config", "class"),
        ("triton.testing.do_bench", "function"),
        ("triton.language.sum", "function"),
        ("triton.language.float32", "dtype"),
        ("triton.language.range", "class"),
        ("triton.language.tensor.T", "property"),
        ("triton.language.tensor.shape", "property"),
        ("triton.language.tensor_descriptor.load", "method"),
        ("triton.language.TRITON_MAX_TENSOR_NUMEL", "constant"),
        ("triton.tools.tensor_descriptor.TensorDescriptor.from_tensor", "method"),
        ("triton.experimental", "module"),
    ]:
        entry = installed.find(path)
        assert entry is not None
        assert entry.kind == kind


async def test_a_thing_under_two_paths_is_one_entry(installed: Surface) -> None:
    assert "triton.language.math.exp" not in installed.entries
    assert installed.find("triton.language.math.exp") == installed.find("triton.language.exp")


async def test_what_a_module_imports_for_itself_is_no_name_of_its(installed: Surface) -> None:
    assert installed.find("triton.testing.functools") is None
    assert installed.find("triton.language.math.core") is None


def plain(read: Surface) -> Mapping[str, object]:
    """What a history keeps of a Triton."""
    return {
        path: (
            entry.kind,
            entry.standing,
            {*entry.aliases},
            [(p.name, p.kind, p.required) for p in entry.parameters or ()],
        )
        for path, entry in read.entries.items()
    }


async def test_the_history_knows_the_installed_triton_as_it_is(installed: Surface) -> None:
    if installed.version not in history().releases:
        pytest.skip(f"The history has no Triton {installed.version}.")
    assert plain(history().surface(installed.version)) == plain(installed)


async def test_a_release_that_is_added_again_changes_nothing(installed: Surface) -> None:
    if installed.version not in history().releases:
        pytest.skip(f"The history has no Triton {installed.version}.")
    assert history().adding(installed).text() == FILE.read_text(encoding="utf-8")


async def test_a_history_is_written_as_it_is_read_back(installed: Surface) -> None:
    made = History((), {}).adding(installed)
    assert made.releases == (installed.version,)
    assert plain(made.surface(installed.version)) == plain(installed)


@pytest.fixture
async def kept_file(worker: WorkerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one file of a cache that nothing else uses."""
    monkeypatch.setenv("PYTORCH_TO_TRITON_CACHE", str(tmp_path))
    await surface(worker, Runtime(python=sys.executable, interpreter=True))
    (file,) = (tmp_path / "api").iterdir()
    return file


async def test_a_broken_file_in_the_cache_is_read_again(
    worker: WorkerClient, installed: Surface, kept_file: Path
) -> None:
    kept_file.write_text('{"version": "3.', encoding="utf-8")
    assert await surface(worker, Runtime(python=sys.executable, interpreter=True)) == installed
    assert Surface.model_validate_json(kept_file.read_text(encoding="utf-8")) == installed
    assert list(kept_file.parent.iterdir()) == [kept_file]


async def test_what_is_cached_is_not_read_again(
    worker: WorkerClient, installed: Surface, kept_file: Path
) -> None:
    kept_file.write_text(installed.model_copy(update={"entries": {}}).model_dump_json(), encoding="utf-8")
    assert (await surface(worker, Runtime(python=sys.executable, interpreter=True))).entries == {}


async def test_a_python_without_triton_is_refused(worker: WorkerClient) -> None:
    with pytest.raises(MissingRequirement):
        await surface(worker, Runtime(python="/bin/false", interpreter=True))


async def test_the_installed_version_is_known_without_a_worker(installed: Surface) -> None:
    assert (installed_version() or "").split("+")[0] == installed.version.split("+")[0]


async def test_the_nearest_release_stands_in_for_a_version() -> None:
    for version, release, complete in [
        ("3.6.0", "3.6.0", True),
        ("3.7.0", "3.7.1", True),
        ("3.8.0+git1234", "3.8.0", True),
        ("3.5.1", "3.6.0", True),
        ("3.99.0", "3.9.0", False),
        (None, "3.9.0", True),
    ]:
        found = History(history().releases[:4], history().names).surface(version)
        assert (found.version, found.complete) == (release, complete)
