"""Traces as runs: files that the SDKs exported, and small ones with every spelling and every mistake."""

from __future__ import annotations

import json
import random
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import groupgt
from groupgt.cli.main import cli
from groupgt.formats.detect import kind_of

# An agent exported by opentelemetry-sdk 1.45.2, with the attributes of openinference-semantic-conventions 0.1.42 and of
# opentelemetry-semantic-conventions 0.66b2, and by arize-phoenix-client 3.5.0 from arize-phoenix 20.26.1: q1, which has
# an id, has three searches, of which the last finds nothing; the other query, identified by its text, has one. In the
# samples of tools, a tool searches for q1, twice with the same query, and the other is searched for in a memory.
SAMPLES = sorted((Path(__file__).parent / "traces").iterdir())
TOOLS = {"search": "results.id", "search_memory": "id"}
TRUTH = {"q1": [["vienna", "austria"], ["danube"]], "q2": [["kafka"], ["brod"]]}
TEXTS = {"q1": "Where does it end?", "q2": "Who  wrote\nThe Trial?"}
DIRECT = {
    "q1": [
        {"id": "vienna", "call": 1},
        {"id": "x", "call": 1},
        {"id": "y", "call": 2},
        {"id": "danube", "call": 2},
    ],
    "q2": [{"id": "kafka", "call": 1}],
}
METRICS = ["recall", "complete@1calls", "complete@2calls", "completion_rr", "mrr", "ndcg@3", "num_ret"]


def truth_file(folder: Path, texts: dict[str, str] = TEXTS) -> Path:
    rows = [{"qid": qid, "query": texts[qid], "retrieval_gt": TRUTH[qid]} for qid in TRUTH]
    (folder / "truth.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "truth.jsonl"


NUMBERS = count(1)


def span(trace: str, *, kind: str | None = "RETRIEVER", begin: int = 0, ms: int = 1, **more: Any) -> dict[str, Any]:
    """A span of OTLP; `ids` are the documents of a search, `text` its input, other keys its own."""
    attributes: dict[str, Any] = more.pop("attributes", {})
    if kind is not None:
        attributes = {"openinference.span.kind": kind, **attributes}
    if "text" in more:
        attributes["input.value"] = more.pop("text")
    for place, name in enumerate(more.pop("ids", [])):
        attributes[f"retrieval.documents.{place}.document.id"] = name
    times = {"startTimeUnixNano": str(begin * 10**6), "endTimeUnixNano": str((begin + ms) * 10**6)}
    cells = [{"key": key, "value": typed(value)} for key, value in attributes.items()]
    return {"traceId": trace, "spanId": f"s{next(NUMBERS)}", **times, "attributes": cells, **more}


def typed(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": list(map(typed, value))}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": key, "value": typed(each)} for key, each in value.items()]}}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def written(folder: Path, *spans: dict[str, Any]) -> Path:
    (folder / "traces.jsonl").write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}))
    return folder / "traces.jsonl"


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_what_the_sdks_export_has_the_values_of_a_direct_run(path: Path, tmp_path: Path) -> None:
    assert kind_of(path) == "run"
    tools = TOOLS if "tools" in path.stem else {}
    traced = groupgt.evaluate(truth_file(tmp_path), path, METRICS, tool_spans=tools)
    direct = groupgt.evaluate(TRUTH, DIRECT, METRICS)
    assert {name: column.tolist() for name, column in traced.values.items()} == {
        name: column.tolist() for name, column in direct.values.items()
    }
    # Group 1 of q1 is met by the first call, group 2 by the second; q2 never has its second group.
    assert traced["complete@1calls"] == 0
    assert traced["complete@2calls"] == 0.5
    traces = traced.run.traces
    assert traces is not None
    assert (traces.count, traces.by_id, traces.by_text, traces.left_out) == (2, 1, 1, 0)
    # The agent waits 2 ms in each search.
    assert traces.ms["q1"] >= 6
    assert traces.ms["q2"] >= 2
    assert "2 traces: 2 matched a query (1 by id, 1 by text); searches took " in str(traced)
    assert "rising_scores" not in traced.counts
    calls = traced.to_dict()["calls"]
    # Searches, groups of 4 that are covered, searches without a new one: the last search of q1 finds nothing.
    assert [(call["queries"], call["covered"], call["nothing_new"]) for call in calls] == [
        (2, 2, 0),
        (1, 3, 0),
        (1, 3, 1),
    ]
    repeats = path.stem in ("tools-otlp", "phoenix-tools", "phoenix-retriever")
    assert [call["repeated"] for call in calls] == [0, 0, int(repeats)]


