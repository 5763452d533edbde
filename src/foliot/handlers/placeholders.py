"""Fill in `{{run.id}}` and the like in addresses, headers and bodies. Nothing is evaluated; the list of names is fixed.

Why: docs/decisions/901-http-placeholders-and-signatures.md
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from foliot.handlers.registry import Assignment
from foliot.wire.shape import did_you_mean, refusal

Values = Mapping[str, Any]

NAMES = (
    "run.id",
    "run.attempt",
    "run.fence",
    "run.trigger",
    "run.planned_for",
    "run.input",
    "job.id",
    "job.name",
    "workspace.id",
    "workspace.slug",
    "run.number",
    "run.deadline",
    "run.triggered_by",
)
# Blanks around a name are stripped later: a pattern for them would backtrack.
_PLACEHOLDER = re.compile(r"\{\{([^{}]*)\}\}")


MOST_FILLED = 4 * 1024 * 1024  # characters that values may add to one configuration


class FilledTextTooLarge(ValueError):
    """Filled in, the configuration would be too large."""


def placeholder_values(assignment: Assignment) -> Values:
    ctx = assignment.ctx
    in_order = (
        ctx.run_id,
        ctx.attempt,
        ctx.fence,
        ctx.trigger,
        ctx.planned_for.isoformat(),
        dict(assignment.input),
        ctx.job_id,
        ctx.job,
        ctx.workspace_id,
        ctx.workspace,
        ctx.number,
        "" if ctx.deadline is None else ctx.deadline.isoformat(),
        ctx.triggered_by or "",
    )
    return dict(zip(NAMES, in_order, strict=True))


def needed_values(value: Any, assignment: Assignment) -> Values:
    """Return the values for a configuration: none if it names none, as most do. Raise FilledTextTooLarge."""
    if next(_names(value), None) is None:
        return {}
    values = placeholder_values(assignment)
    check_growth(value, values)
    return values


def check_growth(value: Any, values: Values) -> None:
    """Raise FilledTextTooLarge before anything is filled in: the input, named ten thousand times, would not fit into memory."""
    sizes: dict[str, int] = {}
    grown = 0
    for name in _names(value):
        if name in values:
            grown += sizes.get(name) or sizes.setdefault(name, len(_as_text(values[name])))
            if grown > MOST_FILLED:
                raise FilledTextTooLarge(
                    f"Filled in, the facts of this run would take more than {MOST_FILLED // 1024:,} KiB of its request or message. "
                    "Name them less often, or give the run a smaller input."
                )


def fill(value: Any, values: Values) -> Any:
    """Fill in the texts of a JSON value. A text that is one placeholder becomes the value itself, with its type."""
    match value:
        case str():
            whole = _PLACEHOLDER.fullmatch(value)
            name = whole[1].strip() if whole else ""
            return values[name] if name in values else fill_text(value, values)
        case list():
            return [fill(each, values) for each in value]
        case dict():
            return {name: fill(each, values) for name, each in value.items()}
        case _:
            return value


def fill_text(text: str, values: Values, written: Callable[[str], str] = str) -> str:
    """Fill in a text. Unknown names stay: they were refused when the job was written, so they come from the value of a secret."""
    if not values:
        return text

    def replace(found: re.Match[str]) -> str:
        name = found[1].strip()
        return written(_as_text(values[name])) if name in values else found[0]

    return _PLACEHOLDER.sub(replace, text)


def check_names(value: Any) -> Any:
    """Refuse the first unknown name; a pydantic validator."""
    name = next((name for name in _names(value) if name not in NAMES), None)
    if name is not None:
        known = f"Known names: {', '.join(NAMES)}. Braces that are to be sent belong in the payload."
        raise refusal(
            "placeholder", f'There is no "{name[:64]}" to fill in.', did_you_mean(name, NAMES) or known
        )
    return value


def _names(value: Any) -> Iterator[str]:
    match value:
        case str():
            if "{{" in value:
                yield from (each.strip() for each in _PLACEHOLDER.findall(value))
        case list():
            for each in value:
                yield from _names(each)
        case dict():
            for each in value.values():
                yield from _names(each)
        case _:
            return


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
