"""Allow jobs some queues and task names of another queue engine, by patterns that the operator configures.

In a pattern, `*` matches anything but a dot, `**` matches anything, and `{workspace}`, or `{orgId}`, is the slug of the workspace. The dot is a
separator: `shop.tasks.*` does not match names in a module that `shop.tasks` imports.

Why: docs/decisions/906-bridge-policy.md
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

EVERYTHING = ("**",)
DEFAULT_QUEUE = "jobs-{workspace}"
DEFAULT_QUEUES = (DEFAULT_QUEUE, "jobs:{workspace}")
SLUG_NAMES = ("{workspace}", "{orgId}")
DEFAULT_PREFIX = "bull"  # of BullMQ's keys
_PART = re.compile(r"\*\*|\*|\{workspace\}|\{orgId\}")


class HandOverRefusal(NamedTuple):
    """Why the hand-over is refused, and what to do; `field` is the field of the configuration."""

    field: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class BridgePolicy:
    queues: tuple[str, ...] = DEFAULT_QUEUES
    tasks: tuple[str, ...] = ()

    def refusal(self, config: Mapping[str, Any], slug: str) -> HandOverRefusal | None:
        """Return why a whole configuration, as it is about to be handed over, is refused."""
        queue = str(config.get("queue") or DEFAULT_QUEUE)
        prefix = str(config.get("prefix") or DEFAULT_PREFIX)
        for field in ("task", "function", "name"):
            if field in config and (found := self.refusal_of_task(field, str(config[field]))) is not None:
                return found
        return self.refusal_of_queue(queue, slug, prefix)

    def refusal_of_task(self, field: str, name: str) -> HandOverRefusal | None:
        if _is_among(name, self.tasks, None):
            return None
        known = f"Allowed are {', '.join(self.tasks)}." if self.tasks else "None are allowed yet."
        return HandOverRefusal(
            field,
            f"Jobs may not hand over {_shown(name)} here.",
            f"{known} The operator names more in FOLIOT_BRIDGE_TASKS, for the server and its workers.",
        )

    def refusal_of_queue(self, queue: str, slug: str, prefix: str = DEFAULT_PREFIX) -> HandOverRefusal | None:
        """A prefix other than BullMQ's own is a part of the name."""
        name = queue_name(queue, slug)
        whole = name if prefix == DEFAULT_PREFIX else f"{prefix}:{name}"
        if _is_among(whole, self.queues, slug):
            return None
        known = ", ".join(queue_name(each, slug) for each in self.queues) or "none"
        return HandOverRefusal(
            "queue",
            f"Jobs of this workspace may not use the queue {_shown(whole)}.",
            f"Allowed are {known}. The operator names more in FOLIOT_BRIDGE_QUEUES, for the server and its workers.",
        )


def queue_name(queue: str, slug: str) -> str:
    for each in SLUG_NAMES:
        queue = queue.replace(each, slug)
    return queue


def _is_among(name: str, patterns: Iterable[str], slug: str | None) -> bool:
    return any(_compiled(each, slug).fullmatch(name) for each in patterns)


@lru_cache(maxsize=4_096)
def _compiled(pattern: str, slug: str | None) -> re.Pattern[str]:
    meanings = {"*": "[^.]*", "**": ".*"}
    if slug is not None:
        meanings |= dict.fromkeys(SLUG_NAMES, re.escape(slug))
    plain, special = _PART.split(pattern), _PART.findall(pattern)
    written = [re.escape(plain[0])]
    for between, after in zip(special, plain[1:], strict=True):
        written += [meanings.get(between, re.escape(between)), re.escape(after)]
    return re.compile("".join(written), re.DOTALL)


def _shown(name: str) -> str:
    return f'"{name}"' if len(name) <= 100 else f'"{name[:97]}..."'
