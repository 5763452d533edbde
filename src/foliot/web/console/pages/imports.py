"""Import jobs of another scheduler: paste its file, see what each record becomes, then import."""

from __future__ import annotations

from collections import Counter
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from foliot.web.console.api import ApiRefusal
from foliot.web.console.site import Context, Visit, action, page, render, shell_of
from foliot.wire.imports import ImportSource

LABELS = {
    ImportSource.CRONTAB: "crontab -l",
    ImportSource.SYSTEM_CRONTAB: "/etc/crontab, /etc/cron.d",
    ImportSource.SYSTEMD: "systemctl cat x.timer x.service",
    ImportSource.KUBERNETES: "kubectl get cronjobs -A -o yaml",
    ImportSource.CELERY_BEAT: "Celery beat, django-celery-beat",
    ImportSource.APSCHEDULER: "APScheduler",
    ImportSource.AIRFLOW: "airflow dags list -o json",
    ImportSource.OPENCLAW: "OpenClaw",
    ImportSource.OPENCLAW_RUNS: "OpenClaw: cron/runs/*.jsonl",
}
EMPTY: Context = {
    "source": "crontab",
    "text": "",
    "timezone": "",
    "shadow": "",
    "outcome": None,
    "shared_notes": {},
    "problems": [],
}


@page("imports.html", "jobs", "editor")
async def import_form(visit: Visit) -> Context:
    return {**EMPTY, "sources": LABELS}


@action
async def import_text(visit: Visit) -> Response:
    """Show what each record becomes; with the button of the second step, write it."""
    given: Context = {name: visit.field(name) for name in ("source", "timezone", "shadow")}
    given["text"] = (visit.form or {}).get("text", "")
    body = {"source": given["source"], "text": given["text"], "shadow": bool(given["shadow"])}
    body |= {"time_zone": given["timezone"]} if given["timezone"] else {}
    found: Context = {**EMPTY, **given, "sources": LABELS}
    query = {} if visit.field("step") == "import" else {"dry_run": "true"}
    status = 200
    try:
        outcome = await visit.api.call("POST", "/imports", body, params=query)
        found |= {"outcome": outcome, "shared_notes": shared_notes(outcome["records"])}
    except ApiRefusal as refusal:
        if refusal.status not in (400, 413, 422):
            raise
        found["problems"], status = refusal.sentences, refusal.status
    return render(visit, "imports.html", {**await shell_of(visit), "active": "jobs", **found}, status)


def shared_notes(records: list[dict[str, Any]]) -> dict[str, int]:
    """Notes that several records have, and how many: the page says each of them once."""
    counted = Counter(note for each in records for note in dict.fromkeys(each["notes"]))
    return {note: count for note, count in counted.items() if count > 1}


ROUTES = [Route("/import", import_form), Route("/import", import_text, methods=["POST"])]
