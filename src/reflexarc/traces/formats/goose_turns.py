"""One session of Goose as requests: its rows of usage, each with the answer that it paid for.

Where there are no rows, or not for all of it, the sums of the session are shared out over the
answers that have none.
"""

from collections.abc import Iterator, Sequence

import msgspec

from reflexarc.steps.prompt import Piece, Prompt
from reflexarc.traces.estimates import cost_shares
from reflexarc.traces.formats.goose_stores import Kept, Message, Session
from reflexarc.traces.formats.goose_usage import (
    Tokens,
    added,
    cost_of,
    less,
    shared_out,
    sums_of,
    tokens_of,
)
from reflexarc.traces.formats.visible import Prompts, message
from reflexarc.traces.loose import Table, amount, moment, table, text
from reflexarc.traces.models import provider
from reflexarc.traces.requests import (
    RecordedRequest,
    RecordedTool,
    Start,
    estimated,
    measured,
)

SHARED = (
    "tokens of some requests are known for a whole session only; a request's are its share by text"
)
TOGETHER = "all requests of the session together; how many there were is not in this log"
_SLACK_S = 2.0
"""Times are whole seconds, and a row may be written a little after its answer."""


class _Answer(msgspec.Struct, frozen=True):
    """What the model said at one time, in one message or several. `read` and `wrote`: bytes."""

    began_s: float | None
    asked_s: float | None
    before: tuple[int, int]
    content: list[Table]
    read: int
    wrote: int


class Turns:
    def __init__(
        self, session: Session, root: str, agent: str, kept: Kept, prompts: Prompts
    ) -> None:
        self._session = session
        self._root = root
        self._agent = agent
        self._prompts = prompts
        self._rows = sorted(
            kept.rows,
            key=lambda row: (amount(row["created_timestamp"]) or 0, amount(row["id"]) or 0),
        )
        self._pieces = [
            message(one.role, one.content, place) for place, one in enumerate(kept.messages)
        ]
        self._answers = _answers(kept.messages, self._pieces)
        self._results = _results(kept.messages)
        # what was compacted away is kept, but which request saw which of it is not
        self._whole = not any(row["is_compaction"] for row in kept.rows) and not any(
            one.about.get("agentVisible") is False for one in kept.messages
        )

    def requests(self) -> Iterator[RecordedRequest]:
        carried = [row for row in self._rows if _is_carried(row)]
        told = [row for row in self._rows if not _is_carried(row)]
        plain = [row for row in told if not amount(row["is_compaction"])]
        used = [tokens_of(row) for row in self._rows]
        rest = less(sums_of(self._session.fields), used)
        lump = added([rest, *(tokens_of(row) for row in carried)])
        early = max(0, len(self._answers) - len(plain))
        paired = self._paired(plain)
        first: Start = "session"
        if not lump.is_nothing:
            yield from self._shared(lump, self._answers[:early])
            first = ""
        elif early and plain and paired:
            # a copy of another session, whose requests are that one's
            first = "branch"
        compacted = False
        number = 0
        for row in told:
            if amount(row["is_compaction"]):
                yield self._told(row, None, "session")
                compacted = True
                continue
            answer = paired[number] if paired else None
            yield self._told(row, answer, "compaction" if compacted else first)
            number, first, compacted = number + 1, "", False

    def _paired(self, plain: Sequence[Table]) -> list[_Answer]:
        """The answer of each row: the last ones, as their times confirm; none at all where they
        do not."""
        answers = self._answers[len(self._answers) - len(plain) :]
        if not plain or len(answers) != len(plain):
            return []
        for at, (row, answer) in enumerate(zip(plain, answers, strict=True)):
            row_s = moment(row["created_timestamp"])
            later = answers[at + 1].began_s if at + 1 < len(answers) else None
            if row_s is None or answer.began_s is None or row_s < answer.began_s - _SLACK_S:
                return []
            if later is not None and row_s > later + _SLACK_S:
                return []
        return answers

    def _told(self, row: Table, answer: _Answer | None, starts: Start) -> RecordedRequest:
        tokens = tokens_of(row)
        ended_s = moment(row["created_timestamp"])
        made = self._request(f"row{text(row['id'])}:{text(row['created_timestamp'])}", answer)
        is_compaction = bool(amount(row["is_compaction"]))
        return msgspec.structs.replace(
            made,
            agent=f"{self._agent}/compaction".lstrip("/") if is_compaction else self._agent,
            model=text(row["model"]) or made.model,
            began_s=estimated(_not_after(made.began_s.value, ended_s)),
            ended_s=measured(ended_s),
            counts=tokens.counts(),
            cost_usd=cost_of(row),
            starts=starts,
            unknown_cache=tokens.unknown,
        )

    def _shared(self, lump: Tokens, answers: Sequence[_Answer]) -> Iterator[RecordedRequest]:
        if not answers:
            made = self._request("all", None)
            yield msgspec.structs.replace(
                made,
                counts=lump.counts(),
                cost_usd=estimated(lump.cost or None),
                notes=(TOGETHER,),
                starts="session",
                unknown_cache=lump.unknown,
            )
            return
        counts = shared_out(lump, [one.read for one in answers], [one.wrote for one in answers])
        costs = cost_shares(lump.cost or None, [one.read + one.wrote for one in answers])
        for at, answer in enumerate(answers):
            yield msgspec.structs.replace(
                self._request(f"answer{at}", answer),
                counts=counts[at],
                cost_usd=costs[at],
                starts="" if at else "session",
                unknown_cache=lump.unknown,
            )

    def _request(self, place: str, answer: _Answer | None) -> RecordedRequest:
        session = self._session
        config = table(session.fields.get("model_config"))
        made = RecordedRequest(
            id=f"{session.id}:{session.created_s}:{place}",
            session=self._root,
            agent=self._agent,
            file=str(session.path),
            model=text(config.get("model_name")) or text(config.get("model")),
            provider=provider(text(session.fields.get("provider_name"))),
        )
        if answer is None:
            return made
        begin, end = answer.before
        return msgspec.structs.replace(
            made,
            began_s=estimated(_not_after(answer.asked_s, answer.began_s)),
            ended_s=estimated(answer.began_s),
            gap=True,
            tools=tuple(self._tools(answer)),
            prompt=self._prompt(begin, end),
            output_text="".join(
                text(block.get("text")) for block in answer.content if block.get("type") == "text"
            ),
        )

    def _prompt(self, begin: int, end: int) -> Prompt | None:
        if not self._whole or self._prompts.cut:
            return None
        return self._prompts.of(self._pieces[begin:end])

    def _tools(self, answer: _Answer) -> Iterator[RecordedTool]:
        for block in answer.content:
            if text(block.get("type")) not in ("toolRequest", "frontendToolRequest"):
                continue
            id = text(block.get("id"))
            ended_s, failed = self._results.get(id, (None, False))
            called = table(table(block.get("toolCall")).get("value"))
            yield RecordedTool(
                text(called.get("name")),
                id,
                began_s=estimated(_not_after(answer.began_s, ended_s)),
                ended_s=measured(ended_s),
                failed=failed,
            )


