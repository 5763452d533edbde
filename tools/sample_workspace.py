"""A workspace with a bit of everything, made through the API: jobs and runs of each state, an incident, a freeze, a room, members.

Tests of the console and `./dev screenshots` fill a server with it. Every text that a user may write passes through `text`, so that
a test can replace all of them by hostile ones.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from foliot.clock import SystemClock

FUNCTIONS = Path(__file__).with_name(
    "sample_functions.py"
)  # copy it into the working directory of the server
WITHIN = 60.0
ABOUT = {
    "heartbeat probe": "Asks the shop whether it is alive.",
    "nightly invoices": "Writes the invoices of the day.",
    "sync customers": "Copies new customers from the CRM to db-2. Runbook: wiki/sync-customers",
    "copy warehouse": "Copies the tables of the shop to the warehouse.",
    "weekly report": "Sends the figures of the week to sales.",
    "clean up carts": "Removes carts that nobody touched for a month.",
    "search index": "Adds changed products to the search index.",
    "send invoices": "Sends the invoices as soon as they are written.",
}
# For pictures: a job and the hours before now whose planned times are run.
PAST = {
    "nightly invoices": 24 * 50,
    "sync customers": 22,
    "clean up carts": 10,
    "search index": 6,
    "heartbeat probe": 3,
}
FAILING = timedelta(hours=3)  # for so long one of them fails
Text = Callable[[str, int], str]  # a plain text and the longest that its field takes -> the text to write


def plain_text(text: str, longest: int = 0) -> str:
    return text


class Refusal(Exception):
    """The API answered with a 4xx or 5xx."""


@dataclass(frozen=True, slots=True)
class ApiClient:
    base: str  # http://127.0.0.1:8700
    key: str
    workspace: str | None = None
    sent: list[tuple[str, str, Any]] = field(default_factory=list, compare=False)  # method, path and body

    def call(self, method: str, path: str, body: Any = None) -> Any:
        self.sent.append((method, path, body))
        headers = {"Authorization": f"Bearer {self.key}"}
        if self.workspace:
            headers["Foliot-Workspace"] = self.workspace
        if body is not None:
            headers["Content-Type"] = "application/json"
        sent = None if body is None else json.dumps(body).encode()
        request = Request(f"{self.base}/api/v1{path}", sent, headers, method=method)  # noqa: S310  # our own server
        try:
            with urlopen(request, timeout=30) as answer:  # noqa: S310
                raw = answer.read()
        except HTTPError as error:
            raise Refusal(f"{method} {path}: {error.code} {error.read().decode()[:600]}") from None
        return json.loads(raw) if raw else None

    def post(self, path: str, body: Any = None) -> Any:
        return self.call("POST", path, {} if body is None else body)

    def items(self, path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.call("GET", path)["items"]
        return found


@dataclass(slots=True)
class Samples:
    """Ids and names by the name of the route parameter that takes them, and a key for each role."""

    ids: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, str] = field(default_factory=dict)
    runs: dict[str, str] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class SampleMaker:
    """Fills one workspace. The methods are called in order; each part uses what the earlier ones made."""

    api: ApiClient
    text: Text = plain_text
    has_past: bool = False  # run planned times of hours ago, as pictures need them
    made: Samples = field(default_factory=Samples)

    def fill(self) -> Samples:
        self.make_members()
        self.make_places()
        self.make_jobs()
        if self.has_past:
            self.make_past()
        self.make_dependent()
        self.make_runs()
        self.make_states()
        self.make_host()
        self.make_records()
        return self.made

    def make_members(self) -> None:
        """A key for each role; the members of this workspace are found by them."""
        self.made.ids |= {"slug": self.api.workspace or "default", "kind": "csv", "job_type": "http"}
        for role, name in (("viewer", "Vera"), ("operator", "Omar"), ("editor", "Elena"), ("admin", "Ada")):
            body = {"kind": "user", "name": self.text(name, 100), "role": role}
            member = self.api.post("/members", body | {"email": f"{role}@example.com"})
            key = self.api.post(
                "/keys", {"name": self.text(f"laptop of {name}", 100), "principal": member["id"]}
            )
            self.made.keys[role] = key["secret"]
            self.made.ids |= {"member_id": member["id"], "key_id": key["id"]}
        agent = {"kind": "agent", "name": self.text("assistant", 100), "role": "editor"}
        self.made.ids["agent_id"] = self.api.post("/members", agent)["id"]

    def make_places(self) -> None:
        """What jobs refer to: a room, calendars, a channel with a rule, a secret, a limit."""
        api, text, ids = self.api, self.text, self.made.ids
        room = {"name": text("Billing", 100), "key": "billing", "agents": [ids["agent_id"]]}
        ids["room_id"] = api.post("/rooms", room)["id"]
        said = {"name": text("of the assistant", 100), "principal": ids["agent_id"]}
        agent = ApiClient(api.base, api.post("/keys", said)["secret"])
        for by, words in (
            (agent, "The invoices of October are sent."),
            (api, "Thank you. Remind me of November's on the last Friday, at nine."),
            (agent, "I will, on Friday 27 November at 09:00 in Madrid."),
        ):
            by.post(f"/rooms/{ids['room_id']}/messages", {"text": text(words, 4_000)})
        holiday = {"kind": "absolute", "start": "2030-12-24T23:00:00Z", "end": "2030-12-26T23:00:00Z"}
        nights = {"kind": "weekly", "days": ["sat", "sun"], "start": "00:00", "end": "00:00"}
        for name, rule in (("holidays", holiday), ("weekends", nights)):
            body = {"name": text(name, 100), "kind": "blackout", "timezone": "Europe/Madrid", "rules": [rule]}
            ids["calendar_id"] = api.post("/calendars", body)["id"]
        channel = {"name": text("room of billing", 100), "config": {"kind": "room", "room": ids["room_id"]}}
        ids["channel_id"] = api.post("/channels", channel)["id"]
        rule = {
            "name": text("failures", 100),
            "events": ["run_failed", "recovered"],
            "channels": [ids["channel_id"]],
        }
        ids["rule_id"] = api.post("/notification-rules", rule)["id"]
        ids["secret_id"] = api.post("/secrets", {"name": "crm-token", "value": "Bearer 3q2-7wEAAAA"})["id"]
        api.call("PUT", "/limits", {"key": text("warehouse", 100), "cap": 2})

    def make_job(self, name: str, words: str | None, call: str | None = None, **more: Any) -> str:
        """Store a job that calls a sample function, or this server's own health page."""
        if call is None:
            work = {"type": "http", "config": {"url": f"{self.api.base}/healthz", "method": "GET"}}
        else:
            work = {"type": "python", "config": {"call": f"sample_functions:{call}"}}
        schedule = (
            {"kind": "manual"} if words is None else {"words": words, "timezone": more.pop("zone", "UTC")}
        )
        tags = [self.text(tag, 60) for tag in more.pop("tags", ())]
        body = {
            "name": self.text(name, 200),
            "description": self.text(ABOUT.get(name, ""), 2_000),
            "schedule": schedule,
            "tags": tags,
            "retry": {"max": 0, "strategy": "none"},
            "breaker": {"after": 1_000, "action": "pause"},
            **work,
            **more,
        }
        made: str = self.api.post("/jobs", body)["id"]
        self.made.jobs[name] = made
        return made

    def make_jobs(self) -> None:
        text = self.text
        self.make_job("heartbeat probe", "every 2 seconds", tags=["infra"])
        self.make_job("nightly invoices", "every weekday at 2:30", "report", zone="Europe/Paris", tags=["billing"],
                      payload={"lines": 600, "to": text("billing@example.com", 2_000), "note": text("all sent", 2_000),
                               "extra": [text("the last line", 2_000)],
                               "files": {text("summary.html", 150).replace("/", "|"): text("<p>Summary</p>", 2_000)}},
                      calendars=[self.made.ids["calendar_id"]])  # fmt: skip
        self.make_job("sync customers", "every hour", "fail", tags=["billing", "sync"],
                      payload={"error": text("db-2 refused the connection", 1_000)})  # fmt: skip
        self.make_job(
            "copy warehouse",
            "every 6 hours",
            "last",
            timeout="1h",
            payload={"note": text("table orders", 200)},
        )
        self.make_job(
            "weekly report", "every monday at 9am", zone="America/Argentina/Buenos_Aires", tags=["reports"]
        )
        self.make_job("clean up carts", "every 15 minutes", tags=["shop"])
        self.make_job("search index", "every 10 minutes", tags=["shop"], queue="search")
        self.make_job("old import", "every day at 4am", tags=["shop"])
        self.make_job("newsletter", "every friday at 10:00", tags=["people"])
        self.make_job("remind Ana", "in 2 hours", tags=["people"])

    def make_dependent(self) -> None:
        upstream = [{"job": self.made.jobs["nightly invoices"], "on": "success"}]
        self.make_job("send invoices", None, tags=["billing"], depends_on=upstream)

    def make_past(self) -> None:
        """Run planned times of the last hours, so that charts and strips have a shape. One job fails since a while ago."""
        api, jobs, now = self.api, self.made.jobs, SystemClock().now()
        for name, minutes in (("heartbeat probe", 5), ("search index", 10), ("clean up carts", 15)):
            cron = {"kind": "cron", "expr": f"*/{minutes} * * * *", "timezone": "UTC"}
            api.call("PATCH", f"/jobs/{jobs[name]}", {"schedule": cron})
        owners = {each["name"]: each["id"] for each in api.items("/members")}
        for name, owner in (
            ("nightly invoices", "Elena"),
            ("sync customers", "Omar"),
            ("search index", "Elena"),
        ):
            api.call("PATCH", f"/jobs/{jobs[name]}", {"owner": owners[owner]})
        payload = {"error": "db-2 refused the connection", "until": (now - FAILING).isoformat()}
        api.call("PATCH", f"/jobs/{jobs['sync customers']}", {"payload": payload})
        for name, hours in PAST.items():
            span = {"from": (now - timedelta(hours=hours)).isoformat(), "to": now.isoformat()}
            api.post(f"/jobs/{jobs[name]}/backfill", span)
        self.wait(lambda: not self.open_runs(), "the end of the past runs", within=600)

    def open_runs(self) -> int:
        now = self.api.call("GET", "/stats")["now"]
        return int(now["ready"] + now["waiting"] + now["running"])

    def make_runs(self) -> None:
        for name in ("nightly invoices", "sync customers", "copy warehouse"):
            run = self.api.post(f"/jobs/{self.made.jobs[name]}/run")
            self.made.runs[name] = run["id"]
        self.wait_for_run("nightly invoices", "succeeded")
        self.wait_for_run("sync customers", "failed")
        self.wait_for_run("copy warehouse", "running")
        ids = self.made.ids
        ids |= {"job_id": self.made.jobs["nightly invoices"], "run_id": self.made.runs["nightly invoices"]}
        names = [each["name"] for each in self.api.items(f"/runs/{ids['run_id']}/artifacts")]
        ids["name"] = next(name for name in names if name == "invoices.csv")
        self.made.runs["waiting"] = self.api.post(f"/jobs/{self.made.jobs['search index']}/run")["id"]

    def wait_for_run(self, name: str, status: str) -> None:
        self.wait(
            lambda: self.api.call("GET", f"/runs/{self.made.runs[name]}")["status"] == status,
            f"{name} {status}",
        )

    def make_states(self) -> None:
        """A job in each state that people bring about."""
        jobs, api, text = self.made.jobs, self.api, self.text
        api.post(f"/jobs/{jobs['newsletter']}/pause", {"reason": text("until the new design is ready", 500)})
        api.post(f"/jobs/{jobs['old import']}/disable", {"reason": text("replaced by sync customers", 500)})
        api.post(f"/jobs/{jobs['weekly report']}/skip-next", {"reason": text("a holiday", 500)})
        note = {"description": text("Sends each customer the invoice of the day.", 2_000)}
        api.call("PATCH", f"/jobs/{jobs['nightly invoices']}", note)
        archived = self.make_job("first try", "every day at 5am")
        api.call("DELETE", f"/jobs/{archived}")

    def make_host(self) -> None:
        """A host with a server, as one that registers; and an address of a job that others call."""
        api, ids, text = self.api, self.made.ids, self.text
        worker = api.post("/members", {"kind": "service", "name": text("hosts", 100), "role": "viewer"})
        key = api.post("/keys", {"name": text("of h1", 100), "principal": worker["id"], "scopes": ["worker"]})
        here = {"name": "h1", "labels": {"region": text("eu", 200)}, "instances": ["pvp"]}
        hello = {"name": "h1/1", "types": ["http"], "capacity": 4, "version": "0.9", "host": here}
        ids["host_id"] = ApiClient(api.base, key["secret"]).post("/worker/register", hello)["host_id"]
        ids["instance_id"] = api.call("GET", f"/hosts/{ids['host_id']}")["instances"][0]["id"]
        hook = {"name": text("deploy", 100), "kind": "trigger", "job_id": self.made.jobs["clean up carts"]}
        ids["webhook_id"] = api.post("/webhooks", hook | {"secret": {"secret": "crm-token"}})["id"]

    def make_records(self) -> None:
        """An incident from the failed run, and freezes: one in force for a tag, one that is over."""
        api, ids = self.api, self.made.ids
        freeze = {"scope": {"everything": False, "tags": [self.text("reports", 60)]}}
        over = api.post("/freezes", freeze | {"reason": self.text("audit of the reports", 500)})
        api.post(f"/freezes/{over['id']}/lift")
        now = freeze | {
            "reason": self.text("the reports move to a new host", 500),
            "end_at": "2035-01-01T06:00:00Z",
        }
        ids["freeze_id"] = api.post("/freezes", now)["id"]
        self.wait(lambda: api.items("/incidents"), "an incident")
        ids["incident_id"] = api.items("/incidents")[0]["id"]
        api.call(
            "PUT", f"/incidents/{ids['incident_id']}/note", {"note": self.text("db-2 is being repaired", 500)}
        )
        self.wait(lambda: api.items("/deliveries"), "a delivery of the incident")
        ids["delivery_id"] = api.items("/deliveries")[0]["id"]
        ids |= {"slug": "acme", "job_type": "http", "kind": "csv"}

    def wait(self, holds: Callable[[], object], what: str, within: float = WITHIN) -> None:
        deadline, pause = monotonic() + within, threading.Event()
        while not holds():
            if monotonic() > deadline:
                raise SystemExit(f"waited {within:.0f} s for {what}")
            pause.wait(0.05)
