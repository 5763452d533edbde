"""`foliot host`: do the work that is meant for this machine, fetched from a server elsewhere."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from foliot.cli import options
from foliot.cli.hosts import parse_label
from foliot.cli.session import KeyFile, read_key_file

DEFAULT_PERMITS = 16


def host(
    server: Annotated[
        str | None,
        typer.Option(
            help="Where Foliot is, such as https://foliot.example. Default: FOLIOT_API_URL.", metavar="URL"
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            help="A key of the scope worker. Better in FOLIOT_API_KEY, where `ps` does not show it.",
            metavar="KEY",
        ),
    ] = None,
    key_file: KeyFile = None,
    name: Annotated[
        str | None, typer.Option(help="What it is called. Default: the name of this machine.", metavar="NAME")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label", help="NAME=VALUE, for people to find it by; may be repeated.", metavar="LABEL"
        ),
    ] = None,
    instance: Annotated[
        list[str] | None,
        typer.Option(
            "--instance", help="A server instance on this machine; may be repeated.", metavar="NAME"
        ),
    ] = None,
    allow_command: Annotated[
        bool, typer.Option("--allow-command", help="Run commands that jobs of the type command name.")
    ] = False,
    allow_python: Annotated[
        bool, typer.Option("--allow-python", help="Call Python functions that jobs of the type python name.")
    ] = False,
    concurrency: Annotated[
        int, typer.Option(min=1, max=1_000, help="The most runs at once, of all kinds.", metavar="N")
    ] = DEFAULT_PERMITS,
    ca: Annotated[
        Path | None,
        typer.Option(
            help="Certificates to trust in the place of the machine's own, as PEM. Default: FOLIOT_CA_FILE.",
            metavar="FILE",
        ),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Plain http to another machine: keys and work go in the clear.")
    ] = False,
    config: options.Config = None,
    log_format: options.LogFormat = None,
    log_level: options.LogLevel = None,
) -> None:
    """Do what is meant for this machine, until Ctrl-C or SIGTERM.

    It needs no database and opens no port: it asks the server for work and says what came of it.
    """
    settings = options.settings(config=config, log_format=log_format, log_level=log_level)
    from foliot.wiring.host import HostOptions, serve_as_host

    allowed = {kind for kind, is_on in (("command", allow_command), ("python", allow_python)) if is_on}
    orders = HostOptions(
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
    serve_as_host(settings, orders)