def _answers(messages: Sequence[Message], pieces: Sequence[Piece]) -> list[_Answer]:
    """Messages of the model that follow one another are one answer; notices and summaries that the
    client put in are none."""
    found: list[_Answer] = []
    content: list[Table] = []
    begin, read, wrote = 0, 0, 0
    began_s: float | None = None
    asked_s: float | None = None
    for place, one in enumerate(messages):
        size = len(pieces[place].raw)
        if one.role == "assistant" and not _is_notice(one):
            if not content:
                begin, began_s = place, one.at_s
            content += one.content
            wrote += size
            continue
        if content:
            found.append(_Answer(began_s, asked_s, (0, begin), content, read, wrote))
            read, wrote, content = read + wrote, 0, []
        read += size
        asked_s = one.at_s
    if content:
        found.append(_Answer(began_s, asked_s, (0, begin), content, read, wrote))
    return found


def _not_after(began_s: float | None, ended_s: float | None) -> float | None:
    """A beginning, unless it is later than the end."""
    return None if began_s is not None and ended_s is not None and began_s > ended_s else began_s


def _is_carried(row: Table) -> bool:
    """Whether it stands for all requests before rows were kept."""
    return text(row["cost_source"]) == "carried_forward"


def _is_notice(one: Message) -> bool:
    kinds = {text(block.get("type")) for block in one.content}
    return one.about.get("userVisible") is False or kinds <= {"systemNotification"}


def _results(messages: Sequence[Message]) -> dict[str, tuple[float | None, bool]]:
    found: dict[str, tuple[float | None, bool]] = {}
    for one in messages:
        for block in one.content:
            if block.get("type") == "toolResponse":
                result = table(block.get("toolResult"))
                failed = text(result.get("status")) == "error" or bool(
                    table(result.get("value")).get("isError")
                )
                found[text(block.get("id"))] = one.at_s, failed
    return found
