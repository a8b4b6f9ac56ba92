"""Who holds reservations: each process that does holds a lock on a file of its own.

The system lets go of the lock when the process ends, however it ends, so that whoever can take it
knows that its owner is gone; a process that only sleeps keeps it.
"""

import contextlib
import fcntl
import os
import secrets
from pathlib import Path


class Owner:
    """This process, for one book. `name` is "pid:boot", boot being random."""

    def __init__(self, directory: Path) -> None:
        """Raises `OSError`."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        boot = secrets.token_hex(8)
        self.name = f"{os.getpid()}:{boot}"
        self._path = directory / boot
        self._descriptor = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):
                self._path.unlink()
            os.close(self._descriptor)
            self._descriptor = -1


def is_gone(directory: Path, name: str) -> bool:
    """Whether an owner is known to have ended. What cannot be told counts as alive."""
    boot = name.rpartition(":")[2]
    if not boot.isalnum():
        return True  # no name that an owner of ours ever had
    try:
        descriptor = os.open(directory / boot, os.O_RDWR)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def sweep(directory: Path, name: str) -> None:
    """Removes the file of an owner that is gone."""
    with contextlib.suppress(OSError):
        (directory / name.rpartition(":")[2]).unlink()
