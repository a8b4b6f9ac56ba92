"""When prompt, tool schemas or model changed for good, not only for one odd client.

A request that is not what was learned escalates at once, whoever sends it. The standing of the
reflex, which is everybody's, changes once three sessions in a row show a change, with no request in
between that fits. So a new release of the agent stops it within three sessions, and one client that
tries another prompt stops nobody else:

- sessions of a client (tenant) none of whose requests ever fitted say nothing while those of others
  fit;
- a *variant* (that prompt, that model, those schemas) after which new sessions fitted again is a
  neighbour on the same route, another agent or an experiment: of those it takes thirty in a row,
  which only happens where the agent that was learned is no longer there.

No evidence about errors is asked for: what was certified is gone.
"""

from collections import OrderedDict

IN_A_ROW = 3
NEIGHBOURS_IN_A_ROW = 30
_MAX_REMEMBERED = 4_096

CHANGED = frozenset({"prompt_changed", "schema_changed", "model_changed"})
_FITS = frozenset({
    "certified", "below_threshold", "free_text", "no_certificate", "recalled_otherwise",
    "unlabelled", "schema", "canary", "thinking", "act_cap", "injection", "unfamiliar",
})  # fmt: skip
"""Reasons that are only reached where prompt, model and schemas are those learned."""


class Changes:
    """Follows one reflex."""

    def __init__(self) -> None:
        self._tenants = _Recent()
        self._fitted = _Recent()
        self._neighbours = _Recent()
        self._row: dict[bytes, tuple[str, bytes]] = {}

    def seen(self, tenant: bytes, session: bytes, reason: str, variant: bytes = b"") -> str:
        """Why all is to be demoted now; empty where it is not. `session` and `variant` are any
        names of them."""
        if reason.split(":", 1)[0] in _FITS:
            if session not in self._fitted:
                for _, one in self._row.values():
                    self._neighbours.add(one)
            self._row.clear()
            self._tenants.add(tenant)
            self._fitted.add(session)
            return ""
        if reason not in CHANGED or (self._tenants and tenant not in self._tenants):
            return ""
        self._row[session] = (reason, variant)
        new = [one for one in self._row.values() if one[1] not in self._neighbours]
        if len(new) >= IN_A_ROW:
            counted = new
        elif len(self._row) >= NEIGHBOURS_IN_A_ROW:
            counted = list(self._row.values())
        else:
            return ""
        self._row.clear()
        what = ", ".join(sorted({one for one, _ in counted}))
        return f"{what} in {len(counted)} sessions in a row"


class _Recent(OrderedDict[bytes, None]):
    """A bounded set, the least recently added forgotten first."""

    def add(self, one: bytes) -> None:
        self[one] = None
        self.move_to_end(one)
        if len(self) > _MAX_REMEMBERED:
            self.popitem(last=False)
