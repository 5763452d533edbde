"""The pages for people: every command parses, every request exists and has a body of its shape, every method is there."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from docs.api_reference import description
from foliot import Client
from foliot.cli.main import app

ROOT = Path(__file__).resolve().parents[2]
HOW_TOS = sorted((ROOT / "docs" / "how-to").glob("*.md"))
PAGES = [*HOW_TOS, ROOT / "docs" / "tutorial.md", ROOT / "docs" / "README.md", ROOT / "README.md"]
FOLIOT = typer.main.get_command(app)
AN_ID = "01a1df48-e917-7256-b2a8-0013db5e4c30"
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]


def blocks(page: Path, language: str) -> Iterator[str]:
    yield from re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def commands(page: Path) -> Iterator[str]:
    """Lines of shell that call foliot."""
    for block in blocks(page, "(?:sh)?"):
        yield from re.findall(r"^(?:\$ )?(?:\./dev |[A-Z_]+=\S+ )*(foliot .*)$", block, flags=re.MULTILINE)


def mentions(page: Path) -> Iterator[str]:
    """Those within a sentence; they may leave out what the command is about."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    yield from (found for found in re.findall(r"`(foliot [^`]+)`", prose) if "…" not in found)


def refusal(line: str) -> str | None:
    """What the program would say to it, before it begins to work."""
    command: Any = FOLIOT
    words = shlex.split(line, comments=True)[1:]
    while getattr(command, "commands", None):
        name, *words = words
        if name not in command.commands:
            return f"there is no {name}"
        command = command.commands[name]
    try:
        command.make_context("foliot", words)
    except Exception as refused:  # noqa: BLE001  # Typer has its own copy of click, and of its errors
        return f"{type(refused).__name__}: {refused}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_command_on_the_page_parses(page: Path) -> None:
    assert {line: said for line in commands(page) if (said := refusal(line))} == {}
    reported = {line: refusal(line) or "" for line in mentions(page)}
    assert {line: said for line, said in reported.items() if said and "MissingParameter" not in said} == {}


def requests(page: Path) -> Iterator[tuple[str, str, Any]]:
    for block in blocks(page, "sh"):
        for line in re.sub(r"\n(?=  |\})", " ", block).splitlines():
            where = re.search(r"\$api(/[\w/$-]+)", line)
            if where is None:
                continue
            body = re.search(r"--json '(.*\})'", line)
            method = re.search(r"-X (\w+)", line)
            verb = method[1] if method else "POST" if body else "GET"
            yield verb, where[1], json.loads(re.sub(r"'\$\w+'", AN_ID, body[1])) if body else None


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_request_on_the_page_exists_and_has_a_body_of_its_shape(page: Path) -> None:
    schema = description()
    for verb, where, body in requests(page):
        path = re.sub(r"\$\w+", "{}", f"/api/v1{where}").replace("/workspaces/acme", "/workspaces/{}")
        item: dict[str, Any] = next(
            (item for known, item in schema["paths"].items() if re.sub(r"\{\w+\}", "{}", known) == path), {}
        )
        assert verb.lower() in item, f"{verb} {where}"
        assert (body is not None) <= ("requestBody" in item[verb.lower()]), f"{verb} {where} takes no body"
        if body is not None:
            shape = item[verb.lower()]["requestBody"]["content"]["application/json"]["schema"]
            assert unknown(body, shape, schema) == [], f"{verb} {where}"


def unknown(body: Any, shape: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    """Fields that the shape does not have, and those it misses."""
    if "$ref" not in shape or not isinstance(body, dict):
        return []
    known = schema["components"]["schemas"][shape["$ref"].rpartition("/")[2]]
    wrong = [name for name in body if name not in known["properties"]]
    wrong += [f"no {name}" for name in known.get("required", ()) if name not in body]
    for name, value in body.items():
        if name in known["properties"]:
            wrong += unknown(value, known["properties"][name], schema)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_the_python_on_the_page_is_python_and_calls_what_the_client_has(page: Path) -> None:
    with Client("http://127.0.0.1:1", "none") as client:
        for block in blocks(page, "python"):
            compile(block, str(page), "exec")
            for group, method in re.findall(r"\b(?:foliot|acme)\.(\w+)(?:\.(\w+))?\(", block):
                found = getattr(client, group)
                assert not method or hasattr(found, method), f"{group}.{method}"


def test_every_how_to_is_in_the_index_and_short() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    assert [page.name for page in HOW_TOS if f"(how-to/{page.name})" not in index] == []
    assert [page.name for page in HOW_TOS if len(page.read_text().splitlines()) > 60] == []
