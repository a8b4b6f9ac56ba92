"""What the gateway hands over to be recorded: plain structs that cross to the recorder's process.

Bodies travel beside these, as they were sent; reading them is the recorder's work.
"""

from typing import Any, Literal

import msgspec

from reflexarc.wire.price import Price
from reflexarc.wire.usage import Usage

Policy = Literal["full", "hashed", "none"]
"""`full` keeps texts and values; `hashed` keeps structure, names and keyed hashes of values;
`none` keeps nothing of a step but what acting demands (the trail)."""
DecidedBy = Literal["system1", "system2", "gateway"]


class Prediction(msgspec.Struct, frozen=True):
    """What System 1 made of one item of a step (a call System 2 made, or its message).

    `position` counts the calls of the batch before it. `recorded_tool` is None for a message;
    `recorded` and `proposed` hold name and arguments, and are kept by value only where the
    route records in full. `acted` maps an error level ("0.05") to whether System 1 would have
    acted under its certificate; `would_act` is what this route would have done live. `right`: what
    would have been answered, one call or `calls` together, is what System 2 did, who made `made`
    calls from here on; None where an older gateway recorded it.
    """

    position: int
    recorded_tool: str | None
    recorded: dict[str, Any] | None
    proposed_tool: str | None
    proposed: dict[str, Any] | None
    effect: str | None
    thought: bool
    named: bool
    exact: bool
    among_three: bool
    read_exact: bool
    read_among_three: bool
    confidence: float
    reason: str
    acted: dict[str, bool]
    would_act: bool
    cpu_ms: float
    right: bool | None = None
    calls: int = 1
    made: int = 1


class AttemptMade(msgspec.Struct, frozen=True):
    """One sending of a step's request to one deployment: a model of a provider, in a service tier,
    taken for `tier` (interactive, standard, batch).

    `outcome` is `answered`, `failed`, `cut`, `client_gone`, `hedge_lost`, `repaired` or `audit`;
    `code` says more of a failure. `first_token_ms` is None where none came. `micro_usd` is None
    where the price is not known. `partial`: it was cut off before its usage was told;
    `estimated`: its usage was not told, or not all of it.
    """

    provider: str
    model: str
    service_tier: str
    tier: str
    outcome: str
    status: int
    code: str
    first_token_ms: float | None
    total_ms: float
    usage: Usage
    micro_usd: int | None
    partial: bool = False
    estimated: bool = False


class StepEnded(msgspec.Struct, frozen=True, tag=True):
    """One step came to its end. The body is the request's bytes, then the answer's.

    `number` is the request's in the gateway's process, `gateway` names that process; together they
    join what comes later. `tenant` is a keyed hash of the caller's key. `action`, `reason`, `tool`,
    `confidence` and `max_error` are System 1's decision as known when the answer ended (`action`
    is empty where it was not asked or has not answered yet). `timings_ms`: `total`, and where they
    apply `before_upstream`, `upstream_head`, `decide`. Tokens are read from the answer and cost
    System 2's `price`, where known; with `attempts`, in the order they began, tokens and cost are
    the sums of theirs.
    `dialect` is the request's and `answer_dialect` the answer's; `model` is what the request's URL
    names, where its body does not.
    """

    number: int
    gateway: str
    request_id: str
    route: str
    mode: str
    record: Policy
    tenant: str
    session: str | None
    task: str | None
    began_unix_s: float
    decided_by: DecidedBy
    status: int
    content_type: str
    content_encoding: str
    complete: bool
    request_bytes: int
    timings_ms: dict[str, float]
    reflex: str | None = None
    action: str = ""
    reason: str = ""
    tool: str = ""
    confidence: float = 0.0
    max_error: float = 0.0
    price: Price | None = None
    dialect: str = "chat"
    answer_dialect: str = "chat"
    model: str = ""
    attempts: list[AttemptMade] = []


class Judged(msgspec.Struct, frozen=True, tag=True):
    """What System 1 would have done at a step, compared with what System 2 did."""

    number: int
    gateway: str
    predictions: list[Prediction]


class Audited(msgspec.Struct, frozen=True, tag=True):
    """A step System 1 acted on, put to System 2 as well. `outcome`: agree, disagree, or why the
    comparison failed (unreadable, upstream_failed)."""

    number: int
    gateway: str
    route: str
    tool: str
    outcome: str
    at_unix_s: float


class TrailEntry(msgspec.Struct, frozen=True, tag=True):
    """One entry of the audit trail, before it has its place in the chain. `id` is unique: the same
    entry handed over twice is written once. `what` is `act`, `mode`, `off`, `on`, `audit`, ...;
    `who` a person, a process or a rule; `evidence` holds no values of a conversation."""

    id: str
    at_unix_s: float
    what: str
    who: str
    evidence: dict[str, Any]


class Written(msgspec.Struct, frozen=True, tag=True):
    """The recorder's sign of life after each flush. `trail` names the entries now durable; `fault`
    says why nothing could be written (empty: all is well); `dropped` counts the steps lost since
    the process began."""

    trail: list[str]
    fault: str
    dropped: int
    steps: int
