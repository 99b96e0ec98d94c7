"""YAML files: the values of the 1.2 core rules, the place of each, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.experiment.plan import plan
from groupgt.experiment.yaml import plain_text, read_yaml
from tests.experiment.faulty_files import GOOD, told
from tests.snapshots import Snapshot


def read(tmp_path: Path, text: str) -> Any:
    file = tmp_path / "x.yaml"
    file.write_text(text, encoding="utf-8")
    document = read_yaml(file)
    document.faults.stop(groupgt.ConfigError)
    return document.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("True", "True"),
        ("yes", "yes"),
        ("off", "off"),
        ("1e-3", 0.001),
        ("1.5", 1.5),
        (".5", 0.5),
        ("-7", -7),
        ("010", "010"),
        ("0x10", "0x10"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("1_000", "1_000"),
        ('"12"', "12"),
        ("'true'", "true"),
        ("null", None),
        ("~", None),
        ("", None),
        ("[a, 1]", ["a", 1]),
        ("${env:GROUPGT_NOT_SET:-data}/x", "data/x"),
        ("${env:GROUPGT_NOT_SET:-}", ""),
    ],
)
def test_scalars(tmp_path: Path, text: str, value: Any) -> None:
    assert read(tmp_path, f"key: {text}\n") == {"key": value}


def test_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUPGT_TRIED", "5")
    assert read(tmp_path, "a: ${env:GROUPGT_TRIED}\n") == {"a": "5"}


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", "3:1", "duplicate key (first at 1:1)"),
        ("a: &x 1\nb: *x\n", "1:4", "anchors"),
        ("a: !!python/object/apply:os.system [ls]\n", "1:4", "python"),
        ("a: !thing 1\n", "1:4", "the tag !thing"),
        ("a: ${env:GROUPGT_NOT_SET}\n", "1:4", "GROUPGT_NOT_SET is not set"),
        ("a: [1\nb: 2\n", "2:2", "expected a comma or ] "),
        ("a:\n\t- 1\n", "2:1", "found a tab"),
        ("? [a]\n: 1\n", "1:3", "expected a key"),
        ("a: 1\n---\nb: 2\n", "2:1", "a second one after ---"),
        ("", "1:1", "empty"),
        ("[" * 100 + "]" * 100, "1:41", "levels"),
        ("a: 1\x00\n", "1:5", "control character"),
    ],
)
def test_refuses(tmp_path: Path, text: str, place: str, words: str) -> None:
    with pytest.raises(groupgt.ConfigError) as caught:
        read(tmp_path, text)
    assert f"x.yaml:{place}" in str(caught.value)
    assert words in str(caught.value)


def test_aliases_that_expand_without_end_are_never_expanded(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    with pytest.raises(groupgt.ConfigError, match="aliases"):
        read(tmp_path, "\n".join(lines))


def test_a_file_that_is_not_there_is_answered_with_one_that_is(tmp_path: Path, snapshot: Snapshot) -> None:
    (tmp_path / "experiment.yaml").write_text("version: 1\n")
    with snapshot.raises(groupgt.ConfigError):
        read_yaml(tmp_path / "experimnt.yaml")


def test_other_files(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(groupgt.ConfigError, match=r"x\.yaml:2:4: expected UTF-8"):
        read_yaml(file)
    file.write_bytes(b"a: " + b"x" * (1 << 21))
    with pytest.raises(groupgt.ConfigError, match="at most"):
        read_yaml(file)
    with pytest.raises(groupgt.ConfigError, match="cannot be read"):
        read_yaml(tmp_path)


@pytest.mark.parametrize(
    ("raw", "start"),
    [
        (b"", "1:1: the file is empty"),
        (b"# nothing\n", "1:1: the file is empty"),
        (b"- version: 1\n", "1:1: expected a mapping"),
        (GOOD.replace("seed", "\tseed").encode(), "4:1: found a tab"),
        (GOOD.encode("utf-16"), "1:1: expected UTF-8"),
        (GOOD.encode() + b"\x00", "61:1: expected text, found the control character"),
        (b"a: " + b"[" * 1000, "1:43: expected at most 40 levels"),
        (b"- " * 1000 + b"x", "1:81: expected at most 40 levels"),
    ],
)
def test_what_is_no_experiment_file(folder: Path, raw: bytes, start: str) -> None:
    file = folder / "e.yaml"
    file.write_bytes(raw)
    with pytest.raises(groupgt.ConfigError) as caught:
        plan(file)
    assert str(caught.value).removeprefix(f"{file}:").startswith(start)


@pytest.mark.parametrize("raw", [b"\xef\xbb\xbf" + GOOD.encode(), GOOD.replace("\n", "\r\n").encode()])
def test_marks_and_line_ends_of_other_editors(folder: Path, raw: bytes) -> None:
    file = folder / "e.yaml"
    file.write_bytes(raw)
    assert plan(file)


@pytest.mark.parametrize(
    ("settings", "starts"),
    [
        (["evaluate.k"], ["--set evaluate.k: expected path.to.key=value"]),
        (["=5"], ["--set =5: expected path.to.key=value"]),
        (["gate.9.min=1"], ["--set gate.9.min: nothing is set at gate.9"]),
        (["gate.0=~"], ["--set gate.0: gate.0: expected a mapping, found nothing"]),
        (["systems.sweep.matrix.k1.2=3"], ["--set systems.sweep.matrix.k1.2: expected a key of a mapping, or"]),
        (["systems.sweep.matrix.k1.x=3"], ["--set systems.sweep.matrix.k1.x: expected a key of a mapping, or"]),
        (
            ["systems.fused.matrix.k.0=x"],
            ["--set systems.fused.matrix.k.0: systems.fused.matrix.k.0: expected a whole"],
        ),
        (["systems.fused.with.deph=5"], ["--set systems.fused.with.deph: systems.fused.with.deph: unknown option"]),
        (["seed=x", "nam=x"], ["--set nam: nam: unknown key", "--set seed: seed: expected a whole number"]),
        (["name=[a"], ["--set name:1:3: expected a comma or ]"]),
        (["name=&a b"], ["--set name:1:1: anchors"]),
        (["cache=${env:GROUPGT_UNSET}"], ["--set cache:1:1: cache: the environment variable GROUPGT_UNSET is not set"]),
        (["output.folder.x=5"], ["--set output.folder.x: expected a key of a mapping"]),
        (["compare.baseline=plane"], ["--set compare.baseline: compare.baseline: expected plain"]),
        (["gate.2.slice.type=mlti"], ["--set gate.2.slice.type: gate.2.slice.type: no query in dataset 'mine'"]),
        (["compare=~"], ["54:50: gate.1.max_drop: max_drop needs a baseline"]),
    ],
)
def test_faults_of_changes(folder: Path, settings: list[str], starts: Sequence[str]) -> None:
    found = sorted(told(folder, GOOD, changes=settings))
    for each, start in zip(found, starts):
        assert each.startswith(start), found
    assert len(found) == len(starts), found


@pytest.mark.parametrize("setting", ["name=", "a.b.c=1", "evaluate..k=5", "systems.sweep.wiht.k1=1"])
def test_a_change_at_fault_is_named(folder: Path, setting: str) -> None:
    name = setting.partition("=")[0]
    found = told(folder, GOOD, changes=[setting])
    assert len(found) == 1, found
    assert found[0].startswith(f"--set {name}"), found


def test_a_terminal_shows_escapes() -> None:
    assert [plain_text(text) for text in ("bm25", "a\nb")] == ["bm25", r"'a\nb'"]
