"""`foliot serve`, `migrate`, `worker` and `host`: the processes of an installation."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from foliot.cli import settings as flags
from foliot.cli.hosts import parse_label
from foliot.cli.output import print_out
from foliot.cli.session import KeyFile, read_key_file

DEFAULT_HOST_CONCURRENCY = 16
Ca = Annotated[
    Path | None,
    typer.Option(
        help="PEM file of certificates to trust instead of the machine's. Default: FOLIOT_CA_FILE.",
        metavar="FILE",
    ),
]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="Allow http to another machine: keys and data are unencrypted.")
]


def serve(
    config: flags.Config = None,
    data_dir: flags.DataDir = None,
    host: flags.Host = None,
    port: flags.Port = None,
    pg_bindir: flags.PgBindir = None,
    log_format: flags.LogFormat = None,
    log_level: flags.LogLevel = None,
    shutdown_grace: flags.ShutdownGrace = None,
    roles: flags.Roles = None,
    api_processes: flags.ApiProcesses = None,
    app: flags.App = None,
) -> None:
    """Run Foliot on this machine until Ctrl-C or SIGTERM.

    Without FOLIOT_DATABASE_URL it runs a private PostgreSQL in the data directory. The first start creates
    an administrator's key, prints it once and stores it in admin.key there.
    """
    settings = flags.load_settings(
        config=config,
        data_dir=data_dir,
        host=host,
        port=port,
        pg_bindir=pg_bindir,
        log_format=log_format,
        log_level=log_level,
        shutdown_grace=shutdown_grace,
        roles=roles,
        api_processes=api_processes,
        app=app,
    )
    from foliot.wiring import node

    node.serve(settings, print_out)


def migrate(
    config: flags.Config = None,
    data_dir: flags.DataDir = None,
    pg_bindir: flags.PgBindir = None,
    log_format: flags.LogFormat = None,
    log_level: flags.LogLevel = None,
) -> None:
    """Migrate the database to this version and stop. `foliot serve` also migrates when it starts."""
    settings = flags.load_settings(
        config=config, data_dir=data_dir, pg_bindir=pg_bindir, log_format=log_format, log_level=log_level
    )
    from foliot.wiring import admin_tasks

    applied = admin_tasks.migrate(settings)
    print_out(
        f"Applied {len(applied)}: {', '.join(applied)}."
        if applied
        else "Nothing to do: the database is up to date."
    )


def worker(
    app: Annotated[
        str | None,
        typer.Argument(
            metavar="MODULE:APP",
            help="App whose decorated functions to run; its jobs are updated to match the code.",
            show_default=False,
        ),
    ] = None,
    queue: Annotated[
        list[str] | None, typer.Option("--queue", help="Queue to serve; repeatable. Default: all.")
    ] = None,
    concurrency: Annotated[
        str | None, typer.Option(help="Maximum number of runs at a time. Default: 10.", metavar="N")
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            help="URL of Foliot, to work over HTTP alone for the workspace of the key.", metavar="URL"
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            help="API key with the scope worker, with --server. Prefer FOLIOT_API_KEY, which `ps` does not show.",
            metavar="KEY",
        ),
    ] = None,
    key_file: KeyFile = None,
    ca: Ca = None,
    insecure: Insecure = False,
    config: flags.Config = None,
    log_format: flags.LogFormat = None,
    log_level: flags.LogLevel = None,
) -> None:
    """Execute runs until Ctrl-C or SIGTERM, on the database of FOLIOT_DATABASE_URL, or over HTTP with --server.

    `foliot serve` includes a worker; use this command for more workers, here or on other machines. Over HTTP it serves the workspace of
    its key, and leaves the jobs of an app as they are: `foliot apply` and a worker at the database update them.
    """
    settings = flags.load_settings(
        app=app,
        worker_queues=",".join(queue) if queue else None,
        worker_concurrency=concurrency,
        config=config,
        log_format=log_format,
        log_level=log_level,
    )
    if server is not None:
        from foliot.wiring.host import HostOptions, serve_as_host

        options = HostOptions(
            url=server,
            key=key if key_file is None else read_key_file(key_file),
            name=os.uname().nodename,
            labels=None,
            instances=(),
            permits=max(1, settings.worker_concurrency),
            allowed=frozenset({"python", "command"} if settings.allow_commands else {"python"}),
            queues=tuple(settings.worker_queues),
            app=settings.app,
            insecure=insecure,
            ca=ca,
        )
        serve_as_host(settings, options)
        return
    from foliot.wiring import worker_main

    worker_main.run_standalone(settings)


def host(
    server: Annotated[
        str | None,
        typer.Option(
            help="URL of Foliot, such as https://foliot.example. Default: FOLIOT_API_URL.", metavar="URL"
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            help="API key with the scope worker. Prefer FOLIOT_API_KEY, which `ps` does not show.",
            metavar="KEY",
        ),
    ] = None,
    key_file: KeyFile = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the host. Default: the name of this machine.", metavar="NAME")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", help="NAME=VALUE label to find the host by; repeatable.", metavar="LABEL"),
    ] = None,
    instance: Annotated[
        list[str] | None,
        typer.Option("--instance", help="Server instance on this machine; repeatable.", metavar="NAME"),
    ] = None,
    allow_command: Annotated[
        bool, typer.Option("--allow-command", help="Allow jobs of type command to run commands.")
    ] = False,
    allow_python: Annotated[
        bool, typer.Option("--allow-python", help="Allow jobs of type python to call Python functions.")
    ] = False,
    concurrency: Annotated[
        int, typer.Option(min=1, max=1_000, help="Maximum number of runs at a time.", metavar="N")
    ] = DEFAULT_HOST_CONCURRENCY,
    ca: Ca = None,
    insecure: Insecure = False,
    config: flags.Config = None,
    log_format: flags.LogFormat = None,
    log_level: flags.LogLevel = None,
) -> None:
    """Execute the runs that are bound to this machine, until Ctrl-C or SIGTERM.

    Needs no database and opens no port: it polls the server for work and reports the results.
    """
    settings = flags.load_settings(config=config, log_format=log_format, log_level=log_level)
    from foliot.wiring.host import HostOptions, serve_as_host

    allowed = {kind for kind, is_on in (("command", allow_command), ("python", allow_python)) if is_on}
    options = HostOptions(
        url=server,
        key=key if key_file is None else read_key_file(key_file),
        name=name or os.uname().nodename,
        labels=None if label is None else dict(parse_label(each) for each in label),
        instances=tuple(instance or ()),
        permits=concurrency,
        allowed=frozenset(allowed),
        insecure=insecure,
        ca=ca,
    )
    serve_as_host(settings, options)
