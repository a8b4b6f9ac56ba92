"""Where in a TOML text a key stands, so that what is wrong with it can be told with its line."""

import re

Path = tuple[str | int, ...]
"""From the root: names of keys, indices of lists."""

_header = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_part = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|\'([^\']*)\'|([A-Za-z0-9_-]+))\s*(\.|=|$)')


class Lines:
    """Line numbers by path, of a text that is TOML."""

    def __init__(self, text: str) -> None:
        self._lines: dict[Path, int] = {}
        self._counts: dict[Path, int] = {}
        self._read(text)

    def of(self, path: Path) -> int | None:
        """The line of a key; of what stands inside an inline table or a list, of the nearest key
        around it that has one. None where nothing is known."""
        while path:
            found = self._lines.get(path)
            if found is not None:
                return found
            path = path[:-1]
        return None

    def _read(self, text: str) -> None:
        table: Path = ()
        quotes = ""
        for number, line in enumerate(text.splitlines(), 1):
            if quotes:  # inside a text of several lines nothing is a key
                quotes = "" if quotes in line else quotes
                continue
            header = _header.match(line)
            if header is not None:
                table = self._table(header.group(1), _names(f"{header.group(2)}="), number)
                continue
            names = _names(line)
            if names and "=" in line and not line.lstrip().startswith("#"):
                for end in range(1, len(names) + 1):
                    self._lines.setdefault((*table, *names[:end]), number)
                value = line.split("=", 1)[1]
                quotes = next((q for q in ('"""', "'''") if value.count(q) == 1), "")

    def _table(self, brackets: str, names: tuple[str, ...], number: int) -> Path:
        path: Path = ()
        for at, name in enumerate(names):
            path = (*path, name)
            if at == len(names) - 1 and brackets == "[[":
                index = self._counts.get(path, 0)
                self._counts[path] = index + 1
                self._lines.setdefault(path, number)
                path = (*path, index)
            elif path in self._counts:
                path = (*path, self._counts[path] - 1)
            self._lines.setdefault(path, number)
        return path


def _names(line: str) -> tuple[str, ...]:
    """The parts of the dotted key that a line begins with; none where it begins with no key."""
    names: list[str] = []
    position = 0
    while found := _part.match(line, position):
        double, single, bare, end = found.groups()
        names.append(next(part for part in (double, single, bare) if part is not None))
        position = found.end()
        if end == "=":
            return tuple(names)
        if end != ".":
            break
    return ()
