"""`compare`, `depth`, `power`, `misses` of several runs and budgets, as a user meets them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import polars as pl
import pytest

import groupgt
from tests.cli.test_cli import call
from tests.snapshots import Snapshot

pytestmark = pytest.mark.usefixtures("folder")


def test_compare(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = call(capsys, "compare", "qa.jsonl", "bm25.trec", "other.trec", "-m", "recall@2", "--by", "type")
    assert "recall@2: delta by type" in out
    assert "0/1/1" not in out
    out, err = call(
        capsys, "compare", "qa.jsonl", "bm25.trec", "other.trec", "-m", "recall@2", "--by", "type", "--details"
    )
    assert "against bm25: paired randomization test, 10,000 resamples, seed 0" in out
    # recall@2 of q1 is 1/2 and 0, of q2 it is 1 in both.
    assert "-0.250" in out
    assert "0/1/1" in out
    assert "recall@2: delta by type" in out
    assert err == ""


def test_the_baseline_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["compare", "qa.jsonl", "bm25.trec", "other.trec", "-m", "recall@2"]
    out, _ = call(capsys, *given, "--baseline", "other", "--format", "json")
    told = json.loads(out)
    assert told["baseline"] == "other"
    assert [row["against_baseline"] and row["against_baseline"]["delta"] for row in told["rows"]] == [0.25, None]
    _, err = call(capsys, *given, "--baseline", "othr", status=2)
    assert "did you mean 'other'" in err


def test_compare_as_csv(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = call(capsys, "compare", "qa.jsonl", "bm25.trec", "other.trec", "-m", "mrr", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["run"] for row in rows] == ["bm25", "other"]
    assert (rows[0]["delta"], rows[1]["baseline"]) == ("", "bm25")


def test_files_beside(capsys: pytest.CaptureFixture[str], tmp_path: Path, snapshot: Snapshot) -> None:
    given = ["compare", "qa.jsonl", "bm25.trec", "other.trec", "-m", "recall@2"]
    call(capsys, *given, "--per-query", "values.parquet", "--failures", "failures.parquet")
    values = pl.read_parquet(tmp_path / "values.parquet")
    assert values.to_dict(as_series=False) == {
        "run": ["bm25", "bm25", "other", "other"],
        "qid": ["q1", "q2", "q1", "q2"],
        "recall@2": [0.5, 1.0, 0.0, 1.0],
    }
    failures = pl.read_parquet(tmp_path / "failures.parquet")
    assert failures["first_hits"].to_list() == ["1 0", "2", "0 0", "2"]  # 0: not met
    assert failures.schema["covered"] == pl.Int64
    _, err = call(capsys, *given, "--failures", "failures.txt", status=2)
    snapshot(err)


def test_one_run_is_no_comparison(capsys: pytest.CaptureFixture[str], snapshot: Snapshot) -> None:
    for command in ("compare", "power"):
        _, err = call(capsys, command, "qa.jsonl", "bm25.trec", status=2)
        snapshot(err)


def test_power(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("scipy", reason="the extra groupgt[stats] is not installed")
    given = ["power", "qa.jsonl", "bm25.trec", "other.trec", "-m", "recall@2", "--difference", "0.5"]
    out, _ = call(capsys, *given, "--format", "json")
    (row,) = json.loads(out)["rows"]
    assert row["alpha"] == 0.05
    assert (row["queries"], row["difference"]) == (2, 0.5)
    # Differences -1/2 and 0: their standard deviation is .5 / √2.
    assert row["spread"] == pytest.approx(0.5 / 2**0.5)
    out, _ = call(capsys, *given)
    assert out.startswith("other against bm25: 2 queries have 0% power to detect a difference of +0.5000 in recall@2. ")
    assert "alpha 0.05 per comparison" in out


def test_scipy_is_asked_for_where_it_is_needed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "scipy", None)
    given = ["qa.jsonl", "bm25.trec", "other.trec", "-m", "recall@2"]
    for command in (["compare", *given, "--test", "t"], ["compare", *given, "--test", "wilcoxon"]):
        _, err = call(capsys, *command, status=2)
        snapshot(err)


def test_depth(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = call(capsys, "depth", "qa.jsonl", "bm25.trec", "other.trec", "--share", "0.5,1", "--format", "json")
    told = [(row["run"], row["share"], row["depth"], row["reached"]) for row in json.loads(out)]
    # bm25 completes q1 at 3 and q2 at 2, other q2 alone.
    assert told == [("bm25", 0.5, 2, 1.0), ("bm25", 1.0, 3, 1.0), ("other", 0.5, 2, 0.5), ("other", 1.0, None, 0.5)]
    _, err = call(capsys, "depth", "qa.jsonl", "bm25.trec", "--share", "0,x", status=2)
    assert "2 errors" in err


def test_depth_in_chars(capsys: pytest.CaptureFixture[str], tmp_path: Path, snapshot: Snapshot) -> None:
    texts = {"a": "aaaa", "x": "xx", "c": "c", "e": "", "d": "ddd", "y": "y"}
    rows = [json.dumps({"doc_id": name, "contents": text}) for name, text in texts.items()]
    (tmp_path / "all.jsonl").write_text("\n".join(rows))
    given = ["depth", "qa.jsonl", "bm25.trec", "--unit", "chars", "--share", "1", "--format", "json"]
    out, _ = call(capsys, *given, "--corpus", "all.jsonl")
    # a x c are 4 + 2 + 1 long, e d 0 + 3.
    assert json.loads(out)[0]["depth"] == 7
    _, err = call(capsys, *given, status=2)
    snapshot(err)


def test_budgets(capsys: pytest.CaptureFixture[str], tmp_path: Path, snapshot: Snapshot) -> None:
    texts = {"a": "one two", "x": "three", "c": "four", "e": "five", "d": "six seven", "y": ""}
    rows = [json.dumps({"doc_id": name, "contents": text}) for name, text in texts.items()]
    (tmp_path / "all.jsonl").write_text("\n".join(rows))
    given = ["-m", "recall@3tokens", "--corpus", "all.jsonl", "--tokenizer", "whitespace"]
    out, _ = call(capsys, "evaluate", "qa.jsonl", "bm25.trec", *given, "--format", "json")
    # q1: a x are 3 tokens and meet one of two groups; q2: e d are 3 and meet the only one.
    assert json.loads(out)["runs"][0]["metrics"]["recall@3tokens"]["mean"] == 0.75
    out, _ = call(capsys, "explain", "qa.jsonl", "bm25.trec", "--query", "q1", *given)
    assert "recall.autorag@3tokens = 0.5000" in out
    out, _ = call(capsys, "compare", "qa.jsonl", "bm25.trec", "other.trec", *given)
    assert "recall@3tokens" in out
    _, err = call(capsys, "evaluate", "qa.jsonl", "bm25.trec", *given[:-1], "python:os:getcwd", status=2)
    assert "--allow-code" in err
    _, err = call(
        capsys, "evaluate", "qa.jsonl", "bm25.trec", *given[:2], "--corpus", "corpus.jsonl", *given[4:], status=2
    )
    snapshot(err)


def test_misses_of_several_runs(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = call(capsys, "misses", "qa.jsonl", "bm25.trec", "other.trec", "-k", "2")
    first = "Both runs complete 1 of 2 queries at 2. 1 query is complete in no run."
    assert out.splitlines()[0] == first
    out, _ = call(capsys, "misses", "qa.jsonl", "bm25.trec", "other.trec", "-k", "2", "--format", "json")
    hardest = json.loads(out)["hardest"]
    assert [(group["group"], group["ranks"]) for group in hardest] == [
        ("group 2", {"bm25": 3, "other": 3}),
        ("group 1", {"bm25": 1, "other": None}),
    ]


def test_help_names_what_needs_scipy(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = call(capsys, "compare", "--help")
    assert "SciPy" in out


def test_public_names() -> None:
    assert groupgt.depth({"q": [["a"]]}, {"q": ["x", "a"]})[0].depth == 2
    assert groupgt.Lengths({"tokens": {"a": 1}}).of("tokens", ["a"]).tolist() == [1]


def test_what_is_read_is_not_overwritten(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, snapshot: Snapshot
) -> None:
    before = (tmp_path / "qa.jsonl").read_bytes()
    given = ["compare", "qa.jsonl", "bm25.trec", "other.trec"]
    _, err = call(capsys, *given, "--per-query", "./qa.jsonl", status=2)
    snapshot(err)
    _, err = call(capsys, *given, "--per-query", "a.csv", "--failures", "a.csv", status=2)
    assert "another output file" in err
    call(capsys, "evaluate", "qa.jsonl", "bm25.trec", "--per-query", "qa.jsonl", status=2)
    call(capsys, "convert", "qa.jsonl", "qa.jsonl", "--to", "csv", status=2)
    assert (tmp_path / "qa.jsonl").read_bytes() == before


def test_what_cannot_be_written_is_said_before_the_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, snapshot: Snapshot
) -> None:
    for target in ("no/a.csv", "folder.csv"):
        (tmp_path / "folder.csv").mkdir(exist_ok=True)
        given = ["compare", "qa.jsonl", "bm25.trec", "other.trec", "-m", "nonsense", "--per-query", target]
        _, err = call(capsys, *given, status=2)
        snapshot(err)


@pytest.mark.parametrize("option", [("--alpha", "1e-70"), ("--alpha", "1e-300")])
def test_no_alpha_is_too_small(capsys: pytest.CaptureFixture[str], option: tuple[str, str], snapshot: Snapshot) -> None:
    out, _ = call(capsys, "compare", "qa.jsonl", "bm25.trec", "other.trec", *option)
    snapshot(out)


def test_no_level_is_too_high(capsys: pytest.CaptureFixture[str], snapshot: Snapshot) -> None:
    given = ["compare", "qa.jsonl", "bm25.trec", "other.trec", "--confidence"]
    _, err = call(capsys, *given, "0.9999999999999999", status=2)
    snapshot(err)


def test_names_that_would_break_a_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a|b.trec").write_bytes((tmp_path / "other.trec").read_bytes())
    out, _ = call(capsys, "compare", "qa.jsonl", "bm25.trec", "a|b.trec", "-m", "mrr", "--format", "github")
    lines = [line for line in out.splitlines() if "b " in line and line.startswith("| a")]
    assert lines
    assert all(line.startswith("| a\\|b") for line in lines)


def test_only_some_queries(capsys: pytest.CaptureFixture[str], snapshot: Snapshot) -> None:
    given = ["qa.jsonl", "bm25.trec", "other.trec", "--where", "type=y"]
    for command in ("compare", "evaluate", "depth", "misses"):
        extra = ["--format", "json"]
        out, _ = call(capsys, command, *given, *extra)
        assert '"q1"' not in out
        assert json.loads(out)
    out, _ = call(capsys, "compare", *given, "-m", "recall@2", "--format", "json")
    assert [row["queries"] for row in json.loads(out)["rows"]] == [1, 1]
    both, _ = call(capsys, "compare", *given, "--where", "type=x", "-m", "recall@2", "--format", "json")
    assert [row["queries"] for row in json.loads(both)["rows"]] == [2, 2]
    _, err = call(capsys, "compare", *given[:3], "--where", "type=z", status=2)
    snapshot(err)
    _, err = call(capsys, "compare", *given[:3], "--where", "type", status=2)
    assert "expected COLUMN=VALUE" in err
    _, err = call(capsys, "compare", *given[:3], "--where", "tpe=x", status=2)
    assert "did you mean 'type'" in err


def test_pairs_have_no_room_in_csv(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["compare", "qa.jsonl", "bm25.trec", "other.trec", "--pairs"]
    _, err = call(capsys, *given, "--format", "csv", status=2)
    assert "use --format json" in err
    out, _ = call(capsys, *given, "-m", "mrr")
    assert "pairs: p-values corrected (step-down maximum) for 1 comparison" in out


def test_shares_in_per_cent_and_what_is_not_reached(capsys: pytest.CaptureFixture[str], snapshot: Snapshot) -> None:
    out, _ = call(capsys, "depth", "qa.jsonl", "bm25.trec", "other.trec", "--share", "50%,100%")
    assert out.startswith("bm25 and other complete 50% of 2 queries within 2 results.\n")
    snapshot(out)
    assert "policy" not in out
    out, _ = call(capsys, "depth", "qa.jsonl", "bm25.trec", "other.trec", "--policy", "missing=skip")
    assert "\npolicy missing=skip\n" in out
    out, _ = call(capsys, "depth", "qa.jsonl", "bm25.trec", "--details")
    snapshot(out)


def test_lengths_from_python(tmp_path: Path, snapshot: Snapshot) -> None:
    (tmp_path / "all.jsonl").write_text(
        '{"doc_id": "a", "contents": "one two"}\n{"doc_id": "b", "contents": "three"}\n'
    )
    lengths = groupgt.read_lengths(tmp_path / "all.jsonl", tokenizer="whitespace")
    assert lengths.of("tokens", ["a", "b"]).tolist() == [2, 1]
    result = groupgt.evaluate({"q": [["a"], ["b"]]}, {"q": ["a", "b"]}, ["recall@2tokens"], lengths=lengths)
    assert result["recall@2tokens"] == 0.5
    with snapshot.raises(groupgt.ConfigError):
        groupgt.Lengths("all.jsonl", "whitespace")  # type: ignore[arg-type]
    with pytest.raises(groupgt.ConfigError, match=r"read_lengths\(corpus\)"):
        groupgt.evaluate({"q": [["a"]]}, {"q": ["a"]}, ["recall@2tokens"], lengths="all.jsonl")


def test_depth_and_power_in_slices(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = call(capsys, "depth", "qa.jsonl", "bm25.trec", "--share", "1", "--by", "type", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["by"], row["slice"], row["results"], row["queries"]) for row in rows] == [
        ("", "", "3", "2"),
        ("type", "x", "3", "1"),
        ("type", "y", "2", "1"),
    ]
    pytest.importorskip("scipy", reason="the extra groupgt[stats] is not installed")
    given = ["power", "qa.jsonl", "bm25.trec", "other.trec", "-m", "recall@2", "--by", "type", "--difference", "0.5"]
    out, _ = call(capsys, *given, "--format", "json")
    assert [(row["value"], row["queries"]) for row in json.loads(out)["rows"]] == [("", 2), ("x", 1), ("y", 1)]
    out, _ = call(capsys, *given)
    assert out.splitlines()[2].split()[:2] == ["by", "slice"]
