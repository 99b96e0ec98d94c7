"""Values of environment variables are told nowhere: one is planted wherever the schema takes any text."""

from __future__ import annotations

import copy
import json
import re
import shutil
import types
import typing
import warnings
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
import pytest

import groupgt
from groupgt import plugins
from groupgt.cli.main import main
from groupgt.experiment.config import Config
from groupgt.experiment.yaml import is_free
from groupgt.options import options_of
from groupgt.private import Hide
from groupgt.runtime import zstd
from tests.render.test_page import read, value

pytestmark = pytest.mark.slow

KeyPath = tuple[str | int, ...]
SECRET = "s3cr3t-9f27c1d4"
BASE: dict[str, Any] = {
    "version": 1,
    "name": "trial",
    "datasets": {"own": {"ground_truth": "truth.jsonl", "corpus": "corpus.jsonl", "queries": "queries.jsonl"}},
    "systems": {
        "bm25": {"use": "bm25"},
        "kept": {"use": "results", "with": {"path": "kept.trec"}, "on_error": "skip"},
        "rrf": {"use": "rrf", "inputs": ["bm25"]},
    },
    "evaluate": {"metrics": ["recall@2", "mrr@2"], "primary": "recall@2", "by": ["kind"], "timed": 0},
    "compare": {"baseline": "bm25", "resamples": 100},
    "gate": [{"system": "bm25", "metric": "recall@2", "min": 0.1}],
    "output": {"formats": ["report", "table", "markdown", "csv", "json", "latex", "runs"]},
}
FILES = {
    "truth.jsonl": [
        {"qid": f"q{n}", "query": f"word{n}", "retrieval_gt": [[f"d{n}"]], "kind": "ab"[n % 2]} for n in range(4)
    ],
    "queries.jsonl": [{"qid": f"q{n}", "query": f"word{n}"} for n in range(4)],
    "corpus.jsonl": [{"doc_id": f"d{n}", "contents": f"word{n} and more"} for n in range(6)],
}


def below(hint: Any, path: KeyPath, base: Any) -> Iterator[KeyPath]:
    """The paths of all texts that a type may hold; where the base has no key of a mapping, one is made up."""
    if is_dataclass(hint):
        for key, option in options_of(hint).items():
            yield from below(option.hint, (*path, key), base.get(key) if isinstance(base, dict) else None)
    elif hint is str or hint is Any:
        yield path
    elif typing.get_origin(hint) is Annotated:
        yield from below(typing.get_args(hint)[0], path, base)
    elif typing.get_origin(hint) is list:
        yield from below(typing.get_args(hint)[0], (*path, 0), base[0] if base else None)
    elif typing.get_origin(hint) is dict:
        key = next(iter(base), "x") if isinstance(base, dict) else "x"
        yield from below(typing.get_args(hint)[1], (*path, key), base.get(key) if isinstance(base, dict) else None)
    elif typing.get_origin(hint) in (typing.Union, types.UnionType):
        for each in typing.get_args(hint):
            yield from below(each, path, base)
    elif typing.get_origin(hint) is typing.Literal:
        yield path


# What plug-ins need besides, so that they are built and asked.
VECTORS = {"documents": "d.npy", "queries": "q.npy"}
NEEDED: dict[str, dict[str, Any]] = {
    "retriever results": {"path": "kept.trec"},
    "retriever dense": VECTORS,
    "retriever ann": VECTORS,
    "retriever python": {"target": "mine:Refusing"},
    "retriever http": {"url": "http://127.0.0.1:9/search", "retries": 0, "timeout": 5},
    "retriever pgvector": {"queries": "q.npy", "dsn": "postgresql://127.0.0.1:9/x", "table": "t"},
    "labeller parents": {"mapping": "parents.csv"},
    "labeller text": {"corpus": "corpus.jsonl"},
    "labeller embedding": {"documents": "d.parquet", "alternatives": "d.parquet"},
    "labeller code": {"target": "mine:judge"},
}
CODE = """
import numpy as np

class Refusing:
    def __init__(self, corpus, **options):
        self.options = options

    def retrieve(self, queries, k):
        raise ValueError(f"refused {self.options} in {__file__}")

def judge(pairs):
    return np.ones(len(pairs))
"""
PLACES = {"retriever": ("systems", "planted"), "labeller": ("evaluate", "labeller"), "engine": ("engine",)}


