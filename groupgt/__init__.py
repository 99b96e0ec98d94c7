"""groupgt: retrieval measured against grouped ground truth; `[["a", "b"], ["c"]]` means (a or b) and c.

>>> import groupgt
>>> groupgt.evaluate({"q1": [["a", "b"], ["c"]]}, {"q1": ["a", "c"]}, ["recall@5"]).means
{'recall@5': 1.0}
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from groupgt.comparison.core import compare
    from groupgt.comparison.result import Comparison
    from groupgt.errors import (
        ConfigError,
        DataError,
        GroupgtError,
        GroupgtWarning,
        MetricError,
        RetrieverError,
    )
    from groupgt.evaluation.agreed import Agreement, agree
    from groupgt.evaluation.core import evaluate, label
    from groupgt.evaluation.depths import depth
    from groupgt.evaluation.rechunked import Rechunked, rechunk
    from groupgt.evaluation.result import Evaluation
    from groupgt.experiment.findings.outcome import Outcome
    from groupgt.experiment.runner import run_experiment
    from groupgt.formats.corpus import read_lengths
    from groupgt.formats.detect import read_ground_truth, read_run
    from groupgt.metrics.language import Metric, list_metrics, parse_metric
    from groupgt.model.ground_truth import GroundTruth
    from groupgt.model.lengths import Lengths
    from groupgt.model.policy import Policy
    from groupgt.model.run import Run

__version__ = "0.1.0"

# Where each public name lives; it is imported when first asked for.
_HOME = {
    "Agreement": "evaluation.agreed",
    "Comparison": "comparison.result",
    "ConfigError": "errors",
    "DataError": "errors",
    "Evaluation": "evaluation.result",
    "GroundTruth": "model.ground_truth",
    "GroupgtError": "errors",
    "GroupgtWarning": "errors",
    "Lengths": "model.lengths",
    "Metric": "metrics.language",
    "MetricError": "errors",
    "Outcome": "experiment.findings.outcome",
    "Policy": "model.policy",
    "Rechunked": "evaluation.rechunked",
    "RetrieverError": "errors",
    "Run": "model.run",
    "agree": "evaluation.agreed",
    "compare": "comparison.core",
    "depth": "evaluation.depths",
    "evaluate": "evaluation.core",
    "label": "evaluation.core",
    "list_metrics": "metrics.language",
    "parse_metric": "metrics.language",
    "read_ground_truth": "formats.detect",
    "read_lengths": "formats.corpus",
    "read_run": "formats.detect",
    "rechunk": "evaluation.rechunked",
    "run_experiment": "experiment.runner",
}

__all__ = [
    "Agreement",
    "Comparison",
    "ConfigError",
    "DataError",
    "Evaluation",
    "GroundTruth",
    "GroupgtError",
    "GroupgtWarning",
    "Lengths",
    "Metric",
    "MetricError",
    "Outcome",
    "Policy",
    "Rechunked",
    "RetrieverError",
    "Run",
    "__version__",
    "agree",
    "compare",
    "depth",
    "evaluate",
    "label",
    "list_metrics",
    "parse_metric",
    "read_ground_truth",
    "read_lengths",
    "read_run",
    "rechunk",
    "run_experiment",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'groupgt' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"groupgt.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
