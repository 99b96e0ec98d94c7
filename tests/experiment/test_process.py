"""What code of the user's changes of its process stays there, and it ends a run only as an error."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.experiment.fresh import shared_process
from groupgt.experiment.plan import plan
from tests.experiment.faulty_files import GATES, STORED, changed, written

FILE = """\
version: 1
name: mine
datasets: {own: {ground_truth: truth.jsonl}}
systems: {mine: {use: python, with: {target: "my_search:search"}}}
evaluate: {metrics: [recall], timed: 0, depth: 1}
output: {folder: out}
cache: null
"""


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    rows = "".join(f'{{"qid": "q{number}", "query": "?", "retrieval_gt": [["a"]]}}\n' for number in range(40))
    (tmp_path / "truth.jsonl").write_text(rows)
    (tmp_path / "mine.yaml").write_text(FILE)
    yield tmp_path / "mine.yaml"
    sys.modules.pop("my_search", None)
    sys.modules.pop("my_helper", None)


def module(file: Path, text: str) -> None:
    (file.parent / "my_search.py").write_text(text)


CHANGING = """
import os, sys

sys.path.append(os.path.join(os.path.dirname(__file__), "below"))
os.chdir("/")

def search(queries, k):
    import my_helper  # found by the path that this module has set
    return [my_helper.found for _ in queries]
"""


def test_what_a_module_changes_is_nothing_of_ours(file: Path) -> None:
    module(file, CHANGING)
    (file.parent / "below").mkdir()
    (file.parent / "below" / "my_helper.py").write_text('found = ["a"]\n')
    path, folder = [*sys.path], Path.cwd()
    outcome = groupgt.run_experiment(file, allow_code=True)
    assert outcome.evaluations["own"]["mine"]["recall"] == 1.0
    assert (sys.path, Path.cwd()) == (path, folder)
    assert not {"my_search", "my_helper"} & set(sys.modules)


@pytest.mark.slow
def test_a_run_that_fails_puts_it_back_too(file: Path) -> None:
    module(file, "import sys\nsys.path.append('x')\n\ndef search(queries, k):\n    raise ValueError('no')\n")
    path = [*sys.path]
    with pytest.raises(groupgt.RetrieverError, match="ValueError: no"):
        groupgt.run_experiment(file, allow_code=True)
    assert sys.path == path
    plan(file, allow_code=True)
    assert sys.path == path


def test_sys_exit_of_what_is_no_retriever(file: Path) -> None:
    (file.parent / "my_search.py").write_text("def count(texts):\n    raise SystemExit(0)\n")
    (file.parent / "run.jsonl").write_text('{"qid": "q0", "retrieved_ids": ["a"], "retrieved_contents": ["x"]}\n')
    changes = [
        "systems={stored: {use: results, with: {path: run.jsonl}}}",
        "evaluate.metrics=[recall@10tokens]",
        'evaluate.tokenizer="python:my_search:count"',
    ]
    with pytest.raises(groupgt.GroupgtError, match=r"sys\.exit|SystemExit"):
        groupgt.run_experiment(file, changes=changes, allow_code=True)


@pytest.mark.parametrize("error", [SystemExit(0), SystemExit(), SystemExit("bye")])
def test_code_that_exits_ends_the_run_with_an_error(error: SystemExit) -> None:
    with pytest.raises(groupgt.GroupgtError, match="your code ended the run"), shared_process():
        raise error


REVERSING = """
def search(queries, k):
    ids = [["a"] if qid == "q0" else ["x"] for qid in queries.ids]
    queries.ids.reverse()
    queries.clear()
    return ids
"""


@pytest.mark.filterwarnings("ignore:.*is the run from the same corpus")
@pytest.mark.slow
def test_lists_that_are_handed_out_are_the_codes_to_change(file: Path) -> None:
    module(file, REVERSING)
    outcome = groupgt.run_experiment(file, changes=["evaluate.timed=3"], allow_code=True)
    assert outcome.answers["own", "mine"].ids["q0"] == ["a"]
    assert outcome.answers["own", "mine"].ids["q39"] == ["x"]


@pytest.mark.faults
@pytest.mark.parametrize("code", ["raise SystemExit(0)", "import sys; sys.exit()", "raise SystemExit('bye')"])
def test_code_that_ends_the_process_does_not_pass(folder: Path, code: str) -> None:
    (folder / "ending.py").write_text(f"def search(queries, k):\n    {code}\n")
    text = changed((STORED, "use: python\n    with: {target: 'ending:search'}"), (GATES, ""))
    with pytest.raises(SystemExit) as end:
        main(["run", str(written(folder, text)), "--allow-code"])
    assert end.value.code == 2


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_script_that_runs_an_experiment_is_run_once(file: Path, jobs: int) -> None:
    module(file, "def search(queries, k):\n    return [['a'] for _ in queries]\n")
    script = file.parent / "script.py"
    script.write_text(
        f"import groupgt\n\nprint('begun')\nfile, jobs = {str(file)!r}, {jobs}\n"
        "outcome = groupgt.run_experiment(file, allow_code=True, jobs=jobs)\n"
        "print(outcome.evaluations['own']['mine']['recall'])\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(groupgt.__file__).parents[1])}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["begun", "1.0"]
