"""Real questions with figures computed by other tools' own code, from the folder named in GROUPGT_EXTRA_DATA."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import groupgt
from tests.experiment.test_agents import locomo_values

FOLDER = os.environ.get("GROUPGT_EXTRA_DATA")
SETS = sorted(path.parent for path in Path(FOLDER).glob("*/golden.json")) if FOLDER else []

# trec_eval's own tests: its folder `test`, of a release from 9.0.8 on.
TREC_EVAL = Path(FOLDER or ".", "trec_eval", "test")

# The judgments of TREC-COVID's last round, two of its topics with negative grades, and runs as submitted.
COVID = Path(FOLDER or ".", "trec_covid_r5")

pytestmark = pytest.mark.extra_data

NDEVAL = {
    "ERR-IA": "err_ia", "nERR-IA": "nerr_ia", "alpha-DCG": "alpha_dcg", "alpha-nDCG": "alpha_ndcg", "NRBP": "nrbp",
    "nNRBP": "nnrbp", "MAP-IA": "map_ia", "P-IA": "p_ia", "strec": "recall.coverage",
}  # fmt: skip
WITH_ALPHA = {"err_ia", "nerr_ia", "alpha_dcg", "alpha_ndcg", "nrbp", "nnrbp"}


def ours(golden: dict) -> dict[str, dict[str, float]]:  # type: ignore[type-arg]
    """Each of our metrics by its text, and the other tool's value for each query."""
    found: dict[str, dict[str, float]] = {}
    for k, own in golden["autorag"].items():
        for name, values in own.items():
            found[f"{name}@{k}"] = values
    for k, own in golden["autorag_research"].items():
        found[f"novelty_ndcg@{k}"] = own["retrieval_ndcg"]
        found[f"complete@{k}"] = own["retrieval_full_recall"]
    flat = golden["pytrec_eval_on_flattened_groups"]
    for name in next(iter(flat.values())):
        if not name.startswith(("num_", "set_", "gm_")):
            text = {"map": "map.trec", "ndcg": "ndcg.trec"}.get(name, name)
            found[text] = {qid: own[name] for qid, own in flat.items()}
    for alpha in ("0.5", "0.0", "1.0"):
        table = golden[f"pyndeval_alpha{alpha}"]
        for measure in next(iter(table.values())):
            name, _, k = measure.partition("@")
            # At k = 1 ndeval leaves these two without their normalizer.
            if not (k == "1" and name in ("ERR-IA", "alpha-DCG")):
                metric = (
                    NDEVAL[name] + (f"(alpha={alpha})" if NDEVAL[name] in WITH_ALPHA else "") + (f"@{k}" if k else "")
                )
                found[metric] = {qid: own[measure] for qid, own in table.items()}
    return found


@pytest.mark.skipif(
    not FOLDER or not (TREC_EVAL / "out.comment.test").is_file(),
    reason="GROUPGT_EXTRA_DATA names no folder with trec_eval/test/out.comment.test",
)
def test_trec_eval_on_its_own_files_with_comments() -> None:
    """One of 31 topics has no relevant document: map is .2689 with it, .2779 without."""
    rows = [line.split() for line in (TREC_EVAL / "out.comment.test").read_text().splitlines()]
    printed = {name: float(value) for name, topic, value in rows if topic == "all" and name != "runid"}
    names = {name: {"map": "map.trec"}.get(name, name) for name in printed if name.startswith(("map", "P_", "bpref"))}
    names |= {"recip_rank": "recip_rank", "Rprec": "Rprec"}
    files = TREC_EVAL / "qrels.comment.test", TREC_EVAL / "results.comment.test"
    result = groupgt.evaluate(*files, list(names.values()), policy="trec")
    assert result.counts["evaluated"] == printed["num_q"]
    for name, metric in names.items():
        assert result[metric] == pytest.approx(printed[name], abs=5.1e-5), name
    assert printed["map"] == 0.2689


@pytest.fixture
def covid() -> Path:
    if not FOLDER or not (COVID / "qrels.txt.gz").is_file():
        pytest.skip("GROUPGT_EXTRA_DATA names no folder with trec_covid_r5/qrels.txt.gz")
    return COVID


def rows_of(path: Path) -> list[list[str]]:
    return [line.split() for line in gzip.decompress(path.read_bytes()).decode().splitlines()]


