"""Prepare deliveries to channels: the message, the values of the channel's secrets, recipients and attachments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from foliot.domain.delivery import Came, LeasedDelivery, Unanswered, Undeliverable
from foliot.domain.ids import RunId, WorkspaceId
from foliot.domain.notifications.channel import of_kind, recipients_of
from foliot.domain.notifications.content import NoticeContent, inert
from foliot.domain.run import RunError
from foliot.services.notifications.delivery_steps import NoticeAttachment, OutgoingNotice
from foliot.services.secrets.resolution import ResolvedConfig, resolve_secrets
from foliot.services.secrets.vault import Vault
from foliot.storage.content import artifacts
from foliot.storage.identity import workspaces
from foliot.storage.notifications import deliveries
from foliot.storage.notifications.deliveries import LoadedNotice
from foliot.storage.tx import Database, Role, Tx

LARGEST = 10 * 1024 * 1024  # bytes of all attachments of a message
MOST_ATTACHMENTS = 10


async def pack_notices(
    database: Database, vault: Vault | None, workspace_id: WorkspaceId, taken: Sequence[LeasedDelivery]
) -> list[OutgoingNotice | Came]:
    """Load messages and channels inside their workspace: row-level security shows them only there."""
    async with database.tx(Role.APP, workspace_id) as tx:
        home = await workspaces.get(tx, workspace_id)
        loaded = await deliveries.load(tx, [each.id for each in taken])
        attached = {each.delivery_id: await _attachments(tx, each.content) for each in loaded.values()}
    if home is None or home.archived_at is not None:
        return [Undeliverable("The workspace is archived.")] * len(taken)
    found = [loaded.get(each.id) for each in taken]
    configs = [each.config for each in found if each is not None]
    answers = iter(await resolve_secrets(database, vault, workspace_id, configs) if configs else ())
    packed: list[OutgoingNotice | Came] = []
    for each, its in zip(taken, found, strict=True):
        if its is None:
            packed.append(Undeliverable("The channel was deleted."))
            continue
        answer = next(answers)
        if not its.is_usable:
            packed.append(Undeliverable("The channel is disabled."))
        elif isinstance(answer, RunError):
            packed.append(Unanswered(answer.message))
        else:
            packed.append(_notice(each, its, answer, attached[each.id]))
    return packed


def _notice(
    taken: LeasedDelivery,
    loaded: LoadedNotice,
    resolved: ResolvedConfig,
    attached: tuple[NoticeContent, tuple[NoticeAttachment, ...]],
) -> OutgoingNotice | Came:
    wanted = of_kind(loaded.kind, loaded.recipients) or recipients_of(loaded.kind, loaded.config)
    recipients = tuple(each for each in wanted if each not in loaded.refused)
    if wanted and not recipients:
        return Undeliverable("Every address of the channel was refused before.")
    content, attachments = attached
    return OutgoingNotice(
        taken,
        loaded.kind,
        resolved.config,
        content,
        recipients,
        loaded.thread,
        attachments,
        resolved.masks,
    )


async def _attachments(tx: Tx, content: NoticeContent) -> tuple[NoticeContent, tuple[NoticeAttachment, ...]]:
    """Load the artifacts of the run whose names match. The message names those that are too large or too many for it."""
    if not content.attachments or content.run_id is None:
        return content, ()
    run_id = RunId(content.run_id)
    found: list[NoticeAttachment] = []
    left_out: list[str] = []
    left = LARGEST
    for each in await artifacts.list_of_run(tx, run_id):
        if any(fnmatchcase(each.name, pattern) for pattern in content.attachments):
            if each.size > left or len(found) == MOST_ATTACHMENTS:
                left_out.append(inert(each.name))
                continue
            data = await _read(tx, run_id, each.name)
            left -= each.size
            found.append(NoticeAttachment(each.name, each.media_type, data))
    if left_out:
        named = ", ".join(left_out[:MOST_ATTACHMENTS]) + (", …" if len(left_out) > MOST_ATTACHMENTS else "")
        fact = (
            "Not attached",
            f"{named}. A message holds {MOST_ATTACHMENTS} files and 10 MB; the run keeps them.",
        )
        content = replace(content, facts=(*content.facts, fact))
    return content, tuple(found)


async def _read(tx: Tx, run_id: RunId, name: str) -> bytes:
    stored = await artifacts.get(tx, run_id, name)
    if stored is None:
        return b""
    parts = [await artifacts.load_part(tx, stored.id, number) for number in range(stored.parts)]
    return b"".join(part for part in parts if part is not None)
