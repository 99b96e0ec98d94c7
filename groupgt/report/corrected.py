"""Reports means corrected by an audit or averaged over annotators, and the assumptions behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from groupgt.evaluation.result import Evaluation
from groupgt.model.sample import SAMPLE, sample_fault
from groupgt.render.document import Block, Table
from groupgt.render.exports import Cell
from groupgt.render.tables import counted, span

HEADERS = ["metric", "by the truth", "audited", "corrected", "95 % CI", "labels saved"]


def corrected_blocks(evaluations: Sequence[Evaluation], *, compared: bool = False) -> Iterator[Block]:
    """Yields a table of corrected means with a note; nothing without an audit."""
    first = evaluations[0]
    if first.audit is None:
        return
    several = len(evaluations) > 1
    rows: list[list[Cell]] = []
    for evaluation in evaluations:
        for text, each in evaluation.corrected.items():
            name_cell: list[Cell] = [evaluation.name] if several else []
            label = evaluation.label_of(text)
            rows.append(
                [*name_cell, label, each.judged, each.audited, each.mean, span(each.interval), round(each.saved)]
            )
    yield Table([*(["run"] if several else []), *HEADERS], rows, keep=2 if several else 1)
    yield "\n".join(notes(first, compared=compared))


def notes(evaluation: Evaluation, *, compared: bool = False) -> Iterator[str]:
    """Explains what figures from an audit or several annotators reflect; nothing without either."""
    if evaluation.annotators:
        count = 1 + len(evaluation.annotators)
        shared = set(evaluation.truth.qids).intersection(*(other.truth.qids for other in evaluation.annotators))
        queries = f"{counted(len(shared), 'query')} that all of them judged"
        yield f"averaged over {count} annotators and {queries}; intervals and p-values include their disagreement"
        yield "these intervals do not reflect strictness shared by all annotators"
    audit = evaluation.audit
    if audit is None:
        return
    entries = audit.truth.columns.get(SAMPLE, ())
    is_recorded = sample_fault(audit.truth.qids, entries, evaluation.truth.qids) is None
    of = f"{len(audit.truth):,} audited of {counted(len(evaluation.truth), 'query')}"
    yield f"corrected by {of}, {'a recorded' if is_recorded else 'assumed to be a'} random sample"
    yield "corrected figures count queries without a value as 0 in every column"
    if skipped := sum(value is not None for value in audit.truth.columns.get("skipped", ())):
        yield f"{counted(skipped, 'audited query')} skipped by the annotator, counted as 0"
    left = [text for text in evaluation.metrics if text not in evaluation.corrected]
    if compared:
        yield "each difference is corrected separately and may differ from the difference between the corrected means"
    if left:
        yield f"not corrected: {', '.join(left)} (no value per query, or not between 0 and 1)"
