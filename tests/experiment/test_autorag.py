"""AutoRAG's project folders: what AutoRAG stored in one is what the experiment file made of it measures."""

from __future__ import annotations

import re
import shutil
import warnings
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from groupgt.cli.main import main
from groupgt.errors import ConfigError, DataError, GroupgtWarning
from groupgt.report.run import run_experiment
from groupgt.results.autorag import METRICS, experiment_text, stored_means, survey
from tests.snapshots import Snapshot

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).parent / "autorag_project"
LEXICAL = PROJECT / "0" / "retrieve_node_line" / "lexical_retrieval"
SYSTEMS = {
    "0 hybrid_retrieval HybridRRF": 6,
    "0 hybrid_retrieval HybridCC": 6,
    "0 lexical_retrieval BM25 porter_stemmer": 6,
    "0 lexical_retrieval BM25 space": 6,
    "0 passage_filter ThresholdCutoff threshold 0.4": 2,
    "0 passage_filter ThresholdCutoff threshold 0.7": 2,
    "0 semantic_retrieval VectorDB": 6,
    "1 lexical_retrieval BM25": 4,
}


def evaluations(project: Path, folder: Path) -> Any:
    """What the experiment file made of a project measures, by the names of its systems."""
    file = folder / "experiment.yaml"
    file.write_text(experiment_text(survey(project), file), encoding="utf-8")
    (found,) = run_experiment(file, output=folder / "out").evaluations.values()
    return found


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A folder with the experiment file of `PROJECT`, and what it measures."""
    folder = tmp_path_factory.mktemp("measured")
    return folder, evaluations(PROJECT, folder)


def compare(project: Path, folder: Path) -> dict[str, int]:
    """Checks every mean that AutoRAG stored; how many there are for each system."""
    return agreed(project, evaluations(project, folder))


def agreed(project: Path, found: Any) -> dict[str, int]:
    stored = stored_means(survey(project))
    assert set(found) == set(stored)
    for system, means in stored.items():
        for metric, mean in means.items():
            assert found[system][metric] == pytest.approx(mean, rel=0, abs=1e-12), (system, metric)
    return {system: len(means) for system, means in stored.items()}


def make(folder: Path, groups: list[Any], nodes: dict[str, dict[str, Any]], *, summaries: bool = True) -> Path:
    """A small project: `nodes` maps TRIAL/NODE LINE/NODE/NUMBER to the ids, and any metrics, of that table."""
    (folder / "data").mkdir(parents=True)
    qids = [f"q{number}" for number in range(len(groups))]
    pl.DataFrame({"qid": qids, "query": qids, "retrieval_gt": groups}).write_parquet(folder / "data" / "qa.parquet")
    for name, columns in nodes.items():
        path = folder / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        own = {key: column for key, column in columns.items() if key not in ("module", "params")}
        pl.DataFrame(own).write_parquet(path)
        if summaries:
            summarize(path, columns.get("module", "bm25"), columns.get("params", {}), own)
    return folder


def summarize(path: Path, module: str, params: Any, columns: dict[str, Any]) -> None:
    """Adds a table's row to the summary.csv of its node, as AutoRAG names the metrics there."""
    prefix = "" if path.parent.name.endswith("retrieval") else f"{path.parent.name}_"
    counted = {key: [each for each in column if each is not None] for key, column in columns.items() if key in METRICS}
    means = {f"{prefix}{key}": sum(column) / len(column) for key, column in counted.items()}
    row = {"filename": path.name, "module_name": module, "module_params": str(params), "execution_time": 0.1, **means}
    summary = path.with_name("summary.csv")
    before = [pl.read_csv(summary, schema_overrides={"module_params": pl.String})] if summary.exists() else []
    pl.concat([*before, pl.DataFrame([row])], how="diagonal").write_csv(summary)


def test_every_mean_is_the_stored_one(measured: tuple[Path, Any]) -> None:
    assert agreed(PROJECT, measured[1]) == SYSTEMS


