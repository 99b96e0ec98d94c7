"""Shortens `bm25[k1=1.6,b=0.4]` to `bm25 k1=1.6 b=0.4`, and omits options that all systems share."""

from __future__ import annotations

import re
from collections.abc import Iterable

# A name with options, and the commas between them, which are not inside brackets.
WITH_OPTIONS = re.compile(r"([^\[\]]+)\[(.+=.+)\]")
BETWEEN = re.compile(r",(?![^\[]*\])")


class Names:
    """The names of systems side by side. Options that all systems of a retriever share are listed only in `shared`."""

    def __init__(self, names: Iterable[str]) -> None:
        self._parts = {name: _parts(name) for name in names}
        self.shared: list[str] = []
        for base in dict.fromkeys(base for base, _ in self._parts.values()):
            options = [each for other, each in self._parts.values() if other == base]
            common = {
                key: value for key, value in options[0].items() if all(each.get(key) == value for each in options)
            }
            if len(options) > 1 and common:
                self.shared.append(" ".join([base, *(f"{key}={value}" for key, value in common.items())]))
                for each in options:
                    for key in common:
                        del each[key]

    def __getitem__(self, name: str) -> str:
        return " ".join(part for part in self.parts(name) if part)

    def parts(self, name: str) -> tuple[str, str]:
        """Return the retriever and its options."""
        base, options = self._parts.get(name) or _parts(name)
        return base, " ".join(f"{key}={value}" for key, value in options.items())


def _parts(name: str) -> tuple[str, dict[str, str]]:
    """Split a name such as `rrf[k=10]` into the retriever and its options. Names in any other form have no options."""
    match = WITH_OPTIONS.fullmatch(name)
    pairs = [option.partition("=") for option in BETWEEN.split(match[2])] if match else []
    if match is None or not all(key and value for key, _, value in pairs):
        return name, {}
    return match[1], {key: value.removeprefix("[").removesuffix("]") for key, _, value in pairs}
