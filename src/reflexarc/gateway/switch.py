"""What is switched off, as every request of this process sees it: a file, watched; never asked for
on the way of a request."""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path

from reflexarc.lifecycle.off import (
    FILE,
    Off,
    OffEntry,
    What,
    read_off,
    switch_off,
    switch_on,
    unreadable,
)

_log = logging.getLogger("reflexarc.gateway")


class Switch:
    """`on_change` hears what became off and what became on. Without a directory it lives in
    memory."""

    def __init__(
        self,
        directory: Path | None,
        unix_time: Callable[[], float] = time.time,
        on_change: Callable[[tuple[OffEntry, ...], tuple[OffEntry, ...], str], None] | None = None,
    ) -> None:
        self.off = Off()
        self._directory = directory
        self._unix_time = unix_time
        self._on_change = on_change
        self._seen: tuple[int, int, int] | None = None
        # What was asked of this process and could not be written down: off it is all the same.
        self._unwritten: tuple[OffEntry, ...] = ()

    def look(self) -> None:
        """Reads the file again where it changed. Cheap where it did not."""
        if self._directory is None:
            return
        try:
            stat = (self._directory / FILE).stat()
            seen = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        except FileNotFoundError:
            seen = (0, 0, 0)
            if self._seen not in (None, seen):
                # Switching on leaves a file: one that is gone was taken away with its directory.
                self._set(unreadable("off.json is gone", self._unix_time()))
                return
        except OSError as error:
            self._seen = None
            self._set(unreadable(str(error), self._unix_time()))
            return
        if seen != self._seen:
            self._seen = seen
            self._set(read_off(self._directory, self._unix_time()))

    async def turn_off(self, entry: OffEntry) -> bool:
        """At once, in this process, whatever the disk does. Whether it is written down too."""
        self._set(self.off.with_off(entry))
        if self._directory is None:
            return True
        try:
            self._set(await asyncio.to_thread(switch_off, self._directory, entry))
        except OSError as error:
            _log.error("%s is off in this process only: %s", entry, error)
            self._unwritten = (*self._unwritten, entry)
            return False
        return True

    async def turn_on(self, what: What, name: str, who: str) -> None:
        """Raises `OSError` where the file cannot be written: then it stays off."""
        if self._directory is not None:
            now_unix_s = self._unix_time()
            written = await asyncio.to_thread(
                switch_on, self._directory, what, name, now_unix_s, who
            )
        else:
            written = self.off.with_on(what, name, who)
        self._unwritten = Off(self._unwritten).with_on(what, name).entries
        self._set(written)

    def _set(self, off: Off) -> None:
        for entry in self._unwritten:
            off = off.added(entry)
        before = {(entry.what, entry.name): entry for entry in self.off.entries}
        after = {(entry.what, entry.name): entry for entry in off.entries}
        self.off = off
        newly = tuple(entry for key, entry in after.items() if key not in before)
        no_longer = tuple(entry for key, entry in before.items() if key not in after)
        if self._on_change is not None and (newly or no_longer):
            self._on_change(newly, no_longer, off.on_by)
