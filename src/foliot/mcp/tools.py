"""The tools. Each calls the client once or twice, with the rights of its caller, and answers with a sentence and data.

Tools for workspaces, members, keys, webhooks and freezes of everything do not exist: an agent manages jobs, not the installation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import wraps
from typing import Annotated, Any, Literal, ParamSpec, TypeVar
from uuid import UUID

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult
from pydantic import Field

from foliot.mcp.answers import (
    AgendaAnswer,
    AgendaLineBrief,
    Answer,
    AttemptBrief,
    ExplainAnswer,
    JobAnswer,
    JobBrief,
    JobDetail,
    JobList,
    LogAnswer,
    MessageBrief,
    MessagesAnswer,
    NextTime,
    PreviewAnswer,
    RunAnswer,
    RunBrief,
    RunDetail,
    RunList,
    StatisticsAnswer,
    Undo,
    counted,
    definition_of,
    joined,
    result,
)
from foliot.sdk import AsyncClient, FoliotApiError
from foliot.wire.dry_run import DryRunOut, RunDryRunOut
from foliot.wire.instants import read_id
from foliot.wire.jobs import JobOut
from foliot.wire.rooms import RoomOut
from foliot.wire.runs import RunOut
from foliot.wire.schedules import PlannedOut

P = ParamSpec("P")
A = TypeVar("A", bound=Answer)
Connect = Callable[[Context], AbstractAsyncContextManager[AsyncClient]]
LARGEST_PAGE = 20
MOST_LINES = 200
LONGEST_NAME = 60
SHOWN = 3  # next times after a write

JobRef = Annotated[str, Field(min_length=1, max_length=300, description="Name or id of the job.")]
RunRef = Annotated[str, Field(min_length=1, max_length=60, description="Id of the run.")]
Query = Annotated[
    str | None,
    Field(max_length=1_000, description='Filter, such as "status:failed tag:billing" or "name:report".'),
]
Limit = Annotated[int, Field(ge=1, le=LARGEST_PAGE)]
Cursor = Annotated[str | None, Field(description="`next_cursor` of the page before.")]
When = Annotated[
    str,
    Field(
        min_length=1,
        max_length=256,
        description='Words or cron: "every 10 minutes", "every weekday at 9am", "in 2 hours", "0 9 * * 1-5".',
    ),
]
TimeZone = Annotated[
    str | None,
    Field(max_length=64, description="IANA name such as America/Bogota. Default: the workspace's."),
]
Key = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=200,
        description="Your own key for this request: a repeat with the same key changes nothing and answers the same.",
    ),
]
DryRun = Annotated[bool, Field(description="Only show what would happen.")]
Reason = Annotated[str, Field(min_length=1, max_length=1_000, description="Why; people will read it.")]


def tool(
    answer: type[A],
) -> Callable[[Callable[P, Awaitable[A]]], Callable[P, Awaitable[CallToolResult]]]:
    """Turn a method that returns an answer into a tool, with the answer's schema; errors of the API become tool errors."""

    def wrap(do: Callable[P, Awaitable[A]]) -> Callable[P, Awaitable[CallToolResult]]:
        @wraps(do)
        async def call(*args: P.args, **kwargs: P.kwargs) -> CallToolResult:
            try:
                return result(await do(*args, **kwargs))
            except FoliotApiError as error:
                raise ToolError(f"{error} [{error.code}]") from error

        call.__annotations__ = {**do.__annotations__, "return": Annotated[CallToolResult, answer]}
        return call

    return wrap


