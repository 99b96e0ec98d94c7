"""One run in many files, at URLs, and under a ceiling of memory: the same bits as one file in order."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.engines.choice import engine_of, size_of
from groupgt.engines.columns import any_order, in_order, reader
from groupgt.engines.columns.reader import Batches
from groupgt.formats import source
from groupgt.runtime import zstd
from tests.engines.test_engines import METRICS, as_trec, make, same

Rows = list[tuple[str, str, float]]
ASKED = [metric for metric in METRICS if not metric.definition.reads_texts]
# One at each cutoff.
SOME = [*ASKED[:2], *ASKED[-3:]]


def write(path: Path, rows: Rows) -> None:
    """Rows as the ending says."""
    frame = pl.DataFrame(rows, schema=["qid", "doc_id", "score"], orient="row")
    kind = path.suffixes[0]
    if kind == ".trec":
        data = as_trec(rows).encode()
        ways: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".zst": zstd.compress}
        path.write_bytes(ways.get(path.suffix, bytes)(data))
    elif kind == ".csv":
        frame.write_csv(path)
    elif kind == ".jsonl":
        frame.write_ndjson(path)
    else:
        frame.write_parquet(path)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., SimpleNamespace]:
    """The command in this process: its status and what it said."""

    def run(*arguments: object) -> SimpleNamespace:
        status: object = 0
        try:
            main([str(each) for each in arguments])
        except SystemExit as end:
            status = end.code or 0
        out, err = capsys.readouterr()
        return SimpleNamespace(status=status, out=out, err=err)

    return run


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of seven rows: every query, and every block of equal scores, spans some."""
    monkeypatch.setattr(reader, "MOST_ROWS", 7)
    monkeypatch.setattr(reader, "FEWEST_ROWS", 7)


@pytest.fixture
def expected() -> Callable[..., groupgt.Evaluation]:
    def evaluated(truth: dict[str, Any], rows: Rows, **policy: str) -> groupgt.Evaluation:
        rankings: dict[str, list[str]] = {}
        scores: dict[str, list[float]] = {}
        for qid, doc, score in rows:
            rankings.setdefault(qid, []).append(doc)
            scores.setdefault(qid, []).append(score)
        return groupgt.evaluate(truth, groupgt.Run.of(rankings, scores=scores), ASKED, policy=policy)

    return evaluated


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".trec", ".trec.gz", ".trec.zst", ".jsonl"])
@pytest.mark.parametrize("scattered", [False, True])
def test_a_run_in_parts_is_one_run(tmp_path: Path, expected: Any, ending: str, scattered: bool) -> None:
    truth, rows = make(4, ties=True, repeats=True)
    one = expected(truth, rows)
    if scattered:
        random.Random(1).shuffle(rows)
    folder = tmp_path / "system"
    folder.mkdir()
    cuts = [0, 13, 14, 200, len(rows)]
    for number, (low, high) in enumerate(itertools.pairwise(cuts)):
        write(folder / f"part-{number}{ending}", rows[low:high])
    (folder / "_SUCCESS").touch()
    for given, asked in ((folder, ASKED), (f"{folder}/part-*", SOME), (sorted(folder.glob("part-*")), SOME)):
        found = groupgt.evaluate(truth, given, asked, parts=True)
        same(found, one)
        assert found.name == "system"


def test_parts_of_several_formats(tmp_path: Path, expected: Any) -> None:
    truth, rows = make(5)
    names = ["a.trec", "b.csv", "c.parquet", "d.jsonl"]
    for number, name in enumerate(names):
        write(tmp_path / name, rows[number::4])
    same(expected(truth, rows), groupgt.evaluate(truth, [tmp_path / name for name in names], ASKED, parts=True))


