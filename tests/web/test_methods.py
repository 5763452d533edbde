"""Each address names all the methods it takes, and what it does not take is a 405 and no id of another address."""

from __future__ import annotations

import re

import pytest

from foliot.web.openapi import describe_api
from tests.web.conftest import ApiHarness

pytestmark = pytest.mark.anyio


async def test_every_address_names_all_its_methods(shared_api: ApiHarness) -> None:
    schema = describe_api(shared_api.http._transport.app)  # type: ignore[attr-defined]
    for path, item in schema["paths"].items():
        at = re.sub(r"{\w+}", "0192f0c1-2b3a-7c4d-8e5f-60718293a4b5", path)
        takes = {method.upper() for method in item if method != "parameters"} | {"OPTIONS"}
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
