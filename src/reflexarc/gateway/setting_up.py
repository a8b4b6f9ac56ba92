"""What a configuration means for the gateway's two processes."""

from collections.abc import Mapping
from pathlib import Path

from reflexarc.gateway.config import ACTING_MODES, GatewayConfig
from reflexarc.gateway.frames import DEFAULT_LOADER, ReflexSource, Setup
from reflexarc.gateway.recorder import RecorderSetup
from reflexarc.gateway.state import State
from reflexarc.lifecycle.standing_file import kept_versions


def system1_setup(
    config: GatewayConfig,
    loader: str | None,
    secret: bytes,
    standby: Mapping[str, tuple[str, str]],
) -> Setup:
    """`loader` replaces how reflexes are loaded (None: as ever); `secret` keys what is drawn.
    `standby`: by source name, route and file of what is held ready for a rollback."""
    sources = [
        ReflexSource(route.path, route.reflex, loader or DEFAULT_LOADER, dict(route.effects))
        for route in config.route
        if route.reflex is not None
    ]
    effects = {route.path: dict(route.effects) for route in config.route}
    sources += [
        ReflexSource(name, file, loader or DEFAULT_LOADER, effects[path], standby=True)
        for name, (path, file) in standby.items()
    ]
    return Setup(
        reflexes=sources,
        niceness=0 if any(route.mode in ACTING_MODES for route in config.route) else 10,
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
        artifacts=[
            *(route.reflex for route in config.route if route.reflex is not None),
            # A purge looks into the versions that are kept, too.
            *(str(path) for path in kept_versions(Path(state.database).parent)),
        ],
    )
