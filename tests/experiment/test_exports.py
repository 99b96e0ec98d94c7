"""What is written for others is read back by what it is meant for."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest
import tabulate

import groupgt
from groupgt.cli.main import main
from groupgt.report.run import run_experiment
from tests.snapshots import Snapshot

pytestmark = pytest.mark.slow

QIDS = [f"q{number:02d}" for number in range(20)]
KINDS = ["=cmd|' /C calc'!A0", "a & b_c % $ # {x} ~ ^", "x|y\nz", "naïve – ∞"]


@pytest.fixture(scope="module")
def table() -> groupgt.Comparison:
    """Slices and runs with names that every format has to escape."""
    rng = random.Random(1)
    truth = groupgt.GroundTruth.from_rows(
        QIDS, [[["a"], ["b"]]] * 20, groupgt.Policy(), columns={"kind": [KINDS[at % 4] for at in range(20)]}
    )
    runs = {
        "plain": {qid: rng.sample("axyz", 4) for qid in QIDS},
        "100%_better & <b>": {qid: ["a", "b"] for qid in QIDS},
        "=1+1": {qid: rng.sample("abxyz", 4) for qid in QIDS},
    }
    return groupgt.compare(truth, runs, ["recall@2", "mrr"], by="kind", pairs=True, resamples=500)


@pytest.mark.parametrize("style", tabulate.tabulate_formats)
def test_every_format_of_tabulate(table: groupgt.Comparison, style: str) -> None:
    text = table.text(style)
    assert "0.9" in text or "1.0000" in text
    assert "randomization" in text


class Cells(HTMLParser):
    """The rows of every table of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.inside = False

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.inside = True
        assert tag != "b"

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.rows[-1][-1] += data


def test_html(table: groupgt.Comparison) -> None:
    cells = Cells()
    cells.feed(table.text("html"))
    better = next(row for row in cells.rows if row[0] == "100%_better & <b>" and row[1].strip().endswith("▲"))
    row = table["100%_better & <b>"]["recall@2"]
    assert better[1].strip() == f"{row.mean:.3f}▲"
    assert f"<strong>{row.mean:.3f}▲</strong>" in table.text("html")


def test_latex_is_balanced_and_marked(table: groupgt.Comparison) -> None:
    """What pdflatex stumbles over: bare specials, tables whose rows have other numbers of cells, wrong characters."""
    text = table.text("latex_booktabs")
    assert text.startswith(r"% needs \usepackage{booktabs}")
    assert r"\textbf{1.000$^{\uparrow}$}" in text
    assert "$-$" in text
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == text.count(r"\toprule") > 3
    for part in re.findall(r"\\begin\{tabular\}\{([lrc]+)\}(.*?)\\end\{tabular\}", text, re.DOTALL):
        columns, body = part
        plain = re.sub(r"\$[^$]*\$", "", body.replace(r"\textbackslash{}", "").replace(r"\$", ""))
        plain = re.sub(r"\\(ensuremath|textasciitilde|textasciicircum|\^\{\})[^&]*?(?= )", "", plain)
        for line in plain.split(r"\\"):
            line = re.sub(r"\\(top|mid|bottom)rule", "", line).strip()
            if line:
                assert len(re.findall(r"(?<!\\)&", line)) == len(columns) - 1, line
                assert not re.search(r"(?<!\\)[%#_$]", line), line
    outside = re.sub(r"\\begin\{tabular\}.*?\\end\{tabular\}", "", text, flags=re.DOTALL)
    assert all(line.startswith("%") for line in outside.splitlines() if line.strip())
    tables = "".join(re.findall(r"\\begin\{tabular\}.*?\\end\{tabular\}", text, re.DOTALL))
    assert "∞" not in tables


def test_csv_has_every_figure_and_no_formula(table: groupgt.Comparison, tmp_path: Path) -> None:
    from groupgt.render.exports import as_written, csv_text

    headers, rows = table.csv_rows()
    text = csv_text(headers, rows)
    read = list(csv.reader(io.StringIO(text)))
    assert len(read) == 1 + len(table.rows) + sum(len(part.rows) for part in table.slices)
    assert all(len(row) == len(headers) for row in read)
    for row in read:
        assert not any(re.match(r"[=+@\t\r]|-\D", cell) for cell in row)
    found = next(row for row in read if as_written(row[2]) == "=1+1" and not row[0])
    by_name = dict(zip(headers, found))
    row = table["=1+1"]["recall@2"]
    assert float(by_name["delta"]) == row.delta
    assert (float(by_name["low"]), float(by_name["high"])) == row.interval
    assert float(by_name["p_value"]) == row.p_value
    assert {as_written(each[1]) for each in read[1:]} == {"", *KINDS}


def test_per_query_values_as_parquet(sweep: Path) -> None:
    outcome = run_experiment(sweep, changes=["output.formats=[parquet]"])
    assert outcome.folder is not None
    frame = pl.read_parquet(outcome.folder / "per_query.parquet")
    assert frame.columns[:3] == ["dataset", "run", "qid"]
    assert frame.schema["ndcg.coverage@10"] == pl.Float64
    name, evaluation = next(iter(outcome.evaluations["handbook"].items()))
    own = frame.filter(run=name)
    assert own["qid"].to_list() == evaluation.truth.qids
    assert own["ndcg.coverage@10"].to_list() == evaluation.per_query["ndcg.coverage@10"].to_list()


