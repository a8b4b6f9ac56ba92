"""What goes wrong in `make accept-upstream`, and what must come of it: data, one entry a line.

Two deployments, `a` (asked first: it is the cheaper one) and `b`, each on a fault upstream of its
own. Words are those of docs/simulator.md, one entry a request.
"""

from typing import Any

import msgspec


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """`a` and `b`: what the upstreams are told; `spoken`: their dialects; `before` requests go
    first, and before them `fillers` that go well, for retries are a share of all; `leaves`: the
    client goes once it was `asked` for, or the `second` was, or `inside` the answer.

    Expected: what the client `sees` (`hello`, `calls`, `cut`: a stream that ends in an error of its
    dialect, `gone`, or an error as `429 word`), from whom (`up`), `headers` (None: absent),
    how often each upstream was `asked` and how often a client `left` it, in all (-1: some times);
    the last request's `attempts`, in the order they began: upstream, outcome, status, usage.

    Usage is `-` (none), `told`, `prompt` (no answer: the prompt, estimated), `part` (a part of the
    answer, partial), `guessed` (whole, but not told) or `learned` (the prompt, as those before).
    `cools_s`: for how long `a` is left alone.
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
    fillers: int = 5
    leaves: str = ""
    sees: str = "hello"
    up: str = "b"
    headers: dict[str, str | None] = {}
    asked: tuple[int, int] = (1, 1)
    left: tuple[int, int] = (0, 0)
    attempts: tuple[str, ...] = ()
    cools_s: float | None = None
    within_s: float = 8.0


SECOND = "b answered 200 told"
LONG = "hello\nanswer: long=400"


def _elsewhere(status: int, words: str = "", **more: Any) -> Case:
    return Case(
        what=f"{more.pop('what', status)}: the other answers",
        a=(words or f"error={status}",) * (1 + more.get("before", 0)),
        attempts=(f"a refused {status} -", SECOND),
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
        attempts=("a failed 502 -", SECOND),
    ),
    Case(
        what="its name leads nowhere", url="http://nowhere.invalid/v1", asked=(0, 1),
        attempts=("a failed 502 -", SECOND),
    ),
    Case(
        what="reset before the head", a=("nohead",), attempts=("a failed 502 -", SECOND),
    ),
    Case(
        what="a connection that had gone stale: sent again, and not counted as a retry",
        a=("", "nohead"), before=1, up="a", asked=(3, 0), attempts=("a answered 200 told",),
    ),
    Case(
        what="reset inside a whole answer", a=("reset",),
        attempts=("a failed 200 prompt", SECOND),
    ),
    Case(
        what="reset after the head of a stream", a=("reset=0",), stream=True,
        attempts=("a failed 200 prompt", SECOND),
    ),
    Case(
        what="cut after the lifecycle, before content; the prompt's usage was told",
        a=("cut=1",), stream=True, client="messages", spoken=("messages", "chat"),
        attempts=("a failed 200 part", SECOND),
    ),
    Case(
        what="cut inside the content", a=("cut=4",), stream=True, words=LONG, sees="cut", up="a",
        asked=(1, 0), attempts=("a cut 200 part",),
    ),
    Case(
        what="cut inside the content, its usage partly told, in another dialect",
        a=("cut=4",), stream=True, client="responses", spoken=("messages", "chat"), words=LONG,
        sees="cut", up="a", asked=(1, 0), attempts=("a cut 200 part",),
    ),
    Case(
        what="a stream that ends as if it were whole, before content", a=("truncate=0",),
        stream=True, attempts=("a refused 200 -", SECOND),
    ),
    Case(
        what="a stream that ends as if it were whole, after the lifecycle", a=("truncate=4",),
        stream=True, client="gemini", spoken=("responses", "chat"),
        attempts=("a refused 200 -", SECOND),
    ),
    Case(
        what="a stream that passes as it is and has no end", a=("truncate=4",), stream=True,
        words=LONG, sees="cut", up="a", asked=(1, 0), attempts=("a cut 200 part",),
    ),
    Case(
        what="a stream that ends as if it were whole, inside the content", a=("truncate=6",),
        stream=True, client="gemini", spoken=("responses", "chat"), words=LONG,
        sees="cut", up="a", asked=(1, 0), attempts=("a cut 200 part",),
    ),
    Case(what="a whole answer cut in half", a=("cut",), client="messages",
         spoken=("messages", "gemini"), attempts=("a failed 200 prompt", SECOND)),
)  # fmt: skip

LIMITS = (
    Case(
        what="silence before the head of a stream: first_token_s", a=("slow=60000",), stream=True,
        left=(1, 0), attempts=("a failed 504 prompt", SECOND),
    ),
    Case(
        what="silence after the head of a stream: first_token_s", a=("stall=0",), stream=True,
        left=(1, 0), attempts=("a failed 200 prompt", SECOND),
    ),
    Case(
        what="lifecycle and then silence: first_token_s", a=("stall=2",), stream=True,
        client="chat", spoken=("responses", "chat"),
        left=(1, 0), attempts=("a failed 200 prompt", SECOND),
    ),
    Case(
        what="silence before the head of a whole answer: first_byte_s", a=("slow=60000",),
        timeouts={"first_byte_s": 0.8}, left=(1, 0), attempts=("a failed 504 prompt", SECOND),
    ),
    Case(
        what="silence inside a stream: idle_s", a=("stall=4",), stream=True, words=LONG,
        timeouts={"idle_s": 0.8}, sees="cut", up="a", asked=(1, 0), left=(1, 0),
        attempts=("a cut 200 part",),
    ),
    Case(
        what="silence inside a whole answer: idle_s", a=("stall",), timeouts={"idle_s": 0.8},
        left=(1, 0), attempts=("a failed 200 prompt", SECOND),
    ),
    Case(
        what="a stream that never ends: total_s", a=("pace=300",), stream=True, words=LONG,
        timeouts={"total_s": 1.0}, sees="cut", up="a", asked=(1, 0), left=(1, 0),
        attempts=("a cut 200 part",),
    ),
    Case(
        what="a whole answer that trickles: total_s", a=("pace=200",), timeouts={"total_s": 1.0},
        left=(1, 0), attempts=("a failed 200 prompt", SECOND),
    ),
)  # fmt: skip

STATUSES = (
    _elsewhere(408),
    _elsewhere(409),
    _elsewhere(429, what="429 without a hint", before=1, asked=(2, 2), stream=True),
    Case(
        what="429 with retry-after in seconds: left alone for just so long",
        a=("error=429 retry=30",), before=1, asked=(1, 2), cools_s=30, attempts=(SECOND,),
    ),
    Case(
        what="429 with retry-after as a date", a=("error=429 retrydate=40",), before=1,
        asked=(1, 2), cools_s=40, attempts=(SECOND,),
    ),
    Case(
        what="429 with retry-after-ms", a=("error=429 retryms=20000",), before=1, asked=(1, 2),
        cools_s=20, attempts=(SECOND,), stream=True,
    ),
    Case(
        what="429 with a hint in the body", a=("error=429 retry=25 inbody",), before=1,
        spoken=("gemini", "chat"), asked=(1, 2), cools_s=25, attempts=(SECOND,),
    ),
    Case(
        what="503 with retry-after", a=("error=503 retry=15",), before=1, asked=(1, 2), cools_s=15,
        attempts=(SECOND,), client="gemini",
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

CASES = (*CONNECTIONS, *LIMITS, *STATUSES)
