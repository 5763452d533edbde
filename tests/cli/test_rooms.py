"""Rooms on the command line: made, written in, looked at, followed, deleted."""

from __future__ import annotations

import pytest

from tests.cli.conftest import RunCommand
from tests.cli.test_commands import PATIENCE

pytestmark = pytest.mark.timeout(PATIENCE)


async def test_a_room_is_made_written_in_followed_and_deleted(run_command: RunCommand) -> None:
    made = (await run_command("rooms", "create", "Support line", "--key", "support")).json
    sent = (await run_command("rooms", "send", "support", "hello")).json
    assert (sent["room_id"], sent["kind"], sent["expects_reply"]) == (made["id"], "message", True)
    assert (await run_command("rooms", "send", "Support line", "deployed", "--event")).json[
        "kind"
    ] == "system_event"
    listed = await run_command("rooms", "list", "-o", "table")
    assert "Support line" in listed.out
    shown = (await run_command("rooms", "show", made["id"][:18])).json
    assert [each["text"] for each in shown["messages"]] == ["hello", "deployed"]
    page = await run_command("rooms", "show", "support", "-o", "table", "--limit", "1")
    assert "deployed" in page.out
    assert "hello" not in page.out
    followed = await run_command("rooms", "follow", "support", "--after", "0", "--limit", "2", "-o", "table")
    assert [line.rpartition("  ")[2] for line in followed.out.splitlines()] == ["hello", "deployed"]
    assert (await run_command("rooms", "delete", "support", "--yes")).code == 0
    gone = await run_command("rooms", "show", "support")
    assert gone.code == 3
    assert "foliot rooms list" in gone.err


async def test_a_webhook_is_set_looked_at_and_removed(run_command: RunCommand) -> None:
    await run_command("rooms", "create", "Support line", "--key", "support")
    made = (await run_command("rooms", "webhook", "support", "https://example.test/hook")).json
    assert made["webhook"]["url"] == "https://example.test/hook"
    await run_command("rooms", "send", "support", "hello")
    page = await run_command("rooms", "webhook", "support", "-o", "table")
    assert "https://example.test/hook (unsigned)" in page.out
    [waiting] = (await run_command("rooms", "deliveries", "support")).json["items"]
    assert (waiting["seq"], waiting["state"]) == (1, "waiting")
    none_dead = await run_command("rooms", "deliveries", "support", "--dead", "-o", "table")
    assert "No failed deliveries." in none_dead.out
    wrong = await run_command("rooms", "webhook", "support", "--secret", "hook")
    assert "with or without --secret" in wrong.err
    assert (await run_command("rooms", "webhook", "support", "--remove")).json["webhook"] is None
    listed = await run_command("rooms", "deliveries", "support", "--dead", "-o", "table")
    assert "The webhook was removed" in listed.out
    refused = await run_command("rooms", "redeliver", "support")
    assert "This room has no webhook." in refused.err