def test_junit(sweep: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with sweep.open("a", encoding="utf-8") as file:
        file.write('gate: [{system: "*", metric: ndcg@10, max_drop: 0, unless: not_significant}]\n')
    main(["run", str(sweep), "--junit", str(tmp_path / "gates.xml")])
    capsys.readouterr()
    suite = ET.parse(tmp_path / "gates.xml").getroot()[0]
    assert suite.get("tests") == "6"


@pytest.fixture
def written(sweep: Path) -> tuple[dict[str, groupgt.Evaluation], Path]:
    """An experiment's evaluations under the convention trec, and the folder with runs and flattened truth."""
    outcome = run_experiment(
        sweep, changes=["convention=trec", "output.formats=[runs]", "evaluate.metrics=[ndcg, recall, mrr]"]
    )
    assert outcome.folder is not None
    return outcome.evaluations["handbook"], outcome.folder


def pairs(evaluations: dict[str, groupgt.Evaluation], folder: Path) -> list[tuple[groupgt.Evaluation, Path]]:
    """Each evaluation with its run as a TREC file, converted where it had equal scores in another order than TREC's."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    files = {name: folder / "runs" / "handbook" / manifest["systems"][name]["files"] for name in evaluations}
    for file in files.values():
        if not (trec := Path(f"{file}.trec")).is_file():
            main(["convert", f"{file}.jsonl", str(trec), "--to", "trec"])
    return [(each, Path(f"{files[name]}.trec")) for name, each in evaluations.items()]


@pytest.mark.peers
def test_pytrec_eval_reads_runs_and_truth(written: tuple[dict[str, groupgt.Evaluation], Path]) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="the extra groupgt[peers] is not installed")
    evaluations, folder = written
    with (folder / "truth" / "handbook.qrels").open() as file:
        qrels = pytrec_eval.parse_qrel(file)
    for evaluation, path in pairs(evaluations, folder):
        with path.open() as file:
            run = pytrec_eval.parse_run(file)
        found = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10", "recall.10"}).evaluate(run)
        for name, text in (("ndcg_cut_10", "ndcg.trec@10"), ("recall_10", "recall.trec@10")):
            own = evaluation.per_query.select("qid", text).drop_nulls()
            for qid, value in own.iter_rows():
                assert found.get(qid, {name: 0.0})[name] == pytest.approx(value, abs=1e-9), (qid, name)


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore:.*unsafe cast")  # numba's, of ranx's own
def test_ranx_reads_runs_and_truth(written: tuple[dict[str, groupgt.Evaluation], Path]) -> None:
    ranx = pytest.importorskip("ranx", reason="the extra groupgt[peers] is not installed")
    evaluations, folder = written
    qrels = ranx.Qrels.from_file(str(folder / "truth" / "handbook.qrels"), kind="trec")
    for evaluation, path in pairs(evaluations, folder)[:2]:
        run = ranx.Run.from_file(str(path), kind="trec")
        found = ranx.evaluate(qrels, run, ["ndcg@10", "mrr@10"], make_comparable=True)
        assert found["ndcg@10"] == pytest.approx(evaluation["ndcg@10"], abs=1e-9)
        assert found["mrr@10"] == pytest.approx(evaluation["mrr@10"], abs=1e-9)


@pytest.mark.peers
def test_ir_measures_reads_runs_and_truth(written: tuple[dict[str, groupgt.Evaluation], Path]) -> None:
    ir_measures = pytest.importorskip("ir_measures", reason="the extra groupgt[peers] is not installed")
    evaluations, folder = written
    qrels = list(ir_measures.read_trec_qrels(str(folder / "truth" / "handbook.qrels")))
    for evaluation, path in pairs(evaluations, folder)[:2]:
        run = list(ir_measures.read_trec_run(str(path)))
        measures = {"ndcg@10": ir_measures.nDCG @ 10, "recall@10": ir_measures.R @ 10}
        found = ir_measures.calc_aggregate(measures.values(), qrels, run)
        for text, measure in measures.items():
            assert found[measure] == pytest.approx(evaluation[text], abs=1e-9)


def test_truth_is_flattened_where_that_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot
) -> None:
    """A document in two groups stands once, with its highest grade."""
    groups = [["a", {"id": "b", "grade": 2}], [{"id": "b", "grade": 3}, {"id": "c", "grade": 0}]]
    (tmp_path / "truth.jsonl").write_text(json.dumps({"qid": "q", "retrieval_gt": groups}) + "\n")
    main(["convert", str(tmp_path / "truth.jsonl"), str(tmp_path / "flat.qrels"), "--to", "qrels-flat"])
    assert (tmp_path / "flat.qrels").read_text() == "q 0 a 1\nq 0 b 3\nq 0 c 0\n"
    snapshot(capsys.readouterr().err)
