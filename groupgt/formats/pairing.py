"""Pairs results with ground truth queries by query text, never by their place in a file, if one side has no ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from groupgt.errors import DataError, Faults, display, first_of, warn
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.run import Run
from groupgt.model.values import normal_text

T = TypeVar("T")
NAMED = 3


def matched(run: Run, truth: GroundTruth) -> Run:
    """Return results with the query ids of the ground truth, or raise `DataError` if query text is not unique."""
    if run.traces is not None:
        return _traces(run, truth)
    if not run.texts or truth.texts is None:
        return run
    has_ids = not all(normal_text(text) == qid for qid, text in run.texts.items())
    if has_ids and not truth.by_text:
        _refuse_other_numbers(run, truth)
        return run
    faults = Faults()
    if has_ids:
        names = {qid: normal_text(text) for qid, text in run.texts.items()}
    else:
        qids = queries_by_text(truth)
        names = {key: _only(qids[key], f"query {display(key)}", run, faults) for key in run.texts if key in qids}
    firsts: dict[str, str] = {}
    for key, name in names.items():
        if firsts.setdefault(name, key) != key:
            what = f"the rankings of {display(firsts[name])} and {display(key)} both belong to this query; keep one"
            faults.add(run.title, f"query {display(name)}: {what}")
    faults.stop()
    if strangers := [key for key in run.rankings if names.get(key, key) not in truth.index]:
        shown = first_of([display(key) for key in strangers], NAMED)
        count = f"{len(strangers):,} of {len(run.rankings):,} queries in the results"
        warn(f"{run.title}: {count} match no query text in the ground truth: {shown}")
    return _renamed(run, {key: names.get(key, key) for key in run.rankings})


def queries_by_text(truth: GroundTruth) -> dict[str, list[str]]:
    """Return the queries for each text."""
    qids: dict[str, list[str]] = {}
    for qid, text in zip(truth.qids, truth.texts or ()):
        qids.setdefault(normal_text(text or ""), []).append(qid)
    return qids


def _only(qids: list[str], what: str, run: Run, faults: Faults, hint: str = "") -> str:
    if len(qids) > 1:
        faults.add(run.title, f"{what}: the queries {first_of(qids, NAMED)} have the same text; add ids{hint}")
    return qids[0]


def _refuse_other_numbers(run: Run, truth: GroundTruth) -> None:
    """Raise `DataError` if both sides number their queries but use the same number for different texts."""
    faults = Faults()
    texts = dict(zip(truth.qids, truth.texts or ()))
    for qid, text in run.texts.items():
        other = texts.get(qid)
        if qid.isdigit() and other is not None and normal_text(other) != normal_text(text):
            what = f"its text is {display(text)}, but {display(other)} in the ground truth; use the same ids in both"
            faults.add(f"{run.title}: query {qid!r}", what)
    faults.stop()


def _renamed(run: Run, names: Mapping[str, str]) -> Run:
    def renamed(rows: Mapping[str, T]) -> dict[str, T]:
        return {names[key]: cells for key, cells in rows.items()}

    lists = run.lists
    fields: dict[str, Any] = {name: lambda read=read: renamed(read()) for name, read in lists.fields.items()}
    contents = replace(
        lists,
        rankings=renamed(lists.rankings),
        scores=None if lists.scores is None else renamed(lists.scores),
        lengths={unit: renamed(rows) for unit, rows in lists.lengths.items()},
        fields=fields,
    )
    return replace(run, contents=contents, texts={})


def _traces(run: Run, truth: GroundTruth) -> Run:
    """Match traces to queries by id, or otherwise by text."""
    from groupgt.formats.otlp import QUERY_IDS

    traces = run.traces
    if traces is None or traces.count:
        return run
    faults = Faults()
    qids = queries_by_text(truth)
    names: dict[str, str] = {}
    taken: dict[str, str] = {}
    for key, texts in traces.texts.items():
        matches = next((qids[plain] for text in texts if (plain := normal_text(text)) in qids), [])
        name = _only(matches, f"trace {key}", run, faults, f" ({QUERY_IDS[0]})") if matches else key
        if name in taken:
            what = f"the traces {taken[name]} and {key} both belong to this query; keep one"
            faults.add(run.title, f"query {name!r}: {what}")
        names[key], taken[name] = name, key
    faults.stop()
    by_text = sum(name != key for key, name in names.items())
    by_id = sum(key in truth.index and not traces.texts[key] for key in names)
    if not by_text + by_id:
        what = f"none of {len(names):,} traces belongs to a query of the ground truth"
        hint = f"identify queries by an attribute ({', '.join(QUERY_IDS)}), or by the query text in the ground truth"
        raise DataError(f"{run.title}: {what}; {hint}")
    ms = {names[key]: duration for key, duration in traces.ms.items() if names[key] in truth.index}
    searches = {names[key]: texts for key, texts in traces.searches.items()}
    origins = {names[key]: ids for key, ids in traces.origins.items()}
    traces = replace(traces, texts={}, ms=ms, by_id=by_id, by_text=by_text, count=len(names), searches=searches)
    return replace(_renamed(run, names), traces=replace(traces, origins=origins))
