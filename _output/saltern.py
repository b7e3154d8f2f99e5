"""How Saltern's runners show their answers: lists of rows as tables, everything else as lines."""

import os

__virtualname__ = "saltern"

_HIDDEN = ("outputter", "retcode")
_GAP = "  "


def __virtual__():
    return __virtualname__


def output(data, **_):
    """Text for a terminal.

    data: dict of str: a list of dict (a table), a list of str (one a line), or a str (one line)
    """
    parts = [_part(title, value) for title, value in data.items() if title not in _HIDDEN and value]
    return "\n\n".join(parts)


def _part(title, value):
    head = _bold(title.replace("_", " "))
    if isinstance(value, str):
        return f"{head}: {value}"
    if isinstance(value[0], dict):
        return f"{head}\n{_table(value)}"
    return "\n".join([head, *(f"  - {item}" for item in value)])


def _table(rows):
    names = list(rows[0])
    cells = [names, *([_cell(row.get(name, "")) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    lines = [
        _GAP.join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]
    rule = _GAP.join("-" * width for width in widths)
    return "\n".join(f"  {line}" for line in [lines[0], rule, *lines[1:]])


def _cell(value):
    """One line: a table's row is one."""
    if value is None:
        return ""
    text = ", ".join(str(item) for item in value) if isinstance(value, list) else str(value)
    return " ".join(text.split())


def _bold(text):
    return f"\033[1m{text}\033[0m" if os.isatty(1) else text
