"""More of what goes wrong in `make accept-upstream`: answers that are none, clients that leave, and
what is said when nobody is left to ask. The form is that of `upstream_chaos_cases`."""

from typing import Any

from acceptance.upstream_chaos_cases import LONG, SECOND, Case

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
        attempts=("a refused 400 -", "a refused 400 -", SECOND),
    ),
    Case(
        what="an error inside a stream, before content", a=("error_first=0",), stream=True,
        attempts=("a refused 200 -", SECOND),
    ),
    Case(
        what="an error inside a stream that passes as it is, after content",
        a=("error_after=4",), stream=True,
        client="messages", spoken=("messages", "chat"), words=LONG, sees="cut", up="a",
        asked=(1, 0), attempts=("a cut 200 part",),
    ),
    Case(
        what="response.failed after the lifecycle", a=("error_first=2",), stream=True,
        client="responses", spoken=("responses", "messages"), left=(-1, 0),
        attempts=("a refused 200 -", SECOND),
    ),
    Case(
        what="response.failed inside the content", a=("error_after=6",), stream=True,
        client="responses", spoken=("responses", "messages"), words=LONG,
        sees="cut", up="a", asked=(1, 0), attempts=("a cut 200 part",),
    ),
    Case(
        what="an error of Anthropic's inside a stream, after message_start", a=("error_first=1",),
        stream=True, client="chat", spoken=("messages", "gemini"),
        attempts=("a refused 200 -", SECOND),
    ),
    Case(
        what="an error in the body of a 200", a=("error_in_200",),
        attempts=("a refused 200 -", SECOND),
    ),
    Case(
        what="an error in the body of a 200, converted", a=("error_in_200",), client="gemini",
        spoken=("responses", "chat"), attempts=("a refused 200 -", SECOND),
    ),
    Case(what="a redirect: not followed", a=("redirect",),
         attempts=("a failed 307 -", SECOND)),
    Case(what="a whole answer in gzip that nobody asked for", a=("gzip",), up="a", asked=(1, 0),
         attempts=("a answered 200 told",)),
    Case(what="a stream in gzip that nobody asked for", a=("gzip",), stream=True, up="a",
         client="messages", asked=(1, 0), attempts=("a answered 200 told",)),
    Case(what="a whole answer that calls itself text/plain", a=("badtype",), up="a", asked=(1, 0),
         attempts=("a answered 200 told",)),
    Case(what="a header that is too long", a=("header=70000",),
         attempts=("a failed 502 -", SECOND)),
    Case(what="usage is not told: estimated", a=("nousage",), up="a", asked=(1, 0),
         attempts=("a answered 200 guessed",)),
    Case(what="usage is not told in a stream: estimated", a=("nousage",), stream=True, up="a",
         client="gemini", spoken=("chat", "chat"), asked=(1, 0),
         attempts=("a answered 200 guessed",)),
    Case(what="failover to another dialect, streamed", a=("error=503",), stream=True,
         client="responses", spoken=("chat", "messages"),
         attempts=("a refused 503 -", SECOND)),
    Case(what="failover to another dialect, whole", a=("error=500",), client="gemini",
         spoken=("messages", "responses"), attempts=("a refused 500 -", SECOND)),
)  # fmt: skip


def _gone(what: str, a: str, client: str = "chat", **more: Any) -> Case:
    return Case(
        what=what, a=(a,), client=client, sees="gone", up="", asked=(1, 0), left=(1, 0), **more
    )


CLIENTS = (
    _gone("the client of a stream leaves before the head", "slow=20000", stream=True,
         leaves="asked", attempts=("a client_gone 0 prompt",)),
    _gone("the client of a whole answer leaves while it waits", "slow=20000",
         leaves="asked", client="messages", attempts=("a client_gone 0 prompt",)),
    _gone("the client leaves inside a stream", "pace=50", stream=True, words=LONG,
         leaves="inside", attempts=("a client_gone 200 part",)),
    _gone("the client leaves inside a converted stream", "pace=50", stream=True,
         words=LONG, client="responses", spoken=("messages", "chat"), leaves="inside",
         attempts=("a client_gone 200 part",)),
    _gone("the client leaves while a whole answer trickles in", "pace=300",
         leaves="asked", client="gemini", attempts=("a client_gone 200 prompt",)),
    Case(what="the client leaves while the second is asked", a=("error=503",), b=("slow=20000",),
         leaves="second", sees="gone", up="", asked=(1, 1), left=(0, 1),
         attempts=("a refused 503 -", "b client_gone 0 prompt")),
)  # fmt: skip

_MEASURED = ("slow=300",) + ("slow=100",) * 5

ENDS = (
    Case(what="the first is silent past its p95: a second is asked, wins, and the first is charged",
         a=(*_MEASURED, "slow=20000"), before=6, stream=True, tier="interactive",
         asked=(7, 1), left=(1, 0), attempts=("a hedge_lost 0 learned", SECOND)),
    Case(what="the second of two is slower still: the first wins, the second is charged",
         a=(*_MEASURED, "slow=1500"), b=("slow=20000",), before=6, stream=True,
         tier="interactive", up="a", asked=(7, 1), left=(0, 1),
         headers={"x-reflexarc-attempts": "2"},
         attempts=("a answered 200 told", "b hedge_lost 0 prompt")),
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
         b=("error=500",) * 5, before=5, fillers=60, sees="503 no_deployment", up="", asked=(5, 5),
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
         a=("error=429 retryms=0",) * 40, before=39, fillers=60, sees="429", up="a",
         headers=_FINAL, asked=(40, -1), attempts=("a refused 429 -",), within_s=20.0),
)  # fmt: skip

CASES = (*ANSWERS, *CLIENTS, *ENDS)
