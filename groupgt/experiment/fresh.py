"""Runs user code in a new process (`Fresh`), and all other retrievers in the current process (`Here`)."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import ModuleType
from typing import Any

from groupgt.errors import ConfigError, GroupgtError, RetrieverError
from groupgt.formats.modules import imported
from groupgt.private import private_messages
from groupgt.retrievers.base import Answers, Corpus, Queries, RetrieverPlugin, Setting, ask
from groupgt.runtime import ended, interrupts_blocked, raised, users_code

# If this is set, Python starts without the current folder on its path.
SAFE_PATH = "PYTHONSAFEPATH"
# Results, and milliseconds per call.
Reply = tuple[Answers, list[float]]


class Here:
    """A retriever in this process. `singly` is True if each call has one query, with the columns in `sends`."""

    way = ""

    def __init__(self, system: str, kind: RetrieverPlugin, options: Any, setting: Setting) -> None:
        self.system = system
        start = time.perf_counter()
        with users_code():
            self.retriever = kind.built(setting, options)
        self.build_s = time.perf_counter() - start
        self.singly: bool | None = options.asks_singly()
        self.sends: Sequence[str] = options.sends()

    def ask(self, queries: Queries, k: int) -> Reply:
        """Return results, and milliseconds per call."""
        return ask(self.system, self.retriever, queries, k)

    def close(self) -> None:
        """Close everything that the retriever has opened."""
        getattr(self.retriever, "close", lambda: None)()


class Fresh:
    """A retriever in a new process. Without `builds`, the target is only imported, to see how it is called (`way`)."""

    def __init__(
        self, system: str, kind: RetrieverPlugin, options: Any, setting: Setting, *, builds: bool = True
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self.channel, theirs = context.Pipe()
        self.child = context.Process(target=_serve, args=(theirs, setting.folder, os.environ.get(SAFE_PATH)))
        with starting():
            self.child.start()
        theirs.close()
        try:
            # Without what systems have made of the corpus.
            sent = replace(setting, corpus=Corpus(setting.corpus.ids, setting.corpus.texts))
            build = kind.build if builds else None
            self.way, self.sends, self.singly, self.build_s = self._call(system, build, options, sent)
        except BaseException:
            self.close()
            raise

    def ask(self, queries: Queries, k: int) -> Reply:
        """Return results, and milliseconds per call."""
        reply: Reply = self._call(list(queries), queries.ids, queries.columns, k)
        return reply

    def close(self) -> None:
        """End the process."""
        self.child.kill()
        self.child.join()
        self.channel.close()

    def _call(self, *message: Any) -> Any:
        """Send a message and return the reply, or raise errors reported by the other process."""
        try:
            self.channel.send(message)
            # Processes that user code has started may hold the channel open.
            wait([self.channel, self.child.sentinel])
            if not self.channel.poll():
                raise EOFError
            value, error = self.channel.recv()
        except (OSError, EOFError):
            self.child.join(timeout=10)
            status = self.child.exitcode
            raise RetrieverError("its process no longer responds" if status is None else ended(status)) from None
        if error is not None:
            raise error
        return value


@contextmanager
def starting() -> Iterator[None]:
    """Prepare to start processes that leave Ctrl-C to this process and do not run the user's script a second time."""
    main, safe = sys.modules["__main__"], os.environ.get(SAFE_PATH)
    sys.modules["__main__"] = ModuleType("__main__")
    os.environ[SAFE_PATH] = "1"
    try:
        with interrupts_blocked():
            yield
    finally:
        sys.modules["__main__"] = main
        restore_path(safe)


def restore_path(safe: str | None) -> None:
    """Restore the `SAFE_PATH` variable."""
    if safe is None:
        os.environ.pop(SAFE_PATH, None)
    else:
        os.environ[SAFE_PATH] = safe


def begin_process(safe: str | None) -> None:
    """Begin a process that ignores Ctrl-C and ends as soon as its parent does, even in the middle of a query."""
    restore_path(safe)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


# --- In this process.


@contextmanager
def shared_process() -> Iterator[dict[str, str]]:
    """Undo user code's changes to this process, turn its attempts to exit into errors, and hide the yielded secrets."""
    secrets: dict[str, str] = {}
    path, folder = [*sys.path], os.getcwd()
    try:
        with private_messages(secrets):
            try:
                yield secrets
            except SystemExit as error:
                ended_by = error.code if isinstance(error.code, str) else f"sys.exit({error.code or ''})"
                raise GroupgtError(f"your code ended the run: {ended_by}") from None
    finally:
        sys.path[:] = path
        os.chdir(folder)


# --- In the new process.


def _serve(channel: Connection[Any, Any], folder: Path, safe: str | None) -> None:
    """Build a retriever as requested, then answer queries until the parent process ends this one."""
    begin_process(safe)
    os.dup2(2, 1)  # what user code prints is no output of groupgt
    sys.path[:] = [str(folder), *(path for path in sys.path if path != str(folder))]
    # Bytecode written next to modules would be stale if a file changes twice within a second.
    sys.dont_write_bytecode = True
    system, build, options, setting = channel.recv()
    retriever: Any = None

    def begin() -> tuple[str, Sequence[str], bool | None, float]:
        nonlocal retriever
        target = imported(options.target, folder)
        if build is None:
            way, sends = options.way(target) if hasattr(options, "way") else ("", options.sends())
            # The result of a factory is unknown before it is called, unless the options declare it.
            return way, sends, True if "(query, k" in way else False if "(queries, k" in way else None, 0.0
        start = time.perf_counter()
        retriever = build(setting, options)
        took = time.perf_counter() - start
        sends = getattr(retriever, "sends", options.sends())
        return getattr(retriever, "way", ""), sends, bool(getattr(retriever, "each", False)), took

    def answer(texts: list[str], qids: list[str], columns: dict[str, list[Any]], k: int) -> Reply:
        return ask(system, retriever, Queries(texts, qids, columns), k)

    channel.send(_outcome(begin))
    while True:
        channel.send(_outcome(answer, *channel.recv()))


def _outcome(work: Callable[..., Any], *arguments: Any) -> tuple[Any, GroupgtError | None]:
    try:
        with users_code():
            return work(*arguments), None
    except GroupgtError as error:
        kind = ConfigError if isinstance(error, ConfigError) else RetrieverError
        return None, kind(*error.faults, total=error.total)
    except BaseException as error:  # a library's panic and sys.exit in user code are not an `Exception`
        return None, RetrieverError(raised(error))
