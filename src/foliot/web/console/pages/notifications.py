"""Settings of notifications: channels with a test, rules, the log of deliveries with replay."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from foliot.web.console.api import ApiRefusal, read_number
from foliot.web.console.pages.form_routes import form_route, items_of, words
from foliot.web.console.pages.incidents import EVENTS
from foliot.web.console.pages.settings import AT, render_section, section
from foliot.web.console.site import Context, Visit, action, done

RULE_EVENTS = [name for name in EVENTS if name not in ("test", "digest")]


@dataclass(frozen=True, slots=True)
class ConfigField:
    """A field of a channel's config: `kind` is text, list, number, secret or the options of a choice."""

    name: str
    label: str
    kind: str | tuple[str, ...] = "text"
    hint: str = ""
    required: bool = False

    def shown(self, config: dict[str, Any]) -> str:
        value = config.get(self.name)
        if value is None:
            return ""
        if self.kind == "secret":
            return str(value["secret"])
        return ", ".join(value) if isinstance(value, list) else str(value)

    def read(self, raw: str) -> Any:
        match self.kind:
            case "secret":
                return {"secret": raw}
            case "list":
                return words(raw)
            case "number":
                return read_number(self.name, raw)
            case _:
                return raw


KINDS: dict[str, tuple[str, tuple[ConfigField, ...]]] = {
    "email": (
        "E-mail",
        (
            ConfigField("to", "Recipients", "list", "separated by commas", required=True),
            ConfigField("sender", "Sender", hint="Such as Foliot <foliot@example.com>"),
            ConfigField("host", "Mail server", hint="Empty: the mail server of the installation"),
            ConfigField("port", "Port", "number"),
            ConfigField("security", "Security", ("starttls", "tls", "none")),
            ConfigField("username", "User name"),
            ConfigField("password", "Password: name of a secret", "secret"),
        ),
    ),
    "slack": (
        "Slack",
        (
            ConfigField(
                "webhook_url", "Webhook address: name of a secret", "secret", "Or a token and a channel"
            ),
            ConfigField("token", "Token: name of a secret", "secret"),
            ConfigField("channel", "Channel", hint="Such as #ops"),
            ConfigField("api_url", "API address"),
        ),
    ),
    "whatsapp": (
        "WhatsApp",
        (
            ConfigField("to", "Phone numbers", "list", "separated by commas", required=True),
            ConfigField("token", "Token: name of a secret", "secret", required=True),
            ConfigField("phone_number_id", "Phone number id", required=True),
            ConfigField("template", "Template", hint="With two parameters: title and text"),
            ConfigField("language", "Language of the template"),
            ConfigField("api_url", "API address"),
        ),
    ),
    "webhook": (
        "Webhook",
        (
            ConfigField("url", "Address", required=True),
            ConfigField("secret", "Signing secret: its name", "secret", "Signed by Standard Webhooks"),
            ConfigField(
                "old_secret", "Old signing secret: its name", "secret", "While receivers change over"
            ),
            ConfigField("events", "Also these events", "list", "run.failed, job.*, or * for all"),
        ),
    ),
    "room": ("Room", (ConfigField("room", "Key or id of the room", required=True),)),
    "apprise": (
        "Apprise",
        (ConfigField("url", "Address: name of a secret", "secret", "Such as discord://…", required=True),),
    ),
}


# ---- channels


@section("channels")
async def channels(visit: Visit) -> Context:
    return {"channels": await items_of(visit, "/channels"), "kinds": KINDS}


@section("channels", "settings_channel.html", "editor")
async def new_channel(visit: Visit) -> Context:
    kind = visit.param("kind")
    config = {"kind": kind if kind in KINDS else "email"}
    return await _channel_form(
        visit, {"id": None, "name": "", "enabled": True, "timezone": None, "config": config}
    )


