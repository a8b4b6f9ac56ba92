"""A request as every dialect can say it: parts, turns, tools, settings. Knows no dialect.

Each dialect reads its requests into an `Ask` and writes an `Ask` as a request of its own; what one
dialect alone knows stays beside the rest (`more`, `Foreign`), so that its own writer puts it back
and every other writer can name what it could not say.
"""

from typing import Any, Literal

import msgspec

from reflexarc.wire.ids import made_id

TurnRole = Literal["system", "developer", "user", "assistant", "tool"]
MediaKind = Literal["image", "document", "audio", "video"]
CallKind = Literal["function", "custom"]
"""A custom (freeform) call's arguments are any text; a function's are the text of an object."""


class Text(msgspec.Struct, frozen=True, tag="text"):
    """`cache`: a mark of prompt caching (`{"type": "ephemeral", ...}`). `item`: what is said of the
    message that begins here (its id, its status), in dialects whose turns hold several. `joins`:
    it goes on with the text right before it, until the turns are `joined`."""

    text: str
    cache: dict[str, Any] | None = None
    more: dict[str, Any] = {}
    item: dict[str, Any] | None = None
    joins: bool = False


class Media(msgspec.Struct, frozen=True, tag="media"):
    """Exactly one of `data` (base64), `url`, `file` (an id at the provider) and `text` (a plain
    text document) says what it is. `detail` is an image's resolution."""

    kind: MediaKind
    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    file: str | None = None
    text: str | None = None
    name: str | None = None
    detail: str | None = None
    cache: dict[str, Any] | None = None
    more: dict[str, Any] = {}


class Thinking(msgspec.Struct, frozen=True, tag="thinking"):
    """A model's thinking. `signature` is what its provider wants back, byte for byte, and `origin`
    the dialect it came in; `redacted`: the signature is all there is, and `text` is empty. `id` is
    an item's own. `calls` are signatures by ids of calls of the same turn, which a client's dialect
    brings back beside them: `joined` puts them where they belong. `joins`: so many characters of
    the unsigned thinking right before it are its beginning, until the turns are `joined`."""

    text: str
    signature: str | None = None
    origin: str = ""
    redacted: bool = False
    id: str | None = None
    more: dict[str, Any] = {}
    calls: dict[str, str] = {}
    joins: int = 0


class Call(msgspec.Struct, frozen=True, tag="call"):
    """`arguments` is text as the model wrote it, never blank for a function: none is `{}`. `id` is
    empty in a request whose dialect tells calls by name alone, until its turns are `joined`.
    `signature` and `origin` as for thinking: some providers sign calls. `item` is the id of the
    item that holds it, where that is another than the call's."""

    id: str
    name: str
    arguments: str
    kind: CallKind = "function"
    signature: str | None = None
    origin: str = ""
    item: str | None = None
    cache: dict[str, Any] | None = None
    more: dict[str, Any] = {}


class Refusal(msgspec.Struct, frozen=True, tag="refusal"):
    """`item` as for a text."""

    text: str
    item: dict[str, Any] | None = None


class Foreign(msgspec.Struct, frozen=True, tag="foreign"):
    """What only the dialect it came in can say: hosted tools' items, say. `what` names it."""

    what: str
    value: dict[str, Any]


class Result(msgspec.Struct, frozen=True, tag="result"):
    """What a call gave. `name` is the call's, once known; `item` as for a call. `call_id` is empty
    where a dialect tells calls by name alone, until the turns are `joined`."""

    call_id: str
    parts: tuple[Text | Media | Foreign, ...]
    is_error: bool = False
    name: str | None = None
    kind: CallKind = "function"
    item: str | None = None
    cache: dict[str, Any] | None = None
    more: dict[str, Any] = {}


Part = Text | Media | Thinking | Call | Refusal | Foreign | Result


