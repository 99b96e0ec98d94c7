"""Maps each result type to the class that reports it, which is the only link from measurements to reports."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from groupgt.render.results import Result, Teller

# By class of the result: the module in this package, loaded when a result is shown, and the class in it.
TELLERS = {
    "Across": ("across", "AcrossTeller"),
    "Agreement": ("curation", "AgreementTeller"),
    "AuditPower": ("power", "AuditPowerTeller"),
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
    "Stages": ("stages", "StagesTeller"),
    "Suggestions": ("curation", "SuggestionsTeller"),
    "Thresholds": ("thresholds", "ThresholdsTeller"),
}


def teller_of(result: Result) -> Teller[Any]:
    """Returns the teller for a result, based on its class or the nearest base class."""
    home, name = next(TELLERS[kind.__name__] for kind in type(result).__mro__ if kind.__name__ in TELLERS)
    teller: Teller[Any] = getattr(import_module(f"groupgt.report.{home}"), name)(result)
    return teller
