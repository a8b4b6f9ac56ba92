"""A bound on what prompts of long conversations hold: each repeats all before it by reference, so
that their sum grows with the square of the turns."""

MAX_REFERENCES = 20_000_000
"""Pieces in all prompts of one format's files (some 160 MB); prompts beyond are not kept."""

LEFT_OUT = "more pieces in its prompts than are kept: some prompts are left out"


class References:
    """What is left of the bound. `refused`: how many prompts could not be kept."""

    def __init__(self) -> None:
        self.refused = 0
        self._left = MAX_REFERENCES

    def take(self, pieces: int) -> bool:
        """Whether a prompt of so many pieces can still be kept; if so it is counted."""
        if pieces > self._left:
            self.refused += 1
            return False
        self._left -= pieces
        return True
