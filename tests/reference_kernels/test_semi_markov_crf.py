"""The semi-Markov CRF against every segmentation of small sequences, and against what must hold for all."""

import itertools
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from pytorch_to_triton.worker.interpreter import install
from pytorch_to_triton.worker.loading.target import load

KERNEL = Path(__file__).parents[2] / "reference_kernels" / "semi_markov_crf.py"

Compute = Callable[..., tuple[Tensor, Tensor]]


class Segment(NamedTuple):
    """One element of `edge`: edge[start, steps - 1, end_label, start_label]."""

    start: int
    steps: int
    end_label: int
    start_label: int


class Sizes(NamedTuple):
    steps: int
    durations: int
    labels: int


SMALL = [Sizes(5, 3, 2), Sizes(4, 4, 3), Sizes(3, 5, 2), Sizes(4, 1, 3), Sizes(6, 2, 1)]


@pytest.fixture(scope="module")
def compute() -> Iterator[Compute]:
    """`score_and_gradient`, in a process of its own: Triton reads TRITON_INTERPRET when it is imported."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=install) as pool:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TRITON_INTERPRET", "1")
            pool.submit(int).result()
        yield lambda *args, **options: pool.submit(score_and_gradient, *args, **options).result()


def score_and_gradient(edge: Tensor, lengths: Tensor, *, viterbi: bool = False) -> tuple[Tensor, Tensor]:
    """The kernel's scores, [B], and each score's gradient in its own sequence of edge, [B, N, K, C, C]."""
    run = load({"path": str(KERNEL), "name": None}, "candidate").contents.run
    leaf = edge.detach().requires_grad_()
    score = run(leaf, lengths, viterbi=viterbi)
    (gradient,) = torch.autograd.grad(score.sum(), leaf)
    return score.detach(), gradient


def segmentations(length: int, sizes: Sizes) -> Iterator[list[Segment]]:
    """Every way to cut `length` steps into segments and to label all boundaries."""
    for cuts in itertools.product((False, True), repeat=max(length - 1, 0)):
        inner = [step for step, is_cut in enumerate(cuts, start=1) if is_cut]
        boundaries = [0, *inner, length] if length else [0]
        pieces = list(itertools.pairwise(boundaries))
        if all(end - start <= sizes.durations for start, end in pieces):
            for labels in itertools.product(range(sizes.labels), repeat=len(boundaries)):
                yield [
                    Segment(start, end - start, end_label, start_label)
                    for (start, end), (start_label, end_label) in zip(
                        pieces, itertools.pairwise(labels), strict=True
                    )
                ]


def marks(segments: list[Segment], sizes: Sizes) -> Tensor:
    """1 where an element of one sequence's edge belongs to the segmentation, else 0."""
    mark = torch.zeros(sizes.steps, sizes.durations, sizes.labels, sizes.labels, dtype=torch.float64)
    for segment in segments:
        mark[segment.start, segment.steps - 1, segment.end_label, segment.start_label] = 1
    return mark


def all_marks(length: int, sizes: Sizes) -> Tensor:
    """One row for each segmentation, [segmentations, N, K, C, C]."""
    return torch.stack([marks(segments, sizes) for segments in segmentations(length, sizes)])


def random_edges(n_batches: int, sizes: Sizes, seed: int = 0) -> Tensor:
    shape = (n_batches, sizes.steps, sizes.durations, sizes.labels, sizes.labels)
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def every_length(sizes: Sizes) -> Tensor:
    return torch.arange(sizes.steps + 1)


@pytest.mark.parametrize("sizes", SMALL, ids=str)
def test_the_score_is_the_log_of_the_sum_over_every_segmentation(compute: Compute, sizes: Sizes) -> None:
    lengths = every_length(sizes)
    edge = random_edges(len(lengths), sizes)
    score, _ = compute(edge, lengths)
    for sequence, length in enumerate(lengths.tolist()):
        each = (all_marks(length, sizes) * edge[sequence]).flatten(1).sum(dim=1)
        torch.testing.assert_close(score[sequence], each.logsumexp(dim=0).float())


