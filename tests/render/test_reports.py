"""Where pages and figures are asked for: in Python, on the command line, and by an experiment."""

from __future__ import annotations

import json
import shutil
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import groupgt
from groupgt.cli.main import cli
from groupgt.experiment.outcome import Outcome
from groupgt.render.document import Verdict, sentence_text
from groupgt.render.page.page import SCRIPTS, page_bytes
from groupgt.render.tables import minus
from groupgt.report.decision import decisions
from groupgt.report.experiment import items, page_of
from groupgt.report.gates import kind
from tests.render.test_page import Reader, read, value

pytestmark = pytest.mark.slow

ROOT = Path(groupgt.__file__).parent.parent
TRUTH = {f"q{number}": [["a", "b"], [f"c{number}"]] for number in range(12)}
HALF = {qid: ["a", "x"] for qid in TRUTH}
WHOLE = {qid: ["b", f"c{qid[1:]}"] for qid in TRUTH}


def page_at(path: Path) -> Reader:
    reader = read(path.read_bytes())
    assert len(reader.scripts) == len(SCRIPTS)
    return reader


def test_an_evaluation_writes_its_page_and_draws_itself(tmp_path: Path) -> None:
    evaluation = groupgt.evaluate(TRUTH, HALF, ["recall@2"], convention="coverage", name="half")
    evaluation.to_html(tmp_path / "page.html", corpus={"a": "what a says"})
    reader = page_at(tmp_path / "page.html")
    shown = value(reader, "page")["datasets"][0]
    assert [system["means"] for system in shown["systems"]] == [[0.5]]
    assert shown["standings"]["rows"][0]["cells"]["complete"] == "0/12"
    assert [each["qid"] for each in shown["first"]["queries"]] == list(TRUTH)[:3]
    assert value(reader, "passages-0-0") == {"a": "what a says"}
    assert evaluation.plot("depth").name == "depth"
    with pytest.raises(groupgt.ConfigError, match="unknown figure 'dept'"):
        evaluation.plot("dept")


def test_a_comparison_writes_its_page_and_draws_itself(tmp_path: Path) -> None:
    runs = {"half": HALF, "whole": WHOLE}
    table = groupgt.compare(TRUTH, runs, ["recall@2", "mrr"], convention="coverage", resamples=200)
    table.to_html(tmp_path / "page.html")
    shown = value(page_at(tmp_path / "page.html"), "page")["datasets"][0]
    assert shown["decision"]["sentence"][1] == "whole"
    first, second, metric, within, delta, *_ = shown["contrasts"]["rows"][0]
    assert (first, second, metric, within, delta) == (1, 0, 0, -1, 0.5)
    assert table.plot().text.startswith("whole against half by recall@2, query by query: 12 better, 0 worse")
    assert table.plot("means", metric="mrr").spec["title"]["subtitle"][0].startswith("mrr")


def test_commands_write_pages(tmp_path: Path) -> None:
    folder = ROOT / "examples" / "first"
    truth, runs = folder / "truth.jsonl", [folder / "bm25.trec", folder / "dense.jsonl"]
    for command in ("evaluate", "compare"):
        page = tmp_path / f"{command}.html"
        arguments = [command, *map(str, (truth, *runs)), "-m", "recall@5", "--html", str(page)]
        done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        names = [system["name"] for system in value(page_at(page), "page")["datasets"][0]["systems"]]
        assert names == ["bm25", "dense"]
    with pytest.raises(groupgt.ConfigError, match="found no folder"):
        CliRunner().invoke(
            cli,
            ["evaluate", str(truth), str(runs[0]), "--html", str(tmp_path / "none" / "a.html")],
            catch_exceptions=False,
        )


def test_an_experiment_writes_a_report(handbook: Outcome) -> None:
    assert handbook.folder is not None
    reader = page_at(handbook.folder / "report.html")
    shown = value(reader, "page")
    assert shown["title"] == "gate"
    assert [system["name"] for system in shown["datasets"][0]["systems"]] == list(handbook.evaluations["handbook"])
    assert len(shown["datasets"][0]["gates"]) == 4
    assert value(reader, "times")["systems"]["handbook"].keys() == {"released", "candidate"}