class Turn(msgspec.Struct, frozen=True):
    """One speaker's turn. A `tool` turn holds results only, those of one assistant turn; `joins`:
    it goes on with the turn before it where that has the same role (dialects that list items)."""

    role: TurnRole
    parts: tuple[Part, ...]
    name: str | None = None
    joins: bool = False
    more: dict[str, Any] = {}


class ToolOffer(msgspec.Struct, frozen=True):
    """A tool on offer. `parameters` is its JSON schema as given, None where there is none. A
    `custom` tool takes any text, a `hosted` one runs at the provider: both are `value` whole, in
    the dialect they came in, and nothing is learned of them."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    kind: Literal["function", "custom", "hosted"] = "function"
    cache: dict[str, Any] | None = None
    more: dict[str, Any] = {}
    value: dict[str, Any] | None = None


class ToolChoice(msgspec.Struct, frozen=True):
    """`tool`: the one in `names`; `allowed`: any of `names`, `required` says whether one must be
    called; `other`: what only its own dialect knows."""

    mode: Literal["auto", "none", "required", "tool", "allowed", "other"]
    names: tuple[str, ...] = ()
    required: bool = False
    value: Any = None


class OutputFormat(msgspec.Struct, frozen=True):
    """The form a message must have. Without `schema` any JSON object."""

    kind: Literal["json_object", "json_schema"]
    schema: dict[str, Any] | None = None
    name: str | None = None
    description: str | None = None
    strict: bool | None = None


class Reasoning(msgspec.Struct, frozen=True):
    """How much to think: `effort` in a provider's word, or `budget` in tokens; `enabled` False
    forbids it, None says nothing. `shown`: whether the thinking is to be shown (None: as usual)."""

    enabled: bool | None = None
    effort: str | None = None
    budget: int | None = None
    shown: bool | None = None
    more: dict[str, Any] = {}


class Settings(msgspec.Struct, frozen=True):
    """Everything of a request but what was said and what tools there are; None where the request
    does not say. `more` holds the members only its own dialect knows, and those nobody knows."""

    model: str
    stream: bool = False
    include_usage: bool = False
    max_tokens: int | None = None
    older_limit: bool = False
    """Whether that limit came under the older of its dialect's two names."""
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    count: int | None = None
    """How many answers; more than one is for dialects that have it."""
    choice: ToolChoice | None = None
    parallel: bool | None = None
    output: OutputFormat | None = None
    reasoning: Reasoning | None = None
    verbosity: str | None = None
    user: str | None = None
    metadata: dict[str, Any] | None = None
    service_tier: str | None = None
    store: bool | None = None
    previous: str | None = None
    """The answer this one goes on from, where the provider keeps the conversation."""
    cache_key: str | None = None
    signatures: bool = False
    """Whether signatures of thinking are asked for, in dialects that send none unasked."""
    more: dict[str, Any] = {}


class Ask(msgspec.Struct, frozen=True):
    """A request. `dialect` is the one it came in: its writer alone may use `more` and `Foreign`."""

    dialect: str
    settings: Settings
    turns: tuple[Turn, ...]
    tools: tuple[ToolOffer, ...] = ()


def joined(turns: "list[Turn] | tuple[Turn, ...]") -> tuple[Turn, ...]:
    """Turns with those put together that are one: results that follow each other, and items that
    join the turn before. Results get the names of the calls they answer, those without an id the id
    too, and calls the signatures that came beside them, and an id where they have none."""
    whole: list[Turn] = []
    for turn in turns:
        last = whole[-1] if whole else None
        together = last is not None and last.role == turn.role
        if last is not None and together and (turn.role == "tool" or turn.joins):
            more = {**last.more, **turn.more} if turn.more else last.more
            whole[-1] = Turn(last.role, last.parts + turn.parts, last.name, last.joins, more)
        else:
            whole.append(turn)
    names: dict[str, str] = {}
    open_calls: list[Call] = []
    made: list[Call] = []
    for at, turn in enumerate(whole):
        if turn.role == "assistant":
            whole[at] = turn = _identified(_signed(_whole_parts(turn)), made)
            calls = [part for part in turn.parts if isinstance(part, Call)]
            names.update((call.id, call.name) for call in calls)
            if at and whole[at - 1].role != "assistant":
                open_calls = []
            open_calls += calls
        elif turn.role == "tool":
            whole[at] = _named(_linked(turn, open_calls), names)
    return tuple(whole)


