"""The python handler: called by signature, in the loop or in a process that a deadline can end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from foliot.domain.logs import MOST_LINES
from foliot.domain.masking import Masks
from foliot.domain.outcomes import AskedRetry, AskedSkip, Cancelled, Failed, Succeeded, TimedOut
from foliot.domain.schedule import SkipReason
from foliot.handlers.dependencies import HandlerDeps
from foliot.handlers.python import PythonHandler
from foliot.handlers.registry import Assignment, HandlerResult, load_handlers
from foliot.sdk.context import Context
from foliot.worker.attempt import storable
from tests.polling import wait_until
from tests.worker.processes import is_alive

pytestmark = pytest.mark.anyio
CTX = Context("w", "j", "job", "r", 2, 3, "schedule", datetime(2027, 1, 15, tzinfo=UTC))


@pytest.fixture
async def python(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PythonHandler]:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))  # for this process
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))  # for its child processes
    handler = PythonHandler()
    yield handler
    await handler.close()


async def call(python: PythonHandler, name: str, **given: Any) -> HandlerResult:
    return await python.run(Assignment(CTX, {"call": f"functions:{name}"}, given))


def error(done: HandlerResult) -> tuple[str, str, bool]:
    assert isinstance(done.outcome, Failed)
    return done.outcome.error.code, done.outcome.error.message, done.outcome.permanent


async def test_a_plain_function_is_given_what_it_asks_for(python: PythonHandler) -> None:
    assert await call(python, "add", a=1, b=2) == HandlerResult(Succeeded(), 3)
    assert await call(python, "nothing") == HandlerResult(Succeeded(), None)
    assert await call(python, "only_ctx") == HandlerResult(Succeeded(), 2)
    done = await call(python, "reported", a=1)
    assert done.output[:4] == [{"a": 1}, "r", 3, 2027]
    assert done.output[4] != os.getpid()


async def test_a_process_is_used_again(python: PythonHandler) -> None:
    pids = {(await call(python, "reported")).output[4] for _ in range(3)}
    assert len(pids) == 1


async def test_a_process_that_ran_out_of_memory_is_not_used_again(python: PythonHandler) -> None:
    before = (await call(python, "reported")).output[4]
    assert error(await call(python, "out_of_memory"))[0] == "MemoryError"
    assert (await call(python, "reported")).output[4] != before


async def test_an_async_function_runs_on_the_loop(python: PythonHandler) -> None:
    assert await call(python, "soon", a=1) == HandlerResult(Succeeded(), {"a": 1})
    assert python._functions["functions:soon"] is not None


async def test_what_it_raises_is_a_failure_by_name(python: PythonHandler) -> None:
    assert error(await call(python, "breaks")) == ("LookupError", "no such thing", False)
    assert error(await call(python, "leaves")) == ("SystemExit", "enough", False)
    code, message, _ = error(await call(python, "not_json"))
    assert (code, "JSON serializable" in message) == ("TypeError", True)


async def test_a_process_that_dies_fails_its_attempt_and_nothing_else(python: PythonHandler) -> None:
    code, message, _ = error(await call(python, "dies"))
    assert (code, "SIGSEGV" in message) == ("process_died", True)
    assert (await call(python, "add", a=1, b=1)).output == 2


@pytest.mark.requirement("S2-40")
@pytest.mark.parametrize("name", ["", "os", "os:", ":x", "a:b:c"])
async def test_what_names_no_function_is_refused_for_good(python: PythonHandler, name: str) -> None:
    done = await python.run(Assignment(CTX, {"call": name} if name else {}, {}))
    assert error(done)[::2] == ("call_invalid", True)


async def test_a_thing_that_cannot_be_called_or_found_says_so(python: PythonHandler) -> None:
    assert error(await call(python, "THING"))[0] == "call_invalid"
    with pytest.raises(ModuleNotFoundError):
        await python.run(Assignment(CTX, {"call": "no.such.module:f"}, {}))


async def test_a_cancelled_call_ends_the_process_with_everything_it_started(
    python: PythonHandler, tmp_path: Path
) -> None:
    said = tmp_path / "pids"
    task = asyncio.create_task(call(python, "has_children", pids=str(said)))
    await wait_until(said.exists)
    pids = [int(pid) for pid in said.read_text().split()]
    assert all(is_alive(pid) for pid in pids)
    task.cancel()
    await asyncio.wait([task])
    await wait_until(lambda: not any(is_alive(pid) for pid in pids))


@pytest.mark.requirement("S1-A2")
async def test_our_own_handlers_come_in_by_the_same_door_as_others() -> None:
    found = load_handlers(HandlerDeps())
    assert {"http", "python"} <= set(found)
    assert "command" not in found
    for handler in found.values():
        await handler.close()


async def test_what_a_function_logs_comes_before_its_answer(python: PythonHandler) -> None:
    lines: list[tuple[str, str]] = []
    ctx = replace(CTX, write=lambda stream, text: lines.append((stream, text)))
    for name, said in (("chatty", "begin 1"), ("chatty_soon", "on the loop")):
        done = await python.run(Assignment(ctx, {"call": f"functions:{name}"}, {"a": 1}))
        assert isinstance(done.outcome, Succeeded), done
        assert lines[0] == ("log", said)
        assert lines[1][1].startswith("from a thread")
        lines.clear()


async def test_an_endless_talker_is_heard_up_to_a_bound(python: PythonHandler) -> None:
    lines: list[str] = []
    ctx = replace(CTX, write=lambda _, text: lines.append(text))
    done = await python.run(Assignment(ctx, {"call": "functions:endless"}, {}))
    assert isinstance(done.outcome, Succeeded)
    assert len(lines) == MOST_LINES + 1


async def test_a_decorated_function_gets_its_input_by_name_and_the_context_it_asks_for(
    python: PythonHandler,
) -> None:
    assert (await call(python, "by_name", a=1)).output == [1, 2, "r"]
    assert (await call(python, "by_name", a=1, b=3)).output == [1, 3, "r"]
    assert (await call(python, "by_name_soon", a=4)).output == [4, 2]


@pytest.mark.parametrize("name", ["by_name", "by_name_soon"])
async def test_input_that_does_not_fit_is_refused_for_good(python: PythonHandler, name: str) -> None:
    code, message, permanent = error(await call(python, name, a=1, c=2))
    assert (code, permanent) == ("input_invalid", True)
    assert f"{name} has no parameter c" in message
    assert error(await call(python, name))[1] == f"{name} needs a, which the input does not have."


@pytest.mark.parametrize("name", ["asks", "asks_soon"])
@pytest.mark.requirement("S2-34")
async def test_what_a_function_asks_for_by_raising_is_done(python: PythonHandler, name: str) -> None:
    assert (await call(python, name, how="retry")).outcome == AskedRetry(timedelta(minutes=5))
    assert error(await call(python, name, how="retry by policy")) == ("retry", "some time", False)
    assert (await call(python, name, how="skip")).outcome == AskedSkip(SkipReason.OPERATOR, "nothing to do")
    assert error(await call(python, name, how="fail")) == ("failed", "no use", True)
    assert error(await call(python, name, how="fail once")) == ("bank_closed", "try again", False)
    assert (await call(python, name, how="cancelled")).outcome == Cancelled()
    assert (await call(python, name, how="timed out")).outcome == TimedOut()


@pytest.mark.parametrize("name", ["notices", "notices_manually"])
async def test_a_function_that_is_asked_to_end_can_see_it(
    python: PythonHandler, tmp_path: Path, name: str
) -> None:
    began, reported = tmp_path / "began", tmp_path / "reported"
    task = asyncio.create_task(call(python, name, began=str(began), reported=str(reported)))
    await wait_until(began.exists)
    task.cancel()
    await asyncio.wait([task])
    assert reported.read_text() == "True"


@pytest.mark.parametrize("name", ["with_secret", "with_secret_on_the_loop"])
async def test_a_function_finds_its_secrets_in_its_context_which_does_not_show_them(
    python: PythonHandler, name: str
) -> None:
    config = {"call": f"functions:{name}", "secrets": {"token": "s3cret-value"}}
    lines: list[str] = []
    ctx = replace(CTX, write=lambda stream, text: lines.append(text))
    done = await python.run(Assignment(ctx, config, {}))
    assert done.output["length"] == len("s3cret-value")
    assert "s3cret-value" not in done.output["shown"]
    assert lines == ["using s3cret-value"]
    assert await call(python, "only_ctx") == HandlerResult(Succeeded(), 2)


async def heard(python: PythonHandler, name: str, **given: Any) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    ctx = replace(CTX, write=lambda stream, text: lines.append((stream, text)))
    await python.run(Assignment(ctx, {"call": f"functions:{name}"}, given))
    return lines


async def test_what_a_function_prints_is_kept_with_its_own_run(python: PythonHandler) -> None:
    for number in (1, 2):
        assert await heard(python, "prints", a=number) == [
            ("stdout", f"one {number}"),
            ("stdout", "two, to the other"),
            ("stdout", "three, by a child"),
            ("stdout", "four, without an end"),
        ]
    assert await heard(python, "add", a=1, b=2) == []
    assert len(python._pool._idle) == 1


async def test_what_is_printed_is_heard_while_the_function_runs(
    python: PythonHandler, tmp_path: Path
) -> None:
    lines: list[str] = []
    ctx = replace(CTX, write=lambda _, text: lines.append(text))
    gate = tmp_path / "gate"
    given = {"gate": str(gate)}
    task = asyncio.create_task(python.run(Assignment(ctx, {"call": "functions:prints_and_waits"}, given)))
    await wait_until(lambda: lines == ["begun"])
    gate.touch()
    await task


async def test_the_last_words_of_a_process_that_dies_are_kept(python: PythonHandler) -> None:
    assert await heard(python, "prints_and_dies") == [("stdout", "last words")]


async def test_endless_printing_is_bounded_and_ends_with_its_attempt(python: PythonHandler) -> None:
    lines: list[str] = []
    ctx = replace(CTX, write=lambda _, text: lines.append(text))
    task = asyncio.create_task(python.run(Assignment(ctx, {"call": "functions:prints_for_ever"}, {})))
    await wait_until(lambda: len(lines) == MOST_LINES + 1)
    task.cancel()
    await asyncio.wait([task])
    assert len(lines) == MOST_LINES + 1
    assert (await call(python, "add", a=1, b=1)).output == 2


@pytest.mark.parametrize(
    "name",
    [
        "subprocess:getoutput",
        "os:environ.copy",
        "os:system",
        "builtins:exec",
        "anyio:run_process",
        "foliot.settings.sources:load",
        "functions:os.environ.copy",
        "functions:asyncio.create_subprocess_shell",
    ],
)
async def test_a_job_cannot_name_code_that_the_operator_neither_wrote_nor_let_in(
    python: PythonHandler, name: str
) -> None:
    done = await python.run(Assignment(CTX, {"call": name}, {"echo hello": 1}))
    code, message, is_permanent = error(done)
    assert (code, is_permanent) == ("call_invalid", True)
    assert "FOLIOT_PYTHON_PACKAGES" in message


async def test_installed_packages_are_open_where_the_operator_names_them(python: PythonHandler) -> None:
    opened = PythonHandler(packages=("idna",))
    assert isinstance((await opened.run(Assignment(CTX, {"call": "idna:encode"}, {}))).outcome, Failed)
    assert "idna:encode" in opened._functions  # it was found; what it made of its input is another matter
    assert error(await python.run(Assignment(CTX, {"call": "idna:encode"}, {})))[0] == "call_invalid"
    await opened.close()


async def test_the_first_job_of_many_prints(python: PythonHandler) -> None:
    assert isinstance((await python.run(Assignment(CTX, {"call": "builtins:print"}, {}))).outcome, Succeeded)


async def run_in(
    python: PythonHandler, workspace: str, name: str, lines: list[str], **given: Any
) -> HandlerResult:
    ctx = replace(CTX, workspace_id=workspace, write=lambda _, text: lines.append(text))
    return await python.run(Assignment(ctx, {"call": f"functions:{name}"}, given))


async def test_a_child_process_serves_one_workspace_only(python: PythonHandler) -> None:
    pids = {workspace: (await run_in(python, workspace, "reported", [])).output[4] for workspace in "abab"}
    again = {workspace: (await run_in(python, workspace, "reported", [])).output[4] for workspace in "ba"}
    assert again == pids
    assert len(set(pids.values())) == 2


@pytest.mark.parametrize("name", ["leaves_a_thread", "leaves_a_process", "leaves_an_orphan"])
async def test_what_a_function_leaves_behind_writes_into_no_other_run(
    python: PythonHandler, tmp_path: Path, name: str
) -> None:
    first: list[str] = []
    done = await run_in(python, "a", name, first, until=str(tmp_path / "never"))
    said = len(first)
    await wait_until(lambda: not is_alive(done.output))
    for workspace in ("b", "a"):
        later: list[str] = []
        assert (await run_in(python, workspace, "reported", later)).output[4] != done.output
        assert later == []
    assert len(first) == said, "nothing is added to a run that has ended"


async def test_idle_children_are_bounded(python: PythonHandler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foliot.handlers.python_pool.MOST_IDLE", 1)
    pids = [(await run_in(python, workspace, "reported", [])).output[4] for workspace in "abc"]
    assert len(python._pool._idle) == 1
    await wait_until(lambda: [is_alive(pid) for pid in pids] == [False, False, True])


async def test_lines_that_a_function_writes_while_it_is_stopped_are_kept(
    python: PythonHandler, tmp_path: Path
) -> None:
    lines: list[str] = []
    began = tmp_path / "began"
    task = asyncio.create_task(run_in(python, "a", "last_words", lines, began=str(began)))
    await wait_until(began.exists)
    task.cancel()
    await asyncio.wait([task])
    assert lines == ["cleaned up", "and printed"]


@pytest.mark.requirement("S2-34")
@pytest.mark.parametrize("name", ["fails_deep", "fails_deep_soon"])
async def test_the_traceback_of_a_function_is_kept_without_our_frames_and_masked(
    python: PythonHandler, name: str
) -> None:
    done = storable(await call(python, name), Masks(["s3cret-value"]))
    assert isinstance(done.outcome, Failed)
    found = done.outcome.error.traceback or ""
    assert found.startswith("Traceback (most recent call last):")
    assert "in fails_deep\n" in found
    assert found.rstrip().endswith("LookupError: no ***")
    assert "s3cret-value" not in found
    assert "python_child.py" not in found


@pytest.mark.requirement("S2-13")
async def test_a_function_knows_its_workspace_its_deadline_and_who_asked_for_the_run(
    python: PythonHandler,
) -> None:
    ctx = replace(CTX, workspace="acme", triggered_by="user:ana", deadline=datetime(2027, 1, 16, tzinfo=UTC))
    done = await python.run(Assignment(ctx, {"call": "functions:tells_all"}, {}))
    assert done.output == ["acme", "user:ana", "2027-01-16T00:00:00+00:00"]


@pytest.mark.requirement("S3-22")
@pytest.mark.parametrize("name", ["spends", "spends_soon"])
async def test_a_function_reports_what_it_used(python: PythonHandler, name: str) -> None:
    seen: list[Mapping[str, Decimal]] = []
    ctx = replace(CTX, spend=seen.append)
    done = await python.run(Assignment(ctx, {"call": f"functions:{name}"}, {}))
    assert done.outcome == Succeeded()
    assert seen == [{"tokens": Decimal(1200), "usd": Decimal("0.1")}, {"usd": Decimal("0.000000002")}]


@pytest.mark.parametrize(
    "given",
    [{"usd": -1}, {"USD": 1}, {"usd": "0.0000000001"}, {"usd": "much"}, {f"u{n}": 1 for n in range(21)}],
)
async def test_what_is_no_usage_is_an_error_of_the_function(python: PythonHandler, given: Any) -> None:
    assert error(await call(python, "spends", **given))[0] == "ValueError"


async def test_what_an_async_function_prints_is_in_the_log_of_its_own_run(
    python: PythonHandler, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two at once share the process."""
    written: dict[str, list[tuple[str, str]]] = {"a": [], "b": []}

    async def chat(name: str) -> None:
        ctx = replace(CTX, write=lambda stream, text: written[name].append((stream, text)))
        done = await python.run(Assignment(ctx, {"call": "functions:chatters"}, {"name": name}))
        assert done.outcome == Succeeded(), done

    await asyncio.gather(chat("a"), chat("b"))
    print("of the worker itself")
    for name, lines in written.items():
        assert sorted(lines) == [
            ("stderr", f"error {name}"),
            ("stdout", f"hello {name}"),
            ("stdout", f"rest {name}"),
            ("stdout", f"task {name}"),
            ("stdout", f"thread {name}"),
        ]
    assert capsys.readouterr().out == "of the worker itself\n"
