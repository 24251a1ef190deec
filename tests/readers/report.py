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


def is_table(cell):
    return cell.view.startswith(("csv/", "cf/"))


def title(cell):
    """The rows of the matrix: a table each; other views are one row for all files."""
    return f"{cell.fixture}: {cell.view}" if is_table(cell) else cell.view


def matrix(cells, yes, no):
    """A line of the tools, and a line for each title."""
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
    """What each tool was seen to do with any such file."""
    noted = {}
    for cell in cells:
        noted.setdefault(cell.tool, {}).update(dict.fromkeys(cell.notes))
    return {tool: list(notes) for tool, notes in noted.items() if notes}


def parts(cells):
    """CSV, and what other tools read."""
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


def markdown(cells, commands):
    """The matrices, and of each tool its command and its habits. `commands`: by tool."""
    blocks = []
    for part in parts(cells):
        head, *lines = matrix(part, "✓", "**no**")
        rows = [head, ["---"] * len(head), *([f"`{line[0]}`", *line[1:]] for line in lines)]
        blocks.append("\n".join(map(row, rows)))
    seen = habits(cells)
    tools = [
        [tool, f"`{command}`", "; ".join(seen.get(tool, []))] for tool, command in commands.items()
    ]
    table = [["tool", "command", "with any such file it"], ["---"] * 3, *tools]
    blocks.append("\n".join(map(row, table)))
    return "\n\n".join(blocks) + "\n"
