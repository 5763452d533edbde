"""The console over the API in the same process: sessions, forms, permissions, and text that stays text."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from importlib.resources import files
from pathlib import Path
from uuid import uuid4

import httpx2 as httpx
import pytest

from foliot.domain.access import MemberRole
from foliot.domain.errors import Unavailable
from foliot.domain.ids import WorkerId
from foliot.domain.logs import LogLine, LogStream
from foliot.services.runs import artifacts, logs
from foliot.services.runs.artifacts import NewArtifact
from foliot.services.runs.logs import LogChunk
from foliot.services.scheduling.tick import tick
from foliot.services.workers.claim import Turns, claim
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from foliot.web.console import text
from foliot.web.console.notices import NOTICES
from foliot.web.console.pages.settings import SECTIONS
from foliot.web.console.session import COOKIE, SignInLinks, safe_next
from foliot.web.rate_limits import RateLimits
from tests.web.conftest import ApiHarness, open_api

PAGES = (
    "", "jobs", "jobs/new", "runs", "agenda", "capacity", "incidents", "rooms", "freezes", "calendars", "calendars/new", "audit",
    *(f"settings/{name}" for name, _ in SECTIONS if name != "workspaces"), "settings/channels/new", "settings/rules/new",
)  # fmt: skip
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{7*7}}"
TEMPLATES = files("foliot.web.console") / "templates"


async def signed_in(api: ApiHarness, role: str = "editor", who: str = "acme") -> dict[str, str]:
    """The cookie of a new session."""
    key = api.system if who == "system" else api.keys[who, role]
    answer = await api.http.post("/console/sign-in", data={"key": key})
    assert answer.status_code == 303, answer.text
    cookie = answer.cookies[COOKIE]
    api.http.cookies.clear()
    return {"Cookie": f"{COOKIE}={cookie}"}


async def csrf_of(api: ApiHarness, session: dict[str, str], path: str = "/console/settings/members") -> str:
    page = await api.http.get(path, headers=session)
    found = re.search(r'name="csrf" value="([0-9a-f]{64})"', page.text)
    assert found is not None
    return found[1]


async def post(api: ApiHarness, path: str, session: dict[str, str], **fields: str) -> httpx.Response:
    csrf = await csrf_of(api, session)
    return await api.http.post(path, data={"csrf": csrf, **fields}, headers=session)


async def test_a_session_is_a_key_of_its_own_that_sign_out_revokes(api: ApiHarness) -> None:
    answer = await api.http.post("/console/sign-in", data={"key": api.keys["acme", "editor"]})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Path=/console" in cookie
    made = answer.cookies[COOKIE]
    assert made != api.keys["acme", "editor"]
    bearer = {"Authorization": f"Bearer {made}"}
    me = (await api.http.get("/api/v1/me", headers=bearer)).json()
    assert me["role"] == "editor"
    assert me["key"]["expires_at"] is not None
    api.http.cookies.clear()
    session = {"Cookie": f"{COOKIE}={made}"}
    await post(api, "/console/sign-out", session)
    assert (await api.http.get("/api/v1/me", headers=bearer)).status_code == 401
    again = await api.http.get("/console/", headers=session)
    assert again.status_code == 303
    assert again.headers["location"].startswith("/console/sign-in")


async def test_a_wrong_key_gets_the_form_again_with_the_reason(api: ApiHarness) -> None:
    answer = await api.http.post("/console/sign-in", data={"key": "fol_wrong"})
    assert answer.status_code == 401
    assert "not valid" in answer.text
    assert COOKIE not in answer.cookies


async def test_the_key_of_a_worker_opens_no_session(api: ApiHarness) -> None:
    key = await api.create_key("acme", MemberRole.OPERATOR, scopes=frozenset({"worker"}))
    answer = await api.http.post("/console/sign-in", data={"key": key})
    assert answer.status_code == 403
    assert COOKIE not in answer.cookies


def test_a_link_signs_in_once_in_whichever_process_it_is_opened(tmp_path: Path) -> None:
    made, other = SignInLinks(tmp_path), SignInLinks(tmp_path)
    token = made.make("fol_key")
    assert token is not None
    assert other.redeem("something else") is None
    assert other.redeem(token) == "fol_key"
    assert made.redeem(token) is None


def test_a_link_ends_after_ten_minutes(tmp_path: Path) -> None:
    clock = ManualClock()
    links = SignInLinks(tmp_path, clock)
    token = links.make("fol_key")
    assert token is not None
    clock.advance(timedelta(minutes=10))
    assert links.redeem(token) is None


@pytest.mark.parametrize(
    "target",
    ["https://evil.test", "//evil.test", "/console/../\\evil.test", "/api/v1/jobs", "", None, "/console\n"],
)
def test_sign_in_leads_only_to_pages_of_the_console(target: str | None) -> None:
    assert safe_next(target) == "/console/"
    assert safe_next("/console/jobs?q=a") == "/console/jobs?q=a"


@pytest.mark.parametrize("page", PAGES)
async def test_without_a_session_every_page_leads_to_the_sign_in_form(
    shared_api: ApiHarness, page: str
) -> None:
    answer = await shared_api.http.get(f"/console/{page}")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/console/sign-in")


@pytest.mark.parametrize("language", ["en", "es"])
@pytest.mark.parametrize("role", ["viewer", "admin"])
async def test_every_page_opens_for_the_weakest_and_the_strongest_role(
    api: ApiHarness, language: str, role: str
) -> None:
    await api.create_job(name="nightly", tags=["billing"])
    session = await signed_in(api, role)
    session["Cookie"] += f"; foliot_language={language}"
    for page in PAGES:
        answer = await api.http.get(f"/console/{page}", headers=session)
        if role == "viewer" and page in {
            "audit",
            "jobs/new",
            "calendars/new",
            "settings/channels/new",
            "settings/rules/new",
        }:
            assert answer.status_code == 403
            assert f'href="/console/{page}"' not in answer.text
            continue
        assert answer.status_code == 200, page
        assert f'<html lang="{language}">' in answer.text
        policy = answer.headers["content-security-policy"]
        assert "unsafe-inline" not in policy
        assert "frame-ancestors 'none'" in policy
        assert len(answer.content) < 150_000


async def test_a_form_without_its_token_or_from_another_site_changes_nothing(api: ApiHarness) -> None:
    made = await api.create_job(name="stays")
    session = await signed_in(api, "operator")
    path = f"/console/jobs/{made['id']}/pause"
    without = await api.http.post(path, data={"reason": "x"}, headers=session)
    csrf = await csrf_of(api, session, f"/console/jobs/{made['id']}")
    foreign = await api.http.post(
        path, data={"csrf": csrf, "reason": "x"}, headers={**session, "Sec-Fetch-Site": "cross-site"}
    )
    other = await api.http.post(
        path, data={"csrf": csrf, "reason": "x"}, headers={**session, "Origin": "https://evil.test"}
    )
    assert [each.status_code for each in (without, foreign, other)] == [403, 403, 403]
    assert (await api.request("GET", f"/jobs/{made['id']}")).json()["status"] == "active"
    right = await api.http.post(path, data={"csrf": csrf, "reason": "lunch"}, headers=session)
    assert right.status_code == 303
    paused = (await api.request("GET", f"/jobs/{made['id']}")).json()
    assert (paused["status"], paused["status_reason"]) == ("paused", "lunch")


async def test_a_viewer_sees_no_control_that_the_server_would_refuse(api: ApiHarness) -> None:
    made = await api.create_job(name="nightly")
    page = await api.http.get(f"/console/jobs/{made['id']}", headers=await signed_in(api, "viewer"))
    assert f"/console/jobs/{made['id']}/edit" not in page.text
    assert 'popovertarget="run-now"' not in page.text
    session = await signed_in(api, "viewer")
    refused = await post(api, f"/console/jobs/{made['id']}/pause", session, reason="x")
    assert refused.status_code == 403
    assert "viewer" in refused.text


async def test_a_job_of_another_workspace_is_not_found(api: ApiHarness) -> None:
    made = await api.create_job(who="globex", name="theirs")
    answer = await api.http.get(f"/console/jobs/{made['id']}", headers=await signed_in(api))
    assert answer.status_code == 404
    assert "theirs" not in answer.text


async def test_markup_in_user_fields_stays_text_on_every_page(api: ApiHarness) -> None:
    made = await api.create_job(
        name=HOSTILE[:190],
        description=HOSTILE,
        tags=["a<b>c"],
        payload={"x": HOSTILE},
        config={"url": "https://example.test", "headers": {"x": "<b>"}},
    )
    run = (await api.request("POST", f"/jobs/{made['id']}/run", json={"input": {"note": HOSTILE}})).json()
    await api.request("POST", f"/jobs/{made['id']}/pause", json={"reason": HOSTILE})
    session = await signed_in(api, "admin")
    pages = (
        *PAGES,
        f"jobs/{made['id']}",
        f"jobs/{made['id']}/edit",
        f"runs/{run['id']}",
        "search?q=",
        f"jobs?q={HOSTILE}",
    )
    for page in pages:
        answer = await api.http.get(f"/console/{page}", headers=session)
        if "json" in answer.headers["content-type"]:
            continue
        assert "<script>alert" not in answer.text, page
        assert "<img src=x" not in answer.text, page
        assert "{{7*7}}" in answer.text or "7*7" not in answer.text, page


@pytest.mark.requirement("S1-SC-004")
async def test_the_editor_creates_a_job_from_words_and_changes_it(api: ApiHarness) -> None:
    session = await signed_in(api)
    part = await api.http.get(
        "/console/jobs/preview?kind=words&when=every+weekday+at+9am&timezone=Europe/Paris", headers=session
    )
    assert "Every weekday at 09:00, Europe/Paris" in part.text
    fields = {
        "name": "report",
        "kind": "words",
        "when": "every weekday at 9am",
        "timezone": "Europe/Paris",
        "type": "http",
        "config_url": "https://example.test",
    }
    created = await post(api, "/console/jobs/save", session, **fields)
    assert created.status_code == 303, created.text
    job_id = created.headers["location"].rsplit("/", 1)[-1]
    stored = (await api.request("GET", f"/jobs/{job_id}")).json()
    assert stored["schedule"]["expr"] == "0 9 * * 1-5"
    page = await api.http.get(f"/console/jobs/{job_id}/edit", headers=session)
    etag = _field(page.text, "etag")
    changed = await post(
        api, f"/console/jobs/{job_id}/save", session, **fields | {"name": "report 2", "etag": etag}
    )
    assert changed.status_code == 303, changed.text
    assert (await api.request("GET", f"/jobs/{job_id}")).json()["name"] == "report 2"
    stale = await post(
        api, f"/console/jobs/{job_id}/save", session, **fields | {"name": "report 3", "etag": etag}
    )
    assert stale.status_code == 412
    assert "report 3" in stale.text  # what the person typed is still there
    assert (await api.request("GET", f"/jobs/{job_id}")).json()["name"] == "report 2"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"when": "0 25 * * *", "kind": "cron"}, "takes 0-23"),
        ({"config": "{"}, "not JSON"),
        ({"payload": "[1]"}, "JSON object"),
        ({"when": "whenever you like"}, "schedule"),
        ({"timezone": "Mars/Olympus"}, "zone"),
    ],
)
async def test_what_the_editor_cannot_save_comes_back_with_the_reason(
    api: ApiHarness, fields: dict[str, str], sentence: str
) -> None:
    whole = {
        "name": "draft",
        "kind": "words",
        "when": "every hour",
        "type": "http",
        "config_url": "https://example.test",
        **fields,
    }
    answer = await post(api, "/console/jobs/save", await signed_in(api), **whole)
    assert answer.status_code in (400, 422)
    assert 'value="draft"' in answer.text
    assert sentence in answer.text


async def test_a_new_key_is_shown_once(api: ApiHarness) -> None:
    session = await signed_in(api, "admin")
    answer = await post(api, "/console/settings/keys", session, name="robot")
    assert re.search(r"fol_\w{8}_\w{20,}", answer.text)
    again = await api.http.get("/console/settings/keys", headers=session)
    assert "robot" in again.text
    assert not re.search(r"fol_\w{8}_\w{20,}", again.text)


async def test_a_freeze_is_previewed_then_made_and_lifted(api: ApiHarness) -> None:
    await api.create_job(name="nightly")
    session = await signed_in(api, "operator")
    preview = await api.http.get("/console/freezes?reason=upgrade&after=latest", headers=session)
    assert "planned times of 1 job" in preview.text
    await post(api, "/console/freezes/create", session, reason="upgrade", after="latest")
    page = await api.http.get("/console/", headers=session)
    assert "Freeze in force" in page.text
    found = (await api.request("GET", "/freezes")).json()["items"][0]
    await post(api, f"/console/freezes/{found['id']}/lift", session)
    assert isinstance(api.database.clock, ManualClock)
    api.database.clock.advance(timedelta(seconds=1))
    assert "Freeze in force" not in (await api.http.get("/console/", headers=session)).text


async def test_internal_calls_ignore_headers_of_the_browser(api: ApiHarness) -> None:
    """A cookie cannot be made to act for another workspace by a header that only system keys may send."""
    session = await signed_in(api)
    answer = await api.http.get(
        "/console/jobs", headers={**session, "Foliot-Workspace": "globex", "Authorization": "Bearer x"}
    )
    assert answer.status_code == 200


async def test_styles_are_compressed_and_pages_are_not(shared_api: ApiHarness) -> None:
    """The size of a compressed page would betray its form token; styles hold nothing secret."""
    accepted = {"Accept-Encoding": "gzip"}
    style = await shared_api.http.get("/console/static/console.css", headers=accepted)
    assert (style.headers["content-encoding"], style.headers["vary"]) == ("gzip", "Accept-Encoding")
    plain = await shared_api.http.get("/console/static/console.css", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert style.text == plain.text
    page = await shared_api.http.get("/console/jobs", headers={**await signed_in(shared_api), **accepted})
    assert "content-encoding" not in page.headers


def test_templates_have_no_inline_script_style_or_handler() -> None:
    for name, source in _templates().items():
        assert not re.search(r"<script(?![^>]*\bsrc=)", source), name
        assert not re.search(r"\sstyle=|\son[a-z]+=|javascript:", source), name
        assert "|safe" not in source, name


def test_every_message_of_the_templates_has_a_spanish_text() -> None:
    spanish = text.catalogue("es")
    missing = {
        message
        for source in _templates().values()
        for match in re.finditer(r"""_\(\s*(?:"([^"]+)"|'([^']+)')""", source)
        if (message := match[1] or match[2]) not in spanish
    }
    assert missing == set()
    for english, translated in spanish.items():
        assert set(re.findall(r"{\w+}", english)) == set(re.findall(r"{\w+}", translated)), english


