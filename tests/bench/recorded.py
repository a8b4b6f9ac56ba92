"""Requests made up for tests of what work wastes."""

from array import array
from datetime import date
from decimal import Decimal

from reflexarc.accounts import Prices
from reflexarc.bench.trial import Trial
from reflexarc.bench.waste import Waste, waste
from reflexarc.steps.prompt import Blocks, Piece, Prompt
from reflexarc.traces.logs import Logs
from reflexarc.traces.requests import (
    ABSENT,
    Counts,
    Figure,
    FileReport,
    RecordedRequest,
    RecordedTool,
    Start,
    measured,
)

DAY_S = 1_790_000_000.0
"""Some day of 2026."""
MODEL = "claude-opus-4-5"


def report(
    *requests: RecordedRequest, files: list[FileReport] | None = None, trial: Trial | None = None
) -> Waste:
    named = sorted({one.file for one in requests})
    reports = [FileReport(name, "test") for name in named] if files is None else files
    return waste(Logs(list(requests), reports), prices(), trial=trial)


def prices() -> Prices:
    return Prices.load(today=lambda: date(2026, 11, 30))


def input_price() -> Decimal:
    """Of `MODEL`, in dollars a million tokens."""
    price = prices().of("anthropic", MODEL)
    assert price is not None
    return price.input


def read_price() -> Decimal:
    price = prices().of("anthropic", MODEL)
    assert price is not None
    return price.of_read


def text(*messages: str, complete: bool = True) -> Prompt:
    return Prompt(
        tuple(
            Piece("message", f"messages[{at}]", one.encode(), "user", plain=True)
            for at, one in enumerate(messages)
        ),
        complete,
    )


def blocks(*ids: int) -> Blocks:
    return Blocks(100, array("q", ids), "s")


def tool(name: str, began_s: float, ended_s: float) -> RecordedTool:
    return RecordedTool(name, began_s=measured(began_s), ended_s=measured(ended_s))


def request(
    number: int,
    *,
    session: str = "s",
    agent: str = "",
    model: str = MODEL,
    provider: str = "anthropic",
    file: str = "log.jsonl",
    at_s: float | None = None,
    took_s: float | None = 1.0,
    first_s: float | None = None,
    prompt: float | None = None,
    output: float | None = 10,
    cache_read: float | None = None,
    cache_write: float | None = None,
    cost_usd: Figure = ABSENT,
    sent: Prompt | Blocks | None = None,
    tools: tuple[RecordedTool, ...] = (),
    starts: Start = "",
    gap: bool = False,
    failed: bool = False,
    unknown_cache: bool = False,
    output_text: str = "",
) -> RecordedRequest:
    """Number 3 was sent 30 seconds after the day began, unless said otherwise."""
    began = DAY_S + 10 * number if at_s is None else DAY_S + at_s
    return RecordedRequest(
        id=f"{session}:{number}",
        session=session,
        agent=agent,
        file=file,
        model=model,
        provider=provider,
        began_s=measured(began),
        first_s=ABSENT if first_s is None else measured(began + first_s),
        ended_s=ABSENT if took_s is None else measured(began + took_s),
        gap=gap,
        counts=Counts(
            prompt=measured(prompt),
            output=measured(output),
            cache_read=measured(cache_read),
            cache_write=measured(cache_write),
        ),
        cost_usd=cost_usd,
        prompt=sent,
        tools=tools,
        output_text=output_text,
        starts=starts,
        failed=failed,
        unknown_cache=unknown_cache,
    )
