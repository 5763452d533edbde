"""Put the values of secrets into the configs of runs that name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from foliot.domain.ids import WorkspaceId
from foliot.domain.run import RunError
from foliot.domain.secret_references import names, resolved
from foliot.services.secrets.vault import SealedValue, UnreadableError, Vault, purpose
from foliot.storage.content import secrets
from foliot.storage.content.secrets import SealedSecret
from foliot.storage.tx import Database, Role

SecretConfig = Mapping[str, Any]


class ResolvedConfig(NamedTuple):
    config: dict[str, Any]
    masks: tuple[str, ...]  # the values, to be masked everywhere


async def resolve_secrets(
    database: Database, vault: Vault | None, workspace_id: WorkspaceId, configs: Sequence[SecretConfig]
) -> list[ResolvedConfig | RunError]:
    """Return each config with the values of its secrets, or the error."""
    wanted = [names(config) for config in configs]
    async with database.tx(Role.APP, workspace_id) as tx:
        boxes = await secrets.load_sealed(tx, frozenset().union(*wanted))
    values = {name: _opened(vault, name, boxes.get(name)) for name in frozenset().union(*wanted)}
    return [
        _resolved(config, {name: values[name] for name in mine})
        for config, mine in zip(configs, wanted, strict=True)
    ]


def _opened(vault: Vault | None, name: str, box: SealedSecret | None) -> str | RunError:
    if box is None:
        return RunError("secret_missing", f'There is no secret "{name}" in this workspace.')
    if vault is None:
        return RunError(
            "secret_unreadable", f'The secret "{name}" cannot be read: this worker has no master key.'
        )
    try:
        bound = purpose(box.workspace_id, box.id, box.version)
        return vault.open(bound, SealedValue(box.key_id, box.sealed_value)).decode()
    except UnreadableError as error:
        why = (
            "what is stored is not what was sealed; set it anew"
            if error.is_known
            else f"the master key {error.key_id}, which sealed it, is not known to this worker"
        )
        return RunError("secret_unreadable", f'The secret "{name}" cannot be read: {why}.')


def _resolved(config: SecretConfig, values: Mapping[str, str | RunError]) -> ResolvedConfig | RunError:
    plain = {}
    for name, value in sorted(values.items()):
        if isinstance(value, RunError):
            return value
        plain[name] = value
    return ResolvedConfig(resolved(config, plain), tuple(dict.fromkeys(plain.values())))
