"""Ground truth carried to other chunks, and what is said of what could not be."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import groupgt
from groupgt.cli.main import main
from tests.snapshots import Snapshot

OLD = {"o1": ("d", 0, 100), "o2": ("d", 100, 200), "o3": ("e", 0, 50)}
NEW = {"n1": ("d", 0, 80), "n2": ("d", 80, 200), "n3": ("e", 0, 20), "n4": ("e", 20, 40), "n5": ("e", 40, 50)}


def test_by_hand() -> None:
    found = groupgt.rechunk({"q": [["o1"], ["o2"]]}, OLD, NEW)
    # n1 has 80 of o1's 100 characters, n2 20 of them and all of o2.
    assert found.truth["q"] == [["n1"], ["n2"]]
    assert [(row.old, row.new, row.share) for row in found.rows] == [("o1", "n1", 0.8), ("o2", "n2", 1.0)]
    assert found.counts() == {
        "queries carried": 1,
        "alternatives": 2,
        "carried to one chunk": 2,
        "carried to several chunks": 0,
        "groups with under 90%": 1,
        "lost": 0,
        "queries dropped": 0,
    }


def test_groups_whose_chunks_hold_too_little_are_listed() -> None:
    """o1 is cut at 80 of 100; where another alternative of its group is whole, nothing is said."""
    truth = {"q1": [["o1"]], "q2": [["o1", "o2"]], "q3": [["o2"]]}
    found = groupgt.rechunk(truth, OLD, NEW)
    assert [(row.qid, row.old, row.new, row.share) for row in found.weak] == [("q1", "o1", "n1", 0.8)]
    assert [row["qid"] for row in found.to_dict()["weak"]] == ["q1"]
    assert "chunk that contains most of it" in found.text()
    # 90 of 100 is most of it.
    assert groupgt.rechunk({"q": [["o1"]]}, OLD, {"n": ("d", 0, 90)}).weak == []
    # A query that is dropped has no groups.
    assert groupgt.rechunk({"q": [["o1"], ["o3"]], "r": [["o2"]]}, OLD, NEW, drop_lost=True).weak == []


def test_what_no_chunk_has_enough_of_is_lost_and_told(snapshot: Snapshot) -> None:
    truth = {"q1": [["o1", "o3"]], "q2": [["o3"], ["o1"]], "q3": [["o2"]]}
    with pytest.raises(groupgt.DataError) as caught:
        groupgt.rechunk(truth, OLD, NEW)
    told = str(caught.value).splitlines()
    assert told[0].startswith("1 of 3 queries would lose a group; lower --min-overlap, or drop these queries (--drop-l")
    snapshot(told[1])
    found = groupgt.rechunk(truth, OLD, NEW, drop_lost=True)
    assert dict(found.truth.items()) == {"q1": [["n1"]], "q3": [["n2"]]}
    assert found.dropped == {"q2": ["group 1"]}
    assert [(row.qid, row.old, row.new, row.share) for row in found.lost] == [
        ("q1", "o3", "n3", 0.4),
        ("q2", "o3", "n3", 0.4),
    ]
    # 0.4 is enough where it is asked for; n3 and n4 both have it, and either will do.
    assert groupgt.rechunk(truth, OLD, NEW, min_overlap=0.4).truth["q2"] == [["n3", "n4"], ["n1"]]


def test_what_is_known_of_groups_and_queries_goes_with_them(tmp_path: Path) -> None:
    path = tmp_path / "truth.jsonl"
    groups = [{"alternatives": [{"id": "o1", "grade": 3}, {"id": "o2", "grade": 0}], "weight": 2, "name": "first"}]
    path.write_text(json.dumps({"qid": "q", "query": "why?", "retrieval_gt": groups, "kind": "x"}), encoding="utf-8")
    found = groupgt.rechunk(path, OLD, NEW).truth
    alternatives = [{"id": "n1", "grade": 3}, {"id": "n2", "grade": 0}]
    assert found["q"] == [{"alternatives": alternatives, "weight": 2, "name": "first"}]
    assert (found.texts, found.columns) == (["why?"], {"kind": ["x"]})


def test_excluded_ids_of_old_chunks_are_told(snapshot: Snapshot) -> None:
    truth = groupgt.GroundTruth.of({"q": [["a"]]}, excluded_ids={"q": ["b"]})
    chunks = {"a": ("d", 0, 10), "b": ("d", 10, 20)}
    with snapshot.warns(groupgt.GroupgtWarning):
        groupgt.rechunk(truth, chunks, {"n": ("d", 0, 20)})


def test_harmful_passages_are_carried(recwarn: pytest.WarningsRecorder) -> None:
    truth = groupgt.GroundTruth.of({"q": [["a"]], "r": [["a"]]}, harmful_ids={"q": ["b", "c"]})
    old = {"a": ("d", 0, 10), "b": ("d", 10, 20), "c": ("e", 0, 10)}
    new = {"n1": ("d", 0, 10), "n2": ("d", 10, 15), "n3": ("d", 15, 20), "n4": ("e", 6, 10)}
    found = groupgt.rechunk(truth, old, new).truth
    assert found.harmful == [{"n2", "n3"}, frozenset()]
    assert found.relevant("q") == [["n1"]]
    assert [str(each.message) for each in recwarn] == [
        "no new chunk contains enough of these harmful passages to map them: c"
    ]
    with pytest.raises(groupgt.DataError, match="'n' is both harmful and relevant"):
        groupgt.rechunk(truth, old, {"n": ("d", 0, 20)})
    with pytest.warns(groupgt.GroupgtWarning, match="does not map to spans"):
        assert groupgt.rechunk(truth, old).truth.harmful is None


def test_several_that_become_one_have_its_highest_grade() -> None:
    truth = {"q": [[{"id": "o1", "grade": 1}, {"id": "o2", "grade": 2}]]}
    whole = {"n": ("d", 0, 200)}
    assert groupgt.rechunk(truth, OLD, whole).truth["q"] == [[{"id": "n", "grade": 2}]]


def test_without_new_chunks_the_places_are_written() -> None:
    found = groupgt.rechunk({"q": [["o1"], ["o3"]]}, OLD).truth
    assert found["q"] == [[{"doc": "d", "start": 0, "end": 100}], [{"doc": "e", "start": 0, "end": 50}]]
    # And can be carried on from there.
    assert groupgt.rechunk(found, None, NEW, min_overlap=0.4).truth["q"] == [["n1"], ["n3", "n4"]]


def test_the_same_chunks_change_nothing_but_names() -> None:
    renamed = {f"new-{name}": place for name, place in OLD.items()}
    truth = {"q1": [["o1", "o3"], ["o2"]], "q2": []}
    assert dict(groupgt.rechunk(truth, OLD, renamed).truth.items()) == {
        "q1": [["new-o1", "new-o3"], ["new-o2"]],
        "q2": [],
    }


def test_ids_that_the_old_chunks_do_not_have_are_all_told(snapshot: Snapshot) -> None:
    with snapshot.raises(groupgt.DataError):
        groupgt.rechunk({"q": [["o1", "x1"], ["x2"]]}, OLD, NEW)


@pytest.mark.parametrize("seed", range(5))
def test_against_a_loop(seed: int) -> None:
    rng = random.Random(seed)

    def cut() -> dict[str, tuple[str, int, int]]:
        found = {}
        for document in "de":
            for number in range(30):
                start = rng.randrange(0, 1000)
                found[f"{document}{number}"] = (document, start, start + rng.randrange(1, 120))
        return found

    old, new = cut(), cut()
    truth = {f"q{n}": [rng.sample(list(old), rng.randint(1, 3)) for _ in range(rng.randint(1, 3))] for n in range(30)}
    share = rng.choice((0.1, 0.3, 0.5, 1.0))
    found = groupgt.rechunk(truth, old, new, min_overlap=share, drop_lost=True)
    for qid, groups in truth.items():
        expected: list[set[str]] = []
        for group in groups:
            names: set[str] = set()
            for document, start, end in (old[name] for name in group):
                for name, (other, first, last) in new.items():
                    common = min(end, last) - max(start, first) if other == document else 0
                    if common > 0 and Fraction(common, end - start) >= Fraction(str(share)):
                        names.add(name)
            expected.append(names)
        if all(expected):
            assert [set(group) for group in found.truth[qid]] == expected
        else:
            assert qid in found.dropped
            assert qid not in found.truth


OLD_TEXTS = {"o1": "Leave is thirty days a year.", "o2": "Sick days are paid. They are not leave."}
NEW_TEXTS = {
    "n1": "About leave.\nLEAVE is thirty days\na year!",
    "n2": "Sick days are paid.",
    "n3": "They are not leave.",
    "n4": "Sick days are payed. They are not leave.",
}


def test_through_texts() -> None:
    truth = {"q": [["o1"]]}
    found = groupgt.rechunk(truth, OLD_TEXTS, NEW_TEXTS)
    assert (found.method, found.truth["q"]) == ("contained", [["n1"]])
    with pytest.raises(groupgt.DataError, match=r"'o2' \('n4' has 0.87 of it\)"):  # 7 of its 8 words, .875: not paid
        groupgt.rechunk({"q": [["o2"]]}, OLD_TEXTS, NEW_TEXTS)
    found = groupgt.rechunk({"q": [["o2"]]}, OLD_TEXTS, NEW_TEXTS, method="token_recall", threshold=0.5)
    assert found.truth["q"] == [["n2", "n3", "n4"]] or found.truth["q"] == [["n4", "n2", "n3"]]
    pytest.importorskip("rapidfuzz", reason="the extra groupgt[text] is not installed")
    found = groupgt.rechunk({"q": [["o2"]]}, OLD_TEXTS, NEW_TEXTS, method="partial_ratio")
    assert found.truth["q"] == [["n4"]]


def test_what_cannot_be_asked(snapshot: Snapshot) -> None:
    with snapshot.raises(groupgt.ConfigError):
        groupgt.rechunk({"q": [["o1"]]}, OLD, NEW_TEXTS, method="spans")
    with pytest.raises(groupgt.ConfigError, match="method: expected spans, contained"):
        groupgt.rechunk({"q": [["o1"]]}, OLD, NEW, method="guess")
    with snapshot.raises(groupgt.ConfigError):
        groupgt.rechunk({"q": [["o1"]]}, OLD, NEW, min_overlap=0)


def files(folder: Path) -> tuple[Path, Path, Path]:
    truth, old, new = (folder / name for name in ("truth.jsonl", "old.csv", "new.parquet"))
    rows: list[dict[str, Any]] = [{"qid": "q1", "retrieval_gt": [["o1"]]}, {"qid": "q2", "retrieval_gt": [["o3"]]}]
    truth.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    lines = ["chunk_id,doc_id,start,end", *(f"{name},{','.join(map(str, place))}" for name, place in OLD.items())]
    old.write_text("\n".join(lines), encoding="utf-8")
    names = ("doc_id", "start", "end")
    columns = {name: [place[at] for place in NEW.values()] for at, name in enumerate(names)}
    pl.DataFrame({"chunk_id": list(NEW), **columns}).write_parquet(new)
    return truth, old, new


def test_the_command_writes_nothing_while_a_group_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot
) -> None:
    truth, old, new = files(tmp_path)
    out, report = tmp_path / "out.jsonl", tmp_path / "report.csv"
    words = ["rechunk", str(truth), "--from", str(old), "--to", str(new), "--output", str(out), "--report", str(report)]
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2
    snapshot(capsys.readouterr().err)
    assert not out.exists()
    assert not report.exists()
    way = "lower --min-overlap, or write spans instead of chunks (omit --to"
    main(words[:6])  # a dry run
    snapshot(capsys.readouterr().out)
    main([*words, "--drop-lost"])
    shown = capsys.readouterr()
    assert way in shown.out
    assert "wrote 1 query" in shown.err
    assert "q2       group 1  o3" in shown.out
    assert groupgt.read_ground_truth(out)["q1"] == [["n1"]]
    assert report.read_text(encoding="utf-8").splitlines() == [
        "query,group,alternative,chunk,share,lost",
        "q1,group 1,o1,n1,0.8,false",
        "q2,group 1,o3,n3,0.4,true",
    ]
    main([*words[:-4], "--drop-lost", "--format", "json"])
    told = json.loads(capsys.readouterr().out)
    assert (told["method"], told["left_out"], told["counts"]["lost"]) == ("spans", {"q2": ["group 1"]}, 1)


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        (["--output", "truth.jsonl"], "would overwrite truth.jsonl, an input file"),
        (["--output", "out.txt"], "expected a file that ends in .jsonl, .parquet, .csv or .tsv, found .txt"),
        (["--output", "nowhere/out.jsonl"], "found no folder 'nowhere'"),
        (["--report", "report.md"], "expected a file that ends in .csv, .jsonl or .parquet"),
    ],
)
def test_files_that_cannot_be_written(
    extra: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(["rechunk", "truth.jsonl", "--from", "old.csv", "--to", "new.parquet", *extra])
    assert end.value.code == 2
    assert words in capsys.readouterr().err


def test_what_was_carried_weakly_stands_beside_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """n1 has 80 of the 100 characters of o1; `check` says so while the query has n1, in any part of the file."""
    monkeypatch.chdir(tmp_path)
    tables = {"old.csv": OLD, "new.csv": NEW, "whole.csv": OLD}
    for name, places in tables.items():
        rows = [f"{chunk},{','.join(map(str, place))}\n" for chunk, place in places.items()]
        Path(name).write_text("chunk_id,doc_id,start,end\n" + "".join(rows))
    Path("truth.jsonl").write_text(
        '{"qid": "q1", "retrieval_gt": [["o1"]], "part": "a"}\n{"qid": "q2", "retrieval_gt": [["o1"], ["o2"]]}\n'
        '{"qid": "q3", "retrieval_gt": [["o2"]], "part": "a"}\n'
    )

    def carried(new: str) -> None:
        main(["rechunk", "truth.jsonl", "--from", "old.csv", "--to", new, "-o", "carried.jsonl"])

    def weak(truth: Any = "carried.jsonl", **options: Any) -> list[tuple[int, str, bool]]:
        findings = next(iter(groupgt.check(truth, **options).findings.values()))
        found = [each for each in findings if each.what == "groups mapped with under 90% of their passage"]
        assert not any(each.fails for each in found)
        return [(each.count, each.example, each.suspicious) for each in found]

    carried("new.csv")
    notes = Path("carried.jsonl.weak.jsonl")
    assert [json.loads(line) for line in notes.read_text().splitlines()] == [
        {"query": qid, "group": "group 1", "alternative": "o1", "chunk": "n1", "share": 0.8, "lost": "false"}
        for qid in ("q1", "q2")
    ]
    assert weak() == [(2, "q1: n1 has 0.80 of o1, q2: n1 has 0.80 of o1", True)]
    assert weak(where={"part": "a"}) == [(1, "q1: n1 has 0.80 of o1", True)]
    assert weak({"q1": [["n1"]]}) == weak("truth.jsonl") == []
    # A group that was judged again is no longer weak.
    text = Path("carried.jsonl").read_text()
    Path("carried.jsonl").write_text(text.replace('"n1"', '"n9"', 1))
    assert weak() == [(1, "q2: n1 has 0.80 of o1", True)]
    # Nothing is weak in chunks that hold it all.
    carried("whole.csv")
    assert not notes.exists()
    assert weak() == []
