"""`groupgt judge` before its page is served: what is refused, and what is written from journals."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from groupgt.cli.main import main
from tests.judge.acts import QUERIES, TEXTS
from tests.snapshots import Snapshot

JUDGE = ["judge", "queries.tsv", "--corpus", "corpus.jsonl", "--out", "truth.jsonl", "--by", "anna", "--no-browser"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    corpus = "".join(json.dumps({"doc_id": name, "contents": text}) + "\n" for name, text in TEXTS.items())
    Path("corpus.jsonl").write_text(corpus, encoding="utf-8")
    Path("queries.tsv").write_text("".join(f"{qid}\t{text}\n" for qid, text in QUERIES.items()), encoding="utf-8")
    truth = [{"qid": qid, "query": text, "retrieval_gt": [["pets"]]} for qid, text in QUERIES.items()]
    Path("qa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in truth), encoding="utf-8")
    Path("bare.jsonl").write_text(json.dumps({"qid": "q1", "retrieval_gt": [["pets"]]}) + "\n", encoding="utf-8")
    Path("spans.jsonl").write_text(
        json.dumps({"qid": "q1", "query": "?", "retrieval_gt": [[{"doc": "a", "start": 0, "end": 3}]]}) + "\n",
        encoding="utf-8",
    )
    Path("run.jsonl").write_text(json.dumps({"qid": "q1", "retrieved_ids": ["night"]}) + "\n", encoding="utf-8")
    return tmp_path


def served(monkeypatch: pytest.MonkeyPatch, *acts: dict[str, Any]) -> None:
    """Performs acts in place of serving the page."""

    def serve(session: Any, *_: object, **__: object) -> None:
        for act in acts:
            session.view(act["qid"])
            session.act(act)

    monkeypatch.setattr("groupgt.cli.judge._serve", serve)


def words(**changes: str) -> list[str]:
    """The command with other values of some options."""
    given = list(JUDGE)
    for name, value in changes.items():
        given[given.index(f"--{name}") + 1] = value
    return given


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (words(out="truth.csv"), "--out truth.csv: expected a file that ends in .jsonl"),
        (words(out="qa.jsonl"), "--out qa.jsonl: already exists and was not written from qa.journal"),
        (words(out="corpus.jsonl"), "corpus.jsonl"),
        ([*JUDGE[:2], "--out", "truth.jsonl"], "--corpus: expected the passages to judge"),
        (["judge", *JUDGE[2:]], "QUERIES: expected a file of queries, or --audit"),
        ([*JUDGE, "--blind"], "--blind: has no effect without --prior"),
        ([*JUDGE, "--sample", "2", "--next", "rrf"], "--next: the order of a sample is fixed"),
        ([*JUDGE, "--sample", "9"], "expected at most 3 queries in the sample, because there are no more, found 9"),
        ([*JUDGE, "--pool", "depth:3"], "--pool depth:3: needs runs; add --runs, or use bm25:3"),
        ([*JUDGE, "--audit", "qa.jsonl"], "QUERIES: the --audit file already contains the queries; remove queries.tsv"),
        (
            ["judge", "--audit", "bare.jsonl", *JUDGE[2:]],
            "bare.jsonl: expected every query's text, under the 'query' key",
        ),
        (
            ["judge", "--audit", "spans.jsonl", *JUDGE[2:]],
            "query 'q1': expected passage ids in the existing ground truth",
        ),
        (
            ["judge", "--audit", "qa.jsonl", *JUDGE[2:], "--prior", "qa.jsonl"],
            "--audit: cannot be combined with --prior",
        ),
        ([*JUDGE, "--export"], "truth.journal: expected journals (*.jsonl), found none"),
        ([*JUDGE, "--adjudicate", "qa.jsonl", "qa.jsonl"], "qa.jsonl:1: expected an action"),
        (words(by="a/b"), "--by: expected a name made up of letters"),
        (
            ["sample", "queries.tsv", "--size", "2", "--out", "x.csv"],
            "--out x.csv: expected a file that ends in .jsonl",
        ),
        (
            ["sample", "corpus.jsonl", "--size", "2", "--out", "x.jsonl"],
            "corpus.jsonl: expected a file of queries, or ground truth",
        ),
    ],
)
def test_what_is_refused(call: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(call)
    assert end.value.code == 2
    assert expected in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_a_session_and_the_next(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], snapshot: Snapshot
) -> None:
    served(monkeypatch, {"qid": "q1", "act": "group", "doc": "night"}, {"qid": "q1", "act": "done"})
    main([*JUDGE, "--runs", "run.jsonl"])
    assert "wrote 1 query to truth.jsonl" in capsys.readouterr().err
    served(monkeypatch, {"qid": "q2", "act": "skip"})
    main([*JUDGE, "--runs", "run.jsonl"])
    snapshot(capsys.readouterr().err)
    rows = [json.loads(line) for line in Path("truth.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["retrieval_gt"] for row in rows] == [[["night"]], []]
    assert rows[0]["pool"] == "depth:10"
    main(["evaluate", "truth.jsonl", "run.jsonl", "-m", "recall"])
    snapshot(capsys.readouterr().out)
    main(["check", "truth.journal/anna.jsonl"])
    snapshot(capsys.readouterr().out)


@pytest.mark.usefixtures("folder")
def test_two_annotators_and_a_third(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], snapshot: Snapshot
) -> None:
    for by, doc in (("anna", "night"), ("ben", "youth")):
        done = [({"qid": qid, "act": "group", "doc": doc}, {"qid": qid, "act": "done"}) for qid in ("q1", "q2")]
        served(monkeypatch, *(act for pair in done for act in pair))
        main([*words(by=by, out=f"{by}.jsonl"), "--journal", "journals"])
    with pytest.raises(SystemExit):
        main([*words(out="all.jsonl"), "--journal", "journals", "--export"])
    assert "query 'q1': anna and ben disagree" in capsys.readouterr().err
    settle = ["judge", "queries.tsv", "--corpus", "corpus.jsonl", "--out", "all.jsonl", "--no-browser"]
    settle += ["--adjudicate", "journals/anna.jsonl", "journals/ben.jsonl"]
    served(monkeypatch, {"qid": "q1", "act": "group", "doc": "night"}, {"qid": "q1", "act": "done"})
    main(settle)
    snapshot(capsys.readouterr().err)
    served(monkeypatch, {"qid": "q2", "act": "group", "doc": "youth"}, {"qid": "q2", "act": "done"})
    main(settle)
    assert "wrote 2 queries to all.jsonl\n" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_several_people_write_one_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], snapshot: Snapshot
) -> None:
    def judged(by: str, **docs: str) -> None:
        acts = [({"qid": qid, "act": "group", "doc": doc}, {"qid": qid, "act": "done"}) for qid, doc in docs.items()]
        served(monkeypatch, *(act for pair in acts for act in pair))
        main(words(by=by))

    judged("anna", q1="night", q2="pets")
    judged("ben", q3="cars")
    rows = [json.loads(line) for line in Path("truth.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["qid"], row["judged_by"]) for row in rows] == [("q1", "anna"), ("q2", "anna"), ("q3", "ben")]
    # Where they differ, the file waits for both; a file of its own has the judgments of one.
    capsys.readouterr()
    judged("carla", q2="youth")
    snapshot(capsys.readouterr().err)
    served(monkeypatch)
    main([*words(by="dora", out="dora.jsonl"), "--journal", "truth.journal"])
    assert Path("dora.jsonl").read_text(encoding="utf-8") == ""
    # Who settles it keeps the own journal.
    before = Path("truth.journal/anna.jsonl").read_bytes()
    both = ["--adjudicate", "truth.journal/anna.jsonl", "truth.journal/carla.jsonl"]
    served(monkeypatch, {"qid": "q2", "act": "group", "doc": "youth"}, {"qid": "q2", "act": "done"})
    main([*JUDGE, *both])
    assert Path("truth.journal/anna.jsonl").read_bytes() == before
    rows = [json.loads(line) for line in Path("truth.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["qid"], row["judged_by"], row["retrieval_gt"]) for row in rows] == [
        ("q1", "anna", [["night"]]),
        ("q2", "anna", [["youth"]]),
        ("q3", "ben", [["cars"]]),
    ]
    assert Path("truth.journal/anna.adjudicated.jsonl").exists()


@pytest.mark.usefixtures("folder")
def test_an_export_is_never_less_than_what_was_audited(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    served(monkeypatch, {"qid": "q1", "act": "done"})
    audit = ["judge", "--audit", "qa.jsonl", *JUDGE[2:]]
    main(audit)
    before = Path("truth.jsonl").read_bytes()
    assert len(before.splitlines()) == 3
    export = ["judge", "--out", "truth.jsonl", "--export"]
    Path("other.jsonl").write_text(before.decode().replace("pets", "cars"), encoding="utf-8")
    for call, expected in (
        (export, "--export: expected --audit with the ground truth that anna audited"),
        ([*export, "--audit", "other.jsonl"], "that anna audited, found other.jsonl, which differs"),
    ):
        with pytest.raises(SystemExit) as end:
            main(call)
        assert end.value.code == 2
        assert expected in " ".join(capsys.readouterr().err.split())
    main([*export, "--audit", "qa.jsonl"])
    assert Path("truth.jsonl").read_bytes() == before


@pytest.mark.usefixtures("folder")
def test_what_was_only_looked_at_is_copied_to_the_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = '{ "retrieval_gt":[["pets",{"id":"cars","grade":2.0}]],"query":"?",  "qid":"q8","note":"\\u00e9"}'
    lines = [odd, *Path("qa.jsonl").read_text(encoding="utf-8").splitlines()]
    Path("qa.jsonl").write_text("\n\n".join(lines), encoding="utf-8")
    same = {"kind": "same", "group": 1, "doc": "night"}
    served(
        monkeypatch,
        {"qid": "q1", "act": "answer", "item": same, "value": "yes"},
        {"qid": "q8", "act": "note", "text": "?"},
    )
    main(["judge", "--audit", "qa.jsonl", *JUDGE[2:]])
    written = Path("truth.jsonl").read_text(encoding="utf-8").splitlines()
    assert [written[0], *written[2:]] == [odd, *lines[2:]]
    assert json.loads(written[1])["retrieval_gt"] == [["pets", "night"]]
    # Other formats have no lines to copy.
    Path("qa.json").write_text(json.dumps([json.loads(line) for line in lines], indent=1), encoding="utf-8")
    main(["judge", "--audit", "qa.json", *words(out="array.jsonl")[2:]])
    rows = [json.loads(line) for line in Path("array.jsonl").read_text(encoding="utf-8").splitlines()]
    assert rows[0]["retrieval_gt"] == [["pets", {"id": "cars", "grade": 2}]]


@pytest.mark.usefixtures("folder")
def test_a_session_that_does_not_start_leaves_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("uvicorn", reason="the extra groupgt[judge] is not installed")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for call in ([*JUDGE, "--port", port], ["judge", "spans.jsonl", *JUDGE[2:]], words(by="a b")):
            with pytest.raises(SystemExit) as end:
                main(call)
            assert end.value.code == 2
            assert not Path("truth.journal").exists()
            assert not Path("truth.jsonl").exists()
    assert f"--port {port}: cannot be used" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a 0 d1 1\nb 0 d2 0\n", [{"qid": "a"}, {"qid": "b"}]),
        ("a\t0\td1\t1\nb\t0\td2\t0\n", [{"qid": "a"}, {"qid": "b"}]),
        ("a 1 d1 1\na 2 d2 1\nb 1 d2 1\n", [{"qid": "a"}, {"qid": "b"}]),
        ('{"qid": "a", "retrieval_gt": [["x"]]}\n{"qid": "b", "retrieval_gt": []}\n', [{"qid": "a"}, {"qid": "b"}]),
        ("a\tone\nb\ttwo 0 1\n", [{"qid": "a", "query": "one"}, {"qid": "b", "query": "two 0 1"}]),
        ("a\tone\tmore\nb\ttwo\tmore\n", [{"qid": "a", "query": "one\tmore"}, {"qid": "b", "query": "two\tmore"}]),
    ],
)
def test_a_sample_of_anything_with_queries(text: str, expected: list[dict[str, str]]) -> None:
    Path("any.txt").write_text(text, encoding="utf-8")
    main(["sample", "any.txt", "--size", "2", "--out", "sample.jsonl"])
    rows = [json.loads(line) for line in Path("sample.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sorted(row.pop("sample")["place"] for row in rows) == [1, 2]
    assert sorted(rows, key=str) == expected


@pytest.mark.usefixtures("folder")
def test_an_audit_keeps_what_it_does_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    served(monkeypatch)
    main(["judge", "--audit", "qa.jsonl", *JUDGE[2:]])
    rows = [json.loads(line) for line in Path("truth.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["retrieval_gt"] for row in rows] == [[["pets"]]] * 3


@pytest.mark.usefixtures("folder")
def test_a_judged_sample_corrects_figures(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    qids = [f"q{number:02}" for number in range(14)]
    rows = [{"qid": qid, "query": "pets", "retrieval_gt": [["pets"]]} for qid in qids]
    Path("model.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    results = [{"qid": qid, "retrieved_ids": ["pets", "night"]} for qid in qids]
    Path("system.jsonl").write_text("".join(json.dumps(row) + "\n" for row in results), encoding="utf-8")
    call = ["judge", "model.jsonl", *words(out="human.jsonl")[2:], "--sample", "12", "--seed", "4"]

    def serve(session: Any, *_: object, **__: object) -> None:
        for number, qid in enumerate(session.order[:11]):
            session.view(qid)
            doc = "pets" if number % 3 else "cars"
            session.act({"qid": qid, "act": "group", "doc": doc})
            session.act({"qid": qid, "act": "done", "rest": "nonrelevant"})

    monkeypatch.setattr("groupgt.cli.judge._serve", serve)
    main(call)
    capsys.readouterr()
    main(["evaluate", "model.jsonl", "system.jsonl", "-m", "recall@2", "--audit", "human.jsonl"])
    shown = capsys.readouterr().out
    # The annotator finds pets relevant in 7 of 11 queries, the model in all 14.
    row = next(line for line in shown.splitlines() if line.startswith("recall@2 ") and " to " in line)
    assert row.split()[1:4] == ["1.0000", "0.6364", "0.6364"]
    assert "corrected by an audit of 11 of 14 queries, a recorded random sample" in shown
