"""Is this the configuration that a handler of this type takes? A type that is not known here may be known to a worker elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from foliot.domain.errors import Invalid
from foliot.handlers.http_config import EGRESS_ALLOW
from foliot.handlers.registry import described, refusal_of
from foliot.web.validation import field_problems


def check_config(
    kind: str, config: Mapping[str, Any], egress_allow: Sequence[str] | None = None
) -> list[Invalid]:
    """All that is wrong with it, with pointers under /config. `egress_allow` is what may be reached beside the internet,
    where that is known here.
    """
    if (why := refusal_of(kind)) is not None:
        return [Invalid(why.message, pointer="/type", hint=why.hint)]
    known = described().get(kind)
    if known is None or known.config_shape is None:
        return []
    context = {} if egress_allow is None else {EGRESS_ALLOW: egress_allow}
    try:
        known.config_shape.model_validate(dict(config), context=context)
    except ValidationError as error:
        told = [{**each, "loc": ("body", "config", *each["loc"])} for each in error.errors(include_url=False)]
        return [
            Invalid(each["message"], pointer=each["pointer"], hint=each["hint"])
            for each in field_problems(told)
        ]
    return []
