"""When prompt, tool schemas or model changed for good, not only for one odd client.

A request that is not what was learned escalates at once, whoever sends it. The standing of the
reflex, which is everybody's, changes once three sessions in a row show it, with no request in
between that fits: one client that tries another prompt does not stop the others, whose requests
fit; a new release of the agent stops it within its first three sessions. Sessions of a client
(tenant) none of whose requests ever fitted say nothing while those of others do.

No evidence about errors is asked for: what was certified is gone.
"""

from collections import OrderedDict

IN_A_ROW = 3
_MAX_TENANTS = 4_096

CHANGED = frozenset({"prompt_changed", "schema_changed", "model_changed"})
_FITS = frozenset({
    "certified", "below_threshold", "free_text", "no_certificate", "unlabelled", "canary",
    "act_cap", "injection", "unfamiliar",
})  # fmt: skip
"""Reasons that are only reached where prompt, model and schemas are those learned."""


class Changes:
    """Follows one reflex."""

    def __init__(self) -> None:
        self._fitting: OrderedDict[bytes, None] = OrderedDict()
        self._row: dict[bytes, str] = {}

    def seen(self, tenant: bytes, session: bytes, reason: str) -> str:
        """Why all is to be demoted now; empty where it is not. `session` is any name of it."""
        if reason.split(":", 1)[0] in _FITS:
            self._fitting[tenant] = None
            self._fitting.move_to_end(tenant)
            if len(self._fitting) > _MAX_TENANTS:
                self._fitting.popitem(last=False)
            self._row.clear()
            return ""
        if reason not in CHANGED or (self._fitting and tenant not in self._fitting):
            return ""
        self._row[session] = reason
        if len(self._row) < IN_A_ROW:
            return ""
        what = ", ".join(sorted(set(self._row.values())))
        self._row.clear()
        return f"{what} in {IN_A_ROW} sessions in a row"
