"""Vectors by a sentence-transformers model; a fake one stands in, whose vectors count letters."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import groupgt
from groupgt.options import options_from
from groupgt.report.run import run_experiment
from groupgt.retrievers import vectors
from groupgt.retrievers.base import Corpus, Setting
from tests.retrievers.small import small

LETTERS = "abcdefghijklmnopqrstuvwxyz:"


class Model:
    """Counts letters; a model named after a fault has it."""

    asked: list[list[str]] = []  # noqa: RUF012  # emptied by the fixture

    def __init__(self, name: str, *, trust_remote_code: bool) -> None:
        assert not trust_remote_code
        if name == "absent":
            raise OSError("absent is no folder\nand nobody has it either")
        if name == "silent":
            raise ValueError
        self.name = name

    def encode(self, texts: Sequence[str], *, show_progress_bar: bool, convert_to_numpy: bool) -> Any:
        assert convert_to_numpy
        assert not show_progress_bar
        assert isinstance(texts, list)
        Model.asked.append(texts)
        counts = np.array([[text.lower().count(letter) for letter in LETTERS] for text in texts], dtype=np.float32)
        if self.name == "broken":
            counts[-1, 0] = np.nan
        return counts[:, :5] if self.name == "short" else counts


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("sentence_transformers")
    module.__spec__ = ModuleSpec("sentence_transformers", None)
    module.SentenceTransformer = Model  # type: ignore[attr-defined]
    module.__version__ = "6.0.1"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    monkeypatch.setattr(Model, "asked", [])


CORPUS = Corpus(["d1", "d2", "d3"], ["aaa", "bbb", "ab"])


def test_it_compares_the_vectors_of_texts() -> None:
    found = vectors.Dense(Setting(CORPUS), vectors.Options(model="any")).retrieve(["a", "bb", ""], 2)
    half = float(np.float32(np.sqrt(0.5)))
    assert found == [[("d1", 1.0), ("d3", half)], [("d2", 1.0), ("d3", half)], []]


def test_prefixes_stand_before_texts() -> None:
    options = vectors.Options(model="any", query_prefix="query: ", document_prefix="passage: ")
    vectors.Dense(Setting(CORPUS), options).retrieve(["a"], 2)
    assert Model.asked == [["passage: aaa", "passage: bbb", "passage: ab"], ["query: a"]]


def test_systems_of_a_sweep_share_the_vectors_of_the_corpus() -> None:
    corpus = Corpus(CORPUS.ids, CORPUS.texts)
    for similarity, prefix in (("cosine", ""), ("dot", ""), ("dot", "p:")):
        vectors.Dense(Setting(corpus), vectors.Options(model="any", similarity=similarity, document_prefix=prefix))
    assert Model.asked == [["aaa", "bbb", "ab"], ["p:aaa", "p:bbb", "p:ab"]]


def test_a_model_for_questions_and_a_file_for_documents(tmp_path: Path) -> None:
    np.save(tmp_path / "d.npy", np.eye(3, len(LETTERS)))
    options = vectors.Options(model="any", documents=str(tmp_path / "d.npy"))
    assert vectors.Dense(Setting(CORPUS), options).retrieve(["b"], 1) == [[("d2", 1.0)]]
    assert Model.asked == [["b"]]


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("absent", "the model 'absent' cannot be loaded: absent is no folder"),
        ("silent", "the model 'silent' cannot be loaded: ValueError"),
        ("broken", "the model 'broken': row 3: expected finite numbers, found NaN or infinity"),
    ],
)
def test_models_at_fault(model: str, words: str) -> None:
    with pytest.raises(groupgt.DataError) as error:
        vectors.Dense(Setting(CORPUS), vectors.Options(model=model))
    assert str(error.value) == words


def test_a_model_of_other_dimensions(tmp_path: Path) -> None:
    np.save(tmp_path / "d.npy", np.eye(3, len(LETTERS)))
    options = vectors.Options(model="short", documents=str(tmp_path / "d.npy"))
    with pytest.raises(groupgt.RetrieverError, match="short: expected 27 dimensions, as in the documents, found 5"):
        vectors.Dense(Setting(CORPUS), options).retrieve(["b"], 1)


def test_a_model_needs_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "find_spec", lambda name: None)
    with pytest.raises(groupgt.ConfigError, match=r"model: a model needs .* pip install 'groupgt\[dense\]'"):
        options_from(vectors.Options, {"model": "any"})


def test_a_whole_experiment_with_a_model(tmp_path: Path) -> None:
    outcome = run_experiment(small(tmp_path, "mine: {use: dense, with: {model: any}}"))
    assert outcome.evaluations["set"]["mine"]["recall@1"] == 1


def test_a_changed_model_folder_is_a_new_run(tmp_path: Path) -> None:
    folder = tmp_path / "own model"
    folder.mkdir()
    (folder / "weights").write_bytes(b"1")
    file = small(tmp_path, "mine: {use: dense, with: {model: own model}}")
    assert run_experiment(file).retrieved == 1
    assert run_experiment(file).cached == 1
    (folder / "weights").write_bytes(b"2")
    assert run_experiment(file).retrieved == 1


@pytest.mark.parametrize("version", ["5.7.0", "3.4.1", "0.1", "dev", None])
def test_a_library_that_runs_code_of_a_folder_is_refused(monkeypatch: pytest.MonkeyPatch, version: str | None) -> None:
    """Before anything of the model is read."""
    if version is None:
        monkeypatch.delattr(sys.modules["sentence_transformers"], "__version__")
    else:
        monkeypatch.setattr(sys.modules["sentence_transformers"], "__version__", version)
    monkeypatch.setattr(Model, "__init__", lambda *_, **__: pytest.fail("the model was loaded"))
    words = rf"the model 'any': sentence-transformers {version or 'of an unknown version'} runs code .* 6 or later is"
    with pytest.raises(groupgt.DataError, match=words):
        vectors.Dense(Setting(CORPUS), vectors.Options(model="any"))
    labeller = {"use": "embedding", "with": {"model": "any", "corpus": {"c": "a"}, "reference": {"a": "a"}}}
    with pytest.raises(groupgt.DataError, match=words):
        groupgt.evaluate({"q": [["a"]]}, {"q": ["c"]}, ["recall"], labeller=labeller)


@pytest.mark.parametrize("version", ["6.0.0", "6.2.0", "10.1"])
def test_later_libraries_are_fine(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(sys.modules["sentence_transformers"], "__version__", version)
    assert vectors.Dense(Setting(CORPUS), vectors.Options(model="any")).retrieve(["a"], 1)
