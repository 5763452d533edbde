"""The tools that change nothing. Each calls the client once or twice, with the rights of its caller."""

from __future__ import annotations

from typing import Annotated

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from foliot.domain.schedule.describe.english import pluralize
from foliot.mcp.answers import (
    AgendaAnswer,
    AgendaLineBrief,
    AttemptBrief,
    ExplainAnswer,
    JobBrief,
    JobDetail,
    JobList,
    LogAnswer,
    MessageBrief,
    MessagesAnswer,
    PreviewAnswer,
    RunBrief,
    RunDetail,
    RunList,
    StatisticsAnswer,
    definition_of,
    joined,
)
from foliot.mcp.tool import (
    LARGEST_PAGE,
    Connect,
    Cursor,
    JobRef,
    JobRefOrAll,
    Limit,
    Query,
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
from foliot.wire.runs import RunOut

MOST_LINES = 200


class ReadTools:
    """`connect` opens a client with the key of the caller."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect

    @tool(JobList)
    async def list_jobs(
        self, ctx: Context, q: Query = None, limit: Limit = 10, cursor: Cursor = None
    ) -> JobList:
        """List jobs, newest first. An agent sees only its own."""
        async with self._connect(ctx) as client:
            page = await client.jobs.list(q=q, limit=limit, cursor=cursor)
        jobs = [JobBrief.of(each) for each in page.items]
        more = ", and there are more" if page.next_cursor else ""
        found = f"{pluralize(len(jobs), 'job')}: {joined(each.name for each in jobs)}{more}."
        return JobList(
            sentence=found if jobs else "There is no such job.", jobs=jobs, next_cursor=page.next_cursor
        )

    @tool(JobDetail)
    async def get_job(self, ctx: Context, job: JobRef) -> JobDetail:
        """Read one job: its whole definition, next times and the state of its last run."""
        async with self._connect(ctx) as client:
            found = await find_job(client, job)
            times = await client.jobs.next(found.id, 5)
        return JobDetail(
            sentence=describe_job(found),
            job=JobBrief.of(found),
            next_times=list_next_times(times.items, 5),
            definition=definition_of(found),
            untrusted_last_error=found.last_error,
        )

    @tool(RunList)
    async def list_runs(
        self, ctx: Context, job: JobRefOrAll = None, q: Query = None, limit: Limit = 10, cursor: Cursor = None
    ) -> RunList:
        """List the records of planned times and manual runs, newest first: what ran, failed, waits or was skipped."""
        async with self._connect(ctx) as client:
            of = None if job is None else (await find_job(client, job)).id
            page = await client.runs.list(q=q, job=of, limit=limit, cursor=cursor)
        runs = [RunBrief.of(each) for each in page.items]
        statuses = joined(f"{each.job}#{each.number} {each.status}" for each in runs)
        return RunList(
            sentence=f"{pluralize(len(runs), 'record')}: {statuses}." if runs else "There is no such run.",
            runs=runs,
            next_cursor=page.next_cursor,
        )

    @tool(RunDetail)
    async def get_run(self, ctx: Context, run: RunRef) -> RunDetail:
        """Read one run: status, attempts, input, output and files."""
        async with self._connect(ctx) as client:
            found = await client.runs.get(parse_run_id(run))
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
            page = await client.runs.logs(parse_run_id(run), tail=lines)
        shown = [f"{each.at:%H:%M:%S} {each.stream}: {each.text}" for each in page.items]
        return LogAnswer(
            sentence=f"The newest {pluralize(len(shown), 'line')} of the log."
            if shown
            else "The log is empty.",
            untrusted_lines=shown,
            truncated=page.truncated,
        )

    @tool(PreviewAnswer)
    async def preview_schedule(
        self, ctx: Context, when: When, time_zone: TimeZone = None, n: Annotated[int, Field(ge=1, le=20)] = 5
    ) -> PreviewAnswer:
        """Read words or cron without storing anything: what they mean and when they would run. Call it before create_job."""
        async with self._connect(ctx) as client:
            seen = await client.preview(schedule_in_words(when, time_zone), n=n)
        times = list_next_times(seen.items, n)
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
                found = await client.runs.explain(parse_run_id(run))
            else:
                found = await client.jobs.explain((await find_job(client, job or "")).id, at=at)
        return ExplainAnswer(
            sentence=found.sentence,
            verdict=found.verdict,
            untrusted_facts=found.facts,
            what_next=found.what_next,
        )

    @tool(AgendaAnswer)
    async def whats_next(
        self,
        ctx: Context,
        until: Annotated[
            str | None, Field(max_length=40, description="RFC 3339; default: a day from now.")
        ] = None,
        job: JobRefOrAll = None,
    ) -> AgendaAnswer:
        """List what is planned, in the order it starts."""
        async with self._connect(ctx) as client:
            of = None if job is None else (await find_job(client, job)).id
            agenda = await client.agenda(end=until, job=of)
        lines = [AgendaLineBrief.of(each) for each in agenda.items[:LARGEST_PAGE]]
        first = f"{lines[0].job} at {lines[0].starts_at:%Y-%m-%d %H:%M} UTC" if lines else ""
        return AgendaAnswer(
            sentence=f"{pluralize(len(agenda.items), 'entry', 'entries')}; the first is {first}."
            if lines
            else "Nothing is planned.",
            lines=lines,
            is_complete=len(lines) == len(agenda.items) and not agenda.truncated,
        )

    @tool(StatisticsAnswer)
    async def get_statistics(
        self, ctx: Context, job: JobRefOrAll = None, days: Annotated[int, Field(ge=1, le=90)] = 7
    ) -> StatisticsAnswer:
        """Count runs, successes, failures and skips of the last days, of one job or of all, and what they used this month."""
        async with self._connect(ctx) as client:
            if job is None:
                everything = await client.stats(days=days)
                totals, by_day = everything.totals, everything.days
                used = await client.usage()
            else:
                found = (await find_job(client, job)).id
                of_job = await client.jobs.stats(found, days=days)
                totals, by_day = of_job.totals, of_job.days
                used = await client.usage(job=found)
        rate = "" if totals.success_rate is None else f", {totals.success_rate} % of them succeeded"
        return StatisticsAnswer(
            sentence=f"{pluralize(totals.runs, 'run')} in all{rate}; {pluralize(totals.failures, 'failure')}, "
            f"{pluralize(totals.skips, 'skip')}.",
            totals=totals,
            days=by_day,
            usage_this_month=used.totals,
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
            found = await find_room(client, room or await reminder_room_key(client))
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
            sentence=f"{pluralize(len(messages), 'message')}." if messages else "No new message.",
            room_id=found.id,
            messages=messages,
        )


def _describe_run(run: RunOut) -> str:
    why = f" ({run.skip_reason})" if run.skip_reason else ""
    planned = f"{run.planned_for:%Y-%m-%d %H:%M:%S} UTC"
    return f"Run {run.number} of {run.job_name}, planned for {planned}, is {run.status}{why} after {pluralize(run.attempt_count, 'attempt')}."
