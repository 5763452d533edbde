"""Is this the configuration that a handler of this type takes? A type that is not known here may be known to a worker elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from foliot.domain.errors import Invalid
from foliot.handlers.registry import described, refusal_of
from foliot.web.validation import field_problems


def check_config(kind: str, config: Mapping[str, Any]) -> list[Invalid]:
    """All that is wrong with it, with pointers under /config."""
    if (why := refusal_of(kind)) is not None:
        return [Invalid(why.message, pointer="/type", hint=why.hint)]
    known = described().get(kind)
    if known is None or known.config_shape is None:
        return []
    try:
        known.config_shape.model_validate(dict(config))
    except ValidationError as error:
        told = [{**each, "loc": ("body", "config", *each["loc"])} for each in error.errors(include_url=False)]
        return [
            Invalid(each["message"], pointer=each["pointer"], hint=each["hint"])
            for each in field_problems(told)
        ]
    return []
