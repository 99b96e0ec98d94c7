"""Columns of the ground truth that retrievers receive with each query: which, in what form, and what is refused."""

from __future__ import annotations

import datetime
import json
import math
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import groupgt
from groupgt.cli.main import main
from groupgt.experiment.plan import plan
from groupgt.options import options_from
from groupgt.report.run import run_experiment
from groupgt.retrievers import command, http, python
from groupgt.retrievers.base import Corpus, Queries, Setting, value_at

pytestmark = pytest.mark.slow

ASKED = Queries(["one", "two"], ["q1", "q2"], {"tenant": ["acme", None], "turns": [["hi"], []]})
ROWS = [
    {"qid": "q1", "query": "fares?", "retrieval_gt": [["a1"]], "tenant": "acme", "haystack": ["a1", "b1"], "kind": "x"},
    {"qid": "q2", "query": "fares?", "retrieval_gt": [["b1"]], "tenant": "beta", "haystack": ["b1"], "kind": "y"},
]
# Passages of two tenants; every function logs what it is called with.
CODE = """
from pathlib import Path

def search(query, k, tenant, kind="any"):
    log(tenant, kind)
    return [tenant[0] + "1"][:k]

def batch(queries, k, *, qid, tenant):
    log(qid, tenant)
    return [[name[0] + "1"] for name in tenant]

def build(corpus):
    return lambda query, k, haystack: [name for name in corpus.ids if name in haystack][:k]

class Index:
    def retrieve(self, queries, k, haystack):
        return [names[:k] for names in haystack]

def loose(query, k, **others):
    log(*others.items())
    return ["a1"]

def plain(query, k=3, tenant=None):
    return ["a1"] if tenant is None else ["b1"]

def near(query, k, tenat):
    return []

def log(*values):
    with open(Path(__file__).with_name("log"), "a") as file:
        print(*values, file=file)
"""


