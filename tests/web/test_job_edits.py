"""Jobs changed by the API: put, patched, deleted, taken back; and nobody writes over what they have not seen."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from foliot.domain.access import MemberRole, PrincipalKind
from foliot.handlers import registry
from foliot.handlers.bridge_handlers import NO_RESULT_BACKEND
from foliot.services.scheduling.tick import tick
from foliot.testing.clock import ManualClock
from tests.web.conftest import ApiHarness, job, problems

pytestmark = pytest.mark.anyio


async def patch(api: ApiHarness, made: dict[str, Any], body: Any, **more: Any) -> Any:
    return await api.request("PATCH", f"/jobs/{made['id']}", json=body, **more)


async def test_a_patch_changes_what_it_names_and_nothing_else(api: ApiHarness) -> None:
    made = await api.create_job(timeout="5m", tags=["a"], payload={"one": 1, "two": {"deep": True}})
    answer = await patch(
        api, made, {"name": "other", "payload": {"one": None, "two": {"more": 2}}, "tags": ["b"]}
    )
    after = answer.json()
    assert answer.status_code == 200
    assert (after["name"], after["tags"], after["timeout"]) == ("other", ["b"], "5m")
    assert after["payload"] == {"two": {"deep": True, "more": 2}}
    assert (after["revision"], after["schedule"]) == (2, made["schedule"])
    assert answer.headers["etag"].startswith('"2-')
    assert (await api.request("GET", f"/jobs/{made['id']}")).json() == after


async def test_null_gives_a_field_its_default(api: ApiHarness) -> None:
    made = await api.create_job(timeout="5m", max_runs=3, retry={"max": 9})
    after = (await patch(api, made, {"timeout": None, "max_runs": None, "retry": None})).json()
    assert (after["timeout"], after["max_runs"], after["retry"]["max"]) == ("10m", None, 3)
    answer = await patch(api, made, {"name": None})
    assert (answer.status_code, problems(answer)) == (422, {"/name": "This field is needed."})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"expr": "0 7 * * *"}, "Every day at 07:00, Europe/Paris"),
        ({"timezone": "Asia/Tokyo"}, "Every day at 06:00, Asia/Tokyo"),
        ({"words": "every weekday at 9am"}, "Every weekday at 09:00, Europe/Paris"),
        ({"kind": "interval", "every": "1h"}, "Every 1 hour"),
        ({"kind": "manual"}, "Manually"),
        ({}, "Every day at 06:00, Europe/Paris"),
    ],
)
async def test_a_schedule_is_patched_in_its_fields_or_as_a_whole(
    api: ApiHarness, change: dict[str, Any], words: str
) -> None:
    made = await api.create_job(schedule={"kind": "cron", "expr": "0 6 * * *", "timezone": "Europe/Paris"})
    answer = await patch(api, made, {"schedule": change})
    assert (answer.status_code, answer.json()["schedule"]["words"]) == (200, words), answer.text


async def test_a_read_only_field_may_come_back_as_it_is_and_not_otherwise(api: ApiHarness) -> None:
    made = await api.create_job()
    assert (await patch(api, made, made)).json() == made, "nothing has changed, so there is no new revision"
    answer = await patch(api, made, {"name": "x", "status": "paused", "run_count": 7})
    assert answer.status_code == 422
    assert problems(answer) == {
        "/status": "status is read-only, and is active now.",
        "/run_count": "run_count is read-only, and is 0 now.",
    }
    assert "pause" in answer.json()["errors"][0]["hint"]
    assert (await api.request("GET", f"/jobs/{made['id']}")).json()["name"] == "beat"


@pytest.mark.requirement("S4-8", "S4-API-4", "C-10", "S0-6")
async def test_enabled_is_read_and_written_and_follows_the_status(
    api: ApiHarness, clock: ManualClock
) -> None:
    made = await api.create_job(schedule={"kind": "interval", "every": "10m"})
    assert (made["enabled"], made["status"]) == (True, "active")
    off = (await patch(api, made, {"enabled": False})).json()
    assert (off["enabled"], off["status"], off["next_run_at"], off["revision"]) == (
        False,
        "disabled",
        None,
        1,
    )
    clock.advance(timedelta(minutes=30))
    await tick(api.database)
    assert (await api.request("GET", f"/jobs/{made['id']}/runs")).json()["items"] == []
    renamed = (await patch(api, made, {"name": "other"})).json()
    put = (await api.request("PUT", f"/jobs/{made['id']}", json=job(name="bare"))).json()
    assert (renamed["status"], put["status"]) == ("disabled", "disabled"), "left out, the status stays"
    on = (await api.request("PUT", f"/jobs/{made['id']}", json={**put, "name": "on", "enabled": True})).json()
    assert (on["enabled"], on["status"], on["name"]) == (True, "active", "on")
    assert on["next_run_at"] is not None
    assert (await patch(api, made, {"enabled": False})).json()["enabled"] is False
    assert (await patch(api, made, {"enabled": None})).json()["status"] == "active", "null is its default"
    audit = (await api.request("GET", f"/audit?object=job:{made['id']}", role="admin")).json()["items"]
    actions = [each["action"] for each in audit]
    assert (actions.count("job.disabled"), actions.count("job.resumed")) == (2, 2)


@pytest.mark.requirement("C-10")
async def test_enabled_true_leaves_a_paused_job_paused_and_a_dry_run_switches_nothing(
    api: ApiHarness,
) -> None:
    made = await api.create_job()
    dry = (await patch(api, made, {"enabled": False}, params={"dry_run": True})).json()
    assert (dry["job"]["enabled"], dry["job"]["next_run_at"]) == (False, None)
    assert (await api.request("GET", f"/jobs/{made['id']}")).json()["enabled"] is True
    await api.request("POST", f"/jobs/{made['id']}/pause", json={"reason": "look"})
    after = (await patch(api, made, {"enabled": True})).json()
    assert (after["enabled"], after["status"], after["status_reason"]) == (True, "paused", "look")
    over = await api.create_job(name="over", schedule={"words": "in 2 hours"})
    await api.request("DELETE", f"/jobs/{over['id']}")
    answer = await patch(api, over, {"enabled": False})
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


async def test_a_whole_job_is_put_though_it_has_run_meanwhile(api: ApiHarness, clock: ManualClock) -> None:
    made = await api.create_job(
        description="old", timeout="5m", schedule={"kind": "interval", "every": "10m"}
    )
    clock.advance(timedelta(minutes=10))
    await tick(api.database)
    body = {**made, "name": "other"}
    del body["timeout"]
    answer = await api.request("PUT", f"/jobs/{made['id']}", json=body)
    after = answer.json()
    assert answer.status_code == 200, answer.text
    assert (after["name"], after["description"], after["timeout"]) == ("other", "old", "10m")
    assert (after["fire_count"], after["schedule"]) == (1, made["schedule"])
    answer = await api.request("PUT", f"/jobs/{made['id']}", json=job(name="bare"))
    assert (answer.json()["name"], answer.json()["description"], answer.json()["owner"]) == (
        "bare",
        "",
        made["owner"],
    )


async def test_old_words_beside_new_fields_do_not_stand_in_the_way(api: ApiHarness) -> None:
    made = await api.create_job()
    body = {**made, "schedule": {**made["schedule"], "every": "20m"}}
    after = (await api.request("PUT", f"/jobs/{made['id']}", json=body)).json()
    assert after["schedule"]["words"] == "Every 20 minutes"


async def test_a_one_shot_that_is_over_can_still_be_renamed(api: ApiHarness, clock: ManualClock) -> None:
    made = await api.create_job(schedule={"words": "in 2 hours"}, end_at="2027-01-16T00:00:00Z")
    clock.advance(timedelta(days=3))
    await tick(api.database)
    answer = await patch(api, made, {"name": "other"})
    assert (answer.status_code, answer.json()["name"]) == (200, "other"), answer.text
    answer = await patch(api, made, {"end_at": "2027-01-16T01:00:00Z"})
    assert problems(answer) == {"/end_at": "end_at has passed."}


async def test_what_is_wrong_with_a_change_is_reported_at_once_and_nothing_is_changed(
    api: ApiHarness,
) -> None:
    made = await api.create_job()
    answer = await patch(api, made, {"timeout": 5, "nmae": "x", "schedule": {"every": "never"}})
    assert answer.status_code == 422
    assert set(problems(answer)) == {"/timeout", "/nmae", "/schedule/every"}
    bodies: list[Any] = [[], "x", None, 7]
    for body in bodies:
        answer = await patch(api, made, body)
        assert answer.status_code == 422, answer.text
    assert (await api.request("GET", f"/jobs/{made['id']}")).json() == made


async def test_if_match_lets_only_who_has_seen_it_change_it(api: ApiHarness) -> None:
    answer = await api.request("POST", "/jobs", json=job())
    made, first = answer.json(), {"If-Match": answer.headers["etag"]}
    second = {"If-Match": (await patch(api, made, {"name": "two"}, headers=first)).headers["etag"]}
    for method, path, body in (
        ("PATCH", "", {"name": "three"}),
        ("PUT", "", job(name="three")),
        ("DELETE", "", None),
        ("POST", "/revert", {"revision": 1}),
        ("POST", "/pause", {}),
        ("POST", "/run", {}),
    ):
        stale = await api.request(method, f"/jobs/{made['id']}{path}", json=body, headers=first)
        assert (stale.status_code, stale.json()["code"]) == (412, "stale_revision"), (method, path)
        now = await api.request("GET", f"/jobs/{made['id']}")
        assert stale.headers["etag"] == now.headers["etag"], "one form for all answers"
        assert f"({made['owner']}) changed it at 2027-01-15T12:00:00+00:00" in stale.json()["detail"]
    for tags in ('"2"', '"7", "2"', "*", second["If-Match"]):
        fine = await api.request("POST", f"/jobs/{made['id']}/run", headers={"If-Match": tags})
        assert fine.status_code == 201, tags
    for tags in ('W/"2"', '"x"', '"7"'):
        assert (await patch(api, made, {}, headers={"If-Match": tags})).status_code == 412, tags

    stale = await patch(api, made, {"revision": 1, "name": "three"})
    assert stale.status_code == 412, "a revision in the body is what its author has seen"
    for odd in ("1", 1.0, True, None):
        unread = await patch(api, made, {"revision": odd, "name": "three"})
        assert problems(unread) == {"/revision": "revision is a whole number."}, "not passed over"


@pytest.mark.parametrize(
    ("tags", "hint"),
    [("2", 'Send "2", with the quotes.'), ("", "as it came"), ("two", "as it came"), ('"2", 3', 'Send "3"')],
)
async def test_an_if_match_that_is_no_tag_is_named(api: ApiHarness, tags: str, hint: str) -> None:
    made = await api.create_job()
    for method in ("PATCH", "DELETE"):
        answer = await api.request(method, f"/jobs/{made['id']}", json={}, headers={"If-Match": tags})
        assert answer.status_code == 422, answer.text
        [error] = answer.json()["errors"]
        assert (error["pointer"], hint in error["hint"]) == ("/If-Match", True)


async def test_an_if_match_of_something_else_says_so(api: ApiHarness) -> None:
    made = await api.create_job()
    for tags, words in (('"abc"', "names no revision"), ('W/"1"', "Weak tags")):
        answer = await patch(api, made, {"name": "x"}, headers={"If-Match": tags})
        assert (answer.status_code, words in answer.json()["detail"]) == (412, True), answer.text


async def test_of_two_at_once_with_the_same_etag_one_wins(api: ApiHarness) -> None:
    made = await api.create_job()
    headers = {"If-Match": '"1"'}
    answers = await asyncio.gather(
        *(patch(api, made, {"name": name}, headers=headers) for name in ("one", "two"))
    )
    assert sorted(answer.status_code for answer in answers) == [200, 412]
    [won] = [answer.json() for answer in answers if answer.status_code == 200]
    after = (await api.request("GET", f"/jobs/{made['id']}")).json()
    assert (after["revision"], after["name"]) == (2, won["name"])


async def test_patches_of_different_fields_at_once_all_count(api: ApiHarness) -> None:
    made = await api.create_job()
    changes: list[dict[str, Any]] = [{"name": "other"}, {"timeout": "1m"}, {"tags": ["a"]}]
    answers = await asyncio.gather(*(patch(api, made, change) for change in changes))
    assert {answer.status_code for answer in answers} == {200}
    after = (await api.request("GET", f"/jobs/{made['id']}")).json()
    assert (after["name"], after["timeout"], after["tags"], after["revision"]) == ("other", "1m", ["a"], 4)


async def test_an_etag_that_still_holds_is_answered_without_a_body(api: ApiHarness) -> None:
    made = await api.create_job()
    path = f"/jobs/{made['id']}"
    tag = (await api.request("GET", path)).headers["etag"]
    same = await api.request("GET", path, headers={"If-None-Match": f'"x", W/{tag}'})
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
    await api.request("POST", f"{path}/pause")
    other = await api.request("GET", path, headers={"If-None-Match": tag})
    assert (other.status_code, other.json()["status"]) == (200, "paused"), (
        "its revision is the same, its state is not"
    )


async def test_revisions_tell_who_changed_what_and_why(api: ApiHarness) -> None:
    made = await api.create_job(schedule={"kind": "cron", "expr": "0 6 * * *", "timezone": "UTC"}, tags=["a"])
    change = {
        "schedule": {"expr": "0 7 * * *"},
        "tags": ["a", "b"],
        "window": {"start": "06:00", "end": "08:00"},
    }
    await patch(api, made, change, params={"revision_note": "An hour later."})
    found = (await api.request("GET", f"/jobs/{made['id']}/revisions", role="viewer")).json()
    newest, oldest = found["items"]
    assert (newest["revision"], newest["note"], newest["actor"]) == (2, "An hour later.", made["owner"])
    window = {"start": "06:00", "end": "08:00", "days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]}
    assert sorted(newest["changes"], key=lambda each: each["path"]) == [
        {"path": "/schedule/expr", "before": "0 6 * * *", "after": "0 7 * * *"},
        {"path": "/schedule/words", "before": "Every day at 06:00, UTC", "after": "Every day at 07:00, UTC"},
        {"path": "/tags", "before": ["a"], "after": ["a", "b"]},
        {"path": "/window", "before": None, "after": {**window, "otherwise": "defer"}},
    ]
    assert (oldest["changes"], oldest["definition"]["schedule"]) == ([], made["schedule"])
    assert found["next_cursor"] is None


async def test_a_job_goes_back_to_an_old_revision(api: ApiHarness) -> None:
    made = await api.create_job()
    await patch(api, made, {"name": "other", "timeout": "1m"})
    api.hints.clear()
    body = {"revision": 1, "note": "It was better."}
    answer = await api.request("POST", f"/jobs/{made['id']}/revert", json=body)
    after = answer.json()
    assert (answer.status_code, after["revision"], after["name"], after["timeout"]) == (200, 3, "beat", "10m")
    assert api.hints == ["timers"]
    [newest, *_] = (await api.request("GET", f"/jobs/{made['id']}/revisions")).json()["items"]
    assert newest["note"] == "Back to revision 1. It was better."
    answer = await api.request("POST", f"/jobs/{made['id']}/revert", json={"revision": 9})
    assert problems(answer) == {"/revision": "This job has no revision 9."}


async def test_an_agent_gets_no_upstream_of_others_by_going_back_and_keeps_one_it_was_given(
    api: ApiHarness,
) -> None:
    api.keys["acme", "agent"] = await api.create_key("acme", MemberRole.EDITOR, kind=PrincipalKind.AGENT)
    upstream, manual = await api.create_job(name="of a person"), {"kind": "manual"}
    mine = (await api.request("POST", "/jobs", role="agent", json=job(name="mine", schedule=manual))).json()
    await patch(api, mine, {"depends_on": [{"job": upstream["id"]}]})
    kept = await patch(api, mine, {"timeout": "1m"}, role="agent")
    assert (kept.status_code, kept.json()["depends_on"][0]["job"]) == (200, upstream["id"])
    assert (await patch(api, mine, {"depends_on": []}, role="agent")).status_code == 200
    back = await api.request("POST", f"/jobs/{mine['id']}/revert", role="agent", json={"revision": 2})
    assert problems(back) == {"/depends_on/0/job": "There is no such job."}
    back = await api.request("POST", f"/jobs/{mine['id']}/revert", json={"revision": 2})
    assert back.status_code == 200, "whoever sees that job may"


@pytest.mark.requirement("C-9", "S4-API-5")
async def test_delete_archives_and_purge_is_for_administrators(api: ApiHarness) -> None:
    made = await api.create_job()
    path = f"/jobs/{made['id']}"
    answer = await api.request("DELETE", path)
    assert (answer.status_code, answer.content) == (204, b"")
    assert (await api.request("GET", path)).json()["status"] == "archived"
    assert (await patch(api, made, {"name": "x"})).status_code == 409
    denied = await api.request("DELETE", path, params={"purge": "true"})
    assert (denied.status_code, denied.json()["code"]) == (403, "denied")
    assert (await api.request("DELETE", path, params={"purge": "true"}, role="admin")).status_code == 204
    assert (await api.request("GET", path)).status_code == 404


@pytest.mark.requirement("S1-D2")
async def test_deleting_what_others_depend_on_needs_detach(api: ApiHarness) -> None:
    first = await api.create_job(name="extract")
    after = {"job": first["id"]}
    second = await api.create_job(name="load", schedule={"kind": "manual"}, depends_on=[after])
    answer = await api.request("DELETE", f"/jobs/{first['id']}")
    assert (answer.status_code, "load" in answer.json()["detail"]) == (409, True)
    assert (await api.request("DELETE", f"/jobs/{first['id']}", params={"detach": "true"})).status_code == 204
    assert (await api.request("GET", f"/jobs/{second['id']}")).json()["depends_on"] == []


async def test_what_others_own_cannot_be_changed_from_outside(api: ApiHarness) -> None:
    made = await api.create_job()
    key = await api.create_key("acme", MemberRole.EDITOR, kind=PrincipalKind.AGENT)
    strangers = [api.keys["globex", "editor"], key]
    for method, path, body in (
        ("PUT", "", job()),
        ("PATCH", "", {"name": "mine"}),
        ("DELETE", "", None),
        ("GET", "/revisions", None),
        ("POST", "/revert", {"revision": 1}),
    ):
        for stranger in strangers:
            headers = {
                "Authorization": f"Bearer {stranger}",
                "X-Request-Id": "same-for-all",
                "If-Match": '"9"',
            }
            answers = [
                await api.http.request(method, f"/api/v1/jobs/{job_id}{path}", json=body, headers=headers)
                for job_id in (made["id"], "0198d9b6-0000-7000-8000-000000000000")
            ]
            assert {answer.status_code for answer in answers} == {404}, (method, path)
            assert answers[0].content == answers[1].content
    assert (await api.request("GET", f"/jobs/{made['id']}")).json() == made


@pytest.mark.parametrize(
    ("kind", "config", "wrong"),
    [
        ("http", {}, {"/config/url": "This field is needed."}),
        ("http", {"url": "example.test"}, {"/config/url": "This must be an address."}),
        (
            "http",
            {"url": 7, "methud": "GET", "headers": {"X": 1}, "success": [20]},
            {
                "/config/url": "This must be text, or the name of a secret.",
                "/config/methud": 'There is no field "methud" here.',
                "/config/headers/X": "This must be text, or the name of a secret.",
                "/config/success/0": "This must be at least 100.",
            },
        ),
        (
            "http",
            {"url": "http://169.254.169.254/latest/"},
            {
                "/config/url": "169.254.169.254 is in 169.254.169.254/32 (the metadata of a cloud), "
                "which may not be called from here."
            },
        ),
        (
            "http",
            {"url": "http://0x7f.1/"},
            {"/config/url": "The host of this address is an unusual spelling of 127.0.0.1."},
        ),
        (
            "http",
            {
                "url": "https://example.test/{{run.idd}}",
                "headers": {"Host": "x", "X-Mine": "a\nb", "X-Other": "{{run.attemt}}"},
                "body": {"deep": ["{{run.secret}}"]},
                "sign": "whsec_plain",
                "timeout": "soon",
            },
            {
                "/config/url": 'There is no "run.idd" to fill in.',
                "/config/headers/Host": "The header Host is set by Foliot.",
                "/config/headers/X-Mine": "The value of a header is one line.",
                "/config/headers/X-Other": 'There is no "run.attemt" to fill in.',
                "/config/body": 'There is no "run.secret" to fill in.',
                "/config/sign": "This must be the name of a secret, or a list of up to three.",
                "/config/timeout": "This is not a duration.",
            },
        ),
        ("python", {"call": "shop"}, {"/config/call": "This names no function."}),
        ("celery", {}, {"/config/task": "This field is needed."}),
        (
            "celery",
            {"task": "shop.sync", "qeue": "jobs"},
            {"/config/qeue": 'There is no field "qeue" here.'},
        ),
        (
            "rq",
            {"function": "sync"},
            {"/config/function": "This names no function."},
        ),
        (
            "bullmq",
            {"name": "sync", "queue": "a::b"},
            {"/config/queue": "This is not a valid queue name."},
        ),
    ],
)
async def test_a_config_that_its_handler_cannot_take_is_refused_where_it_is_wrong(
    api: ApiHarness, kind: str, config: dict[str, Any], wrong: dict[str, str]
) -> None:
    answer = await api.request("POST", "/jobs", json=job(type=kind, config=config))
    assert (answer.status_code, problems(answer)) == (422, wrong)
    made = await api.create_job()
    answer = await api.request("PUT", f"/jobs/{made['id']}", json=job(type=kind, config=config))
    assert (answer.status_code, problems(answer)) == (422, wrong)


async def test_where_a_host_may_go_is_not_judged_by_the_server(api: ApiHarness) -> None:
    wanted = job(config={"url": "http://10.0.0.5/"}, target={"host": "rack-1"})
    assert problems(await api.request("POST", "/jobs", json=wanted)).keys() == {
        "/target/host"
    }  # no such host yet


async def test_secrets_stand_for_text_and_an_unknown_type_takes_anything(api: ApiHarness) -> None:
    secret = {"secret": "hook"}
    made = await api.request(
        "POST", "/secrets", role="admin", json={"name": "hook", "value": "https://example.test"}
    )
    assert made.status_code == 201, made.text
    await api.create_job(
        config={"url": secret, "headers": {"Authorization": secret}, "body": [1], "sign": secret}
    )
    await api.create_job(config={"url": "https://example.test", "sign": [secret, secret], "timeout": "10s"})
    await api.create_job(type="elsewhere", config={"anything": 1})


async def test_celery_without_results_is_refused_when_the_job_is_written(api: ApiHarness) -> None:
    wanted = job(type="celery", config={"task": "shop.sync"})
    registry.refuse_type("celery", NO_RESULT_BACKEND)
    try:
        answer = await api.request("POST", "/jobs", json=wanted)
        [error] = answer.json()["errors"]
    finally:
        registry.refuse_type("celery", None)
    assert (answer.status_code, error["pointer"]) == (422, "/type")
    assert "FOLIOT_CELERY_RESULT_URL" in error["hint"]
    assert (await api.request("POST", "/jobs", json=wanted)).status_code == 201
