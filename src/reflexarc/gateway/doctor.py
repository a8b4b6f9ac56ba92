"""Looks at everything a gateway needs, and changes nothing: install, configuration, keys, reflexes,
upstreams, time, disk, permissions, the store, the port, what runs and what is off."""

import importlib.util
import os
import resource
import shutil
import sqlite3
import ssl
import stat
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from reflexarc import __version__
from reflexarc.gateway.config import GatewayConfig, Route, Tls
from reflexarc.gateway.config_reading import load_config
from reflexarc.gateway.doctor_upstream import examine_upstream
from reflexarc.gateway.finding import Finding, Level
from reflexarc.gateway.serving import listen
from reflexarc.gateway.state import running_gateways
from reflexarc.gateway.tls import listening, upstream_context
from reflexarc.lifecycle.off import read_off
from reflexarc.reflex.reflex import Reflex
from reflexarc.steps.errors import ArtifactError, ConfigError
from reflexarc.store.place import ADMIN_TOKEN, DATABASE, SECRET_KEY, state_dir
from reflexarc.upstream.providers import KINDS

_MIB = 1024**2
_LITTLE_BYTES = 256 * _MIB
_QUICK_CHECK_S = 10.0
_KEPT = {
    "full": "messages and calls are kept as sent",
    "hashed": "structure is kept, values as keyed hashes",
    "none": "nothing of a step is kept",
}


def examine(
    config_path: Path | None, state: Path | None, environment: Mapping[str, str], now_unix_s: float
) -> list[Finding]:
    """Runs with nothing configured too. Network checks end within 5 s per upstream."""
    found = examine_install()
    config = None
    if config_path is not None:
        try:
            config = load_config(config_path)
            said = f"{len(config.route)} routes, every key known"
            found.append(Finding("ok", f"config {config_path}", said))
        except ConfigError as error:
            found.append(Finding("fail", f"config {config_path}", str(error), "correct the file"))
    else:
        found.append(Finding("ok", "config", "none given; name it with --config to check routes"))
    believed, more = examine_tls(config.tls if config is not None else Tls())
    found += more
    for route in config.route if config is not None else ():
        found += examine_route(route, environment)
    for route in _upstreams(config) if config else ():
        found += examine_upstream(route, environment, now_unix_s, tls=believed)
    given = state if state is not None else config.state if config is not None else None
    directory = state_dir(given, environment)
    running = running_gateways(directory)
    found += examine_state(directory, shutil.disk_usage(_nearest(directory)).free)
    found.append(examine_database(directory / DATABASE, config))
    if config is not None:
        found.append(_port(config, bool(running)))
    found += [Finding("ok", "gateway", f"runs at {one.url} (pid {one.pid})") for one in running]
    do = "reflexarc on takes it back"
    off = read_off(directory, now_unix_s)
    found += [Finding("warn", "switched off", f"{one}, by {one.who}", do) for one in off.entries]
    return found


def _upstreams(config: GatewayConfig) -> list[Route]:
    """Each once, a provider as a route that led there would be."""
    found = {one.upstream: one for one in config.route if not one.pooled}
    for provider in config.provider.values():
        kind = KINDS[provider.kind]
        for place in provider.places:
            url = place or kind.url
            if url is not None:
                speaks = provider.dialect or kind.dialects
                found.setdefault(url, Route(url, dialect=speaks, api_key_env=provider.key_env))
    return list(found.values())


def examine_tls(tls: Tls) -> tuple[ssl.SSLContext | None, list[Finding]]:
    """Whom to believe upstream (None: the usual authorities), and what is wrong with the files."""
    believed = None
    found: list[Finding] = []
    do = "correct [tls], or the file it names"
    try:
        believed = upstream_context(tls)
    except ConfigError as error:
        found.append(Finding("fail", "TLS, upstream", str(error), do))
    try:
        if listening(tls) is not None:
            found.append(Finding("ok", "TLS", f"{tls.cert} and its key can be listened with"))
    except ConfigError as error:
        found.append(Finding("fail", "TLS", str(error), do))
    return believed, found


def examine_install() -> list[Finding]:
    """Versions, and the libraries without which some command does not work."""
    version = ".".join(map(str, sys.version_info[:3]))
    found = [Finding("ok", "install", f"reflexarc {__version__}, Python {version}")]
    needed: tuple[tuple[str, Level, str], ...] = (
        ("uvloop", "fail", "reflexarc serve needs it: install reflexarc again"),
        ("lightgbm", "warn", "reflexarc learn needs it: pip install 'reflexarc[learn]'"),
    )
    for module, level, lost in needed:
        here = importlib.util.find_spec(module) is not None
        ok = Finding("ok", module, "installed")
        found.append(ok if here else Finding(level, module, "is not installed", lost))
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    # A request in flight holds two sockets.
    few = 0 <= files < 1024
    do = "raise it (ulimit -n 4096) for more than a few hundred requests at once" if few else ""
    found.append(Finding("warn" if few else "ok", "open files", f"at most {files}", do))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _MIB
    found.append(Finding("ok", "machine", f"{os.cpu_count()} cores, {memory} MiB of memory"))
    return found


