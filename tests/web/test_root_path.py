"""Behind a proxy that offers Foliot under a path: every address that leaves the server has the prefix."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest

from foliot.storage.tx import Database
from tests.web.conftest import ApiHarness, job, open_api
from tests.web.test_console import signed_in

pytestmark = pytest.mark.anyio
ROOT = "/ops/foliot"
PAGES = (
    "", "jobs", "jobs/new", "runs", "agenda", "capacity", "incidents", "rooms", "freezes", "calendars", "calendars/new",
    "settings", "settings/channels",
)  # fmt: skip


@pytest.fixture
async def api(database: Database) -> AsyncIterator[ApiHarness]:
    async with open_api(database, root_path=ROOT) as made:
        yield made


@pytest.mark.parametrize("prefix", [ROOT, ""], ids=["as it comes", "removed by the proxy"])
async def test_location_leads_through_the_proxy(api: ApiHarness, prefix: str) -> None:
    headers = {"Authorization": f"Bearer {api.keys['acme', 'editor']}"}
    made = await api.http.post(f"{prefix}/api/v1/jobs", json=job(), headers=headers)
    assert made.status_code == 201, made.text
    assert made.headers["location"] == f"{ROOT}/api/v1/jobs/{made.json()['id']}"
    assert (await api.http.get(made.headers["location"], headers=headers)).json()["id"] == made.json()["id"]
    for path in ("", "/", "/console"):
        moved = await api.http.get(f"{prefix}{path}" or "/")
        assert (moved.status_code, moved.headers["location"]) == (307, f"{ROOT}/console/")


async def test_the_description_names_the_prefix(api: ApiHarness) -> None:
    headers = {"Authorization": f"Bearer {api.keys['acme', 'viewer']}"}
    schema = (await api.http.get(f"{ROOT}/openapi.json", headers=headers)).json()
    assert schema["servers"][0]["url"] == ROOT
    assert "/api/v1/jobs" in schema["paths"]


async def test_the_console_stays_behind_the_proxy(api: ApiHarness) -> None:
    made = await api.create_job(name='="/console/jobs is text')
    session = await api.http.post(
        f"{ROOT}/console/sign-in?next=/console/jobs", data={"key": api.keys["acme", "editor"]}
    )
    assert session.headers["location"].startswith(f"{ROOT}/console/")
    assert f"Path={ROOT}/console;" in f"{session.headers['set-cookie']};"
    api.http.cookies.clear()
    cookie = await signed_in(api)
    for path in (*PAGES, f"jobs/{made['id']}"):
        page = await api.http.get(f"{ROOT}/console/{path}", headers=cookie)
        assert page.status_code == 200, path
        links = re.findall(r'(?:href|src|action|data-[a-z-]+)="(/[^"]*)"', page.text)
        assert [each for each in links if not each.startswith(f"{ROOT}/")] == [], path
        assert f'href="{ROOT}/console/jobs"' in page.text
    listed = (await api.http.get(f"{ROOT}/console/jobs", headers=cookie)).text
    assert "=&#34;/console/jobs is text" in listed, "names are left alone"


async def test_scripts_of_the_console_know_the_prefix(api: ApiHarness) -> None:
    cookie = await signed_in(api)
    page = await api.http.get(f"{ROOT}/console/", headers=cookie)
    scripts = re.findall(r'src="([^"]+\.js[^"]*)"', page.text)
    assert scripts
    for each in scripts:
        assert not re.search(r"[\"'`]/console", (await api.http.get(each)).text), each


async def test_other_paths_that_begin_alike_are_not_ours(api: ApiHarness) -> None:
    assert (await api.http.get(f"{ROOT}s/healthz")).status_code == 404
    assert (await api.http.get(f"{ROOT}/healthz")).status_code == 200
