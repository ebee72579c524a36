"""Steps inside of an attention: each by itself would be cut off before the whole is seen."""

from __future__ import annotations

from pytorch_to_triton.draft.ir.values import Cluster, Store
from pytorch_to_triton.draft.partition.placement import Placement
from pytorch_to_triton.draft.patterns import attention, contraction
from pytorch_to_triton.draft.program import Step

MOST_ANCHORS = 3
"""Steps of an attention that reduce, before the last one: the scores, and the softmax by hand."""


def with_attentions(placement: Placement) -> tuple[Placement, set[str]]:
    """What attentions read that reduces, such as a projection, stored; and the steps inside of them."""
    products = {s.name for s in placement.steps.values() if _is_product(s)}
    attended: set[str] = set()
    for step in placement.in_order_of_program(products):
        for inside in _from_products(placement, step, products):
            others = [n for n, s in placement.steps.items() if n not in inside and s.anchors]
            if cluster := _attention(placement.storing(others), step):
                attended |= inside
                read = {v.buffer.name for v in cluster.loads()} & placement.steps.keys()
                placement = placement.storing(n for n in read if placement.steps[n].anchors)
    return placement, attended - placement.stored


def _is_product(step: Step) -> bool:
    return bool(step.anchors) and contraction.match(Cluster(step.name, (step.store,))) is None


def _attention(placement: Placement, step: Step) -> Cluster | None:
    """The step with all that is not stored in one cluster, where that is an attention."""
    store = Store(step.buffer, step.tensor.indices, placement.value(step.name))
    cluster = Cluster(step.name, (store,))
    return cluster if attention.match(cluster) is None else None


def _from_products(placement: Placement, step: Step, products: set[str]) -> list[set[str]]:
    """For each product shortly before this one: it, and what leads from it here past no other."""
    leads: dict[str, set[str]] = {}

    def sources(name: str) -> set[str]:
        if name in products:
            leads[name] = {name}
        elif name not in leads:
            leads[name] = {p for n in placement.direct(placement.steps[name]) for p in sources(n)}
        return leads[name]

    first = {p for n in placement.direct(step) for p in sources(n)}
    ways = [{n for n, by in leads.items() if p in by} for p in sorted(first)]
    return [w for w in ways if sum(bool(placement.steps[n].anchors) for n in w) <= MOST_ANCHORS]