@pytest.mark.parametrize("rule", ["{strategy: rank}", "{max_latency_ms: 60000}"])
def test_the_report_says_what_the_terminal_says(tmp_path: Path, rule: str) -> None:
    truth = {"qid": "q", "query": "ferry", "retrieval_gt": [["a"], ["gone"]]}
    (tmp_path / "qa.jsonl").write_text(json.dumps(truth) + "\n", encoding="utf-8")
    (tmp_path / "corpus.jsonl").write_text('{"doc_id": "a", "contents": "ferry"}\n', encoding="utf-8")
    (tmp_path / "experiment.yaml").write_text(
        "version: 1\nname: said\nconvention: coverage\n"
        "datasets: {one: {ground_truth: qa.jsonl, corpus: corpus.jsonl}}\n"
        "systems: {first: bm25, second: {use: bm25, with: {k1: 0.9}}}\n"
        f"evaluate: {{metrics: [recall@2, mrr], primary: recall@2, best: {rule}}}\n"
        "compare: {baseline: first}\n"
        "gate: [{system: first, metric: recall@2, min: 0.9}, {system: first, metric: latency_p95_ms, max: 60000}]\n"
    )
    with pytest.warns(groupgt.GroupgtWarning, match="not in the corpus"):
        outcome = groupgt.run_experiment(tmp_path / "experiment.yaml")
    assert outcome.folder is not None
    reader = page_at(outcome.folder / "report.html")
    decision = decisions(outcome)["one"]
    on_page = value(reader, "page")["datasets"][0]
    assert on_page["decision"] == decision.page
    assert [gate["kind"] for gate in on_page["gates"]] == [kind(gate) for gate in outcome.gates if not gate.timed]
    sentences = [*on_page["notes"], *value(reader, "times")["verdict"]["one"]]
    shown = [item.sentences for item in items(outcome, timed=True) if isinstance(item, Verdict)]
    assert sorted(map(sentence_text, sentences)) == sorted(minus(sentence_text(each)) for each in chain(*shown))
    assert sentences


SECRET = "s3cr3t-v4lue"
RETRIEVER = """\
def build(corpus, **options):
    raise ValueError(f"refused {options} for https://me:hunter2@host/a in {__file__}")
"""
PRIVATE = """\
version: 1
name: private
datasets:
  own: {corpus: "${env:PRIVATE_FOLDER}/corpus.jsonl", ground_truth: "${env:PRIVATE_FOLDER}/truth.jsonl"}
systems:
  bm25: {use: bm25}
  mine: {use: python, with: {target: "retriever:build", options: {key: "${env:PRIVATE_KEY}"}}, on_error: skip}
evaluate: {metrics: [recall@2, mrr], primary: recall@2}
"""


def test_secrets_and_places_of_this_machine_are_nowhere_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data of a client"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text('{"doc_id": "a", "contents": "ferry"}\n{"doc_id": "b", "contents": "sea"}\n')
    (folder / "truth.jsonl").write_text('{"qid": "q", "query": "ferry", "retrieval_gt": [["a"]]}\n')
    (tmp_path / "retriever.py").write_text(RETRIEVER)
    (tmp_path / "private.yaml").write_text(PRIVATE)
    monkeypatch.setenv("PRIVATE_FOLDER", str(folder))
    monkeypatch.setenv("PRIVATE_KEY", SECRET)
    outcome = groupgt.run_experiment(tmp_path / "private.yaml", allow_code=True)
    assert outcome.folder is not None
    failed = outcome.failed["own"]["mine"]
    assert "{'key': '${env:PRIVATE_KEY}'}} for https://…@host/a in retriever.py" in failed
    reader = page_at(outcome.folder / "report.html")
    held = (outcome.folder / "report.html").read_text(encoding="utf-8")
    held += "".join(json.dumps(value(reader, name)) for name in reader.blocks if not name.startswith("library"))
    for secret in (SECRET, "hunter2", str(tmp_path), "data of a client"):
        assert secret not in held, secret
    shown = value(reader, "page")["datasets"][0]
    assert "${env:PRIVATE_KEY}" in shown["failed"][0][1]
    assert "retriever.py" in shown["failed"][0][1]
    assert "${env:PRIVATE_FOLDER}/corpus.jsonl" in dict(value(reader, "page")["facts"])


