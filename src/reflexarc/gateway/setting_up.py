"""What a configuration means for the gateway's two processes."""

from reflexarc.gateway.config import GatewayConfig
from reflexarc.gateway.frames import DEFAULT_LOADER, ReflexSource, Setup
from reflexarc.gateway.recorder import RecorderSetup
from reflexarc.gateway.state import State


def system1_setup(config: GatewayConfig, loader: str | None, secret: bytes) -> Setup:
    """`loader` replaces how reflexes are loaded (None: as ever); `secret` keys what is drawn."""
    return Setup(
        reflexes=[
            ReflexSource(route.path, route.reflex, loader or DEFAULT_LOADER, dict(route.effects))
            for route in config.route
            if route.reflex is not None
        ],
        niceness=0 if any(route.mode == "live" for route in config.route) else 10,
        max_depth=config.limits.json_depth,
        max_consecutive_acts=config.max_consecutive_acts,
        secret=secret,
    )


def recorder_setup(config: GatewayConfig, state: State, name: str) -> RecorderSetup | None:
    """None where there is no state directory: then nothing is recorded. `name` is the process's."""
    if state.database is None:
        return None
    return RecorderSetup(
        database=state.database,
        gateway=name,
        retention_days=config.store.retention_days,
        max_bytes=config.store.max_bytes,
        artifacts=[route.reflex for route in config.route if route.reflex is not None],
    )
