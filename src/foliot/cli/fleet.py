"""`foliot workers` and `foliot queues`: who could do the work, and what is in line for them."""

from __future__ import annotations

from foliot.cli.here import Here, asking


@asking
def workers(here: Here) -> None:
    """Workers: the living first, then those lost within the last day."""
    from foliot.cli.fleet_rendering import worker_list

    found = here.client.workers().items
    here.show_list(found, lambda: worker_list(found, here.now))
    if not any(each.status == "alive" for each in found):
        here.note("No worker is alive: nothing runs. `foliot serve` starts one.")


@asking
def queues(here: Here) -> None:
    """Queues: what stands in each, for how long, and who serves it."""
    from foliot.cli.fleet_rendering import queue_list

    found = here.client.queues().items
    here.show_list(found, lambda: queue_list(found, here.now))
