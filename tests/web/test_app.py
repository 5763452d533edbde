"""The HTTP edge before the API: health, readiness, errors on the wire, and nothing open by accident."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from inspect import iscoroutinefunction

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from pydantic import BaseModel

from foliot.domain.errors import (
    Conflict,
    DatabaseUnavailable,
    Denied,
    FoliotError,
    IllegalMove,
    NotFound,
    ScheduleInvalid,
)
from foliot.storage.tx import Database
from foliot.web.app import OPEN, create_app, require_declared_routes
from foliot.web.health import Readiness


class Order(BaseModel):
    count: int


def app_with(readiness: Readiness | None = None) -> FastAPI:
    async def probe() -> Readiness:
        return readiness or Readiness()

    return create_app(probe, asyncio.Event(), Database(""), lambda _: None)


@pytest.fixture
def client() -> Iterator[TestClient]:
    app = app_with()

    @app.get("/raise/{name}")
    async def fail(name: str) -> None:
        raise {
            "invalid": ScheduleInvalid(
                "Hour 25 is not a time.", hint="Hours are 0-23.", pointer="/schedule/expr"
            ),
            "missing": NotFound("There is no such job."),
            "conflict": IllegalMove("A finished run cannot start."),
            "denied": Denied("An agent may not do that."),
            "down": DatabaseUnavailable("PostgreSQL does not answer."),
            "bug": ZeroDivisionError("hunter2"),
        }[name]

    @app.post("/orders")
    async def order(order: Order) -> Order:
        return order

    with TestClient(app) as client:
        yield client


def test_a_live_process_says_so(client: TestClient) -> None:
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "alive"})
    assert answer.headers["cache-control"] == "no-store"
    assert client.head("/healthz").status_code == 200


def test_readiness_is_503_and_names_what_is_missing() -> None:
    with TestClient(app_with(Readiness(missing=("database",), warnings=("fsync is off",)))) as client:
        answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {
        "status": "not ready",
        "roles": [],
        "missing": ["database"],
        "warnings": ["fsync is off"],
    }


def test_warnings_alone_do_not_make_it_unready() -> None:
    with TestClient(app_with(Readiness(warnings=("no worker is running",)))) as client:
        answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "ready")


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [
        ("invalid", 422, "schedule.invalid"),
        ("missing", 404, "not_found"),
        ("conflict", 409, "illegal_move"),
        ("denied", 403, "denied"),
        ("down", 503, "database_unavailable"),
    ],
)
def test_each_error_of_the_tree_has_its_status_and_code(
    client: TestClient, name: str, status: int, code: str
) -> None:
    answer = client.get(f"/raise/{name}")
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert (body["status"], body["code"]) == (status, code)
    assert body["request_id"] == answer.headers["x-request-id"]


def test_an_error_carries_its_field_and_hint(client: TestClient) -> None:
    body = client.get("/raise/invalid").json()
    assert body["detail"] == "Hour 25 is not a time."
    assert body["errors"] == [
        {"pointer": "/schedule/expr", "message": "Hour 25 is not a time.", "hint": "Hours are 0-23."}
    ]


def test_a_new_branch_of_the_tree_inherits_the_status_of_its_parent() -> None:
    from foliot.web.errors import status_of

    class Newcomer(Conflict):
        code = "newcomer"

    assert status_of(Newcomer("x")) == 409
    assert all(status_of(each("x")) != 500 for each in FoliotError.__subclasses__())


def test_a_bug_answers_500_without_its_text_and_is_logged_once(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        answer = client.get("/raise/bug", headers={"X-Request-Id": "abc-12345678"})
    assert answer.status_code == 500
    assert "hunter2" not in answer.text
    assert answer.json()["request_id"] == "abc-12345678"
    assert [record.getMessage() for record in caplog.records] == ["request.failed"]
    assert vars(caplog.records[0])["request"] == "abc-12345678"


@pytest.mark.parametrize("chosen", ["short", "with space in it", "x" * 65, "semi;colon-123"])
def test_an_odd_request_id_is_replaced(client: TestClient, chosen: str) -> None:
    assert client.get("/healthz", headers={"X-Request-Id": chosen}).headers["x-request-id"] != chosen


def test_a_body_that_is_not_json_is_400_and_a_wrong_type_is_422_with_a_pointer(client: TestClient) -> None:
    headers = {"Content-Type": "application/json"}
    assert client.post("/orders", content="{", headers=headers).json()["code"] == "malformed"
    assert client.post("/orders", content="{", headers=headers).status_code == 400
    wrong = client.post("/orders", content=json.dumps({"count": "many"}), headers=headers)
    assert wrong.status_code == 422
    assert wrong.json()["errors"][0]["pointer"] == "/count"
    assert wrong.json()["detail"] == "1 field is not as it should be."


@pytest.mark.parametrize(
    "path", ["/docs/oauth2-redirect", "/redoc", "/nowhere", "/api/v1/nowhere", "/../etc/passwd"]
)
def test_what_is_not_there_answers_a_404_problem(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_a_wrong_method_is_405_and_says_which_are_allowed(client: TestClient) -> None:
    answer = client.delete("/healthz")
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert "GET" in answer.headers["allow"]


def test_the_first_page_is_the_console_and_loads_nothing_from_elsewhere(client: TestClient) -> None:
    page = client.get("/")
    assert page.status_code == 200
    assert "Sign in" in page.text
    assert "://" not in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert page.headers["x-content-type-options"] == "nosniff"


def test_a_route_nobody_declared_open_stops_the_start() -> None:
    app = app_with()
    hidden = APIRouter()
    hidden.add_api_route("/leak", lambda: None)
    app.include_router(hidden)
    with pytest.raises(RuntimeError, match="neither open nor guarded: /leak"):
        require_declared_routes(app.routes)
    agents = {"/mcp", "/llms.txt", "/llms/{page:path}.md"}
    hooks = {"/hooks/{token}", "/hooks/{token}/{state}"}  # proven by what is sent, see test_incoming_webhooks
    feeds = {"/feeds/agenda/{key}.ics"}  # the address holds a key of its own, see test_console_plans
    assert {"/", "/console", "/docs", "/healthz", "/readyz"} | agents | hooks | feeds == OPEN


def test_no_route_and_no_dependency_runs_in_a_thread() -> None:
    """FastAPI runs plain functions in threads, which cost a request more CPU than the rest of its dependencies."""
    found = [each.dependant for each in app_with().routes if isinstance(each, APIRoute)]
    assert found
    plain = set()
    while found:
        dependant = found.pop()
        found += dependant.dependencies
        call = dependant.call
        if not any(iscoroutinefunction(each) for each in (call, type(call).__call__)):
            plain.add(getattr(call, "__qualname__", repr(call)))
    assert plain == set()