def test_a_time_in_a_sentence_of_the_service_is_written_as_the_page_writes_times() -> None:
    now = datetime(2027, 1, 6, tzinfo=UTC)
    sentence = "Run 12, planned for 2027-01-05 06:00:00 America/Bogota (UTC-05:00), failed at 2027-01-05 11:01:02 UTC <b>."
    own = text.Reader(now, text.translator("en")).with_times(sentence, "America/Bogota")
    assert "planned for <time" in own
    assert ">Tue 5 Jan 06:00 -05</time>, failed at <time" in own
    assert ">Tue 5 Jan 06:01:02 -05</time> &lt;b&gt;." in own
    chosen = text.Reader(now, text.translator("en"), zone="Europe/Madrid").with_times(
        sentence, "America/Bogota"
    )
    assert ">Tue 5 Jan 12:00 CET</time>" in chosen
    assert 'title="2027-01-05 06:00:00 America/Bogota (UTC-05:00)"' in chosen
    unknown = "at 2027-01-05 06:00:00 Nowhere (UTC-05:00)"
    assert text.Reader(now, text.translator("en")).with_times(unknown) == unknown


def test_only_addresses_of_the_console_become_links_and_lead_into_this_one() -> None:
    run = "/console/runs/01a1e5c0-d05e-7c96-ab92-dae6434b036b"
    said = f"Open the run: https://evil.test{run}\nSee https://evil.test/console/runs and {run}x <b>"
    assert text.own_links(said) == (
        f'Open the run: <a href="{run}">{run}</a>\nSee https://evil.test/console/runs and {run}x &lt;b&gt;'
    )
    assert text.own_links(f"http://h{run}/../../sign-out") == f"http://h{run}/../../sign-out"


