"""The shadow report: eval's figures from what was recorded, and what is told beside them."""

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reflexarc.lifecycle.report import Report, report
from reflexarc.lifecycle.reported import Period
from reflexarc.reflex import Evaluation, Outcome, Reflex, evaluate, learn, outcomes
from reflexarc.steps import Session
from reflexarc.store.recording import Recording
from reflexarc.store.records import Audited, Judged, Prediction
from reflexarc.store.store import Store
from reflexarc.traces.lines import Line
from reflexarc.traces.sessions import session_from_line
from tests.cli.conftest import Run, run, shop_session
from tests.store.stepping import BEGAN_S, at, calls, record, says, user

__all__ = ["run"]
DAY_S = 86_400.0
PLAIN = Prediction(
    position=0, recorded_tool="find", recorded={"id": "1"}, proposed_tool="find",
    proposed={"id": "1"}, effect="read", thought=False, named=True, exact=True, among_three=True,
    read_exact=True, read_among_three=True, confidence=0.9, reason="certified",
    acted={"0.02": False, "0.05": True}, would_act=True, cpu_ms=0.5,
)  # fmt: skip
WRONG = msgspec.structs.replace(
    PLAIN, proposed={"id": "2"}, exact=False, among_three=False, read_exact=False,
    read_among_three=False,
)  # fmt: skip
TEXT = msgspec.structs.replace(
    PLAIN, recorded_tool=None, recorded=None, effect=None, exact=False, among_three=False,
    read_exact=False, read_among_three=False, acted={"0.02": False, "0.05": False},
    would_act=False, named=False, reason="below_threshold", confidence=0.2,
)  # fmt: skip


def shop_run(number: int, run_number: int) -> dict[str, Any]:
    """The second run of every third task goes another way: reasons and a batch."""
    session = shop_session(number, run_number)
    if run_number and number % 3 == 0:
        messages = session["messages"]
        call = messages[6]["tool_calls"][0]["function"]
        call["arguments"] = call["arguments"].replace("returned", "broken")
        messages[2]["tool_calls"] += messages[4]["tool_calls"]
        messages[2:6] = [messages[2], messages[3], messages[5]]
    return session


def sessions_of(raws: Sequence[dict[str, Any]]) -> list[Session]:
    return [
        session_from_line(Line("s.jsonl", number, json.dumps(raw).encode()))
        for number, raw in enumerate(raws, 1)
    ]


def prediction(one: Outcome, position: int) -> Prediction:
    call = one.decision.call
    return Prediction(
        position=position, recorded_tool=one.named_tool,
        recorded=one.recorded.arguments if one.recorded else None,
        proposed_tool=one.proposed_tool, proposed=call.arguments if call else None,
        effect=one.effect, thought=one.thought, named=one.named, exact=one.exact,
        among_three=one.among_three, read_exact=one.read_exact,
        read_among_three=one.read_among_three, confidence=one.confidence, reason=one.reason,
        acted=one.acted, would_act=False, cpu_ms=one.cpu_ms,
    )  # fmt: skip


def judged_step(
    recording: Recording, messages: list[dict[str, Any]], answer: dict[str, Any],
    *predictions: Prediction, **of_step: Any,
) -> None:  # fmt: skip
    one = record(recording, messages, answer, **of_step)
    if predictions:
        recording.judged(Judged(one.number, one.gateway, list(predictions)))


def made(directory: Path, **options: Any) -> Report:
    store = Store.open(directory / "reflexarc.db", create=False)
    try:
        with store.reading() as connection:
            return report(connection, **options)
    finally:
        store.close()


def figures(evaluation: Evaluation) -> dict[str, Any]:
    """What is the same wherever it was measured."""
    plain = msgspec.to_builtins(evaluation)
    del plain["latency_ms"]
    return plain


@pytest.fixture(scope="module")
def shop_reflex() -> Reflex:
    return learn(sessions_of([shop_session(number) for number in range(80)]))