def test_condensed_runs_of_trec_covid(covid: Path) -> None:
    """unjudged=drop is trec_eval's -J, which drops documents with a negative grade as well."""
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval is in the extra groupgt[peers]")
    judged: dict[str, dict[str, int]] = defaultdict(dict)
    for topic, _, document, grade in rows_of(covid / "qrels.txt.gz"):
        judged[topic][document] = int(grade)
    assert sum(min(own.values()) < 0 for own in judged.values()) == 2
    asked = {
        "P.5,10,20",
        "recall.5,100",
        "ndcg_cut.10,20",
        "map",
        "recip_rank",
        "Rprec",
        "bpref",
        "num_ret",
        "success.1",
    }
    for path in sorted(covid.glob("*.gz")):
        if path.name == "qrels.txt.gz":
            continue
        run: dict[str, dict[str, float]] = defaultdict(dict)
        for topic, _, document, _, score, _ in rows_of(path):
            run[topic][document] = float(score)
        evaluator = pytrec_eval.RelevanceEvaluator(dict(judged), asked, judged_docs_only_flag=True)
        theirs = evaluator.evaluate(dict(run))
        names = {name: {"map": "map.trec"}.get(name, name) for name in next(iter(theirs.values()))}
        ours = groupgt.evaluate(covid / "qrels.txt.gz", path, list(names.values()), policy="unjudged=drop")
        for name, metric in names.items():
            expected = [theirs[topic][name] for topic in ours.truth.qids]
            assert ours.values[metric].tolist() == pytest.approx(expected, abs=1e-9), (path.name, name)


def test_published_rbp_of_trec_covid(covid: Path) -> None:
    """The track reports rbp_p5 .8657 for UIowaS_Run1: grades 2 and 1 count 1 and 1/2, and p is .5."""
    files = covid / "qrels.txt.gz", covid / "UIowaS_Run1.gz"
    assert round(groupgt.evaluate(*files, ["rbp(graded=True, p=0.5)"])["rbp(graded=True, p=0.5)"], 4) == 0.8657
    matches = groupgt.identify(*files, ".8657").matches
    assert "rbp(graded=True, p=0.5)" in [text for match in matches for text in (match.metric, *match.also)]


@pytest.mark.skipif(not SETS, reason="GROUPGT_EXTRA_DATA names no folder with data")
@pytest.mark.parametrize("folder", SETS, ids=lambda path: path.name)
@pytest.mark.parametrize("small", [1 << 30, 0], ids=["lists", "columns"])
@pytest.mark.parametrize("shuffled", [False, True], ids=["sorted", "shuffled"])
def test_golden(folder: Path, small: int, shuffled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groupgt.formats.source.SMALL", small)
    run = folder / "bm25.run"
    if shuffled:
        lines = run.read_text().splitlines(keepends=True)
        random.Random(1).shuffle(lines)
        run = tmp_path / "bm25.run"
        run.write_text("".join(lines))
    expected = ours(json.loads((folder / "golden.json").read_text()))
    result = groupgt.evaluate(folder / "qa.jsonl", run, list(expected))
    for text, values in expected.items():
        found = dict(zip(result.truth.qids, result.values[text].tolist()))
        worst = max(abs(found[qid] - value) for qid, value in values.items())
        assert worst <= 1e-9, text


PUBLISHED = Path(FOLDER or "", "published")


def _of_parts(parts: list[Any]) -> Iterator[str]:
    for part in parts:
        if part["evidence"]:
            yield str(part["evidence"]["pageid"])
        yield from _of_parts(part["decomposition"])


def _published(name: str, records: list[Any]) -> dict[str, list[str]]:
    """What a loop over a published file makes of it: the documents of each query, each a group of its own."""
    if name == "locomo":
        return {
            f"{record['sample_id']}:{number}": []
            if question["category"] == 5
            else [
                f"{record['sample_id']}:{turn}"
                for text in question["evidence"]
                for turn in re.findall(r"D[\d:]*", text)
            ]
            for record in records
            for number, question in enumerate(record["qa"])
        }
    if name == "fanoutqa":
        return {record["id"]: list(_of_parts(record["decomposition"])) for record in records}
    return {record["uid"]: [f"{record['doc_path']}/{page}" for page in record["reference_page"]] for record in records}


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="GROUPGT_EXTRA_DATA names no folder with published")
@pytest.mark.parametrize("name", ["locomo", "fanoutqa", "double-bench"])
def test_published_sets_are_read_as_a_loop_reads_them(name: str) -> None:
    path = next(PUBLISHED.glob(f"{name}-*.json"))
    expected = _published(name, json.loads(path.read_text(encoding="utf-8")))
    groups = {qid: [[document] for document in dict.fromkeys(own)] for qid, own in expected.items()}
    assert dict(groupgt.read_ground_truth(path).items()) == groups


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="GROUPGT_EXTRA_DATA names no folder with published")
def test_recall_of_locomo_is_that_of_its_formula() -> None:
    values, expected = locomo_values(next(PUBLISHED.glob("locomo-*.json")), seed=1, k=10)
    assert len(expected) > 100
    assert values == pytest.approx(expected, abs=1e-12)
