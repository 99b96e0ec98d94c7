"""Map each result type to the class that reports it. Only this module links measurements to reports."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from groupgt.render.results import Result, Teller

# By class of the result: the module in this package that has its teller, loaded when a result is shown.
TELLERS = {
    "Across": "across",
    "Agreement": "curation",
    "AuditPower": "power",
    "Check": "curation",
    "Comparison": "comparison",
    "Correlation": "correlation",
    "DataChecks": "curation",
    "Depths": "depth",
    "Evaluated": "evaluation",
    "Evaluations": "evaluation",
    "GateResult": "gates",
    "Identified": "identify",
    "Misses": "misses",
    "Outcome": "experiment",
    "Outcomes": "outcomes",
    "PowerAnalysis": "power",
    "Rechunked": "curation",
    "Stages": "stages",
    "Thresholds": "depth",
}


def teller_of(result: Result) -> Teller[Any]:
    """Return the teller for a result, based on its class or the nearest base class."""
    name = next(kind.__name__ for kind in type(result).__mro__ if kind.__name__ in TELLERS)
    teller: Teller[Any] = getattr(import_module(f"groupgt.report.{TELLERS[name]}"), f"{name}Teller")(result)
    return teller
