"""The texts of messages: plain text first, the first line answers whether to get up."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from foliot.domain.access import name_person
from foliot.domain.notifications.content import (
    ConsoleLink,
    DigestEntry,
    NoticeContent,
    NoticeKind,
    Occasion,
    Severity,
    Site,
    inert,
    inert_lines,
    local_time,
    span,
    title_of,
)
from foliot.domain.notifications.incidents import Incident
from foliot.domain.notifications.notice import NoticeEvent
from foliot.domain.run import RunError
from foliot.domain.schedule.describe.english import pluralize

SHOWN = 10  # jobs that a message about several names


def opened(on: Occasion) -> NoticeContent:
    """A subject is in trouble: what, since when, what happens next."""
    incident = on.incident
    assert incident is not None
    event = incident.event
    if event is NoticeEvent.RUN_FAILED:
        title, lines = f"{on.name} failed: {_short(incident.error)}", _failed_lines(on)
    elif event is NoticeEvent.MISSED:
        title, lines = f"{on.name} did not run", _missed_lines(on)
    elif event is NoticeEvent.NO_WORKER:
        title = f"no worker serves queue {on.name}"
        lines = [_reason(on) or "Runs wait and start by themselves when a worker returns."]
    elif event in _ABOUT_RUNS:
        title, lines = f"{on.name} {_ABOUT_RUNS[event]}", [_reason(on), *_next_lines(on)]
    else:
        title, lines = f"{on.name} is in trouble", [_reason(on)]
    return _content(on, event, NoticeKind.OPENED, Severity.BAD, title, lines)


_ABOUT_RUNS = {
    NoticeEvent.LATE: "has not started",
    NoticeEvent.SLOW: "takes longer than usual",
    NoticeEvent.STUCK: "is stuck",
}


def reminder(on: Occasion) -> NoticeContent:
    incident = on.incident
    assert incident is not None
    since = local_time(incident.opened_at, on.zone)
    by = (
        f"Acknowledged by {inert(incident.acknowledged_by)}."
        if incident.acknowledged_by
        else "Acknowledged by nobody."
    )
    counted = _counted(incident) or "Still in trouble"
    lines = [f"{counted} since {since}, open for {span(on.now - incident.opened_at)}. {by}", *_next_lines(on)]
    title = (
        f"{on.name} is still failing: {_short(incident.error)}"
        if incident.error
        else f"{on.name} is still in trouble"
    )
    return _content(on, incident.event, NoticeKind.REMINDER, Severity.BAD, title, lines)


def recovered(on: Occasion) -> NoticeContent:
    incident = on.incident
    assert incident is not None
    at = incident.closed_at or on.now
    counted = _counted(incident)
    down = f"down {span(at - incident.opened_at)}"
    kind = incident.subject.partition(":")[0]
    verb = {"job": "Succeeded", "queue": "Workers serve it again since"}.get(kind, "Over since")
    after = f" after {counted.lower()}, {down}." if counted else f", {down}."
    lines = [f"{verb} {local_time(at, on.zone)}{after}"]
    if incident.missed:
        lines.append(
            f"{pluralize(incident.missed, 'planned time')} did not run in between; a backfill can run them."
        )
    return _content(
        on, NoticeEvent.RECOVERED, NoticeKind.RECOVERED, Severity.GOOD, f"{on.name} recovered", lines
    )


_INFO = {
    NoticeEvent.JOB_PAUSED: ("was paused", Severity.NEUTRAL),
    NoticeEvent.JOB_AUTO_PAUSED: ("was stopped by Foliot", Severity.BAD),
    NoticeEvent.JOB_RESUMED: ("was resumed", Severity.GOOD),
    NoticeEvent.JOB_CHANGED: ("was changed", Severity.NEUTRAL),
    NoticeEvent.RUN_SUCCEEDED: ("succeeded", Severity.GOOD),
    NoticeEvent.RUN_SKIPPED: ("was skipped", Severity.NEUTRAL),
    NoticeEvent.CHANNEL_DISABLED: ("was disabled", Severity.BAD),
    NoticeEvent.EXPIRING: ("ends soon", Severity.BAD),
    NoticeEvent.ZONE_DATA_CHANGED: ("runs at another instant", Severity.NEUTRAL),
    NoticeEvent.BUDGET_WARNING: ("nears its budget", Severity.BAD),
    NoticeEvent.BUDGET_EXCEEDED: ("has used up its budget", Severity.BAD),
}


def info(on: Occasion) -> NoticeContent:
    """Return a message about a fact that opens no incident."""
    notice = on.notice
    assert notice is not None
    verb, severity = _INFO.get(notice.event, (notice.event.value.replace("_", " "), Severity.NEUTRAL))
    lines = []
    if ends_at := notice.facts.get("ends_at"):
        at = datetime.fromisoformat(str(ends_at))
        lines.append(f"Ends {local_time(at, on.zone)}, in {span(at - on.now)}.")
    elif by := notice.facts.get("by"):
        lines.append(f"By {inert(name_person(str(by)))}, {local_time(notice.at, on.zone)}.")
    else:
        lines.append(f"{local_time(notice.at, on.zone)}.")
    if reason := _reason(on):
        lines.append(reason)
    name = inert(str(notice.facts["name"])) if "name" in notice.facts else on.name
    return _content(on, notice.event, NoticeKind.INFO, severity, f"{name} {verb}", [*lines, *_next_lines(on)])


def several(first: Occasion, others: Sequence[Occasion], kind: NoticeKind) -> NoticeContent:
    """Return one message for incidents with the same error that opened, or ended, together."""
    every = (first, *others)
    names = [each.name for each in every]
    incidents = [each.incident for each in every if each.incident]
    runs = sum(each.failures for each in incidents)
    error = incidents[0].error if incidents else None
    shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else "")
    if kind is NoticeKind.RECOVERED:
        title, severity = f"{pluralize(len(names), 'job')} recovered", Severity.GOOD
        lines = [f"{shown} succeeded again."]
    else:
        title, severity = f"{pluralize(len(names), 'job')} failed: {_short(error)}", Severity.BAD
        lines = [f"Same error: {pluralize(runs, 'run')}, {pluralize(len(names), 'job')}.", shown]
    event = NoticeEvent.RECOVERED if kind is NoticeKind.RECOVERED else incidents[0].event
    content = _content(first, event, kind, severity, title, lines)
    return _without_job(content, first.site)


def digest(site: Site, entries: Sequence[DigestEntry], now: datetime) -> NoticeContent:
    """Return one message for everything beyond the single messages of a window."""
    groups: dict[tuple[NoticeKind, str], list[DigestEntry]] = {}
    for each in entries:
        groups.setdefault((each.kind, each.fingerprint), []).append(each)
    lines = [
        f"{pluralize(len(entries), 'further message')} since {local_time(min(e.at for e in entries), 'UTC')}, in one:"
    ]
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))
    for (kind, _), found in ordered[:SHOWN]:
        names = list(dict.fromkeys(inert(each.job_name or "") for each in found))
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
        runs = sum(each.failures for each in found)
        what = {
            NoticeKind.OPENED: "failed",
            NoticeKind.RECOVERED: "recovered",
            NoticeKind.REMINDER: "still failing",
        }.get(kind, "changed")
        why = f": {inert(found[0].error, 120)}" if found[0].error else ""
        counted = f", {pluralize(runs, 'run')}" if runs else ""
        lines.append(f"- {pluralize(len(names), 'job')}{counted} {what}{why} ({shown})")
    if len(ordered) > SHOWN:
        lines.append(f"- and {len(ordered) - SHOWN:,} further kinds of errors")
    failed = sum(1 for each in entries if each.kind is NoticeKind.OPENED)
    title = f"{failed:,} further jobs failed" if failed else f"{pluralize(len(entries), 'further message')}"
    return NoticeContent(
        NoticeEvent.RUN_FAILED if failed else NoticeEvent.RECOVERED,
        NoticeKind.DIGEST,
        Severity.BAD if failed else Severity.NEUTRAL,
        site.workspace,
        title_of(site, title),
        tuple(lines),
        now,
        links=site.link("Open the console", "jobs"),
    )


def trial(site: Site, channel: str, now: datetime) -> NoticeContent:
    """Return the message of `foliot notify test`."""
    return NoticeContent(
        NoticeEvent.RUN_FAILED,
        NoticeKind.TEST,
        Severity.NEUTRAL,
        site.workspace,
        title_of(site, f"test message to {channel}"),
        ("This is a test. Failures of your jobs arrive here like this.",),
        now,
    )


def _content(
    on: Occasion, event: NoticeEvent, kind: NoticeKind, severity: Severity, title: str, lines: Sequence[str]
) -> NoticeContent:
    incident, job, run = on.incident, on.job, on.run
    is_bad = severity is Severity.BAD
    error = incident.error if incident and is_bad else on.notice.error if on.notice and is_bad else None
    facts: list[tuple[str, str]] = []
    if job is not None:
        facts.append(("Job", inert(job.name)))
    if run is not None:
        facts.append(("Run", f"#{run.number}, planned for {local_time(run.planned_for, on.zone)}"))
    if job is not None and job.tags:
        facts.append(("Tags", inert(", ".join(job.tags))))
    if incident is not None and incident.note:
        facts.append(("Note", inert(incident.note, 500)))
    links: tuple[ConsoleLink, ...] = ()
    if run is not None:
        links += on.site.link("Open the run", f"runs/{run.id}")
    if job is not None:
        links += on.site.link("Open the job", f"jobs/{job.id}")
    return NoticeContent(
        event,
        kind,
        severity,
        on.site.workspace,
        title_of(on.site, title),
        tuple(inert(line, 500) for line in (*lines, *on.extra) if line),
        on.now,
        tuple(facts),
        f"{inert(error.code)}: {inert_lines(error.message)}" if error else None,
        links,
        None if job is None else job.id,
        None if job is None else inert(job.name),
        None if run is None else run.id,
        None if incident is None else incident.id,
    )


def _without_job(content: NoticeContent, site: Site) -> NoticeContent:
    """Drop the facts of the first job from a message about several."""
    return NoticeContent(
        content.event,
        content.kind,
        content.severity,
        content.workspace,
        content.title,
        content.lines,
        content.at,
        error=content.error,
        links=site.link("Open the console", "jobs"),
        incident_id=content.incident_id,
    )


def _failed_lines(on: Occasion) -> list[str]:
    run, job = on.run, on.job
    lines = []
    if run is not None and run.attempt_count > 1:
        took = f" ({span(run.finished_at - run.started_at)})" if run.started_at and run.finished_at else ""
        lines.append(f"Failed after {pluralize(run.attempt_count, 'attempt')}{took}.")
    else:
        lines.append("Failed, with no retry left.")
    if job is not None and job.last_success_at is not None:
        lines.append(f"Last success {local_time(job.last_success_at, on.zone)}.")
    elif job is not None:
        lines.append("It has never succeeded.")
    return [*lines, *_next_lines(on)]


def _missed_lines(on: Occasion) -> list[str]:
    planned = on.notice.facts.get("planned_for") if on.notice else None
    if planned is None:
        return [_reason(on) or "A planned time passed and no run was recorded.", *_next_lines(on)]
    at = datetime.fromisoformat(str(planned))
    late = span(on.now - at)
    return [
        f"The run planned for {local_time(at, on.zone)} was not started within {late}.",
        "No scheduler fires due jobs. Start one: what was missed then runs or is skipped, as the job's misfire rule says.",
    ]


def _next_lines(on: Occasion) -> list[str]:
    if on.job is None:
        return []
    owner = f" Owner {inert(on.job.owner)}." if on.job.owner else ""
    if on.job.next_at is None:
        return [f"No further run is planned.{owner}"]
    return [f"Next run {local_time(on.job.next_at, on.zone)}.{owner}"]


def _counted(incident: Incident) -> str:
    return pluralize(incident.failures, "failure") if incident.failures else ""


def _reason(on: Occasion) -> str:
    return inert(str(on.notice.facts.get("reason") or ""), 500) if on.notice else ""


def _short(error: RunError | None) -> str:
    if error is None:
        return "no error was reported"
    first = inert(error.message.strip().splitlines()[0] if error.message.strip() else "", 120)
    return first or inert(error.code)
