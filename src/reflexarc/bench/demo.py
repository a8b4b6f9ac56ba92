"""The demo: learn from some returns-desk tasks, run new ones on four arms, compare.

Every arm has the same new tasks, tools, tool time and System 2; each has a simulator process of
its own with an empty prompt cache, and runs all its tasks side by side.
"""

import asyncio
import os
import random
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import msgspec
import uvloop

from reflexarc.bench.baseline import Baseline
from reflexarc.bench.demo_arms import ArmResult, BaselineFront, judge_arm
from reflexarc.bench.demo_processes import gateway, simulator
from reflexarc.bench.demo_published import PublishedPoint, measure_published
from reflexarc.bench.desk.agent import Endpoint, StepRun, System2, TaskRun
from reflexarc.bench.desk.record import InProcess, run_tasks, session_of
from reflexarc.bench.desk.system2 import ReturnsDeskSystem2
from reflexarc.bench.desk.world import MODEL, DeskTask, make_task
from reflexarc.reflex import Certificate, learn
from reflexarc.sim import load_profiles
from reflexarc.steps import Session
from reflexarc.steps.errors import LearnError

_T = TypeVar("_T")
OnProgress = Callable[[str, float], None]
SLOW = "gpu"
"""The service of the first arm; that of the others is chosen (`DemoOptions.profile`)."""
START_WITHIN_S = 2.0
"""Tasks of an arm start at random within so long, so that they do not ask in step."""
FALLBACK_MAX_ERROR = 0.10
"""Where the error asked for cannot be certified, this one is tried; the report says so."""
_REAL_CONCURRENCY = 8  # a real System 2 has rate limits


class DemoOptions(msgspec.Struct, frozen=True):
    """What to run. With `upstream` a real System 2 takes the place of the simulated ones; the
    key is read from the environment variable `api_key_env`. `profile`: the simulated service of all
    arms but the first."""

    tasks: int = 40
    learn_tasks: int = 60
    seed: str = "1"
    max_error: float = 0.05
    tool_time_ms: float = 120.0
    time_scale: float = 1.0
    upstream: str | None = None
    model: str = MODEL
    api_key_env: str = "OPENAI_API_KEY"
    profile: str = "lpu"

    @property
    def baseline_arm(self) -> str:
        return f"{self.profile} + baseline"

    @property
    def reflexarc_arm(self) -> str:
        return f"{self.profile} + reflexarc"


class Learned(msgspec.Struct, frozen=True):
    """What the reflex was learned from, and the certificate it acts under (None: it may not).
    `max_error` is larger than asked for where only that could be certified."""

    sessions: int
    verified: int
    steps: int
    seconds: float
    reflex_bytes: int
    max_error: float
    certificate: Certificate | None


class DemoReport(msgspec.Struct, frozen=True):
    """Everything the demo measured."""

    options: DemoOptions
    scripted: bool
    learned: Learned
    arms: list[ArmResult]
    published: list[PublishedPoint]
    seconds: float


def run_demo(options: DemoOptions, folder: Path, progress: OnProgress) -> DemoReport:
    """Run the whole demo with its files in `folder`. Children are stopped on every way out."""
    return _Demo(options, folder, progress).run()


