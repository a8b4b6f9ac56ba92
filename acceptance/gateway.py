"""`make accept-gateway`: a gateway one can leave on, measured. Writes results/gateway.json.

python -m acceptance.gateway [--only PART]... [--seed N]

The exit status is 0 where every line holds and everything was measured.
"""

import argparse
import importlib.util
import os
import secrets
from collections.abc import Callable

from acceptance import (
    gateway_history,
    gateway_litellm,
    gateway_local,
    gateway_purge,
    gateway_safe,
    gateway_shadow,
    gateway_tls,
    gateway_unfamiliar,
)
from acceptance.lines import Lines

PARTS = ("safe", "history", "purge", "local", "tls", "shadow", "unfamiliar", "litellm")
_NEED_DATA = ("shadow", "unfamiliar")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m acceptance.gateway")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this part only")
    parser.add_argument("--seed", type=int, help="of what is drawn; without it another each time")
    arguments = parser.parse_args()
    seed: int = secrets.randbelow(10**6) if arguments.seed is None else arguments.seed
    wanted = arguments.only or PARTS
    lines = Lines("gateway", os.cpu_count() or 1)
    lines.say(f"seed {seed}")
    parts: dict[str, tuple[str, str, Callable[[], None]]] = {
        "safe": (
            "1", "What never acts, off, faults", lambda: gateway_safe.measure(lines, seed)
        ),
        "history": (
            "3", "Histories with turns of System 1", lambda: gateway_history.measure(lines, seed)
        ),
        "purge": ("4", "Purge", lambda: gateway_purge.measure(lines, seed)),
        "local": ("5", "The embedded engine", lambda: gateway_local.measure(lines)),
        "tls": ("6", "TLS on both sides", lambda: gateway_tls.measure(lines)),
        "shadow": ("7", "The shadow report beside eval", lambda: gateway_shadow.measure(lines)),
        "unfamiliar": (
            "8", "Contexts unlike those learned from", lambda: gateway_unfamiliar.measure(lines)
        ),
        "litellm": ("9", "Beside LiteLLM", lambda: gateway_litellm.measure(lines)),
    }  # fmt: skip
    for name, (identity, title, measured) in parts.items():
        if name not in wanted:
            lines.skip(name, asked=True)
        elif name in _NEED_DATA and not gateway_shadow.SESSIONS.is_dir():
            lines.skip(f"{name} (the public recordings are not beside this checkout)")
        elif name == "local" and importlib.util.find_spec("xllamacpp") is None:
            lines.skip("local (the extra [local] is not installed)")
        else:
            lines.part(identity, title, measured)
    return lines.finish()


if __name__ == "__main__":
    raise SystemExit(main())
