"""What is done with undefined, missing and doubtful data: one value, printed under every table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args, get_type_hints

from groupgt.errors import ConfigError, Faults, display, listed, near_names
from groupgt.model.validity import GRADE_LIMIT, finite_number, number_of, plain


@dataclass(frozen=True)
class Policy:
    """How doubtful data is handled; most fields have a few choices.

    `empty_groups`: an empty group beside others, or a blank id, is an error or is dropped; or a group without a
    relevant alternative counts as one that cannot be met (`unmeetable`), where groups are declared as groups.
    `flat_gt`: what a flat `["a", "b"]` means: an error, one group an id (`and`), or one group (`or`).
    `missing`: a judged query without results scores 0, is skipped, or is an error.
    `extra`: results of a query without ground truth are ignored, or are an error.
    `duplicates`: a repeated id keeps its place and hits nothing (`penalize`), is removed and the gap closed (`drop`),
    is an error, or hits again as in AutoRAG's arithmetic (`keep`, convention `autorag` only).
    `ties`: equal scores go by descending byte order of the id, as in trec_eval, or by the order given (`input`).
    `undefined`: a query whose judged documents are all irrelevant is left out of means (`skip`), or scores 0, as in
    trec_eval.
    `level`: documents are relevant from this grade on, as with trec_eval's -l; None for any grade above 0.
    `importance`: only groups of these importances are asked for, such as `["vital"]`; none for all.

    >>> Policy.of({"missing": "skip", "level": 2}).changes
    'missing=skip, level=2'
    """

    empty_groups: Literal["error", "drop", "unmeetable"] = "error"
    flat_gt: Literal["error", "and", "or"] = "error"
    missing: Literal["zero", "skip", "error"] = "zero"
    extra: Literal["ignore", "error"] = "ignore"
    duplicates: Literal["penalize", "drop", "error", "keep"] = "penalize"
    ties: Literal["id", "input"] = "id"
    undefined: Literal["skip", "zero"] = "skip"
    level: float | None = None
    importance: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        faults = Faults()
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                near = near_names(str(value), choices)
                faults.add(f"policy {name}", f"expected {listed(choices)}, found {value!r}{near}")
        object.__setattr__(self, "level", _level(self.level, faults))
        object.__setattr__(self, "importance", _importance(self.importance, faults))
        faults.stop(ConfigError)

    @classmethod
    def of(cls, value: Policy | str | Sequence[str] | Mapping[str, Any] | None) -> Policy:
        """Reads a policy, one as `--policy` takes it, a mapping of fields, or None for the default.

        A text, or several, names a preset (`autorag`, `trec`), fields, or both; a mapping may name a preset as well.

        >>> Policy.of("trec,missing=zero") == Policy.of(["trec", "missing=zero"])
        True
        >>> Policy.of("trec,missing=zero") == Policy.of({"preset": "trec", "missing": "zero"})
        True
        """
        if value is None:
            return cls()
        if isinstance(value, Policy):
            return value
        texts = [value] if isinstance(value, str) else value
        if isinstance(texts, (list, tuple)) and all(isinstance(text, str) for text in texts):
            value = _fields_of(texts)
        if not isinstance(value, Mapping):
            raise ConfigError(f"policy: expected the name of a preset, or fields by name, found {display(value)}")
        options = {str(key): choice for key, choice in value.items()}
        preset = options.pop("preset", "default")
        if not isinstance(preset, str) or preset not in PRESETS:
            raise ConfigError(f"policy: expected {listed(PRESETS)}, found {preset!r}{near_names(str(preset), PRESETS)}")
        names = [field.name for field in fields(cls)]
        faults = Faults()
        for name in options:
            if name not in names:
                faults.add(
                    "policy", f"unknown field {name!r}; known fields: {', '.join(names)}{near_names(name, names)}"
                )
        faults.stop(ConfigError)
        return replace(PRESETS[preset], **options)

    @property
    def changes(self) -> str:
        """What differs from the default.

        >>> Policy(missing="skip").changes
        'missing=skip'
        """
        usual = PRESETS["default"].as_texts
        return ", ".join(f"{name}={text}" for name, text in self.as_texts.items() if text != usual.get(name))

    @property
    def as_texts(self) -> dict[str, str]:
        """Each field as `--policy` takes it; without `level` and `importance` where they ask for nothing."""
        texts = {name: str(getattr(self, name)) for name in CHOICES}
        if self.level is not None:
            texts["level"] = f"{self.level:g}" if float(f"{self.level:g}") == self.level else repr(self.level)
        if self.importance:
            texts["importance"] = "+".join(self.importance)
        return texts

    def __str__(self) -> str:
        return ", ".join(f"{name}={text}" for name, text in self.as_texts.items())


def _fields_of(texts: Sequence[str]) -> dict[str, str]:
    """The fields of a policy that stand in texts, between commas; what has no name is a preset."""
    chosen = {}
    for text in (part.strip() for each in texts for part in each.split(",")):
        name, equals, value = text.partition("=")
        chosen[name.strip() if equals else "preset"] = value.strip() if equals else text
    return chosen


def _level(value: Any, faults: Faults) -> float | None:
    """A level as a number, read from text where it is one."""
    if value is None:
        return None
    number = number_of(value) if isinstance(value, str) else finite_number(value)
    if number is None or not 0 < number <= GRADE_LIMIT:
        faults.add("policy level", f"expected a grade above 0, up to 2^31, found {display(value)}")
        return None
    return number


def _importance(value: Any, faults: Faults) -> tuple[str, ...]:
    """The importances of a list, or of a text that joins them by +."""
    names = value.split("+") if isinstance(value, str) else plain(value)
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) and name.strip() for name in names):
        faults.add("policy importance", f"expected a list of importances, such as [vital], found {display(value)}")
        return ()
    return tuple(dict.fromkeys(name.strip() for name in names))


# The choices of each field that has some.
CHOICES: dict[str, tuple[str, ...]] = {
    name: get_args(choices) for name, choices in get_type_hints(Policy).items() if name not in ("level", "importance")
}

PRESETS: dict[str, Policy] = {
    "default": Policy(),
    "autorag": Policy(missing="skip", duplicates="keep", ties="input"),
    "trec": Policy(missing="skip", duplicates="error", ties="id", undefined="zero"),
}
