"""Defaults by workspace and installation: what a job leaves out, where its value comes from, and that it follows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from foliot.domain.defaults import PRODUCT, DefaultValues
from foliot.domain.policy import Retention, Retry
from foliot.services.jobs import defaults
from tests.web.conftest import ApiHarness, job, problems

pytestmark = pytest.mark.anyio
ALL_OF_INSTALLATION = {"retry": "installation", "timeout": "installation", "retention": "installation"}
EXPONENTIAL = {"max": 2, "strategy": "exponential", "base": "10s"}


async def change(api: ApiHarness, body: Any, **more: Any) -> Any:
    return await api.request("PATCH", "/defaults", role="admin", json=body, **more)


async def get(api: ApiHarness, made: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = (await api.request("GET", f"/jobs/{made['id']}")).json()
    return found


@pytest.mark.requirement("C-4", "C-6", "S1-D1", "S1-FR-007")
async def test_a_job_says_which_value_came_from_where_and_follows_a_new_default(api: ApiHarness) -> None:
    bare = await api.create_job()
    own = await api.create_job(name="own", timeout="5m", retention={"keep": "1d"})
    assert (bare["timeout"], bare["retry"]["delays"]) == ("10m", ["5m", "15m", "30m"])
    assert (bare["inherited"], own["inherited"]) == (ALL_OF_INSTALLATION, {"retry": "installation"})
    changed = await change(api, {"timeout": "20m", "retry": EXPONENTIAL, "retention": {"keep_last": 7}})
    assert changed.status_code == 200, changed.text
    assert (changed.json()["timeout"], changed.json()["origins"]["timeout"]) == ("20m", "workspace")
    after = await get(api, bare)
    assert (after["timeout"], after["retry"]["strategy"], after["retention"]["keep_last"]) == (
        "20m",
        "exponential",
        7,
    )
    assert after["inherited"] == dict.fromkeys(ALL_OF_INSTALLATION, "workspace")
    assert (after["revision"], after["next_run_at"], after["schedule"]) == (
        2,
        bare["next_run_at"],
        bare["schedule"],
    )
    [newest, *_] = (await api.request("GET", f"/jobs/{bare['id']}/revisions")).json()["items"]
    assert newest["note"] == "A default of the workspace changed."
    kept = await get(api, own)
    assert (kept["timeout"], kept["retention"]["keep"], kept["retry"]["max"]) == ("5m", "1d", 2)
    elsewhere = await api.create_job(who="globex")
    assert (elsewhere["timeout"], elsewhere["inherited"]) == ("10m", ALL_OF_INSTALLATION)
    back = (await change(api, {"timeout": None})).json()
    assert (back["timeout"], back["origins"]["timeout"]) == ("10m", "installation")
    assert (await get(api, bare))["timeout"] == "10m"
    assert (await change(api, {"timeout": None})).status_code == 200
    assert (await get(api, bare))["revision"] == 3, "a change that changes nothing makes no revision"


@pytest.mark.requirement("C-4", "C-6")
async def test_an_edit_keeps_what_is_inherited_and_null_gives_a_field_back(api: ApiHarness) -> None:
    await change(api, {"timeout": "20m"})
    made = await api.create_job(retry={"max": 1})
    assert made["inherited"] == {"timeout": "workspace", "retention": "installation"}
    path = f"/jobs/{made['id']}"
    for method in ("PATCH", "PUT"):
        same = (await api.request(method, path, json=made)).json()
        assert same == made, "the body of a GET changes nothing"
    renamed = (await api.request("PATCH", path, json={"name": "other"})).json()
    assert renamed["inherited"] == made["inherited"]
    fixed = (await api.request("PATCH", path, json={"timeout": "20m"})).json()
    assert fixed["inherited"] == {"retention": "installation"}, "written, it is the job's own"
    await change(api, {"timeout": "30m"})
    assert (await get(api, made))["timeout"] == "20m"
    given_back = (await api.request("PATCH", path, json={"timeout": None, "retry": None})).json()
    assert (given_back["timeout"], given_back["retry"]["max"]) == ("30m", 3)
    partly = (await api.request("PATCH", path, json={"retry": {"max": 9}})).json()
    assert (partly["retry"]["max"], "retry" in partly["inherited"]) == (9, False)
    bare = (await api.request("PUT", path, json=job())).json()
    assert bare["inherited"] == {
        "retry": "installation",
        "timeout": "workspace",
        "retention": "installation",
    }
    old = (await api.request("POST", f"{path}/revert", json={"revision": 1})).json()
    assert (old["retry"]["max"], old["timeout"]) == (1, "30m"), "a revert takes the default of today"


@pytest.mark.requirement("S1-ENV-2", "S1-ENV-3", "S1-ENV-4", "S1-ENV-5", "S2-14", "S4-34", "C-15")
async def test_defaults_of_the_installation_reach_the_jobs_that_no_workspace_overrides(
    api: ApiHarness,
) -> None:
    bare = await api.create_job()
    await change(api, {"retry": EXPONENTIAL})
    values = DefaultValues(
        Retry(1, delays=(timedelta(seconds=7),)),
        timedelta(minutes=5),
        Retention(timedelta(days=30), 10),
        "Europe/Paris",
    )
    assert await defaults.set_of_installation(api.database, values)
    assert not await defaults.set_of_installation(api.database, values)
    assert (await get(api, bare))["timeout"] == "10m", "the janitor has not come by yet"
    fresh = await api.create_job(name="fresh")
    assert (fresh["timeout"], fresh["retry"]["strategy"]) == ("5m", "exponential")
    while await defaults.apply_unapplied(api.database):
        pass
    after = await get(api, bare)
    assert (after["timeout"], after["retention"]["keep"], after["retry"]["strategy"]) == (
        "5m",
        "30d",
        "exponential",
    )
    assert after["inherited"]["timeout"] == "installation"
    made = await api.request("POST", "/workspaces", who="system", json={"slug": "paris"})
    assert made.json()["default_timezone"] == "Europe/Paris"
    await defaults.set_of_installation(api.database, PRODUCT)


@pytest.mark.requirement("C-15")
async def test_the_zone_counts_for_schedules_written_from_now_on(api: ApiHarness) -> None:
    cron = {"kind": "cron", "expr": "0 9 * * *"}
    before = await api.create_job(schedule=cron)
    assert (await change(api, {"timezone": "Asia/Tokyo"})).json()["timezone"] == "Asia/Tokyo"
    after = await api.create_job(name="after", schedule=cron)
    assert after["schedule"]["timezone"] == "Asia/Tokyo"
    assert (await get(api, before))["schedule"]["timezone"] == "UTC", "planned times do not move"
    assert (await change(api, {"timezone": "Mars/Base"})).status_code == 422


async def test_defaults_are_for_administrators_to_change_and_a_dry_run_changes_nothing(
    api: ApiHarness,
) -> None:
    made = await api.create_job()
    denied = await api.request("PATCH", "/defaults", json={"timeout": "1m"})
    assert denied.status_code == 403
    assert (await api.request("GET", "/defaults", role="viewer")).json()["timeout"] == "10m"
    dry = (await change(api, {"timeout": "1m"}, params={"dry_run": True})).json()
    assert (dry["dry_run"], dry["timeout"]) == (True, "1m")
    assert (await get(api, made))["timeout"] == "10m"
    wrong = await change(api, {"retry": {"max": 3, "strategy": "list", "delays": []}})
    assert problems(wrong) == {"/retry/delays": "A retry list needs at least one delay."}
    audit = (await api.request("GET", "/audit?action=defaults.changed", role="admin")).json()["items"]
    assert audit == []
    await change(api, {"timeout": "1m"})
    [entry] = (await api.request("GET", "/audit?action=defaults.changed", role="admin")).json()["items"]
    assert entry["after"]["timeout"] == 60


async def test_more_jobs_than_one_batch_follow(api: ApiHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(defaults, "BATCH", 2)
    made = [await api.create_job(name=f"job {n}") for n in range(5)]
    await change(api, {"timeout": "3m"})
    assert {(await get(api, each))["timeout"] for each in made} == {"3m"}
    assert not await defaults.apply_unapplied(api.database), "nothing is left for the janitor"
