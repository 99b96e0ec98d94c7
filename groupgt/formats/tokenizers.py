"""Selects tokenizers by name. A tokenizer is a function that counts the tokens in texts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from groupgt.errors import ConfigError, display, listed
from groupgt.formats.modules import imported
from groupgt.options import Doc, options_from, options_of
from groupgt.plugins import Plugin, entry_points, find, ours, plugin_named

Count = Callable[[Sequence[str]], Sequence[int]]


def tokenizer_named(name: str, *, allow_code: bool = False, folder: Path | None = None) -> Count:
    """Return a tokenizer: `whitespace`, `tiktoken:ENCODING`, `tokenizers:FILE_OR_NAME`, or `python:module:function`.

    A Python function needs `allow_code`. The function's module, like a tokenizer file, may be in `folder`.
    """
    plugin, options = check_tokenizer(name, allow_code=allow_code)
    if missing := plugin.missing():
        raise ConfigError(f"tokenizer: {plugin.name} {missing}")
    count: Count = plugin.built(options, folder or Path())
    return count


def check_tokenizer(name: str, *, allow_code: bool = False) -> tuple[Plugin, Any]:
    """Return the named tokenizer and its option (the text after the colon), or raise `ConfigError`."""
    use, colon, argument = name.partition(":") if isinstance(name, str) else ("", "", "")
    names = [*forms(), *(entry_points("tokenizer") if use not in ours("tokenizer") else ())]
    if use not in (form.partition(":")[0] for form in names):
        raise ConfigError(f"tokenizer: expected {listed(names)}, found {display(name)}")
    plugin = plugin_named("tokenizer", use)
    option = next(iter(options_of(plugin.options)), None)
    if colon if option is None else not argument:
        raise ConfigError(f"tokenizer: expected {listed(names)}, found {display(name)}")
    if plugin.runs_code and not allow_code:
        raise ConfigError(f"tokenizer: {name} is your code, which runs only with --allow-code")
    return plugin, options_from(plugin.options, {} if option is None else {option: argument}, f"tokenizer {use}: ")


def forms() -> list[str]:
    """List the name patterns of built-in tokenizers, with each option in capitals."""
    options = {name: options_of(find("tokenizer", name).options).values() for name in ours("tokenizer")}
    written = {name: [option.written or option.name.upper() for option in each] for name, each in options.items()}
    return [":".join([name, *texts]) for name, texts in written.items()]


@dataclass(frozen=True)
class Encoding:
    """A tiktoken encoding."""

    encoding: Annotated[str, Doc("A tiktoken encoding, such as cl100k_base.")]


@dataclass(frozen=True)
class Vocabulary:
    """A tokenizer from the tokenizers library."""

    file_or_name: Annotated[str, Doc("A tokenizer.json, or the name of a model on the Hugging Face Hub.")]


@dataclass(frozen=True)
class Function:
    """A custom function."""

    function: Annotated[
        str, Doc("The function, as module:function. It takes a list of strings and returns a token count for each.")
    ] = field(metadata={"written": "module:function"})


def _whitespace(options: None, folder: Path) -> Count:
    return lambda texts: [len(text.split()) for text in texts]


def _tiktoken(options: Encoding, folder: Path) -> Count:
    import tiktoken

    name, names = options.encoding, tiktoken.list_encoding_names()
    if name not in names:
        raise ConfigError(f"tokenizer: tiktoken has no encoding {name!r}; choose {listed(names)}")
    try:
        encoding = tiktoken.get_encoding(name)
    except Exception as error:  # its vocabulary comes over the network, by whatever library is there
        raise ConfigError(f"tokenizer: tiktoken cannot load {name!r}: {error}") from None
    return lambda texts: [len(tokens) for tokens in encoding.encode_batch(list(texts), disallowed_special=())]


def _tokenizers(options: Vocabulary, folder: Path) -> Count:
    from tokenizers import Tokenizer

    name = options.file_or_name
    path = folder / name
    if name.endswith(".json") and not path.is_file():
        raise ConfigError(f"tokenizer: {path}: file not found")
    try:
        loaded: Any = Tokenizer.from_file(str(path)) if path.is_file() else Tokenizer.from_pretrained(name)
    except Exception as error:  # the library raises plain exceptions, for files and for the network
        raise ConfigError(f"tokenizer: the tokenizers library cannot load {name!r}: {error}") from None
    # A file may specify that every text is padded or truncated to one length.
    loaded.no_padding()
    loaded.no_truncation()
    return lambda texts: [len(tokens.ids) for tokens in loaded.encode_batch(list(texts), add_special_tokens=False)]


def _python(options: Function, folder: Path) -> Count:
    name = options.function
    before = sys.path[:]
    try:
        count: Count = imported(name, folder.resolve())
    except ConfigError as error:
        what = str(error).removeprefix("target: ")
        raise ConfigError(f"tokenizer: expected python:module:function, found {name!r}: {what}") from None
    finally:
        sys.path[:] = before
    if not callable(count):
        raise ConfigError(f"tokenizer: expected python:module:function, found {name!r}, which is not a function")
    return count


WHITESPACE = Plugin(None, _whitespace, summary="Whitespace-separated tokens.")
TIKTOKEN = Plugin(Encoding, _tiktoken, summary="A tiktoken encoding.", modules={"tiktoken": "tokens"})
_VOCABULARY = "A tokenizer from the tokenizers library, loaded from a file or by name."
TOKENIZERS = Plugin(Vocabulary, _tokenizers, summary=_VOCABULARY, modules={"tokenizers": "tokens"})
PYTHON = Plugin(Function, _python, summary="A custom Python function.", runs_code=True)