def test_every_question_has_its_stored_value(measured: tuple[Path, Any]) -> None:
    compared = 0
    folder, found_by_system = measured
    text = (folder / "experiment.yaml").read_text(encoding="utf-8")
    for system, evaluation in found_by_system.items():
        place = re.search(rf'# (\S+\.parquet): .*\n  "{re.escape(system)}":', text)
        assert place
        table = pl.read_parquet(PROJECT / place[1])
        for metric in set(METRICS) & set(table.columns):
            found, stored = evaluation.per_query[evaluation.text_of(metric)], table[metric]
            assert found.is_null().to_list() == stored.is_null().to_list()
            assert found.null_count() == 2  # the questions without an answer
            assert (found - stored).abs().max() <= 1e-12, (system, metric)
            compared += len(found)
    assert compared == 17 * sum(SYSTEMS.values())


def test_lists_with_repeated_passages_are_part_of_it() -> None:
    table = pl.read_parquet(PROJECT / "1" / "retrieve_node_line" / "lexical_retrieval" / "0.parquet")
    assert all(len(set(ids)) < len(ids) for ids in table["retrieved_ids"].to_list())


def test_the_file_says_where_everything_came_from(tmp_path: Path) -> None:
    text = experiment_text(survey(PROJECT), tmp_path / "experiment.yaml")
    assert "BM25, top_k 5, bm25_tokenizer porter_stemmer; AutoRAG's choice for this node" in text
    assert "# Left out: 1/pre_retrieve_node_line/query_expansion/0.parquet: it contains no retrieved ids" in text
    assert "# Left out: 1/retrieve_node_line/retrieval/0.parquet: a copy of another node's best table" in text
    assert "  policy: autorag\n" in text
    assert f"metrics: [{', '.join(METRICS)}]" in text


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    project = tmp_path / "my project"
    shutil.copytree(PROJECT, project)
    text = experiment_text(survey(project), project / "experiment.yaml")
    assert 'ground_truth: "data/qa.parquet"' in text
    assert 'path: "1/retrieve_node_line/lexical_retrieval/0.parquet"' in text
    assert 'corpus: "../my project/data/corpus.parquet"' in experiment_text(
        survey(project), tmp_path / "new" / "experiment.yaml"
    )
    nodes = {"0/line/retrieval/0": {"retrieved_ids": [["a"]], "retrieval_recall": [1.0]}}
    small = make(tmp_path / "a small one", [[["a"]]], nodes)
    assert compare(small, small) == {"0 retrieval bm25": 1}


