"""Links in the description of the API: an answer that holds an id leads to every operation that takes it.

Tools that walk through an API follow these: a job that was just made is then read, run, explained and archived.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

METHODS = ("get", "post", "put", "patch", "delete")
# Which shape has the id of what.
PRODUCES = {
    "JobOut": "job_id",
    "RunOut": "run_id",
    "CalendarOut": "calendar_id",
    "FreezeOut": "freeze_id",
    "KeyOut": "key_id",
    "MadeKeyOut": "key_id",
    "MemberOut": "member_id",
    "SecretOut": "secret_id",
    "WorkspaceOut": "workspace",
    "RoomOut": "room_id",
}


def link(schema: dict[str, Any]) -> None:
    """Adds `links` to the answers of the description, in place."""
    takers: dict[str, list[str]] = {}
    for path, operation in _operations(schema):
        for name in set(PRODUCES.values()):
            if f"{{{name}}}" in path:
                takers.setdefault(name, []).append(operation["operationId"])
    for _, operation in _operations(schema):
        for status, answer in operation["responses"].items():
            shape = answer.get("content", {}).get("application/json", {}).get("schema", {})
            if status.startswith("2") and (found := dict(_found(shape, takers))):
                answer["links"] = found


def _operations(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in schema["paths"].items():
        yield from ((path, item[method]) for method in METHODS if method in item)


def _found(shape: dict[str, Any], takers: dict[str, list[str]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, where in _ids(shape):
        for operation in takers.get(name, ()):
            yield operation, {"operationId": operation, "parameters": {name: f"$response.body#{where}"}}


def _ids(shape: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The ids that an answer of this shape holds. A page may be empty, so lists lead nowhere for certain."""
    named = shape.get("$ref", "").rpartition("/")[2]
    if named in PRODUCES:
        yield PRODUCES[named], "/id"
    for each in shape.get("anyOf", ()):  # what was only tried has no id, and then the link leads nowhere
        yield from _ids(each)
