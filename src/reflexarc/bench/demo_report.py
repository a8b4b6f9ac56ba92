"""Says what the demo measured, in tables for people. Nothing is left out because it looks bad."""

from collections import Counter
from collections.abc import Iterable

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from reflexarc.bench.demo import SLOW, START_WITHIN_S, DemoReport
from reflexarc.bench.demo_arms import ArmResult, Escalation
from reflexarc.sim import load_profiles
from reflexarc.sim.profiles import ENERGY

PUBLISHED_STEPS_PER_TASK = 20
PUBLISHED = (  # arm, step ms, task s, dollars per 10,000 steps
    ("GPU", 1440.0, 38.2, "32.00"),
    ("LPU", 580.0, 18.4, "14.50"),
    ("with System 1", 18.2, 3.6, "1.20"),
)
_ESCALATIONS_SHOWN = 5
_LATE_SHARE = 0.02  # of steps: above this, missed deadlines get a sentence of their own
_LISTED_ONE_BY_ONE = 40  # more of the baseline's would crowd out what comes after them


def print_report(report: DemoReport, console: Console) -> None:
    """The whole report: what was learned, the arms, the published rows, wrong acts, escalations."""
    _learned(report, console)
    console.print(_latency_table(report.arms))
    console.print(_outcome_table(report.arms))
    _notes(report, console)
    console.print(_published_table())
    console.print(
        f"Published figures, not measured here: {PUBLISHED_STEPS_PER_TASK} steps a task on "
        "contexts of 25,000 tokens. What a task's published seconds leave after its steps is the "
        "last column: time that is no model's."
    )
    for point in report.published:
        console.print(
            f"The simulated {point.profile} service took {point.latency_ms:,.0f} ms over HTTP for "
            f"that step ({point.prompt_tokens:,} tokens, {point.cached_tokens} cached, "
            f"{point.output_tokens} out). In the arms above most of a prompt is cached."
        )
    console.print()
    for arm in report.arms:
        _wrong_acts(arm, console, by_kind=arm.arm == report.options.baseline_arm)
    _escalations(report.arms[-1], console)
    _how_to_go_on(report, console)


def _learned(report: DemoReport, console: Console) -> None:
    learned = report.learned
    console.print(
        f"Learned from {learned.sessions} recorded tasks ({learned.steps} steps, "
        f"{learned.verified} tasks verified) in {learned.seconds:.1f} s; the reflex has "
        f"{learned.reflex_bytes / 1e3:,.0f} kB."
    )
    certificate = learned.certificate
    if certificate is None:
        console.print(
            f"[bold]Nothing could be certified at {learned.max_error:.0%} wrong acts, so System 1 "
            "may not act:[/bold] every step below went to System 2. More recorded tasks may help "
            "(--learn-tasks)."
        )
    else:
        if learned.max_error > report.options.max_error:
            console.print(
                f"[bold]Nothing could be certified at {report.options.max_error:.0%}, so System 1 "
                f"acts under {learned.max_error:.0%} here.[/bold]"
            )
        console.print(
            f"Certificate: with {certificate.confidence_level:.0%} confidence at most "
            f"{certificate.max_error:.0%} of acts ({certificate.scope}) differ from System 2; "
            f"judged by cross-fitting, each of the {learned.sessions} tasks by a model that had "
            f"not seen it: {certificate.errors} wrong in {certificate.n} answers "
            f"({certificate.tasks} tasks have any)."
        )
    console.print()


def _latency_table(arms: Iterable[ArmResult]) -> Table:
    grid = _grid("Time (ms a step: p50, p99, mean; p50 of acts and of System 2) and money")
    for column in ("p50", "p99", "mean", "acts", "Sys. 2", "task s", "task $", "10k steps $"):
        grid.add_column(column, justify="right", no_wrap=True)
    for arm in arms:
        grid.add_row(
            arm.arm,
            *(_ms(value) for value in (arm.step_ms.p50, arm.step_ms.p99, arm.step_ms.mean)),
            _ms(arm.acted_ms.p50),
            _ms(arm.system2_ms.p50),
            f"{arm.task_s_mean:.1f}",
            "-" if arm.usd_per_task is None else f"{arm.usd_per_task:.5f}",
            "-" if arm.usd_per_10k_steps is None else f"{arm.usd_per_10k_steps:.2f}",
        )
    return grid


