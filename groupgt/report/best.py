"""Order runs by their means, and name the best of them without a test."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from groupgt.evaluation.result import Evaluation
from groupgt.render.tables import fixed, shortlist
from groupgt.report.sentences import NAMED, appended, enumerated, every, sentence_of

if TYPE_CHECKING:
    from groupgt.render.page.data import Sentence


def ranked(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Return runs by their mean of the first metric, best first; undefined means come last, ties keep their order."""
    text, metric = next(iter(evaluations[0].metrics.items()))

    def key(evaluation: Evaluation) -> tuple[bool, float]:
        mean = evaluation.deciding[text]
        return math.isnan(mean), 0.0 if math.isnan(mean) else -mean if metric.higher_is_better else mean

    return sorted(evaluations, key=key)


def best_runs(evaluations: Sequence[Evaluation], lead: str = "") -> Iterator[Sentence]:
    """Name the runs that are best on most metrics, then the best ones on other metrics, without a significance test.

    `lead` precedes them.
    """
    first = evaluations[0]
    ahead: dict[str, list[str]] = {}
    decided, equal = 0, []
    for text, metric in first.metrics.items():
        means = {
            evaluation.name: mean for evaluation in evaluations if not math.isnan(mean := evaluation.deciding[text])
        }
        if len(set(means.values())) < 2:
            equal += [text] if len(means) > 1 else []
            continue
        decided += 1
        top = max(means.values()) if metric.higher_is_better else min(means.values())
        for name in (name for name, mean in means.items() if mean == top):
            ahead.setdefault(name, []).append(text)
    same = [first.label_of(text) for text in equal]
    if equal and not decided:
        on = same[0] if len(equal) == 1 else "every metric"
        yield sentence_of("same", f"{lead}{every(len(evaluations), 'run')} have the same mean on {on}.")
    if not decided:
        return
    most = max(map(len, ahead.values()))
    texts = next(texts for texts in ahead.values() if len(texts) == most)
    winners = [name for name, ofs in ahead.items() if ofs == texts]
    names = {name: shortlist([first.label_of(text) for text in ofs], NAMED, " …") for name, ofs in ahead.items()}
    is_all = decided == most and not equal and decided > 1
    on = every(decided, "metric").lower() if is_all else names[winners[0]]
    word = "Highest" if all(first.metrics[text].higher_is_better for text in texts) else "Best"
    (top,) = {each.deciding[texts[0]] for each in evaluations if each.name == winners[0]}
    value = f"{fixed(top)}" if not is_all and len(texts) == 1 else f"{first.label_of(texts[0])} {fixed(top)}"
    parts = enumerated(winners, f" ({'tied, ' if len(winners) > 1 else ''}{value})")
    parts[0] = f"{lead}{word} mean of {len(evaluations):,} runs on {on}: {parts[0]}"
    for name in [name for name in ahead if name not in winners][:NAMED]:
        parts = appended(parts, f"; on {names[name]}: ", name, "")
    if same:
        parts[-1] += f"; {every(len(evaluations), 'run').lower()} have the same {shortlist(same, NAMED, ' …')}"
    parts[-1] += "."
    yield sentence_of("best", *parts)
    yield sentence_of("note", "Is that significant? groupgt compare … --baseline NAME")