def planted() -> dict[str, tuple[dict[str, Any], KeyPath]]:
    """Experiments as plain values, each with the path of a text: every one of the schema, and of every plug-in."""
    found = {}
    for path in dict.fromkeys(below(Config, (), BASE)):
        found[".".join(map(str, path))] = (BASE, path)
    for kind, place in PLACES.items():
        for name in plugins.ours(kind):
            for option in options_of(plugins.find(kind, name).options).values():
                for path in dict.fromkeys(below(option.hint, (option.name,), None)):
                    more = {"on_error": "skip"} if kind == "retriever" else {}
                    inputs = {"inputs": ["bm25"]} if name in ("rrf", "convex") else {}
                    options = NEEDED.get(f"{kind} {name}", {})
                    config = changed(BASE, place, {"use": name, "with": dict(options), **more, **inputs})
                    beside = place if (name, option.name) == ("code", "version") else (*place, "with")
                    found[f"{kind} {name}: {'.'.join(map(str, path))}"] = (config, (*beside, *path))
    return found


def changed(config: dict[str, Any], path: KeyPath, new: Any) -> dict[str, Any]:
    """The same values with another at a path."""
    copied = copy.deepcopy(config)
    holder: Any = copied
    for part, following in zip(path, (*path[1:], None)):
        if following is None:
            if isinstance(part, int) and part == len(holder):
                holder.append(new)
            else:
                holder[part] = new
        else:
            empty: Any = [] if isinstance(following, int) else {}
            if isinstance(part, int) and part == len(holder):
                holder.append(empty)
            elif isinstance(holder, dict) and not isinstance(holder.get(part), (dict, list)):
                holder[part] = empty
            holder = holder[part]
    return copied


def at(config: Any, path: KeyPath) -> Any:
    for part in path:
        try:
            config = config[part]
        except (KeyError, IndexError, TypeError):
            return None
    return config


# Names of metrics, systems and columns are no secrets.
PLANTED = {case: (config, path) for case, (config, path) in planted().items() if is_free(path)}
FREE = ("name", "datasets.own.ground_truth", "datasets.own.corpus", "datasets.own.fetch", "output.folder", "cache")
ASKED = ("retriever http: headers.x", "retriever pgvector: dsn", "labeller code: version")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data of a client" / "inner"
    folder.mkdir(parents=True)
    for name, rows in FILES.items():
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    lines = [f"q{n} Q0 d{n} 1 2 x\nq{n} Q0 d5 2 1 x\n" for n in range(4)]
    (folder / "kept.trec").write_text("".join(lines), encoding="utf-8")
    (folder / "mine.py").write_text(CODE, encoding="utf-8")
    (folder / "parents.csv").write_text("id,parent\n" + "".join(f"d{n},p{n}\n" for n in range(6)), encoding="utf-8")
    vectors = np.eye(6)
    np.save(folder / "d.npy", vectors)
    np.save(folder / "q.npy", vectors[:4])
    frame = pl.DataFrame({"doc_id": [f"d{n}" for n in range(6)], "vector": vectors.tolist()})
    frame.write_parquet(folder / "d.parquet")
    monkeypatch.chdir(tmp_path)
    return folder


