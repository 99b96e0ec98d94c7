"""Creates labellers, and reads the corpora, tables, vectors and functions that their options refer to."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from groupgt.errors import ConfigError, DataError, display
from groupgt.formats.frames import is_frame
from groupgt.labellers.base import Labeller
from groupgt.model.validity import id_text
from groupgt.model.values import Chunks
from groupgt.options import chosen
from groupgt.records import record

if TYPE_CHECKING:
    from groupgt.store.verdicts import Verdicts, VerdictStore


def labeller_of(spec: Any, sources: Sources | None = None, *, texts: bool = False) -> Labeller:
    """Create a labeller from a name or `{"use": name, "with": {option: value}}`, or from `texts` in a shell."""
    if isinstance(spec, Labeller):
        return spec
    plugin, options = chosen("labeller", spec, texts=texts, also="a Labeller")
    labeller: Labeller = plugin.built(options, sources or Sources())
    return labeller


@record
class Sources:
    """Labeller inputs: the default `corpus`, files relative to `folder`, and verdicts that were `judged` before."""

    corpus: Any = None
    folder: Path = field(default_factory=Path)
    allow_code: bool = True
    judged: VerdictStore | None = None
    _read: dict[Any, dict[str, str]] = field(default_factory=dict, repr=False)

    def texts(self, source: Any, option: str) -> Mapping[str, str]:
        """Return texts by id from a path, a frame or a mapping, or from the default corpus if there is no source."""
        chosen = self.corpus if _is_absent(source) else source
        if chosen is None:
            return {}
        if isinstance(chosen, Mapping):
            return _texts(chosen, option)
        is_path = isinstance(chosen, (str, os.PathLike))
        if not (is_path or is_frame(chosen)):
            raise ConfigError(f"{option}: expected a path, a frame or {{id: text}}, found {display(chosen)}")
        key: Any = id(chosen)
        if is_path:
            key = chosen = Path(chosen) if _is_absent(source) else self._path(chosen, option)
        if key not in self._read:
            from groupgt.formats.corpus import read_corpus

            self._read[key] = read_corpus(chosen)
        return self._read[key]

    def chunks(self, source: Any, option: str) -> Chunks | None:
        """Return chunk spans from a table; if there is no source, return any spans in the default corpus."""
        if isinstance(source, Chunks):
            return source
        if isinstance(source, Mapping):
            return Chunks.of(source)
        path = self.corpus if _is_absent(source) else self._path(source, option)
        if not isinstance(path, (str, os.PathLike)):
            return None
        from groupgt.formats.corpus import read_chunks

        return read_chunks(path, optional=_is_absent(source))

    def parents(self, source: Any, column: str) -> Mapping[str, str]:
        """Return `{id: parent}` from a file or a mapping."""
        if isinstance(source, Mapping):
            return _texts(source, "mapping", numbers=True)
        from groupgt.formats.corpus import read_parents

        return read_parents(self._path(source, "mapping"), column)

    def vectors(self, source: Any, option: str) -> Mapping[str, Any]:
        """Return `{id: vector}` from a file or a mapping."""
        if isinstance(source, Mapping):
            return source
        from groupgt.formats.vectors import table_of

        return table_of(self._path(source, option))

    def encoder(self, model: str) -> Callable[[list[str]], Any]:
        """Return a function that encodes texts as vectors with a sentence-transformers model."""
        from groupgt.formats.vectors import encoder_of

        if find_spec("sentence_transformers") is None:
            raise ConfigError("labeller model: a model needs sentence-transformers: pip install 'groupgt[dense]'")
        local = self.folder / model
        return encoder_of(str(local) if local.is_dir() else model)

    def function(self, target: Any) -> Callable[..., Any]:
        """Return a function passed directly or as `module:name`."""
        from groupgt.formats.modules import imported

        function: Any = target
        if not callable(target):
            if not self.allow_code:
                raise ConfigError(f"labeller target: {target} is custom code; allow it with --allow-code")
            function = imported(target, self.folder.resolve())
        if not callable(function):
            raise ConfigError(f"labeller target: expected a function, found {display(function)}")
        return cast("Callable[..., Any]", function)

    def verdicts(self, judge: str, *, vouched: bool) -> Verdicts:
        """Return a labeller's stored verdicts."""
        from groupgt.store.verdicts import Verdicts

        return Verdicts() if self.judged is None else self.judged.verdicts(judge, vouched=vouched)

    def _path(self, source: Any, option: str) -> Path:
        if not isinstance(source, (str, os.PathLike)):
            raise ConfigError(f"labeller {option}: expected a path or a mapping, found {display(source)}")
        return self.folder / source


def _is_absent(source: Any) -> bool:
    return source is None or (isinstance(source, str) and not source)


def _texts(mapping: Mapping[Any, Any], option: str, *, numbers: bool = False) -> dict[str, str]:
    """Convert a mapping to `{id: text}`; with `numbers`, integers are also accepted as texts."""
    texts: dict[str, str] = {}
    for key, value in mapping.items():
        name, text = id_text(key), id_text(value) if numbers else value
        if name is None or not isinstance(text, str):
            raise DataError(f"labeller {option}: expected {{id: text}}, found {display(key)}: {display(value)}")
        texts[name] = text
    return texts
