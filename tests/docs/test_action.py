"""The action for workflows: its `run` steps on a repository, with `uses` steps and `gh` simulated."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.blocks import ROOT

TOOLS = ("bash", "git", "jq")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.name == "nt" or None in map(shutil.which, TOOLS), reason=f"the steps need {', '.join(TOOLS)}"
    ),
]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
# BM25 as it should be, with its length normalization broken, and without a difference.
GOOD, BROKEN = "{k1: 1.2, b: 0.75}", "{k1: 0.01, b: 1.0}"
BETTER = "{k1: 2, b: 0.75}"
EXPERIMENT = """\
version: 1
name: retrieval
convention: coverage
datasets:
  handbook: {{ground_truth: questions.jsonl, corpus: corpus.jsonl, where: {{split: test}}}}
systems:
  search: {{use: bm25, with: {options}}}
evaluate: {{metrics: [ndcg@10, recall@10], depth: 10, timed: 0}}
gate:
  - {{system: search, metric: ndcg@10, max_drop: 0.01, against: previous, unless: not_significant}}
output: {{formats: [json, report]}}
"""
# What `gh api` answers from the folder of a host: artifacts, their contents, and comments.
GH = """\
#!{python}
import json, os, subprocess, sys
from pathlib import Path
host = Path({host!r})
words = sys.argv[2:]
query = words[words.index("--jq") + 1] if "--jq" in words else "."
method = words[words.index("--method") + 1] if "--method" in words else "GET"
path = next(word for word in words if word.startswith("repos/"))
comments = sorted(host.glob("comment-*"))
if method != "GET":
    source = next(word for word in words if word.startswith("body=@"))
    name = path.rpartition("/")[2] if method == "PATCH" else str(len(comments) + 1)
    (host / f"comment-{{name}}").write_text(Path(source[6:]).read_text())
    reply = {{}}
elif path.endswith("/zip"):
    sys.stdout.buffer.write((host / path.split("/")[-2]).with_suffix(".zip").read_bytes())
    raise SystemExit
elif path.endswith("/comments"):
    reply = [{{"id": int(each.name[8:]), "body": each.read_text()}} for each in comments]
else:
    name = path.rpartition("name=")[2]
    listed = json.loads((host / "artifacts.json").read_text())
    reply = {{"artifacts": [each for each in reversed(listed) if each["name"] == name]}}
