"""The tools that change something. Each answers with what changed and with the call that takes it back, where there is one.

Tools for workspaces, members, keys, webhooks and freezes of everything do not exist: an agent manages jobs, not the installation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from foliot.domain.schedule.describe.english import pluralize
from foliot.mcp.answers import JobAnswer, JobBrief, RunAnswer, RunBrief, Undo
from foliot.mcp.tool import (
    Connect,
    DryRun,
    JobRef,
    Key,
    Reason,
    RunRef,
    TimeZone,
    When,
    describe_job,
    find_job,
    find_room,
    list_next_times,
    parse_run_id,
    reminder_room_key,
    schedule_in_words,
    tool,
)
from foliot.sdk import AsyncClient
from foliot.sdk.asynchronous.jobs import AsyncJobWrites
from foliot.wire.dry_run import DryRunOut, RunDryRunOut
from foliot.wire.jobs import JobOut
from foliot.wire.rooms import RoomOut
from foliot.wire.runs import RunOut

JobVerbs = AsyncJobWrites[Any, Any, Any]  # that write, or only try
RunInput = Annotated[
    dict[str, Any] | None, Field(description="Merged over the job's payload, or the input of the run.")
]
LONGEST_NAME = 60
SHOWN = 3  # next times after a write


class WriteTools:
    """`connect` opens a client with the key of the caller."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect

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
            "schedule": schedule_in_words(words, time_zone),
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
            "schedule": schedule_in_words(when, time_zone),
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
            found = await find_job(client, job)
            body = dict(changes or {})
            if when is not None:
                body["schedule"] = schedule_in_words(when, time_zone or found.schedule.timezone)
            elif time_zone is not None:
                body["schedule"] = {
                    **found.schedule.model_dump(mode="json"),
                    "timezone": time_zone,
                    "words": None,
                }
            if not body:
                raise ToolError("Name a change: `when`, `time_zone` or `changes`.")
            undo = _undo("revert_job", found, to_revision=revision)
            return await _change(
                client,
                lambda jobs: jobs.patch(found.id, body, revision=revision, note=note),
                undo,
                dry_run=dry_run,
            )

    @tool(JobAnswer)
    async def revert_job(
        self, ctx: Context, job: JobRef, to_revision: Annotated[int, Field(ge=1)], dry_run: DryRun = False
    ) -> JobAnswer:
        """Give a job the definition of an earlier revision back, as a new revision."""
        async with self._connect(ctx) as client:
            found = await find_job(client, job)
            undo = _undo("revert_job", found, to_revision=found.revision)
            return await _change(
                client, lambda jobs: jobs.revert(found.id, to_revision), undo, dry_run=dry_run
            )

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
        """Pause a job: its schedule starts no run until it is resumed. Give `until` to snooze it; a paused job gets the new end."""
        async with self._connect(ctx) as client:
            found = await find_job(client, job)
            return await _change(
                client,
                lambda jobs: jobs.pause(found.id, reason=reason, until=until),
                _undo("resume_job", found),
                dry_run=dry_run,
            )

    @tool(JobAnswer)
    async def resume_job(self, ctx: Context, job: JobRef, dry_run: DryRun = False) -> JobAnswer:
        """Resume a job that is paused or disabled."""
        async with self._connect(ctx) as client:
            found = await find_job(client, job)
            undo = _undo("pause_job", found, reason="Resumed by mistake.")
            return await _change(client, lambda jobs: jobs.resume(found.id), undo, dry_run=dry_run)

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
            found = await find_job(client, job)
            verbs = client.jobs.dry_run if dry_run else client.jobs
            skipped = await verbs.skip_next(found.id, n=n, reason=reason)
        then = "never" if skipped.next_run_at is None else f"{skipped.next_run_at:%Y-%m-%d %H:%M} UTC"
        will = "would skip" if dry_run else "skips"
        return JobAnswer(
            sentence=f"{found.name} {will} {pluralize(skipped.count, 'planned time')}; its next run is {then}.",
            job=JobBrief.of(found),
            next_times=list_next_times(skipped.skipped, SHOWN),
            dry_run=dry_run,
            undo=None if dry_run else _undo("undo_skip", found),
        )

    @tool(JobAnswer)
    async def undo_skip(self, ctx: Context, job: JobRef, dry_run: DryRun = False) -> JobAnswer:
        """Take skip_next back: the planned times run after all."""
        async with self._connect(ctx) as client:
            found = await find_job(client, job)
            return await _change(client, lambda jobs: jobs.undo_skip_next(found.id), None, dry_run=dry_run)

    @tool(RunAnswer)
    async def run_now(
        self,
        ctx: Context,
        job: JobRef,
        input: RunInput = None,  # noqa: A002  # the name on the wire
        key: Key = None,
        dry_run: DryRun = False,
    ) -> RunAnswer:
        """Run a job now, beside its schedule."""
        async with self._connect(ctx) as client:
            verbs = client.jobs.dry_run if dry_run else client.jobs
            found = await find_job(client, job)
            return _started_or_tried(
                await verbs.run(found.id, input=input, idempotency_key=None if dry_run else key)
            )

    @tool(RunAnswer)
    async def retry_run(
        self,
        ctx: Context,
        run: RunRef,
        input: RunInput = None,  # noqa: A002  # the name on the wire
        key: Key = None,
        dry_run: DryRun = False,
    ) -> RunAnswer:
        """Repeat a finished run, as a new run."""
        async with self._connect(ctx) as client:
            verbs = client.runs.dry_run if dry_run else client.runs
            return _started_or_tried(
                await verbs.retry(parse_run_id(run), input=input, idempotency_key=None if dry_run else key)
            )

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
            before = await client.runs.get(parse_run_id(run))
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
            found = await find_job(client, job)
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


