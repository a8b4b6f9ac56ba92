"""What goes wrong in `make accept-upstream`, and what must come of it: data, one entry a line.

Two deployments, `a` (asked first: it is the cheaper one) and `b`, each on a fault upstream of its
own. Words are those of docs/simulator.md, one entry a request.
"""

from typing import Any

import msgspec


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """`a` and `b`: what the upstreams are told; `spoken`: their dialects; `before` requests go
    first; `leaves`: the client goes once it was `asked` for, or `inside` the answer.

    Expected: what the client `sees` (`hello`, `calls`, `cut`: a stream that ends in an error of its
    dialect, `gone`, or an error as `429 word`), from whom (`up`), `headers` (None: absent),
    how often each upstream was `asked` and how often a client `left` it, in all; the last request's
    `attempts`, in the order they ended: upstream, outcome, status, and the usage charged.

    Usage is `-` (none), `told`, `prompt` (no answer: the prompt, estimated), `part` (a part of the
    answer, partial) or `guessed` (whole, but not told). `cools_s`: for how long `a` is left alone.
    """

    what: str
    a: tuple[str, ...] = ()
    b: tuple[str, ...] = ()
    client: str = "chat"
    stream: bool = False
    spoken: tuple[str, str] = ("chat", "chat")
    kind: str = "compatible"
    tier: str = "standard"
    words: str = "hello"
    more: dict[str, Any] = {}
    given: dict[str, str] = {}
    url: str = ""
    timeouts: dict[str, float] = {}
    budget: str = "1000usd"
    model: str = ""
    before: int = 0
    leaves: str = ""
    sees: str = "hello"
    up: str = "b"
    headers: dict[str, str | None] = {}
    asked: tuple[int, int] = (1, 1)
    left: tuple[int, int] = (0, 0)
    attempts: tuple[str, ...] = ()
    cools_s: float | None = None
    within_s: float = 8.0


_SECOND = "b answered 200 told"
_FINAL: dict[str, str | None] = {"x-should-retry": "false"}
_WEATHER = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]
_LONG = "hello\nanswer: long=400"


def _elsewhere(status: int, words: str = "", **more: Any) -> Case:
    return Case(
        what=f"{more.pop('what', status)}: the other answers",
        a=(words or f"error={status}",),
        attempts=(f"a refused {status} -", _SECOND),
        **more,
    )


def _answer(status: int, word: str = "") -> Case:
    return Case(
        what=f"{status}: the client's to know",
        a=(f"error={status}",),
        sees=f"{status} {word}".strip(),
        up="a",
        headers={"x-should-retry": None},
        asked=(1, 0),
        attempts=(f"a refused {status} -",),
    )


CONNECTIONS = (
    Case(
        what="the connection is refused", url="http://127.0.0.1:1/v1", asked=(0, 1),
        attempts=("a failed 502 -", _SECOND),
    ),
    Case(
        what="its name leads nowhere", url="http://nowhere.invalid/v1", asked=(0, 1),
        attempts=("a failed 502 -", _SECOND),
    ),
    Case(
        what="reset before the head", a=("nohead",), attempts=("a failed 502 -", _SECOND),
    ),
    Case(
        what="a connection that had gone stale: sent again, and not counted as a retry",
        a=("", "nohead"), before=1, up="a", asked=(3, 0), attempts=("a answered 200 told",),
    ),
    Case(
        what="reset inside a whole answer", a=("reset",),
        attempts=("a failed 200 prompt", _SECOND),
    ),
    Case(
        what="reset after the head of a stream", a=("reset=0",), stream=True,
        attempts=("a failed 200 prompt", _SECOND),
    ),
    Case(
        what="cut after the lifecycle, before content; the prompt's usage was told",
        a=("cut=1",), stream=True, client="messages", spoken=("messages", "chat"),
        attempts=("a failed 200 part", _SECOND),
    ),
    Case(
        what="cut inside the content", a=("cut=4",), stream=True, words=_LONG, sees="cut", up="a",
        asked=(1, 0), attempts=("a cut 200 part",),
    ),
    Case(
        what="cut inside the content, its usage partly told, in another dialect",
        a=("cut=4",), stream=True, client="responses", spoken=("messages", "chat"), words=_LONG,
        sees="cut", up="a", asked=(1, 0), attempts=("a cut 200 part",),
    ),
    Case(
        what="a stream that ends as if it were whole, before content", a=("truncate=0",),
        stream=True, attempts=("a refused 200 -", _SECOND),
    ),
    Case(
        what="a stream that ends as if it were whole, inside the content", a=("truncate=4",),
        stream=True, client="gemini", spoken=("responses", "chat"), words=_LONG,
        sees="cut", up="a", asked=(1, 0), attempts=("a cut 200 part",),
    ),
    Case(what="a whole answer cut in half", a=("cut",), client="messages",
         spoken=("messages", "gemini"), attempts=("a failed 200 prompt", _SECOND)),
)  # fmt: skip

