"""Texts that become script, markup, style or another address where a page fails to escape them."""

from __future__ import annotations

RAN = "window.__ran=1"  # what each of them would do
CORPUS = (
    f"<script>{RAN}</script>",
    f"</script><script>{RAN}</script>",
    f"</title><script>{RAN}</script>",
    f"</textarea><script>{RAN}</script>",
    f"</pre></option></select><img src=x onerror={RAN}>",
    f'"><img src=x onerror={RAN}>',
    f"'><svg onload={RAN}>",
    f'" onfocus={RAN} autofocus="',
    f"' onmouseover={RAN} style=position:fixed;inset:0 '",
    f"javascript:{RAN}//",
    f"<a href=javascript:{RAN}>open</a>",
    f"<math><mtext></form><form><mglyph><style></math><img src onerror={RAN}>",
    f'<iframe srcdoc="<script>parent.{RAN[7:]}</script>"></iframe>',
    "<style>*{display:none}</style><link rel=stylesheet href=//evil.test/a.css>",
    "<base href=//evil.test/><meta http-equiv=refresh content=0;url=//evil.test/>",
    "{{7*7}}${7*7}<%= 7*7 %>{% raw %}{0.__class__}%(a)s",
    "--><!-- ]]> \u202eevil\u202c \u2028 \ufeff &lt;b&gt; &#60;script&#62;",
    "=cmd|' /C calc'!A0",
)
SHORT = tuple(text for text in CORPUS if len(text) <= 60)


def hostile_text(plain: str, longest: int) -> str:
    """As much of the corpus as the field takes; another part of it for each field."""
    first = sum(plain.encode()) % len(CORPUS)
    text = plain[:20]
    for payload in CORPUS[first:] + CORPUS[:first]:
        if len(text) + len(payload) <= longest:
            text += payload
    return text
