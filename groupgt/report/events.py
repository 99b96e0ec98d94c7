"""Export per-query values as OpenTelemetry events, to show them next to the traces of the queries.

An event is named `gen_ai.evaluation.result`. Each event has the ids of the query's trace and first span, or null if
results are not from traces. Queries without a value have no event, and each trial has its own events. Attributes:

- `gen_ai.evaluation.name`, `gen_ai.evaluation.score.value`: the metric as requested, and its value.
- `gen_ai.evaluation.score.label`, `gen_ai.evaluation.explanation`: `complete` if each group is covered within the
  metric's cutoff, or `incomplete`; how many groups are covered, and which are not.
- `gen_ai.response.id`: the last response in the trace, if it has one; `groupgt.query.id`, `groupgt.run`.
"""

from __future__ import annotations

import math
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from groupgt.errors import first_of
from groupgt.evaluation.misses import Failures, failures_of
from groupgt.evaluation.result import Evaluated, Evaluation
from groupgt.formats.otlp import QUERY_IDS, RESPONSE
from groupgt.metrics.language import Metric
from groupgt.render.tables import Grid, counted

PREFIX = "gen_ai.evaluation."
NAMED = 3  # missing groups, and alternatives of each


def events(evaluations: Sequence[Evaluated]) -> Grid:
    """Return `event_name`, `trace_id`, `span_id` and `attributes` of each event."""
    rows = [row for evaluation in evaluations for each in evaluation.each for row in _events(each, evaluation.metrics)]
    return ["event_name", "trace_id", "span_id", "attributes"], rows


def _events(evaluation: Evaluation, metrics: Mapping[str, Metric]) -> list[list[Any]]:
    origins = evaluation.run.traces.origins if evaluation.run.traces else {}
    # Metrics over trials have no value for one of them.
    columns = {text: column.tolist() for text, column in evaluation.shown.items() if not metrics[text].passes}
    cutoffs = {metrics[text].cutoff for text in columns}
    told = {cutoff: _told(failures_of({evaluation.name: evaluation}, cutoff)) for cutoff in cutoffs}
    rows: list[list[Any]] = []
    for query, qid in enumerate(evaluation.truth.qids):
        *ids, response = origins.get(qid, (None, None, None))
        about = {QUERY_IDS[0]: qid, "groupgt.run": evaluation.name} | ({RESPONSE: response} if response else {})
        for text, column in columns.items():
            if not math.isnan(column[query]):
                result = {f"{PREFIX}name": text, f"{PREFIX}score.value": column[query]} | about
                rows.append([f"{PREFIX}result", *map(_hex, ids), result | told[metrics[text].cutoff][query]])
    return rows


def _told(failures: Failures) -> list[dict[str, str]]:
    """Return the label and the explanation of each query in one run. Both are empty for queries without groups."""
    missing: dict[str, list[str]] = {}
    for each in failures.groups(np.flatnonzero(failures.covered[:, 0] == 0)):
        missing.setdefault(each.qid, []).append(first_of(each.alternatives, NAMED, " or ") or "no alternatives")
    told: list[dict[str, str]] = []
    for qid, groups in zip(failures.truth.qids, failures.truth.judgments.groups.tolist()):
        names = missing.get(qid, [])
        text = f"{groups - len(names):,} of {counted(groups, 'group')} covered"
        text += f"; not covered: {first_of(names, NAMED)}" if names else ""
        label = "incomplete" if names else "complete"
        told.append({f"{PREFIX}score.label": label, f"{PREFIX}explanation": text} if groups else {})
    return told


def _hex(text: str | None) -> str | None:
    """Return an id as hexadecimal digits, as backends show it. Protobuf uses base64, and SDKs add `0x`."""
    return b64decode(text).hex() if text and text.endswith("=") else text and text.removeprefix("0x")
