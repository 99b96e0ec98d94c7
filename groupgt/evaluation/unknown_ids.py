"""Warnings about results that seem to belong to other data (unknown ids, no shared queries or documents, near matches).

`evaluate` and `check` issue these warnings.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import islice

from groupgt.engines.carriers import carrier_of
from groupgt.errors import DataError, display, first_of, warn
from groupgt.labellers.base import Labeller
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.run import Run
from groupgt.model.validity import are_texts

# Maximum number of results considered.
LOOKED_AT = 200_000
TEXTS_WAY = "; give their ids, or compare texts: --labeller text (labeller=)"
# Fewer queries than this may all fail by chance; this many are unlikely to.
SEVERAL = 10


def warn_of_unknown(run: Run, labeller: Labeller) -> bool:
    """Warn about results that a labeller cannot match; return whether a warning was issued.

    Raises `DataError` if the labeller matches no results at all and this is certainly an error.
    """
    if labeller.name == "id":
        return False
    _, documents = carrier_of(run.by_original_ids).sample(LOOKED_AT)
    unknown = labeller.unknown_ids(documents)
    all_unknown = len(unknown) == len(documents)
    if not unknown or not (all_unknown or labeller.unknown_is_fault):
        return False
    some = ", ".join(map(display, unknown[:3])) + (" …" if len(unknown) > 3 else "")
    if all_unknown and labeller.unknown_is_fault:
        what = f"the labeller {labeller} has no entry for any result: {some}; does its table belong to this run?"
        raise DataError(f"{_title(run)}{what}")
    if all_unknown:
        what = f"the labeller {labeller} matches no results; ids are left unchanged: {some}"
    else:
        what = f"the labeller {labeller} does not know {len(unknown):,} of {len(documents):,} results: {some}"
    warn(f"{_title(run)}{what}")
    return True


def warn_of_unreachable(truth: GroundTruth, labeller: Labeller) -> None:
    """Warn about alternatives that no result can ever hit, once per ground truth and labeller."""

    def warn_once() -> int:
        unreachable, way = labeller.unreachable(truth)
        relevant = [place for place in unreachable.tolist() if truth.is_relevant[place]]
        if relevant:
            place = relevant[0]
            example = f"{display(truth.ids[place])} of query {truth.qids[int(truth.query_of[place])]!r}"
            what = f"{len(relevant):,} of {int(truth.is_relevant.sum()):,} alternatives can be hit by no result"
            warn(f"labeller {labeller}: {what}, such as {example}; {way}")
        return len(relevant)

    truth.judgments.once(("unreachable", labeller), warn_once)


def warn_of_no_match(truth: GroundTruth, run: Run, labeller: Labeller, query_count: int) -> None:
    """Warn if no result has a hit, and show any pair of ids that differ only in blanks, case, form or decimals.

    Without such a pair, the warning appears only if enough queries have results to rule out chance.
    """
    qids, documents = carrier_of(run).sample(LOOKED_AT)
    if truth.qids and qids and not set(qids) & set(truth.qids):
        finding = f"{_title(run)}no query of the run is in the ground truth"
        near = _near_pair("query ids", truth.qids, qids)
        warn(f"{finding}{near}" if near else f"{finding}: does the run answer the same queries?")
    elif labeller.name not in ("id", "parents") and truth.ids and documents:
        if query_count >= SEVERAL:
            finding = f"the labeller {labeller} finds no hits"
            warn(f"{_title(run)}{finding}: is the run from the same documents?")
    elif truth.ids and documents:
        finding = f"{_title(run)}no result is in the ground truth"
        near = _near_pair("document ids", truth.ids, documents)
        for whose, names in (("ground truth", truth.ids[:LOOKED_AT]), ("results", documents)):
            if are_texts(names):
                near = f": the {whose} may hold texts in place of ids, such as {display(names[0])}{TEXTS_WAY}"
        if near or query_count >= SEVERAL:
            warn(f"{finding}{near}" if near else f"{finding}: is the run from the same corpus?")


def warn_of_blank(truth: GroundTruth, texts: Mapping[str, str], title: str = "") -> list[str]:
    """Warn about judged passages without text, which no keyword search can return, and return their ids."""
    blank = list(dict.fromkeys(name for name in truth.ids if name in texts and not texts[name].strip()))
    if blank:
        some = first_of([display(name) for name in blank], 3)
        warn(
            f"{title}{len(blank):,} judged {'passage has' if len(blank) == 1 else 'passages have'} no contents: {some}"
        )
    return blank


def fold(name: str) -> str:
    """Normalize an id by ignoring surrounding blanks, case, Unicode form, leading zeros and `.0`."""
    text = unicodedata.normalize("NFC", name).strip().casefold()
    number = re.fullmatch(r"0*([0-9]+)(\.0*)?", text)
    return number[1] if number else text


def _title(run: Run) -> str:
    return f"{run.name}: " if run.name else ""


def _near_pair(what: str, judged: Iterable[str], retrieved: Iterable[str]) -> str:
    """Describe two ids that nearly match; return an empty string if there are none."""
    folded = {fold(name): name for name in islice(judged, LOOKED_AT)}
    for name in islice(retrieved, LOOKED_AT):
        near = folded.get(fold(name))
        if near is not None and near != name:
            # Two Unicode forms of one letter look the same, so escapes are shown instead.
            show = ascii if unicodedata.normalize("NFC", near) == unicodedata.normalize("NFC", name) else repr
            return f", but {what} nearly match: {show(near)} in the ground truth, {show(name)} in the results"
    return ""
