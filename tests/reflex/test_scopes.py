"""Scopes: who shares a certificate with whom, and what no error can change."""

from collections.abc import Iterable

import msgspec
import numpy as np
import pytest

from reflexarc.reflex.certificate import Certificate
from reflexarc.reflex.claims import CertificateClass
from reflexarc.reflex.per_task import acting
from reflexarc.reflex.scopes import (
    EFFECTS,
    ORIGINS,
    RECALLED,
    Acting,
    Granted,
    Origin,
    ScopedAnswers,
    certify_scopes,
    parent_scope,
    scopes_apart,
)

LEVELS = (0.02, 0.05, 0.10)
TOOLS = ("find", "read", "list", "change")


def drawn(
    tasks: int, each: int, *, seed: int = 0, error: float = 0.002, recalled: float = 0.0
) -> ScopedAnswers:
    """Answers of three reads and one write; scores that hold."""
    random = np.random.default_rng(seed)
    n = tasks * each
    tool = random.choice(4, n, p=[0.45, 0.3, 0.05, 0.2])
    score = np.where(random.random(n) < 0.7, 1 - error, random.uniform(0.5, 0.9, n))
    return ScopedAnswers(
        score=score,
        wrong=random.random(n) > score,
        task=np.repeat(np.arange(tasks), each),
        recalled=random.random(n) < recalled,
        write=tool == 3,
        tool=tool,
        tools=TOOLS,
    )


def certificate_for(
    held: Iterable[Certificate],
    origin: Origin,
    effect: Acting,
    tool: str,
    max_error: float,
    certificate_class: CertificateClass = "model-based",
) -> Certificate | None:
    granted = Granted(held, certificate_class)
    return granted.within(granted.scope(origin, effect, tool), max_error)


def names(judged: ScopedAnswers) -> list[str]:
    return [scope for scope, _ in scopes_apart(judged, LEVELS, 0.1)]


def test_thin_data_are_pooled_and_rich_tools_stand_alone() -> None:
    assert names(drawn(60, 6)) == ["reads", "writes:change"]
    rich = names(drawn(600, 10))
    assert rich[0] == "reads"
    assert {"reads:find", "reads:read"} & set(rich)
    assert "reads:list" not in rich


def test_every_answer_belongs_to_one_scope() -> None:
    judged = drawn(500, 8, recalled=0.3)
    parts = scopes_apart(judged, LEVELS, 0.1)
    together = next(part for scope, part in parts if scope == RECALLED)
    assert len(together) == int(judged.recalled.sum())
    assert sum(len(part) for _, part in parts) - len(together) == len(judged)
    assert len({scope for scope, _ in parts}) == len(parts)


def test_no_error_has_a_part_in_what_is_told_apart() -> None:
    judged = drawn(600, 10)
    turned = msgspec.structs.replace(judged, wrong=~judged.wrong)
    assert names(judged) == names(turned)


def test_origins_and_effects_never_share_a_certificate() -> None:
    judged = drawn(300, 6, recalled=0.4)
    found = names(judged)
    pools = {"reads", "writes:change", "recalled reads", "recalled writes:change"}
    assert pools <= set(found)
    assert not any(scope.startswith("recalled reads:") for scope in found)
    # Recalled answers that are all wrong leave the others what they had, and act nowhere.
    poisoned = msgspec.structs.replace(judged, wrong=judged.wrong | judged.recalled)
    before, after = (
        {(one.scope, one.max_error, one.certificate_class): one for one in found}
        for found in (certify_scopes(judged, LEVELS, 0.1), certify_scopes(poisoned, LEVELS, 0.1))
    )
    for key, one in after.items():
        if key[0].startswith("recalled"):
            assert not one.granted
            assert one.unit == "session"
        else:
            assert one == before[key]


def pairs() -> Iterable[tuple[Origin, Acting]]:
    return [(origin, effect) for origin in ORIGINS for effect in EFFECTS]


def test_the_loosest_certificate_within_the_limit_is_found() -> None:
    held = certify_scopes(drawn(300, 6), LEVELS, 0.1)
    for limit, expected in ((0.5, 0.10), (0.10, 0.10), (0.07, 0.05), (0.02, 0.02)):
        one = certificate_for(held, "new", "read", "find", limit)
        assert one is not None
        assert one.max_error == expected
        assert one.scope in ("reads", "reads:find")
    assert certificate_for(held, "new", "read", "find", 0.01) is None


def test_nothing_is_found_for_an_origin_that_was_never_judged() -> None:
    held = certify_scopes(drawn(300, 6), LEVELS, 0.1)
    for origin, effect in pairs():
        one = certificate_for(held, origin, effect, "find" if effect == "read" else "change", 1.0)
        assert (one is None) == (origin == "recalled")
    assert certificate_for((), "new", "read", "find", 1.0) is None


def test_a_class_does_not_stand_in_for_the_other() -> None:
    held = certify_scopes(drawn(300, 6), LEVELS, 0.1, classes=("exact",))
    assert certificate_for(held, "new", "read", "find", 1.0) is None
    assert certificate_for(held, "new", "read", "find", 1.0, "exact") is not None


def test_a_tool_apart_whose_certificate_is_refused_does_not_return_to_the_pool() -> None:
    judged = drawn(600, 10)
    apart = next(scope for scope in names(judged) if ":" in scope)
    tool = apart.split(":")[1]
    bad = (judged.tool == TOOLS.index(tool)) & ~judged.write
    rng = np.random.default_rng(1)
    poisoned = msgspec.structs.replace(
        judged, wrong=judged.wrong | (bad & (rng.random(len(judged)) < 0.5))
    )
    held = certify_scopes(poisoned, LEVELS, 0.1)
    assert certificate_for(held, "new", "read", tool, 1.0) is None
    assert certificate_for(held, "new", "read", "list", 1.0) is not None
    assert not acting(poisoned, held, 0.10, "model-based")[bad].any()


def test_a_write_that_shares_with_nobody_bears_its_name_and_one_that_shares_does_not() -> None:
    judged = drawn(300, 6)
    assert certificate_for(certify_scopes(judged, LEVELS, 0.1), "new", "write", "list", 1.0) is None
    two = msgspec.structs.replace(judged, write=judged.tool >= 2)
    assert [scope for scope in names(two) if scope.startswith("writes")] == ["writes"]


def test_a_tool_never_judged_belongs_to_its_pool() -> None:
    held = certify_scopes(drawn(600, 10), LEVELS, 0.1)
    assert Granted(held, "model-based").scope("new", "read", "another") == "reads"
    assert parent_scope("recalled", "write") == "recalled writes"


def test_arrays_that_do_not_fit_are_refused() -> None:
    judged = drawn(3, 2)
    with pytest.raises(ValueError, match="arrays of"):
        msgspec.structs.replace(judged, wrong=judged.wrong[:-1])
    with pytest.raises(ValueError, match="tool's index"):
        msgspec.structs.replace(judged, tools=("find",))


def test_nothing_is_certified_of_no_answers() -> None:
    judged = drawn(3, 2)
    found = certify_scopes(judged.part(np.zeros(len(judged), np.bool_)), LEVELS, 0.1)
    assert {(one.scope, one.n, one.granted) for one in found} == {("reads", 0, False)}
    assert all(one.missing == one.missing_tasks > 0 for one in found)
