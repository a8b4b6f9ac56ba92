"""What the fault upstream is told to say and to do wrong, and what it is asked in any dialect.

Words come from the headers `x-answer` and `x-fault`, and from lines of the last text a user said
that begin with `answer:` or `fault:`. A word is `name` or `name=value`.
"""

import base64
import hashlib
import hmac
import json
from typing import Any, cast

import msgspec

_KEY = b"the fault upstream's own"
_NONCE_BYTES = 9
_CITIES = ("Oslo", "Rome", "Bonn", "Lima", "Cork", "Graz")
HELLO = "Hello from the upstream."
UNICODE = ' A\u2028B\u0085C \u00e9 \U0001f600 \\" \t'


class Asked(msgspec.Struct):
    """A request, as far as an answer depends on it. `results` are those after the last text of the
    user; `tools` names and schemas; `forced`: a call must be made, of the tool `only` if given."""

    model: str
    stream: bool = False
    text: str = ""
    images: int = 0
    results: list[str] = []
    tools: list[tuple[str, dict[str, Any]]] = []
    thinking: bool = False
    forced: bool = False
    only: str = ""
    usage: bool = True
    """Whether a stream is to tell its usage."""


def inner(body: dict[str, Any], *names: str) -> dict[str, Any]:
    """The object at the end of a path; empty where there is none."""
    for name in names:
        held = body.get(name)
        body = cast("dict[str, Any]", held) if isinstance(held, dict) else {}
    return body


class Words:
    """The words said, the later ones counting."""

    def __init__(self, texts: list[str]) -> None:
        self._said: dict[str, str] = {}
        for text in texts:
            for word in text.split():
                name, _, value = word.partition("=")
                self._said[name] = value

    def __contains__(self, name: str) -> bool:
        return name in self._said

    def number(self, name: str, default: float = 0) -> float:
        """The word's value; `default` where it is not said, or says no number."""
        try:
            return float(self._said.get(name, "") or default)
        except ValueError:
            return default

    def count(self, name: str, default: int = 0) -> int:
        return int(self.number(name, default))


def words_of(headers: dict[str, str], asked: Asked | None, own: str = "") -> Words:
    """`own`: what the upstream itself was told, which counts last."""
    texts = [headers.get("x-answer", ""), headers.get("x-fault", "")]
    for line in (asked.text if asked is not None else "").splitlines():
        kind, colon, rest = line.strip().partition(":")
        if colon and kind in ("answer", "fault"):
            texts.append(rest)
    return Words([*texts, own])


class Called(msgspec.Struct):
    id: str
    name: str
    arguments: str


class Said(msgspec.Struct):
    """A turn to tell, in no dialect. `signature` is for thinking, and for calls where these are
    signed. Token counts: `input` holds those read from a cache and those written to one, `output`
    the reasoning."""

    id: str
    model: str
    text: str = ""
    thinking: str = ""
    signature: str = ""
    refusal: str = ""
    calls: list[Called] = []
    stop: str = "end"
    input: int = 100
    cached: int = 64
    written: int = 0
    output: int = 20
    reasoning: int = 0
    told_usage: bool = True


def answer(asked: Asked, words: Words, number: int, prefix: str) -> Said:
    """`number` tells answers apart, `prefix` is how ids of calls begin in the dialect."""
    said = Said(f"answer{number}", asked.model, told_usage="nousage" not in words)
    said.signature = sign(f"{number}")
    if "input" in words:
        said.input, said.cached = words.count("input"), 0
    said.cached = words.count("cached", said.cached)
    said.written = words.count("written")
    said.output = words.count("output", said.output)
    if "thinking" in words or (asked.thinking and "nothinking" not in words):
        said.thinking = "I should think about it."
        said.reasoning = 8
    if "refusal" in words:
        said.refusal = "I won't do that."
        said.stop = "refusal"
        return said
    wanted = words.count("tools") or (1 if asked.forced else 0)
    if wanted and asked.tools and not asked.results:
        offered = [tool for tool in asked.tools if asked.only in ("", tool[0])] or asked.tools
        for at in range(wanted):
            name, schema = offered[at % len(offered)]
            text = "{}" if "noargs" in words else _arguments(schema, at)
            said.calls.append(Called(f"{prefix}{number}_{at}", name, text))
        said.text = "Let me look." if "text" in words else ""
        said.stop = "calls"
        return said
    if asked.results:
        said.text = f"Got: {' | '.join(asked.results)}."
    elif asked.images:
        said.text = f"I see {asked.images} images."
    else:
        said.text = HELLO
    if "unicode" in words:
        said.text += UNICODE
    said.text += " word" * words.count("long")
    if "length" in words:
        said.stop = "length"
    return said


def _arguments(schema: dict[str, Any], at: int) -> str:
    made: dict[str, Any] = {}
    properties = schema.get("properties")
    for name, given in (cast("dict[str, Any]", properties) if properties else {}).items():
        kind = cast("dict[str, Any]", given).get("type") if isinstance(given, dict) else None
        values: dict[str, Any] = {
            "integer": at + 1,
            "number": 1.5,
            "boolean": True,
            "array": [],
            "object": {},
        }
        plain = isinstance(kind, str) and kind.lower() in values
        made[name] = values[str(kind).lower()] if plain else _CITIES[at % len(_CITIES)]
    return json.dumps(made, separators=(",", ":"))


def sign(text: str) -> str:
    """A signature that `signed` knows again, and no other text."""
    nonce = hashlib.blake2b(text.encode(), digest_size=_NONCE_BYTES).digest()
    seal = hmac.digest(_KEY, nonce, "sha256")[: 2 * _NONCE_BYTES]
    return base64.b64encode(nonce + seal).decode()


def signed(signature: str) -> bool:
    try:
        made = base64.b64decode(signature, validate=True)
    except ValueError:
        return False
    seal = hmac.digest(_KEY, made[:_NONCE_BYTES], "sha256")[: 2 * _NONCE_BYTES]
    return hmac.compare_digest(made[_NONCE_BYTES:], seal)


def pieces(text: str, count: int = 3) -> list[str]:
    """A text in so many parts, none of them empty."""
    size = max(1, -(-len(text) // count))
    return [text[at : at + size] for at in range(0, len(text), size)]


class Frame(msgspec.Struct, frozen=True):
    """One event of a stream: its name, and its data, whether JSON or text."""

    data: Any
    name: str = ""
