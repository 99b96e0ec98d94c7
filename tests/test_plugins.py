"""What is chosen by name: ours first, then what packages bring; what is at fault in a plugin is said in one line."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt import plugins
from groupgt.formats.format import Format
from groupgt.labellers.ids import Ids
from groupgt.plugins import OURS, Plugin, find, names, ours
from groupgt.report.run import run_experiment
from groupgt.retrievers.base import Options, RetrieverPlugin, Setting
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


@dataclass(frozen=True)
class Every:
    """`least` letters are counted as a token."""

    least: str


RETRIEVER = RetrieverPlugin(Reverse, Backwards)
LABELLER = Plugin(None, Ids)
TOKENIZER = Plugin(Every, lambda options, folder: lambda texts: [len(text) // int(options.least) for text in texts])
PIPED = Format("", truth=lambda source, policy: groupgt.GroundTruth.of({"q": [source.path.read_text().split("|")]}))
NO_PLUGIN = "no plugin"


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found or registered here is forgotten afterwards."""
    monkeypatch.setattr(plugins, "REGISTERED", {})


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Installed plugins; the groups that were looked up."""
    here = "tests.test_plugins"
    points = [
        EntryPoint("backwards", f"{here}:RETRIEVER", "groupgt.retrievers"),
        EntryPoint("nowhere", "no_such_module:PLUGIN", "groupgt.retrievers"),
        EntryPoint("wrong", f"{here}:NO_PLUGIN", "groupgt.retrievers"),
        EntryPoint("plain", f"{here}:LABELLER", "groupgt.retrievers"),
        EntryPoint("absent", f"{here}:MISSING", "groupgt.retrievers"),
        EntryPoint("bm25", f"{here}:RETRIEVER", "groupgt.retrievers"),
        EntryPoint("same", f"{here}:LABELLER", "groupgt.labellers"),
        EntryPoint("every", f"{here}:TOKENIZER", "groupgt.tokenizers"),
        EntryPoint("piped", f"{here}:PIPED", "groupgt.formats"),
        EntryPoint("lines", f"{here}:LABELLER", "groupgt.formats"),
    ]
    asked: list[str] = []

    def entry_points(*, group: str) -> importlib.metadata.EntryPoints:
        asked.append(group)
        return importlib.metadata.EntryPoints(points).select(group=group)

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    return asked


OURS_BY_KIND = [(kind, name) for kind, names in OURS.items() for name in names]


@pytest.mark.parametrize(("kind", "name"), OURS_BY_KIND)
def test_each_of_ours_is_found_by_its_name(kind: str, name: str, installed: list[str]) -> None:
    plugin = find(kind, name)
    assert (plugin.kind, plugin.name) == (kind, name)
    assert plugin.summary.endswith(".")
    assert "\n" not in plugin.summary
    assert find(kind, name) is plugin
    assert installed == []


def test_every_retriever_answers_or_combines_or_is_read() -> None:
    for name in ours("retriever"):
        plugin = find("retriever", name)
        assert (plugin.build is not None) + (plugin.fuse is not None) == (name != "results")
        assert issubclass(plugin.options, Options)


def test_a_module_is_imported_when_its_plugin_is_chosen() -> None:
    code = "from groupgt.plugins import find, ours; import sys; ours('labeller'); find('labeller', 'id');"
    code += "print([name for name in sys.modules if name.startswith('groupgt.labellers.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['groupgt.labellers.base', 'groupgt.labellers.ids']"


@pytest.mark.usefixtures("installed")
def test_an_installed_retriever_runs(tmp_path: Path) -> None:
    plugin = find("retriever", "backwards")
    assert (plugin.build, plugin.options, plugin.name) == (Backwards, Reverse, "backwards")
    assert plugin.summary == "Finds the last document first."
    outcome = run_experiment(small(tmp_path, "mine: {use: backwards, with: {fold: true}}"))
    # the last of d1, d2, d3 answers the third question alone
    assert outcome.evaluations["set"]["mine"]["recall@1"] == pytest.approx(1 / 3)


@pytest.mark.usefixtures("installed")
def test_an_installed_labeller_judges() -> None:
    found = groupgt.evaluate({"q": [["a"]]}, {"q": ["x", "a"]}, ["mrr"], labeller="same")
    assert found["mrr"] == 0.5
    with pytest.raises(groupgt.ConfigError, match=r"labeller same: x: unknown option 'x'; there are no options"):
        groupgt.evaluate({"q": [["a"]]}, {"q": ["a"]}, ["mrr"], labeller={"use": "same", "with": {"x": 1}})


@pytest.mark.usefixtures("installed")
def test_an_installed_tokenizer_counts() -> None:
    from groupgt.formats.tokenizers import tokenizer_named

    assert tokenizer_named("every:2")(["four", "six567"]) == [2, 3]
    with pytest.raises(groupgt.ConfigError, match=r"tokenizer: expected whitespace, .* or every, found 'every'"):
        tokenizer_named("every")


@pytest.mark.usefixtures("installed")
def test_an_installed_format_is_read_where_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "truth.txt").write_text("a|b")
    (tmp_path / "run.trec").write_text("q Q0 x 1 2 t\nq Q0 b 2 1 t\n")
    truth = groupgt.read_ground_truth(tmp_path / "truth.txt", "piped")
    assert groupgt.evaluate(truth, tmp_path / "run.trec", ["mrr"])["mrr"] == 0.5
    assert (find("format", "piped").name, find("format", "piped").summary) == ("piped", "Reads ground truth.")
    with pytest.raises(groupgt.DataError, match="expected ground truth"):  # it is not detected
        groupgt.read_ground_truth(tmp_path / "truth.txt")
    with pytest.raises(groupgt.ConfigError, match=r"format: expected .*, lines or piped, found 'pipe' \(did you mean"):
        groupgt.read_ground_truth(tmp_path / "truth.txt", "pipe")
    with pytest.raises(
        groupgt.ConfigError, match=r"format: expected .* trec or lines, found 'piped'"
    ):  # it reads no results
        groupgt.evaluate(truth, tmp_path / "run.trec", ["mrr"], run_format="piped")
    with pytest.raises(groupgt.ConfigError, match=r"LABELLER: expected a groupgt.formats.format.Format, found Plugin"):
        groupgt.read_ground_truth(tmp_path / "truth.txt", "lines")


@pytest.mark.usefixtures("installed")
def test_names_of_ours_come_first_and_are_not_replaced() -> None:
    assert names("retriever") == [*ours("retriever"), "absent", "backwards", "nowhere", "plain", "wrong"]
    assert find("retriever", "bm25").build is not Backwards
    assert names("engine") == ours("engine") == list(OURS["engine"])
    with pytest.raises(groupgt.ConfigError, match="labeller 'id': this name is built in and cannot be replaced"):
        plugins.register("labeller", "id", LABELLER)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere", "the plug-in no_such_module:PLUGIN cannot be loaded: ModuleNotFoundError: No module named"),
        ("absent", "the plug-in tests.test_plugins:MISSING cannot be loaded: AttributeError"),
        ("wrong", "the plug-in .*:NO_PLUGIN: expected a groupgt.retrievers.base.RetrieverPlugin, found 'no plugin'"),
        ("plain", "the plug-in .*:LABELLER: expected a groupgt.retrievers.base.RetrieverPlugin, found Plugin"),
        ("backward", r"found 'backward' \(did you mean 'backwards'\?\)"),
        (5, "expected bm25, .* or pgvector, found 5"),
    ],
)
def test_faults_of_plugins(name: Any, words: str) -> None:
    with pytest.raises(groupgt.ConfigError, match=words) as error:
        find("retriever", name)
    assert "\n" not in str(error.value)


@pytest.mark.usefixtures("installed")
def test_a_file_says_where_a_plugin_is_at_fault(tmp_path: Path) -> None:
    with pytest.raises(groupgt.ConfigError, match=r"trial.yaml:\d+:\d+: systems.mine.use: the plug-in no_such_module"):
        run_experiment(small(tmp_path, "mine: {use: nowhere}"))


@pytest.fixture
def brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A distribution on the path that brings a retriever, as pip would install it."""
    (tmp_path / "brought.py").write_text("from tests.test_plugins import RETRIEVER\n")
    info = tmp_path / "brought-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brought\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[groupgt.retrievers]\nbrought = brought:RETRIEVER\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("brought", None)


@pytest.mark.usefixtures("brought")
def test_a_package_on_the_path_is_found() -> None:
    assert "brought" in names("retriever")
    assert find("retriever", "brought").build.__name__ == "Backwards"


def test_what_is_not_installed_is_named_with_its_extra() -> None:
    plugin = Plugin(modules={"json": "a", "no_such_module": "b", "no_such.package": "c"})
    assert plugin.missing() == "needs no_such_module or no_such.package: pip install 'groupgt[b,c]'"
    assert Plugin(modules={"json": "a"}).missing() == ""
    assert plugin.extras == ["a", "b", "c"]
