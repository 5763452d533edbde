"""Work that is none, for our own worker and for RQ's: what is measured is everything around it."""

from __future__ import annotations


def plain() -> None:
    """For us in a process of its own, for RQ in one that is forked for it."""


async def on_the_loop() -> None:
    """For us on the worker's loop."""