def test_samples_of_both_conventions_and_all_exporters_are_there() -> None:
    names = ["genai-otlp", "openinference-console", "openinference-otlp", "phoenix-retriever", "phoenix-tools"]
    assert [path.stem for path in SAMPLES] == [*names, "tools-otlp"]


def rankings(run: groupgt.Run) -> dict[str, Any]:
    lists = run.lists
    return {qid: list(zip(lists.lengths["calls"][qid], ids)) for qid, ids in lists.rankings.items()}


def test_searches_are_in_order_of_time_and_those_inside_another_are_part_of_it(tmp_path: Path) -> None:
    outer = span("t", begin=5, ms=4, ids=["b"], attributes={"qid": "q"})
    inner = span("t", begin=6, parentSpanId=outer["spanId"], ids=["inner"])
    tool = span("t", kind="TOOL", begin=0)
    first = span("t", kind="retriever", begin=1, ids=["a"], parentSpanId=tool["spanId"])
    empty, last = span("t", begin=20), span("t", begin=30, ids=["a", "c"])
    run = groupgt.read_run(written(tmp_path, last, inner, outer, empty, first, tool, span("u", kind="LLM")))
    assert rankings(run) == {"q": [(1, "a"), (2, "b"), (4, "a"), (4, "c")]}
    assert run.traces is not None
    assert run.traces.ms == {"q": 1 + 4 + 1 + 1}
    assert run.traces.left_out == 1


def test_spellings(tmp_path: Path) -> None:
    documents = [{"id": "a", "score": 2.0, "content": "A"}, {"id": 7, "score": 1, "content": "B"}]
    listed = span(
        "t1", kind=None, attributes={"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": documents}
    )
    text = json.dumps(documents)
    both = {"gen_ai.operation.name": "Retrieval", "gen_ai.retrieval.documents": text, "query.id": "q2"}
    snake = {
        "trace_id": "t2",
        "span_id": "x",
        "start_time_unix_nano": 3,
        "end_time_unix_nano": 4,
        "attributes": [{"key": key, "value": {"string_value": value}} for key, value in both.items()],
    }
    printed = {
        "context": {"trace_id": "0x3", "span_id": "0x1"},
        "start_time": "2026-01-01T00:00:00.000000Z",
        "end_time": "2026-01-01T00:00:00.250000Z",
        "parent_id": None,
        "attributes": {
            "openinference.span.kind": "RETRIEVER",
            "metadata": '{"query_id": "q3"}',
            "retrieval.documents.1.document.id": "b",
            "retrieval.documents.0.document.id": "a",
            "retrieval.documents.0.document.metadata": '{"tokens": 3}',
            "retrieval.documents.1.document.metadata": '{"tokens": 4}',
        },
    }
    lines = [
        {"resourceSpans": [{"scopeSpans": [{"spans": [listed]}]}]},
        {"resource_spans": [{"instrumentation_library_spans": [{"spans": [snake]}]}]},
        printed,
    ]
    path = tmp_path / "traces.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = groupgt.read_run(path)
    assert rankings(run) == {"t1": [(1, "a"), (1, "7")], "q2": [(1, "a"), (1, "7")], "q3": [(1, "a"), (1, "b")]}
    assert run.traces is not None
    assert run.traces.ms["q3"] == pytest.approx(250)
    path.write_text(json.dumps(printed) + "\n")
    assert groupgt.read_run(path).lists.lengths["tokens"] == {"q3": [3, 4]}
    path.write_text(json.dumps(lines[0], indent=2))
    fields = groupgt.read_run(path).lists.fields
    assert {name: read() for name, read in fields.items()} == {"text": {"t1": ["A", "B"]}, "score": {"t1": [2.0, 1.0]}}


def test_documents_without_ids_are_compared_by_text(tmp_path: Path) -> None:
    content = {"retrieval.documents.0.document.content": "Leave is thirty days.", "qid": "q"}
    again = {key: value for key, value in content.items() if key != "qid"}
    path = written(tmp_path, span("t", attributes=content), span("t", begin=3, attributes=again))
    assert rankings(groupgt.read_run(path)) == {"q": [(1, "(result 1)"), (2, "(result 1)")]}
    assert groupgt.evaluate({"q": [[{"text": "thirty days"}]]}, path, ["recall"], labeller="text")["recall"] == 1


