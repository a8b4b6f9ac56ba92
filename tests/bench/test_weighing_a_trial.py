"""From figures to verdicts: each verdict has its reason, and doubt never enables."""

from typing import Any

import msgspec
import pytest

from reflexarc.bench.trial import answered_steps, divide, run_trial, wrong_answers
from reflexarc.bench.verdicts import overall_verdict, tool_verdicts
from reflexarc.reflex import Card, Certificate, Decision, Outcome, ProposedCall, ResultsFit, ToolRow
from reflexarc.reflex.evaluation import evaluate, summarise
from reflexarc.reflex.learning import learn
from reflexarc.sim import load_profiles
from reflexarc.steps import Message, Session, ToolCall
from reflexarc.traces import split_sessions
from reflexarc.traces.lines import Line
from reflexarc.traces.sessions import session_from_line
from tests.cli.conftest import shop_session


def outcome(
    name: str, *, exact: bool, acted: bool, session: str = "s", message: int = 1
) -> Outcome:
    call = ProposedCall(name, {"id": "x"}, 0.9)
    return Outcome(
        session=session, task=session, step=message, message=message,
        recorded=ToolCall("c", name, {"id": "x" if exact else "y"}), effect="read", thought=False,
        named_tool=name, proposed_tool=name, confidence=0.9, reason="below_threshold",
        named=True, exact=exact, among_three=exact, read_exact=exact, read_among_three=exact,
        decision=Decision("escalate", "below_threshold", call, 0.9),
        acted={"0.05": acted}, cpu_ms=0.1,
    )  # fmt: skip


def card(*rows: ToolRow, certified: bool, fits: bool | None = True) -> Card:
    threshold = 0.8 if certified else None
    certificate = Certificate(
        "model-based", "reads", "task", 0.05, 0.9, threshold, 0.04, 90, 1, 30, 1, 1.0, "p", 0, 0
    )
    fit = ResultsFit(90, 30, 0.6, 0.1, fits)
    return Card(9, 9, 9, 9, 0.5, 0.05, 0.9, (), 1, fit, rows, (certificate,))


def row(name: str, effect: Any) -> ToolRow:
    return ToolRow(name, effect, "because", 50, 20, 0.9)


def verdict_of(found: list[Outcome], *, certified: bool, effect: str = "read") -> str:
    (one,) = tool_verdicts(card(row("get", effect), certified=certified), found, 0.05)
    return one.verdict


@pytest.mark.parametrize(
    ("right", "wrong", "right_answered", "wrong_answered", "certified", "expected"),
    [
        (0, 0, 20, 0, True, "enable for reads"),
        (0, 0, 20, 1, True, "enable for reads"),
        (0, 0, 20, 3, True, "shadow only"),
        (18, 2, 0, 0, True, "shadow only"),
        (18, 2, 0, 0, False, "shadow only"),
        (8, 12, 0, 0, False, "do not enable"),
        (9, 0, 0, 0, False, "do not enable"),
    ],
)
def test_a_read_is_enabled_only_by_a_certificate_that_held(
    right: int, wrong: int, right_answered: int, wrong_answered: int, certified: bool, expected: str
) -> None:
    found = [
        *(outcome("get", exact=True, acted=False) for _ in range(right)),
        *(outcome("get", exact=False, acted=False) for _ in range(wrong)),
        *(outcome("get", exact=True, acted=True) for _ in range(right_answered)),
        *(outcome("get", exact=False, acted=True) for _ in range(wrong_answered)),
    ]
    assert verdict_of(found, certified=certified) == expected


@pytest.mark.parametrize("effect", ["write", "think"])
def test_writes_and_thoughts_are_never_enabled(effect: str) -> None:
    found = [outcome("get", exact=True, acted=True) for _ in range(50)]
    assert verdict_of(found, certified=True, effect=effect) == "do not enable"


