"""The table of known miscompilations: whole, sourced, and applied to the versions that it names alone."""

from pytorch_to_triton.hardware.architectures import ARCHITECTURES
from pytorch_to_triton.hardware.miscompilations import MISCOMPILATIONS, concerning, release
from pytorch_to_triton.hardware.versions import Assembler, Device, Versions


def machine(triton: str, ptxas: str, capability: tuple[int, int] = (9, 0)) -> Versions:
    return Versions(
        python="3.12",
        torch="2.11",
        triton=triton,
        interpreter=False,
        cuda="13.0",
        rocm=None,
        devices=(Device(name="a GPU", capability=capability, memory_bytes=1),),
        assemblers=(Assembler(version=ptxas, path="/bin/ptxas"),),
    )


def patterns(versions: Versions) -> set[str]:
    return {entry.pattern for entry in concerning(versions)}


def test_every_entry_has_a_source_a_way_around_and_a_gpu_that_is_known() -> None:
    capabilities = {known.capability for known in ARCHITECTURES.values() if known.backend == "cuda"}
    for entry in MISCOMPILATIONS:
        assert all(source.startswith("github.com/") and source[-1].isdigit() for source in entry.sources)
        assert entry.sources
        assert entry.avoid.endswith(".")
        assert set(entry.capabilities) <= capabilities
        assert entry.triton[0] < entry.triton[1]
        assert entry.ptxas[0] < entry.ptxas[1]


def test_an_entry_concerns_the_triton_the_ptxas_and_the_gpu_that_it_names() -> None:
    assert patterns(machine("3.6.0", "12.8")) == {
        "register_operand",
        "remainder_of_index",
        "two_reductions_of_a_loop",
    }
    assert patterns(machine("3.10.0+git12", "13.3")) == set()
    assert patterns(machine("3.6.0", "12.8", (8, 0))) == {"two_reductions_of_a_loop"}
    assert patterns(machine("3.7.1", "13.1", (10, 0))) >= {"two_dots_into_one", "remainder_of_index"}


def test_without_a_gpu_or_a_ptxas_nothing_is_known() -> None:
    here = machine("3.6.0", "12.8")
    assert concerning(here.model_copy(update={"devices": ()})) == ()
    assert concerning(here.model_copy(update={"assemblers": ()})) == ()


def test_releases_compare_as_numbers() -> None:
    assert release("3.10.0") > release("3.9.1+gitabc") > release("3.9")
