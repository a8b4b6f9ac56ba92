"""Contexts unlike those learned from: what share of them System 1 leaves alone, by family.

Learns on a part of each set, then shows the rest as it was recorded and made strange. What counts:
of contexts after the change in which System 1 would have acted (its confidence is over the
certificate's threshold; over one half where nothing is certified), the share that it leaves alone.
"""

import random
from collections.abc import Sequence
from pathlib import Path

import msgspec

from acceptance.lines import Lines
from acceptance.strange import FAMILIES, changed_from
from reflexarc.reflex import Reflex, learn
from reflexarc.reflex.header import LEAST_THRESHOLD
from reflexarc.reflex.identity import offered_tools
from reflexarc.reflex.replay import replay
from reflexarc.steps import Message, Session
from reflexarc.traces import read_sessions, split_sessions

SESSIONS = Path(__file__).resolve().parents[2] / "shared" / "data" / "sessions"
LEFT_ALONE = 0.95
FALSE_ALARMS = 0.02
LOST = 0.1
SEEDS = (0, 1)
SETS = ("tau1_retail_fork", "bfcl_multiturn_gold")
_FOREIGN = "workbench_gpt4"
_MAX_SESSIONS = 60


class Counts(msgspec.Struct):
    """Contexts shown; those that are unfamiliar; those System 1 would have acted in; of these
    those that are unfamiliar."""

    contexts: int = 0
    flagged: int = 0
    acting: int = 0
    stopped: int = 0

    def add(self, other: "Counts") -> None:
        self.contexts += other.contexts
        self.flagged += other.flagged
        self.acting += other.acting
        self.stopped += other.stopped

    @property
    def shares(self) -> tuple[float, float]:
        return self.flagged / max(1, self.contexts), self.stopped / max(1, self.acting)


def count(reflex: Reflex, session: Session, first: int, counts: Counts) -> None:
    """Count the contexts of a session that hold its message `first`."""
    certificate = reflex.certificate(1.0)
    threshold = certificate.threshold if certificate is not None else None
    offered = {tool.name for tool in offered_tools(session)}
    for context, _ in replay(session):
        if context.length <= first:
            continue
        ranking = reflex.rank(context, offered)
        fault = reflex.member(context).familiarity.fault(context)
        counts.contexts += 1
        counts.flagged += fault is not None
        if not ranking.calls or reflex.effects.get(ranking.calls[0].name) != "read":
            continue
        if context.unanswered_calls:
            continue
        if reflex.member(context).confidence_of(context, ranking) >= (threshold or LEAST_THRESHOLD):
            counts.acting += 1
            counts.stopped += fault is not None


def measure_set(
    train: Sequence[Session], test: Sequence[Session], foreign: Sequence[Message], seed: int = 0
) -> tuple[Reflex, Counts, dict[str, Counts]]:
    """The reflex, what it says of the sessions as they are, and of each family."""
    reflex = learn(train)
    plain = Counts()
    for session in test:
        count(reflex, session, -1, plain)
    found: dict[str, Counts] = {}
    for family, plant in FAMILIES.items():
        source = random.Random(f"{seed} {family}")
        counts = found[family] = Counts()
        for session in source.sample(list(test), min(_MAX_SESSIONS, len(test))):
            strange = plant(session, source, foreign)
            first = changed_from(session, strange)
            if first < len(session.messages):
                count(reflex, strange, first, counts)
    return reflex, plain, found


def measure(lines: Lines) -> None:
    """One line a family and one for false alarms, over the sets."""
    path = SESSIONS / f"{_FOREIGN}.jsonl.gz"
    if not path.exists():
        lines.skip(f"contexts unlike those learned from: there is no {path}")
        return
    foreign = [m for one in read_sessions([path])[:80] for m in one.messages if m.role == "tool"]
    for name in SETS:
        sessions = read_sessions([SESSIONS / f"{name}.jsonl.gz"])
        plain, found = Counts(), {family: Counts() for family in FAMILIES}
        certified = False
        for seed in SEEDS:
            split = split_sessions(sessions, test_share=0.33, seed=seed)
            train, test = ([sessions[at] for at in part] for part in (split.train, split.test))
            reflex, of_plain, of_families = measure_set(train, test, foreign, seed)
            plain.add(of_plain)
            certified = certified or reflex.certificate(1.0) is not None
            for family, counts in of_families.items():
                found[family].add(counts)
            first = reflex.members[0].familiarity
            lines.say(
                f"{name}, split {seed}: {len(first.known)} hashes; while learning, "
                f"{first.looks.flagged:.2%} of held-out contexts were unfamiliar"
            )
        lines.say(f"  {'family':<34} contexts  unfamiliar  would act  left alone")
        for family, counts in {"as recorded": plain, **found}.items():
            contexts, acting = counts.shares
            lines.say(
                f"  {family:<34} {counts.contexts:>8}  {contexts:>10.1%}  {counts.acting:>9}"
                f"  {acting:>10.1%}"
            )
        flagged, lost = plain.shares
        total = sum(counts.acting for counts in found.values())
        left = sum(counts.stopped for counts in found.values())
        what = f"{name}, contexts as recorded that are called unfamiliar"
        if certified:
            lines.at_most("8.far", what, flagged, FALSE_ALARMS)
        else:  # nothing acts there, so nothing is lost
            lines.say(f"  {what}: {flagged:.1%}; nothing is certified there")
        lines.at_most("8.cov", f"{name}, acts lost to that", lost, LOST)
        what = f"{name}, of {total} strange contexts it would act in, left alone"
        lines.at_least("8.ood", what, left / max(1, total), LEFT_ALONE)


if __name__ == "__main__":
    measure(Lines("unfamiliar", 1))