def test_relative_times_have_seconds_only_when_they_are_near() -> None:
    now = datetime(2027, 1, 6, tzinfo=UTC)
    reader = text.Reader(now, text.translator("en"))
    said = {
        seconds: reader.relative(now + timedelta(seconds=seconds))
        for seconds in (-5, 119, -187, 3_725, 90_000)
    }
    assert said == {
        -5: "5 s ago",
        119: "in 1 m 59 s",
        -187: "3 m ago",
        3_725: "in 1 h 2 m",
        90_000: "in 1 d 1 h",
    }


def test_a_count_of_one_is_said_in_the_singular() -> None:
    english, spanish = text.translator("en"), text.translator("es")
    assert (english("{count} failures", count="1"), spanish("{count} failures", count=1)) == (
        "1 failure",
        "1 fallo",
    )
    assert (english("{count} failures", count="1,204"), spanish("{count} failures", count=2)) == (
        "1,204 failures",
        "2 fallos",
    )
    known = text.catalogue("es")
    for language in ("en", "es"):
        assert set(text.messages_for_one(language)) <= set(known)
    assert text.messages_for_one("en").keys() == text.messages_for_one("es").keys()


@pytest.mark.parametrize("cookie", ["{x:>9000000}|x=a", "{x.y}|x=a", "Pay at evil.test", "job-saved|x"])
async def test_a_notice_shows_no_text_from_the_cookie(shared_api: ApiHarness, cookie: str) -> None:
    """A cookie names a sentence of the console. A format in it would cost memory before any user signs in."""
    answer = await shared_api.http.get("/console/sign-in", headers={"Cookie": f'foliot_flash="{cookie}"'})
    assert answer.status_code == 200
    session = await signed_in(shared_api)
    session["Cookie"] += f'; foliot_flash="{cookie}"'
    page = await shared_api.http.get("/console/agenda", headers=session)
    assert page.status_code == 200
    assert "banner flash" not in page.text


