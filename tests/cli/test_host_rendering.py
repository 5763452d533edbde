"""How hosts look on a terminal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from foliot.cli.hosts import host_page, host_table, parse_label
from foliot.cli.tables import render
from foliot.domain.errors import Invalid
from foliot.wire.fleet import HostOut, InstanceOut

NOW = datetime(2027, 1, 15, 12, tzinfo=UTC)


def host(name: str = "h1", **fields: object) -> HostOut:
    host_id = uuid4()
    instance = InstanceOut(id=uuid4(), host_id=host_id, name="pvp", labels={}, created_at=NOW, updated_at=NOW)
    return HostOut.model_validate(
        {
            "id": host_id,
            "name": name,
            "status": "online",
            "last_seen_at": NOW - timedelta(seconds=4),
            "labels": {"region": "eu"},
            "max_mutations": 1,
            "max_reads": 8,
            "running": 2,
            "instances": [instance],
            "version": "1.0",
            "revision": 1,
            "created_at": NOW,
            "updated_at": NOW,
            **fields,
        }
    )


def test_a_list_tells_who_is_there_and_what_is_on_them() -> None:
    reported = render(host_table([host(), host("h2", status="offline", instances=[])], NOW), 120)
    head, first, second = reported.splitlines()
    assert head.split() == ["HOST", "STATUS", "LAST", "SEEN", "RUNNING", "SERVERS", "LABELS"]
    assert first.split()[:2] == ["h1", "online"]
    assert "pvp" in first
    assert "region=eu" in first
    assert second.split()[:2] == ["h2", "offline"]


def test_without_hosts_it_says_how_to_have_one() -> None:
    assert "foliot host" in render(host_table([], NOW), 80)


def test_a_page_tells_how_much_the_host_takes_on_at_once() -> None:
    reported = render(host_page(host(), NOW), 100)
    assert "2 runs now; at most 1 mutating and 8 read-only at a time" in reported


@pytest.mark.parametrize("text", ["region", "=eu", " =x"])
def test_a_label_is_a_name_and_a_value(text: str) -> None:
    assert parse_label("region=eu=west") == ("region", "eu=west")
    with pytest.raises(Invalid):
        parse_label(text)
