"""Which tool reads which view, as text and as Markdown."""

from dataclasses import dataclass, field


@dataclass
class Cell:
    """One reading: what is different, or None; and what the tool does with any such file."""

    fixture: str
    view: str
    tool: str
    wrong: str | None
    notes: list = field(default_factory=list)


def rows(cells):
    return list(dict.fromkeys((cell.fixture, cell.view) for cell in cells))


def grid(cells, place):
    """Tools, rows of (fixture, view, marks), and the notes by their numbers."""
    cells = list(cells)
    tools = list(dict.fromkeys(cell.tool for cell in cells))
    notes, lines = {}, []
    for fixture, view in rows(cells):
        marks = []
        for tool in tools:
            here = [c for c in cells if (c.fixture, c.view, c.tool) == (fixture, view, tool)]
            marks.append(place(here, notes))
        lines.append((fixture, view, marks))
    return tools, lines, notes


def mark(here, notes):
    """`yes`, the numbers of what the tool does with any such file, or `NO`."""
    if not here:
        return ""
    if any(cell.wrong for cell in here):
        return "NO"
    said = {note for cell in here for note in cell.notes}
    numbers = [notes.setdefault((here[0].tool, note), len(notes) + 1) for note in sorted(said)]
    return "yes" + "".join(f" {number}" for number in numbers)


def parts(cells):
    """CSV has a table of its own: other tools read it."""
    yield [cell for cell in cells if cell.view.startswith(("csv/", "cf/"))]
    yield [cell for cell in cells if not cell.view.startswith(("csv/", "cf/"))]


def text(cells):
    blocks = []
    for part in filter(None, parts(cells)):
        tools, lines, notes = grid(part, mark)
        table = [["file", "view", *tools], *([f, v, *marks] for f, v, marks in lines)]
        widths = [max(map(len, column)) for column in zip(*table)]
        blocks.append(
            "\n".join(
                "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
                for row in table
            )
        )
        blocks.append(
            "\n".join(f"{number}  {tool} {note}" for (tool, note), number in notes.items())
        )
    return "\n\n".join(blocks)


def markdown(cells):
    blocks = []
    for part in filter(None, parts(cells)):
        tools, lines, notes = grid(part, mark)
        table = [["file", "view", *tools], ["---"] * (len(tools) + 2)]
        table += [[f, f"`{v}`", *marks] for f, v, marks in lines]
        blocks.append("\n".join(f"| {' | '.join(row)} |" for row in table))
        blocks.append(
            "\n".join(f"{number}. {tool} {note}." for (tool, note), number in notes.items())
        )
    return "\n\n".join(filter(None, blocks)) + "\n"