async def test_a_notice_is_shown_after_a_form(api: ApiHarness) -> None:
    made = await api.create_job(name="nightly")
    session = await signed_in(api, "operator")
    answer = await post(api, f"/console/jobs/{made['id']}/pause", session, reason="x")
    session["Cookie"] += f"; foliot_flash={answer.cookies['foliot_flash']}"
    page = await api.http.get(answer.headers["location"], headers=session)
    assert "The job is paused." in page.text
    assert set(NOTICES.values()) <= set(text.catalogue("es"))


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("jobs/{id}/revert", {"revision": "abc"}),
        ("jobs/{id}/revert", {"revision": "9" * 5_000}),
        ("jobs/{id}/revert", {"revision": "²"}),
        ("jobs/{id}/run", {"input": '{"a":' * 20_000}),
        ("jobs/{id}/run", {"input": "9" * 5_000}),
        ("jobs/{id}/run", {"input": "0"}),
        ("jobs/save", {"payload": "[" * 90_000}),
        ("jobs/save", {"config": '{"a":' + "9" * 5_000 + "}"}),
        ("jobs/save", {"retry_max": "9" * 5_000}),
        (
            "jobs/save",
            {"name": "new", "when": "every hour", "config_url": "https://example.test", "retry_max": "some"},
        ),
        ("jobs/{id}/pause", {"csrf": "é"}),
        ("jobs/{id}/pause", {f"f{n}": "" for n in range(200)}),
    ],
)
async def test_a_form_with_odd_values_is_refused_with_a_sentence(
    api: ApiHarness, path: str, fields: dict[str, str]
) -> None:
    made = await api.create_job(name="stays")
    answer = await post(api, "/console/" + path.format(id=made["id"]), await signed_in(api), **fields)
    assert 400 <= answer.status_code < 500
    assert 'role="alert"' in answer.text
    assert (await api.request("GET", f"/jobs/{made['id']}")).json()["revision"] == made["revision"]


