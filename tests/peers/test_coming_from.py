"""The tables of the page for those who come from another tool, against that tool's own code."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import groupgt
from tests.peers.test_peers import REASON, data, qrels_of

pytestmark = pytest.mark.peers
PAGE = Path(__file__).parents[2] / "docs" / "coming-from.md"
ROW = re.compile(r"^\| (.*?) \| (.*?) \|$", re.MULTILINE)


def section(tool: str) -> str:
    """Return what the page says about a tool."""
    return PAGE.read_text(encoding="utf-8").partition(f"\n## {tool}\n")[2].partition("\n## ")[0]


def rows(tool: str) -> list[tuple[list[str], list[str], str]]:
    """Return what each row names there and here, and its second cell, without what is not available."""
    cells = [(there, here) for there, here in ROW.findall(section(tool)) if not here.startswith("not available")]
    return [(re.findall("`(.*?)`", there), re.findall("`(.*?)`", here), here) for there, here in cells]


def test_every_measure_of_trec_eval() -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval", reason=REASON.format("pytrec_eval"))
    same = re.search(r"These names are the same in trec_eval and groupgt: (.*?)\.\s", section("trec_eval"), re.DOTALL)
    assert same is not None
    table = rows("trec_eval") + [([name], [name], f"`{name}`") for name in re.findall("`(.*?)`", same[1])]
    listed = {name for there, _, _ in table for name in there}
    roots = {re.sub(r"_[0-9.]+$", "", name) for name in listed}
    assert pytrec_eval.supported_measures <= roots | listed
    known = pytrec_eval.supported_measures - {"runid", "relstring"}
    truth, run = data(7, graded=True)
    found = pytrec_eval.RelevanceEvaluator(qrels_of(truth), known).evaluate(run)
    # A line that says why a measure is not here may name another one of ours.
    only = [(there, here) for there, here, why in table if why == ", ".join(f"`{each}`" for each in here)]
    pairs = {name: ours for there, here in only if len(there) == len(here) for name, ours in zip(there, here)}
    pairs = {name: ours for name, ours in pairs.items() if name in found["q0"]}
    assert len(pairs) >= 17
    result = groupgt.evaluate(truth, run, list(pairs.values()), convention="trec")
    compared = 0
    for position, qid in enumerate(truth):
        if result.truth.judgments.defined[position]:
            for name, ours in pairs.items():
                assert result.values[ours][position] == pytest.approx(found[qid][name], abs=1e-9), (qid, name)
                compared += 1
    assert compared > 2000


@pytest.mark.parametrize("flag", ["-c", "without", "-J", "-l 2"])
def test_options_of_trec_eval(flag: str) -> None:
    """The means that the policies of the page give are those of trec_eval's options."""
    pytrec_eval = pytest.importorskip("pytrec_eval", reason=REASON.format("pytrec_eval"))
    cells = ROW.findall(section("trec_eval"))
    first = "without `-c`" if flag == "without" else f"`trec_eval {flag}`"
    policy = next(here for there, here in cells if there == first).strip("`").removeprefix("--policy ")
    truth, run = data(8, graded=True)
    for qid in list(run)[:20]:
        del run[qid]
    more = {"-J": {"judged_docs_only_flag": True}, "-l 2": {"relevance_level": 2}}.get(flag, {})
    found = pytrec_eval.RelevanceEvaluator(qrels_of(truth), {"map", "P.5"}, **more).evaluate(run)
    if flag in ("-J", "-l 2"):
        policy = f"trec,{policy}"
    result = groupgt.evaluate(truth, run, ["map", "P_5"], convention="trec", policy=policy)
    count = len(truth) if flag == "-c" else len(found)
    for name in ("map", "P_5"):
        expected = sum(values[name] for values in found.values()) / count
        assert result[name] == pytest.approx(expected, abs=1e-9)


@pytest.mark.filterwarnings("default")
def test_every_measure_of_ir_measures() -> None:
    ir_measures = pytest.importorskip("ir_measures", reason=REASON.format("ir_measures"))
    truth, run = data(9, graded=True)
    pairs: dict[str, str] = {}
    for there, here, text in rows("ir_measures and PyTerrier"):
        if text.startswith("the same"):
            pairs |= {name: name for name in there}
        elif there and len(here) >= len(there) and re.fullmatch(r"[A-Za-z]+(\(.*\))?(@\d+)?", there[0]):
            pairs |= dict(zip(there, here))
    compared = 0
    for there, ours in pairs.items():
        measure = ir_measures.parse_measure(there)
        try:
            found = {each.query_id: each.value for each in ir_measures.iter_calc([measure], qrels_of(truth), run)}
        except (ValueError, subprocess.CalledProcessError):
            continue  # needs a program that is not installed
        if "alpha" in there or "IA" in there or "StRecall" in there:
            continue  # its qrels have subtopics: see test_pyndeval
        policy = {"level": 2} if "rel=2" in there else None
        result = groupgt.evaluate(truth, run, [ours], convention="trec", policy=policy)
        for position, qid in enumerate(truth):
            if result.truth.judgments.defined[position]:
                assert result.values[ours][position] == pytest.approx(found[qid], abs=1e-9), (there, qid)
                compared += 1
    assert compared > 1500