def written(folder: Path, system: str, rows: list[dict[str, Any]] | None = None) -> Path:
    (folder / "mine.py").write_text(CODE)
    (folder / "truth.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows or ROWS))
    (folder / "corpus.jsonl").write_text(
        '{"doc_id": "a1", "contents": "fares"}\n{"doc_id": "b1", "contents": "fares"}\n'
    )
    file = folder / "trial.yaml"
    file.write_text(
        "version: 1\nname: small\ndatasets: {set: {corpus: corpus.jsonl, ground_truth: truth.jsonl}}\nsystems:\n"
        f"  mine: {{{system}}}\nevaluate: {{depth: 1, metrics: [recall@1]}}\noutput: {{formats: [json]}}\n"
    )
    return file


def of_mine(folder: Path, name: str, more: str = "") -> Path:
    return written(folder, f'use: python, with: {{target: "mine:{name}"{more}}}')


def logged(folder: Path) -> list[str]:
    log = folder / "log"
    lines = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return lines


# ---- which columns -----------------------------------------------------------------------------------------------


@given(st.lists(st.integers()), st.integers(1, 4))
def test_every_query_receives_its_own_row_in_calls_of_any_size(values: list[int], size: int) -> None:
    ids = [f"q{row}" for row in range(len(values))]
    queries = Queries(ids, ids, {"value": values, "other": ids}).sending(["value", "qid"])
    received: list[tuple[str, str, int]] = []

    def single(query: str, k: int, qid: str, value: int) -> list[str]:
        received.append((query, qid, value))
        return []

    def batch(queries: list[str], k: int, qid: list[str], value: list[int]) -> list[list[str]]:
        received.extend(zip(queries, qid, value, strict=True))
        return [[] for _ in queries]

    for function, is_single in ((single, True), (batch, False)):
        received.clear()
        called = python.Called(function, is_single=is_single, sends=("qid", "value"))
        for start in range(0, len(values), size):
            called.retrieve(queries.part(start, start + size), 5)
        assert received == list(zip(ids, ids, values))


@pytest.mark.parametrize(
    ("name", "more", "log"),
    [
        ("search", "", ["acme any", "beta any"]),
        ("search", ", send: [kind]", ["acme x", "beta y"]),
        ("batch", "", ["['q1', 'q2'] ['acme', 'beta']"]),
        ("build", "", []),
        ("Index", "", []),
    ],
)
def test_parameters_without_a_default_are_columns(tmp_path: Path, name: str, more: str, log: list[str]) -> None:
    outcome = run_experiment(of_mine(tmp_path, name, more), allow_code=True)
    # a1 is relevant to q1, b1 to q2: only a function that knows tenant or haystack finds both. The haystack of q1
    # begins with a1 and that of q2 holds b1 alone.
    assert outcome.evaluations["set"]["mine"]["recall@1"] == 1.0
    assert logged(tmp_path) == log


def test_parameters_with_a_default_are_columns_only_if_they_are_listed(tmp_path: Path) -> None:
    alone = run_experiment(of_mine(tmp_path, "plain"), allow_code=True).answers["set", "mine"]
    assert alone.ids == {"q1": ["a1"], "q2": ["a1"]}
    listed = run_experiment(of_mine(tmp_path, "plain", ", send: [tenant]"), allow_code=True).answers["set", "mine"]
    assert listed.ids == {"q1": ["b1"], "q2": ["b1"]}
    run_experiment(of_mine(tmp_path, "loose", ", send: [qid, kind]"), allow_code=True)
    assert logged(tmp_path) == ["('qid', 'q1') ('kind', 'x')", "('qid', 'q2') ('kind', 'y')"]


def test_the_plan_shows_what_a_function_receives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = of_mine(tmp_path, "search", ", send: [kind]")
    main(["run", str(file), "--dry-run", "--allow-code"])
    assert "python: f(query, k, tenant, kind), one query at a time" in capsys.readouterr().out


COLUMNS = "they have qid, tenant, haystack, kind"


def test_an_unknown_parameter_is_refused_with_the_columns_in_a_plan_and_a_run(tmp_path: Path) -> None:
    file = of_mine(tmp_path, "near")
    words = (
        "f(query, k, tenat), one query at a time: the queries have no column 'tenat' (did you mean 'tenant'?); "
        f"{COLUMNS}"
    )
    with pytest.raises(groupgt.ConfigError) as error:
        plan(file, allow_code=True)
    assert str(error.value) == f"{file}:5:15: systems.mine: {words}"
    with pytest.raises(groupgt.RetrieverError) as failed:
        run_experiment(file, allow_code=True)
    assert str(failed.value) == f"dataset 'set': system 'mine': {words}"


@pytest.mark.parametrize(
    "system",
    [
        "use: http, with: {url: http://localhost:1, send: [qid, city, k]}",
        "use: command, with: {command: [x], send: [qid, city, k]}",
        "use: mcp, with: {url: http://localhost:1, tool: x, send: [qid, city, k]}",
        'use: python, with: {target: "mine:loose", send: [qid, city, k]}',
        "use: http, with: {url: http://localhost:1}, matrix: {send: [[qid], [city, k]]}",
    ],
)
@pytest.mark.parametrize("ask", [plan, run_experiment])
def test_an_unknown_name_in_send_is_refused_with_its_place_before_anything_is_asked(
    tmp_path: Path, system: str, ask: Any
) -> None:
    pytest.importorskip("mcp")
    file = written(tmp_path, system.replace("[x]", f"[{json.dumps(sys.executable)}]"))
    with pytest.raises(groupgt.ConfigError) as error:
        ask(file, allow_code=True)
    city, k = error.value.faults
    assert city.startswith(f"{file}:5:{file.read_text().splitlines()[4].index('city') + 1}: systems.mine.")
    assert city.endswith(f"dataset 'set': the queries have no column 'city'; {COLUMNS}")
    assert k.endswith(f"dataset 'set': the queries have no column 'k'; {COLUMNS}")


def test_a_function_that_takes_no_such_column(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CODE)
    file = of_mine(tmp_path, "search", ", send: [haystack]")
    words = (
        f"{file}:5:{file.read_text().splitlines()[4].index('[haystack') + 1}: systems.mine: send: "
        r"search(query, k, tenant, kind='any') got an unexpected keyword argument 'haystack'"
    )
    with pytest.raises(groupgt.ConfigError) as error:
        plan(file, allow_code=True)
    assert str(error.value) == words


# ---- in what form ------------------------------------------------------------------------------------------------


def test_the_lines_of_a_program_have_them_as_keys() -> None:
    echo = "import sys\nfor line in sys.stdin: print('[' + line.strip() + ']', flush=True)"
    options = command.Options([sys.executable, "-c", echo], send=["qid", "tenant", "turns"], id_field="qid")
    with closing(command.Command(Setting(Corpus([], [])), options)) as retriever:
        assert retriever.retrieve(ASKED.sending(["qid"]), 5) == [["q1"], ["q2"]]
    options = command.Options(options.command, id_field="turns", score_field="tenant")
    with closing(command.Command(Setting(Corpus([], [])), options)) as retriever:
        assert retriever.retrieve(ASKED.sending(["tenant", "turns"]), 5) == [[(["hi"], "acme")], [([], None)]]


def test_the_arguments_of_a_program_are_filled_in() -> None:
    show = "import json, sys; print(json.dumps(sys.argv[1:]))"
    template = [sys.executable, "-c", show, "{query}", "--tenant={tenant}", "{turns} {other} {k}"]
    with closing(command.Command(Setting(Corpus([], [])), command.Options(template))) as retriever:
        # A null is empty, a list is JSON, and what is not sent stays.
        assert retriever.retrieve(ASKED, 5) == [
            ["one", "--tenant=acme", '["hi"] {other} 5'],
            ["two", "--tenant=", "[] {other} 5"],
        ]
    with pytest.raises(groupgt.ConfigError) as error:
        options_from(command.Options, {"command": ["x", "{query}"], "send": ["tenant"]})
    assert str(error.value) == "send: expected {tenant} in an argument, because the program is started for each query"


def test_a_request_has_a_list_for_each_column(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[bytes] = []

    def answer(self: http.Http, body: bytes) -> tuple[Any, bytes]:
        sent.append(body)
        return SimpleNamespace(status=200), b"[[],[]]"

    monkeypatch.setattr(http.Http, "_answer", answer)
    queries = Queries(["one", "two"], ["q1", "q2"], {"day": [datetime.date(2024, 2, 29), math.nan]})
    client = http.Http(Setting(Corpus([], [])), http.Options("http://localhost"))
    client.retrieve(queries.sending(["day", "qid"]), 5)
    client.retrieve(["one", "two"], 5)
    assert list(map(json.loads, sent)) == [
        {"queries": ["one", "two"], "k": 5, "day": ["2024-02-29", None], "qid": ["q1", "q2"]},
        {"queries": ["one", "two"], "k": 5},
    ]


def test_retrievers_of_frameworks_take_them_as_keywords() -> None:
    class Found:
        __haystack_input__ = ()

        def run(self, query: str, top_k: int, filters: Any) -> dict[str, Any]:
            return {"documents": [SimpleNamespace(id=filters["tenant"], meta={}, score=1.0)]}

    adapter = python.adapted(Found(), "", ["filters"])
    assert adapter is not None
    assert adapter.way == "f(query, k, filters), one query at a time"
    queries = Queries(["one", "two"], ["q1", "q2"], {"filters": [{"tenant": "acme"}, {"tenant": "beta"}]})
    assert adapter.retrieve(queries, 5) == [[["acme", 1.0]], [["beta", 1.0]]]


# ---- cached answers ----------------------------------------------------------------------------------------------


def test_answers_are_cached_for_what_was_sent(tmp_path: Path) -> None:
    program = "import json, sys; print(json.dumps([sys.argv[2][0] + '1']))"
    words = json.dumps([sys.executable, "-c", program, "{query}", "{tenant}"])
    system = f"use: command, version: '1', with: {{command: {words}, send: [tenant]}}"
    moved, renamed = ([{**row, key: "beta"} for row in ROWS] for key in ("tenant", "kind"))

    def ran(rows: list[dict[str, Any]]) -> tuple[dict[str, list[str]], Any]:
        file = written(tmp_path, system, rows)
        will = plan(file, allow_code=True).rows[0][-1]
        return run_experiment(file, allow_code=True).answers["set", "mine"].ids, will

    assert ran(ROWS) == ({"q1": ["a1"], "q2": ["b1"]}, "retrieve")
    assert ran(moved) == ({"q1": ["b1"], "q2": ["b1"]}, "retrieve")
    # The column kind is not sent.
    assert ran(renamed) == ({"q1": ["a1"], "q2": ["b1"]}, "cached")


def test_answers_of_a_function_are_cached_for_the_columns_that_it_may_take(tmp_path: Path) -> None:
    system = 'use: python, version: "1", with: {target: "mine:search"}'
    run_experiment(written(tmp_path, system), allow_code=True)
    run_experiment(written(tmp_path, system), allow_code=True)
    assert logged(tmp_path) == ["acme any", "beta any"]
    run_experiment(written(tmp_path, system, [{**row, "tenant": "beta"} for row in ROWS]), allow_code=True)
    assert logged(tmp_path) == ["beta any", "beta any"]


def test_values_are_filled_in_once() -> None:
    assert command.filled("--top={k} {query} {x}", {"query": "what is {k}?", "k": 5}) == "--top=5 what is {k}? {x}"


def test_a_field_may_be_named_like_a_path() -> None:
    assert [value_at(hit, "hit.id") for hit in ({"hit": {"id": "a"}}, {"hit.id": "b"})] == ["a", "b"]
