"""`foliot worker`: execute runs in a process of its own."""

from __future__ import annotations

from typing import Annotated

import typer

from foliot.cli import options


def worker(
    app: Annotated[
        str | None,
        typer.Argument(
            metavar="MODULE:APP",
            help="App whose decorated functions it runs; its jobs are made what its code says.",
            show_default=False,
        ),
    ] = None,
    queue: Annotated[
        list[str] | None, typer.Option("--queue", help="Queue to serve; may be repeated. Default: all.")
    ] = None,
    concurrency: Annotated[
        str | None, typer.Option(help="How many runs it does at once. Default: 10.", metavar="N")
    ] = None,
    config: options.Config = None,
    log_format: options.LogFormat = None,
    log_level: options.LogLevel = None,
) -> None:
    """Execute runs until Ctrl-C or SIGTERM, on the database of FOLIOT_DATABASE_URL.

    `foliot serve` has a worker of its own; this one is for more of them, on this machine or others.
    """
    settings = options.settings(
        app=app,
        worker_queues=",".join(queue) if queue else None,
        worker_concurrency=concurrency,
        config=config,
        log_format=log_format,
        log_level=log_level,
    )
    from foliot.wiring import worker_main

    worker_main.run_standalone(settings)