@pytest.mark.parametrize("policy", ["full", "hashed"])
def test_the_figures_are_those_of_eval(policy: str, tmp_path: Path, shop_reflex: Reflex) -> None:
    raws = [shop_run(number, again) for number in range(100, 118) for again in (0, 1)]
    sessions = sessions_of(raws)
    recording = at(tmp_path)
    for raw, session in zip(raws, sessions, strict=True):
        items: defaultdict[int, list[Outcome]] = defaultdict(list)
        for one in outcomes(shop_reflex, [session]):
            items[one.message].append(one)
        for message, found in items.items():
            judged_step(
                recording, raw["messages"][:message], raw["messages"][message],
                *(prediction(one, position) for position, one in enumerate(found)),
                record=policy, session=raw["id"], task=raw["task"],
            )  # fmt: skip
    assert recording.flush().fault == ""
    (route,) = made(tmp_path).routes
    evaluation = evaluate(shop_reflex, sessions)
    assert figures(route.evaluation) == figures(evaluation)
    assert route.evaluation.certified["0.05"].answered > 0
    assert route.evaluation.certified["0.05"].errors == evaluation.certified["0.05"].errors
    assert 0 < (route.evaluation.repeat_rate or 0) < 1
    recording.close()


def test_what_it_would_have_saved_counts_whole_and_right_answers_alone(tmp_path: Path) -> None:
    recording = at(tmp_path)
    usage = {"prompt_tokens": 1000, "completion_tokens": 20}
    batch = calls("find", {"id": "1"})
    second = msgspec.structs.replace(PLAIN, position=1, acted={"0.02": False, "0.05": False})
    for number, predictions in enumerate([(PLAIN,), (WRONG,), (PLAIN, second), (TEXT,)]):
        judged_step(
            recording, [user(f"task {number}")], batch, *predictions,
            task=f"t{number}", usage=usage,
        )  # fmt: skip
    assert recording.flush().fault == ""
    (route,) = made(tmp_path).routes
    saved = route.saved["0.05"]
    assert (saved.steps, saved.prompt_tokens, saved.completion_tokens) == (1, 1000, 20)
    assert (saved.system2_ms, saved.tokens_estimated) == (120.0, False)
    assert saved.cost_micro_usd is None
    assert route.saved["0.02"].steps == 0
    assert route.would_act == 3
    one = route.evaluation.certified["0.05"]
    assert (one.answered, one.errors) == (3, 1)
    assert saved.error_upper95 > one.error
    recording.close()


@pytest.mark.parametrize("policy", ["full", "hashed"])
def test_the_worst_are_shown_as_far_as_they_were_recorded(policy: str, tmp_path: Path) -> None:
    recording = at(tmp_path)
    unsure = msgspec.structs.replace(
        WRONG, confidence=0.99, acted={"0.02": False, "0.05": False}, would_act=False
    )
    for number, one in enumerate((PLAIN, unsure, WRONG)):
        judged_step(
            recording, [user(f"task {number}")], calls("find", {"id": "1"}), one,
            record=policy, task=f"t{number}",
        )  # fmt: skip
    assert recording.flush().fault == ""
    first, second = made(tmp_path).routes[0].worst
    assert (first.answered, first.confidence) == (True, 0.9)
    assert (second.answered, second.confidence) == (False, 0.99)
    assert first.differing == ["id"]
    assert first.proposed == ({"id": "2"} if policy == "full" else None)
    assert first.recorded == ({"id": "1"} if policy == "full" else None)
    recording.close()


def test_a_step_asked_for_again_counts_once_as_its_session_went_on(tmp_path: Path) -> None:
    recording = at(tmp_path)
    for one in (WRONG, PLAIN):
        judged_step(
            recording, [user("a task")], calls("find", {"id": "1"}), one, session="s", task="t"
        )
    record(recording, [user("a task")], None, session="s", task="t")
    assert recording.flush().fault == ""
    (route,) = made(tmp_path).routes
    assert (route.steps_seen, route.evaluation.steps, route.evaluation.call_exact_top1) == (1, 1, 1)
    recording.close()


def test_routes_days_and_reasons_stand_apart(tmp_path: Path) -> None:
    recording = at(tmp_path)
    for day in range(3):
        judged_step(
            recording, [user(f"task {day}")], calls("find", {"id": "1"}),
            WRONG if day == 1 else PLAIN,
            route="/a", task=f"t{day}", began_s=BEGAN_S + day * DAY_S,
        )  # fmt: skip
    judged_step(recording, [user("else")], says("hello"), TEXT, route="/b", task="t")
    record(recording, [user("no one looked")], says("hello"), route="/c")
    record(recording, [user("it failed")], None, route="/a", began_s=BEGAN_S)
    recording.audited(Audited(1, "g1", "/a", "find", "agree", BEGAN_S))
    assert recording.flush().fault == ""
    whole = made(tmp_path)
    assert [route.route for route in whole.routes] == ["/a", "/b"]
    assert whole.silent == {"/c": {"no_decision": 1}}
    a = whole.routes[0]
    assert [(day.day, day.calls, day.answered, day.errors) for day in a.days] == [
        ("2027-01-15", 1, 1, 0), ("2027-01-16", 1, 1, 1), ("2027-01-17", 1, 1, 0)
    ]  # fmt: skip
    assert a.unjudged == {"no_answer": 1}
    assert a.audits == {"agree": 1}
    (alone,) = made(
        tmp_path, route="/a", period=Period(BEGAN_S + DAY_S, BEGAN_S + 2 * DAY_S)
    ).routes
    assert [day.day for day in alone.days] == ["2027-01-16"]
    assert alone.evaluation.call_exact_top1 == 0
    recording.close()


