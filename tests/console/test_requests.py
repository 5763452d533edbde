"""Every route of the console over HTTP: headers, forged forms, redirects, sessions, and what each role is shown and refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2 as httpx
import pytest

from foliot.web.console.session import COOKIE
from tests.console.html import Form, Page
from tests.console.site import Session, Site, address, page_addresses, paths

# Walks of every route on a server with much in it; tests/web/test_console.py makes each claim on one page.
pytestmark = pytest.mark.slow
TARGETS = (
    "//evil.test/console/",
    "https://evil.test/",
    "/\\evil.test",
    "/console/../\\evil.test",
    "/console\r\nX: y",
    "javascript:alert(1)",
)
TARGET_NAMES = ("next", "target", "return_to", "back")
ELSEWHERE = {"Origin": "https://evil.test", "Sec-Fetch-Site": "cross-site"}
# Forms for everybody: they change nothing but the person's own choices and keys.
PERSONAL = {
    "/console/choose",
    "/console/sign-out",
    "/console/sign-in",
    "/console/settings/keys",
    "/console/settings/keys/*/revoke",
    "/console/agenda/feed",
    "/console/agenda/feed/*/revoke",
}
READING = {"/jobs/preview", "/jobs/{job_id}/preview"}  # they answer to a form and store nothing
ROLES = ("viewer", "operator", "editor", "admin")


def open_pages(site: Site, workspace: str, role: str) -> Iterator[Page]:
    session = site.session(workspace, role)
    with site.http(session) as http:
        for wanted in page_addresses(site, session, site.workspaces[workspace].ids):
            yield Page(wanted, http.get(wanted).text)


def csrf_of(http: httpx.Client) -> str:
    return next(
        form.fields["csrf"]
        for form in Page("/console/jobs", http.get("/console/jobs").text).forms
        if form.method == "post"
    )


def stays_in_the_console(answer: httpx.Response) -> bool:
    location = urlsplit(answer.headers.get("location", "/console/"))
    return not location.netloc and location.path.startswith("/console") and ".." not in location.path


def without_ids(address: str) -> str:
    return re.sub(r"[0-9a-f-]{36}|(?<=cursor=)[^&]+|(?<=at=)[^&]+", "*", address)


def newest_change(site: Site, workspace: str) -> str:
    return str(site.api(workspace).items("/audit?limit=1")[0]["id"])


def test_every_route_has_an_example_address(site: Site) -> None:
    for method in ("GET", "POST"):
        for path in paths(method):
            address(path, site.workspaces["acme"].ids)


def test_every_answer_forbids_inline_script_foreign_sources_and_frames(site: Site) -> None:
    ids = site.workspaces["acme"].ids
    wrong: list[tuple[str, int, object]] = []
    for session in (site.session("acme", "admin"), site.session("acme", "viewer"), Session("")):
        with site.http(session) as http:
            wanted = [address(path, ids) for path in paths("GET")]
            wanted += ["/console/no-such-page", "/console/jobs/no-such-job", "/console/runs/no-such-run"]
            for each in wanted:
                answer = http.get(each)
                policy = answer.headers.get("content-security-policy", "")
                rules = dict(rule.strip().partition(" ")[::2] for rule in policy.split(";"))
                fine = rules.get("default-src") == "'none'"
                fine = fine and (rules.get("frame-ancestors") == "'none'" or "sandbox" in rules)  # a download
                fine = fine and "unsafe" not in policy and "*" not in policy
                fine = fine and answer.headers.get("x-content-type-options") == "nosniff"
                fine = fine and answer.headers.get("cache-control") in {"no-store", "private, no-cache"}
                if not fine:
                    wrong.append((each, answer.status_code, dict(answer.headers)))
                if (
                    inline := Page(each, answer.text).inline
                    if "html" in answer.headers.get("content-type", "")
                    else []
                ):
                    wrong.append((each, answer.status_code, inline))
    assert wrong == []


def test_every_form_is_refused_without_its_token_and_from_another_site(site: Site) -> None:
    ids, session = site.workspaces["acme"].ids, site.session("acme", "admin")
    before = newest_change(site, "acme")
    with site.http(session) as http:
        token = csrf_of(http)
        for path in paths("POST"):
            if path in {
                "/sign-in",
                "/join",
            }:  # nobody is signed in there: a key or an invite stands for the token
                continue
            wanted = address(path, ids)
            forged = {
                "no token": http.post(wanted, data={"reason": "forged"}),
                "wrong token": http.post(wanted, data={"csrf": "0" * 64}),
                "another site": http.post(wanted, data={"csrf": token}, headers=ELSEWHERE),
                "another origin": http.post(
                    wanted, data={"csrf": token}, headers={"Origin": "https://evil.test"}
                ),
                "a nested page": http.post(
                    wanted, data={"csrf": token}, headers={"Sec-Fetch-Site": "same-site"}
                ),
            }
            assert {name: answer.status_code for name, answer in forged.items()} == dict.fromkeys(
                forged, 403
            ), path
    assert newest_change(site, "acme") == before


def test_a_form_of_another_site_signs_nobody_in(site: Site) -> None:
    key = site.workspaces["acme"].keys["viewer"]
    answer = httpx.post(f"{site.base}/console/sign-in", data={"key": key}, headers=ELSEWHERE)
    assert answer.status_code == 403
    assert COOKIE not in answer.cookies


def test_nobody_who_is_not_signed_in_gets_further_than_the_sign_in_page(site: Site) -> None:
    ids = site.workspaces["acme"].ids
    before = newest_change(site, "acme")
    for session in (Session(""), Session(site.workspaces["acme"].keys["viewer"][:-3] + "abc")):
        with site.http(session) as http:
            for path in paths("GET"):
                answer = http.get(address(path, ids))
                assert answer.status_code in {303, 401} or path.startswith("/sign-in"), (
                    path,
                    answer.status_code,
                )
            for path in paths("POST"):
                answer = http.post(address(path, ids), data={"csrf": "0" * 64})
                assert answer.status_code in {303, 401, 403}, (path, answer.status_code)
                assert answer.headers.get("location", "/console/sign-in").startswith("/console/sign-in")
    assert newest_change(site, "acme") == before


def test_no_address_leads_to_another_site(site: Site) -> None:
    """Whatever an address names as its target, the answer stays in the console."""
    ids, session = site.workspaces["acme"].ids, site.session("acme", "admin")
    with site.http(session) as http:
        token = csrf_of(http)
        for target in TARGETS:
            given = dict.fromkeys(TARGET_NAMES, target)
            answers = [http.get(address(path, ids), params=given) for path in paths("GET")]
            answers.append(http.post("/console/choose", data={"csrf": token, "next": target}))
            for answer in answers:
                assert stays_in_the_console(answer), answer.url


def test_signing_in_never_takes_over_a_session_that_was_there_before(site: Site) -> None:
    planted = site.session("acme", "viewer").cookie
    answer = httpx.post(
        f"{site.base}/console/sign-in",
        data={"key": site.workspaces["acme"].keys["editor"]},
        headers={"Cookie": f"{COOKIE}={planted}"},
    )
    made = answer.cookies[COOKIE]
    assert made not in {planted, site.workspaces["acme"].keys["editor"]}
    with site.http(Session(planted)) as http:  # the user who planted it stays a viewer
        assert "/console/jobs/new" not in http.get("/console/jobs").text
    with site.http(Session(made)) as http:
        assert "/console/jobs/new" in http.get("/console/jobs").text
        assert http.post("/console/sign-out", data={"csrf": csrf_of(http)}).status_code == 303
    with site.http(Session(made)) as http:
        assert http.get("/console/jobs").headers["location"].startswith("/console/sign-in")


def test_a_role_sees_only_controls_that_it_may_use(site: Site) -> None:
    """Collect the forms of all pages, then send each unchanged, as the weakest role that sees it."""
    site.workspace("scratch")
    forms: dict[tuple[str, str], tuple[str, Form]] = {}
    for role in ROLES:
        for page in open_pages(site, "scratch", role):
            for form in page.forms:
                forms.setdefault((form.method, form.action), (role, form))
    shown_to_viewers = {
        action for (method, action), (role, _) in forms.items() if (role, method) == ("viewer", "post")
    }
    assert {without_ids(action) for action in shown_to_viewers} <= PERSONAL
    refused = []
    for (method, action), (role, form) in forms.items():
        if action == "/console/sign-out":
            continue
        given = form.fields | dict.fromkeys(TARGET_NAMES, TARGETS[0])
        with site.http(site.session("scratch", role)) as http:
            answer = http.post(action, data=given) if method == "post" else http.get(action, params=given)
        if (
            answer.status_code in {403, 404, 405}
            or answer.status_code >= 500
            or not stays_in_the_console(answer)
        ):
            refused.append((role, method, action, answer.status_code))
    assert refused == []


@pytest.mark.parametrize("role", ROLES)
def test_every_link_that_a_role_sees_opens(site: Site, role: str) -> None:
    found = {
        link for page in open_pages(site, "acme", role) for link in page.links if link.startswith("/console")
    }
    links = {without_ids(link): link for link in found}.values()  # one of each kind
    with site.http(site.session("acme", role)) as http:
        broken = {
            link: answer.status_code
            for link in sorted(links)
            if (answer := http.get(link)).status_code >= 400
        }
    assert broken == {}


def test_a_viewer_who_forges_every_form_changes_nothing(site: Site) -> None:
    ids, session = site.workspaces["acme"].ids, site.session("acme", "viewer")
    before = newest_change(site, "acme")
    with site.http(session) as http:
        token = csrf_of(http)
        for path in paths("POST"):
            if address(path, ids) not in PERSONAL and path not in READING:
                given = {
                    "csrf": token,
                    "reason": "forged",
                    "name": "forged",
                    "text": "forged",
                    "note": "forged",
                }
                answer = http.post(address(path, ids), data=given)
                assert 400 <= answer.status_code < 500, (path, answer.status_code)
    assert newest_change(site, "acme") == before
