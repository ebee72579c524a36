"""Job `prepare`: stage the files of both sides, draw each case's inputs, see whether the reference can do it.

The reference's results are not kept: when the candidate runs, no expected output exists anywhere.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from .describe import named_inputs
from .draw import draw_arguments, generator, perturbed_state, signed
from .exchange import AFTER_THE_CALL, Call, Exchange
from .failure import describe_failure
from .gradients import GRADIENT_OF
from .oracle import Oracle, Outputs
from .report import Report
from .sides import stage_sides
from .target import Loaded, keyword, load
from .tensors import write_values


def work(
    report: Report,
    target: dict[str, Any],
    candidate: dict[str, Any],
    cases: list[dict[str, Any]],
    setting: dict[str, Any],
    state_seed: int,
) -> dict[str, Any]:
    """An item once the reference is loaded, then one a case: `ok` with `digest`, or `raised`.

    `cases` are the JSON of schema/case.py, each with an `id`, which names its folder, and a `seed`. `setting`
    holds the exchange `folder`, the torch `device`, and whether gradients are compared, `backward`.
    """
    report.during("load")
    exchange = Exchange(Path(setting["folder"]))
    if not exchange.staged.exists():
        exchange.write_staging(stage_sides(target, candidate, exchange.staged))
    reference = load(target, "reference", exchange.read_staging("reference"))
    reference.to_gpu()
    oracle = Oracle(reference, exchange, setting["device"], setting["backward"])
    if not exchange.state.exists():
        write_values(perturbed_state(reference.state, trained(reference), state_seed), exchange.state)
    report.item({"loaded": reference.name})
    for done, case in enumerate(cases):
        report.during(case["name"])
        report.progress(done, len(cases), f"reference: {case['name']}")
        report.item({"case": case["name"], **prepared(oracle, case)})
    return {"device": torch.cuda.get_device_name() if setting["device"] == "cuda" else "CPU"}


def prepared(oracle: Oracle, case: dict[str, Any]) -> dict[str, Any]:
    """Write what the case is called with; an exception of the user's code is the case's result."""
    exchange = oracle.exchange
    try:
        arguments = drawn(oracle.reference, case)
        exchange.put(case["id"], Call(arguments, {}))
        run = dataclasses.replace(oracle, backward=False).run_as_it_is(case["id"], case["seed"])
        if oracle.backward:
            exchange.put(case["id"], Call(arguments, {}, drawn_cotangents(run.outputs, case["seed"])))
            oracle.run_as_it_is(case["id"], case["seed"])
    except Exception as error:
        return {"status": "raised", "failure": describe_failure(error, case["name"])}
    return {"status": "ok", "digest": exchange.digest(case["id"]), "aliases": run.aliases}


def drawn(reference: Loaded, case: dict[str, Any]) -> dict[str, Any]:
    """The case's arguments on the CPU: drawn here, or by the file's inputs(**dims) or get_inputs()."""
    if case["arguments"]:
        return draw_arguments(case, case["seed"])
    torch.manual_seed(generator(case["seed"], case["name"]).initial_seed())
    contents = reference.contents
    if not hasattr(contents, "inputs"):
        return named_inputs(reference) if hasattr(contents, "get_inputs") else {}
    given = contents.inputs(**case["dims"])
    named = given if isinstance(given, Mapping) else zip(reference.parameters, given, strict=False)
    return dict(named)


def drawn_cotangents(outputs: Outputs, seed: int) -> dict[str, torch.Tensor]:
    """For each floating output a random gradient to start the backward pass from."""
    floating = {
        path: output.tensor
        for path, output in outputs.items()
        if output.tensor is not None
        and output.tensor.is_floating_point()
        and not path.endswith(AFTER_THE_CALL)
    }
    return {
        path: signed(tuple(tensor.shape), torch.float32, generator(seed, GRADIENT_OF, path)).to(tensor.dtype)
        for path, tensor in floating.items()
    }


def trained(reference: Loaded) -> set[str]:
    """The names of a module's state that are parameters, not buffers."""
    return (
        set()
        if reference.module is None
        else {keyword(key) for key, _ in reference.module.named_parameters()}
    )
