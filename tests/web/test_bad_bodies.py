"""Every route that takes a body, and every parameter, with what nobody should send: refused with the reason, never a 5xx."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import Any

import pytest

from docs.api_reference import description
from foliot.domain.access import MemberRole
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from foliot.testing.database import Databases, pool_url
from tests.examples import thinned
from tests.web.conftest import ApiHarness, job, open_api

pytestmark = pytest.mark.anyio
JSON = {"Content-Type": "application/json"}
RAW: dict[str, bytes] = {
    "broken": b'{"name": ',
    "empty brackets": b"{]",
    "deep list": b"[" * 100_000 + b"]" * 100_000,
    "deep object": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "NaN": b'{"name": NaN}',
    "infinity": b'{"name": Infinity}',
    "twice": b'{"name": "a", "name": "b"}',
    "not UTF-8": b'{"name": "\xff\xfe"}',
    "UTF-16": '{"name": "a"}'.encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf{}",
    "NUL": b'{"name": "\\u0000"}',
    "raw NUL": b'{"name": "\x00"}',
    "half a pair": b'{"name": "\\ud800"}',
    "huge number": b'{"name": ' + b"9" * 100_000 + b"}",
    "huge exponent": b'{"name": 1e99999}',
    "10 MB": b'{"name": "' + b"x" * 10_000_000 + b'"}',
    "many items": b'{"name": [' + b"1," * 99_999 + b"1]}",
    "many fields": b"{" + b",".join(b'"f%d":1' % n for n in range(2_000)) + b"}",
    "list": b"[]",
    "text": b'"x"',
    "null": b"null",
    "number": b"1",
    "unknown field": b'{"no_such_field_here": 1}',
}
ODD: list[Any] = [
    None, -1, 1.5, 10**400, 2**63, "", "\u202e", [None], {"a": {}}, "0000-01-01T00:00:00Z", "9999-12-31T23:59:59+14:00",
    "8999-12-31T23:59:59Z", "P99999999D", "-PT1S", "999999999999w", "*/0 * * * *", "in 999999999999 days",
]  # fmt: skip
LARGE: list[Any] = ["x" * 300_000, ["x"] * 100_000]


@pytest.fixture(scope="module")
async def api(server: Databases) -> AsyncIterator[ApiHarness]:
    with server.fresh() as url:
        async with (
            Database(pool_url(url), clock=ManualClock()) as database,
            open_api(database, stopping=True) as made,
        ):
            worker = frozenset({"worker"})
            made.keys["acme", "worker"] = await made.create_key("acme", MemberRole.VIEWER, scopes=worker)
            yield made


def with_body(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in schema["paths"].items():
        for method, operation in item.items():
            if "requestBody" in operation:
                yield method.upper(), path, operation


async def found_at(api: ApiHarness, path: str) -> str:
    """The path, with a job of this workspace where it asks for one; other ids are nobody's."""
    made = await api.create_job(schedule={"kind": "manual"})
    other = "0192f0c1-2b3a-7c4d-8e5f-60718293a4b5"
    return re.sub(r"{(\w+)}", lambda found: made["id"] if found[1] == "job_id" else other, path)


async def sent(api: ApiHarness, method: str, at: str, **more: Any) -> Any:
    is_workers = at.startswith("/api/v1/worker/")
    mine = (
        {"Authorization": f"Bearer {api.keys['acme', 'worker']}"}
        if is_workers
        else {"Authorization": f"Bearer {api.system}", "Foliot-Workspace": "acme"}
    )
    headers = {**mine, **more.pop("headers", {})}
    return await api.http.request(method, at, headers=headers, **more)


def judged(answer: Any, case: Any) -> None:
    assert 200 <= answer.status_code < 500, (case, answer.status_code, answer.text[:300])
    if answer.status_code >= 400:
        reported = answer.json()
        assert reported["detail"], case
        assert len(answer.content) < 100_000, (case, "the answer is as large as what was sent")