def test_what_is_wrong_in_parts_is_told_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.trec").write_text("q Q0 a 1 2.0 t\n")
    (tmp_path / "b.trec").write_text("q Q0 b 1 nan t\n")
    (tmp_path / "c.trec").write_text("q Q0 c 1 1 t\nq Q0 c\n")
    with pytest.raises(groupgt.DataError) as caught:
        groupgt.evaluate({"q": [["a"]]}, tmp_path, ["mrr"], parts=True)
    told = str(caught.value)
    assert "b.trec:1" in told
    assert "c.trec:2" in told
    for name in "ab":
        (tmp_path / f"{name}.trec").unlink()
        (tmp_path / f"{name}.jsonl").write_text('{"qid": "q", "retrieved_ids": ["a"]}\n')
    (tmp_path / "c.trec").unlink()
    with pytest.raises(groupgt.DataError, match=r"is also in another file of .* without scores"):
        groupgt.evaluate({"q": [["a"]]}, tmp_path, ["mrr"], parts=True)
    with pytest.raises(groupgt.DataError, match="no file matches"):
        groupgt.evaluate({"q": [["a"]]}, f"{tmp_path}/*.trec", ["mrr"], parts=True)


def test_parts_at_the_command_line(tmp_path: Path, cli: Any) -> None:
    truth, rows = make(6)
    lines = (json.dumps({"qid": qid, "retrieval_gt": groups}) + "\n" for qid, groups in truth.items())
    (tmp_path / "qa.jsonl").write_text("".join(lines))
    folder = tmp_path / "system"
    folder.mkdir()
    write(tmp_path / "whole.trec", rows)
    write(folder / "a.trec", rows[:33])
    write(folder / "b.trec", rows[33:])
    one = cli("evaluate", tmp_path / "qa.jsonl", tmp_path / "whole.trec", "--format", "json")
    for extra in (["--parts"], ["--parts", "--memory", "20GB"]):
        parts = cli("evaluate", tmp_path / "qa.jsonl", folder, *extra, "--format", "json")
        assert parts.status == 0, parts.err
        assert parts.out.replace('"system"', '"whole"') == one.out
    refused = cli("evaluate", tmp_path / "qa.jsonl", tmp_path / "whole.trec", "--parts")
    assert refused.status == 2
    assert "found one file" in refused.err


SETTINGS = list(itertools.product((0, 1, 2), ("sorted", "shuffled"), ("penalize", "drop"), ("id", "input")))
# Every two of these meet by default.
BY_DEFAULT = [
    (0, "sorted", "penalize", "id"),
    (0, "sorted", "drop", "input"),
    (0, "shuffled", "penalize", "input"),
    (0, "shuffled", "drop", "id"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "order", "duplicates", "ties"),
    [setting if setting in BY_DEFAULT else pytest.param(*setting, marks=pytest.mark.property) for setting in SETTINGS],
)
def test_batches_of_a_few_rows(
    expected: Any, small_batches: None, ties: str, duplicates: str, order: str, seed: int
) -> None:
    truth, rows = make(seed, ties=True, repeats=True)
    if order == "shuffled":
        random.Random(seed).shuffle(rows)
    policy = {"ties": ties, "duplicates": duplicates}
    frame = pl.DataFrame(rows, schema=["qid", "doc_id", "score"], orient="row")
    same(expected(truth, rows, **policy), groupgt.evaluate(truth, frame, ASKED, policy=policy))


def test_one_block_of_equal_scores_over_many_batches(expected: Any, small_batches: None) -> None:
    """Too long to be held: the second plan ranks it."""
    ids = [f"d{number:03d}" for number in range(200)]
    random.Random(2).shuffle(ids)
    rows = [("q", name, 1.0) for name in ids] + [("r", "d001", 1.0)]
    truth = {"q": [ids[:3], ids[50:60], [ids[190]]], "r": [["d001"]]}
    frame = pl.DataFrame(rows, schema=["qid", "doc_id", "score"], orient="row")
    same(expected(truth, rows), groupgt.evaluate(truth, frame, ASKED))