class Tools:
    """`connect` opens a client with the key of the caller."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect

    # Reading

    @tool(JobList)
    async def list_jobs(
        self, ctx: Context, q: Query = None, limit: Limit = 10, cursor: Cursor = None
    ) -> JobList:
        """List jobs, newest first. An agent sees only its own."""
        async with self._connect(ctx) as client:
            page = await client.jobs.list(q=q, limit=limit, cursor=cursor)
        jobs = [JobBrief.of(each) for each in page.items]
        more = ", and there are more" if page.next_cursor else ""
        found = f"{counted(len(jobs), 'job')}: {joined(each.name for each in jobs)}{more}."
        return JobList(
            sentence=found if jobs else "There is no such job.", jobs=jobs, next_cursor=page.next_cursor
        )

    @tool(JobDetail)
    async def get_job(self, ctx: Context, job: JobRef) -> JobDetail:
        """Read one job: its whole definition, next times and the state of its last run."""
        async with self._connect(ctx) as client:
            found = await _find_job(client, job)
            times = await client.jobs.next(found.id, 5)
        return JobDetail(
            sentence=_describe(found),
            job=JobBrief.of(found),
            next_times=_next_times(times.items, 5),
            definition=definition_of(found),
            untrusted_last_error=found.last_error,
        )

    @tool(RunList)
    async def list_runs(
        self,
        ctx: Context,
        job: Annotated[str | None, Field(max_length=300, description="Only of this job: name or id.")] = None,
        q: Query = None,
        limit: Limit = 10,
        cursor: Cursor = None,
    ) -> RunList:
        """List the records of planned times and manual runs, newest first: what ran, failed, waits or was skipped."""
        async with self._connect(ctx) as client:
            of = None if job is None else (await _find_job(client, job)).id
            page = await client.runs.list(q=q, job=of, limit=limit, cursor=cursor)
        runs = [RunBrief.of(each) for each in page.items]
        statuses = joined(f"{each.job}#{each.number} {each.status}" for each in runs)
        return RunList(
            sentence=f"{counted(len(runs), 'record')}: {statuses}." if runs else "There is no such run.",
            runs=runs,
            next_cursor=page.next_cursor,
        )

    @tool(RunDetail)
    async def get_run(self, ctx: Context, run: RunRef) -> RunDetail:
        """Read one run: status, attempts, input, output and files."""
        async with self._connect(ctx) as client:
            found = await client.runs.get(_run_id(run))
        return RunDetail(
            sentence=_describe_run(found),
            run=RunBrief.of(found),
            attempts=[AttemptBrief.of(each) for each in found.attempts or ()],
            files=[each.name for each in found.artifacts or ()],
            untrusted_input=found.input,
            untrusted_output=found.output,
            untrusted_error=None if found.error is None else f"{found.error.code}: {found.error.message}",
        )

    @tool(LogAnswer)
    async def get_run_logs(
        self, ctx: Context, run: RunRef, lines: Annotated[int, Field(ge=1, le=MOST_LINES)] = 50
    ) -> LogAnswer:
        """Read the newest lines of a run's log."""
        async with self._connect(ctx) as client:
            page = await client.runs.logs(_run_id(run), tail=lines)
        shown = [f"{each.at:%H:%M:%S} {each.stream}: {each.text}" for each in page.items]
        return LogAnswer(
            sentence=f"The newest {counted(len(shown), 'line')} of the log."
            if shown
            else "The log is empty.",
            untrusted_lines=shown,
            truncated=page.truncated,
        )

    @tool(PreviewAnswer)
    async def preview_schedule(
        self,
        ctx: Context,
        when: When,
        time_zone: TimeZone = None,
        n: Annotated[int, Field(ge=1, le=20)] = 5,
    ) -> PreviewAnswer:
        """Read words or cron without storing anything: what they mean and when they would run. Call it before create_job."""
        async with self._connect(ctx) as client:
            seen = await client.preview(_schedule(when, time_zone), n=n)
        times = _next_times(seen.items, n)
        first = f" First: {times[0].local}." if times else " It never runs."
        return PreviewAnswer(
            sentence=f"{seen.words}.{first}",
            next_times=times,
            schedule=seen.schedule.model_dump(mode="json"),
            warnings=[*seen.warnings, *seen.notes],
        )

    @tool(ExplainAnswer)
    async def explain(
        self,
        ctx: Context,
        job: Annotated[str | None, Field(max_length=300, description="Name or id of a job.")] = None,
        run: Annotated[str | None, Field(max_length=60, description="Id of a run, instead of a job.")] = None,
        at: Annotated[
            str | None,
            Field(
                max_length=40,
                description="The instant to explain, RFC 3339; with a job. Default: its last planned time.",
            ),
        ] = None,
    ) -> ExplainAnswer:
        """Say why a run ran, failed, waits or was skipped, or why a job did not run at an instant."""
        if (job is None) == (run is None):
            raise ToolError("Name either a job or a run.")
        async with self._connect(ctx) as client:
            if run is not None:
                found = await client.runs.explain(_run_id(run))
            else:
                found = await client.jobs.explain((await _find_job(client, job or "")).id, at=at)
        return ExplainAnswer(
            sentence=found.sentence, verdict=found.verdict, facts=found.facts, what_next=found.what_next
        )

    @tool(AgendaAnswer)
    async def whats_next(
        self,
        ctx: Context,
        until: Annotated[
            str | None, Field(max_length=40, description="RFC 3339; default: a day from now.")
        ] = None,
        job: Annotated[str | None, Field(max_length=300, description="Only of this job: name or id.")] = None,
    ) -> AgendaAnswer:
        """List what is planned, in the order it starts."""
        async with self._connect(ctx) as client:
            of = None if job is None else (await _find_job(client, job)).id
            agenda = await client.agenda(end=until, job=of)
        lines = [AgendaLineBrief.of(each) for each in agenda.items[:LARGEST_PAGE]]
        first = f"{lines[0].job} at {lines[0].starts_at:%Y-%m-%d %H:%M} UTC" if lines else ""
        return AgendaAnswer(
            sentence=f"{counted(len(agenda.items), 'entry').replace('entrys', 'entries')}; the first is {first}."
            if lines
            else "Nothing is planned.",
            lines=lines,
            is_complete=len(lines) == len(agenda.items) and not agenda.truncated,
        )

    @tool(StatisticsAnswer)
    async def get_statistics(
        self,
        ctx: Context,
        job: Annotated[str | None, Field(max_length=300, description="Only of this job: name or id.")] = None,
        days: Annotated[int, Field(ge=1, le=90)] = 7,
    ) -> StatisticsAnswer:
        """Count runs, successes, failures and skips of the last days, of one job or of all."""
        async with self._connect(ctx) as client:
            if job is None:
                everything = await client.stats(days=days)
                totals, by_day = everything.totals, everything.days
            else:
                of_job = await client.jobs.stats((await _find_job(client, job)).id, days=days)
                totals, by_day = of_job.totals, of_job.days
        rate = "" if totals.success_rate is None else f", {totals.success_rate} % of them succeeded"
        return StatisticsAnswer(
            sentence=f"{counted(totals.runs, 'run')} in all{rate}; {counted(totals.failures, 'failure')}, "
            f"{counted(totals.skips, 'skip')}.",
            totals=totals,
            days=by_day,
        )

    @tool(MessagesAnswer)
    async def read_messages(
        self,
        ctx: Context,
        room: Annotated[
            str | None, Field(max_length=100, description="Id or key of a room. Default: your reminders.")
        ] = None,
        after: Annotated[int, Field(ge=0, description="Only messages after this number.")] = 0,
        wait: Annotated[int, Field(ge=0, le=20, description="Seconds to wait for the first one.")] = 0,
    ) -> MessagesAnswer:
        """Read messages of a room: reminders that came due, and what people wrote there."""
        async with self._connect(ctx) as client:
            found = await _find_room(client, room or await _reminder_key(client))
            if found is None:
                raise ToolError("There is no such room. A first reminder opens yours.")
            page = await client.rooms.messages(found.id, after=after, limit=LARGEST_PAGE, wait=wait)
        messages = [
            MessageBrief(
                number=each.seq,
                sender=each.sender.name or each.sender.kind,
                sent_at=each.sent_at,
                job_id=each.job_id,
                untrusted_text=each.text,
            )
            for each in page.items
        ]
        return MessagesAnswer(
            sentence=f"{counted(len(messages), 'message')}." if messages else "No new message.",
            room_id=found.id,
            messages=messages,
        )

    # Writing

    @tool(JobAnswer)
    async def remind_me(
        self,
        ctx: Context,
        text: Annotated[str, Field(min_length=1, max_length=10_000, description="What to be reminded of.")],
        delay: Annotated[
            str | None,
            Field(max_length=60, description='How long from now: "20m", "2 hours". Not with `at`.'),
        ] = None,
        at: Annotated[
            str | None,
            Field(
                max_length=60,
                description='Wall clock: "2026-12-01 09:00", "tomorrow at 9am". Needs `time_zone`.',
            ),
        ] = None,
        time_zone: TimeZone = None,
        room: Annotated[
            str | None, Field(max_length=100, description="Room to post into. Default: a room of your own.")
        ] = None,
        key: Key = None,
        dry_run: DryRun = False,
    ) -> JobAnswer:
        """Set a reminder: the text is posted into a room once, at that time. Read it with read_messages."""
        if (delay is None) == (at is None):
            raise ToolError('Give either `delay`, such as "2 hours", or `at` with `time_zone`.')
        if at is not None and time_zone is None:
            raise ToolError(
                "A wall-clock time needs `time_zone`, such as Europe/Paris: ask the person where they are. "
                "Or give `delay`."
            )
        words = at if at is not None else f"in {(delay or '').removeprefix('in ')}"
        body: dict[str, Any] = {
            "name": _short(f"Reminder: {text}"),
            "type": "message",
            "schedule": _schedule(words, time_zone),
            "tags": ["reminder"],
        }
        async with self._connect(ctx) as client:
            where = room
            if where is None and not dry_run:
                where = str((await _reminder_room(client)).id)
            body["config"] = {"text": text} | ({} if where is None else {"room": where})
            return await _create(client, body, key, dry_run=dry_run)

    @tool(JobAnswer)
    async def create_job(
        self,
        ctx: Context,
        name: Annotated[str, Field(min_length=1, max_length=200)],
        when: When,
        type: Annotated[  # noqa: A002  # the name on the wire
            str,
            Field(
                max_length=100,
                description='What runs: "http", "message", "python", "command" or another type.',
            ),
        ],
        config: Annotated[
            dict[str, Any] | None,
            Field(
                description='Settings of the type: {"url": "https://…"} for http, {"text": "…"} for message.'
            ),
        ] = None,
        time_zone: TimeZone = None,
        payload: Annotated[dict[str, Any] | None, Field(description="Input of every run.")] = None,
        description: Annotated[str, Field(max_length=10_000)] = "",
        tags: Annotated[list[str] | None, Field(max_length=50)] = None,
        fields: Annotated[
            dict[str, Any] | None,
            Field(
                description="Other fields of a job, as get_job shows them: timeout, retry, overlap, end_at, …"
            ),
        ] = None,
        key: Key = None,
        dry_run: DryRun = False,
    ) -> JobAnswer:
        """Create a job. Repeat the sentence of the answer to the person who asked; use dry_run first if in doubt."""
        body: dict[str, Any] = {
            **(fields or {}),
            "name": name,
            "type": type,
            "schedule": _schedule(when, time_zone),
            "config": config or {},
            "payload": payload or {},
            "description": description,
            "tags": tags or [],
        }
        async with self._connect(ctx) as client:
            return await _create(client, body, key, dry_run=dry_run)

    @tool(JobAnswer)
    async def update_job(
        self,
        ctx: Context,
        job: JobRef,
        revision: Annotated[
            int, Field(ge=1, description="The revision that you read; refused if it changed since.")
        ],
        when: Annotated[
            str | None, Field(max_length=256, description="A new schedule, in words or cron.")
        ] = None,
        time_zone: TimeZone = None,
        changes: Annotated[
            dict[str, Any] | None,
            Field(description="Fields to change, as get_job shows them; null resets one."),
        ] = None,
        note: Annotated[str | None, Field(min_length=1, max_length=1_000, description="Why.")] = None,
        dry_run: DryRun = False,
    ) -> JobAnswer:
        """Change a job. The old definition stays as a revision; the answer says how to take the change back."""
        async with self._connect(ctx) as client:
            found = await _find_job(client, job)
            body = dict(changes or {})
            if when is not None:
                body["schedule"] = _schedule(when, time_zone or found.schedule.timezone)
            elif time_zone is not None:
                body["schedule"] = {
                    **found.schedule.model_dump(mode="json"),
                    "timezone": time_zone,
                    "words": None,
                }
            if not body:
                raise ToolError("Name a change: `when`, `time_zone` or `changes`.")
            if dry_run:
                return _dry(await client.jobs.dry_run.patch(found.id, body, revision=revision, note=note))
            changed = await client.jobs.patch(found.id, body, revision=revision, note=note)
            undo = Undo(
                tool="revert_job",
                arguments={"job": str(found.id), "to_revision": revision},
            )
            return await _changed(client, changed, undo)

    @tool(JobAnswer)
    async def revert_job(
        self,
        ctx: Context,
        job: JobRef,
        to_revision: Annotated[int, Field(ge=1)],
        dry_run: DryRun = False,
    ) -> JobAnswer:
        """Give a job the definition of an earlier revision back, as a new revision."""
        async with self._connect(ctx) as client:
            found = await _find_job(client, job)
            if dry_run:
                return _dry(await client.jobs.dry_run.revert(found.id, to_revision))
            changed = await client.jobs.revert(found.id, to_revision)
            undo = Undo(tool="revert_job", arguments={"job": str(found.id), "to_revision": found.revision})
            return await _changed(client, changed, undo)

    @tool(JobAnswer)
    async def pause_job(
        self,
        ctx: Context,
        job: JobRef,
        reason: Reason,
        until: Annotated[
            str | None,
            Field(
                max_length=40, description="RFC 3339: it resumes by itself then. Default: until resume_job."
            ),
        ] = None,
        dry_run: DryRun = False,
    ) -> JobAnswer:
        """Pause a job: its schedule starts no run until it is resumed. Give `until` to snooze it."""
        async with self._connect(ctx) as client:
            found = await _find_job(client, job)
            if dry_run:
                return _dry(await client.jobs.dry_run.pause(found.id, reason=reason, until=until))
            changed = await client.jobs.pause(found.id, reason=reason, until=until)
            return await _changed(client, changed, Undo(tool="resume_job", arguments={"job": str(found.id)}))

    @tool(JobAnswer)
    async def resume_job(self, ctx: Context, job: JobRef, dry_run: DryRun = False) -> JobAnswer:
        """Resume a job that is paused or disabled."""
        async with self._connect(ctx) as client:
            found = await _find_job(client, job)
            if dry_run:
                return _dry(await client.jobs.dry_run.resume(found.id))
            changed = await client.jobs.resume(found.id)
            undo = Undo(tool="pause_job", arguments={"job": str(found.id), "reason": "Resumed by mistake."})
            return await _changed(client, changed, undo)

    @tool(JobAnswer)
    async def skip_next(
        self,
        ctx: Context,
        job: JobRef,
        reason: Reason,
        n: Annotated[int, Field(ge=1, le=100, description="How many planned times.")] = 1,
        dry_run: DryRun = False,
    ) -> JobAnswer:
        """Skip the next planned times of a job; it then goes on as before. A second call replaces the first."""
        async with self._connect(ctx) as client:
            found = await _find_job(client, job)
            verbs = client.jobs.dry_run if dry_run else client.jobs
            skipped = await verbs.skip_next(found.id, n=n, reason=reason)
        then = "never" if skipped.next_run_at is None else f"{skipped.next_run_at:%Y-%m-%d %H:%M} UTC"
        will = "would skip" if dry_run else "skips"
        return JobAnswer(
            sentence=f"{found.name} {will} {counted(skipped.count, 'planned time')}; its next run is {then}.",
            job=JobBrief.of(found),
            next_times=_next_times(skipped.skipped, SHOWN),
            dry_run=dry_run,
            undo=None if dry_run else Undo(tool="undo_skip", arguments={"job": str(found.id)}),
        )

    @tool(JobAnswer)
    async def undo_skip(self, ctx: Context, job: JobRef) -> JobAnswer:
        """Take skip_next back: the planned times run after all."""
        async with self._connect(ctx) as client:
            found = await _find_job(client, job)
            return await _changed(client, await client.jobs.undo_skip_next(found.id), None)

    @tool(RunAnswer)
    async def run_now(
        self,
        ctx: Context,
        job: JobRef,
        input: Annotated[  # noqa: A002  # the name on the wire
            dict[str, Any] | None, Field(description="Merged over the job's payload.")
        ] = None,
        key: Key = None,
        dry_run: DryRun = False,
    ) -> RunAnswer:
        """Run a job now, beside its schedule."""
        async with self._connect(ctx) as client:
            found = await _find_job(client, job)
            if dry_run:
                return _dry_run_of(await client.jobs.dry_run.run(found.id, input=input))
            return _started(await client.jobs.run(found.id, input=input, idempotency_key=key))

    @tool(RunAnswer)
    async def retry_run(
        self,
        ctx: Context,
        run: RunRef,
        input: Annotated[  # noqa: A002  # the name on the wire
            dict[str, Any] | None, Field(description="Merged over the input of that run.")
        ] = None,
        key: Key = None,
        dry_run: DryRun = False,
    ) -> RunAnswer:
        """Repeat a finished run, as a new run."""
        async with self._connect(ctx) as client:
            if dry_run:
                return _dry_run_of(await client.runs.dry_run.retry(_run_id(run), input=input))
            return _started(await client.runs.retry(_run_id(run), input=input, idempotency_key=key))

    @tool(RunAnswer)
    async def cancel_run(
        self,
        ctx: Context,
        run: RunRef,
        reason: Reason,
        expected_status: Annotated[
            Literal["ready", "waiting", "running"] | None,
            Field(description="Refuse if the run has another status by now."),
        ] = None,
        dry_run: DryRun = False,
    ) -> RunAnswer:
        """Stop a run that waits or runs. What it has done so far is not undone."""
        async with self._connect(ctx) as client:
            before = await client.runs.get(_run_id(run))
            if expected_status is not None and before.status != expected_status:
                raise ToolError(f"The run is {before.status}, not {expected_status}. Nothing was changed.")
            if dry_run:
                return _dry_run_of(await client.runs.dry_run.cancel(before.id, reason=reason))
            cancelled = await client.runs.cancel(before.id, reason=reason)
        stopping = "will be stopped" if cancelled.status == "running" else "is cancelled"
        return RunAnswer(
            sentence=f"Run {cancelled.number} of {cancelled.job_name} {stopping}.",
            run=RunBrief.of(cancelled),
            undo=Undo(tool="retry_run", arguments={"run": str(cancelled.id)}),
        )

    @tool(JobAnswer)
    async def delete_job(
        self,
        ctx: Context,
        job: JobRef,
        confirm: Annotated[
            str | None,
            Field(max_length=40, description="The `confirm` of a first call, to really delete it."),
        ] = None,
    ) -> JobAnswer:
        """Delete a job in two calls: the first answers what would go and a `confirm`; the second sends it back. History is kept."""
        async with self._connect(ctx) as client:
            found = await _find_job(client, job)
            token = _confirm_token(found)
            if confirm is None:
                plan = _dry(await client.jobs.dry_run.delete(found.id))
                plan.sentence = (
                    f"{found.name} would be deleted; its history is kept. Nothing has changed yet."
                )
                plan.confirm = token
                return plan
            if confirm != token:
                raise ToolError("This `confirm` does not fit: the job changed since. Call without it first.")
            await client.jobs.delete(found.id, revision=found.revision)
        return JobAnswer(
            sentence=f"{found.name} is deleted. People can see it among archived jobs.",
            job=JobBrief.of(found),
        )