subprocess.run(["jq", "-r", query], input=json.dumps(reply), text=True, check=True)
"""
# The install is told, everything else is done.
PYTHON = """\
#!/usr/bin/env bash
if [ "$1 $2 $3" = "-m pip install" ]; then echo "$*" >> {host}/installed; else exec {python} "$@"; fi
"""


@dataclass
class Host:
    """A repository with its artifacts and comments."""

    folder: Path
    repository: Path
    artifacts: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def at(cls, folder: Path) -> Host:
        host, repository, binaries = folder / "host", folder / "repository", folder / "bin"
        for each in (host, repository, binaries):
            each.mkdir()
        for name, text in (("gh", GH), ("python", PYTHON)):
            (binaries / name).write_text(text.format(python=sys.executable, host=str(host)))
            (binaries / name).chmod(0o755)
        for name in ("questions.jsonl", "corpus.jsonl"):
            shutil.copy(ROOT / "examples" / "handbook" / name, repository / name)
        (host / "artifacts.json").write_text("[]")
        made = cls(host, repository)
        made.git("init", "-q", "-b", "main")
        return made

    def git(self, *words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *words], cwd=self.repository, check=True, capture_output=True)

    def commit(self, branch: str, options: str) -> None:
        """Commit the experiment with these options of BM25, in a branch of the current commit."""
        self.git("checkout", "-q", "-B", branch)
        (self.repository / "experiment.yaml").write_text(EXPERIMENT.format(options=options))
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", branch)

    def upload(self, name: str, path: Path, branch: str) -> None:
        self.artifacts.append(
            {
                "id": len(self.artifacts) + 1,
                "name": name,
                "expired": False,
                "workflow_run": {"head_branch": branch, "head_repository_id": 7, "repository_id": 7},
            }
        )
        shutil.make_archive(str(self.folder / str(len(self.artifacts))), "zip", path)
        (self.folder / "artifacts.json").write_text(json.dumps(self.artifacts))

    @property
    def comments(self) -> list[str]:
        return [path.read_text() for path in sorted(self.folder.glob("comment-*"))]


@dataclass
class Job:
    """One run of the action: its exit status, outputs, what it printed, the summary of the job, and actions it used."""

    status: int
    outputs: dict[str, str]
    printed: str
    summary: str
    used: list[str]


def value_of(text: str, context: dict[str, Any]) -> Any:
    """The value of an expression of a workflow, as far as the action uses them."""

    def looked_up(match: re.Match[str]) -> str:
        if match[1] is not None:
            return match[0]
        found: Any = context
        for key in match[0].split("."):
            found = found.get(key, "") if isinstance(found, dict) else ""
        return repr(found)

    plain = re.sub(r"('[^']*')|[a-z][\w-]*(?:\.[\w-]+)+", looked_up, text)
    return eval(plain.replace("||", " or ").replace("&&", " and "), {"__builtins__": {}})


def filled(text: str, context: dict[str, Any]) -> str:
    """A text with the values of its expressions."""
    return re.sub(r"\$\{\{(.*?)\}\}", lambda match: str(value_of(match[1].strip(), context)), text)


def run(host: Host, branch: str, *, base: str = "", fork: bool = False, **inputs: str) -> Job:
    """Run the action as a push to a branch does or, with a base, a pull request."""
    temporary = host.folder / "tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    defaults = {name: each.get("default", "") for name, each in ACTION["inputs"].items()}
    head = {"repo": {"full_name": "else/where" if fork else "we/search"}}
    context: dict[str, Any] = {
        "inputs": defaults
        | {"config": "experiment.yaml"}
        | {name.replace("_", "-"): cell for name, cell in inputs.items()},
        "github": {
            "token": "secret",
            "base_ref": base,
            "ref_name": branch,
            "repository": "we/search",
            "run_id": 1,
            "event_name": "pull_request" if base else "push",
            "event": {"pull_request": {"number": 5, "head": head}} if base else {},
        },
        "runner": {"os": "Linux"},
        "steps": {},
    }
    files = {name: temporary / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_STEP_SUMMARY")}
    places = f"{host.folder.parent / 'bin'}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    outer = {
        **{name: cell for name, cell in os.environ.items() if not name.startswith("GITHUB_")},
        **{name: str(path) for name, path in files.items()},
        "PATH": places,
        "RUNNER_TEMP": str(temporary),
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_REPOSITORY": "we/search",
    }
    status, printed, used = 0, "", []
    for step in ACTION["runs"]["steps"]:
        if status or ("if" in step and not value_of(step["if"], context)):
            continue
        settings = {name: filled(str(cell), context) for name, cell in step.get("with", {}).items()}
        if "uses" in step:
            used.append(" ".join([step["uses"].partition("@")[0].rpartition("/")[2], settings.get("path", "")]))
            if "upload-artifact" in step["uses"]:
                host.upload(settings["name"], Path(settings["path"]), branch)
            continue
        for path in files.values():
            path.touch()
        files["GITHUB_OUTPUT"].write_text("")
        environment = {name: filled(str(cell), context) for name, cell in step.get("env", {}).items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", filled(step["run"], context)],
            cwd=host.repository,
            env=outer | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        status, printed = done.returncode, printed + done.stdout + done.stderr
        lines = [line.partition("=") for line in files["GITHUB_OUTPUT"].read_text().splitlines()]
        context["steps"][step.get("id", "")] = {"outputs": {name: cell for name, _, cell in lines}}
    outputs = {name: filled(each["value"], context) for name, each in ACTION["outputs"].items()}
    return Job(status, outputs, printed, files["GITHUB_STEP_SUMMARY"].read_text(), used)


def decision(job: Job) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(job.outputs["decision"])["handbook"]
    return found


def test_a_pull_request_is_compared_with_its_base(tmp_path: Path) -> None:
    host = Host.at(tmp_path)
    host.commit("main", GOOD)
    first = run(host, "main")
    assert first.status == 0, first.printed
    assert first.outputs["passed"] == "true"
    assert [each["name"] for each in host.artifacts] == ["groupgt", "groupgt-baseline"]
    assert (host.folder / "installed").read_text() == f"-m pip install --quiet {ROOT}\n"
    assert host.comments == []

    # Worse: the gate fails, everything is stored, and the comment says so.
    host.commit("worse", BROKEN)
    worse = run(host, "worse", base="main")
    assert worse.status == 1
    assert "::error::A retrieval gate failed" in worse.printed
    assert (worse.outputs["passed"], decision(worse)["badge"]) == ("false", "Blocked")
    assert "search fell 0.041 in ndcg@10" in worse.summary
    assert [each["name"] for each in host.artifacts[2:]] == ["groupgt"]
    assert host.comments == [f"<!-- groupgt: retrieval -->\n{worse.summary}"]

    # Equal: a second run of the same pull request rewrites its comment.
    host.commit("worse", GOOD)
    equal = run(host, "worse", base="main")
    assert (equal.status, decision(equal)["badge"]) == (0, "Passed")
    assert host.comments == [f"<!-- groupgt: retrieval -->\n{equal.summary}"]
    assert "Blocked" not in host.comments[0]

    # A fork may not comment: it has the summary of its job.
    host.commit("worse", BROKEN)
    forked = run(host, "worse", base="main", fork=True)
    assert (forked.status, "Blocked" in forked.summary) == (1, True)
    assert host.comments == [f"<!-- groupgt: retrieval -->\n{equal.summary}"]


def test_better_than_the_base_and_no_comparison(tmp_path: Path) -> None:
    host = Host.at(tmp_path)
    host.commit("main", BROKEN)
    run(host, "main", extras="stats")
    assert (host.folder / "installed").read_text() == f"-m pip install --quiet {ROOT}[stats]\n"
    host.commit("better", GOOD)
    better = run(host, "better", base="main", comment="false")
    assert (better.status, better.outputs["passed"]) == (0, "true")
    assert "significantly better" in better.summary
    assert host.comments == []
    # Another branch, or none: there is nothing to compare with, and the gate is skipped.
    for against in ("release", "none"):
        alone = run(host, "better", base="main", against=against, args="--set seed=7")
        assert alone.status == 0, alone.printed
        assert "No previous run to compare with" in alone.summary
        assert "better" not in decision(alone)["sentence"]


ARGUMENTS = """
--set "name='two words'"
--set seed=7
  --only 'sea*'

