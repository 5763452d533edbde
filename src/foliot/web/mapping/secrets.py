"""Secrets on the wire."""

from __future__ import annotations

from foliot.domain.ids import PrincipalId
from foliot.services.secrets.master_key import KeyRotation, MasterKeyUsage
from foliot.services.secrets.secrets import SecretRow
from foliot.services.secrets.vault import Vault
from foliot.wire.secrets import MasterKeyOut, RotatedOut, SecretOut


def secret_out(row: SecretRow, vault: Vault, agent: PrincipalId | None = None) -> SecretOut:
    """An agent does not see the other agents."""
    return SecretOut.from_value(
        row,
        agents=[each for each in row.agents if agent in (None, each)],
        job_count=row.users,
        readable=vault.knows(row.key_id),
    )


def master_key_out(standing: MasterKeyUsage) -> MasterKeyOut:
    return MasterKeyOut.from_value(standing, known=list(standing.known), is_right=standing.opens)


def rotated_out(rotated: KeyRotation) -> RotatedOut:
    return RotatedOut.from_value(rotated)
