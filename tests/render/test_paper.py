"""The table of a paper: one tabular that fits a column, with what is significant beside each mean."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import groupgt
from groupgt.cli.main import main
from tests.snapshots import Snapshot

QIDS = [f"q{number:02}" for number in range(10)]
TRUTH = {qid: [["a"]] for qid in QIDS}
# By recall@1: 10, 2 and 2 of 10 queries; the last two hit others, so that they differ on 4 queries and not on average.
RUNS = {
    "good_one": {qid: ["a"] for qid in QIDS},
    "poor": {qid: ["a" if place < 2 else "x", "a"] for place, qid in enumerate(QIDS)},
    "other": {qid: ["a" if place > 7 else "x", "a"] for place, qid in enumerate(QIDS)},
}


@pytest.fixture
def table() -> groupgt.Comparison:
    metrics = ["recall@1", "mrr@2", "ndcg@2", "map@2", "precision@1", "complete@1"]
    return groupgt.compare(TRUTH, RUNS, metrics, convention="coverage", baseline="poor")


def rows_of(text: str) -> dict[str, list[str]]:
    body = text.partition(r"\midrule")[2].partition(r"\bottomrule")[0]
    cells = [line.removesuffix(r" \\").split(" & ") for line in body.strip().splitlines()]
    return {name: row for name, *row in cells}


def test_superscripts_say_what_is_significant(table: groupgt.Comparison, snapshot: Snapshot) -> None:
    """8 of 10 queries differ, all one way: p = 2/2^8 = .0078, times 2 by Holm; poor and other do not differ."""
    rows = rows_of(table.to_latex())
    assert rows[r"good\_one"][0] == r"\textbf{1.000}$^{a}$"
    assert rows["a~poor"][0] == ".200"
    assert rows["other"][0] == ".200"
    caption = re.search(r"\\caption\{(.*)\}\\smallskip", table.to_latex())
    assert caption is not None
    snapshot(caption[1])


def test_several_systems_have_letters(table: groupgt.Comparison, snapshot: Snapshot) -> None:
    text = table.to_latex(against=["good_one", "other"], digits=2)
    rows = rows_of(text)
    assert rows[r"a~good\_one"][0] == r"\textbf{1.00}$^{b}$"
    assert rows["poor"][0] == r".20$_{a}$"
    assert rows["b~other"][0] == r".20$_{a}$"
    snapshot(text)
    with snapshot.raises(groupgt.ConfigError):
        table.to_latex(against=["goood"])


def test_metrics_are_families_of_their_own(table: groupgt.Comparison) -> None:
    alone = groupgt.compare(TRUTH, RUNS, ["recall@1"], convention="coverage", baseline="poor")
    assert {name: row[:1] for name, row in rows_of(table.to_latex()).items()} == rows_of(alone.to_latex())


def test_six_metrics_fit_a_column(table: groupgt.Comparison) -> None:
    """One of two columns on A4 has 221 points. At 7 points a character is 3.7 wide on average, and a mark 2.7."""
    text = table.to_latex(against=["poor", "good_one"])
    head = text.partition(r"\toprule")[2].partition(r"\midrule")[0]
    names, cutoffs = (line.removesuffix(r" \\").split(" & ")[1:] for line in head.strip("\n").splitlines())
    header = list(zip(names, cutoffs, strict=True))
    assert header[0] == ("recall", "@1")
    rows = rows_of(text)
    width = 3.7 * max(len(name.replace("\\", "")) for name in rows)
    for place, (name, cutoff) in enumerate(header):
        heads = 3.7 * max(len(name), len(cutoff))
        cells = []
        for row in rows.values():
            shown, _, marks = row[place].replace(r"\textbf{", "").replace("}", "", 1).partition("$")
            cells.append(3.7 * len(shown.strip("}")) + 2.7 * len(re.findall("[a-z]", marks)))
        width += max(heads, *cells) + 3
    assert width <= 221


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_it_compiles_and_fits_a_column(table: groupgt.Comparison, tmp_path: Path) -> None:
    latex = table.to_latex(against=["poor", "good_one"])
    page = [r"\documentclass[twocolumn,a4paper]{article}", r"\usepackage{booktabs}", r"\begin{document}", latex]
    (tmp_path / "page.tex").write_text("\n".join([*page, r"\end{document}"]), encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    compiled = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert compiled.returncode == 0, compiled.stdout
    assert "Overfull" not in compiled.stdout


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str], snapshot: Snapshot) -> None:
    files = ("examples/first/truth.jsonl", "examples/first/bm25.trec", "examples/first/dense.jsonl")
    main(["compare", *files, "-m", "recall@3,mrr", "--format", "latex_booktabs", "--digits", "2"])
    out = capsys.readouterr().out
    assert out.count(r"\begin{tabular}") == 1
    snapshot(out)
    with pytest.raises(SystemExit):
        main(["compare", *files, "--against", "bm25"])
    snapshot(capsys.readouterr().err)


def test_the_caption_counts_the_comparisons_of_the_largest_family() -> None:
    truth = groupgt.GroundTruth.of({f"q{n}": [["a"]] for n in range(8)})
    runs = {
        name: {f"q{n}": results for n in range(8)}
        for name, results in {"x": ["a"], "y": ["b", "a"], "z": ["b"]}.items()
    }
    # clean has no query with harmful ids, so it is not tested; mrr is, against x: y and z.
    text = groupgt.compare(truth, runs, ["clean@2", "mrr"], baseline="x").to_latex()
    assert "for 2 comparisons per metric" in text
