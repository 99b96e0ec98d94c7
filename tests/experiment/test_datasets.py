"""Faults of `datasets`: files, scripts that make them, and what only the data shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.experiment.faulty_files import (
    Fault,
    changed,
    check_one,
    told,
)

FAULTS: list[Fault] = [
    # Of data sets.
    (
        "a missing corpus",
        [("corpus: corpus", "corpus: corpse")],
        "8:13",
        "datasets.mine.corpus",
        "file not found: FOLDER/corpse.jsonl",
    ),
    (
        "a missing script",
        [("    where", "    build: make.py\n    where")],
        "10:12",
        "datasets.mine.build",
        "file not found: FOLDER/make.py",
    ),
    # What only the data shows.
    ("no such column", [("{type: [", "{tpe: [")], "10:13", "datasets.mine.where", "no column 'tpe'; it has type, year"),
    ("no question left", [("[single, multi]", "[double]")], "10:13", "datasets.mine.where.type", "no question is left"),
    ("where of nothing", [("[single, multi]", "~")], "10:19", "datasets.mine.where.type", "a list, found nothing"),
    ("where as a list", [("{type: [single, multi]}", "[type]")], "10:12", "datasets.mine.where", "found a list"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault[0])
def test_one_fault_is_one_line_at_its_place(folder: Path, fault: Fault) -> None:
    check_one(folder, fault)


def test_a_script_that_makes_a_file(folder: Path) -> None:
    (folder / "make.py").write_text("raise SystemExit('nothing to fetch')\n")
    text = changed(("corpus: corpus.jsonl\n", "corpus: made.jsonl\n    build: make.py\n"))
    assert told(folder, text) == [
        "8:13: datasets.mine.corpus: FOLDER/made.jsonl does not exist yet; a script makes it: "
        "run it (python FOLDER/make.py), or add --allow-code"
    ]
    assert told(folder, text, allow_code=True) == [
        "9:12: datasets.mine.build: FOLDER/make.py ended with status 1: nothing to fetch"
    ]
    (folder / "make.py").write_text("")
    assert told(folder, text, allow_code=True) == [
        "9:12: datasets.mine.build: FOLDER/make.py did not make FOLDER/made.jsonl"
    ]