"""


def test_every_input(tmp_path: Path) -> None:
    """Arguments over several lines, with quotes; an experiment in a folder, and names of one's own."""
    host = Host.at(tmp_path)
    host.commit("main", GOOD)
    folder = host.repository / "an experiment"
    folder.mkdir()
    for path in [path for path in host.repository.iterdir() if path.is_file()]:
        shutil.copy(path, folder)
    named = {"config": "an experiment/experiment.yaml", "name": "search", "python_version": ""}
    job = run(host, "main", args=ARGUMENTS, extras="stats,retrieval", against="none", comment="false", **named)
    assert (job.status, job.outputs["passed"]) == (0, "true"), job.printed
    assert (host.folder / "installed").read_text() == f"-m pip install --quiet {ROOT}[stats,retrieval]\n"
    assert job.summary.startswith("## two words")
    assert json.loads(next(Path(job.outputs["results"]).rglob("manifest.json")).read_text())["config"]["seed"] == 7
    assert [each["name"] for each in host.artifacts] == ["search", "search-baseline"]
    results = f"upload-artifact {job.outputs['results']}"
    assert job.used == ["cache an experiment/.groupgt/cache", results, results]
    # A failing gate among the arguments: exit status 1 at the end, with all outputs.
    gate = "[{system: search, metric: recall@10, min: 0.99}]"
    failed = run(host, "main", args=f"--set\n  'gate={gate}'", against="none", **named)
    assert (failed.status, failed.outputs["passed"], decision(failed)["badge"]) == (1, "false", "Blocked")
    assert all(Path(failed.outputs[name]).exists() for name in ("summary", "results"))
    # A quote that is not closed is said at once.
    wrong = run(host, "main", args="--set 'seed=7", against="none")
    assert (wrong.status, wrong.outputs["passed"]) == (2, "")
    assert wrong.printed == '::error::args: No closing quotation, found "--set \'seed=7"\n'


