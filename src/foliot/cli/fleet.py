"""`foliot workers`, `foliot queues` and `foliot job-types`: who could do the work, what is in line for them, and what they can do."""

from __future__ import annotations

from typing import Annotated

import typer

from foliot.cli.session import Session, api_command
from foliot.domain.errors import Invalid, NotFound


@api_command
def workers(session: Session) -> None:
    """Workers: the living first, then those lost within the last day."""
    from foliot.cli.fleet_rendering import worker_list

    found = session.client.workers().items
    session.show_list(found, lambda: worker_list(found, session.now))
    if not any(each.status == "alive" for each in found):
        session.note("No worker is alive: nothing runs. `foliot serve` starts one.")


@api_command
def queues(session: Session) -> None:
    """Queues: what stands in each, for how long, and who serves it."""
    from foliot.cli.fleet_rendering import queue_list

    found = session.client.queues().items
    session.show_list(found, lambda: queue_list(found, session.now))


@api_command
def job_types(
    session: Session,
    name: Annotated[
        str | None, typer.Argument(metavar="[TYPE]", help="Show the config of this one.", show_default=False)
    ] = None,
    disable: Annotated[
        bool, typer.Option("--disable", help="Switch TYPE off here: nothing of its jobs starts.")
    ] = False,
    enable: Annotated[bool, typer.Option("--enable", help="Switch TYPE on again.")] = False,
    reason: Annotated[str, typer.Option(help="Why it is switched off.", metavar="TEXT")] = "",
) -> None:
    """What the --type of a job may be; with TYPE, what its --config takes."""
    from foliot.cli.fleet_rendering import type_list, type_page

    if disable or enable:
        if name is None or (disable and enable):
            raise Invalid("Name the TYPE that --disable or --enable is about; one of them.")
        changed = session.client.switch_job_type(name, enabled=enable, reason=reason)
        session.show(changed, lambda: type_page(changed))
        return
    found = session.client.job_types().items
    if name is None:
        session.show_list(found, lambda: type_list(found))
        return
    chosen = next((each for each in found if each.name == name), None)
    if chosen is None:
        known = ", ".join(each.name for each in found)
        raise NotFound(f'There is no type "{name}".', hint=f"There are {known}.")
    session.show(chosen, lambda: type_page(chosen))