@pytest.fixture(scope="module")
def handbook(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """The experiment of configs/gate.yaml, in a folder of its own."""
    folder = tmp_path_factory.mktemp("handbook")
    shutil.copytree(ROOT / "examples" / "handbook", folder / "examples" / "handbook")
    (folder / "configs").mkdir()
    config = shutil.copy(ROOT / "configs" / "gate.yaml", folder / "configs")
    return groupgt.run_experiment(config, changes=["compare.resamples=200", "report.max_size=0.54MB"])


def test_an_outcome_writes_its_page_and_draws_itself(handbook: Outcome, tmp_path: Path) -> None:
    assert handbook.folder is not None
    handbook.to_html(tmp_path / "page.html")
    pages = [path.read_bytes().split(b"\n") for path in (handbook.folder / "report.html", tmp_path / "page.html")]
    assert sum(one != two for one, two in zip(*pages, strict=True)) <= 1
    assert handbook.plot().name == "means"
    assert handbook.plot("latency", dataset="handbook").rows
    with pytest.raises(groupgt.ConfigError, match=r"dataset: expected one of handbook, found 'handbok' \(did you mean"):
        handbook.plot("means", dataset="handbok")
    with pytest.raises(groupgt.ConfigError, match="figure 'sweep' is not available for this result; available: means"):
        handbook.plot("sweep")


def test_data_sets_of_the_same_questions_are_held_side_by_side(tmp_path: Path) -> None:
    rows = {"qa": [{"qid": f"q{number}", "retrieval_gt": [["a"], ["b"]]} for number in range(4)]}
    rows["long"] = [{"qid": f"q{number}", "retrieved_ids": ["a", "b"]} for number in range(4)]
    rows["short"] = [{"qid": f"q{number}", "retrieved_ids": ["a"]} for number in range(4)]
    for name, some in rows.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some))
    (tmp_path / "sizes.yaml").write_text(
        "version: 1\nname: sizes\nconvention: coverage\n"
        "datasets: {long: {ground_truth: qa.jsonl}, short: {ground_truth: qa.jsonl}}\n"
        'systems: {one: {use: results, with: {path: "{dataset}.jsonl"}}}\n'
        "evaluate: {metrics: [recall@2], primary: recall@2}\n"
    )
    outcome = groupgt.run_experiment(tmp_path / "sizes.yaml")
    assert outcome.folder is not None
    across = value(page_at(outcome.folder / "report.html"), "page")["across"]
    assert ["".join(sentence["parts"]) for sentence in across] == [
        "one does best on data set long (recall@2 1.000) and worst on short (0.500), over the same queries."
    ]


def test_the_report_says_of_a_group_that_cannot_be_met_why(tmp_path: Path) -> None:
    groups = [["a"], ["gone"], ["gone", {"all": ["a", "gone"]}], [], [{"id": "a", "grade": 0}]]
    rows = {"qa": [{"qid": "q", "retrieval_gt": groups}], "corpus": [{"doc_id": "a", "contents": "what a says"}]}
    rows["stored"] = [{"qid": "q", "retrieved_ids": ["a"]}]
    for name, some in rows.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some), encoding="utf-8")
    (tmp_path / "experiment.yaml").write_text(
        "version: 1\nname: gone\nconvention: coverage\n"
        "datasets: {one: {ground_truth: qa.jsonl, corpus: corpus.jsonl}}\n"
        "systems: {stored: {use: results, with: {path: stored.jsonl}}}\n"
        "evaluate: {metrics: [recall@2], policy: {empty_groups: unmeetable}}\n"
    )
    with pytest.warns(groupgt.GroupgtWarning, match="1 ground truth id is not in the corpus"):
        outcome = groupgt.run_experiment(tmp_path / "experiment.yaml")
    assert outcome.folder is not None
    (shown_set,) = value(page_at(outcome.folder / "report.html"), "page")["datasets"]
    said = ["".join(sentence["parts"]) for sentence in shown_set["notes"]]
    assert "dataset 'one': 1 ground truth id is not in the corpus, so it can never be retrieved: 'gone'." in said
    ((_, shown, *_),) = value(page_at(outcome.folder / "report.html"), "details-0-0")
    assert [group[3:] for group in shown] == [
        [],
        ["its only alternative is not in the corpus"],
        ["none of its alternatives is in the corpus"],
        ["it has no relevant alternative"],
        ["it has no relevant alternative"],
    ]


def test_the_file_says_how_large_the_page_may_be(handbook: Outcome) -> None:
    assert handbook.folder is not None
    page = handbook.folder / "report.html"
    assert page.stat().st_size <= 540_000
    assert "results without a hit" in value(page_at(page), "page")["left_out"][0]


def test_a_gate_leads_to_the_queries_that_fail_it(handbook: Outcome) -> None:
    assert handbook.folder is not None
    (shown,) = value(page_at(handbook.folder / "report.html"), "page")["datasets"]
    gates = {gate["measure"]: gate for gate in shown["gates"]}
    drop, floor = gates["ndcg@10"], gates["complete@10 on type multi"]
    assert drop["shown"] == {
        "m": "ndcg.coverage@10",
        "show": f"gate:{drop['number']}",
        "a": "candidate",
        "b": "released",
    }
    assert floor["shown"] == {"m": "complete.coverage@10", "show": f"gate:{floor['number']}", "a": "candidate"}
    own = handbook.evaluations["handbook"]
    values = {name: dict(zip(each.truth.qids, each.values["ndcg.coverage@10"])) for name, each in own.items()}
    falls = {qid: value - values["candidate"][qid] for qid, value in values["released"].items()}
    assert set(drop["queries"]) == {qid for qid, fall in falls.items() if fall > 1e-9}
    assert falls[drop["queries"][0]] == max(falls.values())
    truth, complete = own["candidate"].truth, own["candidate"].values["complete.coverage@10"]
    is_multi = np.array(truth.columns["type"]) == "multi"
    assert floor["queries"] == [truth.qids[at] for at in np.flatnonzero(is_multi & (complete == 0))]


