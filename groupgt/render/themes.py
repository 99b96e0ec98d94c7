"""Define colors and typography for figures and the report page, with light and dark themes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
# Classes of the rank at which a group is covered: their names, and the last rank of all but the last two.
RANKS = ("rank 1", "2 to 3", "4 to 10", "later", "not covered")
RANK_ENDS = (1, 3, 10)
# Colors that notebooks choose themselves, so that a dark notebook stays dark.
NEUTRAL = {"ground", "ink", "soft", "line"}
CONFIG: dict[str, Any] = {
    "background": "$ground",
    "font": FONT,
    "padding": 10,
    "view": {"stroke": None},
    "title": {
        "anchor": "start",
        "color": "$ink",
        "subtitleColor": "$soft",
        "fontSize": 14,
        "subtitleFontSize": 11,
        "subtitlePadding": 4,
        "offset": 12,
    },
    "axis": {
        "labelColor": "$ink",
        "titleColor": "$soft",
        "titleFontWeight": "normal",
        "gridColor": "$line",
        "domainColor": "$line",
        "tickColor": "$line",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "labelLimit": 320,
        "labelPadding": 5,
    },
    "legend": {
        "labelColor": "$ink",
        "titleColor": "$soft",
        "titleFontWeight": "normal",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "labelLimit": 320,
        "orient": "bottom",
        "columns": 3,
        "labelOverlap": True,
        # Wide enough for a three-digit number below each of six steps.
        "gradientLength": 250,
    },
    "header": {"labelColor": "$ink", "titleColor": "$soft", "labelFontSize": 12},
    "text": {"fontSize": 11},
    "style": {"guide-label": {"fill": "$ink"}},
}


# Expressions that cut long names in their middle, because both ends identify them. The page measures names instead.
LABELS = {
    f"${kind}": f"truncate(datum.label, {most}, 'center')"
    for kind, most in (("name", 40), ("slanted", 30), ("key", 40))
}


def _numbered(name: str, colors: str) -> dict[str, str]:
    return {f"{name}{place}": color for place, color in enumerate(colors.split())}


# Semantic colors, for light and dark themes. Systems also differ in shape or dash, and steps also in lightness.
THEMES: dict[str, dict[str, str]] = {
    "light": {
        **{"ground": "#ffffff", "ink": "#1b1f24", "soft": "#57606a", "line": "#d8dee4"},
        **{"better": "#0a5fb4", "worse": "#c2570c", "same": "#8c959f", "stop": "#9c1146", "ok": "#006b52"},
        **_numbered("system", "#0a5fb4 #c2570c #00805f #9a3f8f #5b6570 #8a6a00 #1889a8 #a3243b"),
        **_numbered("step", "#f1f5fa #cfe1f2 #9dc7e6 #5ea3d3 #2273b5 #0b437f"),
        **_numbered("on", "#1b1f24 #1b1f24 #1b1f24 #1b1f24 #ffffff #ffffff"),
        **_numbered("turn", "#c2570c #f2b27a #f1f1ee #9dc7e6 #0a5fb4"),
        **_numbered("onturn", "#ffffff #1b1f24 #1b1f24 #1b1f24 #ffffff"),
    },
    "dark": {
        **{"ground": "#14181d", "ink": "#e8ebee", "soft": "#a4adb8", "line": "#343c46"},
        **{"better": "#6cb2f5", "worse": "#f2944b", "same": "#7d8894", "stop": "#ff86a8", "ok": "#5ad1ae"},
        **_numbered("system", "#6cb2f5 #f2944b #3fc49a #e08bd4 #b3bcc6 #dcbb3c #52cfea #f27b8b"),
        **_numbered("step", "#1d242c #1c3752 #214f79 #286ca6 #62a6dd #b4d8f7"),
        **_numbered("on", "#e8ebee #e8ebee #e8ebee #e8ebee #10151a #10151a"),
        **_numbered("turn", "#f2944b #7d4a22 #262d35 #235683 #6cb2f5"),
        **_numbered("onturn", "#10151a #e8ebee #e8ebee #e8ebee #10151a"),
    },
}


def without_neutral(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration without background, text and line colors."""
    kept: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            kept[key] = without_neutral(value)
        elif not (isinstance(value, str) and value[1:] in NEUTRAL):
            kept[key] = value
    return kept