async def test_odd_addresses_are_refused_and_reach_no_other_route(api: ApiHarness) -> None:
    made = await api.create_job(name="nightly")
    session = await signed_in(api)
    odd = (
        f"jobs/new?copy={made['id']}/next",
        "jobs/new?copy=/",
        "jobs/new?copy=../keys",
        "jobs/..%2f..%2fkeys",
        "jobs/%3fq=1",
        "static/..%2fsite.py",
        "nothing",
    )
    for path in odd:
        answer = await api.http.get(f"/console/{path}", headers=session)
        assert answer.status_code == 404, path
    for hours in ("9" * 5_000, "999999", "²", "-1", "abc"):
        answer = await api.http.get(f"/console/agenda?hours={hours}", headers=session)
        assert answer.status_code == 200, hours


async def test_an_unknown_page_and_a_wrong_method_get_a_page_of_the_console(api: ApiHarness) -> None:
    session = await signed_in(api)
    unknown = await api.http.get("/console/nothing", headers=session)
    assert "There is no such page." in unknown.text
    assert "frame-ancestors 'none'" in unknown.headers["content-security-policy"]
    wrong = await api.http.put("/console/jobs", headers=session)
    assert wrong.status_code == 405
    assert set(wrong.headers["allow"].split(", ")) == {"GET", "HEAD"}
    assert 'role="alert"' in wrong.text


