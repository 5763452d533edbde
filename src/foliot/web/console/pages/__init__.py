"""The pages, one file per noun. `ROUTES` lists every address of the console."""

from __future__ import annotations

from starlette.routing import Route

from foliot.web.console.pages import (
    agenda,
    agenda_feed,
    calendars,
    capacity,
    editor,
    entry,
    freezes,
    hosts,
    imports,
    incidents,
    job,
    job_actions,
    jobs,
    log,
    notifications,
    plots,
    records,
    rooms,
    run,
    runs,
    settings,
    start,
    today,
    webhooks,
)

ROUTES: list[Route] = [
    *entry.ROUTES,
    *today.ROUTES,
    *start.ROUTES,
    *imports.ROUTES,
    *editor.ROUTES,
    *jobs.ROUTES,
    *job.ROUTES,
    *job_actions.ROUTES,
    *runs.ROUTES,
    *run.ROUTES,
    *log.ROUTES,
    *plots.ROUTES,
    *agenda.ROUTES,
    *agenda_feed.ROUTES,
    *capacity.ROUTES,
    *incidents.ROUTES,
    *rooms.ROUTES,
    *freezes.ROUTES,
    *calendars.ROUTES,
    *records.ROUTES,
    *settings.ROUTES,
    *notifications.ROUTES,
    *webhooks.ROUTES,
    *hosts.ROUTES,
]
