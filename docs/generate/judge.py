"""The screenshot of the judge page: `python -m docs.generate.judge` takes it again."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.browser import running

DOCS = Path(__file__).parents[1]
PICTURE = DOCS / "start" / "judge.png"
HANDBOOK = DOCS.parent / "examples" / "handbook"
QUERY = (
    "h099\tone e-bike and one electric car to Vessra: how much is the bicycle, and can the car be charged on the way?\n"
)
# The key for each passage that is judged.
KEYS = {"bicycles": "n", "faq-bike": "1", "ev-onboard-charging": "n"}


def main() -> None:
    """Judge three passages for one handbook query."""
    with tempfile.TemporaryDirectory() as folder, running() as browser:
        (Path(folder) / "queries.tsv").write_text(QUERY, encoding="utf-8")
        corpus = str(HANDBOOK / "corpus.jsonl")
        words = ["judge", "queries.tsv", "--corpus", corpus, "--out", "truth.jsonl", "--by", "anna", "--no-browser"]
        command = [sys.executable, "-m", "groupgt", *words]
        process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)  # noqa: S603
        assert process.stderr is not None
        address = None
        while address is None:
            address = re.search(r"http://\S+", process.stderr.readline())
        tab = browser.tab()
        tab.size(1180, 860)
        tab.call("Page.navigate", url=address[0])
        tab.wait("document.getElementById('query') !== null")
        for count, (doc, key) in enumerate(KEYS.items(), 1):
            names = "[...document.querySelectorAll('.card .head button')]"
            tab.run(f"{names}.find((each) => each.innerText.trim() === '{doc}')?.click()")
            tab.wait(f"document.querySelector('[aria-current] .name').innerText === '{doc}'")
            tab.press(key)
            tab.wait(f"document.querySelectorAll('.own ul li').length === {count}")
        tab.run("document.getElementById('notice').hidden = true; scrollTo(0, 0)")
        tab.picture(PICTURE, whole=False)
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