def _outcome_table(arms: Iterable[ArmResult]) -> Table:
    grid = _grid("What System 1 did, and what became of the tasks")
    for column in ("steps", "acts", "coverage", "wrong acts", "wrong, 95% interval", "verified"):
        grid.add_column(column, justify="right")
    for arm in arms:
        limits = arm.wrong_interval
        grid.add_row(
            arm.arm,
            str(arm.steps),
            str(arm.acted),
            f"{arm.coverage:.1%}",
            f"{arm.wrong} ({arm.wrong / arm.acted:.1%})" if arm.acted else "-",
            f"{limits[0]:.1%} to {limits[1]:.1%}" if limits else "-",
            f"{arm.verified}/{arm.tasks}",
        )
    return grid


def _notes(report: DemoReport, console: Console) -> None:
    options = report.options
    if report.scripted:
        console.print(
            "This System 2 is a script that follows a handbook and varies its order and wording; "
            "its latency is simulated from stated profiles (reflexarc/sim/profiles.toml), and so "
            "are its prices: these tables show how the parts work together, not what your LLM "
            "does. Real in them: the reflex, the gateway, HTTP, the tools, the databases."
        )
    console.print(
        f"The same {options.tasks} new tasks, tools and tool time ({options.tool_time_ms:.0f} ms a "
        "call) in every arm, "
        + (f"all started within {START_WITHIN_S:.0f} s" if report.scripted else "a few at once")
        + (", waits scaled by " + str(options.time_scale) if options.time_scale != 1 else "")
        + ". A wrong act is a call that System 2, asked at that very step, would not have made; "
        "the interval treats acts as independent. Verified: the database ended as the handbook "
        "wants it, whatever way led there. Cached input is priced as cached; acts cost no tokens."
    )
    if report.scripted:
        prices = "; ".join(
            f"{name} {profile.usd_per_million_input}, {profile.usd_per_million_cached_input}, "
            f"{profile.usd_per_million_output}"
            for name, profile in load_profiles().items()
            if name in (SLOW, report.options.profile)
        )
        console.print(f"Dollars per million tokens of input, cached input, output: {prices}.")
    _energy(report, console)
    _baseline_apart(report, console)
    for arm in report.arms:
        for fault in arm.faults[:5]:
            console.print(f"[bold]{arm.arm}: not verified:[/bold] {fault}", highlight=False)
        if len(arm.faults) > 5:
            console.print(f"{arm.arm}: and {len(arm.faults) - 5} more faults (see --json)")
    console.print()


def _energy(report: DemoReport, console: Console) -> None:
    """Of the arms whose profile gives a power; the others are not mentioned."""
    known = [arm for arm in report.arms if arm.joules_per_task is not None]
    power_w = load_profiles()[report.options.profile].power_w if known else None
    if power_w is None:
        return
    each = "; ".join(
        f"{arm.arm} {arm.joules_per_task:,.0f} J ({arm.joules_per_task / 3600:.3g} Wh)"
        for arm in known
        if arm.joules_per_task is not None
    )
    console.print(f"Energy a task: {each}. Read it so: {ENERGY.format(power_w=power_w)}.")


def _baseline_apart(report: DemoReport, console: Console) -> None:
    """What the plain baseline is let do that System 1 is not, and what that costs."""
    by_name = {arm.arm: arm for arm in report.arms}
    options = report.options
    baseline, alone = by_name.get(options.baseline_arm), by_name.get(options.profile)
    if baseline is None or alone is None:
        return
    unverified = baseline.tasks - baseline.verified
    console.print(
        f"{options.baseline_arm} has no certificate: it acts on every read it has a guess for, "
        "with no bound on its errors, and in the agent's process, without HTTP. So its times and "
        f"coverage do not compare with {options.reflexarc_arm}'s. {baseline.wrong} of its "
        f"{baseline.acted} acts were wrong, and its tasks took {baseline.steps} steps where those "
        f"of {options.profile} took {alone.steps} ({baseline.steps - alone.steps:+}): wrong reads "
        "are steps of their own. "
        + (
            "They happened to harm no task here."
            if not unverified
            else f"{unverified} of its {baseline.tasks} tasks did not end as they should."
        )
    )


