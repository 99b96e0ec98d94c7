"""Values per query as OpenTelemetry events: what they say, and that they are the values of the frame."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import groupgt
from groupgt.cli.main import main

TRUTH = {
    "river": [["vienna", "austria"], ["danube"]],
    "trial": [["kafka"]],
    "lost": [["a"], ["b"], ["c"], ["d"], ["e"]],
}
IDS = st.lists(st.sampled_from("abcdef"), max_size=4, unique=True)
NAME, VALUE = "gen_ai.evaluation.name", "gen_ai.evaluation.score.value"
LABEL, WHY = "gen_ai.evaluation.score.label", "gen_ai.evaluation.explanation"


def told(result: groupgt.Evaluation) -> dict[tuple[str, str], dict[str, Any]]:
    """The attributes of each event, by query and metric."""
    return {
        (each["attributes"]["groupgt.query.id"], each["attributes"][NAME]): each["attributes"]
        for each in result.to_events()
    }


def test_an_event_says_what_is_covered_within_its_cutoff() -> None:
    run = {"river": ["vienna", "x", "danube"], "lost": ["c"]}
    result = groupgt.evaluate(TRUTH, run, ["recall@2", "complete@3"])
    attributes = told(result)
    assert attributes["river", "recall@2"] == {
        NAME: "recall@2",
        VALUE: 0.5,
        LABEL: "incomplete",
        WHY: "1 of 2 groups covered; not covered: danube",
        "groupgt.query.id": "river",
        "groupgt.run": "results",
    }
    assert (attributes["river", "complete@3"][LABEL], attributes["river", "complete@3"][WHY]) == (
        "complete",
        "2 of 2 groups covered",
    )
    # A query without results counts as 0, and names what it lacks; only the first three groups are named.
    assert attributes["trial", "complete@3"][WHY] == "0 of 1 group covered; not covered: kafka"
    assert attributes["lost", "recall@2"][WHY] == "1 of 5 groups covered; not covered: a, b, d, 1 more"
    event = result.to_events()[0]
    assert (event["event_name"], event["trace_id"], event["span_id"]) == ("gen_ai.evaluation.result", None, None)


def test_queries_without_a_value_have_no_event_and_unanswerable_ones_no_label() -> None:
    rows = {"qid": ["q", "none", "no"], "retrieval_gt": [[["a"]], [], []], "answerable": [True, None, False]}
    truth = pl.DataFrame(rows, strict=False)
    attributes = told(groupgt.evaluate(truth, {"q": ["a"], "no": []}, ["recall", "abstains"]))
    assert attributes.keys() == {("q", "recall"), ("no", "abstains")}
    assert attributes["no", "abstains"].keys() == {NAME, VALUE, "groupgt.query.id", "groupgt.run"}


@given(st.dictionaries(st.sampled_from(["1", "2", "3"]), IDS), st.integers(1, 4))
def test_events_have_the_values_of_the_frame(run: dict[str, list[str]], k: int) -> None:
    truth = {"1": [["a", "b"], ["c"]], "2": [["d"]], "3": []}
    result = groupgt.evaluate(truth, run, [f"complete@{k}", f"ndcg@{k}", f"recall.coverage@{k}"])
    attributes = told(result)
    frame = {
        (qid, name): value for qid, *values in result.per_query.rows() for name, value in zip(result.values, values)
    }
    assert {key: each[VALUE] for key, each in attributes.items()} == {
        key: value for key, value in frame.items() if value is not None
    }
    for (qid, _), each in attributes.items():
        covered, _, groups, *_ = each[WHY].split()
        assert math.isclose(int(covered) / int(groups), attributes[qid, f"recall.coverage@{k}"][VALUE])
        assert (each[LABEL] == "complete") == (attributes[qid, f"complete@{k}"][VALUE] == 1)


def test_a_comparison_writes_the_events_of_each_run(tmp_path: Path) -> None:
    (tmp_path / "truth.jsonl").write_text(json.dumps({"qid": "trial", "retrieval_gt": TRUTH["trial"]}))
    for name in ("kafka", "brod"):
        (tmp_path / f"{name}.trec").write_text(f"trial Q0 {name} 1 1 t\n")
    files = [str(tmp_path / name) for name in ("truth.jsonl", "kafka.trec", "brod.trec")]
    main(["compare", *files, "-m", "recall@1", "--per-query", str(tmp_path / "scores.otel.jsonl")])
    events = map(json.loads, (tmp_path / "scores.otel.jsonl").read_text().splitlines())
    values = {each["attributes"]["groupgt.run"]: each["attributes"][VALUE] for each in events}
    assert values == {"kafka": 1, "brod": 0}


def test_each_trial_has_its_own_events() -> None:
    trials = [{"river": ["vienna", "danube"]}, {"river": ["vienna"]}]
    result = groupgt.evaluate_runs(
        {"river": TRUTH["river"]}, {"agent": trials}, ["complete@2", "complete(pass_all=2)@2"]
    )
    events = result["agent"].to_events()
    # Metrics over trials have none.
    assert [(each["attributes"][NAME], each["attributes"][VALUE]) for each in events] == [
        ("complete@2", 1),
        ("complete@2", 0),
    ]


TRACE, ROOT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SPELLINGS = {
    "hex": lambda text: text,
    "SDK": lambda text: f"0x{text}",
    "protobuf": lambda text: b64encode(bytes.fromhex(text)).decode(),
}


@pytest.mark.parametrize("spelled", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize("by", ["id", "text", "session"])
def test_an_event_belongs_to_the_first_span_of_its_trace(spelled: Any, by: str, tmp_path: Path) -> None:
    def span(name: str, at: int, **attributes: str) -> dict[str, Any]:
        cells = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
        times = {"startTimeUnixNano": str(at), "endTimeUnixNano": str(at + 1)}
        return {"traceId": spelled(TRACE), "spanId": spelled(name), **times, "attributes": cells}

    known = {"id": {"qid": "river"}, "text": {"input.value": "Which river?"}, "session": {"session.id": "river"}}[by]
    search = {"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.id": "danube"}
    spans = [
        span("00f067aa0ba902b7", 5, **{"gen_ai.response.id": "first"}),
        span("00f067aa0ba902b8", 7, **{"gen_ai.response.id": "answer"}),
        span("00f067aa0ba902b9", 3, **search),
        span(ROOT, 1, **known),
    ]
    (tmp_path / "traces.jsonl").write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    row = {"qid": "river", "query": "Which river?", "retrieval_gt": TRUTH["river"]}
    (tmp_path / "truth.jsonl").write_text(json.dumps(row))
    files = [str(tmp_path / name) for name in ("truth.jsonl", "traces.jsonl")]
    session = ["--run-format", "otlp-sessions"] if by == "session" else []
    written = tmp_path / "scores.otel.jsonl"
    main(["evaluate", *files, *session, "-m", "recall", "--per-query", str(written)])
    (event,) = map(json.loads, written.read_text().splitlines())
    assert (event["trace_id"], event["span_id"]) == (TRACE, ROOT)
    assert event["attributes"][VALUE] == 0.5
    assert event["attributes"]["gen_ai.response.id"] == "answer"