def test_a_query_with_many_hits(expected: Any, small_batches: None) -> None:
    rng = random.Random(3)
    ids = [f"d{number}" for number in range(400)]
    rows = [("q", name, float(rng.randint(0, 60))) for name in ids]
    truth = {"q": [[name] for name in rng.sample(ids, 150)]}
    frame = pl.DataFrame(rows, schema=["qid", "doc_id", "score"], orient="row")
    same(expected(truth, rows), groupgt.evaluate(truth, frame, ASKED))


def test_empty_sides() -> None:
    empty = pl.DataFrame(schema={"qid": pl.String, "doc_id": pl.String, "score": pl.Float64})
    rows = pl.DataFrame({"qid": ["q", "p", "q"], "doc_id": ["a", "b", "c"], "score": [1.0, 2.0, 3.0]})
    with pytest.warns(groupgt.GroupgtWarning, match="0 results"):
        assert groupgt.evaluate({"q": [["a"]]}, empty, ["mrr"]).counts["missing"] == 1
    assert groupgt.evaluate({"q": [["a"]], "y": []}, rows, ["mrr"]).counts["extra"] == 1
    with pytest.raises(
        groupgt.DataError, match=r"no query of the run is .*: the run has 'q', the ground truth has 'z'"
    ):
        groupgt.evaluate({"z": []}, rows, ["mrr"])


def test_hash_codes_that_collide_are_parted_or_told_apart(monkeypatch: pytest.MonkeyPatch, expected: Any) -> None:
    """All rows as candidates, as if every code fell into a slot that is taken: ids decide."""
    from groupgt.engines.columns import keys

    truth, rows = make(7, ties=True)
    monkeypatch.setattr(keys.Keys, "likely", lambda self, code, slots: pl.Series(range(len(code))).to_numpy())
    random.Random(1).shuffle(rows)
    frame = pl.DataFrame(rows, schema=["qid", "doc_id", "score"], orient="row")
    same(expected(truth, rows), groupgt.evaluate(truth, frame, ASKED))


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
@pytest.mark.parametrize("bits", [0, 1, 4])
def test_keys_with_one_hash_code_are_all_compared(
    monkeypatch: pytest.MonkeyPatch, expected: Any, order: str, bits: int
) -> None:
    """Codes of so few bits that many keys of a query share one, as some of hundreds of thousands of keys do."""
    from groupgt.engines.columns import keys

    real = keys._code
    monkeypatch.setattr(keys, "_code", lambda hashes, query: real(hashes, query) >> (32 - bits) << (32 - bits))
    truth, rows = make(13, ties=True, repeats=True)
    if order == "shuffled":
        random.Random(3).shuffle(rows)
    frame = pl.DataFrame(rows, schema=["qid", "doc_id", "score"], orient="row")
    same(expected(truth, rows), groupgt.evaluate(truth, frame, ASKED))


@pytest.mark.property
def test_a_query_of_very_many_alternatives_loses_none() -> None:
    """At this size some keys of a query have hash codes whose upper 32 bits are equal, whatever the seed."""
    ids = [f"d{number}" for number in range(300_000)]
    frame = pl.DataFrame({"qid": ["q"] * len(ids), "doc_id": ids, "score": range(len(ids))})
    truth = groupgt.GroundTruth.of({"q": [ids]})
    for rows in (frame, frame.reverse()):
        hits = groupgt.evaluate(truth, rows, ["recall@1"]).labelled.hits
        assert len(np.unique(hits.alternative)) == len(ids)


def test_an_error_in_a_thread_is_an_error(tmp_path: Path) -> None:
    """Whatever fails while rows flow is raised, not taken for the end of the rows."""
    rows = pl.LazyFrame({"qid": ["q"] * 10, "doc": ["a"] * 10, "score": [1.0] * 10})

    def broken(frame: pl.DataFrame) -> pl.DataFrame:
        raise RuntimeError("out of luck")

    columns = groupgt.read_run(pl.DataFrame({"qid": ["q"], "doc_id": ["a"], "score": [1.0]})).as_columns
    flow = Batches(columns, "results").of(rows.map_batches(broken, schema=rows.collect_schema()))
    with pytest.raises(BaseException, match="out of luck"):
        list(flow("qid"))


