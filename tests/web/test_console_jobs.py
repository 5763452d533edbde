"""The console's pages of jobs: list, bulk actions, one job, its actions."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest

from foliot.domain.access import MemberRole
from foliot.domain.filters.fields import JOBS
from foliot.services.scheduling.tick import tick
from foliot.testing.clock import ManualClock
from foliot.web.console import text
from foliot.web.console.api import Api
from foliot.web.console.pages import job, job_form, jobs
from foliot.web.console.site import Visit
from tests.web.conftest import ApiHarness
from tests.web.test_console import _form_of, post, signed_in

DAILY = {"kind": "cron", "expr": "30 2 * * *", "timezone": "Europe/Paris"}
MANUAL = {"kind": "manual"}


async def page_of(api: ApiHarness, path: str, session: dict[str, str], **params: Any) -> str:
    answer = await api.http.get(f"/console/{path}", headers=session, params=params)
    assert answer.status_code == 200, answer.text
    return unescape(answer.text)


def test_messages_that_are_no_literals_of_templates_have_a_spanish_text() -> None:
    said = {each.says for each in JOBS.fields if not each.of}
    said |= {label for label, _, _ in jobs.BULK.values()} | {label for _, label in jobs.STATUSES}
    said |= {label for _, label in job.TABS} | {each.replace("_", " ") for each in job.ALERT_EVENTS}
    said |= set(job_form.LABELS.values())
    said |= {"after success", "after failure", "after any end", "gate", "set here", "default"}
    assert said - set(text.catalogue("es")) == set()


async def test_the_list_shows_a_strip_of_runs_for_each_job_from_one_call(
    api: ApiHarness, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second"):
        await api.create_job(name=name)
    clock.advance(timedelta(minutes=10))
    await tick(api.database)
    asked: list[str] = []
    get = Visit.__init__

    def init(self: Any, *args: Any) -> None:
        get(self, *args)
        call = self.api.call

        async def counted(method: str, path: str, *rest: Any, **more: Any) -> Any:
            asked.append(path)
            return await call(method, path, *rest, **more)

        self.api.call = counted

    monkeypatch.setattr(Visit, "__init__", init)
    page = await page_of(api, "jobs", await signed_in(api, "viewer"))
    assert page.count('class="strip"') == 2
    assert asked.count("/recent-runs") == 1
    assert not any(path.startswith("/jobs/") for path in asked)


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("", []),
        ("status:active tag:a", ["status:active", "tag:a"]),
        ('name:"two words" -tag:old', ['name:"two words"', "-tag:old"]),
        (r'"a \" b" c', [r'"a \" b"', "c"]),
    ],
)
def test_a_filter_is_divided_into_terms_that_can_be_removed(query: str, terms: list[str]) -> None:
    assert jobs.split_terms(query) == terms
    for place in range(len(terms)):
        assert jobs.split_terms(jobs.without(query, place)) == terms[:place] + terms[place + 1 :]


async def test_each_term_of_a_filter_links_to_the_list_without_it(api: ApiHarness) -> None:
    await api.create_job(name="nightly", tags=["a b"])
    page = await page_of(api, "jobs", await signed_in(api, "viewer"), q="status:active nightly")
    assert 'href="/console/jobs?q=nightly"' in page
    assert 'href="/console/jobs?q=status%3Aactive"' in page
    assert "/console/jobs?q=tag:%22a%20b%22" in page
    assert "1 job matches." in page


async def test_a_bulk_action_shows_count_and_sample_and_changes_nothing_before_it_is_confirmed(
    api: ApiHarness,
) -> None:
    made = [await api.create_job(name=f"job {n}", tags=["t"]) for n in range(3)]
    session = await signed_in(api, "operator")
    page = await page_of(api, "jobs/bulk", session, action="pause", all="1", q="tag:t")
    assert "3 of 3 jobs would change." in page
    assert "job 1" in page
    states = [(await api.request("GET", f"/jobs/{each['id']}")).json()["status"] for each in made]
    assert states == ["active"] * 3
    fields = {"action": "pause", "q": "tag:t", "expected_count": "3", "reason": "lunch", "ids": ""}
    answer = await post(api, "/console/jobs/bulk", session, **fields)
    assert answer.status_code == 200, answer.text
    assert "3 jobs changed." in answer.text
    paused = (await api.request("GET", f"/jobs/{made[0]['id']}")).json()
    assert (paused["status"], paused["status_reason"]) == ("paused", "lunch")
    await api.create_job(name="late", tags=["t"])
    refused = await post(api, "/console/jobs/bulk", session, **fields | {"action": "disable"})
    assert refused.status_code == 409  # not the jobs that the person saw
    assert 'role="alert"' in refused.text


async def test_a_bulk_action_on_chosen_jobs_offers_an_undo_for_those_it_changed(api: ApiHarness) -> None:
    one, other, third = [await api.create_job(name=f"job {n}") for n in range(3)]
    await api.request("POST", f"/jobs/{other['id']}/pause")
    session = await signed_in(api, "operator")
    ids = f"{one['id']} {other['id']}"
    answer = await post(api, "/console/jobs/bulk", session, action="pause", q="", ids=ids)
    form = re.search(r'name="action" value="resume".*?name="ids" value="([^"]+)"', answer.text, re.DOTALL)
    assert form is not None
    assert form[1] == one["id"]
    assert f'<a href="/console/jobs/{other["id"]}">job 1</a>: needed no change' in answer.text
    assert (await api.request("GET", f"/jobs/{third['id']}")).json()["status"] == "active"


async def test_a_bulk_action_that_is_not_done_in_one_call_goes_on_from_its_page(
    api: ApiHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        await api.create_job(name=f"job {n}")
    monkeypatch.setattr("foliot.services.jobs.bulk.LARGE_PIECE", 1)
    monkeypatch.setattr("foliot.services.jobs.bulk.act.__kwdefaults__", {"dry_run": False, "lasts": 0.0})
    session = await signed_in(api, "operator")
    fields = {"action": "pause", "q": "", "ids": "", "expected_count": "3"}
    for left in (2, 1):
        answer = await post(api, "/console/jobs/bulk", session, **fields)
        assert f"{left} left" in answer.text
        assert "data-go-on" in answer.text
        fields |= dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', answer.text))
        del fields["csrf"]
    answer = await post(api, "/console/jobs/bulk", session, **fields)
    assert "3 jobs changed." in answer.text


async def test_archived_jobs_are_restored_together_and_the_archive_offers_nothing_else(
    api: ApiHarness,
) -> None:
    made = [(await api.create_job(name=name))["id"] for name in ("one", "two")]
    session = await signed_in(api)
    assert 'value="restore"' not in await page_of(api, "jobs", session)
    done = await post(api, "/console/jobs/bulk", session, action="archive", ids=" ".join(made))
    assert 'name="action" value="restore"' in done.text  # the undo
    listed = await page_of(api, "jobs", session, q="status:archived")
    assert 'value="restore"' in listed
    assert 'value="pause"' not in listed
    asked = await page_of(api, "jobs/bulk", session, action="restore", all="1", q="status:archived")
    assert "2 of 2 jobs would change" in asked
    assert "disabled until somebody resumes them" in asked
    restored = await post(
        api,
        "/console/jobs/bulk",
        session,
        action="restore",
        q="status:archived",
        expected_count="2",
    )
    assert "2 jobs changed" in restored.text
    assert (await api.request("GET", f"/jobs/{made[0]}")).json()["status"] == "disabled"


async def test_a_viewer_is_offered_no_bulk_action_and_an_operator_no_edit(api: ApiHarness) -> None:
    await api.create_job(name="nightly")
    assert 'id="bulk"' not in await page_of(api, "jobs", await signed_in(api, "viewer"))
    page = await page_of(api, "jobs", await signed_in(api, "operator"))
    assert 'value="pause"' in page
    assert 'value="archive"' not in page


@pytest.mark.parametrize("tab", [name for name, _ in job.TABS])
@pytest.mark.parametrize("role", ["viewer", "admin"])
async def test_each_part_of_a_job_opens_for_every_role(api: ApiHarness, tab: str, role: str) -> None:
    first = await api.create_job(name="first", schedule=DAILY)
    made = await api.create_job(name="second", schedule=MANUAL, depends_on=[{"job": first["id"]}])
    await api.request("POST", f"/jobs/{made['id']}/run")
    await api.request("PATCH", f"/jobs/{made['id']}", json={"timeout": "1m"})
    page = await page_of(api, f"jobs/{made['id']}", await signed_in(api, role), tab=tab)
    assert f"?tab={tab}" in page or tab == "overview"
    assert len(page) < 150_000


async def test_a_mark_of_the_strip_leads_to_the_explanation_of_its_planned_time(
    api: ApiHarness, clock: ManualClock
) -> None:
    made = await api.create_job(name="nightly")
    clock.advance(timedelta(minutes=10))
    await tick(api.database)
    session = await signed_in(api, "viewer")
    page = await page_of(api, f"jobs/{made['id']}", session)
    [run] = (await api.request("GET", f"/jobs/{made['id']}/runs")).json()["items"]
    assert f"/console/jobs/{made['id']}?run={run['id']}#why" in page
    explained = (await api.request("GET", f"/runs/{run['id']}/explain")).json()
    assert explained["sentence"] in await page_of(api, f"jobs/{made['id']}", session, run=run["id"])
    odd = await api.http.get(f"/console/jobs/{made['id']}?run=../jobs/x", headers=session)
    assert odd.status_code == 404


async def test_the_graph_names_the_jobs_before_and_after(api: ApiHarness) -> None:
    first = await api.create_job(name="<first>")
    middle = await api.create_job(name="middle", schedule=MANUAL, depends_on=[{"job": first["id"]}])
    last = await api.create_job(name="last", schedule=MANUAL, depends_on=[{"job": middle["id"], "on": "any"}])
    answer = await api.http.get(f"/console/jobs/{middle['id']}", headers=await signed_in(api, "viewer"))
    graph = answer.text[answer.text.index('class="graph"') :].partition("</svg>")[0]
    assert "&lt;first&gt;" in graph
    for other in (first, last):
        assert f'href="/console/jobs/{other["id"]}"' in graph


async def test_the_definition_is_what_export_writes_and_names_the_origin_of_each_value(
    api: ApiHarness,
) -> None:
    made = await api.create_job(name="nightly", schedule=DAILY, queue="slow", tags=["billing"])
    page = await page_of(api, f"jobs/{made['id']}", await signed_in(api, "viewer"), tab="definition")
    assert "jobs:\n  - name: nightly\n    type: http\n    schedule:\n      kind: cron" in page
    assert re.search(r"<code>queue</code></th><td>slow</td><td[^>]*>set here", page)
    assert re.search(r"<code>timeout</code></th><td>10m</td><td[^>]*>default of the installation", page)
    assert re.search(r"<code>overlap</code></th><td>skip</td><td[^>]*>default<", page)


async def test_a_run_takes_the_fields_that_a_person_changed_as_its_input(api: ApiHarness) -> None:
    made = await api.create_job(
        name="nightly", payload={"month": "10", "dry": True, "limit": 5, "deep": {"a": 1}}
    )
    session = await signed_in(api, "operator")
    fields = {
        "in.month": "10",
        "in.dry": "false",
        "in.limit": "7",
        "in.deep": '{\n  "a": 1\n}',
        "input": '{"x": 1}',
    }
    answer = await post(api, f"/console/jobs/{made['id']}/run", session, **fields)
    assert answer.status_code == 303, answer.text
    run = (await api.request("GET", f"/runs/{answer.headers['location'].rsplit('/', 1)[-1]}")).json()
    assert run["input"] == {"month": "10", "dry": False, "limit": 7, "deep": {"a": 1}, "x": 1}
    wrong = await post(api, f"/console/jobs/{made['id']}/run", session, **fields | {"in.limit": "many"})
    assert wrong.status_code == 422  # fmt: skip


async def test_a_pause_ends_at_the_time_of_the_jobs_zone(api: ApiHarness) -> None:
    made = await api.create_job(name="nightly", schedule=DAILY)
    session = await signed_in(api, "operator")
    path = f"/console/jobs/{made['id']}"
    answer = await post(api, f"{path}/pause", session, reason="x", until="2099-07-01T10:00")
    assert answer.status_code == 303, answer.text
    stored = (await api.request("GET", f"/jobs/{made['id']}")).json()
    assert stored["paused_until"] == "2099-07-01T08:00:00Z"
    await post(api, f"{path}/resume", session)
    odd = await post(api, f"{path}/pause", session, reason="x", until="whenever")
    assert odd.status_code == 422


@pytest.mark.parametrize(
    ("act", "fields", "status"),
    [
        ("pause", {"reason": "x"}, "active"),
        ("disable", {}, "active"),
        ("delete", {}, "active"),
        ("skip-next", {"n": "1"}, "active"),
    ],
)
async def test_an_action_offers_an_undo_that_takes_it_back(
    api: ApiHarness, act: str, fields: dict[str, str], status: str
) -> None:
    made = await api.create_job(name="nightly", schedule=DAILY)
    session = await signed_in(api)
    done = await post(api, f"/console/jobs/{made['id']}/{act}", session, **fields)
    session["Cookie"] += f"; foliot_flash={done.cookies['foliot_flash']}"
    page = await page_of(api, done.headers["location"].removeprefix("/console/"), session)
    undo = re.search(r'banner flash.*?action="([^"]+)"', page, re.DOTALL)
    assert undo is not None
    answer = await post(api, undo[1], session)
    assert answer.status_code == 303, answer.text
    after = (await api.request("GET", f"/jobs/{made['id']}")).json()
    assert after["status"] == status
    assert after["next_run_at"] == made["next_run_at"]


async def test_a_planned_skip_is_a_flag_of_the_next_times(api: ApiHarness) -> None:
    made = await api.create_job(name="nightly", schedule=DAILY)
    await api.request("POST", f"/jobs/{made['id']}/skip-next", json={"n": 2, "reason": "moving"})
    ahead = (await api.request("GET", f"/jobs/{made['id']}/next")).json()["items"]
    flagged = ["It will be skipped: moving" in each["notes"] for each in ahead]
    assert flagged == [True, True, False, False, False]
    page = await page_of(api, f"jobs/{made['id']}", await signed_in(api, "operator"))
    assert f'action="/console/jobs/{made["id"]}/undo-skip"' in page


async def test_a_job_in_shadow_mode_says_so_until_a_person_ends_it(api: ApiHarness) -> None:
    made = await api.create_job(name="nightly", schedule=DAILY, shadow=True)
    path, session = f"jobs/{made['id']}", await signed_in(api)
    assert "Shadow: nothing runs" in await page_of(api, "jobs", session)
    assert "Shadow mode: its planned times are recorded" in await page_of(api, path, session)
    assert (await post(api, f"/console/{path}/cutover", session)).status_code == 303
    assert (await api.request("GET", f"/{path}")).json()["shadow"] is False
    assert "Shadow mode" not in await page_of(api, path, session)
    assert (await post(api, f"/console/{path}/undo-edit", session)).status_code == 303
    assert (await api.request("GET", f"/{path}")).json()["shadow"] is True


async def test_the_undo_of_an_edit_reverts_only_the_persons_own_change(api: ApiHarness) -> None:
    made = await api.create_job(name="nightly", schedule=DAILY)
    path, session = f"/console/jobs/{made['id']}", await signed_in(api)
    await api.request("PATCH", f"/jobs/{made['id']}", json={"timeout": "1m"})
    answer = await post(api, f"{path}/undo-edit", session)
    assert answer.status_code == 303, answer.text
    assert (await api.request("GET", f"/jobs/{made['id']}")).json()["timeout"] == "10m"
    await api.request("PATCH", f"/jobs/{made['id']}", json={"timeout": "2m"}, role="admin")
    assert (await post(api, f"{path}/undo-edit", session)).status_code == 409
    assert (await api.request("GET", f"/jobs/{made['id']}")).json()["timeout"] == "2m"


async def test_a_change_of_the_owner_is_shown_by_names(api: ApiHarness) -> None:
    made = await api.create_job(name="nightly", schedule=DAILY)
    members = (await api.request("GET", "/members", role="admin")).json()["items"]
    member = next(each for each in members if each["id"] != made["owner"])
    await api.request("PATCH", f"/jobs/{made['id']}", json={"owner": member["id"]}, role="admin")
    page = await page_of(api, f"jobs/{made['id']}", await signed_in(api), tab="changes")
    assert f'<td class="new">"{member["name"]}"</td>' in page


async def test_the_closest_rule_of_each_event_is_shown_and_a_mute_is_one_of_them(api: ApiHarness) -> None:
    made = await api.create_job(name="nightly", tags=["billing"])
    for name, scope in (("everything", {}), ("bills", {"tags": ["billing"]}), ("others", {"tags": ["x"]})):
        rule = {"name": name, "events": ["run_failed"], "scope": scope}
        assert (await api.request("POST", "/notification-rules", json=rule)).status_code == 201
    session = await signed_in(api)
    page = await page_of(api, f"jobs/{made['id']}", session, tab="alerts")
    assert "bills" in page
    assert "everything" not in page
    muted = await post(api, f"/console/jobs/{made['id']}/mute", session)
    assert muted.status_code == 303, muted.text
    assert "This job is muted" in await page_of(api, f"jobs/{made['id']}", session, tab="alerts")
    unmute = f"/console/jobs/{made['id']}/unmute"
    assert (await post(api, unmute, await signed_in(api, "viewer"))).status_code == 403
    assert (await post(api, unmute, session)).status_code == 303
    assert "This job is muted" not in await page_of(api, f"jobs/{made['id']}", session, tab="alerts")


async def test_a_backfill_is_counted_before_it_is_made(api: ApiHarness) -> None:
    made = await api.create_job(name="nightly", schedule=DAILY)
    session, path = await signed_in(api, "operator"), f"jobs/{made['id']}/backfill"
    page = await page_of(api, path, session, **{"from": "2026-03-01T00:00", "to": "2026-03-04T00:00"})
    assert "3 runs would be created." in page
    assert (await api.request("GET", f"/jobs/{made['id']}/runs")).json()["items"] == []
    hidden = dict(re.findall(r'type="hidden" name="(from|to)" value="([^"]+)"', page))
    answer = await post(api, f"/console/{path}", session, **hidden)
    assert answer.status_code == 303, answer.text
    assert len((await api.request("GET", f"/jobs/{made['id']}/runs")).json()["items"]) == 3


async def test_a_link_fills_the_form_of_a_new_job(api: ApiHarness) -> None:
    link = {"name": "hello", "when": "every 2 hours", "url": "https://example.test/x", "method": "GET"}
    form = await form_at(api, f"jobs/new?{urlencode(link)}", await signed_in(api))
    assert (form["name"], form["when"]) == ("hello", "every 2 hours")
    assert (form["config_url"], form["config_method"]) == ("https://example.test/x", "GET")


async def form_at(api: ApiHarness, path: str, session: dict[str, str]) -> dict[str, str]:
    return editor_form((await api.http.get(f"/console/{path}", headers=session)).text)


def editor_form(page: str) -> dict[str, str]:
    """The fields as a browser would send them: a box that is not ticked sends nothing."""
    form = page[page.index('id="editor"') :].partition("</form>")[0]
    return _form_of(re.sub(r'<input type="checkbox"(?![^>]*checked)[^>]*>', "", form))


NEW = {"name": "report", "kind": "words", "when": "every day at 9am", "timezone": "Europe/Paris"}


@pytest.mark.parametrize(
    ("kind", "fields", "config"),
    [
        ("python", {"config_call": "shop.jobs:sync"}, {"call": "shop.jobs:sync"}),
        (
            "command",
            {
                "config_argv": "/bin/backup\n--full",
                "config_env": '{"A": {"secret": "s"}}',
                "config_success": "0, 3",
            },
            {"argv": ["/bin/backup", "--full"], "env": {"A": {"secret": "s"}}, "success": [0, 3]},
        ),
        (
            "http",
            {"config_url": '{"secret": "hook"}', "config_method": "GET", "config_body": '{"a": 1}'},
            {"url": {"secret": "hook"}, "method": "GET", "body": {"a": 1}},
        ),
        ("message", {"config_text": "Hello", "config_new_room": "true"}, {"text": "Hello", "new_room": True}),
        ("unknown.type", {"config": '{"anything": [1]}'}, {"anything": [1]}),
    ],
)
async def test_each_type_has_a_form_of_its_own_that_reads_back_as_it_was_written(
    api: ApiHarness, kind: str, fields: dict[str, str], config: dict[str, Any]
) -> None:
    for name in ("s", "hook"):
        await api.request("POST", "/secrets", json={"name": name, "value": "x"}, role="admin")
    session = await signed_in(api)
    created = await post(api, "/console/jobs/save", session, type=kind, **NEW, **fields)
    assert created.status_code == 303, re.findall(r"<li>[^<]*</li>", created.text)
    job_id = created.headers["location"].rsplit("/", 1)[-1]
    stored = (await api.request("GET", f"/jobs/{job_id}")).json()
    assert {name: stored["config"][name] for name in config} == config
    form = await form_at(api, f"jobs/{job_id}/edit", session)
    again = await post(api, f"/console/jobs/{job_id}/save", session, **form | {"description": "changed"})
    assert again.status_code == 303, again.text
    after = (await api.request("GET", f"/jobs/{job_id}")).json()
    assert after["config"] == stored["config"]
    assert after["inherited"] == stored["inherited"]  # what was left to the workspace stays there


@pytest.mark.requirement("S1-FR-003")
async def test_the_editor_saves_hours_calendars_dependencies_and_alerts(api: ApiHarness) -> None:
    first = await api.create_job(name="first")
    calendar = {
        "name": "nights",
        "kind": "blackout",
        "rules": [{"kind": "weekly", "start": "22:00", "end": "06:00"}],
    }
    made = (await api.request("POST", "/calendars", json=calendar)).json()
    fields = NEW | {
        "type": "http", "config_url": "https://example.test", "window_start": "08:00", "window_end": "18:00", "window_mon": "1",
        f"cal_{made['id']}": "1", "dep_job_0": "first", "dep_on_0": "any", "dep_mode_0": "gate", "tags": "a, b", "notify": "email+slack",
        "notify_to": "ops@example.test", "max_runs": "7", "retry_max": "2", "retry_strategy": "exponential", "retry_base": "10s",
    }  # fmt: skip
    session = await signed_in(api)
    created = await post(api, "/console/jobs/save", session, **fields)
    assert created.status_code == 303, re.findall(r"<li>[^<]*</li>", created.text)
    job_id = created.headers["location"].rsplit("/", 1)[-1]
    stored = (await api.request("GET", f"/jobs/{job_id}")).json()
    assert (stored["window"]["start"][:5], stored["window"]["days"]) == ("08:00", ["mon"])
    assert stored["calendars"] == [made["id"]]
    assert [(each["job"], each["on"], each["mode"]) for each in stored["depends_on"]] == [
        (first["id"], "any", "gate")
    ]
    assert stored["notify"] == {
        "email": True,
        "slack": True,
        "whatsapp": False,
        "recipients": ["ops@example.test"],
    }
    assert (stored["max_runs"], stored["tags"]) == (7, ["a", "b"])
    assert (stored["retry"]["max"], stored["retry"]["strategy"], stored["retry"]["base"]) == (
        2,
        "exponential",
        "10s",
    )
    form = await form_at(api, f"jobs/{job_id}/edit", session)
    cleared = {
        "dep_job_0": "",
        "window_start": "",
        "window_end": "",
        "max_runs": "",
        "notify": "",
        "notify_to": "",
        f"cal_{made['id']}": "",
    }
    answer = await post(api, f"/console/jobs/{job_id}/save", session, **form | cleared)
    assert answer.status_code == 303, re.findall(r"<li>[^<]*</li>", answer.text)
    after = (await api.request("GET", f"/jobs/{job_id}")).json()
    assert (after["depends_on"], after["window"], after["max_runs"], after["notify"]) == (
        [],
        None,
        None,
        None,
    )
    assert after["calendars"] == []
    assert after["retry"] == stored["retry"]


async def test_errors_stand_beside_their_fields_and_nothing_typed_is_lost(api: ApiHarness) -> None:
    fields = NEW | {
        "type": "http",
        "config_url": "nowhere",
        "timeout": "soon",
        "dep_job_0": "no such job",
        "description": "kept",
    }
    session = await signed_in(api)
    unknown = await post(api, "/console/jobs/save", session, **fields)
    assert re.search(r'name="dep_job_0" value="no such job".*?class="wrong"', unknown.text, re.DOTALL)
    refused = await post(api, "/console/jobs/save", session, **fields | {"dep_job_0": ""})
    assert refused.status_code == 422
    assert re.search(r'id="timeout-wrong"', refused.text)
    wrong = await post(api, "/console/jobs/save", session, **fields | {"dep_job_0": "", "timeout": ""})
    assert re.search(r'name="config_url" value="nowhere".{0,300}class="wrong"', wrong.text, re.DOTALL)
    assert ">kept</textarea>" in refused.text


async def test_a_refusal_names_fields_as_the_form_does_and_opens_only_the_parts_that_hold_them(
    api: ApiHarness,
) -> None:
    session = await signed_in(api)
    fields = NEW | {"type": "http", "config_url": "nowhere"}
    wrong = await post(api, "/console/jobs/save", session, **fields)
    assert '<li><a href="#config_url">URL</a>: ' in wrong.text
    assert "config.url" not in wrong.text
    assert not re.search(r'<details id="(more|before|about)" open', wrong.text)
    late = await post(api, "/console/jobs/save", session, **fields | {"retry_max": "many"})
    assert '<li><a href="#retry_max">Retries</a>: ' in late.text
    assert 'aria-describedby="retry_max-wrong"' in late.text
    assert '<details id="more" open' in late.text
    assert '<details id="before" open' not in late.text


async def test_all_fields_that_cannot_be_read_are_refused_at_once(api: ApiHarness) -> None:
    session = await signed_in(api)
    fields = NEW | {"payload": "{a", "retry_max": "many", "max_runs": "x", "dep_job_0": "no such job"}
    refused = await post(api, "/console/jobs/save", session, **fields | {"notify_to": "ops@example.com"})
    named = re.findall(r'<li><a href="#(\w+)">', refused.text)
    assert named == ["payload", "dep_job_0", "retry_max", "notify", "max_runs"]


@pytest.mark.parametrize("path", ["", "jobs", "start", "agenda"])
async def test_a_page_and_the_shell_around_it_ask_for_the_figures_of_now_once(
    api: ApiHarness, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    answer = Api._answer

    async def counted(self: Api, method: str, path: str, *rest: Any) -> Any:
        asked.append(path)
        return await answer(self, method, path, *rest)

    monkeypatch.setattr(Api, "_answer", counted)
    await page_of(api, path, await signed_in(api))
    assert asked.count("/stats/now") == 1


async def test_the_answer_to_a_form_is_not_read_again(api: ApiHarness) -> None:
    """Its address takes a POST alone."""
    session = await signed_in(api)
    refused = await post(
        api, "/console/jobs/save", session, **NEW | {"type": "http", "config_url": "nowhere"}
    )
    assert "data-live-url" not in refused.text
    assert 'name="next" value="/console/jobs/save"' not in refused.text
    assert "data-live-url" in await page_of(api, "jobs/new", session)


async def test_the_type_can_be_changed_without_script(api: ApiHarness) -> None:
    session = await signed_in(api)
    answer = await post(
        api, "/console/jobs/save", session, **NEW | {"type": "python", "choose": "type", "tags": "kept"}
    )
    assert answer.status_code == 200
    assert 'name="config_call"' in answer.text
    assert 'value="kept"' in answer.text
    assert (await api.request("GET", "/jobs")).json()["items"] == []


async def test_the_preview_of_the_form_shows_warnings_and_which_runs_change(api: ApiHarness) -> None:
    made = await api.create_job(name="nightly", schedule=DAILY)
    session = await signed_in(api)
    form = await form_at(api, f"jobs/{made['id']}/edit", session)
    same = await post(api, f"/console/jobs/{made['id']}/preview", session, **form)
    assert "run-diff" not in same.text
    moved = await post(api, f"/console/jobs/{made['id']}/preview", session, **form | {"when": "30 3 * * *"})
    assert 'class="moved"' in moved.text
    assert "At 03:30" in moved.text or "at 03:30" in moved.text
    fresh = NEW | {"type": "http", "config_url": "https://example.test", "name": "test"}
    assert (
        "does not say what the job does" in (await post(api, "/console/jobs/preview", session, **fresh)).text
    )
    assert (await api.request("GET", "/jobs")).json()["items"][0]["schedule"] == made["schedule"]


async def test_a_crowded_minute_offers_a_quiet_one(api: ApiHarness) -> None:
    for n in range(20):
        await api.create_job(
            name=f"job {n}", schedule={"kind": "cron", "expr": "0 9 * * *", "timezone": "UTC"}
        )
    fields = NEW | {"type": "http", "config_url": "https://example.test", "timezone": "UTC"}
    answer = await post(api, "/console/jobs/preview", await signed_in(api), **fields)
    assert 'data-when="H 9 * * *"' in answer.text


async def test_two_edits_of_different_fields_are_merged_on_request(api: ApiHarness) -> None:
    made = await api.create_job(name="nightly", schedule=DAILY, tags=["a"])
    session, path = await signed_in(api), f"/console/jobs/{made['id']}/save"
    form = await form_at(api, f"jobs/{made['id']}/edit", session)
    await api.request("PATCH", f"/jobs/{made['id']}", json={"tags": ["theirs"]}, role="admin")
    mine = form | {"name": "mine"}
    refused = await post(api, path, session, **mine)
    assert refused.status_code == 412
    assert "admin-acme" in refused.text  # who
    assert "tags" in refused.text[refused.text.index('class="card conflict"') :][:2_000]  # and what
    assert "banner problem" not in refused.text  # the same once more, with an id for the author
    again = editor_form(refused.text)
    answer = await post(api, path, session, **again | {"merge": "1"})
    assert answer.status_code == 303, answer.text
    stored = (await api.request("GET", f"/jobs/{made['id']}")).json()
    assert (stored["name"], stored["tags"]) == ("mine", ["theirs"])


async def test_run_now_has_a_form_of_the_input_that_the_type_names(api: ApiHarness) -> None:
    worker = await api.create_key("acme", MemberRole.VIEWER, scopes=frozenset({"worker"}))
    wanted = {
        "type": "object",
        "properties": {
            "tables": {"type": "array", "items": {"type": "string"}, "description": "Which to copy."},
            "limit": {"type": "integer"},
            "mode": {"enum": ["full", "new"], "type": "string"},
        },
        "required": ["tables"],
    }
    described = {"name": "DATA_SYNC", "config_schema": {"type": "object", "x-input-schema": wanted}}
    hello = {"name": "h1/1", "types": ["DATA_SYNC"], "capacity": 4, "described": [described]}
    answer = await api.http.post(
        "/api/v1/worker/register", json=hello, headers={"Authorization": f"Bearer {worker}"}
    )
    assert answer.status_code == 201, answer.text
    made = await api.create_job(name="sync", type="DATA_SYNC", config={}, payload={"limit": 10, "note": "x"})
    session = await signed_in(api, "operator")
    page = await page_of(api, f"jobs/{made['id']}", session)
    assert re.search(r'<textarea id="in-tables" name="in.tables"', page)
    assert "Which to copy." in page
    assert re.search(r'<input id="in-limit" name="in.limit" value="10"', page)
    assert 'name="in.note" value="x"' in page
    fields = {"in.tables": "orders\r\nlines", "in.limit": "10", "in.mode": "new", "in.note": "x"}
    started = await post(api, f"/console/jobs/{made['id']}/run", session, **fields)
    run = (await api.request("GET", f"/runs/{started.headers['location'].rsplit('/', 1)[1]}")).json()
    assert run["input"] == {"limit": 10, "note": "x", "tables": ["orders", "lines"], "mode": "new"}
    wrong = await post(api, f"/console/jobs/{made['id']}/run", session, **fields | {"in.limit": "many"})
    assert wrong.status_code == 422


async def test_the_editor_draws_the_jobs_that_a_job_follows(api: ApiHarness) -> None:
    first = await api.create_job(name="first <b>", schedule=DAILY)
    after = await api.create_job(
        name="second", schedule=MANUAL, depends_on=[{"job": first["id"], "on": "failure"}]
    )
    session = await signed_in(api)
    page = (await api.http.get(f"/console/jobs/{after['id']}/edit", headers=session)).text
    drawn = re.search(r'<svg class="graph".*?</svg>', page, re.DOTALL)
    assert drawn is not None
    assert "first &lt;b&gt;: after failure" in drawn[0]
    form = {"name": "third", "kind": "after", "type": "http", "config_url": "https://example.test"}
    form |= {"dep_job_0": "second", "dep_on_0": "success", "dep_mode_0": "trigger"}
    tried = await post(api, "/console/jobs/preview", session, **form)
    assert f'href="/console/jobs/{after["id"]}"' in tried.text


async def test_a_job_links_to_its_plots_and_is_asked_about_a_time_of_its_zone(api: ApiHarness) -> None:
    made = await api.create_job(name="nightly", schedule=DAILY)
    session = await signed_in(api, "viewer")
    page = await page_of(api, f"jobs/{made['id']}", session, tab="figures")
    assert f'href="/console/plots?job={made["id"]}"' in page
    asked = await page_of(api, f"jobs/{made['id']}", session, at="2027-01-20T02:30")
    assert 'type="datetime-local" name="at" value="2027-01-20T02:30"' in asked
    assert "2027-01-20 02:30:00 Europe/Paris" in asked
