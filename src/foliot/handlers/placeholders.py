"""`{{run.id}}` in an address, a header or a body: replaced by a fact of the run. Nothing is evaluated, and the list of names is closed."""

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
)
# Blanks around a name are taken off later: a pattern for them would try every way to divide them.
_PLACE = re.compile(r"\{\{([^{}]*)\}\}")


MOST_FILLED = 4 * 1024 * 1024  # characters that facts may add to one configuration


class FilledTextTooLarge(ValueError):
    """With every fact in its place, this would be larger than anybody means."""


def placeholder_values(assignment: Assignment) -> Values:
    ctx = assignment.ctx
    values = (
        ctx.run_id,
        ctx.attempt,
        ctx.fence,
        ctx.trigger,
        ctx.planned_for.isoformat(),
        dict(assignment.input),
        ctx.job_id,
        ctx.job,
        ctx.workspace_id,
    )
    return dict(zip(NAMES, values, strict=True))


def check_growth(value: Any, facts: Values) -> None:
    """Before anything is filled: the input, named ten thousand times, is more than a machine has memory. Raises TooMuch."""
    sizes: dict[str, int] = {}
    grown = 0
    for name in _names(value):
        if name in facts:
            grown += sizes.get(name) or sizes.setdefault(name, len(_as_text(facts[name])))
            if grown > MOST_FILLED:
                raise FilledTextTooLarge(
                    f"Filled in, the facts of this run would take more than {MOST_FILLED // 1024:,} KiB of its request or message. "
                    "Name them less often, or give the run a smaller input."
                )


def fill(value: Any, facts: Values) -> Any:
    """JSON with its texts filled. A text that is one placeholder and nothing else becomes the fact itself, with its type."""
    match value:
        case str():
            whole = _PLACE.fullmatch(value)
            name = whole[1].strip() if whole else ""
            return facts[name] if name in facts else fill_text(value, facts)
        case list():
            return [fill(each, facts) for each in value]
        case dict():
            return {name: fill(each, facts) for name, each in value.items()}
        case _:
            return value


def fill_text(text: str, facts: Values, written: Callable[[str], str] = str) -> str:
    """Names not on the list stay as they are: they were refused when the job was written, so this is the text of a secret."""

    def put(found: re.Match[str]) -> str:
        name = found[1].strip()
        return written(_as_text(facts[name])) if name in facts else found[0]

    return _PLACE.sub(put, text)


def check_names(value: Any) -> Any:
    """For shapes: refuses the first name that is not on the list."""
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
            yield from (each.strip() for each in _PLACE.findall(value))
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
