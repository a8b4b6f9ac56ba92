"""A table of figures that a program leaves in results/, beside the lines that judge them."""

from pathlib import Path

import msgspec

from acceptance.lines import RESULTS


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`rows` have a cell for each of `columns`. `about`: how it was measured, a paragraph."""

    title: str
    about: str
    columns: list[str]
    rows: list[list[str]]

    def as_markdown(self) -> str:
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
        return f"## {self.title}\n\n{self.about}\n\n{table}\n"


def write_table(name: str, table: Table, folder: Path = RESULTS) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(table), indent=2) + b"\n")
