"""Which networks the requests of jobs may go to, beside the public internet."""

from __future__ import annotations

from ipaddress import ip_address

from foliot.settings import Settings

LOOPBACK = ("127.0.0.0/8", "::1/128")
OWN_MACHINE = (
    "  http jobs  may call this machine too, as it serves nobody else; FOLIOT_EGRESS_ALLOW=none forbids it"
)


def egress_allow_of(settings: Settings) -> tuple[str, ...]:
    """What is set; else nothing, but for an installation that only this machine can reach: its jobs may call this machine."""
    return LOOPBACK if is_own_machine(settings) else settings.egress_allow


def is_own_machine(settings: Settings) -> bool:
    return (
        settings.origins["egress_allow"] == "default"
        and settings.database_url is None
        and is_loopback(settings.host)
    )


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
