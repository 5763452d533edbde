"""Settings of hosts: machines that fetch their own work, their capacity, labels and server instances."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from foliot.web.console.api import field_refusal, read_number
from foliot.web.console.pages.form_routes import items_of, words
from foliot.web.console.pages.settings import AT, section
from foliot.web.console.site import Context, Visit, action, done

LIST, ONE = f"{AT}/hosts", "/hosts/{host_id}"
SERVER = f"{ONE}/instances/{{instance_id}}"


@section("hosts")
async def hosts(visit: Visit) -> Context:
    return {"hosts": await items_of(visit, "/hosts")}


@section("hosts", "settings_host.html")
async def host(visit: Visit) -> Context:
    found, others = await asyncio.gather(visit.api.get(ONE.format(**visit.path)), items_of(visit, "/hosts"))
    return {"host": found, "others": [each for each in others or () if each["id"] != found["id"]]}


async def change_host(visit: Visit) -> Response:
    body = {
        "max_mutations": read_number("max_mutations", visit.field("max_mutations")),
        "max_reads": read_number("max_reads", visit.field("max_reads")),
        "labels": read_labels(visit.field("labels")),
    }
    return await _written(visit, "PATCH", ONE, "host-saved", body)


async def delete_host(visit: Visit) -> Response:
    params = {"force": "true" if visit.field("force") else ""}
    await visit.api.call("DELETE", ONE.format(**visit.path), params=params)
    return done(LIST, "host-deleted")


async def add_server(visit: Visit) -> Response:
    body = {"name": visit.field("name"), "labels": read_labels(visit.field("labels"))}
    return await _written(visit, "POST", f"{ONE}/instances", "server-added", body)


async def change_server(visit: Visit) -> Response:
    """Change its labels, or move it to another host."""
    body: dict[str, Any] = {"labels": read_labels(visit.field("labels"))}
    if to := visit.field("to"):
        body["host_id"] = to
    return await _written(visit, "PATCH", SERVER, "server-moved" if to else "server-saved", body)


async def remove_server(visit: Visit) -> Response:
    params = {"force": "true" if visit.field("force") else ""}
    await visit.api.call("DELETE", SERVER.format(**visit.path), params=params)
    return done(f"{AT}{ONE}".format(**visit.path), "server-removed")


async def _written(visit: Visit, method: str, path: str, notice: str, body: dict[str, Any]) -> Response:
    await visit.api.call(method, path.format(**visit.path), body)
    return done(f"{AT}{ONE}".format(**visit.path), notice)


def read_labels(text: str) -> dict[str, str]:
    """Labels as a person writes them: region=eu, disk=ssd."""
    labels = {}
    for each in words(text):
        name, equals, value = each.partition("=")
        if not equals or not name.strip():
            raise field_refusal("labels", f"Write a label as name=value, not {each[:60]}.")
        labels[name.strip()] = value.strip()
    return labels


def _form(path: str, perform: Any) -> Route:
    return Route(f"/settings{path}", action(perform), methods=["POST"])


ROUTES = [
    Route("/settings/hosts", hosts),
    Route(f"/settings{ONE}", host),
    _form(ONE, change_host),
    _form(f"{ONE}/delete", delete_host),
    _form(f"{ONE}/instances", add_server),
    _form(SERVER, change_server),
    _form(f"{SERVER}/remove", remove_server),
]
