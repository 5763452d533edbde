"""`foliot jobs create`."""

from __future__ import annotations

from typing import Annotated

import typer

from foliot.cli.jobs import flags
from foliot.cli.jobs.flags import Rules, Timing, Work, draft, one_name
from foliot.cli.session import DryRun, Session, api_command
from foliot.cli.times import local_zone


@api_command
def create(
    session: Session,
    name_first: flags.NameFirst = None,
    name: flags.Name = None,
    schedule: flags.Cron = None,
    seconds: flags.Seconds = False,
    every: flags.Every = None,
    at: flags.At = None,
    when: flags.When = None,
    manual: flags.Manual = False,
    timezone: flags.Timezone = None,
    http: flags.Http = None,
    method: flags.Method = None,
    python: flags.Python = None,
    type: flags.Type = None,  # noqa: A002  # the name of the field
    config: flags.Config = None,
    payload: flags.Payload = None,
    description: flags.Description = None,
    timeout: flags.Timeout = None,
    retries: flags.Retries = None,
    retry_delays: flags.RetryDelays = None,
    overlap: flags.OverlapFlag = None,
    misfire: flags.MisfireFlag = None,
    on_lost: flags.OnLostFlag = None,
    queue: flags.Queue = None,
    server: flags.Server = None,
    host: flags.HostFlag = None,
    read_only: flags.ReadOnly = None,
    priority: flags.Priority = None,
    max_runs: flags.MaxRuns = None,
    start_at: flags.StartAt = None,
    end_at: flags.EndAt = None,
    tag: flags.Tags = None,
    disabled: Annotated[
        bool, typer.Option("--disabled", help="Make it, and let it rest until resumed.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Make a job. Say when with exactly one of --schedule, --every, --at, --when or --manual, and what with --http,
    --python or --type.
    """
    from foliot.cli.jobs.rendering import created
    from foliot.cli.jobs.trial_rendering import trial

    job = draft(
        Timing(schedule, every, at, when, manual, timezone, seconds),
        Work(type, config, http, method, python),
        Rules(
            one_name(name_first, name),
            description,
            payload,
            timeout,
            overlap,
            misfire,
            on_lost,
            queue,
            priority,
            max_runs,
            start_at,
            end_at,
            retries,
            retry_delays,
            None if tag is None else tuple(tag),
            server,
            host,
            read_only,
        ),
        session.now,
        local_zone(),
    )
    if disabled:
        job["enabled"] = False
    if dry_run:
        tried = session.client.jobs.dry_run.create(job)
        session.show(tried, lambda: trial(f"Would create {job['name']}", tried, session.now, is_new=True))
        return
    made = session.client.jobs.create(job)
    session.show(made, lambda: created(made, session.now))
