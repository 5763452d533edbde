"""What jobs may reach: networks beside the public internet, and queues and tasks of the engines they are handed over to."""

from __future__ import annotations

from ipaddress import ip_address

from foliot.domain.bridge_policy import EVERYTHING, Handing
from foliot.handlers.egress_policy import Reach
from foliot.settings import Settings

LOOPBACK = ("127.0.0.0/8", "::1/128")
OWN_MACHINE = (
    "  http jobs  may call this machine too, as it serves nobody else; FOLIOT_EGRESS_ALLOW=none forbids it"
)


def reach_of(settings: Settings) -> Reach:
    return Reach(egress_allow_of(settings), handing_of(settings))


def handing_of(settings: Settings) -> Handing:
    """What is set. Else, where others may have workspaces, each has its own queue and no task; a local installation is one team's."""
    queues, tasks = settings.bridge_queues, settings.bridge_tasks
    is_local = settings.database_url is None and is_loopback(settings.host)
    otherwise = Handing(EVERYTHING, EVERYTHING) if is_local else Handing()
    return Handing(
        otherwise.queues if queues is None else queues, otherwise.tasks if tasks is None else tasks
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