async def test_redirects_never_name_the_host_of_the_request(api: ApiHarness) -> None:
    session = await signed_in(api)
    for host in ("evil.test", "evil.test/x?", "["):
        answer = await api.http.get("/console/jobs/", headers={**session, "Host": host})
        assert answer.headers["location"] == "/console/jobs"
        signed_out = await api.http.get("/console/jobs", headers={"Host": host})
        assert signed_out.headers["location"] == "/console/sign-in?next=/console/jobs"
    assert (await api.http.get("/console")).headers["location"] == "/console/"


async def test_sign_in_leads_back_to_the_whole_address(api: ApiHarness) -> None:
    """The query of the page stays whole, also with several parameters."""
    answer = await api.http.get("/console/jobs?q=a%20b&sort=name%23x")
    form = await api.http.get(answer.headers["location"])
    target = _field(form.text, "next").replace("&amp;", "&")
    assert target == "/console/jobs?q=a%20b&sort=name%23x"
    entered = await api.http.post(
        "/console/sign-in", data={"key": api.keys["acme", "viewer"], "next": target}
    )
    assert entered.headers["location"] == target


async def test_an_unreadable_origin_counts_as_another_site(shared_api: ApiHarness) -> None:
    key = shared_api.keys["acme", "viewer"]
    for origin in ("http://[", "null", "https://evil.test"):
        answer = await shared_api.http.post("/console/sign-in", data={"key": key}, headers={"Origin": origin})
        assert answer.status_code == 403, origin
        assert COOKIE not in answer.cookies


