"""One setting as a field of a model, and as a row of the table that environment names, flags and the reference come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field

from foliot.settings.declarations import FLAGS, PREFIX, flag_name
from foliot.settings.value_types import ValueType

ORIGINS = "origins"  # the field of a model that is not a setting


def setting(default: Any, about: str, *, unit: str | None = None, in_toml: bool = True) -> Any:
    return Field(default, description=about, json_schema_extra={"unit": unit, "in_toml": in_toml})


def flag(name: str, *, in_toml: bool = True) -> Any:
    """Return a setting that has a flag: the command line shares its default and description."""
    declared = FLAGS[name]
    return setting(declared.default, declared.about, unit=declared.unit, in_toml=in_toml)


def secret(about: str) -> Any:
    return Field(None, description=about, repr=False, json_schema_extra={"secret": True})


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the settings table."""

    name: str
    type: ValueType
    default: Any
    about: str
    unit: str | None
    secret: bool
    in_toml: bool

    @property
    def env(self) -> str:
        return PREFIX + self.name.upper()

    @property
    def flag(self) -> str | None:
        """Secrets have no flag: other users of a machine can read command lines."""
        return None if self.secret else flag_name(self.name)


def rows_of(model: type[BaseModel]) -> Mapping[str, Setting]:
    """Return the settings of a model by name."""
    return {name: _row(model, name) for name in model.model_fields if name != ORIGINS}


def _row(model: type[BaseModel], name: str) -> Setting:
    field = model.model_fields[name]
    (value_type,) = (each for each in field.metadata if isinstance(each, ValueType))
    extra: dict[str, Any] = dict(field.json_schema_extra or {})  # type: ignore[arg-type]  # always a dict here
    is_secret, in_toml = extra.get("secret", False), extra.get("in_toml", True)
    about = field.description or ""
    return Setting(name, value_type, field.default, about, extra.get("unit"), is_secret, in_toml)
