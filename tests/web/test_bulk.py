"""One thing done to many jobs by the API."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from foliot.domain.access import MemberRole, PrincipalKind
from tests.web.conftest import Town, job, problems

pytestmark = pytest.mark.anyio


async def bulk(town: Town, action: str, *, role: str = "editor", who: str = "acme", **fields: Any) -> Any:
    answer = await town.ask("POST", "/jobs/bulk", role=role, who=who, json={"action": action, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def statuses(town: Town) -> dict[str, str]:
    found = (await town.ask("GET", "/jobs", params={"q": "-status:completed"})).json()["items"]
    return {each["name"]: each["status"] for each in found}


@pytest.fixture
async def three(town: Town) -> list[str]:
    """Two with a tag, one without; the second is paused already."""
    made = [await town.make(name=name, tags=tags) for name, tags in (("a", ["x"]), ("b", ["x"]), ("c", []))]
    await town.ask("POST", f"/jobs/{made[1]['id']}/pause")
    return [each["id"] for each in made]


async def test_a_filter_pauses_what_it_finds_and_tells_what_was_so_already(
    town: Town, three: list[str]
) -> None:
    done = await bulk(town, "pause", q="tag:x", expected_count=2, args={"reason": "maintenance"})
    assert (done["found"], done["done"], done["already"], done["failed"]) == (2, 1, 1, 0)
    assert [(each["id"], each["outcome"]) for each in done["results"]] == [(three[1], "already")]
    assert await statuses(town) == {"a": "paused", "b": "paused", "c": "active"}
    assert (await town.ask("GET", f"/jobs/{three[0]}")).json()["status_reason"] == "maintenance"


async def test_a_filter_that_finds_another_number_does_nothing(town: Town, three: list[str]) -> None:
    answer = await town.ask("POST", "/jobs/bulk", json={"action": "pause", "q": "tag:x", "expected_count": 3})
    assert (answer.status_code, answer.json()["code"]) == (409, "unexpected_count")
    assert "finds 2 jobs, not 3" in answer.json()["detail"]
    assert (await statuses(town))["a"] == "active"
    assert three


async def test_a_filter_needs_its_expected_count(town: Town, three: list[str]) -> None:
    answer = await town.ask("POST", "/jobs/bulk", json={"action": "pause", "q": ""})
    assert (answer.status_code, list(problems(answer))) == (422, ["/expected_count"])
    assert "3 jobs" in answer.json()["errors"][0]["hint"]
    assert three


async def test_a_dry_run_says_what_would_become_of_them_and_does_nothing(
    town: Town, three: list[str], owner: Any
) -> None:
    before = owner.execute("SELECT count(*) FROM foliot.audit").fetchone()
    tried = await bulk(town, "resume", q="", dry_run=True)
    assert (tried["found"], tried["done"], tried["already"], tried["dry_run"]) == (3, 1, 2, True)
    assert await statuses(town) == {"a": "active", "b": "paused", "c": "active"}
    assert owner.execute("SELECT count(*) FROM foliot.audit").fetchone() == before
    assert three


async def test_ids_that_are_not_there_are_told_and_stop_nothing(town: Town, three: list[str]) -> None:
    foreign = (await town.make(who="globex"))["id"]
    random = str(uuid4())
    done = await bulk(town, "disable", ids=[three[0], foreign, random, three[0]])
    assert (done["found"], done["done"], done["failed"]) == (1, 1, 2)
    told = {each["id"]: {**each, "id": None} for each in done["results"]}
    assert told[foreign] == told[random]
    assert told[random]["outcome"] == "not_found"
    assert (await town.ask("GET", f"/jobs/{foreign}", who="globex")).json()["status"] == "active"


async def test_a_job_that_cannot_is_told_with_the_reason(town: Town, three: list[str], owner: Any) -> None:
    owner.execute("UPDATE foliot.timers SET status = 'completed' WHERE job_id = %s", [three[0]])
    owner.execute("UPDATE foliot.jobs SET status = 'completed' WHERE id = %s", [three[0]])
    done = await bulk(town, "pause", ids=three)
    assert (done["done"], done["already"], done["failed"]) == (1, 1, 1)
    (failed,) = (each for each in done["results"] if each["outcome"] == "failed")
    assert (failed["id"], failed["code"]) == (three[0], "illegal_move")
    assert "completed" in failed["message"]


async def test_every_touched_job_has_its_entry_in_the_audit(town: Town, three: list[str], owner: Any) -> None:
    await bulk(town, "disable", ids=three)
    await bulk(town, "enable", ids=three)
    found = owner.execute(
        "SELECT object_id, action FROM foliot.audit WHERE action IN ('job.disabled', 'job.resumed')"
    ).fetchall()
    assert sorted(found) == sorted(
        (each, action) for each in three for action in ("job.disabled", "job.resumed")
    )


async def test_running_many_makes_a_run_of_each(town: Town, three: list[str]) -> None:
    town.hints.clear()
    done = await bulk(town, "run", role="operator", ids=three)
    assert done["done"] == 3
    assert "ready" in town.hints
    runs = [(await town.ask("GET", f"/jobs/{each}/runs")).json()["items"] for each in three]
    assert [[run["trigger"] for run in each] for each in runs] == [["manual"]] * 3


async def test_tags_are_put_on_and_taken_off_as_edits(town: Town, three: list[str]) -> None:
    done = await bulk(town, "tag", ids=three, args={"tags": ["x", "y"]})
    assert (done["done"], done["already"]) == (3, 0)
    done = await bulk(town, "tag", ids=three, args={"tags": ["y"]})
    assert (done["done"], done["already"]) == (0, 3)
    assert (await bulk(town, "untag", q="tag:y", expected_count=3, args={"tags": ["x"]}))["done"] == 3
    found = [(await town.ask("GET", f"/jobs/{each}")).json() for each in three]
    assert [(each["tags"], each["revision"]) for each in found] == [(["y"], 3)] * 3


async def test_many_are_archived_or_removed_with_all_they_left(
    town: Town, three: list[str], owner: Any
) -> None:
    archived = await town.ask("POST", "/jobs/batch-delete", json={"q": "tag:x", "expected_count": 2})
    assert (archived.status_code, archived.json()["done"]) == (200, 2)
    assert await statuses(town) == {"a": "archived", "b": "archived", "c": "active"}
    again = await town.ask("POST", "/jobs/batch-delete", json={"ids": three})
    assert (again.json()["done"], again.json()["already"]) == (1, 2)
    purged = await town.ask("POST", "/jobs/batch-delete", role="admin", json={"ids": three, "purge": True})
    assert purged.json()["done"] == 3
    refused = await town.ask("POST", "/jobs/batch-delete", json={"ids": three, "purge": True})
    assert refused.status_code == 403
    assert owner.execute("SELECT count(*) FROM foliot.jobs").fetchone() == (0,)


async def test_a_failure_midway_undoes_its_own_job_alone(town: Town) -> None:
    first = await town.make(name="first")
    await town.make(
        name="second", schedule={"kind": "manual"}, depends_on=[{"job": first["id"], "on": "success"}]
    )
    third = await town.make(name="third")
    done = await town.ask("POST", "/jobs/batch-delete", json={"ids": [first["id"], third["id"]]})
    assert (done.json()["done"], done.json()["failed"]) == (1, 1)
    assert "second" in done.json()["results"][0]["message"]
    found = await statuses(town)
    assert (found["first"], found["second"], found["third"]) == ("active", "active", "archived")


async def test_an_agent_acts_on_its_own_jobs_alone(town: Town, three: list[str]) -> None:
    town.keys["acme", "agent"] = await town.enrol("acme", MemberRole.EDITOR, kind=PrincipalKind.AGENT)
    mine = (
        await town.ask(
            "POST",
            "/jobs",
            role="agent",
            json=job(name="mine", schedule={"kind": "manual"}),
        )
    ).json()["id"]
    assert (await bulk(town, "pause", role="agent", q="", expected_count=1))["done"] == 1
    done = await bulk(town, "disable", role="agent", ids=[*three, mine])
    assert (done["found"], done["done"], done["failed"]) == (1, 1, 3)
    assert (await statuses(town))["a"] == "active"


@pytest.mark.parametrize(
    ("action", "role", "code"),
    [
        ("pause", "viewer", 403),
        ("tag", "operator", 403),
        ("archive", "operator", 403),
        ("pause", "operator", 200),
    ],
)
async def test_who_may_do_what_to_many(
    town: Town, three: list[str], action: str, role: str, code: int
) -> None:
    body = {"action": action, "ids": three, "args": {"tags": ["z"]}}
    assert (await town.ask("POST", "/jobs/bulk", role=role, json=body)).status_code == code


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"action": "explode", "ids": []}, "/action"),
        ({"action": "pause"}, ""),
        ({"action": "pause", "q": "", "ids": [str(uuid4())]}, ""),
        ({"action": "pause", "q": "stauts:x", "expected_count": 1}, "/q"),
        ({"action": "tag", "ids": [str(uuid4())]}, "/args/tags"),
        ({"action": "pause", "ids": ["7"]}, "/ids/0"),
    ],
)
async def test_a_wrong_order_is_refused_where_it_is_wrong(quiet_town: Town, body: Any, pointer: str) -> None:
    answer = await quiet_town.ask("POST", "/jobs/bulk", json=body)
    assert answer.status_code == 422, answer.text
    assert pointer in problems(answer)
