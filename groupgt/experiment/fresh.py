"""Code of the user's in a process of its own: `Fresh` is the retriever here, `serve` is what runs there.

A process that has run nothing before gives answers that depend on nothing but what it loads and opens, and `seen` notes
that. It is a plain interpreter and no worker of `multiprocessing`, which would run the user's script a second time.
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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO, NoReturn

from groupgt.errors import ConfigError, GroupgtError, RetrieverError
from groupgt.experiment.seen import Watcher, empty
from groupgt.formats.modules import imported
from groupgt.retrievers.base import Corpus, Queries, Ranking, RetrieverPlugin, Setting, checked
from groupgt.runtime import one_line, place_of, signals_held_back, users_code

# Ctrl-C is for the process that asks, which ends this one.
BEGIN = """
import json, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path[:] = json.loads(sys.argv[1])
from groupgt.experiment.fresh import serve
serve()
"""
# Each message is preceded by its length.
LENGTH = struct.Struct("<Q")
# Seconds between looks at whether a process that does not answer is still there.
LOOK = 0.5


@dataclass(frozen=True, eq=False)
class Order:
    """What is to be run: a plugin that runs code, its options, what it is built from, and where modules are looked for.

    Without a `setting` nothing is built: the target is imported and described.
    """

    system: str
    kind: RetrieverPlugin
    options: Any
    folder: Path
    setting: Setting | None = None


class Fresh:
    """A retriever that runs in a new process; ends with `close`, or with this process.

    `spent` are the milliseconds of each call of the last batch, `build_s` the seconds it took to be built, `way` how it
    is called, `singly` whether with one question at a time, `seen` what the code has loaded and opened so far.
    """

    def __init__(self, order: Order) -> None:
        self.spent: list[float] = []
        self.seen = empty()
        self.process = _started()
        try:
            self._told(order.folder)
            plugin, setting = order.kind, order.setting
            parts = None if setting is None else (setting.corpus.ids, setting.corpus.texts, setting.qids, setting.seed)
            self.way, self.singly, self.build_s = self._told((order.system, plugin.build, order.options, parts))
        except BaseException:
            self.close()
            raise

    def retrieve(self, queries: Sequence[str], k: int) -> Sequence[Ranking]:
        """The rankings that the code returns, checked where they were made."""
        qids = queries.ids if isinstance(queries, Queries) else [str(place) for place in range(len(queries))]
        rankings: list[Ranking]
        rankings, self.spent = self._told((list(queries), qids, k))
        return rankings

    def __enter__(self) -> Fresh:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process."""
        self.process.kill()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # what was not sent
                    stream.close()
        self.process.wait()

    def _told(self, message: Any) -> Any:
        """Sends a message; what comes back, and what was seen until then. Raises what went wrong there."""
        try:
            _send(self.process.stdin, message)
            value, seen, fault = pickle.loads(self._received())  # noqa: S301 - from code that is allowed to run
        except (OSError, EOFError, pickle.UnpicklingError):
            raise RetrieverError(self._last_words()) from None
        self.seen = seen if seen is not None else self.seen
        if fault is not None:
            kind, faults, total = fault
            raise kind(*faults, total=total)
        return value

    def _received(self) -> bytes:
        (length,) = LENGTH.unpack(self._bytes(LENGTH.size))
        return self._bytes(length)

    def _bytes(self, count: int) -> bytes:
        """So many bytes; a process that is gone is noticed even where another holds its end of the pipe."""
        stream = self.process.stdout
        if stream is None:
            raise EOFError
        parts: list[bytes] = []
        while count:
            if os.name == "posix":
                while not select.select([stream], [], [], LOOK)[0]:
                    if self.process.poll() is not None and not select.select([stream], [], [], 0)[0]:
                        raise EOFError
            part = os.read(stream.fileno(), min(count, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _last_words(self) -> str:
        try:
            status = self.process.wait(timeout=10)
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


def _started() -> subprocess.Popen[bytes]:
    """A new interpreter with the path of this one, and without the current folder unless that is on it."""
    with signals_held_back():
        return subprocess.Popen(  # noqa: S603 - this interpreter
            [sys.executable, "-P", "-c", BEGIN, json.dumps([*map(str, sys.path)])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )


def _send(stream: Any, message: Any) -> None:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    rest = memoryview(LENGTH.pack(len(data)) + data)
    while rest:
        rest = rest[stream.write(rest) :]


# --- In the new process.


def serve() -> NoReturn:
    """Builds what it is told to, and answers until nobody asks any more."""
    leave = os._exit
    requests, replies = _channels()
    messages: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_listen, args=[requests, messages, leave], daemon=True).start()
    # What it would write beside modules is stale where a file changes twice in a second.
    sys.dont_write_bytecode = True
    folder: Path = messages.get()
    sys.path[:] = [str(folder), *(each for each in sys.path if each != str(folder))]
    watcher = Watcher(list(sys.path))
    _send(replies, (None, None, None))
    system, build, options, parts = messages.get()
    sys.addaudithook(watcher.heard)
    retriever: Any = None

    def begin() -> tuple[str, bool, float]:
        nonlocal retriever
        target = imported(options.target, folder)
        if parts is None:
            way = options.way(target) if hasattr(options, "way") else ""
            return way, "(query, k)" in way, 0.0
        ids, texts, qids, seed = parts
        start = time.perf_counter()
        retriever = build(Setting(Corpus(ids, texts), qids, seed), options)
        took = time.perf_counter() - start
        return getattr(retriever, "way", ""), bool(getattr(retriever, "each", False)), took

    _answer(replies, watcher, begin)
    while True:
        texts, qids, k = messages.get()

        def ask(texts: list[str] = texts, qids: list[str] = qids, k: int = k) -> tuple[Any, list[float]]:
            start = time.perf_counter()
            rankings = retriever.retrieve(Queries(texts, qids), k)
            took = 1000 * (time.perf_counter() - start)
            answers = checked(system, qids, rankings, k)
            plain = [
                names if answers.scores is None else list(zip(names, answers.scores[qid]))
                for qid, names in answers.ids.items()
            ]
            return plain, list(getattr(retriever, "spent", None) or [took])

        _answer(replies, watcher, ask)


def _answer(replies: Any, watcher: Watcher, work: Any) -> None:
    value, fault = None, None
    try:
        with users_code():
            value = work()
    except GroupgtError as error:
        kind = ConfigError if isinstance(error, ConfigError) else RetrieverError
        fault = kind, error.faults, error.total
    except BaseException as error:  # neither a library's panic nor sys.exit in code of the user's is an `Exception`
        fault = RetrieverError, (f"{one_line(error)}{place_of(error)}",), 1
    _send(replies, (value, watcher.seen(), fault))


def _channels() -> tuple[BinaryIO, Any]:
    """The ways to and from who asks; what the code prints goes to standard error, and it has nothing to read."""
    requests, replies = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return os.fdopen(requests, "rb"), os.fdopen(replies, "wb", buffering=0)


def _listen(requests: BinaryIO, messages: SimpleQueue[Any], leave: Any) -> None:
    """Puts what arrives where it is looked for; ends the process with the one that asks, whatever it is doing."""
    try:
        while True:
            (length,) = LENGTH.unpack(requests.read(LENGTH.size))
            messages.put(pickle.loads(requests.read(length)))  # noqa: S301 - from who has started us
    except BaseException:
        leave(1)
