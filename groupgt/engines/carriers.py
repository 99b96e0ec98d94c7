"""Selects the carrier for a run, and provides operations that all carriers share."""

from __future__ import annotations

from collections.abc import Iterator

from groupgt.engines.base import Carrier, LocalCarrier
from groupgt.engines.lists import ListCarrier
from groupgt.errors import ConfigError
from groupgt.labellers.base import Labeller
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.ranking import Ranking
from groupgt.model.run import Lines, Lists, Remote, Run


def carrier_of(run: Run) -> Carrier:
    """Return the carrier for a run, depending on the type of its contents."""
    if isinstance(run.contents, Remote):
        carrier: Carrier = run.contents.carrier_of(run)
        return carrier
    return _local_carrier_of(run)


def local_carrier_of(run: Run, purpose: str) -> LocalCarrier:
    """Return a carrier for results that are needed locally, or raise `ConfigError` if they stay on a cluster."""
    if run.is_remote:
        what = f"{purpose} is not supported for results on a cluster; write the results to parquet and pass the files"
        raise ConfigError(f"{run.name or run.source or 'results'}: {what}")
    return _local_carrier_of(run)


def _local_carrier_of(run: Run) -> LocalCarrier:
    run = run.resolved
    if isinstance(run.contents, Lists):
        return ListCarrier(run, run.contents)
    if isinstance(run.contents, Lines):
        from groupgt.engines.columns.lines import LineCarrier

        return LineCarrier(run, run.contents)
    from groupgt.engines.columns.carrier import row_carrier_of

    return row_carrier_of(run)


def renamed(truth: GroundTruth, run: Run, labeller: Labeller, policy: Policy) -> Run:
    """Return the run with its results renamed, if the labeller renames results and has not yet done so."""
    if not labeller.renames or run.original is not None:
        return run
    return carrier_of(run).rename(truth, labeller, policy)


def all_rankings(run: Run, policy: Policy) -> Iterator[tuple[str, Ranking]]:
    """Yield every query of a run with its results, in run order."""
    return local_carrier_of(run, "reading all rankings").rankings(policy)
