"""`foliot jobs create`."""

from __future__ import annotations

from typing import Annotated

import typer

from foliot.cli.here import DryRun, Here, asking
from foliot.cli.jobs import drafting
from foliot.cli.jobs.drafting import Rules, Timing, Work, draft, one_name
from foliot.cli.times import local_zone


@asking
def create(
    here: Here,
    name_first: drafting.NameFirst = None,
    name: drafting.Name = None,
    schedule: drafting.Cron = None,
    seconds: drafting.Seconds = False,
    every: drafting.Every = None,
    at: drafting.At = None,
    when: drafting.When = None,
    manual: drafting.Manual = False,
    timezone: drafting.Timezone = None,
    http: drafting.Http = None,
    method: drafting.Method = None,
    python: drafting.Python = None,
    type: drafting.Type = None,  # noqa: A002  # the name of the field
    config: drafting.Config = None,
    payload: drafting.Payload = None,
    description: drafting.Description = None,
    timeout: drafting.Timeout = None,
    retries: drafting.Retries = None,
    retry_delays: drafting.RetryDelays = None,
    overlap: drafting.OverlapFlag = None,
    misfire: drafting.MisfireFlag = None,
    on_lost: drafting.OnLostFlag = None,
    queue: drafting.Queue = None,
    server: drafting.Server = None,
    host: drafting.HostFlag = None,
    read_only: drafting.ReadOnly = None,
    priority: drafting.Priority = None,
    max_runs: drafting.MaxRuns = None,
    start_at: drafting.StartAt = None,
    end_at: drafting.EndAt = None,
    tag: drafting.Tags = None,
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
        here.now,
        local_zone(),
    )
    if disabled:
        job["enabled"] = False
    if dry_run:
        tried = here.client.jobs.dry_run.create(job)
        here.show(tried, lambda: trial(f"Would create {job['name']}", tried, here.now, is_new=True))
        return
    made = here.client.jobs.create(job)
    here.show(made, lambda: created(made, here.now))
