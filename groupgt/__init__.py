"""groupgt: retrieval measured against grouped ground truth; `[["a", "b"], ["c"]]` means (a or b) and c.

>>> import groupgt
>>> groupgt.evaluate({"q1": [["a", "b"], ["c"]]}, {"q1": ["a", "c"]}, ["recall@5"]).means
{'recall@5': 1.0}
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from groupgt.comparison.compare import Comparison, compare
    from groupgt.curation.agree import Agreement, agree
    from groupgt.curation.rechunk import Rechunked, rechunk
    from groupgt.errors import (
        ConfigError,
        DataError,
        GroupgtError,
        GroupgtWarning,
        MetricError,
        RetrieverError,
    )
    from groupgt.evaluation.depth import depth
    from groupgt.evaluation.evaluate import evaluate, label
    from groupgt.evaluation.result import Evaluation
    from groupgt.experiment.display import Outcome
    from groupgt.experiment.runner import run_experiment
    from groupgt.formats.corpus import read_lengths
    from groupgt.formats.detect import read_ground_truth, read_run
    from groupgt.metrics.language import Metric, list_metrics, parse_metric
    from groupgt.metrics.own import metric
    from groupgt.model.ground_truth import GroundTruth
    from groupgt.model.policy import Policy
    from groupgt.model.run import Run
    from groupgt.model.values import Lengths

__version__ = "0.1.0"

# Where each public name lives; it is imported when first asked for.
_HOME = {
    "Agreement": "curation.agree",
    "Comparison": "comparison.compare",
    "ConfigError": "errors",
    "DataError": "errors",
    "Evaluation": "evaluation.result",
    "GroundTruth": "model.ground_truth",
    "GroupgtError": "errors",
    "GroupgtWarning": "errors",
    "Lengths": "model.values",
    "Metric": "metrics.language",
    "MetricError": "errors",
    "Outcome": "experiment.display",
    "Policy": "model.policy",
    "Rechunked": "curation.rechunk",
    "RetrieverError": "errors",
    "Run": "model.run",
    "agree": "curation.agree",
    "compare": "comparison.compare",
    "depth": "evaluation.depth",
    "evaluate": "evaluation.evaluate",
    "label": "evaluation.evaluate",
    "list_metrics": "metrics.language",
    "metric": "metrics.own",
    "parse_metric": "metrics.language",
    "read_ground_truth": "formats.detect",
    "read_lengths": "formats.corpus",
    "read_run": "formats.detect",
    "rechunk": "curation.rechunk",
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
    "metric",
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