async def test_a_preview_of_the_sign_in_link_does_not_use_it_up(
    shared_api: ApiHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chat programs ask for a link with HEAD before the person opens it."""
    used: list[str] = []

    def redeem(_: SignInLinks, token: str) -> str:
        used.append(token)
        return shared_api.keys["acme", "viewer"]

    monkeypatch.setattr(SignInLinks, "redeem", redeem)
    assert (await shared_api.http.head("/console/sign-in?link=abc")).status_code == 200
    assert used == []
    assert (await shared_api.http.get("/console/sign-in?link=abc")).status_code == 303
    shared_api.http.cookies.clear()


async def test_a_workspace_chosen_before_locks_nobody_out(api: ApiHarness) -> None:
    """The cookie of an earlier session names a workspace that is closed to this key, or gone."""
    stale = {"Cookie": "foliot_workspace=globex"}
    entered = await api.http.post("/console/sign-in", data={"key": api.keys["acme", "viewer"]}, headers=stale)
    assert entered.status_code == 303, entered.text
    assert any(
        "foliot_workspace=" in each and "Max-Age=0" in each for each in entered.headers.get_list("set-cookie")
    )
    api.http.cookies.clear()
    for who, role, workspace in (("acme", "viewer", "globex"), ("system", "", "gone")):
        session = await signed_in(api, role, who)
        page = await api.http.get(
            "/console/jobs", headers={"Cookie": f"{session['Cookie']}; foliot_workspace={workspace}"}
        )
        assert page.headers["location"] == "/console/"
        assert "Max-Age=0" in page.headers["set-cookie"]
        api.http.cookies.clear()


async def test_choices_keep_only_known_values(api: ApiHarness) -> None:
    session = await signed_in(api)
    for name, value in (
        ("zone", "Mars/Olympus"),
        ("zone", "a\r\nb"),
        ("language", "xx"),
        ("workspace", "a;b"),
    ):
        answer = await post(api, "/console/choose", session, **{name: value})
        assert answer.status_code == 303
        assert "set-cookie" not in answer.headers, value
    for name, value in (("zone", "Europe/Paris"), ("zone", "job"), ("language", "es"), ("workspace", "acme")):
        answer = await post(api, "/console/choose", session, **{name: value})
        assert value in answer.headers["set-cookie"]
        api.http.cookies.clear()


async def test_an_outage_does_not_look_like_a_sign_out(database: Database) -> None:
    """The page says what is wrong. A sign-in form would suggest that the session has ended."""
    rates = RateLimits()
    async with open_api(database, rates=rates) as api:
        session = await signed_in(api)

        def refuse(_: object) -> None:
            raise Unavailable("The database is down.")

        rates.count = refuse  # type: ignore[method-assign, assignment]
        answer = await api.http.get("/console/jobs", headers=session)
        assert answer.status_code == 503
        assert "The database is down." in answer.text
        assert "location" not in answer.headers


def _form_of(page: str) -> dict[str, str]:
    """The fields of the editor as a browser would send them unchanged."""
    fields = {
        match[1]: match[2]
        for match in re.finditer(r'<input(?![^>]*radio)[^>]*name="(\w+)" value="([^"]*)"', page)
    }
    fields |= {
        match[1]: match[2].replace("\n", "\r\n")
        for match in re.finditer(r'<textarea[^>]*name="(\w+)"[^>]*>(.*?)</textarea>', page, re.DOTALL)
    }
    for match in re.finditer(r'<select[^>]*name="(\w+)"[^>]*>(.*?)</select>', page, re.DOTALL):
        if chosen := re.search(r'<option(?: value="([^"]*)")? selected>([^<]*)', match[2]):
            fields[match[1]] = chosen[1] or chosen[2]
    kind = re.search(r'name="kind" value="(\w+)" checked', page)
    assert kind is not None
    return {name: unescape(value) for name, value in fields.items()} | {"kind": kind[1]}


@pytest.mark.parametrize(
    "schedule",
    [
        {"words": "every other tuesday at 14:30"},
        {"kind": "cron", "expr": "*/10 0 9 * * 1", "seconds": True, "spread": "1s"},
        {"kind": "interval", "every": "1h", "spread": "5m"},
        {"kind": "once", "at": "2099-01-02T18:00:00Z", "timezone": "Europe/Paris"},
        {"kind": "manual"},
    ],
)
async def test_the_editor_keeps_what_its_form_does_not_show(
    api: ApiHarness, schedule: dict[str, object]
) -> None:
    made = await api.create_job(
        name="nightly",
        schedule=schedule,
        config={"url": "https://example.test", "method": "GET", "headers": {"a": "1"}},
        payload={"a": {"b": 1, "c": None}},
        retry={"max": 4, "strategy": "exponential", "base": "10s", "cap": "5m"},
    )
    session = await signed_in(api)
    page = await api.http.get(f"/console/jobs/{made['id']}/edit", headers=session)
    if schedule.get("kind") != "manual":
        assert f'<p class="sentence">{made["schedule"]["words"]}</p>' in page.text
    form = _form_of(page.text)
    del form["csrf"]
    answer = await post(api, f"/console/jobs/{made['id']}/save", session, **form | {"description": "new"})
    assert answer.status_code == 303, answer.text
    stored = (await api.request("GET", f"/jobs/{made['id']}")).json()
    for name in ("schedule", "retry", "config", "payload", "tags", "timeout"):
        assert stored[name] == made[name]
    assert stored["description"] == "new"
    form |= {"retry_max": "6", "etag": ""}
    await post(api, f"/console/jobs/{made['id']}/save", session, **form)
    stored = (await api.request("GET", f"/jobs/{made['id']}")).json()
    assert stored["retry"] == {**made["retry"], "max": 6}


async def test_the_editor_removes_what_a_person_deletes_from_json(api: ApiHarness) -> None:
    made = await api.create_job(
        config={"url": "https://example.test", "headers": {"a": "1", "b": "2"}},
        payload={"k": 1, "l": {"m": 2}},
    )
    session = await signed_in(api)
    path = f"/console/jobs/{made['id']}"
    form = _form_of((await api.http.get(f"{path}/edit", headers=session)).text)
    form |= {"etag": "", "config_headers": '{"a": "1"}', "payload": '{"l": {}}'}
    del form["csrf"]
    assert (await post(api, f"{path}/save", session, **form)).status_code == 303
    stored = (await api.request("GET", f"/jobs/{made['id']}")).json()
    assert stored["config"]["headers"] == {"a": "1"}
    assert stored["payload"] == {"l": {}}
    await post(api, f"{path}/save", session, **form | {"payload": "", "config_headers": "", "base": ""})
    stored = (await api.request("GET", f"/jobs/{made['id']}")).json()
    assert (stored["payload"], "headers" in stored["config"]) == ({}, False)


async def test_a_colleague_is_offered_only_what_the_role_allows(api: ApiHarness) -> None:
    for role, may_create in (("viewer", False), ("operator", False), ("editor", True)):
        session = await signed_in(api, role)
        for page in ("", "jobs"):
            answer = await api.http.get(f"/console/{page}", headers=session)
            assert ("/console/jobs/new" in answer.text) is may_create, (role, page)


async def test_an_archived_job_offers_no_edit_and_no_run(api: ApiHarness) -> None:
    made = await api.create_job(name="old")
    await api.request("DELETE", f"/jobs/{made['id']}")
    page = await api.http.get(f"/console/jobs/{made['id']}", headers=await signed_in(api))
    assert f"/console/jobs/{made['id']}/edit" not in page.text
    assert 'class="primary" popovertarget="run-now"' not in page.text
    assert f"copy={made['id']}" in page.text


async def test_the_command_beside_a_list_quotes_the_filter(api: ApiHarness) -> None:
    """A link from a stranger must not turn the command into two."""
    session = await signed_in(api)
    for page in ("jobs", "runs"):
        answer = await api.http.get(f"/console/{page}", params={"q": "a'; id #"}, headers=session)
        listed = unescape(answer.text).replace("list -q ", "list ")
        assert f"foliot {page} list " + "'a'\"'\"'; id #'" in listed


async def test_a_run_shows_its_log_and_hands_out_its_files_as_downloads(
    api: ApiHarness, clock: ManualClock
) -> None:
    """Lines, names and files come from a job and stay text: an HTML file is saved, never shown."""
    await api.create_job(name="nightly")
    clock.advance(timedelta(minutes=10))
    await tick(api.database)
    worker = await api.register_worker(WorkerId(uuid4()))
    [run] = await claim(api.database, worker, "default", ["http"], 1, Turns())
    line = LogLine(clock.now(), LogStream.LOG, HOSTILE)
    await logs.append(api.database, [LogChunk(run.run_id, 1, run.fence, 1, [line])])
    name = "a b?#%2e<b>\"'.html"
    file = NewArtifact(run.run_id, run.fence, worker, 1, name, "text/html", HOSTILE.encode())
    await artifacts.keep(api.database, file)
    session = await signed_in(api, "viewer")
    page = await api.http.get(f"/console/runs/{run.run_id}", headers=session)
    assert page.status_code == 200
    assert "<script>alert" not in page.text
    assert "text/html · " in page.text
    link = re.search(r'href="(/console/runs/[^"]+/artifacts/[^"]+)"', page.text)
    assert link is not None
    answer = await api.http.get(unescape(link[1]), headers=session)
    assert (answer.status_code, answer.text) == (200, HOSTILE)
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert "sandbox" in answer.headers["content-security-policy"]


async def test_settings_and_capacity_show_what_the_workspace_holds(api: ApiHarness) -> None:
    made = [
        await api.request("POST", "/secrets", role="admin", json={"name": "TOKEN", "value": "hidden-value"}),
        await api.request("PUT", "/limits", role="admin", json={"key": "db", "cap": 7}),
        await api.request(
            "POST", "/members", role="admin", json={"name": "Ana", "role": "viewer", "kind": "user"}
        ),
    ]
    assert all(each.is_success for each in made), [each.text for each in made]
    session = await signed_in(api, "admin")
    secrets = (await api.http.get("/console/settings/secrets", headers=session)).text
    assert "TOKEN" in secrets
    assert "hidden-value" not in secrets
    assert "Ana" in (await api.http.get("/console/settings/members", headers=session)).text
    assert "/ 7" in (await api.http.get("/console/capacity", headers=session)).text
    audit = (await api.http.get("/console/audit", headers=session)).text
    assert "None" not in audit


DRAWN = ("m-", "s-", "heat-", "stderr", "system")  # a state, a level or a stream of a log makes the name


def test_every_class_of_the_styles_is_on_some_page() -> None:
    package = Path(str(TEMPLATES)).parent
    written = "\n".join(
        each.read_text("utf-8") for suffix in ("html", "js", "py") for each in package.rglob(f"*.{suffix}")
    )
    quoted = re.findall(
        r"class(?:Name)?\s*[=:,(]\s*.*?>|classList[^;]*;|className[^;]*;|\"class\",[^;]*;|\(\"m-[^)]*\)|css[^\n]*",
        written,
    )
    used = set(re.findall(r"[\w-]+", " ".join(quoted)))
    for style in (package / "static").glob("*.css"):
        selectors = " ".join(
            re.findall(r"([^{}]+){", re.sub(r"/\*.*?\*/", "", style.read_text("utf-8"), flags=re.DOTALL))
        )
        known = {each for each in re.findall(r"\.([a-zA-Z][\w-]*)", selectors) if not each.startswith(DRAWN)}
        assert known - used == set(), style.name


def _templates() -> dict[str, str]:
    return {each.name: each.read_text("utf-8") for each in TEMPLATES.iterdir() if each.name.endswith(".html")}


def _field(page: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found is not None
    return found[1].replace("&#34;", '"')
