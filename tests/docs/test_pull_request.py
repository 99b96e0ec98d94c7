"""The summaries that the page shows as they look on a pull request are those that its commands write."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from groupgt.cli.main import main
from tests.docs.blocks import DOCS, checkout

PAGE = DOCS / "how-to" / "pull-request.md"
SHOWN = re.compile(r"```sh\n(groupgt run .*?)\n```\n\n<!-- the summary -->\n(.*?)\n<!-- ends here -->", re.DOTALL)


def shown() -> list[tuple[str, str]]:
    return [(found[1].replace("\\\n", " "), found[2]) for found in SHOWN.finditer(PAGE.read_text(encoding="utf-8"))]


def test_there_are_two() -> None:
    assert len(shown()) == 2


@pytest.mark.slow
@pytest.mark.parametrize("number", range(2))
def test_a_summary_is_what_its_command_writes(number: int, tmp_path: Path) -> None:
    command, summary = shown()[number]
    with checkout(tmp_path):
        try:
            main(shlex.split(command)[1:])
        except SystemExit as ended:
            assert ended.code in (0, 1)  # noqa: PT017
        written = Path("summary.md").read_text(encoding="utf-8").replace("\u00a0", " ")
    # On a page the summary is a section below its title.
    assert written.strip() == summary.strip()
