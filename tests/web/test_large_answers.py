"""The reference page, compressed answers and merge patches."""

from __future__ import annotations

import re

import pytest

from docs.api_reference import description
from foliot.web.middleware import LEAST_COMPRESSED
from tests.web.conftest import ApiHarness

pytestmark = pytest.mark.anyio


async def test_the_reference_page_names_every_operation_and_loads_nothing(shared_api: ApiHarness) -> None:
    answer = await shared_api.http.get("/docs")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    schema = description()
    for path, item in schema["paths"].items():
        assert path in answer.text
        for operation in item.values():
            assert f'id="{operation["operationId"]}"' in answer.text
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", answer.text)
    assert "<script" not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert 'href="/docs"' in (await shared_api.http.get("/console/sign-in")).text


async def test_large_answers_are_compressed_for_those_who_accept_it(api: ApiHarness) -> None:
    for number in range(20):
        await api.create_job(name=f"job {number}", payload={"text": "x" * 1_000})
    plain = await api.request("GET", "/jobs", headers={"Accept-Encoding": "identity"})
    assert len(plain.content) > LEAST_COMPRESSED
    assert "content-encoding" not in plain.headers
    packed = await api.request("GET", "/jobs", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.json() == plain.json()
    small = await api.request("GET", "/me", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in small.headers


async def test_a_patch_may_call_itself_a_merge_patch(api: ApiHarness) -> None:
    made = await api.create_job()
    kind = {"Content-Type": "application/merge-patch+json"}
    answer = await api.request("PATCH", f"/jobs/{made['id']}", content=b'{"name": "other"}', headers=kind)
    assert (answer.status_code, answer.json()["name"]) == (200, "other")
    answer = await api.request("POST", "/jobs", content=b"{}", headers=kind)
    assert answer.status_code == 415
