"""Which networks jobs may call when nobody has said so, and what is said about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from foliot.settings import load
from foliot.wiring.reach import LOOPBACK, egress_allow_of
from foliot.wiring.worker import orders_of

OWN = {"FOLIOT_DATABASE_URL": "postgresql://me@example.test/foliot"}


@pytest.mark.parametrize(
    ("environ", "allowed"),
    [
        ({}, LOOPBACK),
        ({"FOLIOT_HOST": "localhost"}, LOOPBACK),
        ({"FOLIOT_HOST": "0.0.0.0"}, ()),
        (OWN, ()),
        ({"FOLIOT_EGRESS_ALLOW": "none"}, ()),
        ({"FOLIOT_EGRESS_ALLOW": "10.0.0.0/8"}, ("10.0.0.0/8",)),
        ({**OWN, "FOLIOT_EGRESS_ALLOW": "127.0.0.0/8, ::1"}, ("127.0.0.0/8", "::1/128")),
    ],
)
def test_loopback_is_open_only_where_nobody_else_can_reach_the_server(
    environ: dict[str, str], allowed: tuple[str, ...], tmp_path: Path
) -> None:
    settings = load(environ, {}, tmp_path)
    assert egress_allow_of(settings) == allowed
    orders = orders_of(settings, "postgresql://me@example.test/foliot")
    assert orders is not None
    assert orders.egress_allow == allowed
