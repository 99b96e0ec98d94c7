"""The schema of experiment files: what each key may hold. Short forms are widened, so that no key has two types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Annotated, Any, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model

__all__ = ["OUTPUTS", "Config", "Dataset", "SystemConfig", "known_keys", "model_of"]

OUTPUTS = ("table", "json", "csv", "runs")


def _listed(value: Any) -> Any:
    """A short form: one value where a list is meant."""
    return value if isinstance(value, list) or value is None else [value]


def _used(value: Any) -> Any:
    """A short form: a name where `{use: name}` is meant."""
    return {"use": value} if isinstance(value, str) else value


def _preset(value: Any) -> Any:
    """A short form: a name where `{preset: name}` is meant."""
    return {"preset": value} if isinstance(value, str) else value


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


Texts = Annotated[list[str], BeforeValidator(_listed)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.+-]*$", max_length=100)]
Positive = Annotated[int, Field(ge=1, le=10**15)]


class Dataset(_Strict):
    """One data set: questions with grouped ground truth, and the corpus that retrievers search."""

    ground_truth: str
    corpus: str | None = None
    format: str | None = None
    where: dict[str, Annotated[list[str | int | float | bool], BeforeValidator(_listed)]] = {}


class SystemConfig(_Strict):
    """One system: what it uses, with which options, on which data sets."""

    use: str
    with_: dict[str, Any] = Field(default={}, alias="with")
    only: Texts = []


class Use(_Strict):
    """A part chosen by name, with options."""

    use: str
    with_: dict[str, Any] = Field(default={}, alias="with")


class Evaluate(_Strict):
    """What is measured."""

    depth: Positive = 100
    k: Annotated[list[Positive], BeforeValidator(_listed)] = []
    metrics: Annotated[list[str], BeforeValidator(_listed), Field(min_length=1)]
    primary: str | None = None
    by: Texts = []
    labeller: Annotated[Use, BeforeValidator(_used)] = Use(use="id")
    policy: Annotated[dict[str, str], BeforeValidator(_preset)] = {}


class Output(_Strict):
    """Where results go, and as what."""

    folder: str = "results"
    formats: Texts = ["table", "json", "csv"]


class Config(_Strict):
    """An experiment file."""

    version: int
    groupgt: str | None = None
    name: Name
    seed: int = 0
    convention: str = "autorag"
    datasets: Annotated[dict[Name, Dataset], Field(min_length=1)]
    systems: Annotated[dict[Name, Annotated[SystemConfig, BeforeValidator(_used)]], Field(min_length=1)]
    evaluate: Evaluate
    output: Output = Output()


def known_keys(path: tuple[str | int, ...]) -> list[str]:
    """The keys of the model at a path."""
    model: Any = Config
    for part in path:
        field = next((f for n, f in model.model_fields.items() if (f.alias or n) == part), None) if model else None
        if field is not None:
            models = [each for each in _models_in(field.annotation) if each is not None]
            model = models[0] if models else model
        # The name of a dataset or a system leaves the model of its values.
    return [field.alias or name for name, field in model.model_fields.items()]


def _models_in(annotation: Any) -> Iterator[Any]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _models_in(argument)


def model_of(kind: type[Any]) -> type[BaseModel]:
    """A strict model with the fields of a dataclass."""
    hints = get_type_hints(kind)
    wanted: dict[str, Any] = {
        field.name: (hints[field.name], ... if field.default is MISSING else field.default) for field in fields(kind)
    }
    return create_model(kind.__name__, __base__=_Strict, **wanted)
