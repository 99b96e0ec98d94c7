"""The pytest plug-in: what it shows and writes, per-query tests, several processes, mistakes, and its price unused."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import groupgt
from tests.docs import blocks

pytestmark = pytest.mark.slow

TRUTH = """
{"qid": "capital", "query": "Which river?", "retrieval_gt": [["vienna", "austria"], ["danube"]]}
{"qid": "moons", "query": "Mars and Venus?", "retrieval_gt": [["mars"], ["venus"]]}
{"qid": "undefined", "retrieval_gt": []}
{"qid": "none", "retrieval_gt": [], "answerable": false}
"""
# recall@2 of capital: both groups, 1; of moons: one of two, 0.5; their mean: 0.75.
RUN = """
RUN = {"capital": ["austria", "danube"], "moons": ["mars", "phobos"], "none": []}
"""
PLAIN = """
def test_first(groupgt_evaluate):
    groupgt_evaluate("truth.jsonl", RUN, ["recall@2"]).assert_at_least({"recall@2": 0.7})

def test_second(groupgt_evaluate):
    groupgt_evaluate("truth.jsonl", "run.jsonl", ["recall@2"], name="better").assert_at_least({"recall@2": 0.9})
"""
EACH = """
import pytest

@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.groupgt("truth.jsonl", convention="coverage")
def test_each(groupgt_query, depth):
    # Of these, only what is defined for a query is required of it.
    least = {"recall@2": depth / 2, "abstains": 1}
    assert groupgt_query.groups == [] or groupgt_query.text
    groupgt_query.assert_at_least(RUN[groupgt_query.id][:depth], least)
"""


@pytest.fixture(scope="module", autouse=True)
def loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Everything that runs in this process need: pytester unloads what they load, and compiled modules load once."""
    truth = {"q": [["a"], ["b"]]}
    page = tmp_path_factory.mktemp("loaded") / "page.html"
    print(groupgt.evaluate_runs(truth, {"one": {"q": ["a"]}, "two": {"q": ["b"]}}, ["recall"]))
    groupgt.compare(truth, {"one": {"q": ["a"]}, "two": {"q": ["b"]}}, ["recall"]).to_html(page)


@pytest.fixture
def folder(pytester: pytest.Pytester) -> pytest.Pytester:
    (pytester.path / "truth.jsonl").write_text(TRUTH.strip() + "\n")
    line = '{"qid": "moons", "retrieved_ids": ["mars", "venus"], "retrieved_contents": ["m", "v"]}\n'
    (pytester.path / "run.jsonl").write_text('{"qid": "capital", "retrieved_ids": ["austria"]}\n' + line)
    return pytester


def section(result: pytest.RunResult) -> str:
    """What the plug-in shows after the run."""
    lines = result.outlines
    begin = next((place for place, line in enumerate(lines) if line.strip("=") == " groupgt "), None)
    assert begin is not None, lines
    end = next(place for place in range(begin + 1, len(lines)) if lines[place].startswith("==="))
    return "\n".join(lines[begin + 1 : end])


def test_means_are_shown_and_a_page_is_written(folder: pytest.Pytester) -> None:
    folder.makepyfile(RUN + PLAIN)
    result = folder.runpytest("--groupgt-report", "out/pages")
    result.assert_outcomes(passed=1, failed=1)
    # better: capital 1 of 2 groups, moons 2 of 2, mean 0.75 as well.
    shown = section(result)
    rows = [line.split() for line in shown.splitlines()]
    assert ["test_first", "0.7500"] in rows
    assert ["better", "0.7500"] in rows
    assert "report: out" in shown
    result.stdout.fnmatch_lines(["*recall@2: 0.7500, expected at least 0.9*", "*capital*misses group 2 (danube)*"])
    assert "test_first" in (folder.path / "out/pages/truth.html").read_text()


def test_each_query_with_an_answer_or_declared_to_have_none_is_a_test(folder: pytest.Pytester) -> None:
    folder.makepyfile(RUN + EACH)
    result = folder.runpytest("-v")
    # With one result, capital and moons have recall 0.5, as asked; with two, moons still has 0.5.
    result.assert_outcomes(passed=5, failed=1)
    result.stdout.fnmatch_lines(["*test_each*moons-2] FAILED*", "*moons “Mars and Venus?”: 0.5000, misses group 2*"])
    assert "[undefined" not in str(result.outlines)
    shown = section(result)
    assert "test_each[1]" in shown
    assert "0.7500" in shown
    only = folder.runpytest("-k", "capital and 2")
    only.assert_outcomes(passed=1, deselected=5)
    assert "1.0000" in section(only)