@section("channels", "settings_channel.html")
async def channel(visit: Visit) -> Context:
    channel_id = visit.path["channel_id"]
    found = await visit.api.get(f"/channels/{channel_id}")
    form, sent = await asyncio.gather(
        _channel_form(visit, found), items_of(visit, "/deliveries", channel_id=channel_id, limit=20)
    )
    test = next((each for each in sent or () if each["id"] == visit.param("test")), None)
    waits = test is not None and not (test["ended_at"] or test["last_answer"] or test["last_error"])
    return {**form, "deliveries": sent or [], "test": test, "test_waits": waits}


async def _channel_form(visit: Visit, found: dict[str, Any], problems: list[str] | None = None) -> Context:
    secrets, rooms = await asyncio.gather(items_of(visit, "/secrets"), items_of(visit, "/rooms"))
    label, fields = KINDS[found["config"]["kind"]]
    return {
        "channel": found,
        "kinds": KINDS,
        "kind_label": label,
        "fields": [(each, each.shown(found["config"])) for each in fields],
        "secret_names": [each["name"] for each in secrets or ()],
        "room_keys": [each["key"] or each["id"] for each in rooms or ()],
        "problems": problems or [],
        "deliveries": [],
        "test": None,
        "test_waits": False,
    }


async def save_channel(visit: Visit) -> Response:
    """Create the channel, or replace it where the address names one. What was typed comes back with a refusal."""
    channel_id, kind = visit.path.get("channel_id"), visit.field("kind")
    _, fields = KINDS.get(kind, KINDS["email"])
    config: dict[str, Any] = {"kind": kind if kind in KINDS else "email"}
    typed = {each: visit.field(f"config-{each.name}") for each in fields}
    body: dict[str, Any] = {
        "name": visit.field("name"),
        "enabled": visit.field("enabled", "yes") == "yes",
        "config": config,
    }
    body["timezone"] = visit.field("timezone") or None
    try:
        config |= {each.name: each.read(raw) for each, raw in typed.items() if raw}
        path = f"/channels/{channel_id}" if channel_id else "/channels"
        made = await visit.api.call("PUT" if channel_id else "POST", path, body)
    except ApiRefusal as refusal:
        form = await _channel_form(visit, {**body, "id": channel_id, "disabled_at": None}, refusal.sentences)
        form["fields"] = list(typed.items())
        return await render_section(visit, "channels", "settings_channel.html", form, refusal.status)
    return done(f"{AT}/channels/{made['id']}", "channel-saved")


async def test_channel(visit: Visit) -> Response:
    """Send a test message and show its delivery; the page looks again until the peer has answered."""
    channel_id = visit.path["channel_id"]
    sent = await visit.api.call("POST", f"/channels/{channel_id}/test")
    return done(f"{AT}/channels/{channel_id}?test={sent['id']}", "test-sent")


# ---- rules


@section("rules")
async def rules(visit: Visit) -> Context:
    found, known = await asyncio.gather(items_of(visit, "/notification-rules"), items_of(visit, "/channels"))
    names = {each["id"]: each["name"] for each in known or ()}
    return {"rules": found, "channel_names": names, "events": EVENTS}


EMPTY_RULE: dict[str, Any] = {
    "id": None,
    "name": "",
    "events": ["run_failed", "recovered"],
    "channels": [],
    "scope": {"jobs": [], "tags": [], "queues": [], "q": ""},
    "recipients": [],
    "after_n": 1,
    "cooldown": None,
    "quiet_hours": None,
    "attachments": [],
    "enabled": True,
}


@section("rules", "settings_rule.html", "editor")
async def new_rule(visit: Visit) -> Context:
    return await _rule_form(visit, EMPTY_RULE)


@section("rules", "settings_rule.html")
async def rule(visit: Visit) -> Context:
    return await _rule_form(visit, await visit.api.get(f"/notification-rules/{visit.path['rule_id']}"))


async def _rule_form(visit: Visit, found: dict[str, Any], problems: list[str] | None = None) -> Context:
    return {
        "rule": found,
        "channels": await items_of(visit, "/channels") or [],
        "rule_events": RULE_EVENTS,
        "events": EVENTS,
        "problems": problems or [],
    }


