"""Which tool a request is for: the one under which the model finds the request's words likeliest.

Asked for a tool's name, a model of 135 million parameters answers at chance. Asked how likely a
user says these words to somebody who can do just this (a noisy channel: P(words | tool)) it is far
above it. Each tool is put in several frames, so that no one phrasing decides; the log-probabilities
are summed. No sampling: the same request gives the same tool. Pure but for `score`.
"""

from collections.abc import Awaitable, Callable, Sequence

from reflexarc.steps import Message, ToolSpec

MAX_WORDS_CHARS = 240
"""Of a long message the end counts: there people say what they want."""

# In UTF-8, where a token can be a single byte: all frames at once fit `SCORING_TOKENS`.
_MAX_WORDS_BYTES, _MAX_DESCRIPTION_BYTES, _MAX_NAME_BYTES = 320, 200, 64
_MAX_DESCRIPTION_CHARS = 160

Score = Callable[[int, str, str], Awaitable[float]]
"""Natural log-probability of the second text right after the first, which is in the frame of this
number."""

ANSWER_NAME = "small talk"
ANSWER_DESCRIPTION = "Chat with the user: greet, thank, explain or tell something"

_EXAMPLES = (
    (
        "open window",
        "Open or close a window",
        "It is stuffy in here, could you let in some air?",
    ),
    (
        "order food",
        "Order a meal from a restaurant",
        "I'm hungry, get me a large pizza with mushrooms",
    ),
    ("find recipe", "Search for a recipe", "What can I cook with rice and eggs?"),
)


def _function(name: str, description: str) -> str:
    shown = "".join(f"Function: {n} - {d}\nUser: {u}\n\n" for n, d, u in _EXAMPLES)
    return f"{shown}Function: {name} - {description}\nUser: "


def _typical(name: str, description: str) -> str:
    del name
    return (
        "Here is a typical request to a tool that can "
        f'{description[:1].lower()}{description[1:]}:\n"'
    )


def _dialogue(name: str, description: str) -> str:
    del name
    shown = "".join(
        f"<|im_start|>user\n{d}<|im_end|>\n<|im_start|>assistant\n{u}<|im_end|>\n"
        for _, d, u in _EXAMPLES
    )
    return (
        "<|im_start|>system\nWrite what a user would say to ask for this.<|im_end|>\n"
        f"{shown}<|im_start|>user\n{description}<|im_end|>\n<|im_start|>assistant\n"
    )


FRAMES: tuple[Callable[[str, str], str], ...] = (_function, _typical, _dialogue)
OPENINGS = tuple(frame("\0", "\0").partition("\0")[0] for frame in FRAMES)
"""What each frame begins with, whatever the tool: nobody's words."""


def request_words(messages: Sequence[Message]) -> str:
    """What the user last said, on one line; empty where there is nothing."""
    for message in reversed(messages):
        if message.role == "user" and message.content.strip():
            return _last(plain(message.content)[-MAX_WORDS_CHARS:], _MAX_WORDS_BYTES)
    return ""


def plain(text: str) -> str:
    """On one line, and without what the model takes for marks between turns."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split()).replace(
        "<|", "< |"
    )


async def choose(
    messages: Sequence[Message], tools: Sequence[ToolSpec], score: Score, *, answer: bool
) -> ToolSpec | None:
    """The tool, or None for an answer in words, which only `answer` allows.

    Right after a tool's result the answer is words: a model this small would go on calling. The
    first of equals wins.
    """
    if answer and messages and messages[-1].role == "tool":
        return None
    if len(tools) == 1 and not answer:
        return tools[0]
    words = request_words(messages)
    if not words:
        return None if answer else tools[0]
    options: list[ToolSpec | None] = [*tools, *([None] if answer else [])]
    scores = [await _likelihood(words, option, score) for option in options]
    return options[scores.index(max(scores))]


async def _likelihood(words: str, tool: ToolSpec | None, score: Score) -> float:
    name, description = (
        (ANSWER_NAME, ANSWER_DESCRIPTION) if tool is None else (spoken(tool.name), described(tool))
    )
    return sum([await score(i, frame(name, description), words) for i, frame in enumerate(FRAMES)])


def spoken(name: str) -> str:
    """`get_orderStatus` as words: get order status."""
    broken = "".join(
        f" {c}" if c.isupper() and i and name[i - 1].islower() else c for i, c in enumerate(name)
    )
    words = " ".join("".join(c if c.isalnum() else " " for c in broken).split()).lower()
    return _first(words or name, _MAX_NAME_BYTES)


def described(tool: ToolSpec) -> str:
    """The first sentence of its description, which says what it is for; its name without one."""
    text = plain(tool.description)
    first, stop, _ = text.partition(". ")
    short = (first if stop else text).rstrip(".")[:_MAX_DESCRIPTION_CHARS]
    return _first(short, _MAX_DESCRIPTION_BYTES) or spoken(tool.name).capitalize()


def _first(text: str, most_bytes: int) -> str:
    return text.encode("utf-8", "replace")[:most_bytes].decode("utf-8", "ignore")


def _last(text: str, most_bytes: int) -> str:
    return text.encode("utf-8", "replace")[-most_bytes:].decode("utf-8", "ignore")