LIMITS = (
    Case(
        what="silence before the head of a stream: first_token_s", a=("slow=60000",), stream=True,
        left=(1, 0), attempts=("a failed 504 prompt", _SECOND),
    ),
    Case(
        what="silence after the head of a stream: first_token_s", a=("stall=0",), stream=True,
        left=(1, 0), attempts=("a failed 200 prompt", _SECOND),
    ),
    Case(
        what="lifecycle and then silence: first_token_s", a=("stall=2",), stream=True,
        client="chat", spoken=("responses", "chat"),
        left=(1, 0), attempts=("a failed 200 prompt", _SECOND),
    ),
    Case(
        what="silence before the head of a whole answer: first_byte_s", a=("slow=60000",),
        timeouts={"first_byte_s": 0.8}, left=(1, 0), attempts=("a failed 504 prompt", _SECOND),
    ),
    Case(
        what="silence inside a stream: idle_s", a=("stall=4",), stream=True, words=_LONG,
        timeouts={"idle_s": 0.8}, sees="cut", up="a", asked=(1, 0), left=(1, 0),
        attempts=("a cut 200 part",),
    ),
    Case(
        what="silence inside a whole answer: idle_s", a=("stall",), timeouts={"idle_s": 0.8},
        left=(1, 0), attempts=("a failed 200 prompt", _SECOND),
    ),
    Case(
        what="a stream that never ends: total_s", a=("pace=300",), stream=True, words=_LONG,
        timeouts={"total_s": 1.0}, sees="cut", up="a", asked=(1, 0), left=(1, 0),
        attempts=("a cut 200 part",),
    ),
    Case(
        what="a whole answer that trickles: total_s", a=("pace=200",), timeouts={"total_s": 1.0},
        left=(1, 0), attempts=("a failed 200 prompt", _SECOND),
    ),
)  # fmt: skip

STATUSES = (
    _elsewhere(408),
    _elsewhere(409),
    _elsewhere(429, what="429 without a hint", before=1, asked=(2, 2), stream=True),
    Case(
        what="429 with retry-after in seconds: left alone for just so long",
        a=("error=429 retry=30",), before=1, asked=(1, 2), cools_s=30, attempts=(_SECOND,),
    ),
    Case(
        what="429 with retry-after as a date", a=("error=429 retrydate=40",), before=1,
        asked=(1, 2), cools_s=40, attempts=(_SECOND,),
    ),
    Case(
        what="429 with retry-after-ms", a=("error=429 retryms=20000",), before=1, asked=(1, 2),
        cools_s=20, attempts=(_SECOND,), stream=True,
    ),
    Case(
        what="429 with a hint in the body", a=("error=429 retry=25 inbody",), before=1,
        spoken=("gemini", "chat"), asked=(1, 2), cools_s=25, attempts=(_SECOND,),
    ),
    Case(
        what="503 with retry-after", a=("error=503 retry=15",), before=1, asked=(1, 2), cools_s=15,
        attempts=(_SECOND,), client="gemini",
    ),
    _elsewhere(498, kind="groq", what="498, a flex tier without capacity"),
    _elsewhere(500, client="messages", stream=True),
    _elsewhere(502, "html=502", what="a page of HTML with 502"),
    _elsewhere(503, stream=True),
    _elsewhere(529, spoken=("messages", "chat"), client="messages"),
    _elsewhere(401),
    _elsewhere(403),
    _elsewhere(404, what="404, a model that is unknown there"),
    _answer(400),
    _answer(413),
    _answer(422),
)  # fmt: skip