def test_the_best_table_counts_once(tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(PROJECT, project)
    node = project / "1" / "retrieve_node_line" / "lexical_retrieval"
    shutil.copy(node / "0.parquet", node / "best_0.parquet")
    assert set(stored_means(survey(project))) == set(SYSTEMS)


def test_the_layout_of_early_versions(tmp_path: Path) -> None:
    nodes = {
        "0/line/retrieval/0": {"retrieved_ids": [["a", "x"], ["y", "b"]], "retrieval_recall": [0.5, 1.0]},
        "0/line/retrieval/1": {
            "module": "hybrid_cc",
            "params": {"target_modules": ("bm25", "vectordb"), "weight": 0.5},
            "retrieved_ids": [["a", "c"], ["y", "z"]],
            "retrieval_recall": [1.0, 0.0],
        },
        "0/line/passage_reranker/0": {
            "retrieved_ids": [["c"], ["b"]],
            "retrieval_recall": [0.5, 1.0],
            "module": "tart",
        },
    }
    project = make(tmp_path / "p", [[["a"], ["c"]], [["b"]]], nodes)
    assert compare(project, tmp_path) == {
        "0 passage_reranker tart": 1,
        "0 retrieval bm25": 1,
        "0 retrieval hybrid_cc": 1,
    }
    assert stored_means(survey(project))["0 passage_reranker tart"] == {"retrieval_recall": 0.75}


def test_questions_without_results_are_passed_over(tmp_path: Path) -> None:
    nodes = {"0/line/retrieval/0": {"retrieved_ids": [["a"], []], "retrieval_recall": [1.0, None]}}
    project = make(tmp_path / "p", [[["a"]], [["b"]]], nodes)
    assert compare(project, tmp_path) == {"0 retrieval bm25": 1}
    assert stored_means(survey(project)) == {"0 retrieval bm25": {"retrieval_recall": 1.0}}


def test_questions_without_results_were_0_in_early_versions(tmp_path: Path, snapshot: Snapshot) -> None:
    nodes = {"0/line/retrieval/0": {"retrieved_ids": [["a"], []], "retrieval_recall": [1.0, 0.0]}}
    project = make(tmp_path / "p", [[["a"]], [["b"]]], nodes)
    assert compare(project, tmp_path) == {"0 retrieval bm25": 1}
    snapshot((tmp_path / "experiment.yaml").read_text(encoding="utf-8"))


def test_what_cannot_agree_is_said(tmp_path: Path) -> None:
    # AutoRAG gives the first question no value for its empty group; the others are as in an early version.
    nodes = {"0/line/retrieval/0": {"retrieved_ids": [["a"], ["b"], ["c"]], "retrieval_recall": [None, 1.0, 0.0]}}
    project = make(tmp_path / "p", [[["a"], []], [["b"]], [[]]], nodes)
    with pytest.warns(GroupgtWarning) as told:
        text = experiment_text(survey(project), tmp_path / "experiment.yaml")
    assert [str(each.message) for each in told] == [
        "AutoRAG skips queries with an empty group or a blank id; groupgt scores the rest",
        "0 retrieval bm25: AutoRAG averages over 2 queries, groupgt over 2, so the means cannot agree "
        "(they differ in q0, q2)",
    ]
    assert all(f"# Beware: {each.message}" in text for each in told)
    assert "policy: {preset: autorag, empty_groups: drop}" in text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert evaluations(project, tmp_path)["0 retrieval bm25"]["recall"] == 1.0


def test_flat_ground_truth_is_one_group(tmp_path: Path) -> None:
    nodes = {"0/line/retrieval/0": {"retrieved_ids": [["b"]], "retrieval_recall": [0.5]}}
    project = make(tmp_path / "p", [["a", "b"]], nodes)
    assert "policy: autorag\n" in experiment_text(survey(project), tmp_path / "experiment.yaml")


def test_a_trial_that_was_stopped(tmp_path: Path) -> None:
    nodes = {
        "0/line/retrieval/0": {"retrieved_ids": [["a"]], "retrieval_mrr": [1.0], "retrieval_recall": [1.0]},
        "0/line/retrieval/1": {"retrieved_ids": [["b"]]},
    }
    project = make(tmp_path / "p", [[["a"]]], nodes, summaries=False)
    assert compare(project, tmp_path) == {"0 retrieval file 0": 2, "0 retrieval file 1": 0}
    assert "metrics: [retrieval_mrr, retrieval_recall]\n  primary: retrieval_mrr" in (
        tmp_path / "experiment.yaml"
    ).read_text(encoding="utf-8")


def test_names_are_readable_and_unique(tmp_path: Path) -> None:
    ids = {"retrieved_ids": [["a"]], "retrieval_recall": [1.0]}
    nodes = {
        "0/line/retrieval/0": {**ids, "params": {"tokenizer": "한국어", "top_k": 3}},
        "0/line/retrieval/1": {**ids, "params": {"tokenizer": "日本語", "top_k": 3}},
        "0/line/retrieval/2": {**ids, "params": {"tokenizer": "x" * 200, "top_k": 3}},
        "0/line/retrieval/3": {**ids, "params": {"tokenizer": "x" * 201, "top_k": 3}},
        "0/one/passage_filter/0": {**ids, "module": "RecencyFilter", "params": "{'t': datetime.date(2024, 1, 1)}"},
        "0/one/passage_filter/1": {**ids, "module": "RecencyFilter", "params": "{'t': np.float64(0.5)}"},
        "0/two/passage_filter/0": {**ids, "module": "RecencyFilter", "params": "no mapping"},
        "10/line/retrieval/0": ids,
        "9/line/retrieval/0": ids,
    }
    project = make(tmp_path / "p", [[["a"]]], nodes)
    names = list(stored_means(survey(project)))
    assert len(set(names)) == len(nodes)
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 _.+-]{0,99}", name) for name in names)
    assert names[-2:] == ["9 retrieval bm25", "10 retrieval bm25"]
    assert "0 one passage_filter RecencyFilter t 0.5" in names
    assert "0 one passage_filter RecencyFilter t 2024- 1- 1" in names
    assert "0 two passage_filter RecencyFilter" in names
    assert compare(project, tmp_path) == dict.fromkeys(names, 1)


