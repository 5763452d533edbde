"""The jobs around a job as a small graph: what it waits for on the left, what waits for it on the right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from foliot.web.console.text import STATUS_SHAPES, html

NODE_HEIGHT, GAP = 36, 12
LARGE, SMALL = (190, 90, 24), (142, 44, 17)  # width of a node, width of the lane between, longest name


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A job beside the one in the middle. `edge` says on which end it starts, or starts this one."""

    name: str
    href: str
    status: str
    edge: str


def neighbours_graph(
    name: str, before: Sequence[Neighbour], after: Sequence[Neighbour], *, label: str, is_small: bool = False
) -> Markup:
    """Draw three columns: jobs before, the job, jobs after. An empty column takes no space."""
    node, lane, longest = SMALL if is_small else LARGE
    rows = max(len(before), len(after), 1)
    height = rows * (NODE_HEIGHT + GAP) - GAP
    middle_y = (height - NODE_HEIGHT) / 2
    left = node + lane if before else 0
    right = left + node + lane
    width = right + node if after else left + node
    pieces = []
    for column, x, start, end in ((before, 0, node, left), (after, right, left + node, right)):
        top = (height - (len(column) * (NODE_HEIGHT + GAP) - GAP)) / 2
        for place, each in enumerate(column):
            y = top + place * (NODE_HEIGHT + GAP)
            here, there = (y, middle_y) if column is before else (middle_y, y)
            pieces.append(_edge(start, here + NODE_HEIGHT / 2, end, there + NODE_HEIGHT / 2))
            pieces.append(_node(each, x, y, node, longest))
    pieces.append(
        html(
            '<rect class="node here" x="{}" y="{:.1f}" width="{}" height="{}" rx="8"/>{}',
            left,
            middle_y,
            node,
            NODE_HEIGHT,
            _text(name, left + 12, middle_y + 23, longest),
        )
    )
    return html('<svg class="graph" viewBox="0 0 {} {:.0f}" width="{}" height="{:.0f}" role="group" aria-label="{}">{}</svg>',
        width, height, width, height, label, Markup("").join(pieces)
    )  # fmt: skip


def _node(each: Neighbour, x: float, y: float, width: int, longest: int) -> Markup:
    shape = STATUS_SHAPES.get(each.status, "wait")
    return html('<a href="{}"><title>{}</title><rect class="node" x="{}" y="{:.1f}" width="{}" height="{}" rx="8"/>'
        '<circle class="m-{}" cx="{}" cy="{:.1f}" r="4"/>{}<text class="edge-word" x="{}" y="{:.1f}">{}</text></a>',
        each.href, f"{each.name}: {each.edge}", x, y, width, NODE_HEIGHT, shape, x + 13, y + 14,
        _text(each.name, x + 23, y + 18, longest - 2), x + 23, y + 30, each.edge,
    )  # fmt: skip


def _edge(x1: float, y1: float, x2: float, y2: float) -> Markup:
    bend = (x2 - x1) / 2
    path = f"M{x1:.1f} {y1:.1f} C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f} {x2 - 6:.1f} {y2:.1f}"
    head = f"M{x2 - 8:.1f} {y2 - 4:.1f} L{x2:.1f} {y2:.1f} L{x2 - 8:.1f} {y2 + 4:.1f}"
    return html('<path class="edge" d="{}"/><path class="edge" d="{}"/>', path, head)


def _text(name: str, x: float, y: float, longest: int) -> Markup:
    shown = name if len(name) <= longest else name[: longest - 1] + "…"
    return html('<text x="{}" y="{:.1f}">{}</text>', x, y, shown)
