"""What every client is tried at, over every upstream dialect: cells, and what they share."""

import base64
import json
import secrets
import struct
import tempfile
import traceback
import zlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from acceptance import wire_upstream as scripted
from acceptance.lines import Lines
from acceptance.processes import process
from acceptance.wire_upstream import Seen, Server

DIALECTS = ("chat", "responses", "messages", "gemini")
TOOL: dict[str, Any] = {
    "name": "get_weather",
    "description": "The weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "its name"},
            "days": {"type": "integer"},
            "near": {
                "type": ["object", "null"],
                "properties": {"place": {"type": "string"}},
                "required": ["place"],
                "additionalProperties": False,
            },
        },
        "required": ["city", "days"],
        "additionalProperties": False,
    },
}
_NAMES = ("get_weather",) * 2
_NAMED = 8  # failed cells that a line names; all are said before


_ANSWERS = {
    "[tool]": "tools=1 text",
    "[parallel]": "tools=2 text",
    "[think]": "tools=1 thinking",
}


class WrongError(AssertionError):
    """What a client gave its user is not what the upstream said."""


class Place(NamedTuple):
    """Where a client is pointed at: the gateway's `base` for an upstream that speaks `dialect`, and
    the upstream itself where it is a scripted one. `opened`: clients, closed in the end.
    `faults`: what the fault upstream is told to do wrong, where it is that one."""

    base: str
    dialect: str
    opened: ExitStack
    server: Server | None = None
    faults: str | None = None

    def words(self, play: str) -> str:
        """What a user says so that this upstream plays what the scripted one calls `play`."""
        if self.faults is None:
            return play
        return f"The weather, please.\nanswer: {_ANSWERS[play]}\nfault: {self.faults}"

    def cities(self, count: int) -> tuple[str, ...]:
        """Those that this upstream calls the tool for."""
        known = scripted.CITIES if self.faults is None else ("Oslo", "Rome")
        return known[:count]

    def kept(self, client: Any) -> Any:
        """A client, closed when this place is."""
        self.opened.callback(client.close)
        return client

    def seen(self, tag: str) -> list[Seen]:
        return [] if self.server is None else self.server.plays.seen.get(tag, [])


Case = Callable[[Place], None]
"""Raises where a client does not get what it should."""


class Client(NamedTuple):
    """One client in one dialect, and its cases by name."""

    name: str
    cases: Mapping[str, Case]


class Failure(NamedTuple):
    client: str
    dialect: str
    case: str
    error: str


def same(what: str, got: object, wanted: object) -> None:
    if got != wanted:
        raise WrongError(f"{what}: {got!r}, not {wanted!r}")


def holds(what: str, fits: object) -> None:
    if not fits:
        raise WrongError(what)


def raised(wanted: type[Exception], ask: Callable[[], Any]) -> Any:
    """The error that asking raises, of the class that its SDK's users catch."""
    try:
        got = ask()
    except wanted as error:
        return error
    except Exception as error:
        said = f"{type(error).__name__} ({error}) is raised, not {wanted.__name__}"
        raise WrongError(said) from error
    raise WrongError(f"{wanted.__name__} is not raised; there is {got!r}")


def tag() -> str:
    return secrets.token_hex(4)


def result_of(city: str) -> str:
    return f"sunny in {city}, 21°"


def looked_up(
    place: Place, calls: Sequence[tuple[str, str, Mapping[str, Any]]], *, cities: int
) -> None:
    """Checks calls: id, name, arguments."""
    days = (2, 2) if place.faults is None else (1, 2)
    wanted = list(zip(place.cities(cities), days, strict=False))
    same("calls", [(given.get("city"), given.get("days")) for _, _, given in calls], wanted)
    if place.faults is None:
        holds("no other arguments", all(len(given) == 2 for _, _, given in calls))
    same("names", tuple(name for _, name, _ in calls), _NAMES[:cities])
    ids = [identity for identity, _, _ in calls]
    holds(f"ids are all there and differ: {ids}", all(ids) and len(set(ids)) == cities)


