"""Which class tells which kind of result: the one way from what is measured to what is said of it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from groupgt.render.results import Result, Teller

# The module of this room, loaded when a result is shown, and the class in it, by the class of the result.
TELLERS = {
    "Across": ("across", "AcrossTeller"),
    "Agreement": ("curation", "AgreementTeller"),
    "Check": ("curation", "CheckTeller"),
    "Comparison": ("comparison", "ComparisonTeller"),
    "Depths": ("depth", "DepthsTeller"),
    "Evaluation": ("evaluation", "EvaluationTeller"),
    "Evaluations": ("evaluation", "EvaluationsTeller"),
    "GateResult": ("gates", "GateTeller"),
    "HardestGroups": ("misses", "HardestGroupsTeller"),
    "Identified": ("identify", "IdentifiedTeller"),
    "Misses": ("misses", "MissesTeller"),
    "Outcome": ("outcome", "OutcomeTeller"),
    "PowerAnalysis": ("power", "PowerTeller"),
    "Rechunked": ("curation", "RechunkedTeller"),
    "Suggestions": ("curation", "SuggestionsTeller"),
}


def teller_of(result: Result) -> Teller[Any]:
    """What tells a result, of its own class or of the one that it extends."""
    home, name = next(TELLERS[kind.__name__] for kind in type(result).__mro__ if kind.__name__ in TELLERS)
    teller: Teller[Any] = getattr(import_module(f"groupgt.report.{home}"), name)(result)
    return teller