def _signed(turn: Turn) -> Turn:
    """Signatures that thinking brought for calls, put on these calls. Thinking that was nothing
    but their envelope goes."""
    brought: dict[str, tuple[str, str]] = {}
    for part in turn.parts:
        if isinstance(part, Thinking):
            brought.update((id, (part.origin, held)) for id, held in part.calls.items())
    if not brought:
        return turn
    parts: list[Part] = []
    for part in turn.parts:
        if isinstance(part, Thinking) and part.calls:
            part = msgspec.structs.replace(part, calls={})
            if not part.text and part.signature is None:
                continue
        elif isinstance(part, Call) and part.id in brought and part.signature is None:
            origin, held = brought[part.id]
            part = msgspec.structs.replace(part, signature=held, origin=origin)
        parts.append(part)
    return msgspec.structs.replace(turn, parts=tuple(parts))


def _whole_parts(turn: Turn) -> Turn:
    """Text and thinking that a client kept in pieces, as a stream brought them, put together."""
    if not any(isinstance(part, Text | Thinking) and part.joins for part in turn.parts):
        return turn
    parts: list[Part] = []
    for part in turn.parts:
        if isinstance(part, Text) and part.joins:
            before = parts[-1] if parts else None
            text = part.text
            if isinstance(before, Text) and not (before.more or before.cache or before.item):
                text = before.text + text
                parts.pop()
            part = msgspec.structs.replace(part, text=text, joins=False)
        elif isinstance(part, Thinking) and part.joins:
            text, left = part.text, part.joins
            while parts and isinstance(before := parts[-1], Thinking):
                if before.signature is not None or not 0 < len(before.text) <= left:
                    break
                text, left = before.text + text, left - len(before.text)
                parts.pop()
            part = msgspec.structs.replace(part, text=text, joins=0)
        parts.append(part)
    return msgspec.structs.replace(turn, parts=tuple(parts))


def _identified(turn: Turn, made: list[Call]) -> Turn:
    """Calls without an id get one from what they are and how many such stand before them, which
    `made` lists: the same in every reading of a conversation that begins the same."""
    if not any(isinstance(part, Call) and not part.id for part in turn.parts):
        return turn
    parts: list[Part] = []
    for part in turn.parts:
        if isinstance(part, Call) and not part.id:
            identity = made_id(str(len(made)), part.name, part.arguments)
            part = msgspec.structs.replace(part, id=identity)
            made.append(part)
        parts.append(part)
    return msgspec.structs.replace(turn, parts=tuple(parts))


def _linked(turn: Turn, open_calls: list[Call]) -> Turn:
    """Results that do not say which call they are of get the first of their name that has none.
    What has one is taken off `open_calls`."""
    told = {part.call_id for part in turn.parts if isinstance(part, Result)}
    open_calls[:] = [call for call in open_calls if call.id not in told]
    if "" not in told:
        return turn
    parts: list[Part] = []
    for part in turn.parts:
        if isinstance(part, Result) and not part.call_id:
            found = next((call for call in open_calls if call.name == part.name), None)
            if found is not None:
                open_calls.remove(found)
                part = msgspec.structs.replace(part, call_id=found.id)
        parts.append(part)
    return msgspec.structs.replace(turn, parts=tuple(parts))


def _named(turn: Turn, names: dict[str, str]) -> Turn:
    parts: list[Part] = []
    for part in turn.parts:
        if isinstance(part, Result) and part.name is None and part.call_id in names:
            part = msgspec.structs.replace(part, name=names[part.call_id])
        parts.append(part)
    return msgspec.structs.replace(turn, parts=tuple(parts))