def _verdict(directory: Path, predictions: Sequence[Prediction]) -> str:
    directory.mkdir()
    recording = at(directory)
    for number, one in enumerate(predictions):
        judged_step(
            recording, [user(f"task {number}")], calls("find", {"id": "1"}), one, task=f"t{number}"
        )
    assert recording.flush().fault == ""
    recording.close()
    return made(directory).routes[0].verdict


def test_the_verdict_needs_enough_and_right_answers(tmp_path: Path) -> None:
    quiet = msgspec.structs.replace(PLAIN, acted={"0.05": False}, would_act=False)
    lost = msgspec.structs.replace(WRONG, acted={"0.05": False}, would_act=False)
    assert _verdict(tmp_path / "a", [PLAIN] * 80) == "enable for reads"
    assert _verdict(tmp_path / "b", [PLAIN] * 20) == "shadow only"
    assert _verdict(tmp_path / "c", [PLAIN] * 20 + [WRONG] * 4) == "do not enable"
    assert _verdict(tmp_path / "d", [quiet] * 20) == "shadow only"
    assert _verdict(tmp_path / "e", [quiet] * 5 + [lost] * 20) == "do not enable"
    assert _verdict(tmp_path / "f", [TEXT] * 5) == "do not enable"


def test_reflexes_judged_at_other_levels_are_read_together(tmp_path: Path) -> None:
    recording = at(tmp_path)
    for number, acted in enumerate(({"0.05": True}, {"0.05": True, "0.25": True})):
        one = msgspec.structs.replace(PLAIN, acted=acted)
        judged_step(recording, [user(f"{number}")], calls("find", {"id": "1"}), one, task="t")
    assert recording.flush().fault == ""
    (route,) = made(tmp_path, max_error=0.3).routes
    assert route.level == "0.25"
    assert [route.evaluation.certified[name].answered for name in ("0.05", "0.25")] == [2, 1]
    recording.close()


def test_the_command_shows_it_and_writes_json(state_dir: Path, run: Run) -> None:
    recording = at(state_dir)
    for number, one in enumerate((PLAIN, WRONG, TEXT)):
        judged_step(
            recording, [user(f"task {number}")], calls("find", {"id": "1"}), one, task=f"t{number}"
        )
    record(recording, [user("x")], says("y"), route="/quiet")
    assert recording.flush().fault == ""
    status, shown, _ = run("report")
    assert status == 0
    for words in (
        "Verdict: shadow only",
        "Tool by tool",
        "differing: id",
        "Route /quiet: no step was judged",
    ):
        assert words in shown
    status, text, _ = run("report", "--json", "--route", "/")
    found = json.loads(text)
    assert status == 0
    assert [route["route"] for route in found["routes"]] == ["/"]
    assert found["routes"][0]["evaluation"]["certified"]["0.05"]["errors"] == 1
    assert msgspec.convert(found, Report) == msgspec.structs.replace(made(state_dir, route="/"))
    recording.close()


def test_where_there_is_nothing_to_tell_it_says_why(state_dir: Path, run: Run) -> None:
    status, _, err = run("report")
    assert (status, "nothing was recorded yet" in err) == (1, True)
    recording = at(state_dir)
    record(recording, [user("x")], says("y"))
    assert recording.flush().fault == ""
    status, _, err = run("report", "--json")
    assert (status, "none was judged" in err) == (1, True)
    status, _, err = run("report", "--route", "/nowhere")
    assert (status, "no step was recorded on /nowhere" in err) == (1, True)
    status, _, err = run("report", "--until", "2020-01-01")
    assert (status, "in that time" in err) == (1, True)
    assert run("report", "--since", "yesterday")[0] == 2
    recording.close()
