"""What a person does to one job. Each form is one call of the API; what can be taken back offers its undo."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from foliot.web.console.api import ApiRefusal, read_json, read_number
from foliot.web.console.forms import read_instant
from foliot.web.console.pages.job import input_fields
from foliot.web.console.pages.job_form import NOTIFY_KINDS
from foliot.web.console.site import Context, Visit, action, done, page

STOPPED = frozenset({"paused", "disabled", "failed"})


def home(job_id: str) -> str:
    return f"/console/jobs/{job_id}"


async def zone_of(visit: Visit, job: dict[str, Any]) -> str:
    """The zone in which this person reads times of the job."""
    return visit.reader.zone or job["schedule"].get("timezone") or "UTC"


async def run_now(visit: Visit) -> Response:
    """Start a run. Fields that differ from the payload, and the JSON beside them, are its input."""
    job_id = visit.path["job_id"]
    body: dict[str, Any] = {"input": read_json("input", raw)} if (raw := visit.field("input")) else {}
    if any(name.startswith("in.") for name in visit.form or {}):
        job = await visit.api.get(f"/jobs/{job_id}")
        given = {
            each.name: each.read(sent, f"input/{each.name}")
            for each in await input_fields(visit, job)
            if (sent := (visit.form or {}).get(f"in.{each.name}")) is not None
            and sent.replace("\r\n", "\n") != each.write(job["payload"].get(each.name))
        }
        if given and isinstance(body.get("input", {}), dict):
            body["input"] = given | body.get("input", {})
    if visit.field("override"):
        body["override"] = True
    run = await visit.api.call("POST", f"/jobs/{job_id}/run", body)
    return done(f"/console/runs/{run['id']}", "run-created")


async def pause(visit: Visit) -> Response:
    """Pause, or snooze: a pause with an end."""
    job_id = visit.path["job_id"]
    body: dict[str, Any] = {"reason": reason} if (reason := visit.field("reason")) else {}
    if raw := visit.field("until_preset") or visit.field("until"):
        job = await visit.api.get(f"/jobs/{job_id}")
        body["until"] = read_instant("until", raw, await zone_of(visit, job), visit.reader.now)
    await visit.api.call("POST", f"/jobs/{job_id}/pause", body)
    return done(home(job_id), "job-paused", job_id)


async def resume(visit: Visit) -> Response:
    job_id = visit.path["job_id"]
    body = {"catch_up": True} if visit.field("catch_up") else {}
    await visit.api.call("POST", f"/jobs/{job_id}/resume", body)
    return done(home(job_id), "job-resumed", job_id)


async def disable(visit: Visit) -> Response:
    job_id = visit.path["job_id"]
    body = {"reason": reason} if (reason := visit.field("reason")) else {}
    await visit.api.call("POST", f"/jobs/{job_id}/disable", body)
    return done(home(job_id), "job-disabled", job_id)


async def skip_next(visit: Visit) -> Response:
    job_id = visit.path["job_id"]
    body: dict[str, Any] = {"reason": reason} if (reason := visit.field("reason")) else {}
    if visit.field("n"):
        body["n"] = read_number("n", visit.field("n"))
    await visit.api.call("POST", f"/jobs/{job_id}/skip-next", body)
    return done(home(job_id), "job-skips", job_id)


async def undo_skip(visit: Visit) -> Response:
    job_id = visit.path["job_id"]
    await visit.api.call("DELETE", f"/jobs/{job_id}/skip-next")
    return done(home(job_id), "job-skips-undone")


async def cutover(visit: Visit) -> Response:
    """End shadow mode."""
    job_id = visit.path["job_id"]
    await visit.api.call("PATCH", f"/jobs/{job_id}", {"shadow": False})
    return done(home(job_id), "shadow-ended", job_id)


async def archive(visit: Visit) -> Response:
    job_id = visit.path["job_id"]
    before = await visit.api.get(f"/jobs/{job_id}")
    await visit.api.call(
        "DELETE", f"/jobs/{job_id}", params={"detach": "true" if visit.field("detach") else None}
    )
    is_stopped = before["status"] in STOPPED
    return done(home(job_id), "job-archived-stopped" if is_stopped else "job-archived", job_id)  # fmt: skip


async def restore(visit: Visit) -> Response:
    """Bring it back from the archive; with `resume`, as the active job that it was."""
    job_id = visit.path["job_id"]
    await visit.api.call("POST", f"/jobs/{job_id}/restore")
    return done(home(job_id), "job-restored")


async def unarchive(visit: Visit) -> Response:
    job_id = visit.path["job_id"]
    await visit.api.call("POST", f"/jobs/{job_id}/restore")
    await visit.api.call("POST", f"/jobs/{job_id}/resume", {})
    return done(home(job_id), "job-resumed", job_id)


async def revert(visit: Visit) -> Response:
    job_id = visit.path["job_id"]
    revision = read_number("revision", visit.field("revision"))
    await visit.api.call("POST", f"/jobs/{job_id}/revert", {"revision": revision})
    return done(home(job_id), "job-reverted", job_id)


async def undo_edit(visit: Visit) -> Response:
    """Go back to the revision before the newest, if the newest is still this person's own."""
    job_id = visit.path["job_id"]
    found, me = await visit.api.get(f"/jobs/{job_id}/revisions", limit=2), await visit.api.me()
    newest, *earlier = found["items"]
    if not earlier or me["principal"]["id"] not in newest["actor"]:
        raise ApiRefusal(
            409, {"detail": "Somebody has changed this job since. Its changes are listed on its page."}
        )
    body = {"revision": earlier[0]["revision"]}
    headers = {"if-match": f'"{newest["revision"]}"'}
    await visit.api.call("POST", f"/jobs/{job_id}/revert", body, headers=headers)
    return done(home(job_id), "job-reverted")  # fmt: skip


