"""What a page holds, as far as tests ask: its forms, its links, and anything that could run script."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

Attributes = list[tuple[str, str | None]]
NOT_SENTENCES = {"pre", "code", "kbd", "textarea", "script"}
SCRIPT_ADDRESSES = ("href", "src", "action", "formaction", "xlink:href")


@dataclass(slots=True)
class Form:
    method: str
    action: str
    fields: dict[str, str] = field(default_factory=dict)


class Page(HTMLParser):
    """Parse a page of the console. `address` is its own, which relative links refer to."""

    def __init__(self, address: str, html: str) -> None:
        super().__init__()
        self.address = address
        self.forms: list[Form] = []
        self.links: set[str] = set()
        self.inline: list[str] = []  # script, style and handlers within the page
        self.texts: list[str] = []
        self._select: str | None = None
        self._code = 0  # within texts that are not sentences
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        given = {name: value or "" for name, value in attrs}
        self._code += tag in NOT_SENTENCES
        self._look_for_script(tag, given)
        if tag == "a" and "href" in given:
            self._add_link(given["href"])
        elif tag == "form":
            action = urljoin(self.address, given.get("action") or self.address)
            self.forms.append(Form(given.get("method", "get").lower(), action))
        elif tag in {"input", "textarea", "select", "button"} and self.forms and given.get("name"):
            self._add_field(tag, given)
        elif tag == "option" and self._select and ("selected" in given or not self._fields[self._select]):
            self._fields[self._select] = given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag in NOT_SENTENCES
        if tag == "select":
            self._select = None

    def handle_data(self, data: str) -> None:
        if data.strip() and not self._code:
            self.texts.append(" ".join(data.split()))

    @property
    def _fields(self) -> dict[str, str]:
        return self.forms[-1].fields

    def _add_field(self, tag: str, given: dict[str, str]) -> None:
        if given.get("type") in {"checkbox", "radio"} and "checked" not in given:
            return
        value = given.get("value", "")
        if "required" in given and not value:
            value = "x"
        self._fields[given["name"]] = value
        if tag == "select":
            self._select = given["name"]

    def _add_link(self, href: str) -> None:
        parts = urlsplit(urljoin(self.address, href))
        if not parts.netloc:
            self.links.add(parts._replace(fragment="").geturl())

    def _look_for_script(self, tag: str, given: dict[str, str]) -> None:
        if (tag == "script" and "src" not in given) or tag in {"style", "base", "iframe", "object", "embed"}:
            self.inline.append(f"<{tag}>")
        for name, value in given.items():
            if name.startswith("on") or name in {"style", "srcdoc"}:
                self.inline.append(f"<{tag} {name}={value!r}>")
            if name in SCRIPT_ADDRESSES and urlsplit(value.strip()).scheme not in {
                "",
                "http",
                "https",
                "mailto",
            }:
                self.inline.append(f"<{tag} {name}={value!r}>")
