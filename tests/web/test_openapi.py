"""The description of the API: what tools and clients are made from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.web.conftest import ApiHarness

pytestmark = pytest.mark.anyio


async def described(api: ApiHarness) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {api.keys['acme', 'viewer']}"}
    answer = await api.http.get("/openapi.json", headers=headers)
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def operations(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in schema["paths"].items():
        yield from ((method, path, operation) for method, operation in item.items())


async def test_operation_ids_are_short_and_each_is_used_once(shared_api: ApiHarness) -> None:
    ids = [operation["operationId"] for _, _, operation in operations(await described(shared_api))]
    assert [each for each in ids if not re.fullmatch(r"[a-z]+(_[a-z]+){0,3}", each)] == []
    assert len(set(ids)) == len(ids)
    assert {
        "list_runs",
        "get_run",
        "cancel_run",
        "retry_run",
        "list_attempts",
        "explain_run",
        "explain_job",
    } <= set(ids)
    assert {
        "list_job_runs",
        "job_stats",
        "workspace_stats",
        "list_agenda",
        "create_job",
        "get_job",
        "run_job",
    } <= set(ids)


async def test_every_operation_and_parameter_of_runs_and_time_is_described(shared_api: ApiHarness) -> None:
    for method, path, operation in operations(await described(shared_api)):
        if not re.search(r"/(runs|explain|stats|agenda)\b", path):
            continue
        assert operation["description"], (method, path)
        silent = [
            parameter["name"]
            for parameter in operation.get("parameters", ())
            if parameter["in"] == "query" and not parameter.get("description")
        ]
        assert silent == [], (method, path)


async def test_an_answer_with_an_id_leads_to_what_can_be_done_with_it(shared_api: ApiHarness) -> None:
    schema = await described(shared_api)
    known = {operation["operationId"]: operation for _, _, operation in operations(schema)}
    links = known["create_job"]["responses"]["201"]["links"]
    assert {"get_job", "run_job", "pause_job", "explain_job", "job_stats", "list_job_runs"} <= set(links)
    assert links["run_job"] == {"operationId": "run_job", "parameters": {"job_id": "$response.body#/id"}}
    again = known["run_job"]["responses"]["201"]["links"]
    assert {"get_run", "cancel_run", "retry_run", "list_attempts", "explain_run"} <= set(again)
    assert "links" not in known["list_runs"]["responses"]["200"], "a page may be empty"
    for _, _, operation in operations(schema):
        for answer in operation["responses"].values():
            assert set(answer.get("links", ())) <= set(known)
