"""How much is tried: few examples by default, many where the slow tests are asked for too (`-m ""`).

The examples of hypothesis are the same every time; `GROUPGT_RANDOM=1` draws new ones.

And what tests of bad input begin with: the command line in this process, all readers of text files, a ground truth; a
browser; and that examples register nothing for good.
"""

from __future__ import annotations

import gc
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests import browser as driver
from tests.bad_input import TRUTH, Cli, Outcome

pytest_plugins = ["pytester", "tests.snapshots"]

FOLDER = Path(__file__).parent
DEFAULT = "not property and not slow and not faults"
# A module whose tests are all left out by default.
LEFT_OUT = re.compile(r"^pytestmark = \[?pytest\.mark\.(property|slow|faults)\b", re.MULTILINE)

for _name, _examples in (("short", 15), ("full", 200)):
    settings.register_profile(
        _name,
        max_examples=_examples,
        deadline=None,
        derandomize="GROUPGT_RANDOM" not in os.environ,
        suppress_health_check=[HealthCheck.too_slow],
    )


# Hypothesis also tries the constants of the modules that are loaded: what is tried would depend on the tests before.
providers._get_local_constants = lambda: providers._local_constants


def pytest_configure(config: pytest.Config) -> None:
    short = config.getoption("markexpr") == DEFAULT
    settings.load_profile("short" if short else "full")
    if short:
        # None of these tests cuts the power, so thousands of small files need not wait for the disk.
        os.fsync = lambda _: None
    # Workers and the many commands that tests start would each compile every module again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import a module whose tests are all left out by default; pytest asks only for what is not named."""
    if collection_path.suffix != ".py" or config.getoption("markexpr") != DEFAULT:
        return None
    return True if LEFT_OUT.search(collection_path.read_text(encoding="utf-8")) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Each worker of pytest-xdist compiles a share of the test modules, and finds the others' when it collects."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None or [Path(each).name for each in session.config.args] != [FOLDER.name]:
        return
    own = slice(int(worker["workerid"].removeprefix("gw")), None, worker["workercount"])
    for path in sorted(FOLDER.rglob("test_*.py"))[own]:
        # A fault is reported when it is collected.
        with suppress(Exception, pytest.skip.Exception):
            import_module(".".join(path.relative_to(FOLDER.parent).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """Leave what all tests share out of every collection of garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture
def _own_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an example registers is forgotten afterwards."""
    from groupgt import plugins

    monkeypatch.setattr(plugins, "REGISTERED", {})


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs the command line in this process; anything but an exit is a failure of the test."""
    from groupgt.cli.main import main

    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        status: object = 0
        with warnings.catch_warnings():
            try:
                main([str(argument) for argument in arguments])
            except SystemExit as end:
                status = end.code or 0
        captured = capsys.readouterr()
        assert isinstance(status, int)
        assert "Traceback" not in captured.err
        return Outcome(status, captured.out, captured.err)

    return run


@pytest.fixture(params=["small", pytest.param("large", marks=pytest.mark.property), "huge"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """All readers of text files: `large` and `huge` make every file count as one that is."""
    from groupgt.formats import source

    if request.param != "small":
        monkeypatch.setattr(source, "SMALL", 0)
    if request.param == "huge":
        monkeypatch.setattr(source, "HUGE", 0)
    return str(request.param)


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    path = tmp_path / "truth.jsonl"
    path.write_text(TRUTH, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def browser() -> Iterator[driver.Browser]:
    """A browser for the tests of pages, if there is one."""
    if driver.found() is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium, or set GROUPGT_BROWSER")
    with driver.running() as found:
        yield found


@pytest.fixture(scope="module")
def tab(browser: driver.Browser) -> driver.Tab:
    return browser.tab()
