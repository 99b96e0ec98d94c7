"""Help: options in groups, and examples that run."""

from __future__ import annotations

import csv
import inspect
import json
import re
import shlex
import shutil
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

import click
import pytest

import groupgt
from groupgt.cli.help import EXAMPLES, MOST_SHOWN, UNGROUPED_OPTIONS
from groupgt.cli.main import COMMANDS, SECTIONS, cli, main
from groupgt.comparison.settings import Settings
from groupgt.experiment.config import Compare

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
FIRST = ROOT / "examples" / "first"
PASSAGES = {name: f"Passage {name} says something about the number {at}." for at, name in enumerate("abcdefxyz")}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder with the files that the examples name."""
    monkeypatch.chdir(tmp_path)
    main(["init", "."])
    for name in ("a", "b"):
        main(["run", "experiment.yaml", "--out", f"results/{name}"])
    here_as = {"truth.jsonl": "qa.jsonl", "second.jsonl": "other.jsonl"}
    for name in ("bm25.trec", "dense.jsonl", *here_as):
        text = (FIRST / name).read_text(encoding="utf-8")
        for number, qid in enumerate(("capital", "author", "moons"), 1):
            text = re.sub(rf'(^|"qid": "){qid}', rf"\1q{number}", text, flags=re.MULTILINE)
        Path(here_as.get(name, name)).write_text(text, encoding="utf-8")
    ids = re.findall(r"\w[\w-]*", "".join(Path(name).read_text(encoding="utf-8") for name in here_as.values()))
    ids += re.findall(r"\w[\w-]*", Path("dense.jsonl").read_text(encoding="utf-8") + Path("bm25.trec").read_text())
    texts = {**PASSAGES, **{name: f"Passage {name}." for name in ids}}
    lines = [json.dumps({"doc_id": name, "contents": text}) for name, text in texts.items()]
    with open("corpus.jsonl", "a", encoding="utf-8") as corpus:
        corpus.write("\n".join(lines) + "\n")
    for name, size in (("old.csv", 1), ("new.csv", 2)):
        with open(name, "w", encoding="utf-8", newline="") as file:
            rows = [(f"{key}{'' if size == 1 else '2'}", "doc", at, at + size) for at, key in enumerate(texts)]
            csv.writer(file).writerows([("chunk_id", "doc_id", "start", "end"), *rows])
    Path("runs").mkdir()
    for name in "abcde":
        shutil.copy("bm25.trec", f"runs/{name}.trec")
    Path("answers.csv").write_text("qid,correct\nq1,1\nq2,0\nq3,1\n", encoding="utf-8")
    Path("gold.jsonl").write_text('{"qid": "q2", "correct": true}\n', encoding="utf-8")
    Path("queries.tsv").write_text("q1\tWhat is the capital?\n", encoding="utf-8")
    capsys.readouterr()
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_examples_run(monkeypatch: pytest.MonkeyPatch) -> None:
    # The page is served until it is interrupted.
    monkeypatch.setattr("groupgt.cli.judge._serve", lambda *_, **__: None)
    for command, examples in EXAMPLES.items():
        for example in examples:
            if command == "power":
                pytest.importorskip("scipy", reason="the extra groupgt[stats] is not installed")
            words = [command, *shlex.split(example)]
            if command == "report" and "results/a" in words:
                words[1:3] = [str(next(Path(place).rglob("results.json")).parent) for place in words[1:3]]
            main(words)


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_come_first_and_many_options_stand_in_groups(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = cli.get_command(click.Context(cli), name)  # type: ignore[attr-defined]
    assert command is not None
    with suppress(SystemExit):
        main([name, "--help"])
    text = capsys.readouterr().out
    options = [option for option in command.params if isinstance(option, click.Option)]
    is_grouped = len(options) + 1 > UNGROUPED_OPTIONS
    assert is_grouped == ("\nOutput:\n" in text or "\nInput:\n" in text) == (name in EXAMPLES)
    assert text.count("\n  groupgt ") >= 2 * is_grouped
    heads = re.findall(r"^(\w[\w ]*):", text, re.MULTILINE)
    order = ["Usage", "Examples", "Options", "Metrics", "Statistics", "Input", "Output"]
    assert heads == [head for head in order if head in heads]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_short_help_has_the_options_used_most(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for option in ("-h", "--help"):
        with suppress(SystemExit):
            main([name, option])
        texts.append(capsys.readouterr().out)
    short, long = texts
    if "Common options" not in short:
        assert short == long
        return
    assert short.count("\n  groupgt ") == 1
    assert f"All options: groupgt {name} --help" in short
    assert len(re.findall(r"^  -", short, re.MULTILINE)) in range(4, MOST_SHOWN + 1)
    assert len(short) < len(long)


def test_commands_stand_in_sections(capsys: pytest.CaptureFixture[str]) -> None:
    with suppress(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    parts = re.split(r"^(\w[\w ]*):$", text, flags=re.MULTILINE)
    listed = [re.findall(r"^  (\w+)  ", part, re.MULTILINE) for part in parts[6::2]]
    assert parts[5::2] == [*SECTIONS, "More"]
    assert sorted(name for names in listed for name in names) == sorted(COMMANDS)


def test_what_means_the_same_has_the_same_name_in_shell_python_and_yaml() -> None:
    """Settings of comparisons and of power; what is repeated in the shell is singular there."""
    compare = cli.get_command(click.Context(cli), "compare")  # type: ignore[attr-defined]
    assert compare is not None
    shell = {opt.lstrip("-").replace("-", "_") for option in compare.params for opt in option.opts}
    python = set(inspect.signature(groupgt.compare).parameters)
    keys = {field.name for field in fields(Compare)}
    for field in fields(Settings):
        assert field.name in shell & python, field.name
        assert field.name in keys or field.name == "seed"
    assert {"baseline", "primary", "by", "policy", "labeller", "corpus", "convention", "k"} <= shell & python
    power = cli.get_command(click.Context(cli), "power")  # type: ignore[attr-defined]
    assert power is not None
    assert {"difference", "power"} <= {opt.lstrip("-") for option in power.params for opt in option.opts}
    assert {"difference", "power"} <= set(inspect.signature(groupgt.power).parameters)
