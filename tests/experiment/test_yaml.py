"""YAML files: the values of the 1.2 core rules, the place of each, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.experiment.yaml import read_yaml


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
        ("a: 1\nb: 2\na: 3\n", "3:1", "stands twice (first at 1:1)"),
        ("a: &x 1\nb: *x\n", "1:4", "anchors"),
        ("a: !!python/object/apply:os.system [ls]\n", "1:4", "python"),
        ("a: !thing 1\n", "1:4", "the tag !thing"),
        ("a: ${env:GROUPGT_NOT_SET}\n", "1:4", "GROUPGT_NOT_SET is not set"),
        ("a: [1\nb: 2\n", "2:2", "not YAML"),
        ("a:\n\t- 1\n", "2:1", "not YAML"),
        ("? [a]\n: 1\n", "1:3", "expected a key"),
        ("a: 1\n---\nb: 2\n", "2:1", "not YAML"),
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