def test_whoever_stops_early_ends_the_query(small_batches: None) -> None:
    frame = pl.DataFrame({"qid": ["q"] * 100, "doc_id": ["a"] * 100, "score": [1.0] * 100})
    columns = groupgt.read_run(frame).as_columns
    flow = Batches(columns, "results")("qid")
    assert len(next(flow)) > 0
    flow.close()


@pytest.mark.slow
def test_a_ceiling_that_is_passed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    truth, rows = make(8)
    write(tmp_path / "run.trec", rows)
    engine = {"use": "streaming", "with": {"memory": "2GB"}}
    monkeypatch.setattr(reader, "resident", lambda: 1_999_999_999)
    found = groupgt.evaluate(truth, tmp_path / "run.trec", ASKED, engine=engine)
    same(groupgt.evaluate(truth, tmp_path / "run.trec", ASKED), found)
    monkeypatch.setattr(reader, "resident", lambda: 2_000_000_001)
    with pytest.raises(groupgt.DataError, match=r"memory limit of 2\.00 GB exceeded"):
        groupgt.evaluate(truth, tmp_path / "run.trec", ASKED, engine=engine)


def test_batches_shrink_with_the_ceiling() -> None:
    columns = groupgt.read_run(pl.DataFrame({"qid": ["q"], "doc_id": ["a"], "score": [1.0]})).as_columns
    sizes = [Batches(columns, "", ceiling).size for ceiling in (0, 4_000_000_000, 400_000_000, 1)]
    assert sizes == [reader.MOST_ROWS, reader.MOST_ROWS, 400_000_000 // 8 // reader.ROW, reader.FEWEST_ROWS]
    assert reader.resident() > 10_000_000


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("stream", "did you mean 'streaming'"),
        ({"use": "streaming", "with": {"memory": "2XB"}}, "memory: expected a size such as 2GB"),
        ({"use": "streaming", "with": {"memory": 0}}, "expected a size"),
        ({"use": "streaming", "with": {"master": "x"}}, "unknown option 'master'"),
        ({"use": "auto", "with": {"memory": "1GB"}}, "unknown option 'memory'"),
        ({"use": "auto", "with": {"bucket": 0}}, "bucket: expected"),
        ({"use": "spark", "with": {"config": {1: 2}}}, "config: expected Spark settings"),
        ({"name": "spark"}, "expected a name, or"),
        ({"use": "spark", "with": 3}, "expected options by name"),
    ],
)
def test_engines_that_are_none_are_told(spec: Any, told: str) -> None:
    with pytest.raises(groupgt.ConfigError, match=told):
        engine_of(spec)
    with pytest.raises(groupgt.ConfigError, match=told):
        groupgt.evaluate({"q": [["a"]]}, {"q": ["a"]}, ["mrr"], engine=spec)


# ---- What is too large to be held --------------------------------------------------------------------------------


