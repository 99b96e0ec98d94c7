"""Download the JavaScript libraries of the report page: `python -m tests.vendor`."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from groupgt.render.page.vendored import FOLDER, LIBRARIES, LICENSES

# Packages that npm also installs, for command lines; the files contain nothing from them.
APART = {"commander", "rw", "iconv-lite", "safer-buffer", "yargs"}


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
        subprocess.run(command, cwd=folder, check=True)
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
