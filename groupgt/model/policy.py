"""What is done with undefined, missing and doubtful data: one value, printed under every table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args, get_type_hints

from groupgt.errors import ConfigError, Faults, display, listed, near_names


@dataclass(frozen=True)
class Policy:
    """How doubtful data is handled; every field has a few choices.

    `empty_groups`: an empty group beside others, or a blank id, is an error or is dropped.
    `flat_gt`: what a flat `["a", "b"]` means: an error, one group an id (`and`), or one group (`or`).
    `missing`: a judged query without results scores 0, is skipped, or is an error.
    `extra`: results of a query without ground truth are ignored, or are an error.
    `duplicates`: a repeated id keeps its place and hits nothing (`penalize`), is removed and the gap closed (`drop`),
    is an error, or hits again as in AutoRAG's arithmetic (`keep`, convention `autorag` only).
    `ties`: equal scores go by descending byte order of the id, as in trec_eval, or by the order given (`input`).

    >>> Policy.of({"missing": "skip"})
    Policy(empty_groups='error', flat_gt='error', missing='skip', extra='ignore', duplicates='penalize', ties='id')
    """

    empty_groups: Literal["error", "drop"] = "error"
    flat_gt: Literal["error", "and", "or"] = "error"
    missing: Literal["zero", "skip", "error"] = "zero"
    extra: Literal["ignore", "error"] = "ignore"
    duplicates: Literal["penalize", "drop", "error", "keep"] = "penalize"
    ties: Literal["id", "input"] = "id"

    def __post_init__(self) -> None:
        faults = Faults()
        for name, value in asdict(self).items():
            if value not in CHOICES[name]:
                near = near_names(str(value), CHOICES[name])
                faults.add(f"policy {name}", f"expected {listed(CHOICES[name])}, found {value!r}{near}")
        faults.stop(ConfigError)

    @classmethod
    def of(cls, value: Policy | str | Mapping[str, Any] | None) -> Policy:
        """Reads a policy, the name of a preset (`autorag`, `trec`), a mapping of fields, or None for the default.

        A mapping may name a preset to start from: `{"preset": "trec", "missing": "zero"}`.
        """
        if value is None:
            return cls()
        if isinstance(value, Policy):
            return value
        if isinstance(value, str):
            value = {"preset": value}
        if not isinstance(value, Mapping):
            raise ConfigError(f"policy: expected the name of a preset, or fields by name, found {display(value)}")
        options = {str(key): choice for key, choice in value.items()}
        preset = options.pop("preset", "default")
        if not isinstance(preset, str) or preset not in PRESETS:
            raise ConfigError(f"policy: expected {listed(PRESETS)}, found {preset!r}{near_names(str(preset), PRESETS)}")
        known = [field.name for field in fields(cls)]
        faults = Faults()
        for name in options:
            if name not in known:
                faults.add(
                    "policy", f"unknown field {name!r}; known fields: {', '.join(known)}{near_names(name, known)}"
                )
        faults.stop(ConfigError)
        return replace(PRESETS[preset], **options)

    @property
    def changes(self) -> str:
        """What differs from the default.

        >>> Policy(missing="skip").changes
        'missing=skip'
        """
        usual = asdict(PRESETS["default"])
        return ", ".join(f"{name}={value}" for name, value in asdict(self).items() if value != usual[name])

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in asdict(self).items())


# The choices of each field.
CHOICES: dict[str, tuple[str, ...]] = {name: get_args(choices) for name, choices in get_type_hints(Policy).items()}

PRESETS: dict[str, Policy] = {
    "default": Policy(),
    "autorag": Policy(missing="skip", duplicates="keep", ties="input"),
    "trec": Policy(missing="skip", duplicates="error", ties="id"),
}