async def save_rule(visit: Visit) -> Response:
    rule_id = visit.path.get("rule_id")
    body: dict[str, Any] = {
        "name": visit.field("name"),
        "events": _ticked(visit, "event-"),
        "channels": _ticked(visit, "channel-"),
        "scope": {
            **{name: words(visit.field(name)) for name in ("jobs", "tags", "queues")},
            "q": visit.field("q"),
        },
        "recipients": words(visit.field("recipients")),
        "attachments": words(visit.field("attachments")),
        "cooldown": visit.field("cooldown") or None,
        "quiet_hours": None,
        "after_n": visit.field("after_n"),
        "enabled": bool(visit.field("enabled")),
    }
    if visit.field("quiet_start") or visit.field("quiet_end"):
        zone = visit.field("quiet_zone") or None
        quiet = {"start": visit.field("quiet_start"), "end": visit.field("quiet_end"), "timezone": zone}
        body["quiet_hours"] = quiet
    try:
        body["after_n"] = read_number("after_n", visit.field("after_n") or "1")
        path = f"/notification-rules/{rule_id}" if rule_id else "/notification-rules"
        await visit.api.call("PUT" if rule_id else "POST", path, body)
    except ApiRefusal as refusal:
        form = await _rule_form(visit, {**body, "id": rule_id}, refusal.sentences)
        return await render_section(visit, "rules", "settings_rule.html", form, refusal.status)
    return done(f"{AT}/rules", "rule-saved")


def _ticked(visit: Visit, prefix: str) -> list[str]:
    """Names of the ticked boxes that begin so."""
    return [name.removeprefix(prefix) for name in visit.form or () if name.startswith(prefix)]


# ---- deliveries


@section("deliveries")
async def deliveries(visit: Visit) -> Context:
    state = visit.param("state") if visit.param("state") in ("waiting", "delivered", "dead") else ""
    found = await visit.api.get(
        "/deliveries",
        state=state or None,
        channel_id=visit.param("channel") or None,
        cursor=visit.param("cursor") or None,
        limit=50,
    )
    return {
        "deliveries": found["items"],
        "next_cursor": found["next_cursor"],
        "state": state,
        "channel": visit.param("channel"),
    }


CHANNEL, RULE = "/channels/{channel_id}", "/notification-rules/{rule_id}"
ROUTES = [
    Route("/settings/channels", channels),
    Route("/settings/channels/new", new_channel),
    Route("/settings/channels/new", action(save_channel), methods=["POST"]),
    Route("/settings/channels/{channel_id}", channel),
    Route("/settings/channels/{channel_id}", action(save_channel), methods=["POST"]),
    Route("/settings/channels/{channel_id}/test", action(test_channel), methods=["POST"]),
    *(
        form_route(
            f"/settings{CHANNEL}/{verb}", f"POST {CHANNEL}/{verb}", f"/console/settings{CHANNEL}", notice
        )
        for verb, notice in (("enable", "channel-enabled"), ("disable", "channel-disabled"))
    ),
    form_route(f"/settings{CHANNEL}/delete", f"DELETE {CHANNEL}", f"{AT}/channels", "channel-deleted"),
    Route("/settings/rules", rules),
    Route("/settings/rules/new", new_rule),
    Route("/settings/rules/new", action(save_rule), methods=["POST"]),
    Route("/settings/rules/{rule_id}", rule),
    Route("/settings/rules/{rule_id}", action(save_rule), methods=["POST"]),
    form_route("/settings/rules/{rule_id}/delete", f"DELETE {RULE}", f"{AT}/rules", "rule-deleted"),
    Route("/settings/deliveries", deliveries),
    form_route(
        "/settings/deliveries/{delivery_id}/replay",
        "POST /deliveries/{delivery_id}/replay",
        f"{AT}/deliveries",
        "delivery-replayed",
    ),
]
