"""What stands below a table of means: the population, and what to know of the convention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from groupgt.evaluation.result import Evaluation
from groupgt.render.tables import counted


def below_means(evaluations: Sequence[Evaluation], conventions: Sequence[str]) -> str:
    """All lines: the population, and what to know of the convention."""
    return "\n".join([*population(evaluations, conventions), *_notes(evaluations)])


def population(evaluations: Sequence[Evaluation], conventions: Sequence[str]) -> list[str]:
    """The footers: once where all runs agree, else a line for those that do."""
    footers = [footer(evaluation) for evaluation in evaluations]
    if len(conventions) > 1:
        # Which convention stands above each column.
        footers = [[counts.split("; ", 1)[1], *others] for counts, *others in footers]
    if len({counts for counts, *_ in footers}) == 1:
        return footers[0]
    names_of: dict[str, list[str]] = {}
    for evaluation, (counts, *_) in zip(evaluations, footers):
        names_of.setdefault(counts, []).append(evaluation.name)
    usual = max(names_of, key=lambda counts: len(names_of[counts]))
    lines = []
    for counts in sorted(names_of, key=lambda counts: counts == usual):
        names = names_of[counts]
        lines.append(f"{'the others' if counts == usual and len(names) > 1 else ', '.join(names)}: {counts}")
    return [*lines, *footers[0][1:]]


def footer(evaluation: Evaluation) -> list[str]:
    """The convention and the counts that are not 0; the policy and the labeller, where they are not the default."""
    counts = dict(evaluation.counts)
    total = counted(counts.pop("queries"), "query", "queries")
    shown = [f"{name.replace('_', ' ')} {count:,}" for name, count in counts.items() if count or name == "evaluated"]
    return [
        f"convention {evaluation.convention}; {total}: {', '.join(shown)}",
        *([f"policy {evaluation.policy.changes}"] if evaluation.policy.changes else []),
        *([f"labeller {evaluation.labeller}"] if evaluation.labeller.name != "id" else []),
    ]


def _notes(evaluations: Sequence[Evaluation]) -> Iterator[str]:
    """What to know of the convention `autorag`; nothing where nothing was measured in it."""
    first = evaluations[0]
    if not first.facts.autorag_metrics:
        return
    names_of: dict[int, list[str]] = {}
    for name, count in first.facts.below_one.items():
        names_of.setdefault(count, []).append(name)
    if names_of:
        parts = [f"in {_joined(names)} for {count:,}" for count, names in names_of.items()]
        parts[-1] += f" of {counted(int(first.truth.judgments.defined.sum()), 'query', 'queries')}"
        yield (
            f"convention autorag scores even a perfect ranking below 1 {', '.join(parts)}; convention coverage gives "
            "it 1"
        )
    differing = [evaluation.name for evaluation in evaluations if evaluation.facts.autorag_differs]
    if differing:
        runs = differing[0] if len(differing) == 1 else f"{len(differing):,} runs"
        yield (
            f"AutoRAG itself gives other means{'' if len(evaluations) == 1 else f' of {runs}'}: it leaves out queries "
            "without results, and counts repeats and breaks ties in its own way; --policy autorag does the same"
        )


def _joined(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
