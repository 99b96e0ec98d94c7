"""Runs a command and tells how long it took, with the processor time and memory where the system says.

A small process stands between: on Linux a process begins with the memory of its parent as its own maximum.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from time import perf_counter


@dataclass(frozen=True)
class Finished:
    seconds: float
    returncode: int
    stdout: str
    stderr: str
    processor: float | None = None
    megabytes: float | None = None

    @property
    def complaint(self) -> str:
        """The last line of what it wrote to stderr."""
        return " ".join(self.stderr.strip().splitlines()[-1:])


def run(command: Sequence[str]) -> Finished:
    done = subprocess.run([sys.executable, "-S", __file__, *command], capture_output=True, text=True, check=True)
    return Finished(**json.loads(done.stdout))


def _run(command: Sequence[str]) -> Finished:
    processor = megabytes = None
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out, tempfile.TemporaryFile("w+", encoding="utf-8") as err:
        start = perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=err)
        if hasattr(os, "wait4"):
            _, status, used = os.wait4(process.pid, 0)
            seconds = perf_counter() - start
            process.returncode = returncode = os.waitstatus_to_exitcode(status)
            processor = used.ru_utime + used.ru_stime
            # Kilobytes, but bytes on macOS.
            megabytes = used.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
        else:
            returncode = process.wait()
            seconds = perf_counter() - start
        out.seek(0)
        err.seek(0)
        return Finished(seconds, returncode, out.read(), err.read(), processor, megabytes)


if __name__ == "__main__":
    json.dump(asdict(_run(sys.argv[1:])), sys.stdout)
