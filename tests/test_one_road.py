"""An option that is declared and used once works on every road: Python, shell, experiment files and pytest."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import groupgt

PACKAGE = Path(groupgt.__file__).parent
DECLARED = """
    skip: Annotated[
        Annotated[int, Minimum(0)],
        Default(0),
        Doc("Leave out the first N queries."),
        Shell(metavar="N"),
        InFile(),
    ]
"""
USED = '        selected = selected.select(range(self.options["skip"], len(selected)))\n'
TRUTH = "".join(
    json.dumps({"qid": f"q{n}", "query": f"text {n}", "retrieval_gt": [[f"d{n}"]]}) + "\n" for n in range(3)
)
# Of q0, nothing is found.
RUN = "q0 Q0 x 1 1 t\nq1 Q0 d1 1 1 t\nq2 Q0 d2 1 1 t\n"
EXPERIMENT = """\
version: 1
name: e
datasets: {d: {ground_truth: t.jsonl, skip: 1}}
systems: {s: {use: results, with: {path: r.trec}}}
evaluate: {metrics: [recall]}
output: {formats: []}
"""
TESTS = """\
import pytest

@pytest.mark.groupgt("t.jsonl", skip=1)
def test_found(groupgt_query):
    groupgt_query.assert_at_least([f"d{groupgt_query.id[1:]}"], {"recall": 1})
"""
ROADS = """\
import contextlib, io, json, pytest
import groupgt
from groupgt.cli.main import main

def shell(*words):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        main(list(words))
    return out.getvalue()

class Counted:
    def pytest_collection_finish(self, session):
        self.names = [item.name for item in session.items]

tests = Counted()
truth, run, twice = "t.jsonl", "r.trec", {"a": "r.trec", "b": "r.trec"}
evaluated = json.loads(shell("evaluate", truth, run, "-m", "recall", "--skip", "1", "--format", "json"))
means = [
    groupgt.evaluate(truth, run, ["recall"], skip=1).means["recall"],
    groupgt.compare(truth, twice, ["recall"], skip=1)["b"]["recall"].mean,
    evaluated["runs"][0]["metrics"]["recall"]["mean"],
]
shell("run", "e.yaml", "-o", "o", "--metrics-json", "m.json")
means += json.load(open("m.json")).values()
counts = [len(groupgt.read_ground_truth(truth, skip=1)), len(groupgt.misses(truth, run, skip=1).queries) + 2]
shell("convert", truth, "o.jsonl", "--to", "jsonl", "--skip", "1")
counts.append(len(groupgt.read_ground_truth("o.jsonl")))
with contextlib.redirect_stdout(io.StringIO()):
    status = pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", ".", "test_one.py"], plugins=[tests])
print(json.dumps([means, counts, status, tests.names]))
"""


def test_an_option_that_is_declared_works_on_every_road(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "groupgt")
    declaration, reading = (tmp_path / "groupgt" / "evaluation" / name for name in ("options.py", "reading.py"))
    before, limit, after = declaration.read_text(encoding="utf-8").partition("    limit: Annotated[\n")
    declaration.write_text(f"{before}{DECLARED[1:]}{limit}{after}", encoding="utf-8")
    before, use, after = reading.read_text(encoding="utf-8").partition("        return selected if limit is None")
    reading.write_text(f"{before}{USED}{use}{after}", encoding="utf-8")
    work = tmp_path / "work"
    work.mkdir()
    files = {"t.jsonl": TRUTH, "r.trec": RUN, "e.yaml": EXPERIMENT, "test_one.py": TESTS, "roads.py": ROADS}
    for name, text in files.items():
        (work / name).write_text(text, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "roads.py"], cwd=work, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    means, counts, status, names = json.loads(done.stdout)
    assert means == [1.0] * 4  # (1 + 1) ÷ 2; with q0, it would be 2 ÷ 3
    assert counts == [2, 2, 2]
    assert (status, names) == (0, ["test_found[q1]", "test_found[q2]"])
