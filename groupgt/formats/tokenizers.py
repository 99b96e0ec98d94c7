"""Tokenizers by name: what counts the tokens of texts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from groupgt.errors import ConfigError, listed
from groupgt.formats.modules import imported

Count = Callable[[Sequence[str]], Sequence[int]]
FORMS = ("whitespace", "tiktoken:ENCODING", "tokenizers:FILE_OR_NAME", "python:module:function")
HINT = "pip install 'groupgt[tokens]'"


def tokenizer_named(name: str, *, allow_code: bool = False, folder: Path | None = None) -> Count:
    """What counts tokens: `whitespace`, `tiktoken:ENCODING`, `tokenizers:FILE_OR_NAME`, or `python:module:function`.

    A function takes a list of texts and returns a count for each; it is code of the user's and needs `allow_code`, and
    its module may lie in `folder`, from which a tokenizer's file is looked for as well. Raises `ConfigError`.

    >>> tokenizer_named("whitespace")(["to be or", ""])
    [3, 0]
    """
    check_tokenizer(name, allow_code=allow_code)
    kind, _, rest = name.partition(":")
    return TOKENIZERS[kind](rest, folder or Path())


def check_tokenizer(name: str, *, allow_code: bool = False) -> None:
    """Raises `ConfigError` for a name that is none, and for code that is not allowed."""
    kind, _, rest = name.partition(":") if isinstance(name, str) else ("", "", "")
    if kind not in TOKENIZERS or (":" in name if kind == "whitespace" else not rest):
        raise ConfigError(f"tokenizer: expected {listed(FORMS)}, found {name!r}")
    if kind == "python" and not allow_code:
        raise ConfigError(f"tokenizer: {name} is code of yours, which runs only with --allow-code")


def _whitespace(rest: str, folder: Path) -> Count:
    return lambda texts: [len(text.split()) for text in texts]


def _tiktoken(rest: str, folder: Path) -> Count:
    try:
        import tiktoken
    except ImportError:
        raise ConfigError(f"tokenizer: tiktoken is not installed: {HINT}") from None
    names = tiktoken.list_encoding_names()
    if rest not in names:
        raise ConfigError(f"tokenizer: tiktoken has no encoding {rest!r}; it has {listed(names)}")
    try:
        encoding = tiktoken.get_encoding(rest)
    except Exception as error:  # its vocabulary comes over the network, by whatever library is there
        raise ConfigError(f"tokenizer: tiktoken cannot load {rest!r}: {error}") from None
    return lambda texts: [len(each) for each in encoding.encode_batch(list(texts), disallowed_special=())]


def _tokenizers(rest: str, folder: Path) -> Count:
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise ConfigError(f"tokenizer: tokenizers is not installed: {HINT}") from None
    path = folder / rest
    if rest.endswith(".json") and not path.is_file():
        raise ConfigError(f"tokenizer: {path}: there is no such file")
    try:
        loaded: Any = Tokenizer.from_file(str(path)) if path.is_file() else Tokenizer.from_pretrained(rest)
    except Exception as error:  # the library raises plain exceptions, for files and for the network
        raise ConfigError(f"tokenizer: tokenizers cannot load {rest!r}: {error}") from None
    # A file may ask to fill or cut every text to one length.
    loaded.no_padding()
    loaded.no_truncation()
    return lambda texts: [len(each.ids) for each in loaded.encode_batch(list(texts), add_special_tokens=False)]


def _python(rest: str, folder: Path) -> Count:
    before = sys.path[:]
    try:
        count: Count = imported(rest, folder.resolve())
    except ConfigError as error:
        what = str(error).removeprefix("target: ")
        raise ConfigError(f"tokenizer: expected python:module:function, found {rest!r}: {what}") from None
    finally:
        sys.path[:] = before
    if not callable(count):
        raise ConfigError(f"tokenizer: expected python:module:function, found {rest!r}, which is no function")
    return count


TOKENIZERS: dict[str, Callable[[str, Path], Count]] = {
    "whitespace": _whitespace,
    "tiktoken": _tiktoken,
    "tokenizers": _tokenizers,
    "python": _python,
}
