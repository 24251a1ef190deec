"""Formats results as text, as Markdown tables, and the ratios as a chart."""

import math
import statistics
from html import escape

PAIRS = [
    "case",
    "what",
    "peer",
    "peer, s",
    "h5fs, s",
    "times as fast (from–to)",
    "floor",
    "direct_io, s",
    "times as fast (from–to)",
    "floor",
]
BOUNDS = ["case", "what", "measured", "at most"]


def number(value, digits=3):
    """Formats a number with this number of significant digits, without an exponent."""
    if value is None:
        return ""
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value) or 1)))}f}"


def pair_row(pair, outcome):
    row = [pair.name, pair.what, pair.beside()]
    if outcome is None:
        return [*row, f"no {pair.needs}", *[""] * 6]
    floors, seconds, ratios = outcome
    row.append(number(seconds["peer"]))
    for mode in ("cached", "direct_io"):
        if mode in ratios:
            spread = f"{number(middle(ratios[mode]), 2)} ({number(min(ratios[mode]), 2)}–{number(max(ratios[mode]), 2)})"
            row += [
                number(seconds[mode]),
                spread,
                "" if floors[mode] is None else f"{floors[mode]:g}",
            ]
        else:
            row += ["", "", ""]
    return row


def middle(ratios):
    return statistics.median(ratios)


def bound_row(bound, outcome):
    return [bound.name, bound.what, f"no {bound.needs}" if outcome is None else outcome, bound.most]


def text(head, rows):
    rows = [[cell.replace("`", "") for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows
    )


def markdown(head, rows):
    """Formats a table without the names of the cases and the floors, which only developers need."""
    kept = [index for index, title in enumerate(head) if title not in ("case", "floor")]
    lines = [head, ["---"] * len(head), *rows]
    lines = [[line[index] for index in kept] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# ---------------------------------------------------------------- chart

COLOURS = {
    "cached": ("#2f6f9f", "through the page cache"),
    "direct_io": ("#e0963a", "with direct_io"),
}
LEFT, WIDE, HIGH, BAR = 400, 480, 40, 11


def chart(outcomes):
    """Returns an SVG with two bars for each pair. The bars extend from 1 (as fast as the peer) to
    the ratio, on a logarithmic scale of base 2."""
    outcomes = [(pair, outcome[2]) for pair, outcome in outcomes if outcome]
    medians = [middle(of) for _, ratios in outcomes for of in ratios.values()] or [1]
    low = min(-1, math.floor(math.log2(min(medians))))
    high = max(3, math.ceil(math.log2(max(medians))))
    bottom = HIGH + 30 * len(outcomes)

    def place(ratio):
        return LEFT + WIDE * (math.log2(ratio) - low) / (high - low)

    parts = []
    for power in range(low, high + 1):
        x = place(2**power)
        mark = f"{2**power:g}" if power >= 0 else f"1/{2**-power}"
        parts.append(
            f'<line x1="{x:.1f}" y1="{HIGH}" x2="{x:.1f}" y2="{bottom}" stroke="{"#444" if power == 0 else "#ddd"}"/>'
        )
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{mark}</text>')
    for row, (pair, ratios) in enumerate(outcomes):
        top = HIGH + 30 * row + 4
        label = escape(f"{pair.what.replace('`', '')} ({pair.beside()})")
        parts.append(f'<text x="{LEFT - 8}" y="{top + 15}" text-anchor="end">{label}</text>')
        for mode, of in ratios.items():
            ratio = middle(of)
            start, end = sorted((place(1), place(ratio)))
            parts.append(
                f'<rect x="{start:.1f}" y="{top}" width="{end - start:.1f}" height="{BAR}" fill="{COLOURS[mode][0]}"/>'
            )
            parts.append(
                f'<text x="{end + 4:.1f}" y="{top + 9}" font-size="10">{number(ratio, 2)}</text>'
            )
            top += BAR
    x = LEFT
    for colour, label in COLOURS.values():
        parts.append(
            f'<rect x="{x}" y="14" width="12" height="12" fill="{colour}"/><text x="{x + 18}" y="24">{label}</text>'
        )
        x += 200
    parts.append(
        f'<text x="{LEFT + WIDE / 2}" y="{bottom + 36}" text-anchor="middle">times as fast as the peer, which is in parentheses: more is better</text>'
    )
    width, height = LEFT + WIDE + 50, bottom + 46
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">\n'
        f'<rect width="{width}" height="{height}" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )
