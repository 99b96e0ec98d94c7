"""Third-party JavaScript included in every page: Vega, Vega-Lite and vega-embed, unmodified.

`python -m groupgt.render.page.vendored` downloads the pinned versions with npm and verifies their checksums.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "vendor"
LICENSES = FOLDER / "LICENSES.txt"
# Packages that npm also installs, for command lines; the files contain nothing from them.
APART = {"commander", "rw", "iconv-lite", "safer-buffer", "yargs"}


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


def main() -> None:
    """Download the libraries and their licenses. Requires npm and network access."""
    npm = shutil.which("npm")
    if npm is None:
        sys.exit("npm is needed")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "package.json").write_text("{}", encoding="utf-8")
        packages = [f"{each.package}@{each.version}" for each in LIBRARIES]
        command = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", *packages]
        subprocess.run(command, cwd=folder, check=True)  # noqa: S603
        modules = folder / "node_modules"
        FOLDER.mkdir(exist_ok=True)
        for library in LIBRARIES:
            # Remove references to source maps, which are not included.
            text = (modules / library.package / "build" / library.path.name).read_text(encoding="utf-8")
            text = "\n".join(line for line in text.splitlines() if not line.startswith("//# sourceMappingURL=")) + "\n"
            digest = hashlib.sha256(text.encode()).hexdigest()
            if digest != library.sha256:
                sys.exit(f"build/{library.path.name}: expected SHA-256 {library.sha256}, found {digest}")
            library.path.write_text(text, encoding="utf-8", newline="")
        LICENSES.write_text(_licenses(modules), encoding="utf-8", newline="")


def _licenses(modules: Path) -> str:
    """Return each distinct license of the libraries and their dependencies once, with the packages that use it."""
    waiting = [each.package for each in LIBRARIES]
    abouts: dict[str, dict[str, Any]] = {}
    while waiting:
        name = waiting.pop()
        if name not in abouts and name not in APART and not name.startswith("@types/"):
            abouts[name] = json.loads((modules / name / "package.json").read_text(encoding="utf-8"))
            waiting += abouts[name].get("dependencies", {})
    packages: dict[str, list[str]] = {}
    for name, about in sorted(abouts.items()):
        file = next((each for each in sorted((modules / name).iterdir()) if each.stem.upper() == "LICENSE"), None)
        text = file.read_text(encoding="utf-8").strip() if file else f"License: {about['license']}"
        packages.setdefault(text, []).append(f"{name} {about['version']}")
    parts = [f"{', '.join(names)}\n\n{text}" for text, names in packages.items()]
    rule = "\n\n" + "-" * 80 + "\n\n"
    return rule.join(parts) + "\n"


if __name__ == "__main__":
    main()