def test_a_session_is_a_query_of_several_traces(tmp_path: Path) -> None:
    session = {"session.id": "s1"}
    one = span("t1", ids=["a"], attributes=session | {"qid": "q"})
    two = span("t2", begin=5, ids=["b"], attributes={"gen_ai.conversation.id": "s1"})
    path = written(tmp_path, two, one)
    assert rankings(groupgt.read_run(path, "otlp-sessions")) == {"q": [(1, "a"), (2, "b")]}
    with pytest.raises(groupgt.DataError, match=r"span s.*: expected a session id as session\.id or gen_ai"):
        groupgt.read_run(written(tmp_path, one, span("t3", ids=["c"])), "otlp-sessions")


def reranker(*ids: str, begin: int, **more: Any) -> dict[str, Any]:
    documents = {f"reranker.output_documents.{place}.document.id": name for place, name in enumerate(ids)}
    return span("t", kind="RERANKER", begin=begin, attributes=documents, **more)


@pytest.mark.parametrize(
    ("spans", "results"),
    [
        ([span("t", ids=["a", "b"]), reranker("b", "c", begin=2)], [(1, "b"), (1, "c")]),
        ([span("t", ids=["a"]), span("t", begin=1, ids=["b"]), reranker("b", "a", begin=2)], [(1, "b"), (1, "a")]),
        ([span("t", ids=["a"]), reranker("b", begin=1), span("t", begin=2, ids=["c"])], [(1, "b"), (2, "c")]),
        ([span("t", ids=["a"]), reranker("b", begin=1), reranker("c", begin=2)], [(1, "c")]),
        ([span("t", spanId="r", ids=["a"]), reranker("b", begin=1, parentSpanId="r")], [(1, "a")]),
        ([reranker("b", begin=0, spanId="o"), span("t", begin=1, ids=["a"], parentSpanId="o")], [(1, "b")]),
    ],
    ids=["after a search", "after two", "between two", "twice", "within a search", "around a search"],
)
def test_a_reranker_takes_the_place_of_searches(tmp_path: Path, spans: list[Any], results: list[Any]) -> None:
    path = written(tmp_path, *spans, span("t", kind=None, begin=9, attributes={"qid": "q"}))
    assert rankings(groupgt.read_run(path)) == {"q": results}
    searched = [name for each in spans for name in ids_of(each)]
    assert [name for _, name in rankings(groupgt.read_run(path, "otlp-searches"))["q"]] == searched
    told = str(groupgt.evaluate({"q": [["b"]]}, path, ["recall"]))
    assert ("1 trace contains reranker results" in told) == (results != [(1, "a")])


def ids_of(each: dict[str, Any]) -> list[str]:
    cells = each["attributes"]
    return [cell["value"]["stringValue"] for cell in cells if cell["key"].startswith("retrieval.documents")]


def test_texts_are_those_of_the_trace_then_of_its_first_search(tmp_path: Path) -> None:
    truth = truth_file(tmp_path)
    root = span("t1", kind="CHAIN", text='{"question": "Where does it end?", "k": 3}')
    sub = span("t1", begin=1, text="end", ids=["vienna"])
    alone = span(
        "t2",
        kind=None,
        attributes={"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": "Who wrote The Trial?"},
    )
    other = span("t3", text="Something else", ids=["x"])
    evaluation = groupgt.evaluate(truth, written(tmp_path, root, sub, alone, other), ["recall"])
    # q1 has one of two groups; q2 has a search that found nothing.
    assert evaluation.values["recall"].tolist() == [0.5, 0]
    assert evaluation.counts["extra"] == 1
    assert "3 traces: 2 matched a query (0 by id, 2 by text)" in str(evaluation)