async def _find_job(client: AsyncClient, ref: str) -> JobOut:
    if (job_id := read_id(ref)) is not None:
        return await client.jobs.get(job_id)
    page = await client.jobs.list(name=[ref], limit=LARGEST_PAGE)
    exact = [each for each in page.items if each.name == ref]
    if len(exact) == 1:
        return exact[0]
    if exact:
        raise ToolError(
            f"{len(exact)} jobs have this name; use an id: {joined(str(each.id) for each in exact)}."
        )
    near = joined(each.name for each in page.items)
    raise ToolError(f"There is no job {ref!r} that you can see." + (f" Similar: {near}." if near else ""))


def _run_id(ref: str) -> UUID:
    if (run_id := read_id(ref)) is None:
        raise ToolError("A run is named by its id; list_runs shows it.")
    return run_id


async def _find_room(client: AsyncClient, ref: str) -> RoomOut | None:
    if (room_id := read_id(ref)) is not None:
        return await client.rooms.get(room_id)
    page = await client.rooms.list(key=ref, limit=1)
    return page.items[0] if page.items else None


async def _reminder_key(client: AsyncClient) -> str:
    """Each principal has one room, where its reminders arrive."""
    return f"reminders-{(await client.me()).principal.id}"


async def _reminder_room(client: AsyncClient) -> RoomOut:
    key = await _reminder_key(client)
    if (found := await _find_room(client, key)) is not None:
        return found
    me = await client.me()
    return await client.rooms.create(f"Reminders of {me.principal.name}", key=key, idempotency_key=key)


