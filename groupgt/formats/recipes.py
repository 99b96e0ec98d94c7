"""Reads files whose roles are at paths that the user declares or that a published data set defines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from groupgt.errors import Faults
from groupgt.formats.format import Format
from groupgt.formats.jsonl import run_of_records
from groupgt.formats.nested import plain_rows
from groupgt.formats.records import keys_of, records
from groupgt.formats.roles import NO_COLUMNS, Declared
from groupgt.formats.source import Record, Source
from groupgt.formats.tables import Table, truth_of
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Run


def _read(source: Source, recipe: Declared, *, is_truth: bool) -> list[tuple[str, Record]]:
    columns = recipe or source.columns

    def located(faults: Faults) -> Iterable[tuple[str, Record]]:
        return records(source, faults, unwrapped="rows" not in columns)

    return plain_rows(str(source.path), keys_of(source), columns, located, is_truth=is_truth, needed=not recipe)


def read_ground_truth(source: Source, policy: Policy, recipe: Declared = NO_COLUMNS) -> GroundTruth:
    """Read ground truth at the paths of a published data set or at paths declared by the user."""
    return truth_of(Table.of_records(str(source.path), _read(source, recipe, is_truth=True)), policy)


def read_run(source: Source, recipe: Declared = NO_COLUMNS) -> Run:
    """Read results at the paths of a published log or at paths declared by the user."""
    return run_of_records(replace(source, columns=NO_COLUMNS), _read(source, recipe, is_truth=False))


DECLARED = Format("paths", None, read_ground_truth, read_run)