def test_invalid_input_fails_at_once(tmp_path: Path) -> None:
    host = Host.at(tmp_path)
    host.commit("main", GOOD)
    wrong = run(host, "main", config="missing.yaml")
    assert wrong.status == 2
    assert "missing.yaml" in wrong.printed
    assert host.artifacts == []


def test_a_repository_from_nothing(tmp_path: Path) -> None:
    """A lost id stops the commit, a regression fails its pull request, and an improvement passes."""
    host = Host.at(tmp_path)
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hook["pass_filenames"] is False
    words = shlex.join([*hook["entry"].split(), "experiment.yaml", "--junit", str(tmp_path / "checks.xml")])
    script = host.repository / ".git" / "hooks" / "pre-commit"
    script.write_text(f"#!/bin/sh\nPATH={Path(sys.executable).parent}:$PATH exec {words}\n")
    script.chmod(0o755)
    host.commit("main", GOOD)
    assert run(host, "main").outputs["passed"] == "true"

    # An id that the corpus loses: git commits nothing, and the report names it.
    corpus = host.repository / "corpus.jsonl"
    text = corpus.read_text(encoding="utf-8")
    corpus.write_text(text.replace('"gift-vouchers"', '"gift-voucher"'), encoding="utf-8")
    with pytest.raises(subprocess.CalledProcessError) as stopped:
        host.commit("lost", GOOD)
    assert stopped.value.returncode == 1
    lost = "ids of the ground truth that are not in the corpus: 1 in questions.jsonl (gift-vouchers)\n"
    assert lost in stopped.value.stderr.decode()
    failures = ET.parse(tmp_path / "checks.xml").getroot().findall("testsuite/testcase[failure]")
    assert [case.get("name") for case in failures] == ["ids of the ground truth that are not in the corpus"]
    corpus.write_text(text, encoding="utf-8")

    # A regression: the comment names the queries to look at, with their text.
    host.commit("worse", BROKEN)
    worse = run(host, "worse", base="main")
    assert (worse.status, decision(worse)["badge"]) == (1, "Blocked")
    assert "Look at these 3 queries first (lost by search since the previous run)" in worse.summary
    lost = "| **h143**  | 0.301 → 0.000 | if I take out an Islander Card today, when does it run out "
    assert lost in worse.summary
    assert host.comments == [f"<!-- groupgt: retrieval -->\n{worse.summary}"]

    # An improvement passes, and replaces the comment.
    host.git("checkout", "-q", "main")
    host.commit("better", BETTER)
    better = run(host, "better", base="main")
    assert (better.status, decision(better)["badge"]) == (0, "Passed")
    assert "search is significantly better than in the previous run: +0.013 in ndcg@10" in better.summary
    assert host.comments == [f"<!-- groupgt: retrieval -->\n{better.summary}"]
