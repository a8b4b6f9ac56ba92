"""How long sessions were and how far apart their requests came, by route: seen by one gateway, used
by the next. Numbers alone; knows no conversation."""

import contextlib
import logging
import os
from collections import deque
from pathlib import Path

import msgspec

_FILE = "pruning.json"
_MOST = 2_000
_log = logging.getLogger("reflexarc.gateway")


class _Seen(msgspec.Struct):
    lengths: list[int] = []
    gaps_s: list[float] = []


class Learned:
    """The last 2,000 of each. `lengths` and `gaps_s` are what was known at the start, so that a
    running gateway decides alike; what it sees itself counts from the next start on."""

    def __init__(self, directory: Path | None) -> None:
        self._path = None if directory is None else directory / _FILE
        self._new: dict[tuple[str, str], deque[float]] = {}
        self._known = self._read()

    def lengths(self, route: str) -> list[int]:
        return self._known.get(route, _Seen()).lengths

    def gaps_s(self, route: str) -> list[float]:
        return self._known.get(route, _Seen()).gaps_s

    def ended(self, route: str, turns: int) -> None:
        self._note("length", route, turns)

    def gap(self, route: str, gap_s: float) -> None:
        self._note("gap", route, gap_s)

    def keep(self) -> None:
        """Writes what is known with what was seen; says aloud where it cannot."""
        if self._path is None or not self._new:
            return
        merged = self._read()
        for route in {route for _, route in self._new}:
            before = merged.get(route, _Seen())
            lengths = [int(one) for one in self._new.get(("length", route), ())]
            gaps_s = [round(one, 3) for one in self._new.get(("gap", route), ())]
            merged[route] = _Seen(
                [*before.lengths, *lengths][-_MOST:], [*before.gaps_s, *gaps_s][-_MOST:]
            )
        whole = self._path.with_suffix(".new")
        try:
            whole.write_bytes(msgspec.json.encode(merged))
            os.replace(whole, self._path)
        except OSError as error:
            _log.warning("what was learned of sessions is not kept: %s", error)
        self._new.clear()

    def _read(self) -> dict[str, _Seen]:
        if self._path is not None:
            with contextlib.suppress(OSError, msgspec.DecodeError):
                return msgspec.json.decode(self._path.read_bytes(), type=dict[str, _Seen])
        return {}

    def _note(self, what: str, route: str, value: float) -> None:
        self._new.setdefault((what, route), deque(maxlen=_MOST)).append(value)
