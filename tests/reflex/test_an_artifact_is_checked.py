"""A file that is whole but says what `learn` never wrote is refused, in one clear way."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reflexarc.reflex import Reflex
from reflexarc.reflex.artifact import MAX_HEADER_BYTES, pack, unpack
from reflexarc.steps.errors import ArtifactCorruptError, ArtifactError
from tests.reflex import parcels

Edit = Callable[[dict[str, Any], dict[str, Any]], object]


def first_tool(header: dict[str, Any]) -> dict[str, Any]:
    return header["members"][0]["tools"][0]


def first_argument(header: dict[str, Any]) -> dict[str, Any]:
    return first_tool(header)["arguments"][0]


def certificate(header: dict[str, Any]) -> dict[str, Any]:
    held = header["card"]["certificates"]
    return next(one for one in held if one["threshold"] is not None)


EDITS: dict[str, Edit] = {
    "negative threshold": lambda h, _: certificate(h).update(threshold=-1.0),
    "low threshold": lambda h, _: certificate(h).update(threshold=0.1),
    "errors over answers": lambda h, _: certificate(h).update(n=5, errors=9),
    "errors over the bound": lambda h, _: certificate(h).update(n=100, errors=50),
    "a limit over the level": lambda h, _: certificate(h).update(bound=0.9),
    "a limit that is no share": lambda h, _: certificate(h).update(bound=-0.1),
    "more tasks wrong than there are": lambda h, _: certificate(h).update(tasks_wrong=10**6),
    "a class nobody knows": lambda h, _: certificate(h).update(certificate_class="sure"),
    "a unit nobody knows": lambda h, _: certificate(h).update(unit="call"),
    "exact over its bound": lambda h, _: certificate(h).update(
        certificate_class="exact", tasks=10, tasks_wrong=5, errors=5, n=1000
    ),
    "a negative attempt": lambda h, _: h["card"].update(attempt=-1),
    "a reach that is no share": lambda h, _: h["card"]["reach"][0].update(tool_probability=1.5),
    "more touched than tasks": lambda h, _: h["card"]["per_task"][0].update(touched=10**6),
    "fewer wrong at most than seen": lambda h, _: h["card"]["per_task"][0].update(
        wrong=50, touched=1, wrong_per_task=0.5, wrong_per_task_bound=0.1
    ),
    "negative bound": lambda h, _: certificate(h).update(max_error=-1.0),
    "mixed-up results, yet certified": lambda h, _: h["card"]["results"].update(fits=False),
    "error of 5": lambda h, _: h["card"].update(max_error=5.0),
    "field of tomorrow": lambda h, _: h["card"].update(tomorrow=1),
    "no tools": lambda h, _: h["members"][0].update(tools=[]),
    "tool twice": lambda h, _: h["members"][0]["tools"].append(first_tool(h)),
    "renamed tool": lambda h, _: first_tool(h).update(name="another"),
    "unknown counted tool": lambda h, _: h["members"][0]["vocabulary"]["tools"].append("another"),
    "three fields of words": lambda h, _: h["members"][0]["vocabulary"]["words"].pop(),
    "five fields of words": lambda h, _: h["members"][0]["vocabulary"]["words"].append([]),
    "word twice": lambda h, _: h["members"][0]["vocabulary"]["words"][0].extend(["x", "x"]),
    "argument of another tool": lambda h, _: first_argument(h).update(tool="another"),
    "argument twice": lambda h, _: first_tool(h)["arguments"].append(first_argument(h)),
    "huge index": lambda h, _: first_argument(h).update(index=10**400),
    "huge share": lambda h, _: first_argument(h).update(absent_share=1e308),
    "many constants": lambda h, _: first_argument(h).update(
        constants=[{"value": at, "share": 0.1} for at in range(1000)]
    ),
    "unknown kind": lambda h, _: first_argument(h).update(kind="code"),
    "unknown effect": lambda h, _: h["effects"].update(get_order="execute"),
    "an array too many": lambda _, a: a.update(extra=np.zeros(3, np.float32)),
    "signs not sorted": lambda _, a: a.update(
        {"1.choice.said.signs": a["1.choice.said.signs"][::-1].copy()}
    ),
    "weights without signs": lambda _, a: a.update(
        {"1.choice.said.weights": a["1.choice.said.weights"][1:]}
    ),
    "weights that are no numbers": lambda _, a: a.update(
        {"1.choice.name.weights": np.full_like(a["1.choice.name.weights"], np.nan)}
    ),
    "weights of another type": lambda _, a: a.update(
        {"1.choice.events.weights": a["1.choice.events.weights"].astype(np.float64)}
    ),
    "a prior of too many tools": lambda _, a: a.update(
        {"1.choice.prior": np.zeros(99, np.float32)}
    ),
    "cues without weights": lambda _, a: a.update({"3.cues.weights": a["3.cues.weights"][1:]}),
    "a cue that says everything": lambda _, a: a.update(
        {"3.cues.weights": np.full_like(a["3.cues.weights"], np.inf)}
    ),
    "an array too few": lambda _, a: a.pop("0.tools.leaf"),
    "a member too few": lambda h, _: h["members"].pop(),
    "a memory of one situation more": lambda _, a: a.update(
        {"recall.situation": np.zeros(len(a["recall.situation"]) + 1, np.uint64)}
    ),
    "no trees": lambda _, a: a.update(
        {f"2.confidence.{k}": a[f"2.confidence.{k}"][:0] for k in ("feature", "threshold", "leaf")}
    ),
    "a confidence of four": lambda _, a: a.update(
        {"2.confidence.shape": np.array([a["2.confidence.shape"][0], 4], np.int32)}
    ),
    "another width": lambda _, a: a.update(
        {"1.tools.shape": np.array([9_999, a["1.tools.shape"][1]], np.int32)}
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_what_learn_never_wrote_is_refused(parcel_reflex: Reflex, name: str) -> None:
    header, arrays = unpack(parcel_reflex.to_bytes())
    header, arrays = copy.deepcopy(header), dict(arrays)
    EDITS[name](header, arrays)
    with pytest.raises(ArtifactCorruptError):
        Reflex.from_bytes(pack(header, arrays))


def test_a_header_that_would_fill_memory_is_refused_before_it_is_read() -> None:
    bomb = pack([[] for _ in range(MAX_HEADER_BYTES // 3 + 1)], {})
    assert len(bomb) < 200_000
    with pytest.raises(ArtifactCorruptError, match="header is larger than 16 MiB"):
        Reflex.from_bytes(bomb)


def test_a_saved_reflex_decides_as_before(parcel_reflex: Reflex, tmp_path: Path) -> None:
    parcel_reflex.save(tmp_path / "agent.reflex")
    loaded = Reflex.load(tmp_path / "agent.reflex")
    assert loaded.card == parcel_reflex.card
    assert loaded.to_bytes() == parcel_reflex.to_bytes()
    messages = parcels.session(700).messages
    for end in (2, 4, 6):
        decided = [
            reflex.decide(messages[:end], parcels.TOOLS, model="parcel-model", alternatives=3)
            for reflex in (parcel_reflex, loaded)
        ]
        assert decided[0] == decided[1]


def test_it_knows_which_tasks_it_was_learned_from(parcel_reflex: Reflex) -> None:
    loaded = Reflex.from_bytes(parcel_reflex.to_bytes())
    assert loaded.learned_from("parcels-3")
    assert not loaded.learned_from("parcels-3000")


def test_a_file_that_is_not_there_is_an_artifact_error(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="cannot be read"):
        Reflex.load(tmp_path / "nothing.reflex")
