"""The summaries that a page shows as they look on a pull request: what its commands write."""

from __future__ import annotations

import re
import shlex
import tempfile
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path

from groupgt.cli.main import main
from tests.docs.blocks import DOCS, checkout

PAGE = DOCS / "start" / "gate.md"
SHOWN = re.compile(
    r"(```sh\n(groupgt run [^`]*?)\n```\n\n<!-- the summary -->\n).*?(?=\n<!-- ends here -->)", re.DOTALL
)


def page() -> dict[Path, str]:
    """Return the page with the summaries that its commands write today."""
    return {PAGE: SHOWN.sub(_summary, PAGE.read_text(encoding="utf-8"))}


def _summary(shown: re.Match[str]) -> str:
    with tempfile.TemporaryDirectory() as folder, checkout(Path(folder)):
        # A gate fails.
        with suppress(SystemExit), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            main(shlex.split(shown[2].replace("\\\n", " "))[1:])
        written = Path("summary.md").read_text(encoding="utf-8")
    # On a page the summary is a section below its title, without the times of a machine and what aligns them.
    rows = [line for line in written.replace("\u00a0", " ").splitlines() if not re.match(r"\|.*latency", line)]
    rows = [re.sub(r"-{3,}", "---", re.sub(" {2,}", " ", row)) if row.startswith("|") else row for row in rows]
    return shown[1] + "\n".join(rows).strip()
