"""How secrets look: all of them but the value, which no server tells."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.console import RenderableType
from rich.text import Text

from foliot.cli.output import pluralize
from foliot.cli.tables import BAD, QUIET, STRONG, cell, columns, facts, stacked
from foliot.cli.times import relative
from foliot.wire.dry_run import RotationDryRunOut, SecretDryRunOut
from foliot.wire.secrets import MasterKeyOut, RotatedOut, SecretOut, SecretUser

ENOUGH = 18  # characters of an id


def secret_list(secrets: Sequence[SecretOut], now: datetime) -> RenderableType:
    if not secrets:
        return Text("No secrets.")
    rows = [
        (
            cell(each.name),
            cell(each.version),
            cell(each.job_count),
            cell(len(each.agents) or "", QUIET),
            cell(relative(each.updated_at - now)) if each.readable else cell("cannot be read", BAD),
            cell(str(each.id)[:ENOUGH], QUIET),
        )
        for each in secrets
    ]
    return columns(
        ("NAME", "VERSION", "JOBS", "AGENTS", "CHANGED", "ID"), rows, wraps=("NAME",), drops=("AGENTS", "ID")
    )


def secret_page(secret: SecretOut, users: Sequence[SecretUser], now: datetime) -> RenderableType:
    used = ", ".join(each.name for each in users) + (" …" if secret.job_count > len(users) else "")
    lost = Text("The master key that sealed it is not known to the server: set it anew.", BAD)
    return stacked(
        cell(secret.name, STRONG),
        None if secret.readable else lost,
        facts(
            (
                ("id", str(secret.id)),
                ("version", f"{secret.version}, {relative(secret.updated_at - now)}"),
                ("jobs", f"{secret.job_count:,}: {used}" if users else f"{secret.job_count:,}"),
                ("agents", ", ".join(map(str, secret.agents)) or "none"),
                ("in a config", f'{{"secret": "{secret.name}"}}'),
            )
        ),
    )


def master_key_page(key: MasterKeyOut) -> RenderableType:
    older = ", ".join(each for each in key.known if each != key.present)
    wrong = Text("These are not the keys of this installation.", BAD)
    return stacked(
        None if key.is_right else wrong,
        facts(
            (
                ("present key", key.present or "none"),
                ("older keys", older or "none"),
                ("secrets", f"{key.secrets:,}"),
                ("to rotate", f"{key.under_other_keys:,}"),
                ("unreadable", f"{key.unreadable:,}"),
            )
        ),
    )


def rotated_line(done: RotatedOut) -> RenderableType:
    left = f" {pluralize(done.left, 'secret')} could not be opened by the key they name." if done.left else ""
    lost = (
        f" {pluralize(done.unreadable, 'secret')} cannot be read by any key known here."
        if done.unreadable
        else ""
    )
    return Text(f"{pluralize(done.rotated, 'secret')} sealed anew by the key {done.present}.{left}{lost}")


def tried_line(tried: SecretDryRunOut, what: str) -> RenderableType:
    named = f", which {pluralize(tried.jobs, 'job')} name" if tried.jobs else ""
    version = f", at version {tried.secret.version}" if tried.secret else ""
    return cell(f"{what}{version}{named}. Nothing was done.")


def tried_rotation(tried: RotationDryRunOut) -> RenderableType:
    return Text(
        f"{pluralize(tried.rotated, 'secret')} would be sealed anew; {tried.unreadable:,} cannot be read. Nothing was done."
    )
