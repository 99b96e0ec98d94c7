"""Runs `groupgt` and `python -m groupgt`; Ctrl-C ends them quietly even while the command-line modules are loading."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Load the command line and run it."""
    # A command ends soon and produces little cyclic garbage: collect less often, from the imports on.
    gc.set_threshold(50_000, 20, 100)
    try:
        from groupgt.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        # Nothing that is left is worth a last search for garbage.
        gc.freeze()


if __name__ == "__main__":
    main()
