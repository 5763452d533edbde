"""The settings that a client reads. `Settings` adds those of the server.

They are apart from the others because each command of the command line reads them: the whole model takes longer to build.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from foliot.settings.declarations import OUTPUTS
from foliot.settings.fields import flag, secret, setting
from foliot.settings.value_types import PATH, TEXT, one_of, url, whole_number


class ClientSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    origins: Mapping[str, str] = Field(default_factory=dict, repr=False)

    config: Annotated[Path | None, PATH] = flag("config", in_toml=False)
    data_dir: Annotated[Path, PATH] = flag("data_dir")
    host: Annotated[str, TEXT] = flag("host")
    port: Annotated[int, whole_number(0, 65535)] = flag("port")
    api_url: Annotated[str, url("http", "https")] = setting(
        "http://127.0.0.1:8700", "Foliot server that clients on this machine use."
    )
    api_key: Annotated[str | None, TEXT] = secret(
        "Key that clients send. Default: the one in data_dir/admin.key."
    )
    ca_file: Annotated[Path | None, PATH] = setting(
        None,
        "File of certificates, as PEM, that clients and hosts trust instead of the machine's own. "
        "Default: those of SSL_CERT_FILE, else the machine's.",
    )
    profile: Annotated[str | None, TEXT] = setting(
        None,
        "Profile that clients on this machine use: a section of profiles.toml, with address, key and workspace.",
    )
    workspace: Annotated[str | None, TEXT] = setting(
        None, "Slug of the workspace that clients on this machine use; only for system keys."
    )
    output: Annotated[str, one_of(*OUTPUTS)] = setting(
        "table", "Output format of commands that call the server."
    )
