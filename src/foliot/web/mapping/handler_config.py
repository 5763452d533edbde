"""Checks the config of a job against its handler type. A type that is unknown here may be known to a remote worker.

Why: docs/decisions/307-job-type-schemas.md
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import jsonschema_rs
from pydantic import ValidationError

from foliot.domain import schemas
from foliot.domain.errors import Invalid
from foliot.handlers.bridge_handlers import BRIDGE_POLICY
from foliot.handlers.dependencies import EgressPolicy
from foliot.handlers.http import EGRESS_ALLOW
from foliot.handlers.registry import describe_types, type_refusal
from foliot.services.jobs.jobs import JobDraft
from foliot.web.errors import field_problems
from foliot.wire.shape import pointer

MOST_ERRORS = 20
# Characters of a config times parts of a schema: the validator may compare each with each, and it blocks the event loop.
# Above the first limit the worker validates. Above the second only the first error is sought: the validator collects all errors first.
MOST_COMPARED, MOST_GATHERED = 20_000_000, 50_000
_LINEAR = jsonschema_rs.RegexOptions(
    size_limit=1 << 20
)  # patterns come from remote workers: they must run in linear time


def check_config(
    kind: str,
    config: Mapping[str, Any],
    schema: Mapping[str, Any] | None = None,
    reach: EgressPolicy | None = None,
    workspace: str = "",
) -> list[Invalid]:
    """Return all errors of the config, with pointers under /config. `schema` comes from a worker, for a type that this server
    does not have; `reach` lists the addresses that jobs of this workspace may use, if this server knows them.
    """
    if (why := type_refusal(kind)) is not None:
        return [Invalid(why.message, pointer="/type", hint=why.hint)]
    known = describe_types().get(kind)
    if known is None:
        return [] if schema is None else _misfits(config, schema)
    if known.config_shape is None:
        return []
    context: dict[str, Any] = {}
    if reach is not None:
        context = {EGRESS_ALLOW: reach.egress_allow, BRIDGE_POLICY: (reach.bridge_policy, workspace)}
    try:
        known.config_shape.model_validate(dict(config), context=context)
    except ValidationError as error:
        errors = [
            {**each, "loc": ("body", "config", *each["loc"])} for each in error.errors(include_url=False)
        ]
        return [
            Invalid(each["message"], pointer=each["pointer"], hint=each["hint"])
            for each in field_problems(errors)
        ]
    return []


async def config_schema(draft: JobDraft, kind: str) -> Mapping[str, Any] | None:
    """Return the schema that a worker has described for this type; None when this server has the type itself."""
    return None if kind in describe_types() else await draft.config_schema(kind)


def _misfits(config: Mapping[str, Any], schema: Mapping[str, Any]) -> list[Invalid]:
    """Return the errors of a config. A secret may replace any value and is resolved only when the job runs."""
    try:
        compared = schemas.weight_of(schema) * len(json.dumps(config))
        if compared > MOST_COMPARED:
            return []
        validator = jsonschema_rs.validator_for(dict(schema), offline=True, pattern_options=_LINEAR)
    except (schemas.SchemaTooLarge, ValueError, jsonschema_rs.ReferencingError):
        return []  # an invalid schema: the worker checks the config itself
    errors = validator.iter_errors(dict(config)) if compared <= MOST_GATHERED else _first(validator, config)
    found: list[Invalid] = []
    for error in errors:
        if len(found) == MOST_ERRORS:
            break
        if not _is_secret(_at(config, error.instance_path)):
            place = pointer(("config", *error.instance_path))
            found.append(
                Invalid(f"{error.message[:300]}.", pointer=place, hint="GET /job-types shows what it takes.")
            )
    return found


def _first(validator: Any, config: Mapping[str, Any]) -> Iterator[jsonschema_rs.ValidationError]:
    try:
        validator.validate(dict(config))
    except jsonschema_rs.ValidationError as error:
        yield error


def _at(config: Any, path: Sequence[str | int]) -> Any:
    """Return the value at a path. Digit-only names come back as numbers."""
    return reduce(lambda value, part: value[str(part) if isinstance(value, dict) else part], path, config)


def _is_secret(value: Any) -> bool:
    return isinstance(value, dict) and list(value) == ["secret"]
