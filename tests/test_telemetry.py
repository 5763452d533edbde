"""Logs: one pipe, one line per fact, no secret."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from foliot.telemetry import HIDDEN, SecretFilter, configure, hide_secrets

log = logging.getLogger("foliot.tests")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def json_line(stream: io.StringIO) -> dict[str, Any]:
    (line,) = stream.getvalue().splitlines()
    parsed: dict[str, Any] = json.loads(line)
    return parsed


def test_a_fact_is_one_json_object_with_its_fields() -> None:
    out = io.StringIO()
    configure(style="auto", level="info", stream=out, environ={})
    log.info("server.started", extra={"url": "http://127.0.0.1:1", "pid": 7})
    line = json_line(out)
    assert list(line) == ["ts", "level", "event", "url", "pid"]
    assert (line["level"], line["event"], line["pid"]) == ("info", "server.started", 7)
    assert line["ts"].endswith("Z")


def test_a_value_can_neither_start_a_new_line_nor_pose_as_an_event() -> None:
    out = io.StringIO()
    configure(style="json", level="info", stream=out, environ={})
    log.warning("job.named", extra={"title": "a\r\n{}\u2028\x1b[2J\udc80", "event": "server.started"})
    line = json_line(out)
    assert line["event"] == "job.named"
    assert line["title"] == "a\r\n{}\u2028\x1b[2J\udc80"


def test_a_terminal_gets_aligned_readable_lines_without_escapes_from_values() -> None:
    out = Terminal()
    configure(style="auto", level="info", stream=out, environ={"NO_COLOR": "1"})
    log.info("job.named", extra={"title": "two\nlines \x1b[2J", "count": 3})
    line = out.getvalue()
    assert line.endswith('  info     job.named               title="two\\nlines \\x1b[2J"  count=3\n')


@pytest.mark.parametrize(
    ("stream", "environ", "coloured"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_colour_needs_a_terminal_that_wants_it(
    stream: io.StringIO, environ: dict[str, str], coloured: bool
) -> None:
    configure(style="human", level="info", stream=stream, environ=environ)
    log.info("server.started")
    assert ("\x1b[" in stream.getvalue()) is coloured


@pytest.mark.parametrize("style", ["human", "json"])
def test_no_secret_is_printed_by_value_by_name_or_inside_an_address(style: str) -> None:
    out = io.StringIO()
    configure(style=style, level="info", stream=out, environ={}, secrets=("correct horse battery",))
    log.error(
        "key.refused",
        exc_info=ValueError("bad: correct horse battery"),
        extra={
            "admin_key": "fol_1234567890",
            "url": "postgresql://me:opensesame@here/db",
            "config": {"password": "opensesame", "list": ["correct horse battery"]},
        },
    )
    text = out.getvalue()
    assert "ValueError" in text
    assert not [each for each in ("correct horse", "fol_1234567890", "opensesame") if each in text]


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u:hunter2@h/d", "postgresql://h/d?user=u&password=hunter2&x=1", "postgresql://h/d?password=hunter2",
        "host=h password=hunter2 user=u", r"host=h password = 'hunter2 \' hunter2' user=u",
    ],
)  # fmt: skip
def test_every_form_of_address_loses_its_password(address: str) -> None:
    stream = io.StringIO()
    configure(style="json", level="info", stream=stream, environ={})
    log.info("pool.opened", extra={"where": address})
    assert "hunter2" not in stream.getvalue()
    assert "h" in json.loads(stream.getvalue())["where"]


def test_libraries_go_through_the_same_pipe_under_their_own_name() -> None:
    out = io.StringIO()
    logging.getLogger("uvicorn.error").addHandler(logging.StreamHandler(out))
    configure(style="json", level="info", stream=out, environ={})
    logging.getLogger("uvicorn.error").error("Cancel %d running task(s)", 1)
    line = json_line(out)
    assert (line["event"], line["message"]) == ("uvicorn.error", "Cancel 1 running task(s)")


def test_what_a_run_uses_is_hidden_as_long_as_some_run_uses_it() -> None:
    hide = SecretFilter(())
    with hide_secrets(["s3cret"]):
        with hide_secrets(["s3cret", "s3cret-and-more"]):
            assert hide.text("s3cret-and-more, s3cret") == f"{HIDDEN}, {HIDDEN}"
        assert hide.text("a s3cret") == f"a {HIDDEN}"
    assert hide.text("a s3cret") == "a s3cret"
