"""Workspaces by the API: made, changed and put away, with all that is in them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from foliot.domain.access import Actor
from foliot.domain.errors import Conflict
from foliot.domain.ids import WorkerId
from foliot.domain.outcomes import Succeeded
from foliot.services.identity import workspaces
from foliot.services.scheduling.tick import tick
from foliot.services.settlement.report import Report, report
from foliot.services.workers.claim import Turns, claim
from foliot.testing.clock import ManualClock
from tests.web.conftest import ApiHarness, job, problems

pytestmark = pytest.mark.anyio
EVERY_SECOND = {"kind": "interval", "every": "1s"}


async def test_a_workspace_is_made_changed_and_found_by_id_or_slug(
    api: ApiHarness, clock: ManualClock
) -> None:
    body = {"slug": "initech", "default_timezone": "Europe/Paris", "quotas": {"jobs": 5}}
    made = await api.request("POST", "/workspaces", who="system", json=body)
    assert (made.status_code, made.json()["name"], made.json()["quotas"]["jobs"]) == (201, "initech", 5)
    by_slug = await api.request("GET", "/workspaces/initech", who="system")
    assert (
        by_slug.json()
        == made.json()
        == (await api.request("GET", f"/workspaces/{made.json()['id']}", who="system")).json()
    )
    chosen = {"Foliot-Workspace": "initech"}
    assert (await api.request("GET", "/me", who="system", headers=chosen)).json()["limits"]["jobs"] == 5
    clock.advance(timedelta(seconds=1))
    change = {"name": "Initech", "quotas": {"jobs": None, "min_interval": 60}}
    changed = (await api.request("PATCH", "/workspaces/initech", who="system", json=change)).json()
    assert (changed["name"], changed["quotas"]["jobs"], changed["quotas"]["min_interval"]) == (
        "Initech",
        None,
        60,
    )
    assert (await api.request("GET", "/me", who="system", headers=chosen)).json()["limits"][
        "min_interval"
    ] == 60
    taken = await api.request("POST", "/workspaces", who="system", json=body)
    assert (taken.status_code, list(problems(taken))) == (409, ["/slug"])
    for wrong in (
        {"slug": "No"},
        {"slug": "x", "default_timezone": "Mars/Base"},
        {"slug": "x", "quotas": {"jobs": -1}},
    ):
        assert (await api.request("POST", "/workspaces", who="system", json=wrong)).status_code == 422
    trail = (await api.request("GET", "/audit?installation=true&action=workspace", who="system")).json()[
        "items"
    ]
    assert [each["action"] for each in trail] == ["workspace.changed", "workspace.created"]
    assert (trail[0]["before"]["quotas"], trail[0]["actor"]["name"]) == ({"jobs": 5}, "admin")


async def test_a_workspace_that_is_put_away_takes_everything_with_it(
    api: ApiHarness, clock: ManualClock, owner: psycopg.Connection[Any]
) -> None:
    running = await api.create_job(schedule=EVERY_SECOND)
    waiting = await api.create_job(schedule=EVERY_SECOND, overlap="queue")
    others = await api.create_job(who="globex", schedule=EVERY_SECOND)
    clock.set(clock.now().replace(second=5))
    await tick(api.database)
    worker = await api.register_worker(WorkerId(uuid4()))
    claimed = await claim(api.database, worker, "default", ["http"], 10, Turns())
    mine = next(each for each in claimed if str(each.job_id) == running["id"])
    clock.set(clock.now().replace(second=9))
    await tick(api.database)
    assert (await api.request("DELETE", "/workspaces/acme", who="system")).status_code == 204

    assert (await api.request("GET", "/jobs")).status_code == 401
    done = Report(mine.run_id, mine.job_id, mine.fence, worker, Succeeded())
    assert await report(api.database, [done]) == frozenset()
    acme = api.ids["acme"]
    statuses = owner.execute(
        "SELECT DISTINCT status FROM foliot.runs WHERE workspace_id = %s AND status IS DISTINCT FROM 'skipped'",
        [acme],
    ).fetchall()
    assert statuses == [("cancelled",)]
    left = owner.execute(
        "SELECT (SELECT count(*) FROM foliot.ready WHERE workspace_id = %(w)s), (SELECT count(*) FROM foliot.waiting WHERE workspace_id = %(w)s),"
        " (SELECT count(*) FROM foliot.leases WHERE workspace_id = %(w)s),"
        " (SELECT count(*) FROM foliot.timers WHERE workspace_id = %(w)s AND (due_at < 'infinity' OR status <> 'archived' OR live + waiting > 0)),"
        " (SELECT count(*) FROM foliot.api_keys WHERE workspace_id = %(w)s AND revoked_at IS NULL)",
        {"w": acme},
    ).fetchone()
    assert left == (0, 0, 0, 0, 0)
    clock.set(clock.now().replace(second=30))
    before = owner.execute("SELECT count(*) FROM foliot.runs WHERE workspace_id = %s", [acme]).fetchone()
    await tick(api.database)
    assert (
        before == owner.execute("SELECT count(*) FROM foliot.runs WHERE workspace_id = %s", [acme]).fetchone()
    )
    assert (await api.request("GET", f"/jobs/{others['id']}", who="globex")).json()["status"] == "active"
    assert waiting["id"] not in (await api.request("GET", "/jobs", who="globex")).text
    assert (
        await api.request("GET", "/jobs", who="system", headers={"Foliot-Workspace": "acme"})
    ).status_code == 404
    assert [
        each["slug"]
        for each in (await api.request("GET", "/workspaces?archived=true", who="system")).json()["items"]
    ] == ["acme"]
    assert (await api.request("DELETE", "/workspaces/acme", who="system")).status_code == 204  # twice is once


async def test_the_janitor_finishes_what_a_dying_node_began(
    api: ApiHarness, owner: psycopg.Connection[Any]
) -> None:
    await api.create_job()
    owner.execute("UPDATE foliot.workspaces SET archived_at = now() WHERE slug = 'acme'")
    assert await workspaces.finish_archiving(api.database)
    assert not await workspaces.finish_archiving(api.database)
    assert owner.execute("SELECT DISTINCT status FROM foliot.jobs").fetchall() == [("archived",)]


async def test_nothing_is_made_in_a_workspace_that_is_put_away(
    api: ApiHarness, owner: psycopg.Connection[Any]
) -> None:
    """The admission is still remembered, as on a node that has not heard of it."""
    assert (await api.request("GET", "/jobs")).status_code == 200
    owner.execute("UPDATE foliot.workspaces SET archived_at = now() WHERE slug = 'acme'")
    refused = await api.request("POST", "/jobs", json=job())
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")


async def test_the_default_workspace_stays(api: ApiHarness) -> None:
    assert (await api.request("DELETE", "/workspaces/default", who="system")).status_code == 409
    default = await workspaces.get(api.database, "default")
    with pytest.raises(Conflict):
        await workspaces.archive(api.database, Actor("ana"), default.id)
