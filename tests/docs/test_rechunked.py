"""A corpus cut three ways under one ground truth: what survives, and what the same truth by ids is worth."""

from __future__ import annotations

import csv
import json
import runpy
import shutil
from pathlib import Path

import numpy as np
import pytest

import groupgt
from groupgt.experiment.outcome import Outcome
from tests.docs import tables
from tests.snapshots import Snapshot

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "rechunked"
CUTS = ("fixed", "sentences", "pages")
QUESTIONS = ROOT / "examples" / "handbook" / "questions.jsonl"


@pytest.fixture(scope="session")
def three_chunkings(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """What `configs/rechunk.yaml` gives."""
    return tables.run("rechunk", tmp_path_factory.mktemp("chunkings"))


def rows(name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def test_the_script_makes_the_files_that_are_there(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "handbook", tmp_path / "handbook")
    (tmp_path / "rechunked").mkdir()
    shutil.copy(FOLDER / "make.py", tmp_path / "rechunked")
    runpy.run_path(str(tmp_path / "rechunked" / "make.py"), run_name="__main__")
    for name in ("articles.csv", *(f"{cut}.jsonl" for cut in CUTS)):
        assert (tmp_path / "rechunked" / name).read_bytes() == (FOLDER / name).read_bytes()


def test_the_questions_are_those_of_the_handbook_with_places_for_ids() -> None:
    found = groupgt.rechunk(QUESTIONS, FOLDER / "articles.csv").truth
    shipped = groupgt.read_ground_truth(FOLDER / "questions.jsonl")
    assert found.digest == shipped.digest
    assert (found.qids, found.texts, found.columns) == (shipped.qids, shipped.texts, shipped.columns)


def test_every_chunk_says_where_it_is_from() -> None:
    with (FOLDER / "articles.csv").open(encoding="utf-8") as file:
        places = {row["chunk_id"]: row for row in csv.DictReader(file)}
    lines = (QUESTIONS.parent / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    articles = {row["doc_id"]: row for row in map(json.loads, lines)}
    assert set(places) == set(articles)
    for cut in CUTS:
        texts: dict[str, dict[int, str]] = {}
        for row in rows(cut):
            own, start = texts.setdefault(str(row["doc"]), {}), int(str(row["start"]))
            assert len(str(row["contents"])) == int(str(row["end"])) - start
            # Where chunks overlap they say the same.
            assert all(own.setdefault(start + at, letter) == letter for at, letter in enumerate(str(row["contents"])))
        for name, place in places.items():
            text = "".join(texts[place["doc_id"]][at] for at in range(int(place["start"]), int(place["end"])))
            assert text == f"{articles[name]['title']}\n{articles[name]['contents']}"


def test_the_readme_counts_are_right() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    for cut in CUTS:
        assert f"`{cut}.jsonl` | {len(rows(cut))} chunks" in text


@pytest.mark.slow
def test_one_truth_serves_three_chunkings(three_chunkings: Outcome) -> None:
    truths = {name: found["bm25"].truth.digest for name, found in three_chunkings.evaluations.items()}
    assert len(set(truths.values())) == 1
    for found in three_chunkings.evaluations.values():
        assert found["bm25"].counts["evaluated"] == 138
        assert all(0.3 < mean < 1 for mean in found["bm25"].means.values())


def test_the_same_truth_by_ids_is_refused(tmp_path: Path) -> None:
    truths = [f"datasets.{cut}.ground_truth=../examples/handbook/questions.jsonl" for cut in CUTS]
    with pytest.raises(groupgt.DataError, match="none of the 160 ids in the ground truth is in the corpus") as error:
        tables.run("rechunk", tmp_path, "evaluate.labeller=id", *truths)
    assert all(f"dataset '{cut}'" in str(error.value) for cut in CUTS)


def test_that_it_finds_nothing_is_said(snapshot: Snapshot) -> None:
    chunks = [str(row["doc_id"]) for row in rows("fixed")]
    truth = groupgt.read_ground_truth(QUESTIONS)
    with snapshot.warns(groupgt.GroupgtWarning):
        groupgt.evaluate(truth, dict.fromkeys(truth.qids, chunks), ["recall"])


@pytest.mark.slow
def test_ids_with_the_table_of_what_was_judged_are_worth_the_same(tmp_path: Path, three_chunkings: Outcome) -> None:
    """No ground truth edited at all: `reference` says where the judged articles stand."""
    ids = [f"datasets.{cut}.ground_truth=../examples/handbook/questions.jsonl" for cut in CUTS]
    options = "{use: spans, with: {joint: true, reference: ../examples/rechunked/articles.csv}}"
    expected, found = three_chunkings, tables.run("rechunk", tmp_path, f"evaluate.labeller={options}", *ids)
    for cut in CUTS:
        first, second = expected.evaluations[cut]["bm25"], found.evaluations[cut]["bm25"]
        for text in first.values:
            assert np.array_equal(first.values[text], second.values[text], equal_nan=True)


def test_carrying_ids_over_loses_what_smaller_chunks_split() -> None:
    articles, sentences = FOLDER / "articles.csv", FOLDER / "sentences.jsonl"
    with pytest.raises(groupgt.DataError, match="query 'h003': group 1 would be lost"):
        groupgt.rechunk(QUESTIONS, articles, sentences)
    found = groupgt.rechunk(QUESTIONS, articles, sentences, drop_lost=True)
    assert len(found.truth) + len(found.dropped) == 148
    assert not set(found.dropped) & set(found.truth.qids)
    assert found.counts()["lost"] == len(found.lost) > 0
    assert groupgt.rechunk(QUESTIONS, articles, FOLDER / "pages.jsonl").lost == []
