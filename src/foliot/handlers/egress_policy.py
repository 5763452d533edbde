"""What jobs may reach from this installation, by its operator's choice: asked when a job is written, and again when it runs."""

from __future__ import annotations

from dataclasses import dataclass

from foliot.domain.bridge_policy import Handing


@dataclass(frozen=True, slots=True)
class Reach:
    egress_allow: tuple[str, ...] = ()  # networks that requests may go to beside the public internet
    handing: Handing = Handing()


NO_REACH = Reach()
