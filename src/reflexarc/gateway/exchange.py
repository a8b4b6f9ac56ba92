"""One request on its way to System 2."""

from collections.abc import Callable, Mapping

import msgspec
import yarl

from reflexarc.context.pruning_memory import Pruned
from reflexarc.gateway.attempting import Attempt
from reflexarc.gateway.copying import Copy
from reflexarc.gateway.planning import Plan
from reflexarc.gateway.prefix import Prefix
from reflexarc.gateway.preparing import Asking
from reflexarc.store.records import AttemptMade
from reflexarc.wire.converting import Conversion
from reflexarc.wire.growing import Grown
from reflexarc.wire.json import split_object


class Exchange(msgspec.Struct):
    """One request on its way. `began_s` is when it arrived; `label` gives the decision as it
    stands when the answer's head is sent; `copy`, where given, takes the answer's bytes. `sent_s`
    and `head_s`, once known: when it was sent on, when the answer's head came. `forced`, where
    given, is sent in place of `body`; where the upstream refuses it (`forced_refused`) the body
    itself is sent once. `client` is the client's dialect, `upstream` the upstream's; where that is
    another, `sent` is the request in it, and `conversion` brings the answer back. `model` is what
    the client's URL names. With a `plan` one of several deployments is `asking`'s to answer:
    `attempts` are those made, `spent` what those cost
    that are over, and what is said here of the upstream is of the one that counts.
    `number` is the request's in this process; `ended_s` is when its answer was through. `grown`
    is `body` taken apart, where it could be. `prompt` is what is asked in its place, as its client
    could have asked, where the gateway `repaired` or `pruned` it; `prefix` is what became of
    that."""

    route: str
    method: str
    url: yarl.URL
    headers: list[tuple[str, str]]
    body: bytes | None
    began_s: float
    request_id: bytes
    label: Callable[[], bytes]
    copy: Copy | None = None
    sent_s: float = 0.0
    head_s: float = 0.0
    forced: bytes | None = None
    forced_refused: bool = False
    client: str = "chat"
    upstream: str = "chat"
    model: str = ""
    conversion: Conversion | None = None
    sent: bytes | None = None
    plan: Plan | None = None
    asking: Asking | None = None
    attempts: list[Attempt] = []
    spent: list[AttemptMade] = []
    number: int = 0
    ended_s: float = 0.0
    grown: Grown | None = None
    prompt: Grown | None = None
    repaired: tuple[str, ...] = ()
    prefix: Prefix | None = None
    pruned: Pruned | None = None

    @property
    def members(self) -> Mapping[str, msgspec.Raw]:
        """Those of the request's object. Raises `MalformedError` where it is none."""
        if self.grown is not None and self.grown.body is self.body:
            return self.grown.members
        return split_object(self.body or b"")

    @property
    def asked(self) -> bytes:
        """What is asked, in the client's own dialect."""
        return (self.body if self.prompt is None else self.prompt.body) or b""

    @property
    def outgoing(self) -> bytes | None:
        """What the upstream is asked."""
        return self.body if self.sent is None else self.sent
