"""groupgt evaluates retrieval against grouped ground truth, where `[["a", "b"], ["c"]]` means (a or b) and c.

>>> import groupgt
>>> groupgt.evaluate({"q1": [["a", "b"], ["c"]]}, {"q1": ["a", "c"]}, ["recall@5"]).means
{'recall@5': 1.0}
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from groupgt.comparison.compare import Comparison, compare, power
    from groupgt.comparison.correlation import Correlation
    from groupgt.comparison.failures import HardestGroups, misses
    from groupgt.comparison.outcomes import Outcomes, outcomes
    from groupgt.comparison.power import AuditPower, PowerAnalysis
    from groupgt.curation.agree import Agreement, agree
    from groupgt.curation.check import Check, check
    from groupgt.curation.rechunk import Rechunked, rechunk
    from groupgt.errors import (
        ConfigError,
        DataError,
        GroupgtError,
        GroupgtWarning,
        MetricError,
        RetrieverError,
    )
    from groupgt.evaluation.depth import Depths, depth
    from groupgt.evaluation.evaluate import evaluate, label
    from groupgt.evaluation.identify import Identified, identify
    from groupgt.evaluation.reading import read_ground_truth, read_run
    from groupgt.evaluation.result import Evaluation, Misses
    from groupgt.evaluation.runs import Evaluations, evaluate_runs
    from groupgt.evaluation.score import score
    from groupgt.evaluation.stages import Stages, stages
    from groupgt.evaluation.thresholds import Thresholds, thresholds
    from groupgt.experiment.outcome import Outcome
    from groupgt.formats.corpus import read_lengths
    from groupgt.metrics.language import Metric, list_metrics, parse_metric
    from groupgt.metrics.own import metric
    from groupgt.model.ground_truth import GroundTruth
    from groupgt.model.policy import Policy
    from groupgt.model.run import Run
    from groupgt.model.values import Lengths
    from groupgt.report.run import run_experiment
    from groupgt.results.correlate import correlate

__version__ = "0.1.0"

# The module of each public name, which is imported when the name is first used.
_HOME = {
    "Agreement": "curation.agree",
    "AuditPower": "comparison.power",
    "Check": "curation.check",
    "Comparison": "comparison.compare",
    "ConfigError": "errors",
    "Correlation": "comparison.correlation",
    "DataError": "errors",
    "Depths": "evaluation.depth",
    "Evaluation": "evaluation.result",
    "Evaluations": "evaluation.runs",
    "GroundTruth": "model.ground_truth",
    "GroupgtError": "errors",
    "GroupgtWarning": "errors",
    "HardestGroups": "comparison.failures",
    "Identified": "evaluation.identify",
    "Lengths": "model.values",
    "Metric": "metrics.language",
    "MetricError": "errors",
    "Misses": "evaluation.result",
    "Outcome": "experiment.outcome",
    "Outcomes": "comparison.outcomes",
    "Policy": "model.policy",
    "PowerAnalysis": "comparison.power",
    "Rechunked": "curation.rechunk",
    "RetrieverError": "errors",
    "Run": "model.run",
    "Stages": "evaluation.stages",
    "Thresholds": "evaluation.thresholds",
    "agree": "curation.agree",
    "check": "curation.check",
    "compare": "comparison.compare",
    "correlate": "results.correlate",
    "depth": "evaluation.depth",
    "evaluate": "evaluation.evaluate",
    "evaluate_runs": "evaluation.runs",
    "identify": "evaluation.identify",
    "label": "evaluation.evaluate",
    "list_metrics": "metrics.language",
    "metric": "metrics.own",
    "misses": "comparison.failures",
    "outcomes": "comparison.outcomes",
    "parse_metric": "metrics.language",
    "power": "comparison.compare",
    "read_ground_truth": "evaluation.reading",
    "read_lengths": "formats.corpus",
    "read_run": "evaluation.reading",
    "rechunk": "curation.rechunk",
    "run_experiment": "report.run",
    "score": "evaluation.score",
    "stages": "evaluation.stages",
    "thresholds": "evaluation.thresholds",
}

__all__ = [
    "Agreement",
    "AuditPower",
    "Check",
    "Comparison",
    "ConfigError",
    "Correlation",
    "DataError",
    "Depths",
    "Evaluation",
    "Evaluations",
    "GroundTruth",
    "GroupgtError",
    "GroupgtWarning",
    "HardestGroups",
    "Identified",
    "Lengths",
    "Metric",
    "MetricError",
    "Misses",
    "Outcome",
    "Outcomes",
    "Policy",
    "PowerAnalysis",
    "Rechunked",
    "RetrieverError",
    "Run",
    "Stages",
    "Thresholds",
    "__version__",
    "agree",
    "check",
    "compare",
    "correlate",
    "depth",
    "evaluate",
    "evaluate_runs",
    "identify",
    "label",
    "list_metrics",
    "metric",
    "misses",
    "outcomes",
    "parse_metric",
    "power",
    "read_ground_truth",
    "read_lengths",
    "read_run",
    "rechunk",
    "run_experiment",
    "score",
    "stages",
    "thresholds",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        from groupgt.gone import way_out

        raise AttributeError(way_out("python", name) or f"module 'groupgt' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"groupgt.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
