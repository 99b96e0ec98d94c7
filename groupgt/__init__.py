"""groupgt evaluates retrieval against grouped ground truth, where `[["a", "b"], ["c"]]` means (a or b) and c.

>>> import groupgt
>>> groupgt.evaluate({"q1": [["a", "b"], ["c"]]}, {"q1": ["a", "c"]}, ["recall@5"]).means
{'recall@5': 1.0}
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from groupgt.comparison.compare import Comparison as Comparison
    from groupgt.comparison.compare import compare as compare
    from groupgt.comparison.compare import power as power
    from groupgt.comparison.failures import HardestGroups as HardestGroups
    from groupgt.comparison.failures import misses as misses
    from groupgt.comparison.power import AuditPower as AuditPower
    from groupgt.comparison.power import PowerAnalysis as PowerAnalysis
    from groupgt.curation.agree import Agreement as Agreement
    from groupgt.curation.agree import agree as agree
    from groupgt.curation.check import Check as Check
    from groupgt.curation.check import check as check
    from groupgt.curation.rechunk import Rechunked as Rechunked
    from groupgt.curation.rechunk import rechunk as rechunk
    from groupgt.curation.suggest import Suggestions as Suggestions
    from groupgt.curation.suggest import suggest as suggest
    from groupgt.errors import (
        ConfigError as ConfigError,
    )
    from groupgt.errors import (
        DataError as DataError,
    )
    from groupgt.errors import (
        GroupgtError as GroupgtError,
    )
    from groupgt.errors import (
        GroupgtWarning as GroupgtWarning,
    )
    from groupgt.errors import (
        MetricError as MetricError,
    )
    from groupgt.errors import (
        RetrieverError as RetrieverError,
    )
    from groupgt.evaluation.depth import Depths as Depths
    from groupgt.evaluation.depth import depth as depth
    from groupgt.evaluation.evaluate import evaluate as evaluate
    from groupgt.evaluation.evaluate import label as label
    from groupgt.evaluation.identify import Identified as Identified
    from groupgt.evaluation.identify import identify as identify
    from groupgt.evaluation.misses import Misses as Misses
    from groupgt.evaluation.result import Evaluation as Evaluation
    from groupgt.evaluation.runs import Evaluations as Evaluations
    from groupgt.evaluation.runs import evaluate_runs as evaluate_runs
    from groupgt.evaluation.score import score as score
    from groupgt.evaluation.stages import Stages as Stages
    from groupgt.evaluation.stages import stages as stages
    from groupgt.evaluation.thresholds import Thresholds as Thresholds
    from groupgt.evaluation.thresholds import thresholds as thresholds
    from groupgt.experiment.outcome import Outcome as Outcome
    from groupgt.formats.corpus import read_lengths as read_lengths
    from groupgt.formats.detect import read_ground_truth as read_ground_truth
    from groupgt.formats.detect import read_run as read_run
    from groupgt.metrics.language import Metric as Metric
    from groupgt.metrics.language import list_metrics as list_metrics
    from groupgt.metrics.language import parse_metric as parse_metric
    from groupgt.metrics.own import metric as metric
    from groupgt.model.ground_truth import GroundTruth as GroundTruth
    from groupgt.model.policy import Policy as Policy
    from groupgt.model.run import Run as Run
    from groupgt.model.values import Lengths as Lengths
    from groupgt.report.run import run_experiment as run_experiment

__version__ = "0.1.0"

# The public names of each module, which is imported when one of them is first used.
_NAMES = {
    "comparison.compare": "Comparison compare power",
    "comparison.failures": "HardestGroups misses",
    "comparison.power": "AuditPower PowerAnalysis",
    "curation.agree": "Agreement agree",
    "curation.check": "Check check",
    "curation.rechunk": "Rechunked rechunk",
    "curation.suggest": "Suggestions suggest",
    "errors": "ConfigError DataError GroupgtError GroupgtWarning MetricError RetrieverError",
    "evaluation.depth": "Depths depth",
    "evaluation.evaluate": "evaluate label",
    "evaluation.identify": "Identified identify",
    "evaluation.misses": "Misses",
    "evaluation.result": "Evaluation",
    "evaluation.runs": "Evaluations evaluate_runs",
    "evaluation.score": "score",
    "evaluation.stages": "Stages stages",
    "evaluation.thresholds": "Thresholds thresholds",
    "experiment.outcome": "Outcome",
    "formats.corpus": "read_lengths",
    "formats.detect": "read_ground_truth read_run",
    "metrics.language": "Metric list_metrics parse_metric",
    "metrics.own": "metric",
    "model.ground_truth": "GroundTruth",
    "model.policy": "Policy",
    "model.run": "Run",
    "model.values": "Lengths",
    "report.run": "run_experiment",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted([*_HOME, "__version__"])  # noqa: PLE0605  # static tools read the imports above


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'groupgt' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"groupgt.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
