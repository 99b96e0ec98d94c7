"""What the README shows is run, and prints what the README says."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from groupgt.cli.main import COMMANDS, main
from groupgt.experiment.reports import report
from groupgt.experiment.runner import run_experiment

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
CONSOLE = [text.split("\n", 1) for kind, text in BLOCKS if kind == "console"]


def test_the_quickstart_table_is_that_of_the_config(tmp_path: Path) -> None:
    outcome = run_experiment(ROOT / "configs" / "quickstart.yaml", output=tmp_path)
    shown = re.search(r"<!-- quickstart -->\n```text\n(.*?)\n```", README, re.DOTALL)
    assert shown is not None
    assert shown[1] == report(outcome)


@pytest.mark.parametrize(("command", "output"), CONSOLE, ids=lambda text: text[:50])
def test_commands_print_what_is_shown(
    command: str, output: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    words = shlex.split(command)
    assert words[:2] == ["$", "groupgt"]
    main(words[2:])
    assert capsys.readouterr().out.strip() == output.strip()


def test_there_are_commands_to_run() -> None:
    assert len(CONSOLE) >= 4


def test_python_blocks_run_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    printed = []
    for kind, text in BLOCKS:
        if kind == "python":
            exec(compile(text, "README.md", "exec"), names)
            printed.append(capsys.readouterr().out)
    shown = next(text for kind, text in BLOCKS if kind == "text" and "ndcg.coverage@10" in text)
    assert printed[0].strip() == shown.strip()
    assert "group 1: a or b" in printed[1]


def test_set_up_commands_are_one_line_each() -> None:
    start = README[README.index("## Two commands") :]
    first, second = re.findall(r"^```sh\n(.*?)^```", start, re.MULTILINE | re.DOTALL)[:2]
    assert first.count("\n") == second.count("\n") == 1
    assert "configs/quickstart.yaml" in first
    assert "pytest" in second
    assert second in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_every_command_and_metric_is_named() -> None:
    from groupgt.metrics.catalogue import CATALOGUE

    for command in COMMANDS:
        assert f"`groupgt {command}" in README
    for metric in CATALOGUE:
        assert f"`{metric}`" in README, metric


def test_links_lead_somewhere() -> None:
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / name).read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert (ROOT / target).exists(), f"{name}: {target}"


def test_every_config_runs(tmp_path: Path) -> None:
    for config in sorted((ROOT / "configs").glob("*.yaml")):
        assert run_experiment(config, output=tmp_path).folder


def test_every_example_script_runs(capsys: pytest.CaptureFixture[str]) -> None:
    import runpy

    scripts = sorted((ROOT / "examples").glob("*.py"))
    assert scripts
    for script in scripts:
        runpy.run_path(str(script), run_name="__main__")
        assert capsys.readouterr().out


def test_the_starter_is_what_init_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    main(["init", "here"])
    main(["run", "here/experiment.yaml"])
    assert shutil.rmtree(tmp_path / "here") is None