async def mute(visit: Visit) -> Response:
    """Let the job say that nobody hears of it, whatever the rules say."""
    job_id = visit.path["job_id"]
    await visit.api.call("PATCH", f"/jobs/{job_id}", {"notify": dict.fromkeys(NOTIFY_KINDS, False)})
    return done(f"{home(job_id)}?tab=alerts", "alerts-muted", job_id)


async def unmute(visit: Visit) -> Response:
    """Leave it to the rules again."""
    job_id = visit.path["job_id"]
    await visit.api.call("PATCH", f"/jobs/{job_id}", {"notify": None})
    return done(f"{home(job_id)}?tab=alerts", "alerts-unmuted")


@page("backfill.html", "jobs", "operator")
async def review_backfill(visit: Visit) -> Context:
    """Count the planned times that a backfill would run, before it is made."""
    job = await visit.api.get(f"/jobs/{visit.path['job_id']}")
    zone = await zone_of(visit, job)
    given = {name: visit.param(name) for name in ("from", "to", "skipped", "order")}
    context = {"job": job, "zone_of_job": zone, "given": given, "tried": None, "problems": []}
    if given["from"] and given["to"]:
        try:
            body = backfill_body(given, zone, visit)
            context["tried"] = await visit.api.call(
                "POST", f"/jobs/{job['id']}/backfill", body | {"dry_run": True}
            )
            context["body"] = body
        except ApiRefusal as refusal:
            if refusal.status not in (400, 409, 422):
                raise
            context["problems"] = refusal.sentences
    return context  # fmt: skip


def backfill_body(given: dict[str, str], zone: str, visit: Visit) -> dict[str, Any]:
    now = visit.reader.now
    body: dict[str, Any] = {name: read_instant(name, given[name], zone, now) for name in ("from", "to")}
    return body | ({"skipped": True} if given["skipped"] else {}) | ({"order": given["order"]} if given["order"] else {})  # fmt: skip


async def backfill(visit: Visit) -> Response:
    job_id = visit.path["job_id"]
    given = {name: visit.field(name) for name in ("from", "to", "skipped", "order")}
    body = backfill_body(given, "UTC", visit)
    made = await visit.api.call("POST", f"/jobs/{job_id}/backfill", body)
    return done(f"/console/runs?q=job:{job_id}+trigger:backfill", "runs-created" if made["count"] else "no-runs-created")  # fmt: skip


def _post(path: str, perform: Any) -> Route:
    return Route(f"/jobs/{{job_id}}/{path}", action(perform), methods=["POST"])


ROUTES = [
    _post("run", run_now),
    _post("pause", pause),
    _post("resume", resume),
    _post("disable", disable),
    _post("skip-next", skip_next),
    _post("undo-skip", undo_skip),
    _post("cutover", cutover),
    _post("delete", archive),
    _post("restore", restore),
    _post("unarchive", unarchive),
    _post("revert", revert),
    _post("undo-edit", undo_edit),
    _post("mute", mute),
    _post("unmute", unmute),
    Route("/jobs/{job_id}/backfill", review_backfill),
    _post("backfill", backfill),
]
