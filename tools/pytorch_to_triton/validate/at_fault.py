"""Whether the kernel, its races or the compiler is at fault in a case that is wrong on a device.

The case is run in other ways, interpreted and compiled otherwise; how it fared in them says it.
"""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pytorch_to_triton.hardware.miscompilations import (
    MISCOMPILATIONS,
    Miscompilation,
    Pattern,
    concerning,
    of_triton,
)
from pytorch_to_triton.hardware.versions import Assembler, versions
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.jobs.task_group import task_group
from pytorch_to_triton.schema.verdict import CaseResult, ViolationKind
from pytorch_to_triton.validate.host_code import kernels_of, parse
from pytorch_to_triton.validate.memory_check import under_interpreter
from pytorch_to_triton.validate.phrases import listed
from pytorch_to_triton.validate.trial import ValidationTrial
from pytorch_to_triton.worker.wire import validation

INTERPRETED, AGAIN = "under Triton's interpreter", "when called once more as it is"
ONE_STAGE, OTHER_WARPS = "with num_stages=1", "with another num_warps"
UNOPTIMISED = "with ptxas unoptimised"
PTXAS = "with ptxas "
"""Before a version."""
KERNEL = "the kernel is at fault, not the compiler"
UNSTEADY = (
    "it is not wrong each time, as with a race, uninitialised memory, or what earlier calls left behind"
)
ORDER = (
    "the order of loads and stores is at fault: the kernel lacks a barrier between a store and a load of the "
    "same memory, or Triton pipelines or exchanges values wrongly. Which of the two is not known"
)
UNDETERMINED = (
    "what is at fault is undetermined. It may be precision, or what the device does otherwise than the "
    "interpreter; nothing shows that the compiler is at fault"
)
NOT_INTERPRETED = "It could not be run under the interpreter, so the kernel may be at fault all the same."
BARRIERS = (
    "Put tl.debug_barrier() between each store and the loads of the same memory. If it stays wrong, keep the "
    "num_stages and num_warps that are right, and report it to Triton."
)
MOST_ASSEMBLERS = 2
"""Of other versions, the newest."""
PATHS = ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")
OF_WRONG_ADDRESSES: tuple[ViolationKind, ...] = ("not_reproducible", "reads_uninitialised")
"""Violations that follow where a compiler stores elsewhere: what nobody wrote holds what was there."""
INTERPRETED_ELEMENTS = 2**21
"""Largest case that is interpreted."""
LOADS = ("load", "load_tile")
REDUCED_BY = {"sum": "add", "max": "maximum", "min": "minimum"}
"""What combines two elements where a tile is reduced."""


@dataclass(frozen=True)
class Culprit:
    """What is at fault, and what to do about it where that is more than to fix the kernel."""

    sentence: str = ""
    step: str = ""


NO_CULPRIT = Culprit()
"""Nothing is in doubt, or nothing is known."""


async def find_culprit(trial: ValidationTrial, case: Case, result: CaseResult, source: str) -> Culprit:
    """What is at fault in a case that is wrong on the trial's device.

    It takes one call under the interpreter, then, where that is right, one in each other way.
    """
    if case.again_after is not None or not leaves_doubt(result):
        return NO_CULPRIT
    around = await versions(trial.setting.worker, trial.setting.runtime)
    right = await interpreted_call(trial, case)
    if right.get(INTERPRETED) is not False:
        right |= await compiled_calls(trial, case, around.assemblers)
    ptxas = around.assemblers[0].version if around.assemblers else ""
    return culprit_in(case.name, right, ptxas, shown_in(source, concerning(around)))


async def compiled_wrongly(trial: ValidationTrial, source: str) -> Culprit:
    """What Triton gets wrong in compiled kernels like the file's, which the interpreter does not show."""
    if shown_in(source, MISCOMPILATIONS):
        triton = (await versions(trial.setting.worker, trial.setting.runtime)).triton
        for known in shown_in(source, of_triton(triton))[:1]:
            which = "which the interpreter does not show"
            return Culprit(f"Triton {triton} compiles this wrongly, {which}: {known.name}. {known.avoid}")
    return NO_CULPRIT


def leaves_doubt(result: CaseResult) -> bool:
    """Whether a compiler may be behind it: elements are wrong, or it crashed, and no other cause was seen."""
    if any(violation.kind not in OF_WRONG_ADDRESSES for violation in result.violations):
        return False
    wrong_elements = any(mismatch.first is not None for mismatch in result.mismatches)
    return result.status == "crashed" or wrong_elements or bool(result.violations)