@pytest.mark.parametrize("sizes", SMALL, ids=str)
def test_the_gradient_is_the_probability_of_each_segment(compute: Compute, sizes: Sizes) -> None:
    lengths = every_length(sizes)
    edge = random_edges(len(lengths), sizes)
    _, gradient = compute(edge, lengths)
    for sequence, length in enumerate(lengths.tolist()):
        every = all_marks(length, sizes)
        probability = (every * edge[sequence]).flatten(1).sum(dim=1).softmax(dim=0)
        expected = torch.einsum("s,snkcd->nkcd", probability, every)
        torch.testing.assert_close(gradient[sequence], expected.float())


@pytest.mark.parametrize("sizes", SMALL, ids=str)
def test_with_viterbi_the_score_is_the_best_segmentations_and_the_gradient_marks_its_segments(
    compute: Compute, sizes: Sizes
) -> None:
    lengths = every_length(sizes)
    edge = random_edges(len(lengths), sizes)
    score, gradient = compute(edge, lengths, viterbi=True)
    for sequence, length in enumerate(lengths.tolist()):
        every = all_marks(length, sizes)
        each = (every * edge[sequence]).flatten(1).sum(dim=1)
        torch.testing.assert_close(score[sequence], each.max().float())
        assert torch.equal(gradient[sequence].double(), every[each.argmax()])


def test_of_equally_good_segmentations_the_shortest_last_segment_wins_and_then_the_first_label(
    compute: Compute,
) -> None:
    sizes = Sizes(3, 2, 2)
    _, gradient = compute(torch.zeros(1, 3, 2, 2, 2), torch.tensor([3]), viterbi=True)
    assert torch.equal(gradient[0].double(), marks([Segment(step, 1, 0, 0) for step in range(3)], sizes))


def test_each_step_of_a_sequence_is_covered_once(compute: Compute) -> None:
    sizes = Sizes(9, 4, 3)
    lengths = torch.tensor([9, 5, 1])
    for viterbi in (False, True):
        _, gradient = compute(random_edges(3, sizes), lengths, viterbi=viterbi)
        by_segment = gradient.sum(dim=(3, 4))
        covered = torch.zeros(3, sizes.steps + sizes.durations)
        for start, k in itertools.product(range(sizes.steps), range(sizes.durations)):
            covered[:, start : start + k + 1] += by_segment[:, start, k, None]
        steps = torch.arange(sizes.steps + sizes.durations)
        torch.testing.assert_close(covered, (steps < lengths[:, None]).float())


def test_one_duration_is_a_linear_chain(compute: Compute) -> None:
    sizes = Sizes(7, 1, 4)
    edge = random_edges(1, sizes)
    score, _ = compute(edge, torch.tensor([7]))
    paths = torch.ones(4, dtype=torch.float64)
    for transition in edge[0, :, 0].double().exp():
        paths = transition @ paths
    torch.testing.assert_close(score[0], paths.sum().log().float())


def test_sequences_of_other_lengths_beside_it_do_not_change_a_sequence(compute: Compute) -> None:
    edge = random_edges(4, Sizes(8, 3, 2))
    lengths = torch.tensor([8, 0, 3, 5])
    for viterbi in (False, True):
        together, gradients = compute(edge, lengths, viterbi=viterbi)
        for sequence, length in enumerate(lengths.tolist()):
            # What lies behind its end is none of its business, even where it is no number.
            alone = edge[sequence : sequence + 1].clone()
            alone[:, length:] = float("nan")
            score, gradient = compute(alone, torch.tensor([length]), viterbi=viterbi)
            assert torch.equal(score[0], together[sequence])
            assert torch.equal(gradient[0], gradients[sequence])
            assert gradient[0, length:].count_nonzero() == 0