def test_a_summary_of_another_run_is_told(tmp_path: Path, snapshot: Snapshot) -> None:
    project = tmp_path / "project"
    shutil.copytree(PROJECT, project)
    stored = stored_means(survey(PROJECT))
    for node, system in (
        ("lexical_retrieval", "0 lexical_retrieval BM25 space"),
        ("passage_filter", "0 passage_filter ThresholdCutoff threshold 0.7"),
    ):
        path = project / "0" / "retrieve_node_line" / node / "summary.csv"
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(str(stored[system]["retrieval_recall"]), "0.123"), encoding="utf-8")
    with snapshot.raises(DataError) as raised:
        stored_means(survey(project))
    assert raised.value.total == 2


def test_a_folder_that_is_no_project(tmp_path: Path, snapshot: Snapshot) -> None:
    with snapshot.raises(ConfigError):
        experiment_text(survey(tmp_path), tmp_path / "experiment.yaml")
    with pytest.raises(ConfigError, match=re.escape(f"its project is {PROJECT}")):
        stored_means(survey(PROJECT / "0"))


def test_a_project_without_results(tmp_path: Path, snapshot: Snapshot) -> None:
    project = make(tmp_path / "p", [[["a"]]], {"0/line/query_expansion/0": {"queries": [["a"]]}})
    with snapshot.raises(ConfigError):
        experiment_text(survey(project), tmp_path / "experiment.yaml")


def test_everything_wrong_is_told_at_once(tmp_path: Path) -> None:
    nodes = {
        "0/line/retrieval/0": {"retrieved_ids": [["a"]]},
        "0/line/retrieval/1": {"retrieved_ids": [["a"], ["b"]]},
        "0/line/retrieval/2": {"retrieved_ids": [["a"], [""]], "retrieval_recall": ["high", "low"]},
        "0/line/passage_filter/0": {"retrieved_ids": [["a"], ["b"]], "retrieval_recall": [[1.0], [0.0]]},
    }
    project = make(tmp_path / "p", [[["a"]], [["b"]]], nodes, summaries=False)
    (project / "0" / "line" / "retrieval" / "1.parquet").write_bytes(b"PAR1 cut off")
    (project / "0" / "line" / "retrieval" / "summary.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(DataError) as raised:
        experiment_text(survey(project), tmp_path / "experiment.yaml")
    told = str(raised.value)
    for part in (
        "expected numbers in retrieval_recall, found other data",
        "a `filename` column",
        "expected 2 rows, found 1",
        "damaged or cut off",
        "at rank 1 is",
    ):
        assert part in told, told
    (project / "data" / "qa.parquet").write_bytes(b"nothing")
    with pytest.raises(DataError, match="expected a parquet file"):
        stored_means(survey(project))


def test_a_project_becomes_an_experiment_by_init(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot
) -> None:
    main(["init", str(tmp_path / "moved"), "--from-autorag", str(PROJECT)])
    said = capsys.readouterr().err
    file = tmp_path / "moved" / "experiment.yaml"
    main(["convert", str(PROJECT), str(tmp_path / "moved" / "other.yaml"), "--to", "experiment"])
    assert file.read_text(encoding="utf-8") == (tmp_path / "moved" / "other.yaml").read_text(encoding="utf-8")
    assert re.search(r"(\d+) of \1 means stored by AutoRAG are reproduced", said)
    snapshot(said)
    with pytest.raises(SystemExit) as end:
        main(["init", str(tmp_path / "moved"), "--from-autorag", str(PROJECT)])
    assert end.value.code == 2
    snapshot(capsys.readouterr().err)
