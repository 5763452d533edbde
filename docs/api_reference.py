"""Writes docs/reference/api.md from the description that Foliot serves at /openapi.json."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, cast

from docs.api_examples import BODIES, QUERIES
from foliot.web.api.writes import DRY_RUN
from foliot.web.app import create_app
from foliot.web.openapi import describe_api

Json = dict[str, Any]
# Said once, in the introduction: every operation takes these and may be refused so.
COMMON_PARAMETERS = frozenset({"foliot-workspace", "idempotency-key"})
COMMON_ANSWERS = frozenset({"400", "401", "403", "404", "413", "415", "422", "429", "503"})
SHORT = 80
ABOUT = """
All paths start at the server's address, `http://127.0.0.1:8700` unless settings say otherwise. The same description for programs,
in OpenAPI 3.1, is served at `/openapi.json` to whoever has a key.

- **Key**: `Authorization: Bearer <key>` on every request. The workspace comes from the key; a system key names one with the header
  `Foliot-Workspace: <slug>`, else it is `default`. What is not yours answers 404, like what does not exist.
- **Role**: each operation names the least that may: viewer < operator < editor < admin < system.
  [What they are](../explanation/identity.md).
- **Bodies** are JSON objects. Unknown fields are refused with a suggestion, and all wrong fields are told at once.
- **Times** are RFC 3339 with an offset and answered in UTC. **Durations** are text (`90s`, `10m`, `1h30m`) or ISO 8601 (`PT10M`).
- **Pages**: `limit` (50, at most 200) and `cursor`; an answer's `next_cursor` is null at the end.
- **Repeats**: every POST takes `Idempotency-Key`. Within 24 hours the same key with the same body is not done again and gets the first
  answer, with `Idempotent-Replayed: true`; with another body it is refused (422), and while the first is under way (409).
