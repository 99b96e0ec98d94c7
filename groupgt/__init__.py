"""groupgt evaluates retrieval against grouped ground truth, where `[["a", "b"], ["c"]]` means (a or b) and c.

>>> import groupgt
>>> groupgt.evaluate({"q1": [["a", "b"], ["c"]]}, {"q1": ["a", "c"]}, ["recall@5"]).means
{'recall@5': 1.0}
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # `as` makes a name public for type checkers
    # isort: off
    from groupgt.comparison.compare import Comparison as Comparison, compare as compare, power as power
    from groupgt.comparison.correlation import Correlation as Correlation
    from groupgt.comparison.outcomes import Outcomes as Outcomes, outcomes as outcomes
    from groupgt.comparison.power import AuditPower as AuditPower, PowerAnalysis as PowerAnalysis
    from groupgt.curation.agree import Agreement as Agreement, agree as agree
    from groupgt.curation.check import Check as Check, check as check
    from groupgt.curation.rechunk import Rechunked as Rechunked, rechunk as rechunk
    from groupgt.errors import (
        ConfigError as ConfigError,
        DataError as DataError,
        GroupgtError as GroupgtError,
        GroupgtWarning as GroupgtWarning,
        MetricError as MetricError,
        RetrieverError as RetrieverError,
    )
    from groupgt.evaluation.depth import Depths as Depths, depth as depth
    from groupgt.evaluation.evaluate import evaluate as evaluate, label as label
    from groupgt.evaluation.identify import Identified as Identified, identify as identify
    from groupgt.evaluation.listing import misses as misses
    from groupgt.evaluation.reading import read_ground_truth as read_ground_truth, read_run as read_run
    from groupgt.evaluation.missed import Misses as Misses
    from groupgt.evaluation.result import Evaluation as Evaluation, Repeated as Repeated
    from groupgt.evaluation.runs import Evaluations as Evaluations, evaluate_runs as evaluate_runs
    from groupgt.evaluation.score import score as score
    from groupgt.evaluation.stages import Stages as Stages, stages as stages
    from groupgt.evaluation.thresholds import Thresholds as Thresholds, thresholds as thresholds
    from groupgt.experiment.outcome import Outcome as Outcome
    from groupgt.formats.corpus import read_lengths as read_lengths
    from groupgt.metrics.language import Metric as Metric, list_metrics as list_metrics, parse_metric as parse_metric
    from groupgt.metrics.own import metric as metric
    from groupgt.model.ground_truth import GroundTruth as GroundTruth
    from groupgt.model.policy import Policy as Policy
    from groupgt.model.run import Run as Run
    from groupgt.model.values import Lengths as Lengths
    from groupgt.report.run import run_experiment as run_experiment
    from groupgt.results.correlate import correlate as correlate
    # isort: on

__version__ = "0.1.0"

# The public names of each module, which is imported when one of them is first used.
_NAMES = {
    "comparison.compare": "Comparison compare power",
    "comparison.correlation": "Correlation",
    "comparison.outcomes": "Outcomes outcomes",
    "comparison.power": "AuditPower PowerAnalysis",
    "curation.agree": "Agreement agree",
    "curation.check": "Check check",
    "curation.rechunk": "Rechunked rechunk",
    "errors": "ConfigError DataError GroupgtError GroupgtWarning MetricError RetrieverError",
    "evaluation.depth": "Depths depth",
    "evaluation.evaluate": "evaluate label",
    "evaluation.identify": "Identified identify",
    "evaluation.reading": "read_ground_truth read_run",
    "evaluation.listing": "misses",
    "evaluation.missed": "Misses",
    "evaluation.result": "Evaluation Repeated",
    "evaluation.runs": "Evaluations evaluate_runs",
    "evaluation.score": "score",
    "evaluation.stages": "Stages stages",
    "evaluation.thresholds": "Thresholds thresholds",
    "experiment.outcome": "Outcome",
    "formats.corpus": "read_lengths",
    "metrics.language": "Metric list_metrics parse_metric",
    "metrics.own": "metric",
    "model.ground_truth": "GroundTruth",
    "model.policy": "Policy",
    "model.run": "Run",
    "model.values": "Lengths",
    "report.run": "run_experiment",
    "results.correlate": "correlate",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted([*_HOME, "__version__"])  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'groupgt' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"groupgt.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