def test_a_marker_may_have_the_ground_truth_itself(folder: pytest.Pytester) -> None:
    marker = '@pytest.mark.groupgt({"q": [["a"], ["b"]]}, convention="coverage")'
    body = '    groupgt_query.assert_at_least(["a", "b"], {"recall@2": 1})'
    folder.makepyfile(f"import pytest\n{marker}\ndef test_it(groupgt_query):\n{body}\n")
    result = folder.runpytest("--groupgt-report", "pages")
    result.assert_outcomes(passed=1)
    assert (folder.path / "pages/ground-truth.html").exists()


def test_several_processes_show_the_same(folder: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    folder.makepyfile(RUN + PLAIN + EACH)
    one, two = folder.runpytest("--groupgt-report=out"), folder.runpytest_subprocess("-n2", "--groupgt-report=two")
    assert section(two) == section(one).replace("report: out", "report: two")
    names = sorted(path.name for path in (folder.path / "out").iterdir())
    assert names == sorted(path.name for path in (folder.path / "two").iterdir())
    assert "truth-2.html" in names


def test_what_cannot_be_sent_is_told(folder: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    labeller = """
def test_own(groupgt_evaluate):
    class Own:
        pass
    evaluation = groupgt_evaluate("truth.jsonl", RUN, ["recall@2"])
    object.__setattr__(evaluation, "labeller", Own())
"""
    folder.makepyfile(RUN + labeller)
    result = folder.runpytest_subprocess("-n1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "error: evaluations cannot be sent to pytest-xdist: Can't" in section(result)


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("'missing.jsonl'", "missing.jsonl: file not found"),
        ("", "expected one ground truth"),
        ("'truth.jsonl', truth_format='xml'", "xml"),
        ("'truth.jsonl', policy='mising=zero'", "did you mean"),
    ],
)
def test_mistakes_in_a_marker(folder: pytest.Pytester, marker: str, message: str) -> None:
    folder.makepyfile(f"import pytest\n@pytest.mark.groupgt({marker})\ndef test_it(groupgt_query):\n    pass\n")
    result = folder.runpytest()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines([f"@pytest.mark.groupgt: *{message}*"])
    assert "another exception" not in result.stdout.str()


def test_a_fixture_without_its_marker(folder: pytest.Pytester) -> None:
    folder.makepyfile("def test_it(groupgt_query):\n    pass\n")
    result = folder.runpytest()
    result.assert_outcomes(errors=1)
    assert "expected @pytest.mark.groupgt(TRUTH)" in result.stdout.str()


def test_a_page_that_cannot_be_written(folder: pytest.Pytester) -> None:
    folder.makepyfile(RUN + PLAIN)
    (folder.path / "file").write_text("")
    result = folder.runpytest("-k", "first", "--groupgt-report", "file")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "error: " in section(result)


def test_unused_it_shows_and_loads_nothing(tmp_path: Path) -> None:
    code = """
import sys
def test_it():
    loaded = sorted(name for name in sys.modules if name.split(".")[0] == "groupgt")
    assert loaded == ["groupgt", "groupgt.pytest_plugin"], loaded
    assert "numpy" not in sys.modules
"""
    (tmp_path / "test_it.py").write_text(code)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert run.returncode == 0, run.stdout
    assert "groupgt ===" not in run.stdout


def test_the_page_shows_what_pytest_shows(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    # pytest cuts the lines of its summary to the terminal's width, unless it runs in continuous integration.
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)
    pytester.syspathinsert()
    shutil.copytree(blocks.ROOT / "examples/first", pytester.path / "examples/first")
    page = blocks.blocks((blocks.DOCS / "start/notebook.md").read_text(encoding="utf-8"))
    for block in page:
        if block.note == "file":
            (pytester.path / block.told).write_text(block.text, encoding="utf-8")
    shown = next(block.text for block in page if block.note == "not run").splitlines()
    command, *lines = shown
    result = pytester.runpytest(*command.removeprefix("$ pytest ").split())
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines([line.replace("[", "[[]") for line in lines if line != "…"])