def examine_route(route: Route, environment: Mapping[str, str]) -> list[Finding]:
    """What a route names on this machine: the key's variable, the reflex, what is recorded."""
    what = f"route {route.path}"
    found = [Finding("ok", what, f"{route.mode}; record = {route.record}: {_KEPT[route.record]}")]
    if route.api_key_env is not None:
        there = bool(environment.get(route.api_key_env))
        name = f"{what}, key"
        unset = Finding(
            "fail", name, f"{route.api_key_env} is not set", "set it where reflexarc serve starts"
        )
        found.append(Finding("ok", name, f"{route.api_key_env} is set") if there else unset)
    if route.reflex is not None:
        found.append(_reflex(route, route.reflex))
    return found


def _reflex(route: Route, path: str) -> Finding:
    what = f"route {route.path}, reflex {path}"
    try:
        certified = Reflex.load(path).certified(route.max_error)
    except (ArtifactError, OSError) as error:
        do = "learn it again, or take it from a backup; until then System 2 answers everything"
        return Finding("fail", what, str(error), do)
    if not certified:
        do = "it will not act: learn from more sessions, or allow a larger max_error"
        return Finding("warn", what, f"no certificate for max_error {route.max_error:g}", do)
    scopes = ", ".join(one.scope for one in certified)
    held = f"loads, with a certificate for max_error {route.max_error:g}: {scopes}"
    return Finding("ok", what, held)


def examine_state(directory: Path, free_bytes: int) -> list[Finding]:
    """`free_bytes`: what is free on the file system that the directory is on, or will be."""
    little = free_bytes < _LITTLE_BYTES
    do = "free some: a full disk stops System 1 from acting" if little else ""
    level = "fail" if little else "ok"
    found = [Finding(level, "disk", f"{free_bytes // _MIB} MiB free at {directory}", do)]
    what = f"state {directory}"
    if not directory.exists():
        if os.access(_nearest(directory), os.W_OK):
            return [*found, Finding("ok", what, "not there yet; serve makes it")]
        do = "name another with --state or REFLEXARC_STATE"
        return [*found, Finding("fail", what, "not there, and cannot be made", do)]
    if not directory.is_dir():
        return [*found, Finding("fail", what, "is not a directory", "move it, or name another")]
    if not os.access(directory, os.W_OK | os.X_OK):
        found.append(Finding("fail", what, "not writable", f"chown or chmod {directory}"))
    for path, allowed in (
        (directory, 0o700),
        (directory / SECRET_KEY, 0o600),
        (directory / ADMIN_TOKEN, 0o600),
    ):
        try:
            held = path.stat()
        except FileNotFoundError:
            continue
        mode = stat.S_IMODE(held.st_mode)
        if mode & ~allowed:
            do = f"chmod {allowed:o} {path}"
            found.append(Finding("fail", str(path), f"mode {mode:o}: open to others", do))
        elif held.st_uid != os.geteuid():
            do = "run doctor and serve as the same user"
            found.append(Finding("warn", str(path), f"belongs to user {held.st_uid}", do))
        else:
            found.append(Finding("ok", str(path), f"mode {mode:o}, yours"))
    return found


def examine_database(path: Path, config: GatewayConfig | None) -> Finding:
    """SQLite's own quick check, for ten seconds at most, and the size against its limit."""
    what = f"store {path}"
    if not path.exists():
        return Finding("ok", what, "nothing recorded yet")
    wal = path.with_name(f"{path.name}-wal")
    size = path.stat().st_size
    shown = f"{size // 1024} KiB, WAL {wal.stat().st_size // 1024 if wal.exists() else 0} KiB"
    ends_s = time.monotonic() + _QUICK_CHECK_S
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=2)
        try:
            connection.set_progress_handler(lambda: int(time.monotonic() > ends_s), 100_000)
            said = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        if "interrupted" in str(error):
            do = f"for a whole check: sqlite3 {path} 'PRAGMA quick_check'"
            found = f"{shown}; not checked within {_QUICK_CHECK_S:g} s"
            return Finding("warn", what, found, do)
        said = str(error)
    if said != "ok":
        do = "stop the gateway, move the file away with its -wal and -shm, start again"
        return Finding("fail", what, f"{shown}; {said}", do)
    if config is not None and size > config.store.max_bytes:
        return Finding("warn", what, f"{shown}: over store.max_bytes", "the oldest steps go")
    return Finding("ok", what, f"{shown}, passes SQLite's quick check")


def _port(config: GatewayConfig, running: bool) -> Finding:
    what = f"port {config.host}:{config.port}"
    try:
        listen(config.host, config.port).close()
    except ConfigError as error:
        if running:
            return Finding("warn", what, f"{error}", "fine if the gateway below has it")
        return Finding("fail", what, str(error), "stop what listens there, or set another port")
    return Finding("ok", what, "can be listened on")


def _nearest(path: Path) -> Path:
    """The directory itself or the first above it that is there."""
    return next(one for one in (path.absolute(), *path.absolute().parents) if one.is_dir())
