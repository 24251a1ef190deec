"""Formats which tool reads which view, as text and as Markdown."""

from dataclasses import dataclass, field


@dataclass
class Cell:
    """The result of one reading: the difference or None, and notes on the tool's behaviour with any
    such file."""

    fixture: str
    view: str
    tool: str
    wrong: str | None
    notes: list = field(default_factory=list)


def is_table(cell):
    return cell.view.startswith(("csv/", "cf/"))


def title(cell):
    """Returns the row of the matrix: each table has a row, and other views have one row for all
    files."""
    return f"{cell.fixture}: {cell.view}" if is_table(cell) else cell.view


def matrix(cells, yes, no):
    """Returns a header line of the tools, and a line for each title."""
    tools = list(dict.fromkeys(cell.tool for cell in cells))
    lines = [["", *tools]]
    for name in dict.fromkeys(map(title, cells)):
        line = [name]
        for tool in tools:
            here = [cell for cell in cells if title(cell) == name and cell.tool == tool]
            line.append("" if not here else no if any(cell.wrong for cell in here) else yes)
        lines.append(line)
    return lines


def habits(cells):
    """Returns the notes on each tool's behaviour with any such file."""
    noted = {}
    for cell in cells:
        noted.setdefault(cell.tool, {}).update(dict.fromkeys(cell.notes))
    return {tool: list(notes) for tool, notes in noted.items() if notes}


def parts(cells):
    """Splits the results into CSV and other views."""
    tables = [cell for cell in cells if is_table(cell)]
    return [part for part in (tables, [c for c in cells if not is_table(c)]) if part]


def text(cells):
    blocks = []
    for part in parts(cells):
        lines = matrix(part, "yes", "NO")
        widths = [max(map(len, column)) for column in zip(*lines)]
        padded = [map(str.ljust, line, widths) for line in lines]
        blocks.append("\n".join("  ".join(line).rstrip() for line in padded))
    notes = [f"{tool} {note}" for tool, notes in habits(cells).items() for note in notes]
    blocks += ["\n".join(notes)] if notes else []
    return "\n\n".join(blocks)


def row(words):
    return f"| {' | '.join(words)} |"


def columns_of_tools(cells):
    head, *lines = matrix(cells, "✓", "**no**")
    return [head, ["---"] * len(head), *([f"`{name}`", *marks] for name, *marks in lines)]


def names_of_tools(cells):
    """Lists the tools by name, for views that few tools read."""
    head, *lines = matrix(cells, "yes", "")
    readers = [
        [f"`{name}`", ", ".join(tool for tool, mark in zip(head[1:], marks) if mark)]
        for name, *marks in lines
    ]
    return [["view", "read by"], ["---"] * 2, *readers]


def markdown(cells, commands):
    """Returns the matrices, and the command and notes of each tool. `commands` maps tools to
    commands."""
    tables, others = (
        [cell for cell in cells if is_table(cell) is wanted] for wanted in (True, False)
    )
    blocks = ["\n".join(map(row, columns_of_tools(tables)))] if tables else []
    blocks += ["\n".join(map(row, names_of_tools(others)))] if others else []
    seen = habits(cells)
    tools = [
        [tool, f"`{command}`", "; ".join(seen.get(tool, []))] for tool, command in commands.items()
    ]
    table = [["tool", "command", "properties with any CSV file"], ["---"] * 3, *tools]
    blocks.append("\n".join(map(row, table)))
    return "\n\n".join(blocks) + "\n"
