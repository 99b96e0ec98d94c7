"""Handles text in place of a list of ids: refuses text that is clearly several ids, and reads other text as one id."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain

from groupgt.errors import display, warn
from groupgt.formats.columns import SEPARATORS, declaring
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.run import Run
from groupgt.model.values import Unsplit


def unsplit_in(run: Run) -> Unsplit:
    """Return the text in any trial of a run that was read as one id, with its place."""
    return {text: place for each in run.each for text, place in each.unsplit.items()}


def fault_of_joined(unsplit: Unsplit, known: Collection[str]) -> str:
    """Describe any text that is not a known id but contains one, and explain how to split it."""
    parts = ((text, *pair) for text in unsplit if text not in known for pair in _parts(text))
    several = [(text, mark, part) for text, mark, part in parts if part in known]
    if not several:
        return ""
    text, mark, part = several[0]
    where, column = unsplit[text]
    count = len({text for text, *_ in several})
    what = f"{where}: expected a list of ids, found {display(text)}, which is not a known id, although {display(part)}"
    more = f" ({count:,} such values)" if count > 1 else ""
    return f"{what} is{more}; {_way(column, mark)}"


def warn_of_joined(unsplit: Unsplit, known: Collection[str]) -> None:
    """Warn about text that was read as one id although it has separators, unless the entire text is a known id."""
    single = [text for text in unsplit if text not in known]
    if single:
        where, column = unsplit[single[0]]
        mark = next(mark for mark in SEPARATORS if mark in single[0])
        count = f"{len(single):,} {'value is' if len(single) == 1 else 'values are each'} read as one id"
        what = f"{where}: {count} where a list of ids is expected, such as {display(single[0])}"
        warn(f"{what}; {_way(column, mark)}", "unknown ids")


def ids_of(truth: GroundTruth) -> set[str]:
    """Return all ids in the ground truth, whether judged, excluded or harmful."""
    return {*truth.ids, *chain.from_iterable(chain(truth.excluded or (), truth.harmful or ()))}


def _way(column: str, mark: str) -> str:
    role, _, name = column.partition("=")
    kind = "run" if role == "retrieved_ids" else "truth"
    return f"if the separator is {mark!r}, add {declaring(kind, **{role: f'{name}[{mark}]'})}"


def _parts(text: str) -> Iterable[tuple[str, str]]:
    """Yield (separator, part) for each part of some text."""
    for mark in filter(text.__contains__, SEPARATORS):
        yield from ((mark, part) for each in text.split(mark) if (part := each.strip()))
