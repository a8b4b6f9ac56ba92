"""What `reflexarc doctor` says of one thing: how it is, what was found, what to do."""

from typing import Literal

import msgspec

Level = Literal["ok", "warn", "fail"]


class Finding(msgspec.Struct, frozen=True):
    """`what` names the thing, `found` what was seen of it; `do` is empty where nothing is to do.
    No secret is ever part of it."""

    level: Level
    what: str
    found: str
    do: str = ""
