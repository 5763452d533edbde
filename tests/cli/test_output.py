"""How the command line speaks: carets under the user's own text, no escapes from it, one exit code per kind."""

from __future__ import annotations

import json

import pytest

from foliot.cli.output import MAX_QUOTE, Exit, dump_json, format_error, quote, report_error
from foliot.cli.tables import Column, Table, render
from foliot.domain.errors import (
    Conflict,
    DatabaseUnavailable,
    Denied,
    FoliotError,
    IllegalMove,
    Mark,
    NotFound,
    ScheduleInvalid,
)
from foliot.settings import SettingProblem, SettingsError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ScheduleInvalid("x"), Exit.USAGE),
        (NotFound("x"), Exit.NOT_FOUND),
        (Conflict("x"), Exit.CONFLICT),
        (IllegalMove("x"), Exit.CONFLICT),
        (Denied("x"), Exit.REFUSED),
        (DatabaseUnavailable("x"), Exit.UNREACHABLE),
        (FoliotError("x"), Exit.FAILURE),
        (SettingsError((SettingProblem("x"),)), Exit.USAGE),
    ],
)
def test_each_kind_of_error_has_its_exit_code(error: FoliotError | SettingsError, code: Exit) -> None:
    assert report_error(error) is code


def test_an_error_says_what_where_and_what_next() -> None:
    assert format_error("schedule.invalid", "Hour 25.", hint="Hours are 0-23.", mark=Mark("0 25 * * *", 2, 4)) == (
        "error[schedule.invalid]: Hour 25.\n"
        "  0 25 * * *\n"
        "    ^^\n"
        "  Hours are 0-23."
    )  # fmt: skip


def test_every_problem_with_settings_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    report_error(SettingsError((SettingProblem("One."), SettingProblem("Two.", "Do this."))))
    assert (
        capsys.readouterr().err == "error[setting.invalid]: One.\nerror[setting.invalid]: Two.\n  Do this.\n"
    )


def test_user_text_cannot_move_the_cursor_or_colour_the_terminal() -> None:
    said = format_error("x", "bad \x1b[31m", hint="\x07", mark=Mark("\x1b[2J [red]", 0, 4))
    assert "\x1b" not in said
    assert "\x07" not in said
    assert "[red]" in said


@pytest.mark.parametrize(
    ("start", "end"), [(0, 1), (5_000, 5_003), (9_999, 10_000), (0, 10_000), (10_000, 10_000)]
)
def test_of_a_long_text_the_part_around_the_mark_is_quoted(start: int, end: int) -> None:
    text = "x" * start + "!" * (end - start) + "x" * (10_000 - end)
    shown, caret = quote(Mark(text, start, end)).split("\n")
    assert len(shown) <= MAX_QUOTE
    assert len(caret) <= MAX_QUOTE + 1
    if end > start:
        assert shown[caret.index("^")] == "!"


def test_a_table_is_aligned_and_has_no_trailing_blanks() -> None:
    columns: list[Column[tuple[str, str]]] = [
        Column("NAME", lambda row: row[0]),
        Column("VALUE", lambda row: row[1]),
    ]
    table = Table(columns, [("a", "1"), ("longer", "")])
    assert render(table, 80) == "NAME    VALUE\na       1\nlonger"


def test_json_never_steers_a_terminal() -> None:
    steering = "a\x9b31m\u202eb\u2028\x7f\ufeff"
    shown = dump_json({"name": steering, "ok": "é 日本"}, indent=2)
    assert json.loads(shown) == {"name": steering, "ok": "é 日本"}
    assert "é 日本" in shown
    assert all(each.isprintable() or each == "\n" for each in shown)