def test_mistakes(tmp_path: Path) -> None:
    truth = truth_file(tmp_path)

    def fault(*spans: dict[str, Any], texts: dict[str, str] | None = None) -> str:
        with pytest.raises(groupgt.DataError) as error:
            groupgt.evaluate(
                truth if texts is None else truth_file(tmp_path, texts), written(tmp_path, *spans), ["recall"]
            )
        return str(error.value)

    q1 = {"qid": "q1"}
    assert (
        "none of 1 traces belongs to a query of the ground truth; identify queries by an attribute (groupgt.query.id, "
        in fault(span("t", ids=["a"], text="?"))
    )
    assert "expected a span whose openinference.span.kind is RETRIEVER or gen_ai.operation.name" in fault(
        span("t", kind="LLM")
    )
    assert "query 'q1': two traces belong to this query" in fault(
        span("t", ids=["a"], attributes=q1), span("u", ids=["a"], attributes=q1)
    )
    who = "Who wrote The Trial?"
    assert "query 'q2': the traces t and u both belong to this query" in fault(span("t", text=who), span("u", text=who))
    assert "trace t: the queries q1, q2 have the same text; add ids (groupgt.query.id)" in fault(
        span("t", text=who), texts={"q1": who, "q2": who}
    )
    assert "t: expected one query, found the ids q1, q2" in fault(
        span("t", attributes=q1), span("t", attributes={"qid": "q2"})
    )
    assert "expected a document with an id or content, found" in fault(
        span("t", attributes=q1 | {"retrieval.documents.0.document.score": 1.0})
    )
    assert "expected a list as gen_ai.retrieval.documents, found 'none'" in fault(
        span("t", attributes=q1 | {"gen_ai.retrieval.documents": "none"})
    )
    broken = span("t", attributes=q1)
    del broken["startTimeUnixNano"]
    found = fault(broken, span("u", attributes=q1 | {"gen_ai.retrieval.documents": "none"}))
    assert "expected a span with traceId, spanId, and start and end times" in found
    assert "expected a list" in found


def test_an_experiment_takes_the_times_of_searches(tmp_path: Path) -> None:
    truth_file(tmp_path)
    written(
        tmp_path,
        span("t", ms=30, ids=["vienna"], attributes={"qid": "q1"}),
        span("u", ms=50, ids=["kafka"], attributes={"qid": "q2"}),
    )
    (tmp_path / "experiment.yaml").write_text(
        "version: 1\nname: traced\n"
        "datasets: {d: {ground_truth: truth.jsonl}}\n"
        "systems: {agent: {use: results, with: {path: traces.jsonl}}}\n"
        "evaluate: {metrics: [recall]}\n"
    )
    outcome = groupgt.run_experiment(tmp_path / "experiment.yaml")
    timing = outcome.timing("d", "agent")
    assert timing is not None
    assert sorted(timing.single_ms) == [30, 50]
    assert timing.latency_p50_ms == 30


def tool_span(trace: str, result: Any, *, tool: str = "search", begin: int = 0, **more: Any) -> dict[str, Any]:
    """A span of a tool with its name, arguments and result."""
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, "qid": trace, **more}
    attributes |= {"gen_ai.tool.call.arguments": '{"query": "river", "k": 3}'} if "input.value" not in more else {}
    attributes |= {} if result is None else {"gen_ai.tool.call.result": result}
    return span(trace, kind=None, begin=begin, attributes=attributes)


@pytest.mark.parametrize(
    ("path", "result"),
    [
        ("ids", '{"ids": ["a", "b"]}'),
        ("hits.doc.id", '{"hits": [{"doc": {"id": "a"}}, {"doc": {"id": "b"}}]}'),
        ("id", '[{"id": "a"}, {"id": "b"}]'),
        # What a tool of an MCP server returns: JSON inside JSON.
        ("content.text.id", json.dumps({"content": [{"type": "text", "text": '[{"id": "a"}, {"id": "b"}]'}]})),
        ("ids", {"ids": ["a", "b"]}),
        ("", ["a", "b"]),
    ],
)
def test_the_path_leads_to_the_ids(tmp_path: Path, path: str, result: Any) -> None:
    traces = written(tmp_path, tool_span("q1", result), tool_span("q1", '{"pages": 3}', tool="count", begin=5))
    assert rankings(groupgt.read_run(traces, tool_spans={"search": path})) == {"q1": [(1, "a"), (1, "b")]}


def test_results_of_tools_have_texts_and_searches_inside_a_tool_are_part_of_it(tmp_path: Path) -> None:
    outer = tool_span("q1", '[{"id": "a", "text": "A"}, {"id": "b", "text": "B"}]')
    inner = span("q1", begin=1, ids=["inner"], parentSpanId=outer["spanId"])
    failed = tool_span("q1", "Error: timeout", begin=2, **{"error.type": "timeout"})
    other = span("q1", begin=4, attributes={"retrieval.documents.0.document.id": "c"})
    traces = written(tmp_path, outer, inner, failed, other)
    run = groupgt.read_run(traces, tool_spans={"search": "id"})
    # The tool that failed made the second call.
    assert rankings(run) == {"q1": [(1, "a"), (1, "b"), (3, "c")]}
    traces = written(tmp_path, outer)
    assert groupgt.read_run(traces, tool_spans={"search": "id"}).lists.fields["text"]() == {"q1": ["A", "B"]}


