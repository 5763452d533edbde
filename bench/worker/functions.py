"""A function that does nothing, for our worker and for RQ's: only the overhead is measured."""

from __future__ import annotations


def plain() -> None:
    """For us in a process of its own, for RQ in one that is forked for it."""


async def on_the_loop() -> None:
    """For us on the worker's loop."""
