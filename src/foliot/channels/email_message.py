"""Build the e-mail of a notice: plain text first, an HTML part beside it, attachments behind both.

Every value is user text: it is escaped in HTML, and header values hold no line breaks (`domain.notifications.content` made them inert).
"""

from __future__ import annotations

from collections.abc import Sequence
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import default
from email.utils import format_datetime, parseaddr
from html import escape

from foliot.domain.notifications.content import NoticeContent, Severity
from foliot.services.messaging.courier import OutgoingNotice

_COLOURS = {Severity.BAD: "#b42318", Severity.GOOD: "#067647", Severity.NEUTRAL: "#344054"}
# A line of 998 characters is the longest that mail allows. Python doubles the space where it breaks a subject before a letter that is not ASCII.
_WHOLE_HEADERS = default.clone(max_line_length=998)
_DOMAIN = "foliot.invalid"  # ids need a domain; this one never exists


def build_email(notice: OutgoingNotice, sender: str, recipients: Sequence[str]) -> EmailMessage:
    """Build the message. All messages of an incident refer to the same first id, so that clients show one thread."""
    content = notice.content
    message = EmailMessage(_WHOLE_HEADERS)
    message["Subject"] = content.title
    message["From"] = _address(sender)
    message["To"] = [_address(each) for each in recipients]
    message["Date"] = format_datetime(content.at)
    message["Message-ID"] = f"<{notice.taken.id}@{_DOMAIN}>"
    if content.incident_id is not None:
        root = f"<incident.{content.incident_id}@{_DOMAIN}>"
        message["References"] = root
        message["In-Reply-To"] = root
    message["Auto-Submitted"] = "auto-generated"
    message["X-Foliot-Event"] = content.event.value
    message.set_content(content.text + "\n")
    message.add_alternative(html_of(content), subtype="html")
    for each in notice.attachments:
        kind, _, subtype = each.media_type.partition(";")[0].strip().partition("/")
        message.add_attachment(
            each.data,
            maintype=kind or "application",
            subtype=subtype or "octet-stream",
            filename=_file_name(each.name),
        )
    return message


def html_of(content: NoticeContent) -> str:
    """Return a page without scripts, images or links to anything but the console. Light and dark follow the reader's setting."""
    colour = _COLOURS[content.severity]
    lines = "".join(f"<p>{escape(line)}</p>" for line in content.lines)
    error = f'<pre class="error">{escape(content.error)}</pre>' if content.error else ""
    facts = "".join(
        f"<tr><th>{escape(label)}</th><td>{escape(value)}</td></tr>" for label, value in content.facts
    )
    links = " ".join(
        f'<a class="button" href="{escape(each.url, quote=True)}">{escape(each.label)}</a>'
        for each in content.links
    )
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="supported-color-schemes" content="light dark">'
        f"<title>{escape(content.title)}</title><style>{_STYLE}</style></head>"
        f'<body><div class="card" style="border-top: 4px solid {colour}">'
        f"<h1>{escape(content.title)}</h1>{lines}{error}"
        f"{f'<table>{facts}</table>' if facts else ''}"
        f"{f'<p class=links>{links}</p>' if links else ''}"
        f"</div><p class=foot>Sent by Foliot for the workspace {escape(content.workspace)}.</p></body></html>"
    )


_STYLE = (
    ":root{color-scheme:light dark}"
    "body{margin:0;padding:24px 12px;background:#f2f4f7;color:#101828;"
    "font:16px/1.5 -apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif}"
    ".card{max-width:600px;margin:0 auto;padding:20px 24px;background:#fff;border-radius:8px}"
    "h1{margin:0 0 12px;font-size:19px;line-height:1.3;overflow-wrap:anywhere}p{margin:0 0 8px;overflow-wrap:anywhere}"
    "pre{margin:12px 0;padding:12px;background:#f2f4f7;border-radius:6px;font:13px/1.45 ui-monospace,Menlo,Consolas,monospace;"
    "white-space:pre-wrap;overflow-wrap:anywhere}"
    "table{margin:12px 0;border-collapse:collapse}th{padding:2px 16px 2px 0;text-align:left;font-weight:600;vertical-align:top;color:#475467}"
    "td{padding:2px 0;overflow-wrap:anywhere}.links{margin-top:16px}"
    ".button{display:inline-block;margin:0 8px 8px 0;padding:8px 14px;border-radius:6px;background:#175cd3;color:#fff;text-decoration:none}"
    ".foot{max-width:600px;margin:12px auto 0;font-size:13px;color:#475467}"
    "@media (prefers-color-scheme:dark){body{background:#0c111d;color:#f2f4f7}.card{background:#1d2939}pre{background:#0c111d}"
    "th,.foot{color:#98a2b3}.button{background:#528bff;color:#0c111d}}"
)


def _address(text: str) -> Address:
    """Parse `Name <local@domain>`; the caller has checked its shape."""
    name, spec = parseaddr(text)
    local, _, domain = spec.rpartition("@")
    return Address(name, local, domain)


def _file_name(name: str) -> str:
    return "".join(c if c.isprintable() and c not in '/\\"' else "_" for c in name)[-150:]