def test_how_calls_divide_is_counted() -> None:
    calls = tuple(ToolCall(n, n, {}) for n in ("get", "put", "think", "unheard_of"))
    session = Session(
        "s", "t", (),
        (Message("user", "u"), Message("assistant", "", calls), Message("assistant", "done")),
    )  # fmt: skip
    found = divide([session], {"get": "read", "put": "write", "think": "think"})
    assert (found.steps, found.messages) == (2, 1)
    assert (found.calls, found.reads, found.writes, found.thinks) == (3, 1, 2, 1)


def test_a_step_is_answered_only_if_all_its_items_are() -> None:
    found = [
        outcome("get", exact=True, acted=True, message=1),
        outcome("get", exact=True, acted=False, message=1),
        outcome("get", exact=True, acted=True, message=3),
    ]
    assert answered_steps(found, "0.05") == {("s", 3)}


def test_examples_are_the_surest_wrong_answer_of_each_task() -> None:
    sure = msgspec.structs.replace(
        outcome("get", exact=False, acted=True),
        decision=Decision("act", "certified", ProposedCall("get", {"id": "sure"}, 0.99), 0.99),
    )
    elsewhere = msgspec.structs.replace(
        outcome("get", exact=False, acted=True), session="z", task="z"
    )
    found = [
        outcome("get", exact=False, acted=True),
        sure,
        elsewhere,
        outcome("get", exact=True, acted=True),
    ]
    call = ToolCall("c", "get", {"id": "y"})
    messages = (Message("user", "which?"), Message("assistant", "", (call,)))
    sessions = [Session(name, name, (), messages) for name in ("s", "z")]
    first, second = wrong_answers(found, sessions, "0.05", {"get": "read"})
    assert first.system_1 == 'get({"id":"sure"})'
    assert first.system_2 == 'get({"id":"y"})'
    assert first.after == "user: which?"
    assert (second.session, second.confidence) == ("z", 0.9)


def shop(count: int) -> list[Session]:
    return [
        session_from_line(Line("shop", n, msgspec.json.encode(shop_session(n))))
        for n in range(count)
    ]


def test_a_trial_says_what_learn_and_eval_say() -> None:
    sessions = shop(60)
    trial = run_trial(sessions, profile=load_profiles()["gpu"], max_error=0.1, seed=3)
    split = split_sessions(sessions, seed=3)
    reflex = learn([sessions[i] for i in split.train], max_error=0.1)
    by_hand = evaluate(reflex, [sessions[i] for i in split.test])
    assert trial.learned is not None
    ours, theirs = trial.learned.evaluation, by_hand
    assert msgspec.structs.replace(ours, latency_ms=theirs.latency_ms) == theirs
    assert trial.learned.card == reflex.card
    answered = sum(tool.answered for tool in trial.learned.tools)
    assert answered == theirs.acting["0.10"].answered
    assert sum(t.wrong for t in trial.learned.tools) == theirs.acting["0.10"].errors


def test_nothing_to_split_is_a_result() -> None:
    trial = run_trial(shop(1), profile=load_profiles()["gpu"])
    assert trial.learned is None
    assert trial.verdict == "do not enable"
    assert "nothing to split" in trial.because


def test_overall_doubt_does_not_enable() -> None:
    sessions = shop(12)
    reflex = learn(sessions, max_error=0.05)
    found = [outcome("get", exact=n > 5, acted=True, message=n) for n in range(20)]
    found = [
        msgspec.structs.replace(one, acted=dict.fromkeys(("0.02", "0.05", "0.10"), True))
        for one in found
    ]
    evaluation = summarise(reflex, sessions, found)
    whole = card(row("get", "read"), certified=True)
    tools = tool_verdicts(whole, found, 0.05)
    verdict, because = overall_verdict(whole, evaluation, tools, 0.05)
    assert verdict == "shadow only"
    assert "6 of 20 answers on new tasks were wrong" in because
    mixed_up = card(row("get", "read"), certified=True, fits=False)
    verdict, because = overall_verdict(mixed_up, evaluation, tools, 0.05)
    assert verdict == "do not enable"
    assert "do not belong to the calls" in because
