"""What another scheduler did before: ended runs, last states and notification rules of imported jobs. None of it runs."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from foliot.storage.queries import SqlQuery
from foliot.storage.tx import Role
from tests.web.conftest import ApiHarness

pytestmark = pytest.mark.anyio
FILES = Path(__file__).parents[1] / "importers" / "files"
CURRENT, LEGACY = ((FILES / f"openclaw-{name}.json").read_text() for name in ("current", "legacy"))
MORNING = "5d0c2f1e-greenhouse-am"
AT = 1769062500412


async def call(api: ApiHarness, source: str, text: str, **fields: Any) -> dict[str, Any]:
    query = "?dry_run=true" if fields.pop("dry_run", False) else ""
    body = {"source": source, "text": text, **fields}
    answer = await api.request("POST", f"/imports{query}", role="editor", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert sum(found["counts"].values()) == len(found["records"])
    return found


async def get(api: ApiHarness, path: str) -> Any:
    answer = await api.request("GET", path, role="editor")
    assert answer.status_code == 200, answer.text
    return answer.json()


def counts(done: dict[str, Any]) -> dict[str, int]:
    return {name: count for name, count in done["counts"].items() if count}


def notes(done: dict[str, Any]) -> dict[str, str]:
    return {each["key"]: " ".join(each["notes"]) for each in done["records"]}


def lines(*of: str, key: str = MORNING) -> str:
    made = []
    for place, status in enumerate(of):
        start = AT - 86_400_000 * place
        line = {
            "ts": start + 2000,
            "jobId": key,
            "action": "finished",
            "status": status,
            "runAtMs": start,
            "durationMs": 2000,
        }
        made.append(line | ({"error": "timeout"} if status == "error" else {"summary": f"day {place}"}))
    return "\n".join(json.dumps(each) for each in made)


async def test_run_lines_become_ended_runs_once_and_nothing_executes_them(api: ApiHarness) -> None:
    jobs = await call(api, "openclaw", CURRENT)
    job_id = jobs["records"][0]["job_id"]
    before = await get(api, f"/jobs/{job_id}")
    text = lines("ok", "error", "skipped", "ok") + '\n{"broken\n' + lines("ok", key="unknown")
    plan = await call(api, "openclaw-runs", text, dry_run=True)
    assert counts(plan) == {"imported": 4, "rejected": 2}
    assert (await get(api, f"/jobs/{job_id}/runs"))["items"] == [], "a plan writes nothing"

    done = await call(api, "openclaw-runs", text)
    assert counts(done) == {"imported": 4, "rejected": 2}
    assert "not JSON" in done["records"][4]["notes"][0]
    assert "No job of the id unknown" in done["records"][5]["notes"][0]
    runs = (await get(api, f"/jobs/{job_id}/runs"))["items"]
    assert [(each["status"], each["trigger"]) for each in runs] == [
        ("succeeded", "import"), ("failed", "import"), ("skipped", "import"), ("succeeded", "import"),
    ]  # fmt: skip
    assert [each["number"] for each in runs] == [4, 3, 2, 1]
    newest, failed, skipped, _ = runs
    assert datetime.fromisoformat(newest["started_at"]) == datetime.fromtimestamp(AT / 1000, UTC)
    assert (newest["duration_ms"], newest["output"], failed["error"]["message"]) == (
        2000,
        {"summary": "day 0"},
        "timeout",
    )
    assert skipped["skip_reason"] == "imported"

    # Nobody can execute them, and the figures of this installation do not count them.
    async with api.database.tx(Role.ENGINE) as tx:
        for table in ("ready", "waiting", "leases"):
            assert await tx.fetch(SqlQuery("test", f"SELECT job_id FROM {table}".encode())) == [], table
    after = await get(api, f"/jobs/{job_id}")
    assert [after[name] for name in ("run_count", "success_count", "failure_count")] == [0, 0, 0]
    assert (after["status"], after["next_run_at"], before["status"]) == ("disabled", None, "disabled")
    assert (after["last_run_status"], after["last_run_id"]) == ("succeeded", newest["id"])
    stats = await get(api, f"/jobs/{job_id}/stats?days=365")
    assert (stats["days"], stats["totals"]["runs"]) == ([], 0)

    assert counts(await call(api, "openclaw-runs", text)) == {"unchanged": 4, "rejected": 2}
    more = await call(api, "openclaw-runs", lines("ok", "error", "skipped", "ok", "ok"))
    assert counts(more) == {"imported": 1, "unchanged": 4}
    assert len((await get(api, f"/jobs/{job_id}/runs"))["items"]) == 5
    why = await get(api, f"/runs/{skipped['id']}/explain")
    assert "imported from skipped it" in why["sentence"]


async def test_two_imports_of_one_history_at_once_record_each_run_once(api: ApiHarness) -> None:
    job_id = (await call(api, "openclaw", CURRENT))["records"][0]["job_id"]
    text = lines(*(["ok", "error"] * 20))
    both = await asyncio.gather(*(call(api, "openclaw-runs", text) for _ in range(3)))
    assert sorted(each["counts"]["imported"] for each in both) == [0, 0, 40]
    runs = (await get(api, f"/jobs/{job_id}/runs?limit=100"))["items"]
    assert sorted(each["number"] for each in runs) == list(range(1, 41))


async def test_a_line_that_stands_twice_is_one_run(api: ApiHarness) -> None:
    await call(api, "openclaw", CURRENT)
    done = await call(api, "openclaw-runs", lines("ok") + "\n" + lines("ok"))
    assert counts(done) == {"imported": 1, "unchanged": 1}


async def test_a_history_is_bounded_and_belongs_to_its_workspace(api: ApiHarness) -> None:
    await call(api, "openclaw", CURRENT)
    other = await api.request(
        "POST", "/imports", role="editor", who="globex", json={"source": "openclaw-runs", "text": lines("ok")}
    )
    assert other.json()["counts"]["rejected"] == 1
    too_many = await api.request(
        "POST", "/imports", role="editor", json={"source": "openclaw-runs", "text": "{}\n" * 10_001}
    )
    assert (too_many.status_code, too_many.json()["errors"][0]["pointer"]) == (422, "/text")


@pytest.mark.requirement("S4-29")
async def test_the_last_state_is_copied_and_the_next_time_is_not(api: ApiHarness) -> None:
    done = await call(api, "openclaw", CURRENT)
    await call(api, "openclaw", LEGACY)
    by_key = {each["key"]: each["job_id"] for each in done["records"]}
    morning = await get(api, f"/jobs/{by_key[MORNING]}")
    assert (morning["last_run_status"], morning["consecutive_failures"]) == ("succeeded", 0)
    assert datetime.fromisoformat(morning["last_run_at"]) == datetime.fromtimestamp(AT / 1000, UTC)
    assert morning["next_run_at"] is None
    pulse = await get(api, f"/jobs/{by_key['c7-pump-pulse']}")
    assert [pulse[each] for each in ("last_run_status", "last_error", "consecutive_failures")] == [
        "failed",
        "timeout",
        3,
    ]
    # Enabled, the job starts afresh: its schedule names the next time, and old failures do not stop it.
    resumed = await api.request("POST", f"/jobs/{by_key['c7-pump-pulse']}/resume", role="editor")
    assert resumed.status_code == 200, resumed.text
    assert (resumed.json()["consecutive_failures"], resumed.json()["next_run_at"] is None) == (0, False)


async def channel(api: ApiHarness, name: str) -> str:
    await api.request("POST", "/rooms", role="editor", json={"name": name, "key": name})
    made = await api.request(
        "POST", "/channels", role="editor", json={"name": name, "config": {"kind": "room", "room": name}}
    )
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


async def test_deliveries_and_alerts_become_rules_of_mapped_channels(api: ApiHarness) -> None:
    room = await api.request("POST", "/rooms", role="editor", json={"key": "garden", "name": "garden"})
    assert room.status_code == 201, room.text
    garden = await channel(api, "garden")
    mapped = {"channels": {"slack": "garden"}}
    plan = await call(api, "openclaw", CURRENT, dry_run=True, **mapped)
    assert "notification rule to the channel garden" in notes(plan)[MORNING]
    assert (await get(api, "/notification-rules"))["items"] == []

    unmapped = await call(api, "openclaw", CURRENT)
    assert "not taken over: it went to slack channel:C0GREEN" in notes(unmapped)[MORNING]
    [hook] = [each for each in (await get(api, "/channels"))["items"] if each["config"]["kind"] == "webhook"]
    assert (hook["name"], hook["config"]["url"]) == (
        "hooks.example.invalid",
        "https://hooks.example.invalid/ledger",
    )

    done = await call(api, "openclaw", CURRENT, **mapped)
    assert counts(done) == {"updated": 1, "unchanged": 3}, "the map is new for one job"
    job_id = done["records"][0]["job_id"]
    rules = {each["name"]: each for each in (await get(api, "/notification-rules"))["items"]}
    mine = [each for each in rules.values() if each["scope"]["jobs"] == [job_id]]
    shown = [(each["events"], each["channels"], each["after_n"], each["cooldown"]) for each in mine]
    assert shown == [(["run_succeeded"], [garden], 1, None), (["run_failed"], [garden], 2, "1h")]
    assert len(rules) == 3, "with that of the webhook"
    await call(api, "openclaw", CURRENT, **mapped)
    assert {each["name"] for each in (await get(api, "/notification-rules"))["items"]} == set(rules)


async def test_a_rule_that_is_refused_is_named_and_the_job_stays(api: ApiHarness) -> None:
    def with_delivery(**delivery: str) -> str:
        return json.dumps([{"id": "a", "schedule": "0 8 * * *", "text": "Hello.", "delivery": delivery}])

    inside = await call(api, "openclaw", with_delivery(mode="webhook", to="http://127.0.0.1:9/x"))
    assert counts(inside) == {"imported": 1}
    assert "not taken over: 127.0.0.1 is in" in notes(inside)["a"]
    missing = await call(
        api, "openclaw", with_delivery(mode="announce", channel="slack"), channels={"slack": "none"}
    )
    assert counts(missing) == {"updated": 1}
    assert "not taken over: There is no channel none." in notes(missing)["a"]