@pytest.fixture
def huge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file counts as too large to be read as a whole."""
    monkeypatch.setattr(source, "SMALL", 0)
    monkeypatch.setattr(source, "HUGE", 0)
    monkeypatch.setattr(source.Source, "data", property(lambda self: pytest.fail("the whole file was read")))


@pytest.mark.parametrize("ending", [".trec", ".trec.gz", ".trec.zst", ".csv"])
def test_huge_files_are_never_read_as_a_whole(tmp_path: Path, expected: Any, huge: None, ending: str) -> None:
    truth, rows = make(9, ties=True)
    write(tmp_path / f"run{ending}", rows)
    same(expected(truth, rows), groupgt.evaluate(truth, tmp_path / f"run{ending}", ASKED))


def test_huge_lines_of_every_kind(tmp_path: Path, expected: Any, huge: None) -> None:
    truth, rows = make(10)
    odd = ("  ", "\t", " \t ")
    plain = enumerate(as_trec(rows).splitlines())
    lines = [line.replace(" ", odd[number % 3]) + " more" * (number % 2) for number, line in plain]
    (tmp_path / "run.trec").write_bytes(b"\xef\xbb\xbf" + "\r\n\r\n  ".join(lines).encode())
    same(expected(truth, rows), groupgt.evaluate(truth, tmp_path / "run.trec", ASKED))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("q Q0 a 1 x t", "run.trec:3: query 'q': expected a finite number as the score, found 'x'"),
        ("q Q0 a 1 nan t", "run.trec:3: query 'q': expected a finite number as the score, found 'nan'"),
        ("q Q0 a", "run.trec:3: expected 6 columns (qid Q0 doc rank score tag), found 3"),
    ],
)
def test_faults_of_huge_files_name_their_line(tmp_path: Path, huge: None, line: str, told: str) -> None:
    (tmp_path / "run.trec").write_text(f"q Q0 b 1 9 t\n\n{line}\nq  Q0 c 1 1 t\n")
    with pytest.raises(groupgt.DataError) as caught:
        groupgt.evaluate({"q": [["a"]]}, tmp_path / "run.trec", ["mrr"])
    assert told in str(caught.value)


@pytest.mark.parametrize("in_parts", [False, True])
def test_a_fault_in_a_huge_table_is_never_a_zero(tmp_path: Path, huge: None, in_parts: bool) -> None:
    """What is surely a table is read as one at first; the lines then say what was wrong."""
    (tmp_path / "run.trec").write_text("q Q0 a 1 9 t\nq Q0 b 1 nan t\n")
    with pytest.raises(
        groupgt.DataError, match="trec:2: query 'q': expected a finite number as the score, found 'nan'"
    ):
        groupgt.evaluate({"q": [["a"]]}, tmp_path if in_parts else tmp_path / "run.trec", ["mrr"], parts=in_parts)


def test_a_huge_table_names_its_rows(tmp_path: Path, huge: None) -> None:
    (tmp_path / "run.csv").write_text("qid,doc_id,score\nq,a,1\nq,b,one\n")
    with pytest.raises(groupgt.DataError, match=r"run.csv:3: query 'q': expected a finite number as the score"):
        groupgt.evaluate({"q": [["a"]]}, tmp_path / "run.csv", ["mrr"])


# ---- Stores -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bucket() -> Iterator[Callable[[str, bytes], str]]:
    """Puts an object into a bucket of an S3 server in this process, and returns its URL."""
    server_of = pytest.importorskip("moto.server", reason="moto, a stand-in for S3, is in the extra groupgt[checks]")
    server = server_of.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()

    def put(path: str, data: bytes = b"") -> str:
        # The server looks at who asks, not at the signature.
        who = "Credential=none/20250101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=none"
        kind = {"Content-Type": "application/octet-stream", "Authorization": f"AWS4-HMAC-SHA256 {who}"}
        request = urllib.request.Request(f"http://{host}:{port}/{path}", data=data, method="PUT", headers=kind)
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30).read()
        return f"s3://{path}"

    put("bucket")
    settings = {"AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**settings, "AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none"}.items():
            patch.setenv(name, value)
        yield lambda path, data: put(f"bucket/{path}", data)
    server.stop()


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".trec", ".trec.gz"])
def test_objects_of_a_store(tmp_path: Path, expected: Any, bucket: Any, cli: Any, ending: str) -> None:
    truth, rows = make(11, ties=True)
    one = expected(truth, rows)
    random.Random(1).shuffle(rows)
    for number in range(3):
        write(tmp_path / f"part{ending}", rows[number::3])
        bucket(f"run{ending}/part-{number}{ending}", (tmp_path / f"part{ending}").read_bytes())
    found = groupgt.evaluate(truth, f"s3://bucket/run{ending}/*{ending}", ASKED)
    same(one, found)
    write(tmp_path / f"whole{ending}", rows)
    url = bucket(f"whole{ending}", (tmp_path / f"whole{ending}").read_bytes())
    same(one, groupgt.evaluate(truth, url, ASKED))
    questions = bucket("qa.jsonl", b'{"qid": "q1", "retrieval_gt": [["d1"]]}\n')
    shown = cli("evaluate", questions, url, "-m", "recall", "--format", "json")
    assert shown.status == 0, shown.err
    assert '"run": "whole' in shown.out


def test_what_a_store_has_not_is_told(bucket: Any, cli: Any) -> None:
    with pytest.raises(groupgt.DataError, match=r"s3://bucket/none\.parquet: cannot be read"):
        groupgt.evaluate({"q": [["a"]]}, "s3://bucket/none.parquet", ["mrr"])
    with pytest.raises(groupgt.ConfigError, match="specify the format"):
        groupgt.evaluate({"q": [["a"]]}, "s3://bucket/none", ["mrr"])
    url = bucket("bad.trec", b"q Q0 a 1 2 t\nq Q0 b 1 two t\n")
    with pytest.raises(groupgt.DataError, match=r"bad\.trec:2: query 'q': expected a finite number"):
        groupgt.evaluate({"q": [["a"]]}, url, ["mrr"])
    bad = bucket("bad.jsonl", b'{"qid": "q"}\n')
    with pytest.raises(groupgt.DataError, match=r"^s3://bucket/bad\.jsonl:1: the 'retrieval_gt' column is missing"):
        groupgt.evaluate(bad, {"q": ["a"]}, ["mrr"])


def test_which_plan_runs_in_batches(small_batches: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sorted run takes one pass; one that turns out to be scattered after its head takes the second plan."""
    truth, rows = make(12, ties=True)
    seen: list[str] = []
    for module in (in_order, any_order):
        real = module.ranked_hits
        monkeypatch.setattr(
            module, "ranked_hits", lambda *given, m=module, real=real: seen.append(m.__name__) or real(*given)
        )
    frame = pl.DataFrame(rows, schema=["qid", "doc_id", "score"], orient="row")
    one = groupgt.evaluate(truth, frame, ASKED)
    assert seen == [in_order.__name__]
    monkeypatch.setattr(reader, "LOOKED_AT", 5)
    late = pl.concat([frame[:60], frame[100:], frame[60:100]])
    same(one, groupgt.evaluate(truth, late, ASKED))
    assert seen == [in_order.__name__, in_order.__name__, any_order.__name__]


