"""Format a comparison for a paper: a LaTeX table of systems and metrics that marks significant differences."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence

from groupgt.comparison.contrast import Contrast, Key, comparisons, contrasts_with
from groupgt.comparison.systems import Systems
from groupgt.errors import ConfigError, near_names
from groupgt.metrics.language import Metric
from groupgt.render.tables import counted, fixed
from groupgt.report.contrasts import corrected_over, described
from groupgt.report.sentences import grouped

# Special characters of LaTeX, escaped.
ESCAPED = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": "$<$",
        ">": "$>$",
        "|": "$|$",
    }
)
# Meaning of the letters in the table, by whether any system is better, worse or both.
MARKED = {
    (True,): "A superscript marks a value that is significantly better than that of the system with this letter",
    (False,): "A subscript marks a value that is significantly worse than that of the system with this letter",
    (False, True): "A superscript marks a value that is significantly better than that of the system with this "
    "letter, a subscript a value that is significantly worse",
}
# With more metrics than this the table is set smaller, and its headers have two lines.
FEW_METRICS = 4
SMALL, SMALLER = r"footnotesize\setlength{\tabcolsep}{2pt}", r"scriptsize\setlength{\tabcolsep}{1.5pt}"
# Which systems, by letter, the cell of a system and a metric is better (True) or worse (False) than.
Signs = dict[tuple[str, str], dict[bool, list[str]]]


def latex_of(systems: Systems, digits: int = 3, against: Sequence[str] = (), caption: str = "") -> str:
    """Return a LaTeX table environment. `against` lists the systems to test against (default: the baseline)."""
    named = list(dict.fromkeys(against)) or [systems.baseline]
    for name in named:
        if name not in systems.names:
            found = f"{name!r}{near_names(name, systems.names)}"
            raise ConfigError(f"against: expected one of {', '.join(systems.names)}, found {found}")
    if len(named) > len(string.ascii_lowercase):
        raise ConfigError(f"against: expected at most {len(string.ascii_lowercase)} systems, found {len(named)}")
    letters = dict(zip(named, string.ascii_lowercase))
    metrics = systems.by().compared or list(systems.metrics)
    chosen = {text: metric for text, metric in systems.metrics.items() if text in metrics}
    contrasts = contrasts_with(named, systems.tested, chosen, systems.settings, systems.builds)
    # Each pair is tested once and reported for both systems.
    signs: Signs = {}
    for (first, second, text), contrast in contrasts.items():
        if contrast.significant:
            is_better = contrast.standing == "better"
            for name, other, better in ((first, second, is_better), (second, first, not is_better)):
                if other in letters:
                    signs.setdefault((name, text), {}).setdefault(better, []).append(letters[other])
    parts = [systems.labels[text].translate(ESCAPED).rpartition("@") for text in chosen]
    headers = [["".join(part) for part in parts]]
    if len(chosen) > FEW_METRICS:
        # The names of metrics are placed above their cutoffs.
        cutoffs = [at and at + cutoff for _, at, cutoff in parts]
        headers = [[name or cutoff for name, _, cutoff in parts], *([cutoffs] if any(cutoffs) else [])]
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        rf"\centering\{SMALL if len(chosen) <= FEW_METRICS else SMALLER}",
        rf"\caption{{{caption or _caption(systems, letters, signs, contrasts)}}}\smallskip",
        rf"\begin{{tabular}}{{@{{}}l{'r' * len(chosen)}@{{}}}}",
        r"\toprule",
        *(" & ".join(["", *row]) + r" \\" for row in headers),
        r"\midrule",
    ]
    for name in systems.names:
        letter = f"{letters[name]}~" if name in letters else ""
        cells = [_cell(systems, name, text, digits, signs.get((name, text), {})) for text in chosen]
        lines.append(" & ".join([letter + name.translate(ESCAPED), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


def _cell(systems: Systems, name: str, text: str, digits: int, signs: dict[bool, list[str]]) -> str:
    mean = systems.means[name][text]
    shown = fixed(mean, digits)
    if systems.metrics[text].definition.bounded:
        shown = shown.removeprefix("0") or shown
    if mean is None:
        return "--"
    if len(systems.names) > 1 and systems.is_best(name, text):
        shown = rf"\textbf{{{shown}}}"
    above, below = (",".join(sorted(signs.get(better, []))) for better in (True, False))
    marks = (f"^{{{above}}}" if above else "") + (f"_{{{below}}}" if below else "")
    return shown + (f"${marks}$" if marks else "")


def _caption(systems: Systems, letters: dict[str, str], signs: Signs, contrasts: Mapping[Key, Contrast]) -> str:
    """Write the caption: metrics, number of queries, and the significance test."""
    settings, bold = systems.settings, ". The best values are bold" if len(systems.names) > 1 else ""
    over = {text: _queries(*systems.queries_over(text)) for text in systems.by().compared or systems.metrics}
    if len(set(over.values())) == 1:
        named = f"{joined([in_full(systems.metrics[text]) for text in over])} over {next(iter(over.values()))}"
    else:
        named = joined([f"{in_full(systems.metrics[text])} over {queries}" for text, queries in over.items()])
    text = f"Means of {named}{bold}."
    if not contrasts:
        return text.translate(ESCAPED)
    what = MARKED.get(tuple(sorted({better for of_cell in signs.values() for better in of_cell})), "")
    families = grouped((text, each) for (*_, text), each in contrasts.items())
    corrected = corrected_over(settings, max(map(comparisons, families.values())), families=2)
    named = ", ".join(f"{letter}: {name}" for name, letter in letters.items())
    comparison = f"{what} ({named})" if what else f"No difference from {named} is significant"
    test = f"{described(settings, systems.basis)}, p < {settings.alpha:g}, {corrected}"
    return f"{text} {comparison}: {test}.".translate(ESCAPED)


def _queries(low: int, high: int) -> str:
    return counted(high, "query") if low == high else f"{low:,}--{high:,} queries"


def in_full(metric: Metric) -> str:
    """Return a metric with all its parameters, including default values."""
    values = {parameter.name: parameter.default for parameter in metric.formula.parameters} | dict(metric.parameters)
    shown = [] if metric.level is None else [f"level={metric.level:g}"]
    shown += [f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in values.items()]
    cutoff = "" if metric.cutoff is None else f"@{metric.cutoff}"
    convention = f".{metric.convention}" if metric.convention else ""
    return f"{metric.name}{convention}{'(' + ', '.join(shown) + ')' if shown else ''}{cutoff}"


def joined(texts: Sequence[str]) -> str:
    """Join texts, as in `a, b and c`."""
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
