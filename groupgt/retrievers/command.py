"""A retriever that runs a program. The program reads queries as lines of JSON, or is started once per query."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryFile
from typing import IO, Annotated, Any

from annotated_types import MinLen

from groupgt.errors import ConfigError, RetrieverError, display
from groupgt.model.values import as_json
from groupgt.options import Clash, Doc
from groupgt.retrievers import base
from groupgt.retrievers.base import SHOWN_CHARS, IdField, RetrieverPlugin, ScoreField, Send, Timeout, as_pairs
from groupgt.runtime import ended

# The number of lines on standard error that a message shows, and of bytes in which they are looked for.
LAST_LINES, LAST_BYTES = 3, 10_000
# How long a program may take to end after its input has ended.
GRACE_S = 1.0
_GAP = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True)
class Options(base.Options):
    """Options for `use: command`, which starts a program in the experiment file's folder and requires --allow-code.

    The program reads one line for each query, `{"query": "when?", "k": 10}`, and answers with one line. That line is a
    list of ids, [id, score] pairs or objects, or `{"results": […]}`. If an argument contains `{query}`, the program is
    started for each query instead, with `{query}`, `{k}` and columns filled in, and reads no input. Every run starts
    the program again. With a `version` next to `use`, results from that version are reused.
    """

    command: Annotated[list[str], MinLen(1), Doc("The program and its arguments.")]
    timeout: Timeout = 30.0
    send: Send = field(default_factory=list)
    id_field: IdField = "id"
    score_field: ScoreField = "score"

    def batch_size(self) -> int:
        return 1

    def program(self) -> Sequence[str]:
        return self.command

    def is_for_each(self) -> bool:
        """Return whether the program is started for each query."""
        return any("{query}" in argument for argument in self.command)

    def clashes(self) -> Iterator[Clash]:
        """Yield an error for a column that a program without input would not receive."""
        for name in self.send if self.is_for_each() else ():
            if not any(f"{{{name}}}" in argument for argument in self.command):
                what = f"expected {{{name}}} in an argument, because the program is started for each query"
                yield Clash("send", what)


def filled(template: str, values: Mapping[str, Any]) -> str:
    """Fill values into text by name. Text is unchanged, null becomes empty text, and other values become JSON."""

    def text_of(gap: re.Match[str]) -> str:
        value = values.get(gap[1], gap[0])
        return value if isinstance(value, str) else "" if value is None else as_json(value)

    return _GAP.sub(text_of, template)


def program_of(command: Sequence[str], folder: Path) -> list[str]:
    """Return a command with the path of its program, from the PATH or the folder, or raise `ConfigError`."""
    name, *arguments = command
    path = shutil.which(str(folder / name) if os.path.dirname(name) else name)
    if path is None:
        raise ConfigError(f"command: program {name!r} not found, or not executable")
    return [path, *arguments]


def last_words(stream: IO[bytes]) -> str:
    """Return the last lines that a program wrote to standard error, to append to a message."""
    stream.seek(max(0, stream.seek(0, os.SEEK_END) - LAST_BYTES))
    lines = [" ".join(line.split()) for line in stream.read().decode("utf-8", "replace").splitlines()]
    shown = " | ".join(line[:SHOWN_CHARS] for line in [line for line in lines if line][-LAST_LINES:])
    return f"; its last lines on standard error: {shown}" if shown else ""


class Command(base.OneByOne):
    """A program that answers queries on standard output."""

    def __init__(self, setting: base.Setting, options: Options) -> None:
        self.options, self.folder = options, setting.folder
        self.command = program_of(options.command, setting.folder)
        self.errors = TemporaryFile()  # noqa: SIM115  # closed by `close`
        self.process: subprocess.Popen[bytes] | None = None
        self.lines: SimpleQueue[bytes] = SimpleQueue()

    def answer(self, query: str, k: int, **sent: Any) -> Any:
        """Return the results of the program for a query."""
        values = {"query": query, "k": k, **sent}
        try:
            written = self._printed(values) if self.options.is_for_each() else self._line(values)
        except (subprocess.TimeoutExpired, Empty):
            raise RetrieverError(f"no answer in {self.options.timeout:g} s{last_words(self.errors)}") from None
        text = written.decode("utf-8", "replace").strip()
        try:
            value = json.loads(text)
        except ValueError:
            what = f"expected one line of JSON, found {display(text, SHOWN_CHARS)}"
            raise RetrieverError(f"{what}; write other messages to standard error") from None
        ranking = value.get("results") if isinstance(value, dict) else value
        if not isinstance(ranking, list):
            what = f'expected a list of results, or {{"results": […]}}, found {display(value, SHOWN_CHARS)}'
            raise RetrieverError(what)
        return as_pairs(value, self.options.id_field, self.options.score_field)

    def close(self) -> None:
        """End the program."""
        if self.process is not None:
            with suppress(OSError):
                self.process.stdin.close()  # type: ignore[union-attr]  # it is a pipe
            try:
                self.process.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.errors.close()

    def _printed(self, values: Mapping[str, Any]) -> bytes:
        """Start the program for one query and return what it prints."""
        program, *arguments = self.command
        # The user has allowed the program to run.
        done = subprocess.run(  # noqa: S603
            [program, *(filled(argument, values) for argument in arguments)],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            timeout=self.options.timeout,
            check=False,
        )
        if done.returncode:
            raise self._ended(done.returncode)
        return done.stdout

    def _line(self, values: Mapping[str, Any]) -> bytes:
        """Send one query to the program and return the line that it answers with."""
        process = self.process = self.process or self._started()
        line = b""
        if self.lines.empty():
            with suppress(OSError):  # the program has closed its input
                process.stdin.write(f"{as_json(values)}\n".encode())  # type: ignore[union-attr]  # it is a pipe
                process.stdin.flush()  # type: ignore[union-attr]
                line = self.lines.get(timeout=self.options.timeout)
        elif second := self.lines.get():
            more = display(second.decode("utf-8", "replace"), SHOWN_CHARS)
            raise RetrieverError(f"expected one line per query, but found a second line for the previous query: {more}")
        if not line:
            raise self._ended(process.wait(self.options.timeout))
        return line

    def _started(self) -> subprocess.Popen[bytes]:
        """Start the program, and a thread that reads its lines. An empty line marks the end."""
        pipe = subprocess.PIPE
        process = subprocess.Popen(self.command, cwd=self.folder, stdin=pipe, stdout=pipe, stderr=self.errors)  # noqa: S603

        def read(stream: Any) -> None:
            with stream:
                for line in stream:
                    self.lines.put(line)
            self.lines.put(b"")

        threading.Thread(target=read, args=(process.stdout,), daemon=True).start()
        return process

    def _ended(self, status: int) -> RetrieverError:
        return RetrieverError(ended(status) + last_words(self.errors))


SUMMARY = "A program in any language that answers queries with lines of JSON."
PLUGIN = RetrieverPlugin(Options, Command, summary=SUMMARY, corpus=False, runs_code=True)
