"""Settings: members, keys, secrets by name, limits, defaults, job types, workspaces. Channels and rules: `notifications.py`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from foliot.web.console.api import ApiRefusal, field_refusal, read_json, read_number
from foliot.web.console.notices import UNDO_FIELDS
from foliot.web.console.pages.form_routes import form_route, items_of, words
from foliot.web.console.site import Context, Visit, action, done, page, render, shell_of
from foliot.wire.identity import Quotas

AT = "/console/settings"
SECTIONS = (
    ("members", "Members"),
    ("keys", "Keys"),
    ("channels", "Channels"),
    ("rules", "Notification rules"),
    ("deliveries", "Deliveries"),
    ("webhooks", "Webhooks"),
    ("secrets", "Secrets"),
    ("hosts", "Hosts"),
    ("limits", "Limits"),
    ("defaults", "Defaults"),
    ("types", "Job types"),
    ("workspaces", "Workspaces"),
)
EXPIRIES = ((7, "in 7 days"), (30, "in 30 days"), (90, "in 90 days"), (365, "in one year"), (0, "never"))
ROLES = ("viewer", "operator", "editor", "admin")
QUOTAS = tuple(Quotas.model_fields)
Gather = Callable[[Visit], Awaitable[Context]]


def section(
    name: str, template: str | None = None, least: str = "viewer"
) -> Callable[[Gather], Callable[[Request], Awaitable[Response]]]:
    """A page of the settings, with the list of sections beside it."""

    def decorate(gather: Gather) -> Callable[[Request], Awaitable[Response]]:
        @page(template or f"settings_{name}.html", "settings", least)
        async def shown(visit: Visit) -> Context:
            return {"section": name, "sections": SECTIONS, **await gather(visit)}

        return shown

    return decorate


async def render_section(
    visit: Visit, name: str, template: str, found: Context, status: int = 200
) -> Response:
    """A section in the answer to a form: a problem with what was typed, or a secret that is shown once."""
    shell = await shell_of(visit)
    context = {**shell, "active": "settings", "section": name, "sections": SECTIONS, **found}
    return render(visit, template, context, status)


# ---- members


@section("members")
async def members(visit: Visit) -> Context:
    shown = visit.param("removed") == "yes"
    found = await items_of(visit, "/members", active="false" if shown else "true")
    return {"members": found or [], "roles": ROLES, "removed": shown}


@section("members", "settings_member.html")
async def member(visit: Visit) -> Context:
    return await _member(visit)


async def _member(visit: Visit) -> Context:
    """One member: role, address, keys, jobs, and how to remove it."""
    member_id = visit.path["member_id"]
    found, keys, jobs, others = await asyncio.gather(
        visit.api.get(f"/members/{member_id}"),
        items_of(visit, "/keys", principal=member_id, revoked="false"),
        visit.api.get("/jobs", q=f"owner:{member_id}", limit=6),
        items_of(visit, "/members", active="true"),
    )
    preview = await visit.api.answer(
        "DELETE", f"/members/{member_id}", params={"dry_run": "true", "jobs": "archive"}
    )
    return {
        "member": found,
        "keys": keys or [],
        "jobs": jobs["items"],
        "removal": preview.data if preview.is_success else None,
        "others": [each for each in others or () if each["id"] != member_id],
        "roles": ROLES,
        "invite": None,
    }


async def invite_member(visit: Visit) -> Response:
    """Show the link of a new invite once, in the answer itself."""
    made = await visit.api.call("POST", f"/members/{visit.path['member_id']}/invite", {})
    root = visit.request.app.state.api.state.root_path
    origin = visit.request.headers.get("origin", "")  # of this site: `action` checked it
    found = {**await _member(visit), "invite": {**made, "link": f"{origin}{root}{made['path']}"}}
    return await render_section(visit, "members", "settings_member.html", found)


async def change_member(visit: Visit) -> Response:
    member_id = visit.path["member_id"]
    body = {"name": visit.field("name"), "role": visit.field("role"), "email": visit.field("email") or None}
    await visit.api.call("PATCH", f"/members/{member_id}", body)
    return done(f"{AT}/members/{member_id}", "member-saved")


async def remove_member(visit: Visit) -> Response:
    params = {
        "jobs": visit.field("jobs"),
        "to": visit.field("to") if visit.field("jobs") == "hand_over" else "",
    }
    await visit.api.call("DELETE", f"/members/{visit.path['member_id']}", params=params)
    return done(f"{AT}/members", "member-removed", visit.path["member_id"])


async def restore_member(visit: Visit) -> Response:
    member_id = visit.path["member_id"]
    await visit.api.call("PATCH", f"/members/{member_id}", {"active": True})
    return done(f"{AT}/members/{member_id}", "member-saved")


# ---- keys


@section("keys")
async def keys(visit: Visit) -> Context:
    return await _keys(visit)


async def _keys(visit: Visit) -> Context:
    revoked = visit.param("revoked") == "yes"
    found, known = await asyncio.gather(
        items_of(visit, "/keys", revoked="true" if revoked else "false"),
        items_of(visit, "/members", active="true"),
    )
    return {
        "keys": found or [],
        "revoked": revoked,
        "members": known or [],
        "expiries": EXPIRIES,
        "made_key": None,
        "chosen": visit.param("for"),
        "problems": [],
    }


async def create_key(visit: Visit) -> Response:
    """Show the new key once, in the answer itself; it is stored nowhere else."""
    body: dict[str, Any] = {"name": visit.field("name") or "Console"}
    if scope := visit.field("scope"):
        body["scopes"] = [scope]
    if principal := visit.field("principal"):
        body["principal"] = principal
    made, problems = None, []
    try:
        if days := read_number("expires", visit.field("expires") or "0"):
            body["expires_at"] = (visit.reader.now + timedelta(days=min(days, 36_500))).isoformat()
        body |= {
            name: read_number(name, raw)
            for name in ("max_jobs", "min_interval")
            if (raw := visit.field(name))
        }
        made = await visit.api.call("POST", "/keys", body)
    except ApiRefusal as refusal:
        problems = refusal.sentences
    found = {**await _keys(visit), "made_key": made, "problems": problems}
    return await render_section(visit, "keys", "settings_keys.html", found, 422 if problems else 200)


async def revoke_key(visit: Visit) -> Response:
    params = {"made_too": "true" if visit.field("made_too") else ""}
    await visit.api.call("POST", f"/keys/{visit.path['key_id']}/revoke", params=params)
    return done(f"{AT}/keys", "key-revoked")


# ---- secrets


@section("secrets")
async def secrets(visit: Visit) -> Context:
    found, known, master = await asyncio.gather(
        items_of(visit, "/secrets"), items_of(visit, "/members"), visit.api.answer("GET", "/master-key")
    )
    return {
        "secrets": found,
        "names": {each["id"]: each["name"] for each in known or ()},
        "agents": [each for each in known or () if each["kind"] == "agent" and each["active"]],
        "master": master.data if master.is_success else None,
    }


async def set_secret(visit: Visit) -> Response:
    """Create the secret, or give it a new value. The value is in no answer and no address."""
    name, value = visit.field("name"), (visit.form or {}).get("value", "")
    known = await visit.api.get("/secrets", name=name)
    if known["items"]:
        await visit.api.call("PUT", f"/secrets/{known['items'][0]['id']}", {"value": value})
    else:
        agents = [each[6:] for each in visit.form or () if each.startswith("agent-")]
        await visit.api.call("POST", "/secrets", {"name": name, "value": value, "agents": agents})
    return done(f"{AT}/secrets", "secret-saved")


async def delete_secret(visit: Visit) -> Response:
    params = {"force": "true" if visit.field("force") else ""}
    await visit.api.call("DELETE", f"/secrets/{visit.path['secret_id']}", params=params)
    return done(f"{AT}/secrets", "secret-deleted")


# ---- limits, defaults, job types


@section("limits")
async def limits(visit: Visit) -> Context:
    found, used, me = await asyncio.gather(
        items_of(visit, "/limits", limit=None),
        visit.api.get("/usage", month=visit.param("month") or None),
        visit.api.get("/me"),
    )
    return {"limits": found, "quotas": QUOTAS, "usage": used, "me": me}


async def set_budget(visit: Visit) -> Response:
    """Set or remove one budget of the workspace; the others stay."""
    named = visit.field("unit"), visit.field("period") or "month"
    now = (await visit.api.get("/budgets"))["items"]
    fields = ("unit", "amount", "period", "warn_at", "action")
    kept = [{name: each[name] for name in fields} for each in now if (each["unit"], each["period"]) != named]
    if amount := visit.field("amount"):
        new: dict[str, Any] = {"unit": named[0], "period": named[1], "amount": amount}
        new["action"] = visit.field("action") or "pause"
        if "warn_at" in (visit.form or {}):  # of a budget that comes back
            new["warn_at"] = read_json("warn_at", visit.field("warn_at"))
        kept.append(new)
    await visit.api.call("PUT", "/budgets", {"items": kept})
    if amount:
        return done(f"{AT}/limits", "budget-saved")
    gone = [each for each in now if (each["unit"], each["period"]) == named]
    values = [
        json.dumps(each[name]) if name == "warn_at" else each[name]
        for each in gone
        for name in UNDO_FIELDS["budget-removed"]
    ]
    return done(f"{AT}/limits", "budget-removed", values=values)


async def set_limit(visit: Visit) -> Response:
    body: dict[str, Any] = {"cap": read_number("cap", visit.field("cap"))}
    if key := visit.field("key"):
        body["key"] = key
    await visit.api.call("PUT", "/limits", body)
    return done(f"{AT}/limits", "limit-saved")


async def remove_limit(visit: Visit) -> Response:
    key = visit.field("key")
    now = await items_of(visit, "/limits", limit=None) or ()
    await visit.api.call("DELETE", "/limits", params={"key": key})
    caps = [str(each["cap"]) for each in now if (each["key"] or "") == key]
    return done(f"{AT}/limits", "limit-removed", values=[key, *caps])


@section("defaults")
async def defaults(visit: Visit) -> Context:
    return {"defaults": await visit.api.get("/defaults"), "problems": [], "typed": {}}


async def change_defaults(visit: Visit) -> Response:
    """Change the fields that were typed in; `reset` gives a field back to the installation."""
    now = await visit.api.get("/defaults")
    try:
        await visit.api.call("PATCH", "/defaults", _default_changes(visit, now))
    except ApiRefusal as refusal:
        found = {"defaults": now, "problems": refusal.sentences, "typed": visit.form or {}}
        return await render_section(visit, "defaults", "settings_defaults.html", found, 422)
    return done(f"{AT}/defaults", "defaults-saved")


def _default_changes(visit: Visit, now: dict[str, Any]) -> dict[str, Any]:
    if reset := visit.field("reset"):
        return {reset: None}
    changes: dict[str, Any] = {}
    if (timeout := visit.field("timeout")) != now["timeout"]:
        changes["timeout"] = timeout
    retry = {"max": read_number("retries", visit.field("retries")), "delays": words(visit.field("delays"))}
    if retry != {name: now["retry"][name] for name in retry}:
        changes["retry"] = {**now["retry"], **retry}
    keep = {"keep": visit.field("keep"), "keep_last": read_number("keep_last", visit.field("keep_last"))}
    if keep != {name: now["retention"][name] for name in keep}:
        changes["retention"] = {**now["retention"], **keep}
    if (zone := visit.field("timezone")) != now["timezone"]:
        changes["timezone"] = zone
    return changes


@section("types")
async def types(visit: Visit) -> Context:
    return {"types": (await visit.api.get("/job-types"))["items"]}


async def switch_type(visit: Visit) -> Response:
    name, turns_on = visit.path["job_type"], visit.field("enabled") == "yes"
    known = (await visit.api.get("/job-types"))["items"]
    reason = next((each["disabled_reason"] for each in known if each["name"] == name), None)
    body = {"enabled": turns_on, "reason": visit.field("reason")}
    await visit.api.call("PUT", f"/job-types/{name}", body)
    if turns_on:
        return done(f"{AT}/types", "type-enabled", name, ["no", reason or ""])
    return done(f"{AT}/types", "type-disabled", name, ["yes"])


# ---- workspaces, for administrators of the installation


@section("workspaces")
async def workspaces(visit: Visit) -> Context:
    archived = visit.param("archived") == "yes"
    found = await items_of(visit, "/workspaces", archived="true" if archived else "false")
    if found is None:
        raise ApiRefusal(403, {"detail": "Workspaces are for administrators of the installation."})
    return {"found": found, "archived": archived}


@section("workspaces", "settings_workspace.html")
async def workspace(visit: Visit) -> Context:
    return {"found": await visit.api.get(f"/workspaces/{visit.path['slug']}"), "quotas": QUOTAS}


async def create_workspace(visit: Visit) -> Response:
    body = {name: value for name in ("slug", "name", "default_timezone") if (value := visit.field(name))}
    await visit.api.call("POST", "/workspaces", body)
    return done(f"{AT}/workspaces", "workspace-created")


async def change_workspace(visit: Visit) -> Response:
    slug = visit.path["slug"]
    typed = {name: visit.field(name) for name in QUOTAS}
    body = {
        "name": visit.field("name"),
        "default_timezone": visit.field("default_timezone"),
        "quotas": {name: read_number(name, value) if value else None for name, value in typed.items()},
    }
    await visit.api.call("PATCH", f"/workspaces/{slug}", body)
    return done(f"{AT}/workspaces/{slug}", "workspace-saved")


async def archive_workspace(visit: Visit) -> Response:
    slug = visit.path["slug"]
    if visit.field("confirm") != slug:
        refused: ApiRefusal = field_refusal("confirm", "Write the slug of the workspace to archive it.")
        raise refused
    await visit.api.call("DELETE", f"/workspaces/{slug}")
    return done(f"{AT}/workspaces", "workspace-archived")


def _form(path: str, perform: Callable[[Visit], Awaitable[Response]]) -> Route:
    return Route(f"/settings/{path}", action(perform), methods=["POST"])


ROUTES = [
    Route("/settings", members),
    Route("/settings/members", members),
    form_route(
        "/settings/members/create",
        "POST /members",
        f"{AT}/members",
        "member-added",
        "name",
        "kind",
        "role",
        "email",
    ),
    Route("/settings/members/{member_id}", member),
    _form("members/{member_id}", change_member),
    _form("members/{member_id}/invite", invite_member),
    _form("members/{member_id}/remove", remove_member),
    _form("members/{member_id}/restore", restore_member),
    Route("/settings/keys", keys),
    _form("keys", create_key),
    _form("keys/{key_id}/revoke", revoke_key),
    Route("/settings/secrets", secrets),
    _form("secrets", set_secret),
    _form("secrets/{secret_id}/delete", delete_secret),
    Route("/settings/limits", limits),
    _form("limits", set_limit),
    _form("limits/remove", remove_limit),
    _form("budgets", set_budget),
    Route("/settings/defaults", defaults),
    _form("defaults", change_defaults),
    Route("/settings/types", types),
    _form("types/{job_type}", switch_type),
    Route("/settings/workspaces", workspaces),
    _form("workspaces/create", create_workspace),
    Route("/settings/workspaces/{slug}", workspace),
    _form("workspaces/{slug}", change_workspace),
    _form("workspaces/{slug}/archive", archive_workspace),
]
