"""Runs retrievers: user code in a separate process (`Fresh`), all other retrievers in this one (`Here`).

`shared_process` restores this process after user code, such as labellers and metrics, has run in it.

In a new process, results do not depend on what ran before. The process is a plain interpreter that runs `serve`; a
`multiprocessing` worker would run the user's script a second time.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO, NoReturn

from groupgt.errors import ConfigError, GroupgtError, RetrieverError
from groupgt.formats.modules import imported
from groupgt.private import private_messages
from groupgt.retrievers.base import Answers, Corpus, Queries, RetrieverPlugin, Setting, ask
from groupgt.runtime import interrupts_blocked, raised, users_code

# The parent handles Ctrl-C and ends this process.
BEGIN = """
import json, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path[:] = json.loads(sys.argv[1])
from groupgt.experiment.fresh import serve
serve(sys.argv[2])
"""
# Each message is preceded by its length.
LENGTH = struct.Struct("<Q")
# Results, and milliseconds per call.
Reply = tuple[Answers, list[float]]
# Seconds between checks whether a process that does not reply is still running.
LOOK_S = 0.5


class Here:
    """A retriever that is built and queried in this process.

    `build_s` is the build time in seconds. `singly` says whether queries are run one at a time.
    """

    def __init__(self, system: str, kind: RetrieverPlugin, options: Any, setting: Setting) -> None:
        self.system = system
        start = time.perf_counter()
        with users_code():
            self.retriever = kind.built(setting, options)
        self.build_s = time.perf_counter() - start
        self.singly: bool | None = options.asks_singly()

    def ask(self, queries: Queries, k: int) -> Reply:
        """Returns results, and milliseconds per call."""
        return ask(self.system, self.retriever, queries, k)

    def close(self) -> None:
        """Does nothing, since there is no process to end (see `Fresh.close`)."""


class Fresh:
    """A retriever in a new process, which ends with `close` or with this process; `way` describes how code is called.

    Modules in `folder` can be imported. Without a `setting`, nothing is built: the target is only imported and
    described.
    """

    def __init__(
        self, system: str, kind: RetrieverPlugin, options: Any, folder: Path, setting: Setting | None = None
    ) -> None:
        # A new interpreter with the path of this one, and without the current folder unless the path contains it.
        with interrupts_blocked():
            self.child = subprocess.Popen(  # noqa: S603 - this interpreter
                [sys.executable, "-P", "-c", BEGIN, json.dumps([*map(str, sys.path)]), str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
            )
        try:
            parts = None if setting is None else (setting.corpus.ids, setting.corpus.texts, setting.qids, setting.seed)
            self.way, self.singly, self.build_s = self._call((system, kind.build, options, parts))
        except BaseException:
            self.close()
            raise

    def ask(self, queries: Queries, k: int) -> Reply:
        """Returns results, and milliseconds per call."""
        answer: Reply = self._call((list(queries), queries.ids, k))
        return answer

    def close(self) -> None:
        """Ends the process."""
        self.child.kill()
        for stream in (self.child.stdin, self.child.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # unsent data
                    stream.close()
        self.child.wait()

    def _call(self, message: Any) -> Any:
        """Sends a message and returns the reply; raises errors reported by the other process."""
        try:
            _send(self.child.stdin, message)
            (length,) = LENGTH.unpack(self._bytes(LENGTH.size))
            value, fault = pickle.loads(self._bytes(length))  # noqa: S301 - from code that is allowed to run
        except (OSError, EOFError, pickle.UnpicklingError):
            raise RetrieverError(self._last_words()) from None
        if fault is not None:
            kind, faults, total = fault
            raise kind(*faults, total=total)
        return value

    def _bytes(self, count: int) -> bytes:
        """Reads `count` bytes; detects that the process has ended even if another one holds its pipe open."""
        stream = self.child.stdout
        if stream is None:
            raise EOFError
        parts: list[bytes] = []
        while count:
            if os.name == "posix":
                while not select.select([stream], [], [], LOOK_S)[0]:
                    if self.child.poll() is not None and not select.select([stream], [], [], 0)[0]:
                        raise EOFError
            part = os.read(stream.fileno(), min(count, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _last_words(self) -> str:
        try:
            status = self.child.wait(timeout=10)
        except subprocess.TimeoutExpired:
            return "its process no longer answers"
        if status < 0:
            try:
                name = signal.Signals(-status).name
            except ValueError:
                name = f"signal {-status}"
            hint = "; there may not have been enough memory" if name == "SIGKILL" else ""
            return f"its process was ended by {name}{hint}"
        return f"its process ended with exit status {status} before it had answered"


def _send(stream: Any, message: Any) -> None:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    rest = memoryview(LENGTH.pack(len(data)) + data)
    while rest:
        rest = rest[stream.write(rest) :]


# --- In this process.


@contextlib.contextmanager
def shared_process() -> Iterator[dict[str, str]]:
    """Lets user code modify the process during a run, and turns any attempt to exit into an error.

    Modules may extend `sys.path` or change the working folder; these changes last until the run ends and are then
    undone. Imported modules stay in `sys.modules`. Secrets added to the yielded dict are removed from errors and
    warnings.
    """
    secrets: dict[str, str] = {}
    path, folder = [*sys.path], working_folder()
    try:
        with private_messages(secrets):
            try:
                yield secrets
            except SystemExit as error:
                ended_by = error.code if isinstance(error.code, str) else f"sys.exit({error.code or ''})"
                raise GroupgtError(f"your code ended the run: {ended_by}") from None
    finally:
        sys.path[:] = path
        if folder is not None and folder != working_folder():
            os.chdir(folder)


def working_folder() -> str | None:
    """Returns the current folder, or None if it no longer exists."""
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None


# --- In the new process.


def serve(folder: str) -> NoReturn:
    """Builds a retriever as requested, then answers queries until the parent process exits."""
    sys.path[:] = [folder, *(path for path in sys.path if path != folder)]
    requests, replies = _channels()
    messages: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_listen, args=[requests, messages], daemon=True).start()
    # Bytecode written next to modules would be stale if a file changes twice within a second.
    sys.dont_write_bytecode = True
    system, build, options, parts = messages.get()
    retriever: Any = None

    def begin() -> tuple[str, bool | None, float]:
        nonlocal retriever
        target = imported(options.target, Path(folder))
        if parts is None:
            way = options.way(target) if hasattr(options, "way") else ""
            # The result of a factory is unknown before it is called, unless the options declare it.
            return way, True if "(query, k)" in way else False if "(queries, k)" in way else None, 0.0
        ids, texts, qids, seed = parts
        start = time.perf_counter()
        retriever = build(Setting(Corpus(ids, texts), qids, seed), options)
        took = time.perf_counter() - start
        return getattr(retriever, "way", ""), bool(getattr(retriever, "each", False)), took

    def answer(texts: list[str], qids: list[str], k: int) -> Reply:
        return ask(system, retriever, Queries(texts, qids), k)

    _reply(replies, begin)
    while True:
        _reply(replies, answer, *messages.get())


def _reply(replies: Any, work: Callable[..., Any], *arguments: Any) -> None:
    value, fault = None, None
    try:
        with users_code():
            value = work(*arguments)
    except GroupgtError as error:
        kind = ConfigError if isinstance(error, ConfigError) else RetrieverError
        fault = kind, error.faults, error.total
    except BaseException as error:  # a library's panic and sys.exit in user code are not an `Exception`
        fault = RetrieverError, (raised(error),), 1
    _send(replies, (value, fault))


def _channels() -> tuple[BinaryIO, Any]:
    """Opens pipes to the parent process; redirects user code's output to stderr and leaves its input empty."""
    requests, replies = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return os.fdopen(requests, "rb"), os.fdopen(replies, "wb", buffering=0)


def _listen(requests: BinaryIO, messages: SimpleQueue[Any]) -> None:
    """Queues incoming messages; exits as soon as the parent process does, even in the middle of a query."""
    try:
        while True:
            (length,) = LENGTH.unpack(requests.read(LENGTH.size))
            messages.put(pickle.loads(requests.read(length)))  # noqa: S301 - from who has started us
    except BaseException:
        os._exit(1)
