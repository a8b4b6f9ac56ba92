"""The plain baseline, "bigram + latest id": what System 1 has to beat. No trees, no certificate.

The next event is the one that most often followed the previous event; each argument is the latest
value at the place it most often came from: a JSON path in a tool's results, a token of the same
shape in the user's text, or a constant. It acts whenever it has seen the situation.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec

from reflexarc.steps import Message, Session, ToolCall, ToolSpec, call_key, canonical_json
from reflexarc.steps.items import decision_items

MESSAGE = ""
"""The event "System 2 wrote a message"; no tool can have this name."""

_MIN_TASKS_OF_A_CONSTANT = 3  # fewer, and one task's own id would look like a constant
_MAX_TEXT_VALUE_CHARS = 64  # a plain-text result up to this length is a value itself
_TOKEN = re.compile(r"[^\s,;:!?\"'()\[\]{}<>]+")

Place = tuple[str, ...]
"""("result", tool, path) | ("user", shape) | ("constant", canonical JSON)."""


class Baseline:
    """What followed what, and where each argument came from."""

    def __init__(
        self,
        following: dict[str, Counter[str]],
        places: dict[tuple[str, str], list[Place]],
        usual: dict[str, tuple[str, ...]],
    ) -> None:
        self._following = following
        self._places = places
        self._usual = usual

    @classmethod
    def learn(cls, sessions: Iterable[Session]) -> "Baseline":
        """Count events and places over recorded sessions; one pass."""
        following: dict[str, Counter[str]] = defaultdict(Counter)
        found: dict[tuple[str, str], Counter[Place]] = defaultdict(Counter)
        constant_tasks: dict[tuple[str, str, str], set[str]] = defaultdict(set)
        present: dict[str, Counter[str]] = defaultdict(Counter)
        calls_of: Counter[str] = Counter()
        for session in sessions:
            scene = _Scene()
            at = 0
            for item in decision_items(session):
                while at < item.message:
                    scene.add(session.messages[at])
                    at += 1
                previous = scene.event
                if item.position:
                    siblings = session.messages[item.message].tool_calls
                    previous = siblings[item.position - 1].name
                call = item.recorded
                following[previous][call.name if call else MESSAGE] += 1
                if call is None or not call.well_formed:
                    continue
                calls_of[call.name] += 1
                for argument, value in call.arguments.items():
                    present[call.name][argument] += 1
                    text = canonical_json(value)
                    constant_tasks[call.name, argument, text].add(session.task)
                    found[call.name, argument].update(scene.places_of(text))
                    found[call.name, argument]["constant", text] += 1
        places = {
            key: [
                place
                for place, _ in counter.most_common()
                if place[0] != "constant"
                or len(constant_tasks[key[0], key[1], place[1]]) >= _MIN_TASKS_OF_A_CONSTANT
            ]
            for key, counter in found.items()
        }
        usual = {
            name: tuple(a for a, n in present[name].items() if 2 * n >= total)
            for name, total in calls_of.items()
        }
        return cls(dict(following), places, usual)

    def predict(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        *,
        siblings: Sequence[ToolCall] = (),
        always_call: bool = False,
    ) -> ToolCall | None:
        """The next call, or None: a message is likelier, or the situation was never seen.

        `siblings` are earlier calls of an unfinished batch. `always_call` ranks calls whatever
        the message-or-call verdict, as the metric `call_exact_top1` does.
        """
        scene = _Scene()
        for message in messages:
            scene.add(message)
        return self._next(scene, {tool.name: tool for tool in tools}, siblings, always_call)

    def count_exact(self, sessions: Iterable[Session], think: frozenset[str]) -> tuple[int, int]:
        """(recorded calls, those whose best-ranked call is exact); tools in `think` left out."""
        n = exact = 0
        for session in sessions:
            tools = {tool.name: tool for tool in session.tools if tool.name not in think}
            scene = _Scene()
            at = 0
            for item in decision_items(session):
                while at < item.message:
                    scene.add(session.messages[at])
                    at += 1
                if item.recorded is None or item.recorded.name in think:
                    continue
                siblings = session.messages[item.message].tool_calls[: item.position]
                best = self._next(scene, tools, siblings, True)
                n += 1
                exact += best is not None and any(best.key == call.key for call in item.calls)
        return n, exact

    def _next(
        self,
        scene: "_Scene",
        tools: dict[str, ToolSpec],
        siblings: Sequence[ToolCall],
        always_call: bool,
    ) -> ToolCall | None:
        previous = siblings[-1].name if siblings else scene.event
        for event, _ in self._following.get(previous, Counter[str]()).most_common():
            if event == MESSAGE and not always_call:
                return None
            if event in tools:
                return self._fill(scene, tools[event])
        return None

    def _fill(self, scene: "_Scene", tool: ToolSpec) -> ToolCall | None:
        required = cast("list[str]", tool.parameters.get("required") or [])
        arguments: dict[str, Any] = {}
        for argument in dict.fromkeys((*required, *self._usual.get(tool.name, ()))):
            text = next(
                (
                    value
                    for place in self._places.get((tool.name, argument), ())
                    if (value := scene.latest(place)) is not None
                ),
                None,
            )
            if text is not None:
                arguments[argument] = msgspec.json.decode(text)
            elif argument in required:
                return None
        raw = canonical_json(arguments)
        return ToolCall(
            id=call_key(tool.name, arguments), name=tool.name, arguments=arguments, raw=raw
        )


class _Scene:
    """The latest value at every place, and the previous event, of one conversation."""

    def __init__(self) -> None:
        self.event = "\x1fstart"
        self._latest: dict[Place, str] = {}
        self._tool_of: dict[str, str] = {}

    def add(self, message: Message) -> None:
        for call in message.tool_calls:
            self._tool_of[call.id] = call.name
        if message.role == "tool":
            tool = self._tool_of.get(message.tool_call_id or "", message.name or "?")
            self.event = tool
            for path, text in _leaves(message.content):
                self._latest["result", tool, path] = text
        elif message.role == "user":
            self.event = "\x1fuser"
            for token in _TOKEN.findall(message.content):
                token = cast("str", token).rstrip(".")
                self._latest["user", _shape(token)] = canonical_json(token)
        elif message.role == "assistant" and not message.tool_calls:
            self.event = "\x1fassistant"

    def latest(self, place: Place) -> str | None:
        """The value there as canonical JSON; None where this conversation has none."""
        return place[1] if place[0] == "constant" else self._latest.get(place)

    def places_of(self, text: str) -> list[Place]:
        """Every place whose latest value is this one."""
        return [place for place, value in self._latest.items() if value == text]


def _leaves(content: str) -> list[tuple[str, str]]:
    """(JSON path with list positions dropped, canonical scalar); of a list its first entry."""
    try:
        value = msgspec.json.decode(content)
    except msgspec.DecodeError:
        if len(content) <= _MAX_TEXT_VALUE_CHARS:
            return [("$", canonical_json(content))]
        return []
    found: dict[str, str] = {}
    stack: list[tuple[str, Any]] = [("$", value)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            stack.extend((f"{path}.{key}", inner) for key, inner in members.items())
        elif isinstance(value, list):
            entries = cast("list[Any]", value)
            stack.extend((f"{path}[*]", inner) for inner in reversed(entries))
        elif value is not None:
            found.setdefault(path, canonical_json(value))
    return list(found.items())


def _shape(token: str) -> str:
    """`#W0123` -> `#A0000`, `anna@x.org` -> `a@a.a`: letters collapse to one, digits do not."""
    digits = re.sub(r"\d", "0", token)
    return re.sub(r"[a-z]+", "a", re.sub(r"[A-Z]+", "A", digits))