def test_a_folder_is_no_run(tmp_path: Path) -> None:
    """Each file of a folder, a glob or a list is a run, as in the shell, unless they are said to be parts of one."""
    truth = {"q": [["a"], ["b"]]}
    (tmp_path / "one.trec").write_text("q Q0 a 1 2 t\n")
    (tmp_path / "other.trec").write_text("q Q0 b 1 1 t\n")
    (tmp_path / "notes.md").write_text("# Two runs\n")
    files = sorted(tmp_path.glob("*.trec"))
    for given in (tmp_path, str(tmp_path), f"{tmp_path}/*.trec", files):
        for function in (
            lambda run: groupgt.evaluate(truth, run, ["recall"]),
            lambda run: groupgt.depth(truth, run),
            lambda run: groupgt.misses(truth, run),
            lambda run: groupgt.agree(truth, run, other_truth=truth),
            groupgt.read_run,
        ):
            with pytest.raises(
                groupgt.ConfigError, match=r"expected one run, found \d files; .*evaluate_runs.*parts=True"
            ):
                function(given)
    for given in (f"{tmp_path}/*.trec", files):
        assert groupgt.evaluate(truth, given, ["recall"], parts=True)["recall"] == 1
        assert list(groupgt.evaluate_runs(truth, given, ["recall"])) == ["one", "other"]
        assert groupgt.compare(truth, given, ["recall"], resamples=10)["other"]["recall"].delta == 0
        assert list(groupgt.check(truth, given).findings) == ["truth", *map(str, files)]
    with pytest.warns(groupgt.GroupgtWarning, match=r"skipped notes\.md \(not a run\)"):
        found = groupgt.evaluate_runs(truth, tmp_path, ["recall"])
    assert found.means == {"one": {"recall": 0.5}, "other": {"recall": 0.5}}
    assert list(groupgt.evaluate_runs(truth, files[0], ["recall"])) == ["one"]
    with pytest.raises(groupgt.ConfigError, match="expected one run, found 2 files"):
        groupgt.evaluate_runs(truth, {"both": f"{tmp_path}/*.trec"}, ["recall"])
    both = {"both": groupgt.read_run(f"{tmp_path}/*.trec", parts=True)}
    assert groupgt.evaluate_runs(truth, both, ["recall"]).means == {"both": {"recall": 1.0}}
    with pytest.raises(groupgt.DataError, match="file not found"):
        groupgt.evaluate_runs(truth, [tmp_path / "none.trec"], ["recall"])
    assert groupgt.evaluate(truth, files[:1], ["recall"])["recall"] == 0.5