def test_merged_folders_write_a_page(handbook: Outcome, tmp_path: Path) -> None:
    page = tmp_path / "merged.html"
    done = CliRunner().invoke(cli, ["report", str(handbook.folder), "--html", str(page)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    shown = value(page_at(page), "page")
    own = shown["datasets"][0]
    assert [system["name"] for system in own["systems"]] == list(handbook.evaluations["handbook"])
    assert own["metrics"][own["primary"]]["label"] == handbook.experiment.config.evaluate.primary
    assert len(own["contrasts"]["rows"]) >= 1
    assert str(ROOT) not in json.dumps(shown)
    # Texts, groups and rankings are those of the experiment's own page.
    ours, theirs = page_at(page), read(page_bytes(page_of(handbook)))
    assert value(ours, "questions-0") == value(theirs, "questions-0")
    before, after = ({row[0]: row for row in value(each, "details-0-0")} for each in (theirs, ours))
    assert set(before) & set(after)
    for at in set(before) & set(after):
        # Ranks, and what each result hits.
        assert [each[3] for each in before[at][4]] == [each[3] for each in after[at][4]]
    for arguments, what in (
        (["--history", "--html", str(page)], "--html: cannot be combined with --history"),
        (["--html", str(tmp_path / "none" / "a.html")], "found no folder"),
    ):
        with pytest.raises(groupgt.ConfigError, match=what):
            CliRunner().invoke(cli, ["report", str(handbook.folder), *arguments], catch_exceptions=False)


def test_a_folder_without_rankings_says_so(handbook: Outcome, tmp_path: Path) -> None:
    """Its page has every figure of values, and says why there is no more."""
    assert handbook.folder is not None
    folder = tmp_path / handbook.folder.name
    shutil.copytree(handbook.folder, folder)
    shutil.rmtree(folder / "runs")
    CliRunner().invoke(cli, ["report", str(folder), "--html", str(tmp_path / "page.html")], catch_exceptions=False)
    own = value(page_at(tmp_path / "page.html"), "page")["datasets"][0]
    assert own["systems"]
    assert own["chunks"] == []
    assert "does not contain the run of" in dict(own["facts"])["rankings"]


def test_a_folder_whose_values_are_other_ones_shows_these(handbook: Outcome, tmp_path: Path) -> None:
    assert handbook.folder is not None
    folder = tmp_path / handbook.folder.name
    shutil.copytree(handbook.folder, folder)
    values = (folder / "per_query.csv").read_text(encoding="utf-8")
    assert ",1.0," in values
    (folder / "per_query.csv").write_text(values.replace(",1.0,", ",0.5,"), encoding="utf-8")
    CliRunner().invoke(cli, ["report", str(folder), "--html", str(tmp_path / "page.html")], catch_exceptions=False)
    own = value(page_at(tmp_path / "page.html"), "page")["datasets"][0]
    assert own["chunks"] == []
    assert "has different values for" in dict(own["facts"])["rankings"]


FIRST = ROOT / "examples" / "first"
FILES = [str(FIRST / name) for name in ("truth.jsonl", "bm25.trec", "dense.jsonl")]


def plot(*arguments: object) -> str:
    done = CliRunner().invoke(cli, ["plot", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_figure_of_runs_is_written(tmp_path: Path) -> None:
    said = plot("depth", *FILES, "-o", tmp_path / "depth.json")
    assert said.startswith("Means against depth for bm25, dense: ")
    assert json.loads((tmp_path / "depth.json").read_text(encoding="utf-8"))["title"]["subtitle"][1].startswith(
        "convention"
    )
    plot("depth", *FILES, "-m", "map,mrr@3", "-o", tmp_path / "depth.json", "--title", "", "--size", "600x200")
    asked = json.loads((tmp_path / "depth.json").read_text(encoding="utf-8"))
    assert asked["facet"]["sort"] == ["map", "mrr"]
    assert (asked["spec"]["width"], asked["spec"]["height"]) == (300, 200)
    assert "title" not in asked
    with pytest.raises(groupgt.ConfigError, match="bpref: metrics without a cutoff cannot be plotted against depth"):
        plot("depth", *FILES, "-m", "bpref", "-o", tmp_path / "depth.json")
    with pytest.raises(groupgt.ConfigError, match="--size: expected WIDTHxHEIGHT"):
        plot("depth", *FILES, "-o", tmp_path / "depth.json", "--size", "600")
    said = plot("means", *FILES, "-m", "mrr", "--baseline", "dense", "-o", tmp_path / "forest.html")
    assert said.startswith("Means of mrr with 95% CI: ")


@pytest.mark.parametrize("what", ["means", "queries", "scatter", "latency", "depth", "ecdf", "groups", "slices"])
def test_a_figure_of_a_result_folder_is_written(what: str, handbook: Outcome, tmp_path: Path) -> None:
    assert handbook.folder is not None
    known = handbook.plot(what)
    assert plot(what, handbook.folder, "-o", tmp_path / "figure.json").strip() == known.text
    drawn = json.loads((tmp_path / "figure.json").read_text(encoding="utf-8"))
    assert "convention coverage" in drawn["title"]["subtitle"]
    assert "default policy" in drawn["description"]
    latest = handbook.folder.parent / "latest"
    assert plot(what, latest, "-o", tmp_path / "figure.json").strip() == known.text


def test_several_folders_are_drawn_as_one_comparison(handbook: Outcome, tmp_path: Path) -> None:
    """A folder of result folders is one too, whatever stands behind it."""
    assert handbook.folder is not None
    ways = ((handbook.folder, handbook.folder), (handbook.folder.parent, handbook.folder))
    one, other = (plot("means", *each, "-o", tmp_path / "figure.json") for each in ways)
    assert one == other


def test_some_systems_are_drawn(handbook: Outcome, tmp_path: Path) -> None:
    assert handbook.folder is not None
    names = handbook.systems[next(iter(handbook.systems))].names
    chosen, baseline = names[0], handbook.experiment.config.baseline
    plot("means", handbook.folder, "--system", chosen, "-o", tmp_path / "figure.json")
    rows = json.loads((tmp_path / "figure.json").read_text(encoding="utf-8"))["data"]["values"]
    assert {row["name"] for row in rows} == {chosen, *([baseline] if baseline else [])}
    assert len(names) > len(rows)
    said = plot("means", *FILES, "--system", "dense", "-o", tmp_path / "figure.json")
    assert said.startswith("Means of ")
    with pytest.raises(groupgt.ConfigError, match="system: expected one of bm25 or dense, found 'sparse'"):
        plot("means", *FILES, "--system", "sparse", "-o", tmp_path / "figure.json")


def test_sweeps_are_drawn_of_an_experiment_and_of_its_folder(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="tfidf needs the extra groupgt[retrieval]")
    shutil.copytree(ROOT / "examples" / "handbook", tmp_path / "examples" / "handbook")
    config = tmp_path / "sweep.yaml"
    config.write_text(
        "version: 1\nname: sweep\nevaluate: {metrics: [mrr], primary: mrr}\ndatasets: {handbook: "
        "{corpus: examples/handbook/corpus.jsonl, ground_truth: examples/handbook/questions.jsonl}}\n"
        "systems: {bm25: {use: bm25, matrix: {k1: [0.9, 1.6], stopwords: [english]}}, tfidf: {use: tfidf}}\n",
        encoding="utf-8",
    )
    outcome = groupgt.run_experiment(config)
    figure = outcome.plot("sweep")
    assert figure.headers[1] == "k1 of bm25"
    assert [row[1] for row in figure.rows] == [0.9, 1.6]
    assert plot("sweep bm25", outcome.folder, "-o", tmp_path / "sweep.json").strip() == figure.text


def test_figures_that_cannot_be_drawn_are_refused(handbook: Outcome, tmp_path: Path) -> None:
    folder, file = handbook.folder, tmp_path / "figure.json"
    assert folder is not None
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    manifest = json.loads((other / "manifest.json").read_text(encoding="utf-8"))
    manifest["ground_truth"] = dict.fromkeys(manifest["ground_truth"], "0" * 64)
    (other / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (truth,) = (other / "truth").iterdir()
    first, *rest = truth.read_text(encoding="utf-8").splitlines()
    judged = json.dumps({**json.loads(first), "retrieval_gt": [["another"]]})
    truth.write_text("\n".join([judged, *rest]) + "\n", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    unkept = tmp_path / "unkept"
    shutil.copytree(folder, unkept)
    shutil.rmtree(unkept / "runs")
    for arguments, what in (
        (["depht", folder, "-o", file], r"unknown figure 'depht' \(did you mean 'depth'\?\)"),
        (["means", folder, "-o", tmp_path / "none" / "a.json"], "found no folder"),
        (["means", folder, "-o", tmp_path / "a.gif"], r"expected a file that ends in \.svg"),
        (
            ["means", tmp_path / "empty", "-o", file],
            r"expected a result folder of `groupgt run`, found no manifest\.json",
        ),
        (["means", folder, other, "-o", file], "the ground truth of data set 'handbook' differs"),
        (["means", folder, "--by", "type", "-o", file], "--by: a result folder is already evaluated"),
        (["means", folder, "--dataset", "handbok", "-o", file], r"found 'handbok' \(did you mean 'handbook'\?\)"),
        (["means", *FILES, "--dataset", "handbook", "-o", file], "--dataset: TRUTH and RUNS are a single data set"),
    ):
        with pytest.raises(groupgt.GroupgtError, match=what) as error:
            plot(*arguments)
        assert len(str(error.value).splitlines()) == 1
    why = "its systems cannot be evaluated again: .*does not contain the run of 'released'; run the experiment again"
    with pytest.raises(groupgt.ConfigError, match=why):
        plot("depth", unkept, "-o", file)
    assert not file.exists()


def test_a_disk_that_is_full_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_bytes", full)
    file = tmp_path / "forest.json"
    with pytest.raises(groupgt.DataError, match=r"cannot write .*forest\.json: No space left on device$"):
        CliRunner().invoke(cli, ["plot", "means", *map(str, FILES), "-o", str(file)], catch_exceptions=False)
