"""How an arm is judged: every act is put to System 2, and intervals are the exact ones."""

import asyncio
from decimal import Decimal
from pathlib import Path

import pytest
from rich.console import Console

from reflexarc.bench.baseline import Baseline
from reflexarc.bench.demo import DemoOptions, DemoReport, Learned
from reflexarc.bench.demo_arms import ArmResult, BaselineFront, interval, judge_arm
from reflexarc.bench.demo_report import print_report
from reflexarc.bench.desk import ReturnsDeskSystem2, TaskRun, make_task
from reflexarc.bench.desk.record import InProcess, record, run_tasks, session_of
from reflexarc.bench.desk.schemas import READ_TOOLS
from reflexarc.bench.desk.world import MODEL
from reflexarc.sim import load_profiles

POLICY = ReturnsDeskSystem2()


def judged(runs: list[TaskRun], priced: bool = False, service: str = "gpu") -> ArmResult:
    profile = load_profiles()[service] if priced else None
    return asyncio.run(judge_arm("arm", runs, lambda _: InProcess(POLICY), MODEL, profile))


def one_run() -> TaskRun:
    return asyncio.run(record(["judged"]))[0]


def test_acts_that_system2_would_have_made_are_right() -> None:
    run = one_run()
    for step in run.steps[:-1]:
        step.acted = True
    result = judged([run])
    assert (result.acted, result.wrong) == (len(run.steps) - 1, 0)
    assert len(result.escalations) == 1
    assert result.escalations[0].system2.startswith("a message")


def test_an_act_with_another_argument_is_wrong_and_told_with_what_was_expected() -> None:
    run = one_run()
    run.steps[3].acted = True
    call = run.messages[run.steps[3].message]["tool_calls"][0]["function"]
    expected = f"{call['name']}({call['arguments']})"
    call["arguments"] = '{"shipment_id":"1ZNOTTHISONE00"}'
    result = judged([run])
    assert (result.acted, result.wrong) == (1, 1)
    assert result.wrong_acts[0].expected == expected
    assert "1ZNOTTHISONE00" in result.wrong_acts[0].acted


def test_only_steps_of_system2_cost_tokens() -> None:
    run = one_run()
    for step in run.steps:
        step.prompt_tokens, step.cached_tokens, step.output_tokens = 2000, 1000, 10
    whole = judged([run], priced=True)
    run.steps[0].acted = True
    less = judged([run], priced=True)
    assert whole.usd_per_task is not None
    assert less.usd_per_task is not None
    step_usd = load_profiles()["gpu"].cost_usd(2000, 1000, 10)
    assert whole.usd_per_task == step_usd * len(run.steps)
    assert whole.usd_per_task - less.usd_per_task == pytest.approx(step_usd, rel=Decimal("1e-20"))


def printed(report: DemoReport) -> str:
    console = Console(width=200)
    with console.capture() as captured:
        print_report(report, console)
    return captured.get()


def test_energy_is_reported_where_a_power_is_known_and_never_else() -> None:
    run = one_run()
    for step in run.steps:
        step.prompt_tokens, step.cached_tokens, step.output_tokens = 2000, 1000, 10
    run.steps[0].acted = True
    powered = judged([run], priced=True, service="jalapeno")
    step_j = load_profiles()["jalapeno"].energy_j(2000, 1000, 10)
    assert step_j is not None
    assert powered.joules_per_task == pytest.approx(step_j * (len(run.steps) - 1))
    silent = judged([run], priced=True)
    assert silent.joules_per_task is None
    learned = Learned(1, 0, len(run.steps), 0.5, 1000, 0.05, None)
    options = DemoOptions(tasks=1, profile="jalapeno")
    text = printed(DemoReport(options, True, learned, [powered], [], 1.0))
    assert f"Energy a task: arm {powered.joules_per_task:,.0f} J" in text
    assert "energy is simulated: 700 W" in text
    assert "Energy" not in printed(DemoReport(options, True, learned, [silent], [], 1.0))


@pytest.mark.parametrize(("errors", "n"), [(0, 1), (0, 50), (1, 1), (2, 108), (9, 40), (40, 40)])
def test_intervals_are_those_of_clopper_and_pearson(errors: int, n: int) -> None:
    stats = pytest.importorskip("scipy.stats", reason="scipy comes with the extra [learn]")
    exact = stats.binomtest(errors, n).proportion_ci(0.95, "exact")
    assert interval(errors, n) == pytest.approx((exact.low, exact.high), abs=1e-6)


def test_the_baseline_acts_on_reads_only_and_its_tasks_still_end_well(tmp_path: Path) -> None:
    learned = Baseline.learn(session_of(run) for run in asyncio.run(record(["a", "b", "c", "d"])))
    runs = asyncio.run(
        run_tasks(
            [make_task("judged")], lambda _: BaselineFront(learned, InProcess(POLICY)), tmp_path
        )
    )
    acted = [
        call["function"]["name"]
        for step in runs[0].steps
        if step.acted
        for call in runs[0].messages[step.message]["tool_calls"]
    ]
    assert acted
    assert set(acted) <= READ_TOOLS
    assert runs[0].faults == []


def test_every_wrong_act_and_fault_is_printed() -> None:
    run = one_run()
    run.faults.append("RR-000000: ended as something else")
    for number in (2, 3):
        run.steps[number].acted = True
        call = run.messages[run.steps[number].message]["tool_calls"][0]["function"]
        call["arguments"] = f'{{"planted":"{number}"}}'
    learned = Learned(1, 0, len(run.steps), 0.5, 1000, 0.05, None)
    report = DemoReport(DemoOptions(tasks=1), True, learned, [judged([run])], [], 1.0)
    text = printed(report)
    assert '{"planted":"2"}' in text
    assert '{"planted":"3"}' in text
    assert "RR-000000: ended as something else" in text
    assert "Nothing could be certified" in text
    assert "0/1" in text