class _Demo:
    def __init__(self, options: DemoOptions, folder: Path, progress: OnProgress) -> None:
        self._options = options
        self._folder = folder
        # A bar that is full stops its clock, and there is always something left to do.
        self._progress: OnProgress = lambda what, share: progress(what, min(share, 0.99))
        self._policy = ReturnsDeskSystem2()
        self._reflex_path = folder / "returns_desk.reflex"
        self._api_key = os.environ.get(options.api_key_env) if options.upstream else None
        self._databases = 0

    def run(self) -> DemoReport:
        began = time.perf_counter()
        options = self._options
        recorded = self._record()
        sessions = [session_of(run, model=options.model) for run in recorded]
        learned = self._learn(sessions, recorded)
        tasks = [make_task(f"new-{options.seed}-{n}") for n in range(options.tasks)]
        if options.upstream is None:
            arms = self._simulated_arms(tasks, Baseline.learn(sessions), learned)
        else:
            arms = self._real_arms(tasks, options.upstream, learned)
        published = self._published()
        seconds = time.perf_counter() - began
        return DemoReport(options, options.upstream is None, learned, arms, published, seconds)

    def _record(self) -> list[TaskRun]:
        options = self._options
        tasks = [make_task(f"learn-{options.seed}-{n}") for n in range(options.learn_tasks)]
        label = f"recording {len(tasks)} tasks of System 2"
        if options.upstream is None:
            return self._run(label, tasks, None, concurrency=1)
        return self._run(label, tasks, options.upstream, concurrency=_REAL_CONCURRENCY)

    def _learn(self, sessions: Sequence[Session], recorded: Sequence[TaskRun]) -> Learned:
        began = time.perf_counter()
        complete = [s for s, run in zip(sessions, recorded, strict=True) if run.finished]
        if not complete:
            raise LearnError(f"no recorded task was finished; the first: {recorded[0].faults}")
        reflex = learn(
            complete,
            max_error=self._options.max_error,
            progress=lambda phase, share: self._progress(f"learning: {phase}", share),
        )
        reflex.save(self._reflex_path)
        limit = next(
            (level for level in self._levels() if reflex.certificate(level) is not None),
            self._options.max_error,
        )
        return Learned(
            sessions=len(complete),
            verified=sum(not run.faults for run in recorded),
            steps=sum(len(run.steps) for run in recorded),
            seconds=time.perf_counter() - began,
            reflex_bytes=self._reflex_path.stat().st_size,
            max_error=limit,
            certificate=reflex.certificate(limit),
        )

    def _published(self) -> list[PublishedPoint]:
        """The simulators on the published point; meaningless where waits are scaled."""
        if self._options.upstream is not None or self._options.time_scale != 1:
            return []
        self._progress("measuring the published point on both simulators", 0.5)
        return [_run_loop(measure_published(name, self._folder)) for name in ("gpu", "lpu")]

    def _levels(self) -> list[float]:
        """The error asked for, and a looser one for where it cannot be certified."""
        return [self._options.max_error, max(self._options.max_error, FALLBACK_MAX_ERROR)]

    def _simulated_arms(
        self, tasks: Sequence[DeskTask], baseline: Baseline, learned: Learned
    ) -> list[ArmResult]:
        arms: list[ArmResult] = []
        fast = self._options.profile
        baseline_arm, reflexarc_arm = self._options.baseline_arm, self._options.reflexarc_arm
        for name, profile in (
            (SLOW, SLOW),
            (fast, fast),
            (baseline_arm, fast),
            (reflexarc_arm, fast),
        ):
            log = self._folder / f"{name.replace(' ', '_')}.log"
            with simulator(profile, self._options.time_scale, log) as upstream:
                if name == reflexarc_arm:
                    with self._gateway(upstream, learned) as url:
                        runs = self._run(name, tasks, url)
                elif name == baseline_arm:
                    runs = self._run(name, tasks, upstream, front=baseline)
                else:
                    runs = self._run(name, tasks, upstream)
            arms.append(self._judge(name, runs, profile))
        return arms

    def _real_arms(
        self, tasks: Sequence[DeskTask], upstream: str, learned: Learned
    ) -> list[ArmResult]:
        few = _REAL_CONCURRENCY
        direct = self._run("System 2", tasks, upstream, concurrency=few)
        with self._gateway(upstream, learned) as url:
            behind = self._run("System 2 + reflexarc", tasks, url, concurrency=few)
        return [
            self._judge("System 2", direct, None),
            self._judge("System 2 + reflexarc", behind, None),
        ]

    def _gateway(self, upstream: str, learned: Learned) -> AbstractContextManager[str]:
        log = self._folder / "gateway.log"
        return gateway(upstream, self._reflex_path, learned.max_error, log)

    def _run(
        self,
        label: str,
        tasks: Sequence[DeskTask],
        url: str | None,
        *,
        front: Baseline | None = None,
        concurrency: int | None = None,
    ) -> list[TaskRun]:
        """Run tasks against an endpoint, or the policy in process where there is none."""
        in_process = url is None
        draw = random.Random("when tasks start")  # the same for every arm
        starts_s = [draw.uniform(0, START_WITHIN_S * self._options.time_scale) for _ in tasks]
        usual_steps = 23 * len(tasks)
        done = [0, 0]

        def show() -> None:
            share = max(done[0] / len(tasks), done[1] / usual_steps)
            self._progress(f"{label}: {done[0]}/{len(tasks)} tasks, {done[1]} steps", share)

        def on_task(_: TaskRun) -> None:
            done[0] += 1
            show()

        def on_step(_: StepRun) -> None:
            done[1] += 1
            show()

        async def run() -> list[TaskRun]:
            limits = aiohttp.TCPConnector(limit=0)
            patience = aiohttp.ClientTimeout(total=300)
            async with aiohttp.ClientSession(connector=limits, timeout=patience) as http:

                def system2_for(_: DeskTask) -> System2:
                    if url is None:
                        return InProcess(self._policy)
                    endpoint = Endpoint(http, url, self._api_key)
                    return endpoint if front is None else BaselineFront(front, endpoint)

                self._databases += 1
                databases = self._folder / f"databases-{self._databases}"
                databases.mkdir()
                return await run_tasks(
                    tasks,
                    system2_for,
                    databases,
                    model=self._options.model,
                    tool_time_s=0.0 if in_process else self._options.tool_time_ms / 1e3,
                    concurrency=concurrency,
                    starts_s=None if in_process else starts_s,
                    on_task=on_task,
                    on_step=on_step,
                )

        show()
        return _run_loop(run())

    def _judge(self, name: str, runs: list[TaskRun], profile: str | None) -> ArmResult:
        options = self._options
        self._progress(f"{name}: putting every act to System 2", 1.0)

        async def judge() -> ArmResult:
            async with aiohttp.ClientSession() as http:

                def oracle_for(_: DeskTask) -> System2:
                    if options.upstream is None:
                        return InProcess(self._policy)
                    return Endpoint(http, options.upstream, self._api_key)

                prices = load_profiles()[profile] if profile is not None else None
                return await judge_arm(name, runs, oracle_for, options.model, prices)

        return _run_loop(judge())


def _run_loop(work: Coroutine[Any, Any, _T]) -> _T:
    """On uvloop, which takes less of the machine that the arms share with their servers."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
