"""Each address names all the methods it takes, and what it does not take is a 405 and no id of another address."""

from __future__ import annotations

import re

import pytest

from docs.api_reference import description
from tests.web.conftest import ApiHarness

pytestmark = pytest.mark.anyio


async def test_every_address_names_all_its_methods(shared_api: ApiHarness) -> None:
    schema = description()
    for path, item in schema["paths"].items():
        at = re.sub(r"{\w+}", "0192f0c1-2b3a-7c4d-8e5f-60718293a4b5", path)
        takes = {method.upper() for method in item if method != "parameters"} | {"OPTIONS"}
        takes |= {"HEAD"} if "GET" in takes else set()
        answer = await shared_api.http.request("OPTIONS", at)
        assert (answer.status_code, set(answer.headers["allow"].split(", "))) == (204, takes), path
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "TRACE"} - takes:
            refused = await shared_api.http.request(method, at)
            case = (method, path, refused.text)
            assert (refused.status_code, set(refused.headers["allow"].split(", "))) == (405, takes), case
            assert refused.json()["code"] == "method_not_allowed", case


async def test_an_address_that_is_not_there_has_no_methods(shared_api: ApiHarness) -> None:
    answer = await shared_api.http.request("OPTIONS", "/api/v1/nonsense")
    assert (answer.status_code, answer.headers.get("allow")) == (404, None)


async def test_head_answers_like_get_without_the_body(shared_api: ApiHarness) -> None:
    made = await shared_api.create_job()
    for path in ("/jobs", f"/jobs/{made['id']}", "/runs", "/stats"):
        got, head = [await shared_api.request(method, path) for method in ("GET", "HEAD")]
        assert (head.status_code, head.content) == (200, b""), path
        for name in ("content-type", "etag", "content-length"):
            assert head.headers.get(name) == got.headers.get(name), (path, name)
    known = {"If-None-Match": head.headers.get("etag") or "*"}
    assert (await shared_api.request("HEAD", f"/jobs/{made['id']}", headers=known)).status_code == 304
    assert (await shared_api.http.head("/api/v1/jobs")).status_code == 401
    missing = await shared_api.request("HEAD", f"/jobs/{made['id'][:-12]}000000000000")
    assert (missing.status_code, missing.content) == (404, b"")
    stream = await shared_api.request("HEAD", "/events")
    assert (stream.status_code, stream.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert not shared_api.http._transport.app.state.streams.total()  # type: ignore[attr-defined]
