"""States of slots on disk: found again after a restart, of bounded size, never one that does not
fit. Files only; what is written into them is llama.cpp's affair.

A state is two files: `NAME-MARK.state` and, once that is whole, `NAME.json`, which tells what it
is of. A file that no such manifest tells of, or that is not as it tells, is removed. llama.cpp
ends over a state that was cut off: so its size and its digest are looked at first, and while one
is read its manifest is out of the way: what the engine dies of is not tried twice.
"""

import contextlib
import fcntl
import hashlib
import logging
import os
import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec

from reflexarc.store.place import make_private, write_private

_log = logging.getLogger("reflexarc.embedded")
_LAYOUT = 1
_STATE, _DRAFT, _MANIFEST, _TRYING = ".state", ".part", ".json", ".trying"
_HEAD_BYTES = 64 * 1024
DIRECTORY = "engine"
"""Within the gateway's state directory."""


class Fit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a state depends on. One that was made under another is never loaded."""

    model: str
    engine: str
    kv_type: str
    layout: int = _LAYOUT


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`file` is `size_bytes` long with this digest (BLAKE2b, 32 bytes, hex)."""

    file: str
    size_bytes: int
    digest: str
    tokens: int
    fit: Fit


class Saved:
    """The states under `directory`: together at most `max_bytes`, each for `keep_s` after its last
    use. One process at a time has them; others find none and save none."""

    def __init__(
        self,
        directory: Path,
        fit: Fit,
        max_bytes: int,
        keep_s: float,
        unix_time: Callable[[], float],
    ) -> None:
        """Raises `ConfigError` where the directory cannot be made."""
        self.directory = make_private(directory)
        self._fit = fit
        self._max_bytes = max_bytes
        self._keep_s = keep_s
        self._unix_time = unix_time
        self._lock: int | None = None

    def own(self) -> bool:
        """Whether this process has the directory. Asked before each use: the one that had it may
        be just ending."""
        if self._lock is not None:
            return True
        lock = os.open(self.directory / ".lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            return False
        self._lock = lock
        self.tidy()
        return True

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def tidy(self) -> None:
        """Removes what is torn, too old, or too much."""
        told: set[str] = set()
        for path in self._manifests():
            manifest = _read(path)
            if manifest is None or not self._is_whole_in_size(manifest) or self._is_old(path):
                self._remove(path)
            else:
                told.add(manifest.file)
        for path in list(self.directory.iterdir()):
            is_ours = path.suffix in (_STATE, _DRAFT, _TRYING)
            if is_ours and path.name not in told:
                path.unlink(missing_ok=True)
        self._make_room(0)

    def draft(self, name: str, size_bytes: int) -> str | None:
        """The name of a file to save into, with room made for about `size_bytes`; None where it
        would be too large."""
        if size_bytes + _HEAD_BYTES > self._max_bytes:
            return None
        self._make_room(size_bytes + _HEAD_BYTES)
        return f"{name}-{secrets.token_hex(4)}{_DRAFT}"

    def keep(self, name: str, draft: str, tokens: int) -> bool:
        """What was saved into the draft is the state of that name from now on. False where it is
        too large after all. Raises `OSError`."""
        path = self.directory / draft
        os.chmod(path, 0o600)
        size_bytes = path.stat().st_size
        if size_bytes > self._max_bytes:
            path.unlink()
            return False
        manifest_path = self.directory / f"{name}{_MANIFEST}"
        before = _read(manifest_path)
        state = path.with_suffix(_STATE)
        manifest = Manifest(state.name, size_bytes, _digest(path), tokens, self._fit)
        os.replace(path, state)
        write_private(manifest_path, msgspec.json.encode(manifest))
        now_s = self._unix_time()
        os.utime(manifest_path, (now_s, now_s))
        if before is not None:
            self._state(before).unlink(missing_ok=True)
        self._make_room(0)
        return True

    def drop(self, draft: str) -> None:
        (self.directory / draft).unlink(missing_ok=True)

    def has(self, name: str) -> bool:
        """Whether a state of that name is there; whether it fits is seen when it is read."""
        return (self.directory / f"{name}{_MANIFEST}").exists()

    def begin(self, name: str) -> Manifest | None:
        """The state of that name, about to be read; `end` says how that went. None where there is
        none that fits: what does not is removed."""
        path = self.directory / f"{name}{_MANIFEST}"
        if not path.exists():
            return None
        manifest = _read(path)
        fault = self._fault(manifest) or ("it is too old" if self._is_old(path) else "")
        if manifest is None or fault:
            _log.info("a saved state is not loaded: %s", fault)
            self._remove(path)
            return None
        os.replace(path, path.with_suffix(_TRYING))
        return manifest

    def end(self, name: str, *, loaded: bool) -> None:
        """A state that could not be loaded is removed."""
        trying = self.directory / f"{name}{_TRYING}"
        if not loaded:
            self._remove(trying)
            return
        os.replace(trying, trying.with_suffix(_MANIFEST))
        now_s = self._unix_time()
        os.utime(trying.with_suffix(_MANIFEST), (now_s, now_s))

    def size_bytes(self) -> int:
        """Of all states, drafts included."""
        total = 0
        for path in self.directory.iterdir():
            if path.suffix in (_STATE, _DRAFT):
                with contextlib.suppress(FileNotFoundError):
                    total += path.stat().st_size
        return total

    def _fault(self, manifest: Manifest | None) -> str:
        if manifest is None:
            return "what it is of cannot be read"
        if manifest.fit != self._fit:
            return f"it was made by {manifest.fit}, this is {self._fit}"
        if not self._is_whole_in_size(manifest) or _digest(self._state(manifest)) != (
            manifest.digest
        ):
            return "it is torn"
        return ""

    def _is_whole_in_size(self, manifest: Manifest) -> bool:
        try:
            return self._state(manifest).stat().st_size == manifest.size_bytes
        except OSError:
            return False

    def _is_old(self, manifest: Path) -> bool:
        return self._unix_time() - manifest.stat().st_mtime > self._keep_s

    def _make_room(self, for_bytes: int) -> None:
        """The oldest go until so much more fits."""
        over = self.size_bytes() + for_bytes - self._max_bytes
        for path in sorted(self._manifests(), key=lambda path: path.stat().st_mtime):
            if over <= 0:
                return
            manifest = _read(path)
            over -= 0 if manifest is None else manifest.size_bytes
            self._remove(path)

    def _manifests(self) -> list[Path]:
        return list(self.directory.glob(f"*{_MANIFEST}"))

    def _remove(self, manifest_path: Path) -> None:
        manifest = _read(manifest_path)
        manifest_path.unlink(missing_ok=True)
        if manifest is not None:
            self._state(manifest).unlink(missing_ok=True)

    def _state(self, manifest: Manifest) -> Path:
        # Its last part alone: a manifest names no file elsewhere.
        return self.directory / Path(manifest.file).name


def forget_states(state_directory: Path) -> int:
    """Removes every saved state of a gateway's state directory; how many there were. States still
    in an engine's memory stay there until other conversations take their place."""
    directory = state_directory / DIRECTORY
    if not directory.is_dir():
        return 0
    # Manifests first: a state without one is never loaded.
    gone = [*directory.glob(f"*{_MANIFEST}"), *directory.glob(f"*{_TRYING}")]
    rest = [*directory.glob(f"*{_STATE}"), *directory.glob(f"*{_DRAFT}")]
    for path in (*gone, *rest):
        path.unlink(missing_ok=True)
    return len(gone)


def _read(path: Path) -> Manifest | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError):
        return None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).hexdigest()