async def _reminder_room(client: AsyncClient) -> RoomOut:
    key = await reminder_room_key(client)
    if (found := await find_room(client, key)) is not None:
        return found
    me = await client.me()
    return await client.rooms.create(f"Reminders of {me.principal.name}", key=key, idempotency_key=key)


async def _create(client: AsyncClient, body: dict[str, Any], key: str | None, *, dry_run: bool) -> JobAnswer:
    if dry_run:
        return _dry(await client.jobs.dry_run.create(body))
    made = await client.jobs.create(body, idempotency_key=key)
    return await _changed(client, made, _undo("delete_job", made))


async def _change(
    client: AsyncClient, do: Callable[[JobVerbs], Awaitable[Any]], undo: Undo | None, *, dry_run: bool
) -> JobAnswer:
    if dry_run:
        return _dry(await do(client.jobs.dry_run))
    return await _changed(client, await do(client.jobs), undo)


async def _changed(client: AsyncClient, job: JobOut, undo: Undo | None) -> JobAnswer:
    times = await client.jobs.next(job.id, SHOWN)
    return JobAnswer(
        sentence=describe_job(job),
        job=JobBrief.of(job),
        next_times=list_next_times(times.items, SHOWN),
        warnings=job.warnings,
        undo=undo,
    )


def _dry(plan: DryRunOut) -> JobAnswer:
    words = "" if plan.job is None else describe_job(plan.job)
    return JobAnswer(
        sentence=f"Nothing was changed. It would be: {words}" if words else "Nothing was changed.",
        job=None if plan.job is None else JobBrief.of(plan.job),
        next_times=list_next_times(plan.items, SHOWN),
        warnings=plan.warnings,
        dry_run=True,
    )


def _dry_run_of(plan: RunDryRunOut) -> RunAnswer:
    return RunAnswer(
        sentence=f"Nothing was changed. {plan.sentence}", run=RunBrief.of(plan.run), dry_run=True
    )


def _started_or_tried(run: RunOut | RunDryRunOut) -> RunAnswer:
    if isinstance(run, RunDryRunOut):
        return _dry_run_of(run)
    return RunAnswer(
        sentence=f"Run {run.number} of {run.job_name} is {run.status}. Ask get_run for its end.",
        run=RunBrief.of(run),
        undo=Undo(tool="cancel_run", arguments={"run": str(run.id), "reason": "Started by mistake."}),
    )


def _undo(tool_name: str, job: JobOut, **arguments: Any) -> Undo:
    return Undo(tool=tool_name, arguments={"job": str(job.id), **arguments})


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_NAME else f"{line[: LONGEST_NAME - 1]}…"


def _confirm_token(job: JobOut) -> str:
    """Fits this revision of this job only, so that a confirmation cannot delete something else."""
    return hashlib.sha256(f"delete {job.id} {job.revision}".encode()).hexdigest()[:16]
