"""Charts as SVG made on the server: no script, printable, themed by CSS classes, each bar with a title for tooltips and readers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from foliot.web.console.text import STATUS_SHAPES


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its parts by CSS class from bottom to top, its title, and the page behind it."""

    parts: Sequence[tuple[str, float]]
    title: str
    href: str | None = None


def run_strip(runs: Iterable[dict[str, object]], title: str) -> Markup:
    """The newest runs of a job, oldest first: one mark each, shape by status, link to the run."""
    marks = []
    x = 0
    for run in runs:
        status = str(run["status"])
        shape = STATUS_SHAPES.get(status, "wait")
        height = 18 if shape in ("fail", "ok", "run") else 10
        y = 20 - height
        mark = Markup(
            '<rect class="m-{}" x="{}" y="{}" width="5" height="{}" rx="1.5"><title>{}</title></rect>'
        ).format(shape, x, y, height, str(run.get("title", status)))
        marks.append(
            Markup('<a href="{}">{}</a>').format(str(run["href"]), mark) if run.get("href") else mark
        )
        x += 7
    if not marks:
        return Markup('<span class="muted">—</span>')
    return Markup(
        '<svg class="strip" viewBox="0 0 {} 20" width="{}" height="20" role="img" aria-label="{}">{}</svg>'
    ).format(max(x - 2, 5), max(x - 2, 5), title, Markup("").join(marks))


def bars(values: Sequence[Bar], *, label: str, height: int = 72, width: int = 640) -> Markup:
    """Stacked bars over the whole width of the card."""
    if not values:
        return Markup("")
    most = max((sum(n for _, n in bar.parts) for bar in values), default=0) or 1
    slot = width / len(values)
    drawn = []
    for place, bar in enumerate(values):
        y = float(height)
        pieces = []
        for css, n in bar.parts:
            tall = n / most * (height - 4)
            if n:
                tall = max(tall, 2.0)
                y -= tall
                pieces.append(
                    Markup(
                        '<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="1"/>'
                    ).format(escape(css), place * slot + slot * 0.1, y, slot * 0.8, tall)
                )
        hit = Markup(
            '<rect class="hit" x="{:.1f}" y="0" width="{:.1f}" height="{}"><title>{}</title></rect>'
        ).format(place * slot, slot, height, bar.title)
        whole = Markup("<g>{}{}</g>").format(Markup("").join(pieces), hit)
        drawn.append(Markup('<a href="{}">{}</a>').format(bar.href, whole) if bar.href else whole)
    return Markup(
        '<svg class="bars" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<line class="base" x1="0" y1="{}" x2="{}" y2="{}"/>{}</svg>'
    ).format(width, height, label, height, width, height, Markup("").join(drawn))


def attempt_timeline(
    spans: Sequence[tuple[str, float, float, str]], *, label: str, width: int = 640
) -> Markup:
    """Attempts on one axis: (status, start, end, title), start and end as fractions of the whole."""
    rows = []
    for place, (status, start, end, title) in enumerate(spans):
        shape = STATUS_SHAPES.get(status, "wait")
        rows.append(
            Markup(
                '<rect class="m-{}" x="{:.1f}" y="{}" width="{:.1f}" height="10" rx="3"><title>{}</title></rect>'
            ).format(shape, start * width, place * 16 + 3, max((end - start) * width, 3), title)
        )
    tall = max(len(spans) * 16, 16)
    return Markup(
        '<svg class="timeline" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>'
    ).format(width, tall, label, Markup("").join(rows))