async def interpreted_call(trial: ValidationTrial, case: Case) -> dict[str, bool]:
    """Whether it is right under the interpreter; empty where it cannot be run there."""
    if case.elements > INTERPRETED_ELEMENTS:
        return {}
    setting = replace(trial.setting, runtime=under_interpreter(trial.setting.runtime))
    candidate = replace(trial.candidate, setting=setting)
    right = await is_right(replace(trial, setting=setting, candidate=candidate), case, "interpreted")
    return {} if right is None else {INTERPRETED: right}


async def compiled_calls(
    trial: ValidationTrial, case: Case, assemblers: Sequence[Assembler]
) -> dict[str, bool]:
    """Whether it is right in each other way of compiling it that could be run."""
    ways = ways_to_compile(assemblers)
    answers: dict[str, bool | None] = dict.fromkeys(ways)

    async def call(way: str, number: int) -> None:
        compiled = replace(trial.candidate, compilation=ways[way])
        answers[way] = await is_right(replace(trial, candidate=compiled), case, f"compiled-{number}")

    async with task_group() as group:
        for number, way in enumerate(ways):
            group.start_soon(call, way, number)
    return {way: right for way, right in answers.items() if right is not None}


def ways_to_compile(assemblers: Sequence[Assembler]) -> dict[str, validation.Compilation]:
    """Each way by its name; `assemblers` starts with the one that is Triton's."""
    as_is = validation.Compilation()
    ways: dict[str, validation.Compilation] = {
        AGAIN: as_is,
        ONE_STAGE: replace(as_is, one_stage=True),
        OTHER_WARPS: replace(as_is, other_warps=True),
    }
    if assemblers:
        ways[UNOPTIMISED] = replace(as_is, environment={"DISABLE_PTXAS_OPT": "1"})
    for other in assemblers[1 : 1 + MOST_ASSEMBLERS]:
        ways[f"{PTXAS}{other.version}"] = replace(as_is, environment=dict.fromkeys(PATHS, other.path))
    return ways


async def is_right(trial: ValidationTrial, case: Case, name: str) -> bool | None:
    """How the case fares in processes of its own; None where that says nothing about its values."""
    candidate = replace(trial.candidate, name=f"{trial.candidate.name}-{name}")
    await trial.reference.stage(candidate.target, candidate.name)
    try:
        [judged] = await replace(trial, candidate=candidate).run([case])
    finally:
        await candidate.close()
    return {"passed": True, "limited": True, "failed": False, "crashed": False}.get(judged.result.status)


def culprit_in(
    case: str, right: Mapping[str, bool], ptxas: str, known: Sequence[Miscompilation] = ()
) -> Culprit:
    """What is at fault in a case that is wrong on the device, by the ways in which it is right and wrong.

    `right` has the ways in which it could be run. `ptxas`: the version that assembled what is wrong. `known`:
    what fits the kernel's source.
    """
    if not right:
        return NO_CULPRIT
    good = [way for way in right if right[way]]
    bad = [way for way in right if not right[way]]
    conclusion, step = blame(good, bad, ptxas)
    fared = [f"{word} {listed(ways)}" for word, ways in (("right", good), ("wrong", bad)) if ways]
    sentences = [f"{case} is {', '.join(fared)}: {conclusion}."]
    if conclusion == KERNEL:
        return Culprit(sentences[0])
    sentences += [NOT_INTERPRETED] * (INTERPRETED not in right)
    sentences += [f"Known to be compiled wrongly here: {entry.name} ({entry.sources[0]})." for entry in known]
    return Culprit(" ".join(sentences), " ".join(filter(None, (step, *(entry.avoid for entry in known)))))


def blame(good: Sequence[str], bad: Sequence[str], ptxas: str) -> tuple[str, str]:
    """What is at fault, and what to do."""
    if INTERPRETED in bad:
        return KERNEL, ""
    if AGAIN in good:
        return UNSTEADY, BARRIERS
    by_order = ONE_STAGE in good or OTHER_WARPS in good
    versions = [way.removeprefix(PTXAS) for way in good if way.startswith(PTXAS) and way != UNOPTIMISED]
    if versions or UNOPTIMISED in good:
        # Other code has other timing, which hides races.
        certain = bool(versions) and not by_order
        doubt = "" if certain else " most likely; a race that other code hides is not ruled out"
        other = f"ptxas {versions[0]}, named with TRITON_PTXAS_PATH" if versions else "a newer ptxas"
        step = (
            f"Compile it with {other}, or with other tile sizes, and report it with ptxas's version {ptxas}."
        )
        return f"ptxas {ptxas} is at fault{doubt}", step
    return (ORDER, BARRIERS) if by_order else (UNDETERMINED, "")


def shown_in(source: str, entries: Sequence[Miscompilation]) -> tuple[Miscompilation, ...]:
    """Those that a kernel of the file shows."""
    kernels = kernels_of(parse(source))
    return tuple(entry for entry in entries if any(map(PATTERNS[entry.pattern], kernels)))


