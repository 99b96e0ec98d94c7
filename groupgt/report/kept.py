"""Reports which results came from the cache, and how to cache slow systems."""

from __future__ import annotations

from groupgt.experiment.answers import KeptAnswers
from groupgt.experiment.outcome import Outcome
from groupgt.render.tables import counted

# Seconds: if custom code takes longer, a line explains how to cache its answers.
LONG = 30.0


def from_cache(outcome: Outcome) -> str:
    """Lists reused results in one line, with the time of the earlier run; empty if everything is new."""
    kept = outcome.kept
    retrievals = kept.cached - sum(not each.earlier.interrupted for each in kept.answers)
    parts = [f"from the cache: {counted(retrievals, 'retrieval')}"] if retrievals else []
    parts += (_earlier(outcome, each) for each in kept.answers)
    if kept.verdicts:
        since = f"; changed since: {', '.join(kept.changed)}" if kept.changed else ""
        parts.append(f"{kept.verdicts:,} of {kept.verdicts + kept.judged:,} verdicts are from earlier runs{since}")
    return "; ".join(parts) + (" (--refresh starts from scratch)" if parts else "")


def _earlier(outcome: Outcome, kept: KeptAnswers) -> str:
    name = f"{kept.dataset}: {kept.system}" if len(outcome.evaluations) > 1 else kept.system
    earlier = kept.earlier
    what = f"{earlier.count:,} of {kept.queries:,} answers of {name} are from the run"
    at = earlier.at.replace("T", " ").removesuffix("Z")
    since = f"; changed since: {', '.join(earlier.changed)}" if earlier.changed else ""
    way = f"resumed: {what} interrupted" if earlier.interrupted else f"reused: {what} that ended"
    return f"{way} at {at} UTC{since}"


def ways_to_keep(outcome: Outcome) -> str:
    """Explains in one line how to cache slow systems; empty if there are none."""
    slow = {name: seconds for name, seconds in outcome.kept.seconds.items() if seconds > LONG}
    if not slow:
        return ""
    times = " and ".join(f"{name} ({seconds:,.0f} s)" for name, seconds in slow.items())
    return f"each run queries {times} again; to cache their results, set `version` next to `use`, or run with --reuse"