@thinned(4)
async def test_no_route_takes_a_body_that_cannot_be_read(api: ApiHarness, step: int) -> None:
    schema = description()
    for place, (method, path, _) in enumerate(with_body(schema)):
        at = await found_at(api, path)
        for name, raw in islice(RAW.items(), place % step, None, step):  # each body meets many routes
            answer = await sent(api, method, at, content=raw, headers=JSON)
            judged(answer, (method, path, name))
            assert answer.status_code >= 400, (method, path, name)
        form = await sent(api, method, at, content=b"a=b", headers={"Content-Type": "text/plain"})
        assert form.status_code == 415, (method, path)


@thinned(9, 3)
async def test_no_field_of_any_body_breaks_the_server(api: ApiHarness, step: int) -> None:
    """Each top-level field of each shape, and each part of a job and its schedule, with each odd value."""
    schema = description()
    shapes = schema["components"]["schemas"]
    for method, path, operation in with_body(schema):
        at = await found_at(api, path)
        shape = operation["requestBody"]["content"]["application/json"]["schema"]
        named = [
            each["$ref"].rpartition("/")[2]
            for each in [shape, *shape.get("anyOf", ()), *shape.get("oneOf", ())]
            if "$ref" in each
        ]
        fields = {name for each in named for name in shapes[each].get("properties", ())}
        if not fields:  # a patch of a job takes what a job has
            fields = set(shapes["JobIn"]["properties"])
        whole = job() if {"schedule", "config"} <= fields else {}
        for place, field in enumerate(sorted(fields)):
            for value in (
                ODD[place % step :: step] if place else ODD + LARGE
            ):  # each value meets many fields, not all of them
                body = json.dumps({**(whole if method != "PATCH" else {}), field: value})
                answer = await sent(api, method, at, content=body, headers=JSON)
                judged(answer, (method, path, field, str(value)[:40]))


async def test_no_part_of_a_schedule_breaks_the_server(api: ApiHarness) -> None:
    kinds = {
        "cron": ("expr", "seconds", "day_match", "every_n_weeks", "anchor", "gap", "overlap_time", "spread", "timezone"),
        "interval": ("every", "anchor", "mode", "spread", "timezone"),
        "once": ("at", "timezone"),
        "words": ("words", "timezone"),
    }  # fmt: skip
    least = {
        "cron": {"expr": "0 9 * * *"},
        "interval": {"every": "1h"},
        "once": {"at": "2028-01-01T00:00:00Z"},
    }
    for kind, fields in kinds.items():
        for field in fields:
            for value in ODD:
                schedule = {"words": "hourly"} if kind == "words" else {"kind": kind, **least[kind]}
                body = json.dumps({**schedule, field: value})
                for after in ("2027-01-01T00:00:00Z", "8999-12-31T23:59:59Z"):
                    at = f"/api/v1/preview?n=100&after={after}"
                    judged(
                        await sent(api, "POST", at, content=body, headers=JSON),
                        (kind, field, str(value)[:40], after),
                    )


@thinned(6)
async def test_no_parameter_breaks_the_server(api: ApiHarness, step: int) -> None:
    schema = description()
    texts = [
        "",
        "\x00",
        "%00",
        "x" * 60_000,
        "-1",
        "1e999",
        "null",
        "\u202e",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59+14:00",
        "9" * 5_000,
    ]
    texts += ["((((", "a:b:c", "since:", "since:9999999999d", "-" * 500, '"', "tag:*", "status:" + "x" * 900]
    for path, item in schema["paths"].items():
        if "get" not in item:
            continue
        at = await found_at(api, path)
        for place, parameter in enumerate(item["get"].get("parameters", ()), len(path)):
            for text in texts[place % step :: step] if parameter["in"] != "path" else ():
                more: dict[str, Any] = {"params": {parameter["name"]: text}}
                if parameter["in"] == "header":
                    if not text.isascii() or "\x00" in text or len(text) > 8_000:
                        continue
                    more = {"headers": {parameter["name"]: text}}
                judged(await sent(api, "GET", at, **more), (path, parameter["name"], text[:40]))