def register_operand(kernel: ast.AST) -> bool:
    """A tl.dot in a loop whose first operand is computed, and not a tile as it was loaded."""
    computed = {name for name, value in assignments(kernel) if called(value) not in LOADS}
    parts = [part for loop in loops(kernel) for part in ast.walk(loop) if called(part) == "dot"]
    first = [dot.args[0] for dot in parts if isinstance(dot, ast.Call) and dot.args]
    return any(not isinstance(operand, ast.Name) or operand.id in computed for operand in first)


def two_dots_into_one(kernel: ast.AST) -> bool:
    """Two tl.dot in one loop whose results have one name."""
    results = [[n for n, value in assignments(loop) if "dot" in calls_in(value)] for loop in loops(kernel)]
    return any(len(set(names)) < len(names) for names in results)


def two_reductions_of_a_loop(kernel: ast.AST) -> bool:
    """A loop that takes in, by another function, what tiles are reduced to as they were loaded."""
    tiles = frozenset(name for name, value in assignments(kernel) if called(without_cast(value)) in LOADS)
    for loop in loops(kernel):
        reduced = {name: by for name, value in assignments(loop) if (by := reduced_by(value, tiles))}
        for by, value in taken_in(loop):
            inner = reduced.get(value.id) if isinstance(value, ast.Name) else reduced_by(value, tiles)
            if inner and inner != by:
                return True
    return False


def reduced_by(value: ast.expr, tiles: frozenset[str]) -> str:
    """What combines two elements of a loaded tile, where it is reduced along another axis than its first."""
    if not isinstance(value, ast.Call) or not value.args:
        return ""
    tile, others = without_cast(value.args[0]), value.args[1:]
    options = {keyword.arg: keyword.value for keyword in value.keywords}
    axis = options.get("axis", others[0] if others else None)
    is_loaded = called(tile) in LOADS or (isinstance(tile, ast.Name) and tile.id in tiles)
    if not is_loaded or not (isinstance(axis, ast.Constant) and axis.value):
        return ""
    if called(value) == "reduce":
        combine = options.get("combine_fn", others[1] if len(others) > 1 else None)
        return ast.unparse(combine) if combine else ""
    return REDUCED_BY.get(called(value), "")


def without_cast(value: ast.expr) -> ast.expr:
    """The tensor of `tensor.to(tl.float32)`: where it is float32 already, nothing is left of that."""
    match value:
        case ast.Call(func=ast.Attribute(value=tensor, attr="to"), args=[ast.Attribute(attr="float32")]):
            return tensor
    return value


def taken_in(loop: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """By what function a loop combines a value with a new one, and the new one."""
    for node in ast.walk(loop):
        match node:
            case ast.AugAssign(op=op, value=value):
                yield type(op).__name__.lower(), value
            case ast.Assign([ast.Name(id=name)], ast.BinOp(ast.Name(id=left), op, value)) if name == left:
                yield type(op).__name__.lower(), value
            case ast.Assign([ast.Name(id=name)], ast.Call(args=[ast.Name(id=left), value]) as call) if (
                name == left
            ):
                yield called(call), value


def remainder_of_index(kernel: ast.AST) -> bool:
    """A remainder or quotient of what is made from tl.arange."""
    indices = made_from_indices(kernel)
    return any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mod | ast.FloorDiv)
        and ("arange" in calls_in(node.left) or not indices.isdisjoint(names_in(node.left)))
        for node in ast.walk(kernel)
    )


PATTERNS: dict[Pattern, Callable[[ast.AST], bool]] = {
    "register_operand": register_operand,
    "remainder_of_index": remainder_of_index,
    "two_dots_into_one": two_dots_into_one,
    "two_reductions_of_a_loop": two_reductions_of_a_loop,
}


def called(node: ast.AST) -> str:
    """The last name of what a node calls, as of `tl.dot(a, b)`; empty for what calls nothing by a name."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name
    return ""


def calls_in(tree: ast.AST) -> set[str]:
    return set(map(called, ast.walk(tree)))


def names_in(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def loops(kernel: ast.AST) -> list[ast.AST]:
    return [node for node in ast.walk(kernel) if isinstance(node, ast.For | ast.While)]


def assignments(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Each name with a value that it is given, or that is added to it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((name, node.value) for target in targets for name in names_in(target))


def made_from_indices(kernel: ast.AST) -> set[str]:
    """Names of values that are made from tl.arange, by way of any others."""
    given = [(name, calls_in(value), names_in(value)) for name, value in assignments(kernel)]
    names = {name for name, calls, _ in given if "arange" in calls}
    while further := {name for name, _, others in given if not names.isdisjoint(others)} - names:
        names |= further
    return names
