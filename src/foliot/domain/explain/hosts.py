"""Explain why a run that is bound to a host has not started there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from foliot.domain.explain.records import Explanation, QueuePosition, Recorded, Verdict, quote
from foliot.domain.hosts import HostContact, HostStatus
from foliot.domain.job import Job
from foliot.domain.run import Target, TargetKind

# Types that a host runs only if its start flag allows them.
ALLOWED_BY_FLAG = frozenset({"command", "python"})


@dataclass(frozen=True, slots=True)
class HostWait:
    """The target of a run, and the host that it resolves to now. Without a name no host matches."""

    target: Target
    host: str | None = None
    sighting: HostContact | None = None
    does_type: str | None = None  # the type of the job, if a live process of the host runs it
    under_way: int = 0
    most: int = 0


def away(job: Job, target: Target, host: tuple[str, HostContact] | None) -> str:
    if host is None:
        return f"there is no {target.words} now"
    name, sighting = host
    return f"host {name} has been offline since {quote(job, sighting.last_seen_at)}"


def explain_bound(
    job: Job,
    record: Recorded,
    bound: HostWait,
    kind: str = "",
    now: datetime | None = None,
    place: QueuePosition | None = None,
) -> Explanation:
    """Explain the wait. `now` is needed with a known host, to judge whether it is online."""
    waits = f"Run {record.number} waits for {bound.target.words}"
    if bound.host is None or bound.sighting is None:
        return Explanation(
            Verdict.WAITING, f"{waits}, and there is none of that name.", (), how_to_have(bound.target)
        )
    assert now is not None
    host = f"host {bound.host}"
    if bound.sighting.status(now) is not HostStatus.ONLINE:
        since = away(job, bound.target, (bound.host, bound.sighting))
        step = f"Start `foliot host` on {bound.host} again, or move the server to another host."
        return Explanation(Verdict.WAITING, f"{waits}: {since}.", (), step)
    if bound.does_type is None:
        return Explanation(
            Verdict.WAITING,
            f"{waits}: {host} is online, but runs no jobs of type {kind}.",
            (),
            how_to_do(kind),
        )
    if bound.under_way >= bound.most:
        busy = f"{bound.under_way} of {bound.most} under way"
        step = "It starts when one of them ends. To run more at once: `foliot hosts change`."
        return Explanation(Verdict.WAITING, f"{waits}: {host} has {busy}.", (), step, place)
    return Explanation(
        Verdict.WAITING,
        f"{waits} and is about to be fetched by {host}.",
        (),
        "Look again in a moment.",
        place,
    )


def how_to_do(kind: str) -> str:
    if kind in ALLOWED_BY_FLAG:
        return f"Start `foliot host` there with --allow-{kind}, or give the job another target."
    return (
        "Give the job no target, so that workers do it; or, where a package brings the type, install it on the host, and start"
        " `foliot host` there again."
    )


def how_to_have(target: Target) -> str:
    name = target.name
    if target.kind is TargetKind.HOST:
        return f"Start `foliot host --name {name}` on it, or give the job another target."
    return f"Start `foliot host --instance {name}` where it is, or give the job another target."
