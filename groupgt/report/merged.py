"""The page and the figures of merged result folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groupgt.comparison.compare import Comparison
from groupgt.comparison.systems import Systems
from groupgt.render.drawing import Drawable, Figure
from groupgt.render.page import data
from groupgt.render.page.page import untimed_page
from groupgt.render.tables import counted
from groupgt.report.curves import sweeps_of
from groupgt.report.drawings import of_comparison
from groupgt.report.experiment import existing_figures
from groupgt.report.page import Added, dataset_of
from groupgt.report.times import figure as latency
from groupgt.results.folder import ResultFolder
from groupgt.results.merge import why_stored


def merged_page(
    comparisons: Mapping[str, Comparison], folders: Sequence[ResultFolder], metric: str | None = None
) -> data.Page:
    """Build the page for merged result folders, with texts and rankings if they can still be read."""
    title = ", ".join(dict.fromkeys(folder.name for folder in folders))
    primary = metric or folders[0].primary
    datasets = []
    for name, table in comparisons.items():
        holders = [folder for folder in folders if name in folder.systems]
        manifest = holders[0].manifest
        facts: list[tuple[str, str]] = []
        if not table.evaluations:
            facts += [("policy", manifest.policy), ("ground truth", f"SHA-256 {manifest.ground_truth[name]}")]
            facts.append(("rankings", f"not on this page: {why_stored(table)}"))
        for folder in holders:
            contents = f"{counted(len(folder.systems[name]), 'system')}, groupgt {folder.manifest.groupgt}"
            facts.append((f"{folder.name}/{folder.stamp}", contents))
        swept = _swept(holders[0], table.by(primary)) if len(holders) == 1 else {}
        datasets.append(dataset_of(table.by(primary), name, Added(facts=facts, figures=swept)))
    return untimed_page(title, datasets)


def _swept(folder: ResultFolder, systems: Systems) -> dict[str, Figure]:
    entries = {family: entry.get("matrix", {}) for family, entry in folder.config.get("systems", {}).items()}
    resolved = folder.manifest.systems
    options = {name: resolved[name]["options"] for name in resolved if name in systems.values}
    families = {name: name.partition("[")[0] for name in options}
    return sweeps_of(systems, entries, families, options)


def merged_figures(
    folders: Sequence[ResultFolder], table: Comparison, dataset: str, metric: str | None = None
) -> Drawable:
    """Return figures for a data set in merged folders by name. Sweeps and latency require a single folder."""
    systems = table.by(metric or folders[0].primary)
    figures = of_comparison(systems, table)
    if len(folders) > 1:
        return figures
    folder = folders[0]
    return {**figures, **existing_figures(_swept(folder, systems), latency(systems, folder.latencies(dataset)))}
