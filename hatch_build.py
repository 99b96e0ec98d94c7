"""Builds `groupgt._native` where there is a compiler, for a wheel, an editable install, or in place; fills in metadata.

`python hatch_build.py` builds it in place, for a checkout that is run without being installed (it needs setuptools).
"""

from __future__ import annotations

import re
import shutil
import sys
import sysconfig
import tempfile
import zlib
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parent / "groupgt"
SOURCE = PACKAGE / "_native.c"
LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)\s]+)")


def build(folder: Path) -> Path | None:
    """The module, built for the stable ABI of CPython 3.11 in a folder; None where that cannot be done."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return None
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    digest = f"{zlib.crc32(SOURCE.read_bytes()):08x}"
    extension = Extension(
        "groupgt._native",
        [str(SOURCE)],
        define_macros=[("SOURCE_DIGEST", f'"{digest}"')],
        py_limited_api=True,
        optional=True,
    )
    command = build_ext(Distribution({"name": "groupgt", "ext_modules": [extension]}))
    command.build_lib, command.build_temp = str(folder / "lib"), str(folder / "temp")
    command.ensure_finalized()
    command.run()
    return next((folder / "lib" / "groupgt").glob("_native.*"), None)


def remove_old() -> None:
    """Remove what was built in place before."""
    for pattern in ("_native*.so", "_native*.pyd"):
        for old in PACKAGE.glob(pattern):
            old.unlink()


def build_in_place() -> Path | None:
    """The module beside its source."""
    remove_old()
    with tempfile.TemporaryDirectory() as folder:
        module = build(Path(folder))
        return None if module is None else Path(shutil.copy2(module, PACKAGE))


def metadata_of(filled: dict[str, str], version: str) -> dict[str, Any]:
    """What derives from the three lines that a maintainer fills in: authors, URLs, and the README with absolute links.

    A package index shows the README alone, so its links and pictures lead to the files of this version's tag.
    """
    repository, tag = filled["repository"], f"v{version}"

    def absolute(link: re.Match[str]) -> str:
        return f"{repository}/{'raw' if link[1].endswith('.png') else 'blob'}/{tag}/{link[1]}"

    text = LINK.sub(absolute, (PACKAGE.parent / "README.md").read_text(encoding="utf-8"))
    return {
        "authors": [{"name": filled["author"], "email": filled["email"]}],
        "readme": {"content-type": "text/markdown", "text": text},
        "urls": {
            "Repository": repository,
            "Documentation": f"{repository}/blob/{tag}/docs/index.md",
            "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
            "Issues": f"{repository}/issues",
        },
    }


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ImportError:  # in place, without hatchling
    pass
else:

    class FilledHook(MetadataHookInterface):
        """The metadata that `pyproject.toml` calls dynamic, but for the version."""

        def update(self, metadata: dict[str, Any]) -> None:
            """Before anything is built: adds them."""
            filled = {name: self.config[name] for name in ("repository", "author", "email")}
            metadata.update(metadata_of(filled, metadata["version"]))

    class NativeHook(BuildHookInterface[Any]):
        """A wheel for this platform with the module, or one for all without it."""

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Before the wheel is put together: builds the module, and says for which machines the wheel is."""
            self.folder = Path(tempfile.mkdtemp())
            module = build_in_place() if version == "editable" else build(self.folder)
            if module is None:
                self.app.display_warning("groupgt._native could not be built; Python does its work")
                return
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"cp311-abi3-{platform}"
            build_data["pure_python"] = False
            if version != "editable":
                build_data["force_include"][str(module)] = f"groupgt/{module.name}"

        def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
            """After it: removes what was built on the way."""
            shutil.rmtree(self.folder, ignore_errors=True)


if __name__ == "__main__":
    built = build_in_place()
    print(f"built {built}" if built else "not built: Python does its work")
