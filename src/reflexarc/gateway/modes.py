"""What each route may do now, for people."""

from collections.abc import Iterable
from typing import Any

from reflexarc.gateway.acting import Acting
from reflexarc.gateway.config import ACTING_MODES, Route


def modes_of(routes: Iterable[Route], acting: Acting) -> list[dict[str, Any]]:
    """Each route, and why System 1 may not act there now."""
    return [
        {
            "path": route.path,
            "mode": route.mode,
            "reflex": route.reflex,
            "max_error": route.max_error,
            "canary": route.canary,
            "audit": route.audit,
            "record": route.record,
            "may_not_act": "mode" if route.mode not in ACTING_MODES else acting.why_not(route),
        }
        for route in routes
    ]
