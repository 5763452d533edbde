"""/docs: the reference of the API as one page, from its own description. It loads nothing from elsewhere and needs no key."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from html import escape
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse

from foliot.web.openapi import METHODS, describe_api

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
code, .path { font-family: ui-monospace, monospace; }
nav a { display: inline-block; margin-right: 1rem; }
section.operation { border-top: 1px solid #8886; padding: .5rem 0; }
h3 { margin: .5rem 0; font-size: 1.05rem; }
.method { font-weight: bold; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .15rem .75rem .15rem 0; }
"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; frame-ancestors 'none'"
_CODE = re.compile(r"`([^`]+)`")
INTRODUCTION = (
    "Every request to <code>/api/v1</code> sends the header <code>Authorization: Bearer &lt;key&gt;</code>. Errors are "
    "<code>application/problem+json</code>. The description for programs is <a href='openapi.json'>/openapi.json</a>, which needs a key; "
    "people find the <a href='console/'>console</a> easier."
)


async def show_reference(request: Request) -> HTMLResponse:
    app = request.app
    if not hasattr(app.state, "reference_page"):
        app.state.reference_page = render_reference(describe_api(app))
    return HTMLResponse(app.state.reference_page, headers={"Content-Security-Policy": POLICY})


def render_reference(schema: dict[str, Any]) -> str:
    """Return the page: operations by tag, each with its parameters, body, answers and permission."""
    by_tag: dict[str, list[str]] = {}
    for path, item in schema["paths"].items():
        for method in METHODS:
            if operation := item.get(method):
                by_tag.setdefault(operation.get("tags", ["other"])[0], []).append(
                    _operation(method, path, operation)
                )
    links = "".join(f'<a href="#{escape(tag)}">{escape(tag)}</a>' for tag in sorted(by_tag))
    body = "".join(
        f'<h2 id="{escape(tag)}">{escape(tag)}</h2>{"".join(found)}' for tag, found in sorted(by_tag.items())
    )
    shapes = "".join(
        _shape(name, shape)
        for name, shape in sorted(schema["components"]["schemas"].items())
        if "properties" in shape
    )
    title = f"Foliot API {escape(schema['info']['version'])}"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body><h1>{title}</h1>'
        f"<p>{INTRODUCTION}</p><nav>{links}<a href='#shapes'>shapes</a></nav>{body}<h2 id='shapes'>Shapes</h2>{shapes}</body></html>"
    )


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    rows = "".join(
        _row(
            f"{each['name']} <small>{each['in']}</small>", each.get("description", ""), each.get("schema", {})
        )
        for each in operation.get("parameters", ())
    )
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    answers = ", ".join(sorted(operation["responses"]))
    return (
        f'<section class="operation" id="{escape(operation["operationId"])}"><h3><span class="method">{method.upper()}</span> '
        f'<span class="path">{escape(path)}</span></h3><p>{_prose(operation.get("description", ""))}</p>'
        + (f"<table>{rows}</table>" if rows else "")
        + (f"<p>Body: {_kind(body)}</p>" if body else "")
        + f"<p>Permission: {escape(operation.get('x-foliot-permission', '-'))}. Answers: {answers}.</p></section>"
    )


def _shape(name: str, shape: dict[str, Any]) -> str:
    rows = "".join(
        _row(field, about.get("description", ""), about) for field, about in shape["properties"].items()
    )
    return f'<section class="operation" id="shape-{escape(name)}"><h3>{escape(name)}</h3><table>{rows}</table></section>'


def _row(name: str, description: str, schema: dict[str, Any]) -> str:
    return f"<tr><td><code>{name}</code></td><td>{_kind(schema)}</td><td>{_prose(description)}</td></tr>"


def _kind(schema: dict[str, Any]) -> str:
    return " or ".join(dict.fromkeys(_kinds(schema))) or "any value"


def _kinds(schema: dict[str, Any]) -> Iterator[str]:
    if ref := schema.get("$ref"):
        name = escape(ref.rpartition("/")[2])
        yield f'<a href="#shape-{name}">{name}</a>'
    for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _kinds(each)
    if "enum" in schema:
        yield ", ".join(f"<code>{escape(str(each))}</code>" for each in schema["enum"])
    elif schema.get("type") == "array":
        yield f"list of {_kind(schema.get('items', {}))}"
    elif "type" in schema:
        yield escape(str(schema["type"]))


def _prose(text: str) -> str:
    return _CODE.sub(r"<code>\1</code>", escape(text))
