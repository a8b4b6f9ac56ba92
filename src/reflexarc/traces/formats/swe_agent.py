"""SWE-agent trajectories (`.traj`): a request for each call of its model's API.

Such a file counts tokens and money for the whole run only (`info.model_stats`). Its requests get
shares of those sums in proportion to their text, said to be estimated; the sums stay as they are.
A call that left no step (its answer was asked for again) is a request of which nothing is known.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from reflexarc.steps.prompt import Prompt
from reflexarc.traces.documents import Document, documents, tally
from reflexarc.traces.estimates import cost_shares, shares
from reflexarc.traces.formats.swe_steps import Step, steps_of
from reflexarc.traces.logs import Head
from reflexarc.traces.loose import Table, amount, decoded, table, tables, text
from reflexarc.traces.models import bare, owner
from reflexarc.traces.references import LEFT_OUT, References
from reflexarc.traces.requests import ABSENT, Counts, Figure, FileReport, RecordedRequest, estimated

MAX_CALLS = 100_000
"""A run that says it made more calls is damaged; its steps are what is counted."""


class SweAgent:
    name = "swe-agent"

    def recognises(self, head: Head) -> bool:
        keys = head.top.keys
        if keys & {"trajectory_format", "messages"}:
            return False
        return keys >= {"trajectory", "history"} or (
            head.path.suffix == ".traj" and bool(keys & {"trajectory", "history", "attempts"})
        )

    def read(self, paths: Sequence[Path], reports: dict[Path, FileReport]) -> list[RecordedRequest]:
        found: list[RecordedRequest] = []
        references = References()
        for document in documents(paths, reports):
            found += _requests(document, references)
        tally(found, reports)
        return found


def _requests(document: Document, references: References) -> list[RecordedRequest]:
    run = table(document.value)
    report = document.report
    attempts = tables(run.get("attempts"))
    # a run of several attempts repeats the best one at its top, with the sums of all
    steps = (
        [
            step
            for at, one in enumerate(attempts, 1)
            for step in steps_of(one, f"attempt-{at}", references)
        ]
        if attempts
        else steps_of(run, "", references)
    )
    if any(step.left_out for step in steps):
        report.note(LEFT_OUT)
    stats = table(table(run.get("info")).get("model_stats"))
    calls = _calls(stats, len(steps), report)
    if calls < len(steps):
        report.skip("steps without a call", len(steps) - calls)
        # of steps that cannot all have been calls, those without an answer were none
        first = sorted(range(len(steps)), key=lambda at: not steps[at].response_bytes)[:calls]
        steps = [steps[at] for at in sorted(first)]
    config = _config(run, attempts)
    model = text(table(table(config.get("agent")).get("model")).get("name"))
    problem = text(table(config.get("problem_statement")).get("id"))
    session = f"{problem or document.path.stem} {document.digest[:8]}"
    made = [_step(document, session, model, step) for step in steps]
    made += [
        RecordedRequest(
            id=f"{document.digest}:again:{number}",
            session=session,
            file=str(document.path),
            model=bare(model),
            provider=owner(model),
            notes=("its answer was asked for again and is not in the log",),
        )
        for number in range(calls - len(steps))
    ]
    return _with_shares(made, steps, stats, report)


def _calls(stats: Table, steps: int, report: FileReport) -> int:
    given = amount(stats.get("api_calls"))
    if given is None:
        report.notes.append("how many calls were made is not in this log: each step is one")
        return steps
    if given > MAX_CALLS:
        report.notes.append(f"its {given:.0f} calls are no number to believe: each step is one")
        return steps
    if not given and steps:
        report.notes.append("it made no call to a model: a demonstration, or steps by hand")
    return int(given)


def _config(run: Table, attempts: list[Table]) -> Table:
    for one in (run, *attempts):
        config = one.get("replay_config")
        if isinstance(config, str):
            try:
                config = decoded(config)
            except ValueError:
                continue
        if table(config):
            return table(config)
    return {}


def _step(document: Document, session: str, model: str, step: Step) -> RecordedRequest:
    return RecordedRequest(
        id=f"{document.digest}:{step.place}",
        session=session,
        file=str(document.path),
        agent=step.agent,
        model=bare(model),
        provider=owner(model),
        prompt=step.prompt,
        tools=step.tools,
        output_text=step.response,
    )


def _with_shares(
    made: list[RecordedRequest], steps: list[Step], stats: Table, report: FileReport
) -> list[RecordedRequest]:
    sent, received = amount(stats.get("tokens_sent")), amount(stats.get("tokens_received"))
    if made and not sent and not received:
        report.notes.append("its model counted no tokens")
        sent = received = None
    elif made:
        note = "tokens and cost are known for a whole run only; a request's are its share by text"
        if note not in report.notes:
            report.notes.append(note)
    cost = amount(stats.get("instance_cost")) or None
    extra = len(made) - len(steps)
    read = _padded([_size(step.prompt) for step in steps], extra)
    wrote = _padded([step.response_bytes for step in steps], extra)
    prompts, outputs = _split(sent, read), _split(received, wrote)
    weights = [a + b for a, b in zip(read, wrote, strict=True)]
    costs = cost_shares(cost, weights)
    return [
        msgspec.structs.replace(
            one, counts=Counts(prompt=prompts[index], output=outputs[index]), cost_usd=costs[index]
        )
        for index, one in enumerate(made)
    ]


def _split(total: float | None, weights: list[int]) -> list[Figure]:
    if total is None:
        return [ABSENT] * len(weights)
    if len(weights) == 1:
        return [Figure(total, "measured")]
    return [estimated(share) for share in shares(total, weights)]


def _padded(sizes: list[int], extra: int) -> list[int]:
    """Calls that left nothing weigh what the others do on average."""
    average = sum(sizes) // len(sizes) if sizes else 0
    return [*sizes, *([average] * extra)]


def _size(prompt: Prompt | None) -> int:
    return 0 if prompt is None else sum(len(piece.raw) for piece in prompt.pieces)