def test_a_sequence_without_steps_has_one_segmentation_for_each_label(compute: Compute) -> None:
    edge, length = torch.zeros(1, 0, 2, 5, 5), torch.tensor([0])
    torch.testing.assert_close(compute(edge, length)[0], torch.tensor([5.0]).log())
    assert compute(edge, length, viterbi=True)[0].item() == 0


def test_no_segmentation_is_better_than_all_together(compute: Compute) -> None:
    edge, lengths = random_edges(3, Sizes(6, 3, 3)), torch.tensor([6, 4, 0])
    assert (compute(edge, lengths, viterbi=True)[0] <= compute(edge, lengths)[0]).all()


def test_a_bonus_for_each_step_adds_up_over_the_length(compute: Compute) -> None:
    edge, lengths = random_edges(2, Sizes(6, 3, 2)), torch.tensor([6, 3])
    bonus = 0.5 * torch.arange(1, 4)[:, None, None]
    for viterbi in (False, True):
        before, after = (compute(given, lengths, viterbi=viterbi)[0] for given in (edge, edge + bonus))
        torch.testing.assert_close(after - before, 0.5 * lengths)


def test_renamed_labels_leave_the_score_and_take_their_probabilities_along(compute: Compute) -> None:
    edge, lengths = random_edges(1, Sizes(5, 2, 4)), torch.tensor([5])
    order = torch.tensor([2, 0, 3, 1])
    score, gradient = compute(edge, lengths)
    other_score, other_gradient = compute(edge[..., order, :][..., order], lengths)
    torch.testing.assert_close(other_score, score)
    torch.testing.assert_close(other_gradient, gradient[..., order, :][..., order])


def test_a_slot_for_no_steps_is_left_out_by_a_view(compute: Compute) -> None:
    edge, lengths = random_edges(2, Sizes(5, 4, 3)), torch.tensor([5, 2])
    score, gradient = compute(edge[:, :, 1:], lengths)
    other_score, other_gradient = compute(edge[:, :, 1:].contiguous(), lengths)
    assert torch.equal(score, other_score)
    assert torch.equal(gradient, other_gradient)


def test_a_forbidden_segment_has_no_probability(compute: Compute) -> None:
    sizes = Sizes(4, 2, 2)
    edge = random_edges(1, sizes)
    # Nothing ends at step 1, whatever its label: every segmentation begins with two steps.
    edge[0, 0, 0] = -float("inf")
    score, gradient = compute(edge, torch.tensor([4]))
    allowed = [segments for segments in segmentations(4, sizes) if segments[0].steps == 2]
    every = torch.stack([marks(segments, sizes) for segments in allowed])
    each = torch.where(every > 0, every * edge[0], 0.0).flatten(1).sum(dim=1)
    torch.testing.assert_close(score[0], each.logsumexp(dim=0).float())
    expected = torch.einsum("s,snkcd->nkcd", each.softmax(dim=0), every)
    torch.testing.assert_close(gradient[0], expected.float())


def test_where_no_segmentation_is_left_the_score_is_minus_infinity_and_the_gradient_zero(
    compute: Compute,
) -> None:
    edge, lengths = random_edges(2, Sizes(4, 2, 2)), torch.tensor([4, 3])
    # Nothing passes over step 2 of the first sequence.
    edge[0, 1] = edge[0, 0, 1] = -float("inf")
    score, gradient = compute(edge, lengths)
    assert score[0].item() == -float("inf")
    assert score[1].isfinite()
    assert gradient[0].count_nonzero() == 0
    assert gradient.isfinite().all()


def test_the_probabilities_of_a_long_sequence_are_as_exact_as_those_of_a_short_one(compute: Compute) -> None:
    sizes = Sizes(200, 3, 2)
    _, gradient = compute(random_edges(1, sizes), torch.tensor([200]))
    steps = torch.arange(1, 4, dtype=torch.float64)[:, None, None]
    # float32 has no more than 3e-5 for scores of some hundred.
    torch.testing.assert_close((gradient[0] * steps).sum().item(), 200.0, rtol=2e-6, atol=0.0)
