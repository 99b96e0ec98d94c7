"""Code of others is asked in each run, whatever it reads; what it said is used again where the user says so."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.plugins import REGISTERED, find, ours
from groupgt.report.run import run_experiment
from groupgt.report.times import from_cache, ways_to_keep
from groupgt.store.cache import Cache
from tests.retrievers.small import small
from tests.snapshots import Snapshot

pytestmark = pytest.mark.slow

# Each reads something in its own way, and is then changed: a module, and what changes between two runs.
PATTERNS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "its own bytes": ("FOUND = False", lambda folder: (folder / "mine.py").write_text(module_of("FOUND = True"))),
    "a module that is there or not": (
        "try:\n    from local_settings import FOUND\nexcept ImportError:\n    FOUND = False",
        lambda folder: (folder / "local_settings.py").write_text("FOUND = True\n"),
    ),
    "os.path.exists": (
        "FOUND = os.path.exists(HERE / 'flag')",
        lambda folder: (folder / "flag").touch(),
    ),
    "os.stat": (
        "FOUND = os.stat(HERE / 'data').st_size > 0",
        lambda folder: (folder / "data").write_text("x"),
    ),
    "a package that shadows a module": (
        "from shadowed import FOUND",
        lambda folder: module_at(folder / "shadowed" / "__init__.py", "FOUND = True\n"),
    ),
    "a namespace package of two parts": (
        "sys.path[:0] = [str(HERE / 'one'), str(HERE / 'two')]\nimport spaced\nimport importlib\n"
        "FOUND = importlib.util.find_spec('spaced.second') is not None",
        lambda folder: module_at(folder / "two" / "spaced" / "second.py", ""),
    ),
    "the current folder": ("FOUND = Path.cwd().name == 'elsewhere'", lambda folder: os.chdir(folder / "elsewhere")),
    "a descriptor of a folder": (
        "HANDLE = os.open(HERE, os.O_RDONLY)\nwith os.fdopen(os.open('data', os.O_RDONLY, dir_fd=HANDLE)) as file:\n"
        "    FOUND = file.read() == 'x'",
        lambda folder: (folder / "data").write_text("x"),
    ),
    "the environment": ("FOUND = 'GROUPGT_TEST_FLAG' in os.environ", lambda folder: os.environ.update(FLAG)),
    "another process": (
        "import subprocess\nFOUND = subprocess.run([sys.executable, '-c', "
        "'import sys; sys.exit(open(sys.argv[1]).read() == str())', str(HERE / 'data')]).returncode == 0",
        lambda folder: (folder / "data").write_text("x"),
    ),
    "a link that leads elsewhere": (
        "FOUND = os.readlink(HERE / 'link') == 'two'",
        lambda folder: ((folder / "link").unlink(), (folder / "link").symlink_to("two")),
    ),
}
FLAG = {"GROUPGT_TEST_FLAG": "1"}


def module_of(body: str) -> str:
    start = "import os, sys\nfrom pathlib import Path\n\nHERE = Path(__file__).parent\n"
    answer = "\n\ndef search(query, k):\n    return ['d1' if 'fares' in query and FOUND else 'd3']\n"
    return f"{start}{body}{answer}"


def module_at(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def of_mine(folder: Path, more: str = "") -> Path:
    return small(folder, f'mine: {{use: python, {more}with: {{target: "mine:search"}}}}')


@pytest.mark.parametrize(
    "pattern",
    [name if name == "its own bytes" else pytest.param(name, marks=pytest.mark.slow) for name in PATTERNS],
)
@pytest.mark.skipif(os.name == "nt", reason="links and descriptors of folders differ there")
def test_whatever_code_reads_the_next_run_sees_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    body, change = PATTERNS[pattern]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    for folder in ("elsewhere", "one/spaced", "two"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "data").touch()
    (tmp_path / "link").symlink_to("one")
    (tmp_path / "shadowed.py").write_text("FOUND = False\n")
    (tmp_path / "mine.py").write_text(module_of(body))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    file = of_mine(tmp_path)
    # A third of the queries is answered once what is looked for is there.
    before = run_experiment(file, allow_code=True)
    os.environ.pop("GROUPGT_TEST_FLAG", None)
    try:
        change(tmp_path)
        os.putenv("GROUPGT_TEST_FLAG", "1") if "environment" in pattern else None
        after = run_experiment(file, allow_code=True)
    finally:
        os.unsetenv("GROUPGT_TEST_FLAG")
    recall = [outcome.evaluations["set"]["mine"]["recall@1"] for outcome in (before, after)]
    # q3 is answered by d3 in both; q1 by d1 once it is there.
    assert recall == [pytest.approx(1 / 3), pytest.approx(2 / 3)]
    assert from_cache(after) == ""


def counting(folder: Path) -> Path:
    """A function that notes what it is asked, and stops where a file says so."""
    (folder / "beside.py").write_text("FIRST = 'd1'\n")
    (folder / "mine.py").write_text(
        "from pathlib import Path\nfrom beside import FIRST\n\nHERE = Path(__file__).parent\n\n"
        "def search(query, k):\n    import lately\n"
        "    if (HERE / 'stop').exists() and 'parking' in query:\n        raise OSError('the line is cut')\n"
        "    with open(HERE / 'log', 'a') as log:\n        log.write(query + '\\n')\n    return [FIRST, 'd3']\n"
    )
    (folder / "lately.py").write_text("")
    return of_mine(folder)


def asked(folder: Path) -> int:
    log = folder / "log"
    count = len(log.read_text().splitlines()) if log.exists() else 0
    log.unlink(missing_ok=True)
    return count


def interrupted(folder: Path) -> Path:
    """A run that was cut off after two of three answers."""
    file = counting(folder)
    (folder / "stop").touch()
    with pytest.raises(groupgt.RetrieverError, match="query 'q3': OSError: the line is cut"):
        run_experiment(file, allow_code=True)
    (folder / "stop").unlink()
    assert asked(folder) == 2
    return file


def test_an_interrupted_run_is_gone_on_from_and_that_is_told(tmp_path: Path) -> None:
    file = interrupted(tmp_path)
    (tmp_path / "beside.py").write_text("FIRST = 'd2'\n")  # which nothing examines
    outcome = run_experiment(file, allow_code=True, resume=True)
    assert asked(tmp_path) == 1
    told = "resumed: 2 of 3 answers of mine are from the run interrupted at 20"
    assert from_cache(outcome).startswith(told)
    assert from_cache(outcome).endswith(
        "UTC. groupgt did not check code or services for changes (--refresh starts from scratch)"
    )
    assert outcome.folder is not None
    assert json.loads((outcome.folder / "timings.json").read_text())["kept"] == from_cache(outcome)
    assert outcome.evaluations["set"]["mine"]["recall@1"] == pytest.approx(1 / 3)
    # It is finished now.
    assert from_cache(run_experiment(file, allow_code=True)) == ""
    assert asked(tmp_path) == 3


def test_refresh_asks_all_again(tmp_path: Path) -> None:
    file = interrupted(tmp_path)
    assert from_cache(run_experiment(file, allow_code=True, refresh=True)) == ""
    assert asked(tmp_path) == 3
    run_experiment(file, allow_code=True, changes=['systems.mine.version="1"'])
    assert asked(tmp_path) == 3
    run_experiment(file, allow_code=True, changes=['systems.mine.version="1"'], refresh=True)
    assert asked(tmp_path) == 3


def test_a_version_keeps_answers_and_reuse_takes_what_there_is(tmp_path: Path, snapshot: Snapshot) -> None:
    file = counting(tmp_path)
    for version, expected in (("1", 3), ("1", 0), ("2", 3), ("1", 0)):
        run_experiment(file, allow_code=True, changes=[f'systems.mine.version="{version}"'])
        assert asked(tmp_path) == expected
    run_experiment(file, allow_code=True)
    assert asked(tmp_path) == 3
    (tmp_path / "beside.py").write_text("FIRST = 'd2'\n")
    outcome = run_experiment(file, allow_code=True, reuse=True)
    assert asked(tmp_path) == 0
    assert from_cache(outcome).startswith("reused: 3 of 3 answers of mine are from the run that ended at 20")
    snapshot(from_cache(outcome))
    assert outcome.evaluations["set"]["mine"]["recall@1"] == pytest.approx(1 / 3)


def test_a_version_stands_beside_use_alone() -> None:
    """In the options of a retriever it would keep nothing."""
    with_one = [name for name in ours("retriever") if hasattr(find("retriever", name).options, "version")]
    assert with_one == []


def test_a_finished_run_is_not_gone_on_from_where_its_answers_could_not_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    file = counting(tmp_path)
    with monkeypatch.context() as full:
        full.setattr(Cache, "write", lambda *_: (_ for _ in ()).throw(groupgt.DataError("full")))
        with snapshot.warns(groupgt.GroupgtWarning):
            run_experiment(file, allow_code=True)
    assert from_cache(run_experiment(file, allow_code=True)) == ""
    assert asked(tmp_path) == 6


PLUGIN = """
from dataclasses import dataclass
from groupgt.retrievers.base import Options, RetrieverPlugin