ANSWERS = (
    Case(
        what="tool_use_failed with a call in it: read here", kind="groq", a=("toolfail",),
        more={"tools": _WEATHER}, sees="calls", up="a", asked=(1, 0),
        attempts=("a repaired 400 guessed",),
    ),
    Case(
        what="tool_use_failed with a call in it, streamed", kind="groq", a=("toolfail",),
        more={"tools": _WEATHER}, stream=True, sees="calls", up="a", asked=(1, 0),
        attempts=("a repaired 400 guessed",),
    ),
    Case(
        what="tool_use_failed with no call in it: asked once more", kind="groq",
        a=("toolfail unreadable",), up="a", asked=(2, 0),
        attempts=("a refused 400 -", "a answered 200 told"),
    ),
    Case(
        what="tool_use_failed twice: the other answers", kind="groq",
        a=("toolfail unreadable", "toolfail unreadable"), asked=(2, 1),
        attempts=("a refused 400 -", "a refused 400 -", _SECOND),
    ),
    Case(
        what="an error inside a stream, before content", a=("error_first=0",), stream=True,
        attempts=("a refused 200 -", _SECOND),
    ),
    Case(
        what="an error inside a stream, after content", a=("error_after=4",), stream=True,
        client="messages", words=_LONG, sees="cut", up="a", asked=(1, 0),
        attempts=("a cut 200 part",),
    ),
    Case(
        what="response.failed after the lifecycle", a=("error_first=2",), stream=True,
        client="responses", spoken=("responses", "messages"),
        attempts=("a refused 200 -", _SECOND),
    ),
    Case(
        what="response.failed inside the content", a=("error_after=6",), stream=True,
        client="responses", spoken=("responses", "messages"), words=_LONG,
        sees="cut", up="a", asked=(1, 0), attempts=("a cut 200 part",),
    ),
    Case(
        what="an error of Anthropic's inside a stream, after message_start", a=("error_first=1",),
        stream=True, client="chat", spoken=("messages", "gemini"),
        attempts=("a refused 200 -", _SECOND),
    ),
    Case(
        what="an error in the body of a 200", a=("error_in_200",),
        attempts=("a refused 200 -", _SECOND),
    ),
    Case(
        what="an error in the body of a 200, converted", a=("error_in_200",), client="gemini",
        spoken=("responses", "chat"), attempts=("a refused 200 -", _SECOND),
    ),
    Case(what="a redirect: not followed", a=("redirect",),
         attempts=("a failed 307 -", _SECOND)),
    Case(what="a whole answer in gzip that nobody asked for", a=("gzip",), up="a", asked=(1, 0),
         attempts=("a answered 200 told",)),
    Case(what="a stream in gzip that nobody asked for", a=("gzip",), stream=True, up="a",
         client="messages", asked=(1, 0), attempts=("a answered 200 told",)),
    Case(what="a whole answer that calls itself text/plain", a=("badtype",), up="a", asked=(1, 0),
         attempts=("a answered 200 told",)),
    Case(what="a header that is too long", a=("header=70000",),
         attempts=("a failed 502 -", _SECOND)),
    Case(what="usage is not told: estimated", a=("nousage",), up="a", asked=(1, 0),
         attempts=("a answered 200 guessed",)),
    Case(what="usage is not told in a stream: estimated", a=("nousage",), stream=True, up="a",
         client="gemini", spoken=("chat", "chat"), asked=(1, 0),
         attempts=("a answered 200 guessed",)),
    Case(what="failover to another dialect, streamed", a=("error=503",), stream=True,
         client="responses", spoken=("chat", "messages"),
         attempts=("a refused 503 -", _SECOND)),
    Case(what="failover to another dialect, whole", a=("error=500",), client="gemini",
         spoken=("messages", "responses"), attempts=("a refused 500 -", _SECOND)),
)  # fmt: skip

_GONE = {"sees": "gone", "up": "", "asked": (1, 0), "left": (1, 0)}

