"""`use:` names a retriever of the house, or a plugin's; what is at fault in a plugin is said in one line."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.experiment.runner import run_experiment
from groupgt.retrievers import registry
from groupgt.retrievers.base import Kind, Options, Setting
from tests.retrievers.small import small


@dataclass(frozen=True)
class Reverse(Options):
    """Options of a plugin."""

    fold: bool = False


class Backwards:
    """Finds the last document first."""

    def __init__(self, setting: Setting, options: Reverse) -> None:
        self.ids = setting.corpus.ids

    def retrieve(self, queries: Any, k: int) -> list[list[str]]:
        return [self.ids[::-1][:k] for _ in queries]


KIND = Kind(Reverse, Backwards)
NO_KIND = "no kind"


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("backwards", "tests.retrievers.test_registry:KIND", registry.GROUP),
        EntryPoint("nowhere", "no_such_module:KIND", registry.GROUP),
        EntryPoint("wrong", "tests.retrievers.test_registry:NO_KIND", registry.GROUP),
        EntryPoint("absent", "tests.retrievers.test_registry:MISSING", registry.GROUP),
        EntryPoint("bm25", "tests.retrievers.test_registry:KIND", registry.GROUP),
    ]

    def entry_points(*, group: str, name: str | None = None) -> importlib.metadata.EntryPoints:
        return importlib.metadata.EntryPoints(points).select(group=group, **({"name": name} if name else {}))

    monkeypatch.setattr(registry, "entry_points", entry_points)


@pytest.mark.usefixtures("plugins")
def test_a_plugin_is_found_and_runs(tmp_path: Path) -> None:
    assert registry.kind_named("backwards") is KIND
    outcome = run_experiment(small(tmp_path, "mine: {use: backwards, with: {fold: true}}"))
    # the last of d1, d2, d3 answers the third question alone
    assert outcome.evaluations["set"]["mine"]["recall@1"] == pytest.approx(1 / 3)


@pytest.mark.usefixtures("plugins")
def test_the_houses_own_names_come_first_and_are_not_replaced() -> None:
    assert registry.names() == [*registry.RETRIEVERS, "absent", "backwards", "nowhere", "wrong"]
    assert registry.kind_named("bm25") is registry.RETRIEVERS["bm25"]


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere", "the plugin no_such_module:KIND cannot be loaded: ModuleNotFoundError: No module named"),
        ("absent", "the plugin tests.retrievers.test_registry:MISSING cannot be loaded: AttributeError"),
        ("wrong", "the plugin .*:NO_KIND: expected a groupgt.retrievers.base.Kind, found 'no kind'"),
        ("backward", r"found 'backward' \(did you mean 'backwards'\?\)"),
    ],
)
def test_faults_of_plugins(name: str, words: str) -> None:
    with pytest.raises(groupgt.ConfigError, match=words) as error:
        registry.kind_named(name)
    assert "\n" not in str(error.value)


@pytest.mark.usefixtures("plugins")
def test_a_file_says_where_a_plugin_is_at_fault(tmp_path: Path) -> None:
    with pytest.raises(groupgt.ConfigError, match=r"trial.yaml:\d+:\d+: systems.mine.use: the plugin no_such_module"):
        run_experiment(small(tmp_path, "mine: {use: nowhere}"))


def test_what_is_not_installed_is_named_with_its_extra() -> None:
    kind = Kind(Reverse, Backwards, modules={"json": "a", "no_such_module": "b", "no_such.package": "c"})
    assert registry.absent(kind) == "needs no_such_module or no_such.package: pip install 'groupgt[b,c]'"
    assert registry.absent(Kind(Reverse, Backwards, modules={"json": "a"})) is None


def test_every_retriever_answers_or_combines_or_is_read() -> None:
    for name, kind in registry.RETRIEVERS.items():
        assert (kind.build is not None) + (kind.fuse is not None) == (name != "results")
        assert issubclass(kind.options, Options)