def finished(place: Place, text: str, *, cities: int) -> None:
    """Checks what is said of the results, which the upstream was given."""
    names = place.cities(cities)
    if place.faults is None:
        same("text", text, "; ".join(f"{city}: {result_of(city)}" for city in names))
        return
    where = [text.find(f"sunny in {city}, 21") for city in names]
    holds(f"results in their order: {text!r}", text.startswith("Got: ") and where == sorted(where))
    holds(f"every result: {text!r}", min(where) > 0)


def waited(place: Place, used: str, hint_s: float = scripted.RETRY_S) -> None:
    """A client that was told to wait did so, and then asked again."""
    seen = place.seen(used)
    same("requests", len(seen), 2)
    pause_s = seen[1].at_s - seen[0].at_s
    holds(f"it waited {pause_s:.2f} s of {hint_s} s", pause_s >= hint_s * 0.95)


def picture() -> bytes:
    """A PNG of one red pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0\xff\0\0")
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        chunk(*pair) for pair in ((b"IHDR", head), (b"IDAT", pixels), (b"IEND", b""))
    )


def picture_url() -> str:
    return f"data:image/png;base64,{base64.b64encode(picture()).decode()}"


def told_picture() -> str:
    return scripted.told_image("image/png", picture())


def arguments_of(text: str) -> dict[str, Any]:
    """A call's arguments; they are one JSON object."""
    value: Any = json.loads(text)
    holds(f"arguments are an object: {text}", isinstance(value, dict))
    return value


@contextmanager
def places(dialects: Sequence[str] = DIALECTS) -> Generator[dict[str, Place]]:
    """A scripted upstream and a gateway before it, with a route for each dialect."""
    with scripted.upstream() as server, tempfile.TemporaryDirectory(prefix="wire-") as folder:
        bases = {
            name: f"{server.base}/{'v1beta' if name == 'gemini' else 'v1'}" for name in dialects
        }
        routes = [(f"/{name}", name, base) for name, base in bases.items()]
        with gateway(Path(folder), routes) as base, ExitStack() as opened:
            yield {name: Place(f"{base}/{name}", name, opened, server) for name in dialects}


@contextmanager
def gateway(folder: Path, routes: Sequence[tuple[str, object, str]]) -> Generator[str]:
    """A gateway with routes (path, dialect or dialects, upstream): each under `PATH/v1`, and where
    Groq's client looks."""
    text = f'state = "{folder / "state"}"\n'
    for path, dialect, upstream in routes:
        for below in ("/v1", "/openai/v1"):
            text += (
                f'[[route]]\npath = "{path}{below}"\nupstream = "{upstream}"\n'
                f"dialect = {json.dumps(dialect)}\n"
            )
    config = folder / "reflexarc.toml"
    config.write_text(text)
    with process("serve", "--config", str(config), "--port", "0") as running:
        yield running.base


def run(lines: Lines, identity: str, client: Client, wheres: Mapping[str, Place]) -> list[Failure]:
    """Every case of a client at every place: one line. Failures are said."""
    failures: list[Failure] = []
    for name, place in wheres.items():
        for case, tried in client.cases.items():
            try:
                tried(place)
            except Exception as error:
                failures.append(Failure(client.name, name, case, _told(error)))
                lines.say(f"  {client.name} over {name}, {case}: {failures[-1].error}")
    cells = len(wheres) * len(client.cases)
    lines.add(
        identity,
        f"{client.name} over {len(wheres)} upstreams: {', '.join(wheres)}",
        f"{cells} of {cells} cells",
        f"{cells - len(failures)} of {cells} cells"
        + "".join(f"; {f.dialect}: {f.case}" for f in failures[:_NAMED])
        + ("; and more" if len(failures) > _NAMED else ""),
        not failures and cells > 0,
    )
    return failures


def _told(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    kind = "" if isinstance(error, WrongError) else f"{type(error).__name__}: "
    return f"{kind}{error} ({Path(last.filename).name}:{last.lineno})"[:1200]