def test_mistakes_with_tools(tmp_path: Path) -> None:
    def fault(*spans: dict[str, Any], path: str | None = "hits.id") -> str:
        with pytest.raises(groupgt.DataError) as error:
            groupgt.read_run(written(tmp_path, *spans), tool_spans={} if path is None else {"search": path})
        return str(error.value)

    good = tool_span("q1", '{"hits": [{"id": "a"}]}')
    # Both attributes are optional in the conventions.
    without = span("q1", kind=None, attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"})
    for each in (without, tool_span("q1", None)):
        assert "gen_ai.tool.call.arguments" in fault(each)
        assert "gen_ai.tool.call.result" in fault(each)
    assert "search: expected ids at hits.id in its result, found {'documents': []}" in fault(
        tool_span("q1", '{"documents": []}')
    )
    assert "expected ids at hits.id in its result, found 'nothing found'" in fault(tool_span("q1", "nothing found"))
    assert "expected ids at hits.id in its result, found None" in fault(tool_span("q1", '{"hits": [{"id": null}]}'))
    assert "if a tool searches (search), add --tool-span NAME=PATH" in fault(good, path=None)
    with pytest.warns(groupgt.GroupgtWarning, match="no span for tool find; tools in the traces: search"):
        groupgt.read_run(written(tmp_path, good), tool_spans={"search": "hits.id", "find": "id"})


def test_commands_and_experiments_read_tools(tmp_path: Path) -> None:
    truth, traces = truth_file(tmp_path), SAMPLES[-1]
    options = [f"--tool-span={name}={path}" for name, path in TOOLS.items()]
    run = CliRunner().invoke

    def shown(*arguments: str) -> str:
        result = run(cli, list(map(str, arguments)))
        assert result.exit_code == 0, result.output
        return result.stdout

    shown("convert", traces, tmp_path / "run.jsonl", "--to", "jsonl", "--truth", truth, *options)
    direct, traced = (
        json.loads(shown("evaluate", truth, path, "-m", "recall@2calls", "--format", "json", *given))["runs"][0][
            "metrics"
        ]
        for path, given in ((tmp_path / "run.jsonl", ()), (traces, options))
    )
    assert traced == direct
    assert traced["recall@2calls"]["mean"] == 0.75
    missed = json.loads(shown("misses", truth, traces, "--format", "json", *options))
    assert [query["qid"] for query in missed["queries"]] == ["q2"]
    staged = json.loads(shown("stages", truth, f"two={traces}@2", traces, "--format", "json", *options))
    assert [stage["covered"] for stage in staged["stages"]] == [2, 3]
    (tmp_path / "experiment.yaml").write_text(
        "version: 1\nname: traced\n"
        "datasets: {d: {ground_truth: truth.jsonl}}\n"
        f"systems: {{agent: {{use: results, with: {json.dumps({'path': str(traces), 'traces': TOOLS})}}}}}\n"
        "evaluate: {metrics: [recall]}\n"
    )
    outcome = groupgt.run_experiment(tmp_path / "experiment.yaml")
    assert outcome.evaluations["d"]["agent"]["recall"] == 0.75


ODD = (None, 1, -1, 1e308, "x", "", [], {}, [1], {"a": 1}, True, "9" * 400, {"values": 1}, "[1]", "{}", "[" * 50)


def places_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all values inside another."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, each in items for place in [(*path, key), *places_in(each, (*path, key))]]


@pytest.mark.filterwarnings("ignore:.*no span for tool")
@pytest.mark.parametrize("seed", range(60))
def test_whatever_stands_at_any_place_is_read_or_is_an_error_with_its_place(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    lines = rng.choice([path for path in SAMPLES if path.suffix == ".jsonl"]).read_text().splitlines()
    number = rng.randrange(len(lines))
    span = json.loads(lines[number])
    *path, last = rng.choice(places_in(span))
    within = span
    for key in path:
        within = within[key]
    within[last] = rng.choice(ODD)
    lines[number] = json.dumps(span)
    traces = tmp_path / "traces.jsonl"
    traces.write_text("\n".join(lines))
    for name in ("otlp", "otlp-sessions"):
        try:
            groupgt.evaluate(TRUTH, traces, ["recall"], run_format=name, tool_spans=TOOLS)
        except groupgt.DataError as error:
            assert "traces.jsonl" in str(error)  # noqa: PT017 - most files are read
