"""Charts as SVG made on the server: no script, printable, themed by CSS classes, each bar with a title for tooltips and readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from foliot.web.console.text import STATUS_SHAPES, html, number, sentence_case


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its parts by CSS class from bottom to top, its title, and the page behind it."""

    parts: Sequence[tuple[str, float]]
    title: str
    href: str | None = None


def run_strip(runs: Iterable[dict[str, object]], title: str, *, is_small: bool = False) -> Markup:
    """The newest runs of a job, oldest first: one mark each, shape by status, link to its explanation.

    A small strip, one of many on a page, draws successes that follow each other as one dashed line without links: few bytes.
    """
    marks, x, good_since = [], 0, None
    for run in runs:
        status = str(run["status"])
        shape = STATUS_SHAPES.get(status, "wait")
        height = 18 if shape in ("fail", "ok", "run") else 10
        y = 20 - height
        if is_small and shape == "ok":
            good_since = x if good_since is None else good_since
        else:
            marks += _good_line(good_since, x)
            good_since = None
            mark = '<rect class="m-{}" x="{}" y="{}" width="5" height="{}" rx="1.5"><title>{}</title></rect>'
            drawn = (shape, x, y, height, str(run.get("title", status)))
            href = run.get("href")
            marks.append(
                html(f'<a href="{{}}">{mark}</a>', str(href), *drawn) if href else html(mark, *drawn)
            )
        x += 7
    marks += _good_line(good_since, x)
    if not marks:
        return Markup('<span class="muted">—</span>')
    strip = Markup("").join(marks)
    return html(
        '<svg class="strip" viewBox="0 0 {} 20" width="{}" height="20" role="{}" aria-label="{}">{}</svg>',
        max(x - 2, 5),
        max(x - 2, 5),
        _role(strip),
        title,
        strip,
    )


@dataclass(frozen=True, slots=True)
class LaneMark:
    """A run or a planned time in the lane of a job: where it lies in percent, how it looks, and the page behind it."""

    left: float
    width: float
    css: str
    title: str
    href: str


def lane_marks(marks: Iterable[LaneMark]) -> Markup:
    """The marks of a lane 100 wide and 20 high. One that stands for a series is thin."""
    drawn = [
        html(
            '<a href="{}"><rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect></a>',
            each.href,
            each.css,
            each.left,
            8 if "series" in each.css else 4,
            each.width,
            4 if "series" in each.css else 12,
            each.title,
        )
        for each in marks
    ]
    return Markup("").join(drawn)


def _good_line(since: int | None, x: int) -> list[Markup]:
    """The marks of successes from one place to another: a dash each."""
    return [] if since is None else [html('<path class="oks" d="M{} 11H{}"/>', since, x - 2)]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a plot: its CSS class (m-ok, m-fail, m-run …), its name, and a value or None for each place."""

    css: str
    name: str
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Axes:
    """The labels around a drawing: along the bottom from left to right, how a value reads, names of the colours."""

    x: Sequence[str] = ()
    show: Callable[[float | None], str] = number
    legend: Sequence[tuple[str, str]] = ()  # CSS class and name


def bars(
    values: Sequence[Bar], *, label: str, axes: Axes | None = None, height: int = 92, width: int = 640
) -> Markup:
    """Stacked bars over the whole width of the card. With axes, labels stand around them."""
    if not values:
        return Markup("")
    axes = axes or Axes()
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
                    html(
                        '<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>',
                        css,
                        place * slot + slot * 0.1,
                        y,
                        slot * 0.8,
                        tall,
                    )
                )
        hit = html(
            '<rect class="hit" x="{:.1f}" y="0" width="{:.1f}" height="{}"><title>{}</title></rect>',
            place * slot,
            slot,
            height,
            bar.title,
        )
        whole = html("<g>{}{}</g>", Markup("").join(pieces), hit)
        drawn.append(
            html('<a href="{}" aria-label="{}">{}</a>', bar.href, bar.title, whole) if bar.href else whole
        )
    return _framed("bars", drawn, most, label, axes, width, height)


DASH = 5  # half of the dash that stands for a value without neighbours


def lines(
    series: Sequence[Line], *, label: str, axes: Axes | None = None, height: int = 92, width: int = 640
) -> Markup:
    """Lines over the same places, such as average and p95 by day. A missing value leaves a gap."""
    axes = axes or Axes()
    most = max((value for each in series for value in each.values if value is not None), default=0) or 1
    drawn = []
    for each in series:
        step = width / max(len(each.values) - 1, 1)
        path, is_down = "", False
        for place, value in enumerate(each.values):
            if value is not None:
                y = height - value / most * (height - 6) - 2
                is_alone = not is_down and (place + 1 == len(each.values) or each.values[place + 1] is None)
                x = min(max(place * step, DASH), width - DASH) - DASH if is_alone else place * step
                path += f"{'L' if is_down else 'M'}{x:.1f} {y:.1f}{f'h{2 * DASH}' if is_alone else ''}"
            is_down = value is not None
        drawn.append(html('<path class="line {}" d="{}"/>', each.css, path))
    framed = Axes(axes.x, axes.show, axes.legend or [(each.css, each.name) for each in series])
    return _framed("bars lines", drawn, most, label, framed, width, height)


def _framed(
    css: str, drawn: Sequence[Markup], most: float, label: str, axes: Axes, width: int, height: int
) -> Markup:
    """The drawing, and its labels as text around it: the drawing is stretched to the width of the card."""
    links = Markup("").join(drawn)
    svg = html(
        '<svg class="{}" viewBox="0 0 {} {}" preserveAspectRatio="none" role="{}" aria-label="{}">'
        '<line class="mid" x1="0" y1="{}" x2="{}" y2="{}"/><line class="base" x1="0" y1="{}" x2="{}" y2="{}"/>{}</svg>',
        css,
        width,
        height,
        _role(links),
        label,
        height / 2,
        width,
        height / 2,
        height,
        width,
        height,
        links,
    )
    below = Markup("").join(html("<span>{}</span>", each) for each in axes.x)
    legend = Markup("").join(
        html(
            '<span><svg viewBox="0 0 9 9" aria-hidden="true"><rect class="{}" width="9" height="9" rx="2"/></svg>{}</span>',
            each,
            sentence_case(name),
        )
        for each, name in axes.legend
    )
    return html(
        '<div class="chart"><div class="y" aria-hidden="true"><span>{}</span><span>0</span></div>{}'
        '<div class="x" aria-hidden="true">{}</div>{}</div>',
        axes.show(most),
        svg,
        below,
        html('<div class="legend">{}</div>', legend) if legend else "",
    )


def _role(drawn: Markup) -> str:
    """The ARIA role of a drawing: an image would hide its links from readers."""
    return "group" if "<a " in drawn else "img"