def test_sizes_are_decimal_or_binary() -> None:
    assert [size_of(size) for size in ("2GB", "512 MiB", 1000)] == [2_000_000_000, 536_870_912, 1000]


def _parts_of(folder: Path, *texts: str, ending: str = ".csv") -> Path:
    folder.mkdir()
    for number, text in enumerate(texts, 1):
        (folder / f"{number}{ending}").write_text(text)
    return folder


def test_parts_do_not_merge_trials(tmp_path: Path) -> None:
    """Only parquet can hold trials in many files: q1 is answered once in two trials, q2 once in the only one."""
    truth = {"q1": [["a"]], "q2": [["b"]]}
    first, second = "qid,{},doc_id,score\nq1,1,a,1\nq2,1,b,1\n", "qid,{},doc_id,score\nq1,2,b,1\n"
    asked = _parts_of(tmp_path / "asked", first.format("epoch"), second.format("epoch"))
    numbered = _parts_of(tmp_path / "numbered", first.format("trial"), second.format("trial"))
    with pytest.raises(groupgt.DataError, match=r"epoch '1' and epoch '2': .* join the files and add --columns trial="):
        groupgt.evaluate(truth, asked, ["recall"], parts=True)
    for folder, columns in ((numbered, {}), (asked, {"trial": "epoch"})):
        with pytest.raises(groupgt.DataError, match="a run in many files cannot have trials"):
            groupgt.evaluate(truth, folder, ["recall"], parts=True, run_columns=columns)
    for file in list(asked.iterdir()):
        pl.read_csv(file).write_parquet(file.with_suffix(".parquet"))
    found = groupgt.evaluate(truth, f"{asked}/*.parquet", ["recall"], parts=True, run_columns={"trial": "epoch"})
    assert found["recall"] == (1 + 0) / 2  # both in the first trial, neither in the second
    # Not trials: one model throughout.
    whole = _parts_of(tmp_path / "whole", first.format("model"), "qid,model,doc_id,score\nq1,1,b,2\n")
    assert groupgt.evaluate(truth, whole, ["recall"], parts=True)["recall"] == 1


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".json"])
def test_joined_ids_in_parts_are_asked_about(tmp_path: Path, ending: str) -> None:
    """A text of several ids is refused in a run of many files as in one file."""
    texts = [f'{{"qid": "q{n}", "retrieved_ids": "d{n};x"}}\n' for n in (1, 2)]
    if ending == ".csv":
        texts = [f"qid,retrieved_ids\nq{n},d{n};x\n" for n in (1, 2)]
    folder = _parts_of(tmp_path / "run", *texts, ending=ending)
    truth = {"q1": [["d1"]], "q2": [["d2"]]}
    with pytest.raises(groupgt.DataError, match=r"retrieved_ids=retrieved_ids\[;\]"):
        groupgt.evaluate(truth, folder, ["recall"], parts=True)
    columns = {"retrieved_ids": "retrieved_ids[;]"}
    assert groupgt.evaluate(truth, folder, ["recall"], parts=True, run_columns=columns)["recall"] == 1
