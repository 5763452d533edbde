"""The long description and the addresses of the package. Hatchling calls this while it builds one.

README.md links to files of the repository, which a package index does not have. PROJECT_URL, the address of the repository,
makes these links absolute. Without it the text of a link stays, and so does that of a picture: no link leads nowhere.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

ADDRESS = "PROJECT_URL"  # without FOLIOT_, which is for settings
PAGES, FILES = "blob/HEAD", "raw/HEAD"  # where GitHub and GitLab show a file, and where they send it as it is
_CODE_BLOCK = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"<picture>.*?</picture>", re.DOTALL)
_SOURCE = re.compile(r'\b(src|srcset)="(?!https?:)([^"]+)"')
_ALT = re.compile(r'\balt="([^"]*)"')
# A picture, or a link whose text may have code, to a place that is neither an address nor an anchor.
_LINK = re.compile(r"(!?)\[((?:[^\[\]`]|`[^`\n]+`)*)\]\((?!https?:|mailto:|#)([^)\s]+)\)")


class CustomMetadataHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        address = os.environ.get(ADDRESS, "").rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": long_description(text, address)}
        metadata["urls"] = project_urls(address)


def project_urls(address: str) -> dict[str, str]:
    if not address:
        return {}
    return {
        "Homepage": address,
        "Documentation": f"{address}/{PAGES}/docs/README.md",
        "Changelog": f"{address}/{PAGES}/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }


def long_description(readme: str, address: str) -> str:
    """Return the README with links to `address`, or without links if that is empty."""

    def picture(found: re.Match[str]) -> str:
        if address:
            return _SOURCE.sub(rf'\1="{address}/{FILES}/\2"', found[0])
        alt = _ALT.search(found[0])
        return "" if alt is None else alt[1]

    def link(found: re.Match[str]) -> str:
        mark, text, target = found.groups()
        if not address:
            return text
        return f"{mark}[{text}]({address}/{FILES if mark else PAGES}/{target})"

    parts = _CODE_BLOCK.split(readme)
    for at in range(0, len(parts), 2):  # the others are blocks of code
        parts[at] = _LINK.sub(link, _PICTURE.sub(picture, parts[at]))
    return "".join(parts)