def run(folder: Path, config: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, str]]:
    """Runs, checks and lists an experiment; the exit status of the run, and all that was told, by what holds it."""
    before = {path for path in folder.rglob("*") if path.is_file()}
    file = folder / "trial.yaml"
    file.write_text(json.dumps(config), encoding="utf-8")
    reports = ["--junit", str(folder / "gates.xml"), "--summary", str(folder / "summary.md")]
    told, codes = {}, []
    for arguments in (
        ["run", str(file), "--allow-code", *reports, "--details"],
        ["run", str(file), "--allow-code", "--format", "json"],
        ["run", str(file), "--allow-code", "--dry-run"],
        ["cache", str(file)],
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            try:
                main(arguments)
                codes.append(0)
            except SystemExit as end:
                codes.append(int(end.code or 0))
        shown = capsys.readouterr()
        told[f"{arguments[:1]} {arguments[-1]} out"], told[f"{arguments[:1]} {arguments[-1]} err"] = (
            shown.out,
            shown.err,
        )
    for path in sorted({path for path in folder.rglob("*") if path.is_file()} - before - {file}):
        data, name = path.read_bytes(), path.relative_to(folder).as_posix()
        if path.suffix == ".zst":
            data = zstd.decompress(data)
        told[name] = data.decode("utf-8", "replace")
        if path.name == "report.html":
            reader = read(data)
            blocks = {block: value(reader, block) for block in reader.blocks if not block.startswith("library")}
            told[name] += json.dumps(blocks, ensure_ascii=False)
        told[f"name of {name}"] = path.name if "results" not in name else name.partition("results")[2]
    return codes[0], told


def placed(folder: Path, config: dict[str, Any], path: KeyPath, secret: str) -> str:
    """What to plant at a path: where a file is named there, one of such a name is made."""
    named = at(config, path)
    if isinstance(named, str) and (folder / named).is_file():
        name = f"{re.sub('[^a-z0-9 -]', '', secret)[:80]}{Path(named).suffix}"
        shutil.copy(folder / named, folder / name)
        return name
    return secret


@pytest.mark.parametrize(
    "case", [case if case in FREE else pytest.param(case, marks=pytest.mark.slow) for case in PLANTED]
)
def test_a_secret_at_any_key_is_told_nowhere(
    case: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config, path = PLANTED[case]
    monkeypatch.setenv("GROUPGT_PLANTED", placed(folder, config, path, SECRET))
    _, told = run(folder, changed(config, path, "${env:GROUPGT_PLANTED}"), capsys)
    assert {name: text for name, text in told.items() if SECRET in text} == {}
    assert len(told) >= 10


@pytest.mark.parametrize("case", [*FREE, *ASKED])
def test_runs_with_a_secret_are_whole(
    case: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is searched above is not the message of a file that could not be read alone."""
    if "pgvector" in case:
        pytest.importorskip("psycopg", reason="the extra groupgt[pgvector] is not installed")
    config, path = PLANTED[case]
    monkeypatch.setenv("GROUPGT_PLANTED", placed(folder, config, path, SECRET))
    code, told = run(folder, changed(config, path, "${env:GROUPGT_PLANTED}"), capsys)
    assert code == 0
    assert {"gates.xml", "summary.md"} <= set(told)
    assert {"report.html", "table.txt", "results.json"} <= {Path(name).name for name in told}
    assert "${env:GROUPGT_PLANTED}" in "".join(told.values())


def test_a_run_that_fails_tells_no_secret(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GROUPGT_PLANTED", SECRET)
    options = {"key": "${env:GROUPGT_PLANTED}", "url": "https://me:hunter2@host/a"}
    system = {"use": "python", "with": {"target": "mine:Refusing", "options": options}}
    code, told = run(folder, changed(BASE, ("systems", "planted"), system), capsys)
    assert code == 2
    assert "{'key': '${env:GROUPGT_PLANTED}', 'url': 'https://…@host/a'}" in told["gates.xml"]
    for text in told.values():
        assert not re.search(f"{SECRET}|hunter2", text)


def test_no_folder_of_this_machine_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Absolute paths in the file, and in errors, in a folder whose name holds blanks; messages alone have them."""
    monkeypatch.chdir("/")
    config = changed(BASE, ("datasets", "own", "corpus"), str(folder / "corpus.jsonl"))
    config = changed(
        config, ("systems", "planted"), {"use": "python", "with": {"target": "mine:Refusing"}, "on_error": "skip"}
    )
    code, told = run(folder, config, capsys)
    assert code == 0
    written = {name: text for name, text in told.items() if not name.endswith(" err")}
    assert [name for name, text in written.items() if "of a client" in text or str(folder.parent) in text] == []
    page = next(text for name, text in told.items() if name.endswith("report.html") and "name of" not in name)
    assert "in mine.py" in page
    code, told = run(folder, changed(BASE, ("datasets", "own", "corpus"), str(folder / "absent.jsonl")), capsys)
    assert code == 2
    assert str(folder / "absent.jsonl") in told["['run'] --details err"]
    assert "file not found: absent.jsonl" in (folder / "gates.xml").read_text(encoding="utf-8")


def test_a_short_value_or_a_common_word_leaves_everything_as_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only where such a value is written itself there is a reference in its place."""
    pairs = [
        (("name",), "1"),
        (("datasets", "own", "fetch"), "best"),
        (("systems", "bm25", "with", "stopwords"), "english"),
    ]
    plain, referring = BASE, BASE
    for number, (path, word) in enumerate(pairs):
        monkeypatch.setenv(f"GROUPGT_WORD_{number}", word)
        plain = changed(plain, path, word)
        referring = changed(referring, path, f"${{env:GROUPGT_WORD_{number}}}")
    _, first = run(folder, plain, capsys)
    for made in ("results", ".groupgt"):
        shutil.rmtree(folder / made)
    _, second = run(folder, referring, capsys)

    def file(told: dict[str, str], ending: str) -> str:
        return next(text for name, text in told.items() if name.endswith(ending) and not name.startswith("name of"))

    assert file(first, "table.txt") == file(second, "table.txt").replace("${env:GROUPGT_WORD_0}", "1")
    results = [json.loads(file(told, "results.json")) for told in (first, second)]
    assert results[1] == {**results[0], "name": "${env:GROUPGT_WORD_0}"}


def test_a_choice_that_comes_from_the_environment_is_no_secret(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A metric or a system that the environment names is told, and a result folder can be read back."""
    monkeypatch.setenv("GROUPGT_METRIC", "recall@2")
    monkeypatch.setenv("GROUPGT_BASELINE", "the-long-name-of-bm25")
    config = copy.deepcopy(BASE)
    config["systems"]["the-long-name-of-bm25"] = {"use": "bm25", "with": {"k1": 2}}
    config["evaluate"]["primary"] = "${env:GROUPGT_METRIC}"
    config["compare"]["baseline"] = "${env:GROUPGT_BASELINE}"
    code, told = run(folder, config, capsys)
    assert code == 0
    assert not [name for name, text in told.items() if "${env:" in text]
    main(["report", str(folder / "results")])
    assert "the-long-name-of-bm25" in capsys.readouterr().out


def test_warnings_tell_no_secret(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUPGT_PLANTED", SECRET)
    (folder / f"{SECRET}.jsonl").write_text("", encoding="utf-8")
    config = changed(BASE, ("systems", "kept", "with", "path"), "${env:GROUPGT_PLANTED}.jsonl")
    (folder / "trial.yaml").write_text(json.dumps(config), encoding="utf-8")
    with pytest.warns(groupgt.GroupgtWarning) as caught:
        groupgt.run_experiment(folder / "trial.yaml")
    texts = [str(each.message) for each in caught]
    assert any("${env:GROUPGT_PLANTED}.jsonl: the file is empty" in text for text in texts)
    assert not any(SECRET in text for text in texts)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:secret@host/a?k=1 failed", "https://…@host/a?k=1 failed"),
        ("postgresql://me:pw@host:5432/x", "postgresql://…@host:5432/x"),
        ("https://host:8080/users/@me", "https://host:8080/users/@me"),
        ("https://${env:U}:${env:P}@host/a", "https://${env:U}:${env:P}@host/a"),
        ("/home/me/a b/sub/run.trec: no such file", "sub/run.trec: no such file"),
        ("/home/me/other/run.trec: no such file", "/home/me/other/run.trec: no such file"),
        ("the key k3y-of-mine was refused", "the key ${env:KEY} was refused"),
        ("1 of 11 with abc", "1 of 11 with abc"),
    ],
)
def test_what_is_hidden_of_a_text(text: str, shown: str) -> None:
    hide = Hide({"k3y-of-mine": "${env:KEY}", "1": "${env:ONE}", "abc": "${env:WORD}"}, Path("/home/me/a b"))
    assert hide(text) == shown