CLIENTS = (
    Case(what="the client of a stream leaves before the head", a=("slow=20000",), stream=True,
         leaves="asked", attempts=("a client_gone 0 prompt",), **_GONE),
    Case(what="the client of a whole answer leaves while it waits", a=("slow=20000",),
         leaves="asked", client="messages", attempts=("a client_gone 0 prompt",), **_GONE),
    Case(what="the client leaves inside a stream", a=("pace=50",), stream=True, words=_LONG,
         leaves="inside", attempts=("a client_gone 200 part",), **_GONE),
    Case(what="the client leaves inside a converted stream", a=("pace=50",), stream=True,
         words=_LONG, client="responses", spoken=("messages", "chat"), leaves="inside",
         attempts=("a client_gone 200 part",), **_GONE),
    Case(what="the client leaves while a whole answer trickles in", a=("pace=300",),
         leaves="asked", client="gemini", attempts=("a client_gone 200 prompt",), **_GONE),
    Case(what="the client leaves while the second is asked", a=("error=503",), b=("slow=20000",),
         leaves="second", sees="gone", up="", asked=(1, 1), left=(0, 1),
         attempts=("a refused 503 -", "b client_gone 0 prompt")),
)  # fmt: skip

ENDS = (
    Case(what="the first is silent past its p95: a second is asked, wins, and the first is charged",
         a=("",) * 6 + ("slow=20000",), before=6, stream=True, tier="interactive",
         asked=(7, 1), left=(1, 0), attempts=("a hedge_lost 0 prompt", _SECOND)),
    Case(what="the second of two is slower still: the first wins, the second is charged",
         a=("",) * 6 + ("slow=900",), b=("slow=20000",), before=6, stream=True,
         tier="interactive", up="a", asked=(7, 1), left=(0, 1),
         attempts=("b hedge_lost 0 prompt", "a answered 200 told")),
    Case(what="both fail: the last one's status and hint, not to be tried again",
         a=("error=500",), b=("error=529 retry=7",), client="messages",
         spoken=("chat", "messages"), sees="529 overloaded_error",
         headers={**_FINAL, "retry-after": "7"},
         attempts=("a refused 500 -", "b refused 529 -")),
    Case(what="both fail before a stream began: the real status", a=("error_first=0",),
         b=("html=502",), stream=True, client="responses", spoken=("responses", "chat"),
         sees="502", headers=_FINAL, attempts=("a refused 200 -", "b refused 502 -")),
    Case(what="both are silent: 504", a=("slow=60000",), b=("stall=0",), stream=True,
         sees="504", up="", headers=_FINAL, left=(1, 1),
         attempts=("a failed 504 prompt", "b failed 200 prompt")),
    Case(what="every circuit is open: 503 at once, nobody is asked", a=("error=500",) * 5,
         b=("error=500",) * 5, before=5, sees="503 no_deployment", up="", asked=(5, 5),
         headers={"retry-after": "1", "x-reflexarc-attempts": "0"}, attempts=()),
    Case(what="all asked for a pause: 503 with the shorter of them", a=("error=429 retry=30",),
         b=("error=429 retry=20",), before=1, sees="503 no_deployment", up="", asked=(1, 1),
         headers={"retry-after": "20"}, attempts=(), cools_s=30),
    Case(what="the budget does not cover it: 402, nobody is asked", budget="0.0001usd",
         sees="402", up="", asked=(0, 0), attempts=()),
    Case(what="a model that there is not: 404 with the nearest, nobody is asked", model="c_{}x",
         sees="404", up="", asked=(0, 0), attempts=()),
    Case(what="it must not leave, and nothing is local: 403, nobody is asked",
         given={"x-reflexarc-local": "only"}, sees="403", up="", asked=(0, 0), attempts=()),
    Case(what="retries are spent: the first fault is the client's, nobody else is asked",
         a=("error=429 retryms=1",) * 41, before=40, sees="429", up="a", headers=_FINAL,
         asked=(41, -1), attempts=("a refused 429 -",), within_s=20.0),
)  # fmt: skip

CASES = (*CONNECTIONS, *LIMITS, *STATUSES, *ANSWERS, *CLIENTS, *ENDS)
