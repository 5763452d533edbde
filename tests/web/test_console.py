"""The console over the API in the same process: sessions, forms, permissions, and text that stays text."""

from __future__ import annotations

import re
from datetime import timedelta
from importlib.resources import files

import httpx2 as httpx
import pytest

from foliot.domain.access import MemberRole
from foliot.testing.clock import ManualClock
from foliot.web.console import text
from foliot.web.console.session import COOKIE, SignInLinks, safe_next
from tests.web.conftest import ApiHarness

PAGES = ("", "jobs", "jobs/new", "runs", "agenda", "capacity", "freezes", "audit", "settings")
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


async def csrf_of(api: ApiHarness, session: dict[str, str], path: str = "/console/settings") -> str:
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


def test_a_link_signs_in_once() -> None:
    links = SignInLinks()
    token = links.make("fol_key")
    assert links.redeem("something else") is None
    assert links.redeem(token) == "fol_key"
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
        if (role, page) == ("viewer", "audit"):
            assert answer.status_code == 403
            assert 'href="/console/audit"' not in answer.text
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
        "url": "https://example.test",
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
        "url": "https://example.test",
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
    again = await api.http.get("/console/settings", headers=session)
    assert "robot" in again.text
    assert not re.search(r"fol_\w{8}_\w{20,}", again.text)


async def test_a_freeze_is_previewed_then_made_and_lifted(api: ApiHarness) -> None:
    await api.create_job(name="nightly")
    session = await signed_in(api, "operator")
    preview = await api.http.get("/console/freezes?reason=upgrade&after=latest", headers=session)
    assert "planned times of 1 jobs" in preview.text
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


def _templates() -> dict[str, str]:
    return {each.name: each.read_text("utf-8") for each in TEMPLATES.iterdir() if each.name.endswith(".html")}


def _field(page: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found is not None
    return found[1].replace("&#34;", '"')
