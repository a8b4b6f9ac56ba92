"""What is switched off, kept in one small file that every gateway of a state directory watches.

Switched off, System 1 still looks on; it only never acts. A file that cannot be read counts as
everything off: the safe side.
"""

from pathlib import Path
from typing import Literal

import msgspec

from reflexarc.steps.errors import ConfigError
from reflexarc.store.place import locked, write_private

FILE = "off.json"
MAX_ENTRIES = 1_000
MAX_CHARS = 500

What = Literal["all", "tool", "reflex"]


class OffEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`name` is the tool's, or what the reflex is known by: its route's path or its file."""

    what: What
    name: str
    since_unix_s: float
    who: str
    why: str

    def __str__(self) -> str:
        return "everything" if self.what == "all" else f"{self.what} {self.name}"


class Off(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that is switched off now; `on_by` switched something on last."""

    entries: tuple[OffEntry, ...] = ()
    on_by: str = ""

    def reason(self, route: str, reflex: str | None, tool: str = "") -> str | None:
        """Why System 1 may not act: `off:switch`, `off:reflex`, `off:tool`; None where it may."""
        for entry in self.entries:
            if entry.what == "all":
                return "off:switch"
            if entry.what == "reflex" and _names(entry.name, route, reflex):
                return "off:reflex"
            if entry.what == "tool" and tool and entry.name == tool:
                return "off:tool"
        return None

    @property
    def tools(self) -> tuple[str, ...]:
        return tuple(entry.name for entry in self.entries if entry.what == "tool")

    def with_off(self, entry: OffEntry) -> "Off":
        added = self.added(entry)
        if entry.what != "all" and len(added.entries) > MAX_ENTRIES:
            raise ConfigError(
                f"{MAX_ENTRIES} things are switched off already: switch everything off instead"
            )
        return added

    def added(self, entry: OffEntry) -> "Off":
        """The same, however many there are."""
        kept = [one for one in self.entries if (one.what, one.name) != (entry.what, entry.name)]
        return Off((*kept, entry), self.on_by)

    def with_on(self, what: What, name: str, who: str = "") -> "Off":
        """Without that entry; `all` switches everything on again."""
        if what == "all":
            return Off((), who)
        kept = [one for one in self.entries if (one.what, one.name) != (what, name)]
        return Off(tuple(kept), who)


def unreadable(why: str, now_unix_s: float) -> Off:
    """What counts where the file cannot be read."""
    return Off((OffEntry("all", "", now_unix_s, "reflexarc", why),))


def read_off(directory: Path, now_unix_s: float) -> Off:
    """What the file says; nothing is off where there is none, everything where it is unreadable."""
    path = directory / FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Off)
    except FileNotFoundError:
        return Off()
    except (OSError, msgspec.DecodeError) as error:
        return unreadable(f"{path} cannot be read: {error}", now_unix_s)


def entry_of(what: What, name: str, now_unix_s: float, who: str, why: str) -> OffEntry:
    """Raises `ConfigError` for a name or reason that is missing or too long."""
    if (what == "all") != (not name):
        raise ConfigError("a tool or a reflex needs its name")
    for text in (name, who, why):
        if len(text) > MAX_CHARS:
            raise ConfigError(f"at most {MAX_CHARS} characters, not {len(text)}")
    return OffEntry(what, name, now_unix_s, who, why)


def switch_off(directory: Path, entry: OffEntry) -> Off:
    """Adds an entry to the file. Raises `OSError` where it cannot be written."""
    with locked(directory, FILE):
        off = read_off(directory, entry.since_unix_s).with_off(entry)
        write_private(directory / FILE, msgspec.json.encode(off))
    return off


def switch_on(directory: Path, what: What, name: str, now_unix_s: float, who: str = "") -> Off:
    """Takes an entry away, or all of them. Raises `OSError`."""
    with locked(directory, FILE):
        off = read_off(directory, now_unix_s).with_on(what, name, who)
        write_private(directory / FILE, msgspec.json.encode(off))
    return off


def _names(name: str, route: str, reflex: str | None) -> bool:
    if name == route:
        return True
    return reflex is not None and name in (reflex, Path(reflex).name, Path(reflex).stem)
