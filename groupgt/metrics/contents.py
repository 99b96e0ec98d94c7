"""Metrics that compare result texts and ignore ids: AutoRAG's token precision, recall and F1."""

from __future__ import annotations

from collections.abc import Callable

from groupgt.errors import MetricError
from groupgt.metrics.base import Cut, Definition, one_meaning, ratio
from groupgt.metrics.terms import over, plus
from groupgt.model.hits import Floats, Hits
from groupgt.model.values import total


def _mean(measure: str) -> Callable[[Hits, Cut], Floats]:
    """Build a metric that averages each top result's best score against any relevant alternative."""

    def values(hits: Hits, cut: Cut) -> Floats:
        if hits.contents is None:
            raise MetricError(
                f"token_{measure} compares text: evaluate with a corpus (--corpus; corpus= in Python), or with "
                "results and alternatives that contain text"
            )
        query, rank, score = hits.contents.query, hits.contents.rank, hits.contents.scores[measure]
        within = rank <= cut.top[query]
        return ratio(total(query[within], score[within], hits.size), cut.top)

    return values


_WARNING = (
    "Case, ASCII punctuation and English articles are ignored, and words end at white space. In a language without "
    "spaces, a sentence is one word. The metric measures text overlap, not coverage."
)


def _definition(measure: str, summary: str, formula: str) -> Definition:
    return one_meaning(
        f"token_{measure}",
        summary,
        _mean(measure),
        f"(Σ over results in top of the largest {formula} over the relevant alternatives) ÷ len(top)",
        lambda sheet: over(plus(score for score in sheet.contents[measure] if score), sheet.top),
        f"AutoRAG retrieval_token_{measure}",
        warning=_WARNING,
        takes_level=False,
        reads_texts=True,
    )


DEFINITIONS = (
    _definition(
        "precision", "Share of result tokens that occur in an alternative.", "(words in common ÷ words of the result)"
    ),
    _definition(
        "recall",
        "Share of an alternative's tokens that occur in results.",
        "(words in common ÷ the words of the alternative)",
    ),
    _definition("f1", "Token-level F1 of result and alternative.", "2·P·R ÷ (P + R)"),
)
