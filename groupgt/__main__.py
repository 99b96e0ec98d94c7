"""Runs `groupgt` and `python -m groupgt`; Ctrl-C ends them quietly even while the command-line modules are loading."""

from __future__ import annotations

import os
import signal
from typing import Any


def main() -> None:
    """Loads the command line and runs it."""
    heard = signal.getsignal(signal.SIGINT)
    if heard is signal.default_int_handler:
        signal.signal(signal.SIGINT, _quit)
    from groupgt.cli.main import main as run

    try:
        signal.signal(signal.SIGINT, heard)
        run()
    except KeyboardInterrupt:  # a second one, while the first is handled
        _quit()


def _quit(*_: Any) -> None:
    """Ends the process, which has nothing to clean up."""
    os._exit(130)


if __name__ == "__main__":
    main()
