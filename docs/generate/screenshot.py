"""The picture of a report on the first page, and the words that it shows."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from groupgt.report.run import run_experiment
from tests.browser import Tab, running

DOCS = Path(__file__).parents[1]
CONFIG = DOCS.parent / "configs" / "gate.yaml"
PICTURE, WORDS = DOCS / "report.png", DOCS / "report.txt"
# The README shows the top of the page: the decision, and the first rows of what led to it.
HEIGHT = 400


def opened(tab: Tab, folder: Path) -> str:
    """Run the experiment, open its report and return the words of its first view, without figures and numbers."""
    changes = [f"cache={folder / 'cache'}", "systems.candidate.with.k1=0.3", "systems.candidate.with.b=1"]
    outcome = run_experiment(CONFIG, output=folder, changes=changes)
    assert outcome.folder is not None
    tab.size(1180)
    tab.open(outcome.folder / "report.html")
    tab.settled()
    text = " ".join(tab.texts("header, h1, h2, .card, .verdict, .gates li, table, aside li"))
    return re.sub(r"\s+", " ", re.sub(r"[-+]?\d[\d.,:]*", "#", text)).strip()


def take() -> None:
    """Take the picture, and keep the words that it shows."""
    with tempfile.TemporaryDirectory() as folder, running() as browser:
        page = browser.tab()
        WORDS.write_text(opened(page, Path(folder)) + "\n", encoding="utf-8")
        page.picture(PICTURE, height=HEIGHT)
