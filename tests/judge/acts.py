"""A small corpus, and sessions on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from groupgt.judge.index import Index
from groupgt.judge.log import ActLog
from groupgt.judge.pool import PoolRule
from groupgt.judge.session import Plan, Session

TEXTS = {
    "fares": "Ferry fares for adults and children.",
    "youth": "Young people under 18 pay half the ferry fare.",
    "youth-copy": "Young people under 18 pay half the ferry fare!",
    "night": "Nobody under 16 sails alone on the night ferry.",
    "pets": "Pets travel free in the pet cabin.",
    "cars": "Cars must be booked ahead.",
}
QUERIES = {
    "q1": "Does a boy of 15 pay the full fare on the night ferry?",
    "q2": "Is a cabin for pets free?",
    "q3": "cars",
}


def plan_of(**changes: Any) -> Plan:
    """Judges QUERIES by BM25."""
    given: dict[str, Any] = {"kind": "judge", "queries": QUERIES, "index": Index(TEXTS), "pool": PoolRule("bm25", 5)}
    return Plan(**(given | changes))


def session_of(folder: Path, by: str = "anna", **changes: Any) -> Session:
    """A session with a journal of its own."""
    return Session(plan_of(**changes), ActLog(folder / "journal", by))
