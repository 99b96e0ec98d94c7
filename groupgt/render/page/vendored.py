"""Third-party JavaScript in every page, unmodified. `python -m tests.vendor` downloads the pinned versions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "vendor"
LICENSES = FOLDER / "LICENSES.txt"


@dataclass(frozen=True)
class Library:
    """A vendored library, with its package, its version, and the SHA-256 of its minified file."""

    package: str
    version: str
    sha256: str

    @property
    def path(self) -> Path:
        """The path of the vendored file."""
        return FOLDER / f"{self.package}.min.js"

    @property
    def text(self) -> str:
        """The full text of the script."""
        return self.path.read_text(encoding="utf-8")


# In execution order.
LIBRARIES = (
    Library("vega", "6.4.0", "8f6a3587cf8d4f42c7e08120e3eb05d067e746d554e39d2dcf52acc0bd5ba28f"),
    Library("vega-lite", "6.4.3", "843d20762ca6e52ff5ceab7a3296219272a9c0b5364402d6814f3c7738f4be5e"),
    Library("vega-embed", "7.3.0", "6719f03edf72beff23310ee56cd0f1a9ebbf7ddcc656d3e5cc2f9067ab835671"),
)


@cache
def licenses() -> str:
    """Return the licenses of the libraries and of their bundled dependencies."""
    return LICENSES.read_text(encoding="utf-8")