- **Lost updates**: a job's `ETag` sent as `If-Match` refuses (412) to write over what you have not seen.
- **Errors** are problem+json ([Problem](#problem)) with a stable `code`: [all of them](errors.md). Everything may answer 401 (no valid
  key), 403 (this key may not), 404, 422 (wrong fields), 429 (too many requests, with `Retry-After`) or 503 (no database right now);
  what takes a body, also 400 (not JSON), 413 (over 1 MiB) or 415 (not `application/json`). Only others are named below.

In the examples, `key` holds a key and `api` the address with `/api/v1`:

```
key=$(cat .foliot/admin.key); api=http://127.0.0.1:8700/api/v1
```
"""


def page(made: str) -> str:
    schema = description()
    groups = by_tag(schema)
    lines = ["# API", made, ABOUT.rstrip(), "", "## Operations", ""]
    for tag, operations in groups.items():
        lines += ["", f"**{tag.capitalize()}**", "", "| | | |", "|---|---|---|"]
        lines += [
            f"| [{each['operationId']}](#{each['operationId']}) | `{method}` | `{path}` |"
            for method, path, each in operations
        ]
    for tag, operations in groups.items():
        lines += ["", f"## {tag.capitalize()}"]
        for method, path, each in operations:
            lines += ["", *operation_lines(method, path, each)]
    lines += ["", "## Shapes", "", "What bodies and answers hold. A field without a default must be sent."]
    for name, shape in sorted(shapes(schema).items(), key=lambda pair: pair[0].lower()):
        lines += ["", *shape_lines(name, shape)]
    return "\n".join([*lines, ""])


@cache
def description() -> Json:
    """The application is put together and described, never started: it needs no database for that."""
    nothing = cast("Any", None)
    app = create_app(nothing, asyncio.Event(), nothing, lambda _: None, authenticator=cast("Any", object()))
    return describe_api(app)


def operations(schema: Json) -> Iterator[tuple[str, str, Json]]:
    for path, item in schema["paths"].items():
        yield from ((method.upper(), path, operation) for method, operation in item.items())


def by_tag(schema: Json) -> dict[str, list[tuple[str, str, Json]]]:
    groups: dict[str, list[tuple[str, str, Json]]] = {}
    for method, path, operation in operations(schema):
        groups.setdefault(operation["tags"][0], []).append((method, path, operation))
    return groups


def operation_lines(method: str, path: str, operation: Json) -> Iterator[str]:
    yield f"### {operation['operationId']}"
    yield f"`{method} {path}` · for `{operation['x-foliot-permission']}`"
    if said := operation.get("description"):
        yield from ("", said)
    wanted = [
        each for each in operation.get("parameters", ()) if each["name"].lower() not in COMMON_PARAMETERS
    ]
    if wanted:
        yield from ("", "| parameter | in | value | about |", "|---|---|---|---|")
        yield from (parameter_row(each) for each in wanted)
    if body := operation.get("requestBody"):
        optional = "" if body.get("required") else ", which may be left out"
        shape = body["content"]["application/json"]["schema"]
        about = f": {shape['description']}" if "description" in shape else ""
        yield from ("", f"Body: {value(shape)}{optional}{about}")
    yield from ("", "```", *curl(method, path, operation), "```", "", f"Answers: {answers(operation)}.")


def parameter_row(parameter: Json) -> str:
    shape, about = parameter["schema"], parameter.get("description", "")
    default = shape.get("default")
    if default not in (None, [], False, ""):
        about = f"{about} Default: `{json.dumps(default)}`.".strip()
    must = "" if parameter.get("required") or parameter["in"] == "path" else ", optional"
    name = f"`{parameter['name']}`"
    return f"| {name} | {parameter['in']}{must} | {value(shape, nullable=False)} | {one_line(about)} |"


def curl(method: str, path: str, operation: Json) -> Iterator[str]:
    name = operation["operationId"]
    where = re.sub(r"\{(\w+)\}", r"$\1", path.removeprefix("/api/v1"))
    query = f"?{QUERIES[name]}" if name in QUERIES else ""
    verb = "" if method == ("POST" if name in BODIES else "GET") else f"-X {method} "
    unbuffered = (
        "-N " if "text/event-stream" in operation["responses"].get("200", {}).get("content", {}) else ""
    )
    yield from (
        f'curl {unbuffered}-H "Authorization: Bearer $key" {verb}"$api{where}{query}"' + body(name)
    ).split("\n")


def body(name: str) -> str:
    """As the shell takes it; a long one has a line for each field."""
    if name not in BODIES:
        return ""
    fields = [f"{json.dumps(field)}: {json.dumps(given)}" for field, given in BODIES[name].items()]
    short = "{" + ", ".join(fields) + "}"
    written = short if len(short) <= SHORT else "{\n  " + ",\n  ".join(fields) + "\n}"
    return " --json '" + re.sub(r"\$\w+", r"'\g<0>'", written) + "'"


def answers(operation: Json) -> str:
    found = []
    for status, answer in sorted(operation["responses"].items()):
        if status in COMMON_ANSWERS:
            continue
        content = answer.get("content", {})
        if status == DRY_RUN:
            found.append(f"with dry_run 200 {value(content['application/json']['schema'])}")
        elif status.startswith("2"):
            said = [
                value(each["schema"]) if "schema" in each else f"`{kind}`" for kind, each in content.items()
            ]
            found.append(f"{status} {' or '.join(said)}".strip())
        else:
            said_so = answer["description"]
            found.append(f"{status} {said_so[0].lower()}{said_so[1:]}")
    return ", ".join(found)


def shapes(schema: Json) -> dict[str, Json]:
    return {
        name: shape
        for name, shape in schema["components"]["schemas"].items()
        if ("properties" in shape or "enum" in shape) and not name.endswith("Page")
    }


def shape_lines(name: str, shape: Json) -> Iterator[str]:
    yield f"### {name}"
    if said := shape.get("description"):
        yield said
    if "enum" in shape:
        yield from ("", f"One of {value(shape)}.")
        return
    yield from ("", "| field | value | default | about |", "|---|---|---|---|")
    for field, kind in shape["properties"].items():
        default = "" if field in shape.get("required", ()) else f"`{json.dumps(kind.get('default'))}`"
        examples = f" Such as `{json.dumps(kind['examples'][0])}`." if "examples" in kind else ""
        about = f"{one_line(kind.get('description', ''))}{examples}".strip()
        yield f"| `{field}` | {value(kind)} | {default} | {about} |"


def value(shape: Json, *, nullable: bool = True) -> str:
    """What a value may be, in words for people."""
    if "$ref" in shape:
        return reference(shape["$ref"].rpartition("/")[2])
    if "const" in shape:
        return f"`{json.dumps(shape['const'])}`"
    if "enum" in shape:
        return ", ".join(f"`{each}`" for each in shape["enum"])
    if several := shape.get("anyOf") or shape.get("oneOf"):
        return " or ".join(value(each) for each in several if nullable or each != {"type": "null"})
    match shape.get("type"):
        case "array":
            return f"list of {value(shape['items'])}"
        case "string":
            return text(shape)
        case "integer":
            return f"whole number{bounds(shape)}"
        case "number":
            return f"number{bounds(shape)}"
        case "boolean":
            return "true or false"
        case "object":
            return "object"
        case "null":
            return "null"
        case _:
            return "any"


def reference(name: str) -> str:
    shape = description()["components"]["schemas"][name]
    if name.endswith("Page"):
        return f"page of {value(shape['properties']['items']['items'])}"
    if "anyOf" in shape:
        return value(shape)
    return f"[{name}](#{name.lower()})"


def text(shape: Json) -> str:
    formats = {"date-time": "time", "uuid": "id", "date": "day"}
    if shape.get("format") in formats:
        return formats[shape["format"]]
    if shape.get("pattern", "").startswith("^(P"):
        return "duration"
    return "text"


def bounds(shape: Json) -> str:
    least, most = shape.get("minimum"), shape.get("maximum")
    if least is None or most is None:
        return ""
    return f", {least:,.0f} to {most:,.0f}"


def one_line(said: str) -> str:
    return " ".join(said.split()).replace("|", "\\|")