class Fixed:
    def __init__(self, setting, options):
        self.ids = setting.corpus.ids[{first}:]

    def retrieve(self, queries, k):
        return [self.ids[:k] for _ in queries]


PLUGIN = RetrieverPlugin(Options, Fixed)
"""


def test_an_upgraded_plugin_is_not_scored_from_its_old_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = small(tmp_path, "mine: fixed")
    means = []
    for first in (0, 1):
        space: dict[str, Any] = {}
        exec(PLUGIN.format(first=first), space)
        monkeypatch.setitem(REGISTERED, ("retriever", "fixed"), space["PLUGIN"])
        # q1 is answered by d1, q2 by d2: one of three at rank 1, by either.
        outcome = run_experiment(file)
        means.append(outcome.evaluations["set"]["mine"].per_query["recall.autorag@1"].to_list())
    assert means == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


JUDGE = """
from pathlib import Path

LOG = Path(__file__).with_name("log")


def judge(pairs):
    with LOG.open("a") as log:
        log.writelines(f"{pair.qid} {pair.result} {pair.alternative}\\n" for pair in pairs)
    if LOG.with_name("stop").exists():
        raise OSError("no money left")
    return [pair.result == pair.alternative for pair in pairs]
"""


def test_verdicts_are_asked_once_in_each_run_over_all_systems_and_displays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    monkeypatch.chdir(tmp_path)
    file = small(tmp_path, "one: bm25\n  two: {use: bm25, with: {k1: 0.9}}")
    text = file.read_text().replace("metrics: [recall]}", "metrics: [recall], labeller: {use: code, LABEL}}")
    text = text.replace("formats: [json]", "formats: [report, table, json, csv, markdown]")
    (tmp_path / "judging.py").write_text(JUDGE)
    plain, versioned = ('with: {target: "judging:judge", batch_size: 1}', 'version: a, with: {target: "judging:judge"}')
    file.write_text(text.replace("LABEL", plain))
    main(["run", str(file), "--dry-run", "--allow-code", "--format", "json"])
    row = json.loads(capsys.readouterr().out)[-1]
    # Two systems of three results for three queries with one alternative each.
    assert (row["uses"], row["calls"], row["will"]) == ("code: judging:judge", 18, "judge at most 18 pairs")
    (tmp_path / "stop").touch()
    with pytest.raises(groupgt.DataError, match="no money left"):
        run_experiment(file, allow_code=True)
    (tmp_path / "stop").unlink()
    asked(tmp_path)
    for _ in range(2):
        outcome = run_experiment(file, allow_code=True)
        outcome.evaluations["set"]["one"].explain("q1")
        outcome.evaluations["set"]["one"].misses()
        pairs = (tmp_path / "log").read_text().splitlines()
        assert len(pairs) == len(set(pairs)) == asked(tmp_path)
    assert outcome.folder is not None
    main(["misses", str(outcome.folder), "--system", "one", "--allow-code"])
    assert asked(tmp_path) == 0
    snapshot(from_cache(run_experiment(file, allow_code=True, reuse=True)))
    assert asked(tmp_path) == 0
    file.write_text(text.replace("LABEL", versioned))
    for expected in (len(pairs), 0):
        run_experiment(file, allow_code=True)
        assert asked(tmp_path) == expected
    run_experiment(file, allow_code=True, refresh=True)
    assert asked(tmp_path) == len(pairs)


def test_verdicts_of_a_run_that_failed_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    monkeypatch.chdir(tmp_path)
    file = small(tmp_path, "one: bm25")
    text = file.read_text().replace(
        "metrics: [recall]}", 'metrics: [recall], labeller: {use: code, with: {target: "judging:judge"}}}'
    )
    file.write_text(text)
    (tmp_path / "judging.py").write_text(JUDGE)
    with monkeypatch.context() as broken:
        broken.setattr("groupgt.report.run.write_results", lambda *_: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(OSError, match="full"):
            run_experiment(file, allow_code=True)
    count = asked(tmp_path)
    assert count
    outcome = run_experiment(file, allow_code=True, resume=True)
    assert asked(tmp_path) == 0
    snapshot(from_cache(outcome))


def test_to_look_at_verdicts_takes_none_from_the_next_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    monkeypatch.chdir(tmp_path)
    file = small(tmp_path, "one: bm25")
    labeller = 'labeller: {use: code, with: {target: "judging:judge", batch_size: 1}}'
    file.write_text(file.read_text().replace("metrics: [recall]}", f"metrics: [recall], {labeller}}}"))
    (tmp_path / "judging.py").write_text(JUDGE.replace("exists()", "exists() and len(LOG.read_text().split()) > 6"))
    main(["run", str(file), "--dry-run", "--allow-code"])
    (tmp_path / "stop").touch()
    with pytest.raises(groupgt.DataError, match="no money left"):
        run_experiment(file, allow_code=True)
    (tmp_path / "stop").unlink()
    assert asked(tmp_path) == 3
    for options in ([], ["--refresh"], ["--reuse"]):
        main(["run", str(file), "--dry-run", "--allow-code", *options])
    said = capsys.readouterr()
    assert "except 2 that earlier runs judged" in said.out
    snapshot(said.err)
    outcome = run_experiment(file, allow_code=True, resume=True)
    snapshot(from_cache(outcome))
    assert asked(tmp_path) == 2


def test_without_a_cache_each_pair_is_judged_once_over_all_data_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "judging.py").write_text(JUDGE)
    file = small(tmp_path, "one: bm25")
    text = file.read_text().replace("metrics: [recall]}", "metrics: [recall], labeller: {use: code, LABEL}}")
    text = text.replace("LABEL", 'with: {target: "judging:judge"}')
    text = text.replace("systems:", "  other: {corpus: corpus.jsonl, ground_truth: truth.jsonl}\nsystems:")
    file.write_text(text + "cache: null\n")
    for _ in range(2):
        assert from_cache(run_experiment(file, allow_code=True)) == ""
        pairs = (tmp_path / "log").read_text().splitlines()
        assert len(pairs) == len(set(pairs)) == asked(tmp_path) == 4


def test_what_took_long_says_how_to_keep_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    (tmp_path / "mine.py").write_text("def search(query, k):\n    return ['d1']\n")
    outcome = run_experiment(of_mine(tmp_path), allow_code=True)
    assert ways_to_keep(outcome) == ""
    monkeypatch.setattr("groupgt.report.times.LONG", 0.0)
    snapshot(ways_to_keep(outcome))