def _published_table() -> Table:
    grid = _grid("Published figures")
    for column in ("step ms", "task s", "$ per 10k steps", "non-model s"):
        grid.add_column(column, justify="right")
    for arm, step_ms, task_s, usd in PUBLISHED:
        rest_s = task_s - PUBLISHED_STEPS_PER_TASK * step_ms / 1e3
        grid.add_row(arm, f"{step_ms:,.1f}", f"{task_s:.1f}", usd, f"{rest_s:.1f}")
    return grid


def _wrong_acts(arm: ArmResult, console: Console, *, by_kind: bool) -> None:
    if not arm.wrong_acts:
        if arm.acted:
            console.print(f"{arm.arm}: no wrong act in {arm.acted}.\n")
        return
    if arm.wrong <= _LISTED_ONE_BY_ONE or not by_kind:
        console.print(f"[bold]{arm.arm}: every wrong act ({arm.wrong} of {arm.acted})[/bold]")
        for act in arm.wrong_acts:
            _plain(console, f"  {act.task} step {act.step}: acted {act.acted}")
            _plain(console, f"      System 2: {act.expected}")
    else:
        console.print(
            f"[bold]{arm.arm}: every wrong act ({arm.wrong} of {arm.acted}), by kind[/bold] "
            "(--json has them one by one)"
        )
        kinds = Counter((_kind(act.acted), _kind(act.expected)) for act in arm.wrong_acts)
        for (acted, expected), count in kinds.most_common():
            _plain(console, f"  {count:4} x acted {acted}, System 2: {expected}")
    console.print()


def _kind(said: str) -> str:
    """A call's name, or "a message"; "the same call, other arguments" shows as the same name."""
    return said.split("(")[0].split(":")[0]


def _plain(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def _escalations(arm: ArmResult, console: Console) -> None:
    if not arm.escalations:
        return
    reasons = Counter(one.reason for one in arm.escalations).most_common()
    counted = ", ".join(f"{reason or 'none given'} {n}" for reason, n in reasons)
    console.print(f"[bold]{arm.arm}: {len(arm.escalations)} escalations[/bold] ({counted})")
    late = sum(one.reason == "deadline" for one in arm.escalations)
    if late > _LATE_SHARE * arm.steps:
        console.print(
            f"[bold]{late} of {arm.steps} steps went to System 2 only because no decision came "
            "within the gateway's deadline:[/bold] this machine was busy, with these agents and "
            "their simulator or with other work. Coverage is lower for it than on an idle machine."
        )
    for one in _varied(arm.escalations):
        _plain(console, f"  {one.task} step {one.step}: {one.reason}; System 2: {one.system2}")
    console.print()


def _varied(escalations: list[Escalation]) -> list[Escalation]:
    """Five of them, each reason once before any comes twice."""
    firsts = list({one.reason: one for one in reversed(escalations)}.values())
    rest = [one for one in escalations if one not in firsts]
    return (firsts + rest)[:_ESCALATIONS_SHOWN]


def _how_to_go_on(report: DemoReport, console: Console) -> None:
    console.print(f"Took {report.seconds:.0f} s.")
    if report.scripted:
        console.print(
            "With a real System 2: reflexarc demo --upstream https://HOST/v1 --model NAME (asks it "
            "for every step; its key from --api-key-env). With your own agent: record its "
            "sessions, `reflexarc try FILE`, `reflexarc learn FILE -o agent.reflex`, then point "
            "its base URL at `reflexarc serve --upstream https://HOST/v1 --reflex agent.reflex`.",
            highlight=False,
        )


def _grid(title: str) -> Table:
    grid = Table(
        title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1)
    )
    grid.add_column("arm", no_wrap=True)
    return grid


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"
