"""Roles at paths of nested records, in files and frames, declared in the shell, in Python and in experiment files."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import groupgt
from groupgt.cli.main import main
from groupgt.formats import paths
from groupgt.formats.columns import is_path
from groupgt.formats.paths import Row


def frame_of(library: str, rows: Any) -> Any:
    """Records as a frame; skips if the library is not installed."""
    if library == "polars":
        return pl.DataFrame(rows)
    if library == "lazy":
        return pl.DataFrame(rows).lazy()
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    return module.DataFrame(rows) if library == "pandas" else module.Table.from_pylist(rows)


RECORD = {
    "a": {"b": 1, "c.d": 2},
    "hits": [{"id": "x", "kind": "gold", "ok": True}, {"id": "y", "kind": "noise", "ok": False}],
    "joined": "p; q ;",
    "scores": {"m": 0.5, "n": 0.25},
    "deep": [{"ids": [1, 2]}, {"ids": [3]}],
    "none": None,
}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("a.b", [1]),
        ('a."c.d"', [2]),
        ("z|a.b", [1]),
        ("hits[].id", ["x", "y"]),
        ("hits[1].id", ["y"]),
        ("hits[-1].id", ["y"]),
        ("hits[2]?.id", []),
        ("hits[kind=gold].id", ["x"]),
        ("hits[ok=false].id", ["y"]),
        ("hits[].other?", []),
        ("joined[;]", ["p", "q"]),
        ("scores{}", [0.5, 0.25]),
        ("scores{}@", ["m", "n"]),
        ("deep[].ids[]", [1, 2, 3]),
        ("deep[].ids", [[1, 2], [3]]),
        ("none?[]", []),
        ("none?.x", []),
        ("none", [None]),
        ("^outer", ["around"]),
        ("@", ["key"]),
        ("^@", ["q1"]),
        (".", [RECORD]),
    ],
)
def test_where_a_path_leads(path: str, values: list[Any]) -> None:
    faults: list[str] = []
    row = Row(RECORD, {"outer": "around"}, ["q1", "key"], (), faults.append)
    assert [value for _, value in paths.path_of(path).find(row)] == values
    assert faults == []


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("hits[].ident", "expected the key ident, found id, kind, ok (at hits[0])"),
        ("hit[].id", "expected the key hit, found a, hits, joined, scores, deep, none (did you mean 'hits'?)"),
        ("hit?[].id", "expected the key hit"),
        ("hits.id", "expected an object as hits, found [{'id'"),
        ("scores[]", "expected a list as scores, found {'m': 0.5, 'n': 0.25}; use scores{} to iterate over its values"),
        ("joined{}", "expected an object as joined, found 'p; q ;'"),
        ("hits[2].id", "expected at least 3 elements, found 2 (at hits)"),
        ("none.x", "expected an object as none, found None"),
        ("^@", "expected a key around the row at ^@"),
    ],
)
def test_where_a_path_ends(path: str, told: str) -> None:
    faults: list[str] = []
    assert paths.path_of(path).find(Row(RECORD, RECORD, [], (), faults.append)) == []
    assert faults[0].startswith(told)


@pytest.mark.parametrize("text", ["a[", "a..b", "[x]", "a[=v]", "a{b}", "a|", "a b]"])
def test_what_is_no_path(text: str) -> None:
    with pytest.raises(groupgt.ConfigError, match=re.escape(f"in {text!r}")):
        paths.path_of(text)


HITS = st.lists(st.fixed_dictionaries({"doc": st.fixed_dictionaries({"id": st.sampled_from("abcdef")})}), max_size=4)


@given(st.lists(HITS, min_size=1, max_size=4).filter(any))
def test_elements_are_those_of_a_loop(queries: list[Any]) -> None:
    unique = [list({hit["doc"]["id"]: hit for hit in hits}.values()) for hits in queries]
    rows = [{"n": number, "hits": hits} for number, hits in enumerate(unique)]
    run = groupgt.read_run(pl.DataFrame(rows), columns={"qid": "n", "doc_id": "hits[].doc.id"})
    assert run.rankings == {str(row["n"]): [hit["doc"]["id"] for hit in row["hits"]] for row in rows}


ANSWERS = [
    {"case": "q1", "hits": [{"doc": {"id": "a"}, "s": 0.9}, {"doc": {"id": "x"}, "s": 0.5}]},
    {"case": "q2", "hits": [{"doc": {"id": "y"}, "s": 2}, {"doc": {"id": "c"}, "s": 1}]},
]
TRUTH = {"q1": [["a"], ["b"]], "q2": [["c"]]}
COLUMNS = {"qid": "case", "doc_id": "hits[].doc.id", "score": "hits[].s"}
# recall: 1/2 and 1/1
RECALL = 0.75


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("t.json").write_text(json.dumps(TRUTH))
    Path("r.jsonl").write_text("".join(json.dumps(answer) + "\n" for answer in ANSWERS))
    Path("wrapped.json").write_text(json.dumps({"took": 3, "found": {"answers": ANSWERS}}, indent=1))
    pl.DataFrame(ANSWERS).write_parquet("r.parquet")
    return tmp_path


@pytest.mark.parametrize("carrier", ["r.jsonl", "r.parquet", "polars", "lazy", "pyarrow", "pandas"])
def test_results_in_files_and_frames(folder: Path, carrier: str) -> None:
    run = carrier if "." in carrier else frame_of(carrier, ANSWERS)
    assert groupgt.evaluate(TRUTH, run, ["recall"], run_columns=COLUMNS).means == {"recall": RECALL}


def test_rows_lie_within_one_object(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = {"rows": "found.answers[]", **COLUMNS}
    assert groupgt.read_run("wrapped.json", columns=columns).rankings == {"q1": ["a", "x"], "q2": ["y", "c"]}
    words = [word for role, path in columns.items() for word in ("--columns", f"{role}={path}")]
    main(["evaluate", "t.json", "wrapped.json", "-m", "recall", "--format", "json", *words])
    assert json.loads(capsys.readouterr().out)["runs"][0]["metrics"]["recall"]["mean"] == RECALL
    declared = json.dumps(columns)
    Path("e.yaml").write_text(
        "version: 1\nname: e\ndatasets: {d: {ground_truth: t.json}}\n"
        f"systems: {{s: {{use: results, with: {{path: wrapped.json, columns: {declared}}}}}}}\n"
        "evaluate: {metrics: [recall]}\noutput: {formats: []}\n"
    )
    main(["run", "e.yaml", "-o", "out", "--metrics-json", "m.json"])
    assert list(json.loads(Path("m.json").read_text()).values()) == [RECALL]


@pytest.mark.parametrize("start", ["", "[]"])
def test_elements_of_an_array_at_the_top(tmp_path: Path, start: str) -> None:
    """A leading `[]` means the records of the file, for rows, and for roles without rows (LoCoMo)."""
    path = tmp_path / "t.json"
    path.write_text(
        '[{"id": "s1", "qa": [{"q": "one", "ev": ["a", "z"]}, {"q": "two", "ev": ["c"]}]}, {"id": "s2", "qa": []}]'
    )
    dot = "." * bool(start)
    columns = {"rows": f"{start}{dot}qa[]", "qid": "q", "query": "^id", "doc_id": "ev[]"}
    truth = groupgt.read_ground_truth(path, columns=columns)
    assert (dict(truth.items()), truth.texts) == ({"one": [["a"], ["z"]], "two": [["c"]]}, ["s1", "s1"])
    path.write_text('[{"id": "s1", "ev": [{"d": "a"}]}]')
    columns = {"qid": f"{start}{dot}id", "doc_id": f"{start}{dot}ev[].d"}
    assert dict(groupgt.read_ground_truth(path, columns=columns).items()) == {"s1": [["a"]]}
    if start:
        whole = groupgt.read_ground_truth(path, columns={"rows": "[]", "qid": "id", "doc_id": "ev[].d"})
        assert dict(whole.items()) == {"s1": [["a"]]}
        with pytest.raises(groupgt.ConfigError, match="there is no 'other' column"):
            groupgt.read_ground_truth(path, columns={"rows": "[].other[]", "qid": "id", "doc_id": "d"})


def test_standard_input_and_convert(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    words = [word for role, path in COLUMNS.items() for word in ("--columns", f"{role}={path}")]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path("r.jsonl").read_bytes())))
    main(["evaluate", "t.json", "-", "-m", "recall", "--format", "json", *words])
    assert json.loads(capsys.readouterr().out)["runs"][0]["metrics"]["recall"]["mean"] == RECALL
    # Scores make it a run.
    main(["convert", "r.jsonl", "r.trec", "--to", "trec", *words])
    assert Path("r.trec").read_text().splitlines()[0].split()[:3] == ["q1", "Q0", "a"]


def test_keys_of_an_object_are_ordered_by_their_scores(folder: Path) -> None:
    Path("k.json").write_text('{"answers": {"q1": {"x": 0.1, "a": 0.9}, "q2": {"c": 1}}}')
    columns = {"rows": "answers{}", "qid": "@", "doc_id": "{}@", "score": "{}"}
    found = groupgt.evaluate(TRUTH, "k.json", ["mrr.trec"], run_columns=columns)
    assert found.values["mrr.trec"].tolist() == [1, 1]
    Path("k.json").write_text('{"answers": {"q1": {"x": {"s": 0.1}, "a": {"s": 0.9}}, "q2": {"c": {}}}}')
    with pytest.raises(groupgt.DataError, match=r"query .q2.: .*score"):
        groupgt.read_run("k.json", columns=columns | {"score": "{}.s?"})


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        # By position in the list, both queries would be 0 and 1.
        (
            '{"0": {"hits": [{"id": "x"}, {"id": "a"}]}, "1": {"hits": [{"id": "c"}]}}',
            {"rows": "{}.hits[]", "rank": "@"},
        ),
        ('{"0": {"x": {"r": 1}, "a": {"r": 2}}, "1": {"c": {"r": 1}}}', {"rows": "{}{}", "doc_id": "@", "rank": "r"}),
    ],
)
def test_the_key_around_the_row_is_the_query(tmp_path: Path, content: str, columns: dict[str, str]) -> None:
    path = tmp_path / "r.json"
    path.write_text(content)
    found = groupgt.evaluate({"0": ["a"], "1": ["c"]}, path, ["mrr"], run_columns={"qid": "^@"} | columns)
    assert found.means["mrr"] == 0.75  # 1/2 and 1/1


@pytest.mark.parametrize(
    ("path", "records"),
    [
        ("hits?", [{"qid": "q1", "hits": ["x", "a"]}, {"qid": "q2"}]),
        ("hits?", [{"qid": "q1", "hits": ["x", "a"]}, {"qid": "q2", "hits": None}]),
        ("o?.hits", [{"qid": "q1", "o": {"hits": ["x", "a"]}}, {"qid": "q2"}]),
    ],
)
def test_what_may_be_absent_is_no_results(tmp_path: Path, path: str, records: list[Any]) -> None:
    file = tmp_path / "r.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    found = groupgt.evaluate({"q1": ["a"], "q2": ["c"]}, file, ["mrr"], run_columns={"retrieved_ids": path})
    assert found.means["mrr"] == 0.25  # 1/2 and 0


def test_what_may_be_absent_is_no_ground_truth(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text('{"id": "q1", "gold": [["a"]]}\n{"id": "q2", "answerable": false}\n{"id": "q3"}\n')
    truth = groupgt.read_ground_truth(file, columns={"retrieval_gt": "gold?"})
    assert dict(truth.items()) == {"q1": [["a"]], "q2": [], "q3": []}


def test_ranks_order_what_has_no_scores() -> None:
    rows = [{"qid": "q1", "hits": [{"id": "a", "at": 2}, {"id": "b", "at": 1}]}]
    run = groupgt.read_run(pl.DataFrame(rows), columns={"doc_id": "hits[].id", "rank": "hits[].at"})
    assert run.rankings == {"q1": ["b", "a"]}


NUGGETS = [
    {
        "id": "q1",
        "question": "who?",
        "level": "hard",
        "nuggets": [
            {"name": "n", "w": 2, "docs": [{"ref": "a", "g": 2}, {"ref": "b", "g": 1}]},
            {"name": "m", "w": 1, "docs": [{"ref": "c", "g": 1}, {"ref": "z", "g": 0}]},
        ],
    }
]


@pytest.mark.parametrize("carrier", ["jsonl", "pandas", "polars"])
@pytest.mark.parametrize(
    ("columns", "groups", "shape"),
    [
        ({"doc_id": "nuggets[].docs[].ref"}, [["a"], ["b"], ["c"], ["z"]], "flat"),
        (
            {
                "doc_id": "nuggets[].docs[].ref",
                "grade": "nuggets[].docs[].g",
                "group": "nuggets[]",
                "weight": "nuggets[].w",
            },
            [
                {"alternatives": [{"id": "a", "grade": 2}, "b"], "weight": 2},
                ["c", {"id": "z", "grade": 0}],
            ],
            "subtopics",
        ),
        (
            {"doc_id": "nuggets[].docs[].ref", "group": "nuggets[].name"},
            [{"alternatives": ["a", "b"], "name": "n"}, {"alternatives": ["c", "z"], "name": "m"}],
            "subtopics",
        ),
        ({"text": "nuggets[].name"}, [[{"text": "n"}], [{"text": "m"}]], "groups"),
        (
            {"text": "nuggets[].name", "grade": "nuggets[].w"},
            [[{"text": "n", "grade": 2}], [{"text": "m"}]],
            "groups",
        ),
        (
            {"doc_id": "nuggets[].docs[].ref", "all": "nuggets[]"},
            [[{"all": ["a", "b"]}, {"all": ["c", "z"]}]],
            "groups",
        ),
    ],
)
def test_ground_truth(tmp_path: Path, columns: dict[str, str], groups: list[Any], shape: str, carrier: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(NUGGETS[0]) + "\n")
    value = path if carrier == "jsonl" else frame_of(carrier, NUGGETS)
    truth = groupgt.read_ground_truth(value, columns=columns)
    assert dict(truth.items()) == {"q1": groups}
    assert truth.shape == shape
    assert truth.texts == ["who?"]
    assert truth.columns["level"] == ["hard"]


def test_alternatives_that_begin_alike_are_two(tmp_path: Path) -> None:
    facts = [f"{'The same words again and again. ' * 9}{end}" for end in ("One.", "Two.")]
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"id": "q", "facts": facts}) + "\n")
    truth = groupgt.read_ground_truth(path, columns={"text": "facts[]"})
    assert dict(truth.items()) == {"q": [[{"text": fact}] for fact in facts]}


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"doc_id": "hits[].doc.ident"}, "r.jsonl:1: expected the key ident, found id (at hits[0].doc)"),
        ({"doc_id": "hits[].doc.id", "text": "hits[].t?"}, "r.jsonl: no record has a value at text=hits[].t?"),
        ({"doc_id": "hits[.doc"}, "columns: doc_id: expected a path such as hits[].id, found '[.doc' in 'hits[.doc'"),
        (
            {"doc_id": "hit[].doc.id"},
            "columns: doc_id: there is no 'hit' column; found case, hits (did you mean 'hits'?)",
        ),
        ({"qid": "hits[].doc.id", "doc_id": "hits[0].doc.id"}, "r.jsonl:1: expected one qid, found 2 at hits[].doc.id"),
    ],
)
def test_faults(folder: Path, columns: dict[str, str], told: str) -> None:
    with pytest.raises(groupgt.GroupgtError, match=re.escape(told)):
        groupgt.read_run("r.jsonl", columns={"qid": "case", **columns})


def test_a_column_with_the_name_of_a_path_is_a_column(folder: Path) -> None:
    Path("flat.csv").write_text("case,hits[].doc.id,s\nq1,a,1\nq2,c,1\n")
    columns = {"qid": "case", "doc_id": "hits[].doc.id", "score": "s"}
    assert groupgt.evaluate(TRUTH, "flat.csv", ["recall"], run_columns=columns).means == {"recall": RECALL}


def test_a_column_to_split_is_no_path() -> None:
    assert [is_path(text) for text in ("hits[].id", "gold ids", "gold[;]")] == [True, False, False]


def test_a_result_without_a_score_has_none() -> None:
    first, second = (("hits[]", 0),), (("hits[]", 1),)
    assert paths.beside([(first, "a"), (second, "b")], [(second, 0.5)], "score", pytest.fail) == [None, 0.5]


@pytest.mark.parametrize("column", ["gold[;]", "m.gold[;]", "lst", "lst[]", "m.lst[]"])
def test_a_flat_list_is_read_as_the_policy_says_at_every_path(tmp_path: Path, column: str) -> None:
    inner = {"gold": "a;b", "lst": ["a", "b"]}
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"qid": "q", **inner, "m": inner}))

    def recall(policy: str) -> float:
        columns = {"retrieval_gt": column}
        return groupgt.evaluate(path, {"q": ["a", "x"]}, ["recall"], truth_columns=columns, policy=policy)["recall"]

    assert (recall("flat_gt=and"), recall("flat_gt=or"), recall("autorag")) == (1 / 2, 1, 1)
    if column.endswith("[]"):
        # A path to each element says that each is required.
        assert recall("default") == 1 / 2
    else:
        with pytest.raises(groupgt.DataError, match="flat_gt=and"):
            recall("default")


@pytest.mark.parametrize(
    ("rows", "texts"),
    [
        ("sets[].items[].qa[]", ["i0", "i1"]),
        ("sets[].items[]", ["s", "s"]),
        ("sets[0].items[].meta", ["i0", "i1"]),
        ("sets[]", ["top"]),
    ],
)
def test_the_record_around_the_row_is_one_level_out(tmp_path: Path, rows: str, texts: list[str]) -> None:
    items = [{"name": f"i{n}", "qa": [{"version": 1}], "meta": {}} for n in range(2)]
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"name": "top", "sets": [{"name": "s", "items": items}]}))
    columns = {"rows": rows, "qid": "@" if rows == "sets[].items[]" else "^name", "query": "^name", "doc_id": "^name"}
    assert groupgt.read_ground_truth(path, columns=columns).texts == texts
    with pytest.raises(groupgt.DataError, match="expected the key version, found name"):
        groupgt.read_ground_truth(path, columns=columns | {"query": "^version"})


@pytest.mark.parametrize("carrier", ["json", "parquet", "frame"])
def test_an_object_lacks_the_keys_that_are_null(tmp_path: Path, carrier: str) -> None:
    rows = [{"q": "q1", "sc": {"x": 0.1, "a": 0.2, "b": 0.9}}, {"q": "q2", "sc": {"x": 0.5, "c": 0.3}}]
    run: Any = pl.DataFrame(rows)
    if carrier == "json":
        run = tmp_path / "r.json"
        run.write_text(json.dumps(rows))
    elif carrier == "parquet":
        run.write_parquet(tmp_path / "r.parquet")
        run = tmp_path / "r.parquet"
    columns = {"qid": "q", "doc_id": "sc{}@", "score": "sc{}"}
    # b is first, then a, then x; c is second.
    found = groupgt.evaluate({"q1": [["a"]], "q2": [["c"]]}, run, ["mrr"], run_columns=columns)
    assert found["mrr"] == 1 / 2
