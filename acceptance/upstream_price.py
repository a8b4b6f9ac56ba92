"""Lines 2.1 on: Anthropic's example, 3 tokens of input, 12,304 written to a cache and 550 of output
at 3, 3.75 and 15 dollars a million, is 0.0544 dollars: in every dialect, streamed and not."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import aiohttp

from acceptance.lines import Lines
from acceptance.upstream_world import (
    DIALECTS,
    Rows,
    ask,
    base_of,
    eventually,
    fault_upstreams,
    gateway,
    headers_of,
    make_key,
    provider,
    request_of,
)

MICRO_USD = 54_399
_USAGE = "input=12307 written=12304 output=550"
_PRICE = {"input": 3.0, "output": 15.0, "cached": 0.3, "cache_write": 3.75}
_SAYING = ("messages", "chat", "responses")
"""Dialects in which an upstream can tell what was written to a cache."""
_LISTED = "claude-sonnet-4-6"
_BOOK = (
    "select micro_usd, input, cache_write, output, partial, estimated from charges"
    " where request_id = ?"
)
_STORE = (
    "select s.cost_micro_usd, s.cost_usd, s.prompt_tokens, s.cache_write_tokens,"
    " s.completion_tokens, s.tokens_estimated, s.partial, a.micro_usd from steps s"
    " join attempts a on a.step = s.id where s.request_id = ?"
)


def measure(lines: Lines) -> None:
    with tempfile.TemporaryDirectory(prefix="reflexarc-price-") as folder:
        asyncio.run(_measured(lines, Path(folder)))


async def _measured(lines: Lines, folder: Path) -> None:
    async with fault_upstreams(1) as [faulty]:
        faulty.usual = _USAGE
        sections: dict[str, Any] = {
            "route": [{"upstream": "models", "mode": "off"}],
            "accounts": {"keys": "required"},
            "provider.listed": provider(
                base_of(faulty, "messages"), "messages", charged_as="anthropic"
            ),
            f"model.{_LISTED}": {"standard": [{"provider": "listed", "model": _LISTED}]},
        }
        for spoken in _SAYING:
            sections[f"provider.{spoken}"] = provider(base_of(faulty, spoken), spoken)
            served = {"provider": spoken, "model": "priced", "price": _PRICE}
            sections[f"model.of-{spoken}"] = {"standard": [served]}
        _, secret = make_key(folder, "priced", "1000usd")
        async with gateway(folder, sections) as running, aiohttp.ClientSession() as session:
            for at, (model, what) in enumerate(
                (
                    ("of-messages", "over Anthropic's dialect"),
                    ("of-chat", "over an upstream of chat that tells it"),
                    ("of-responses", "over an upstream of responses that tells it"),
                    (_LISTED, f"as the shipped prices list {_LISTED}"),
                ),
                1,
            ):
                wrong = [
                    said
                    for client in DIALECTS
                    for stream in (False, True)
                    if (said := await _cell(
                        session, running.base, Rows(folder), secret, client, model, stream=stream
                    ))
                ]  # fmt: skip
                cells = 2 * len(DIALECTS)
                lines.add(
                    f"2.{at}",
                    f"3 + 12,304 written + 550 tokens {what}, in every client's dialect, streamed "
                    "and whole: book and store",
                    f"{MICRO_USD} µ$ in {cells} of {cells}",
                    f"{MICRO_USD} µ$ in {cells - len(wrong)} of {cells}"
                    + (f"; {wrong[0]}" if wrong else ""),
                    not wrong,
                )
            [(spent, kept)] = Rows(folder).book(
                "select (select sum(micro_usd) from tallies where scope = 'key' and window = ''),"
                " (select coalesce(sum(micro_usd), 0) from reservations)"
            )
            whole = 2 * len(DIALECTS) * (len(_SAYING) + 1) * MICRO_USD
            lines.add(
                "2.5", "spent of the key's budget after all of them; kept back", f"{whole} µ$; 0",
                f"{spent} µ$; {kept}", (spent, kept) == (whole, 0),
            )  # fmt: skip


async def _cell(
    session: aiohttp.ClientSession,
    base: str,
    rows: Rows,
    secret: str,
    client: str,
    model: str,
    *,
    stream: bool,
) -> str:
    """What is wrong; empty where nothing is."""
    request_id = f"{model}-{client}-{stream}"
    path, body = request_of(client, model, stream=stream)
    headers = headers_of(client, secret) | {"x-request-id": request_id}
    answered = await ask(session, base, client, path, body, headers, stream=stream)
    if answered.status != 200 or answered.fault:
        return f"{request_id}: {answered.status} {answered.fault}"
    await eventually(lambda: bool(rows.store(_STORE, request_id)), 20.0)
    await eventually(lambda: bool(rows.book(_BOOK, request_id)))
    book, store = rows.book(_BOOK, request_id), rows.store(_STORE, request_id)
    if book != [(MICRO_USD, 12307, 12304, 550, 0, 0)]:
        return f"{request_id}: the book says {book}"
    if store != [(MICRO_USD, 0.054399, 12307, 12304, 550, 0, 0, MICRO_USD)]:
        return f"{request_id}: the store says {store}"
    return ""