async def _create(client: AsyncClient, body: dict[str, Any], key: str | None, *, dry_run: bool) -> JobAnswer:
    if dry_run:
        return _dry(await client.jobs.dry_run.create(body))
    made = await client.jobs.create(body, idempotency_key=key)
    return await _changed(client, made, Undo(tool="delete_job", arguments={"job": str(made.id)}))


async def _changed(client: AsyncClient, job: JobOut, undo: Undo | None) -> JobAnswer:
    times = await client.jobs.next(job.id, SHOWN)
    return JobAnswer(
        sentence=_describe(job),
        job=JobBrief.of(job),
        next_times=_next_times(times.items, SHOWN),
        warnings=job.warnings,
        undo=undo,
    )


def _dry(plan: DryRunOut) -> JobAnswer:
    words = "" if plan.job is None else _describe(plan.job)
    return JobAnswer(
        sentence=f"Nothing was changed. It would be: {words}" if words else "Nothing was changed.",
        job=None if plan.job is None else JobBrief.of(plan.job),
        next_times=_next_times(plan.items, SHOWN),
        warnings=plan.warnings,
        dry_run=True,
    )


def _dry_run_of(plan: RunDryRunOut) -> RunAnswer:
    return RunAnswer(
        sentence=f"Nothing was changed. {plan.sentence}", run=RunBrief.of(plan.run), dry_run=True
    )


