"""Writes the snapshots of the golden matrix anew: `make matrix`. Read the difference before it is
kept; a wrong snapshot is worse than none."""

from tests.wire.matrix.cells import every_cell, left_over, told


def main() -> None:
    written = 0
    for given, target in every_cell():
        path, text = given.snapshot(target), told(given, target)
        if not path.exists() or path.read_bytes() != text.encode():
            path.write_bytes(text.encode())
            written += 1
            print(f"{given.title} to {target}")
    gone = left_over()
    for path in gone:
        path.unlink()
    print(f"{written} snapshots written, {len(gone)} removed")


if __name__ == "__main__":
    main()
