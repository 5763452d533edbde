"""The description of the API: what tools and clients are made from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

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


async def test_the_description_is_valid_openapi(shared_api: ApiHarness) -> None:
    found = OpenAPIV31SpecValidator(await described(shared_api)).iter_errors()
    assert [f"{each.json_path}: {each.message}" for each in found] == []


async def test_the_description_says_whose_it_is_and_where(shared_api: ApiHarness) -> None:
    schema = await described(shared_api)
    assert schema["servers"] == [{"url": "/", "description": "This server."}]
    assert schema["info"]["license"]["identifier"] == "Apache-2.0"
    assert schema["info"]["contact"]
    used = [tag for _, _, operation in operations(schema) for tag in operation["tags"]]
    assert len(used) == len(list(operations(schema))), "one tag each"
    assert {each["name"] for each in schema["tags"]} == set(used)


async def test_each_answer_has_a_named_shape_and_its_headers(shared_api: ApiHarness) -> None:
    schema = await described(shared_api)
    for method, path, operation in operations(schema):
        for status, answer in operation["responses"].items():
            content, headers = answer.get("content", {}), set(answer.get("headers", {}))
            if status[0] in "45":
                assert content == {
                    "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
                }
            elif "application/json" in content:
                assert set(content["application/json"]["schema"]) == {"$ref"}, (method, path, status)
            assert "X-Request-Id" in headers
            assert ("Retry-After" in headers) == (status in {"429", "503"})
            assert ("RateLimit-Limit" in headers) == (status[0] == "2" or status == "429")
    made = schema["paths"]["/api/v1/jobs"]["post"]["responses"]
    assert made["201"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/JobOut"}
    assert made["2XX"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/DryRunOut"}


async def test_names_of_shapes_are_names_of_classes_and_titles_are_the_same(shared_api: ApiHarness) -> None:
    shapes = (await described(shared_api))["components"]["schemas"]
    assert [name for name in shapes if not re.fullmatch(r"[A-Z][A-Za-z0-9]+", name)] == []
    titles = [shape.get("title", name) for name, shape in shapes.items()]
    assert len(set(titles)) == len(titles)


async def test_a_stream_names_its_events_and_the_shape_of_their_data(shared_api: ApiHarness) -> None:
    schema = await described(shared_api)
    answer = schema["paths"]["/api/v1/runs/{run_id}/logs"]["get"]["responses"]["200"]
    events = answer["content"]["text/event-stream"]["schema"]["contentSchema"]["items"]["anyOf"]
    data = {
        each["properties"]["event"]["const"]: each["properties"]["data"]["contentSchema"]["$ref"]
        for each in events
    }
    assert data == {"line": "#/components/schemas/LogLineOut", "end": "#/components/schemas/LogEndOut"}
    assert {"EventOut", "LogEndOut", "LogLineOut", "MessageOut"} <= set(schema["components"]["schemas"])