def _started(run: RunOut) -> RunAnswer:
    return RunAnswer(
        sentence=f"Run {run.number} of {run.job_name} is {run.status}. Ask get_run for its end.",
        run=RunBrief.of(run),
        undo=Undo(tool="cancel_run", arguments={"run": str(run.id), "reason": "Started by mistake."}),
    )


def _describe(job: JobOut) -> str:
    when = "no next run" if job.next_run_at is None else f"next run {job.next_run_at:%Y-%m-%d %H:%M:%S} UTC"
    why = f" ({job.status_reason})" if job.status_reason else ""
    return f"{job.name}: {job.schedule.words}; {job.status}{why}, {when}."


def _describe_run(run: RunOut) -> str:
    why = f" ({run.skip_reason})" if run.skip_reason else ""
    planned = f"{run.planned_for:%Y-%m-%d %H:%M:%S} UTC"
    return f"Run {run.number} of {run.job_name}, planned for {planned}, is {run.status}{why} after {counted(run.attempt_count, 'attempt')}."


def _next_times(planned: list[PlannedOut], most: int) -> list[NextTime]:
    return [NextTime.of(each) for each in planned[:most]]


def _schedule(words: str, time_zone: str | None) -> dict[str, Any]:
    return {"words": words} | ({} if time_zone is None else {"timezone": time_zone})


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_NAME else f"{line[: LONGEST_NAME - 1]}…"


def _confirm_token(job: JobOut) -> str:
    """Fits this revision of this job only, so that a confirmation cannot delete something else."""
    return hashlib.sha256(f"delete {job.id} {job.revision}".encode()).hexdigest()[:16]
