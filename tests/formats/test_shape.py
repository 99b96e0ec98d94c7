"""The shape of ground truth: where it comes from, that it is kept, and which convention it is the default of."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import groupgt
from groupgt.cli.main import main
from groupgt.formats.write import TRUTH_WRITERS, write_ground_truth
from groupgt.metrics.base import OF_SHAPE
from groupgt.model.written import SHAPES, Shape

GROUPS = {"q1": [["a", "b"], ["c"]], "q2": [["d"]]}
FLAT = {"q1": [["a"], ["b"], ["c"]], "q2": [["d"]]}
RUN = {"q1": ["c", "x", "a", "b"], "q2": ["x", "d"]}
METRICS = ["precision@2", "recall@3", "mrr", "map", "ndcg@3"]


def truth_of(shape: Shape) -> groupgt.GroundTruth:
    return groupgt.GroundTruth.of(FLAT if shape == "flat" else GROUPS, shape=shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_auto_is_the_convention_of_the_shape(shape: Shape) -> None:
    truth = truth_of(shape)
    auto = groupgt.evaluate(truth, RUN, METRICS)
    named = groupgt.evaluate(truth, RUN, METRICS, convention=OF_SHAPE[shape])
    assert auto.means == named.means
    assert (auto.convention, auto.is_auto, named.is_auto) == (OF_SHAPE[shape], True, False)
    assert [str(metric) for metric in auto.metrics.values()] == [str(metric) for metric in named.metrics.values()]
    words = {"flat": "flat qrels", "subtopics": "subtopics", "groups": "groups"}[shape]
    assert f"convention {OF_SHAPE[shape]} ({words}); 2 queries" in auto.text()
    assert f"convention {OF_SHAPE[shape]}; 2 queries" in named.text()
    # A metric that names a convention keeps it.
    own = groupgt.evaluate(truth, RUN, ["mrr.coverage"])
    assert own.means == groupgt.evaluate(truth, RUN, ["mrr.coverage"], convention="trec").means


@pytest.mark.parametrize("format", sorted(TRUTH_WRITERS))
@pytest.mark.parametrize("shape", SHAPES)
def test_naming_no_convention_gives_the_same_bits_before_and_after_convert(
    tmp_path: Path, format: str, shape: Shape
) -> None:
    check_convert(tmp_path, format, truth_of(shape))


IDS = st.sampled_from("abcdef")
ANY_GROUPS = st.lists(st.lists(IDS, min_size=1, max_size=3, unique=True), min_size=1, max_size=3)


@pytest.mark.property
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    groups=st.dictionaries(st.sampled_from(["q1", "q2", "q3"]), ANY_GROUPS, min_size=1),
    shape=st.sampled_from(SHAPES),
    format=st.sampled_from(sorted(TRUTH_WRITERS)),
)
def test_convert_keeps_the_default_of_any_truth(
    tmp_path: Path, groups: dict[str, list[list[str]]], shape: Shape, format: str
) -> None:
    if shape == "flat":
        groups = {qid: [[name] for name in dict.fromkeys(chain.from_iterable(each))] for qid, each in groups.items()}
    folder = tmp_path / str(len(list(tmp_path.iterdir())))
    folder.mkdir()
    check_convert(folder, format, groupgt.GroundTruth.of(groups, shape=shape))


def check_convert(folder: Path, format: str, truth: groupgt.GroundTruth) -> None:
    """The same bits, or a refusal with the option that says what the format would be read as."""
    write_ground_truth(folder / "first.jsonl", truth, "jsonl")
    out = folder / "out"
    run = {"q1": ["c", "x", "a", "b"], "q2": ["x", "d"], "q3": ["f", "a"]}
    before = groupgt.evaluate(folder / "first.jsonl", run, METRICS)
    try:
        main(["convert", str(folder / "first.jsonl"), str(out), "--to", format])
    except SystemExit as ended:
        assert ended.code == 2  # noqa: PT017
        assert not out.exists()
        kept = TRUTH_WRITERS[format].shape
        assert (kept not in (None, truth.shape)) or format in ("beir", "trec", "trec-subtopics", "nuggetbank")
        return
    after = groupgt.evaluate(out, run, METRICS, truth_format="csv" if format == "tsv" else format)
    assert after.convention == before.convention
    assert after.truth.qids == before.truth.qids
    for text in METRICS:
        np.testing.assert_array_equal(before.values[text], after.values[text])


@pytest.mark.parametrize(
    ("shape", "format", "option"),
    [("groups", "trec", "flat"), ("groups", "trec-subtopics", "subtopics"), ("flat", "nuggetbank", "subtopics")],
)
def test_what_a_format_would_be_read_as_has_to_be_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shape: Shape, format: str, option: str
) -> None:
    truth = groupgt.GroundTruth.of(FLAT, shape=shape)
    write_ground_truth(tmp_path / "t.jsonl", truth, "jsonl")
    command = ["convert", str(tmp_path / "t.jsonl"), str(tmp_path / "out"), "--to", format]
    with pytest.raises(SystemExit):
        main(command)
    assert f"read back as {option}, but this ground truth is {shape}" in capsys.readouterr().err
    main([*command, "--shape", option])
    assert groupgt.read_ground_truth(tmp_path / "out", format).shape == option


def test_alternatives_are_not_flat(tmp_path: Path) -> None:
    with pytest.raises(groupgt.DataError, match="query 'q1': expected single documents"):
        groupgt.GroundTruth.of(GROUPS, shape="flat")


ROWS = {"qid": ["q1", "q1", "q2"], "doc_id": ["a", "b", "d"], "grade": [1, 2, 1]}
SOURCES: list[tuple[str, str, Shape]] = [
    ("t.qrels", "q1 0 a 1\nq1 0 b 2\nq2 0 d 1\n", "flat"),
    ("t.csv", "qid,doc_id,grade\nq1,a,1\nq1,b,2\n", "flat"),
    ("t.csv", "qid,group,doc_id,grade\nq1,1,a,1\nq1,1,b,2\n", "subtopics"),
    ("t.json", '{"q1": {"a": 1, "b": 2}}', "flat"),
    ("t.json", '{"q1": [["a", "b"]]}', "groups"),
    ("t.jsonl", '{"qid": "q1", "retrieval_gt": [["a"]]}\n', "groups"),
    ("t.jsonl", '{"qid": "q1", "retrieval_gt": [["a"]], "gt_shape": "subtopics"}\n', "subtopics"),
]


@pytest.mark.parametrize(("name", "text", "shape"), SOURCES)
def test_where_a_shape_comes_from(tmp_path: Path, name: str, text: str, shape: Shape) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    truth = groupgt.read_ground_truth(tmp_path / name)
    assert truth.shape == shape
    assert truth.select([0]).shape == shape


def test_frames_say_their_shape_by_their_columns() -> None:
    frame = pl.DataFrame(ROWS)
    assert groupgt.read_ground_truth(frame).shape == "flat"
    assert groupgt.read_ground_truth(frame)["q1"] == [["a"], [{"id": "b", "grade": 2}]]
    assert groupgt.read_ground_truth(frame.with_columns(group=pl.lit("1"))).shape == "subtopics"
    assert groupgt.read_ground_truth(pl.DataFrame({"qid": ["q"], "retrieval_gt": [[["a"]]]})).shape == "groups"


def test_frames_of_pandas_too() -> None:
    pandas = pytest.importorskip("pandas", reason="the extra groupgt[frames] is not installed")
    assert groupgt.read_ground_truth(pandas.DataFrame(ROWS)).shape == "flat"


def test_a_shape_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"qid": "q1", "retrieval_gt": [["a"]], "gt_shape": "round"}\n')
    with pytest.raises(groupgt.DataError, match="expected flat, subtopics or groups as gt_shape"):
        groupgt.read_ground_truth(tmp_path / "t.jsonl")


def test_two_conventions_in_one_table_are_said() -> None:
    text = groupgt.evaluate(truth_of("groups"), RUN, ["map", "P_10", "ndcg_cut_10"]).text()
    assert "convention trec: P_10, ndcg_cut_10" in text


EXPERIMENT = """
version: 1
name: shapes
datasets: {{one: {{ground_truth: {0}}}, two: {{ground_truth: {1}}}}}
systems: {{stored: {{use: results, with: {{path: run.jsonl}}}}}}
evaluate: {{metrics: [mrr]}}
output: {{formats: [json]}}
"""


def test_experiments(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("q1 0 a 1\nq1 0 c 1\nq2 0 d 1\n")
    write_ground_truth(tmp_path / "t.jsonl", truth_of("groups"), "jsonl")
    rows = [{"qid": qid, "retrieved_ids": ids} for qid, ids in RUN.items()]
    (tmp_path / "run.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    file = tmp_path / "e.yaml"
    file.write_text(EXPERIMENT.format("qrels", "t.jsonl"))
    with pytest.raises(
        groupgt.ConfigError,
        match=r"one \(flat\), two \(groups\); choose one convention, such as `convention: coverage`",
    ):
        groupgt.run_experiment(file)
    file.write_text(EXPERIMENT.format("qrels", "qrels"))
    outcome = groupgt.run_experiment(file)
    # The first relevant document of q1 is at rank 1, that of q2 at rank 2.
    assert outcome.evaluations["one"]["stored"].means == {"mrr.trec": 0.75}
    assert "convention trec (flat qrels)" in outcome.text()
    assert outcome.folder is not None
    manifest = json.loads((outcome.folder / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["config"]["convention"], manifest["convention"]) == ("auto", "trec")
    main(["evaluate", str(outcome.folder), "--dataset", "one", "-m", "mrr"])
