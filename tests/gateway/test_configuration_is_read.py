"""`reflexarc.toml`: what is unknown is refused, with its line and the nearest key."""

import re
from pathlib import Path

import pytest

from reflexarc.gateway.config import (
    GatewayConfig,
    Lifecycle,
    Limits,
    Price,
    Route,
    StoreLimits,
    Tls,
)
from reflexarc.gateway.config_pool import (
    AccountsConfig,
    ProviderConfig,
    QueueConfig,
    Served,
    TierConfig,
)
from reflexarc.gateway.config_prune import PruneConfig
from reflexarc.gateway.config_reading import load_config
from reflexarc.gateway.system1 import System1Limits
from reflexarc.steps.errors import ConfigError
from reflexarc.upstream import Timeouts
from reflexarc.upstream.embedded import EngineOptions

ROUTE = '[[route]]\nupstream = "http://h:1/v1"\n'


def _read(tmp_path: Path, text: str) -> GatewayConfig:
    path = tmp_path / "reflexarc.toml"
    path.write_text(text)
    return load_config(path)


def test_a_route_needs_only_its_upstream(tmp_path: Path) -> None:
    config = _read(tmp_path, ROUTE)
    assert (config.host, config.port) == ("127.0.0.1", 8411)
    route = config.route[0]
    assert (route.mode, route.path, route.max_error, route.deadline_ms) == (
        "shadow",
        "/v1",
        0.05,
        5.0,
    )
    assert config.limits.body_bytes == 32 * 1024 * 1024


def test_every_section_is_read(tmp_path: Path) -> None:
    config = _read(
        tmp_path,
        'host = "::1"\nport = 1\ngrace_s = 2.5\nmax_consecutive_acts = 3\n'
        "[limits]\nbody_bytes = 10\n[timeouts]\nconnect_s = 1.5\n[system1]\nhang_s = 9.0\n"
        + ROUTE
        + 'mode = "live"\nreflex = "a.reflex"\nmax_error = 0.1\ndeadline_ms = 7.5\n',
    )
    assert (config.limits.body_bytes, config.timeouts.connect_s) == (10, 1.5)
    assert (config.system1.hang_s, config.route[0].mode) == (9.0, "live")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "missing required field `route`"),
        ("route = []", "at least one"),
        ("port = \n", "line 1"),
        (ROUTE + 'mod = "live"', ":3: route.mod is not known; did you mean mode?"),
        (ROUTE + "[timeout]\n", ":3: timeout is not known; did you mean timeouts?"),
        (ROUTE + "[limits]\nbody = 3\n", ":4: limits.body is not known"),
        (ROUTE + 'mode = "on"', "line 3"),
        (ROUTE + 'mode = "live"', "needs a reflex"),
        (ROUTE + "max_error = 1.5", "between 0 and 1"),
        (ROUTE + "deadline_ms = 0.0", "deadline_ms"),
        (ROUTE + 'dialect = "mesages"', "did you mean messages"),
        (ROUTE + 'dialect = "klingon"', "no dialect"),
        (ROUTE + 'dialect = ["chat", "chat"]', "each once"),
        (ROUTE + "dialect = []", "names what the upstream speaks"),
        ('[[route]]\nupstream = "embedded"\ndialect = "messages"', "embedded speaks chat"),
        (ROUTE + 'path = "v1"', "must look like /v1"),
        (ROUTE + 'path = "/v1/"', "must look like /v1"),
        (ROUTE + ROUTE, "another route has the path /v1"),
        ('[[route]]\nupstream = "h:1"', "must be a URL"),
        ('[[route]]\nupstream = "ftp://h/v1"', "must be a URL"),
        ("port = 99999\n" + ROUTE, "port"),
        ('port = "8411"\n' + ROUTE, "line 1"),
        (ROUTE + "[limits]\nbody_bytes = 0\n", "limits.body_bytes must be from 1 to"),
        (ROUTE + "[limits]\nbody_bytes = 5_000_000_000\n", "limits.body_bytes"),
        (ROUTE + "[limits]\njson_depth = 100000\n", "limits.json_depth"),
        (ROUTE + "[timeouts]\ntotal_s = 0.0\n", "timeouts.total_s"),
        (ROUTE + "[timeouts]\nidle_s = nan\n", "timeouts.idle_s must be from 0.001"),
        (ROUTE + "[timeouts]\nconnect_s = -1.0\n", "timeouts.connect_s"),
        (ROUTE + "[system1]\nhang_s = inf\n", "system1.hang_s"),
        (ROUTE + "[system1]\nmax_waiting = 0\n", "system1.max_waiting"),
        (ROUTE + "deadline_ms = nan", "deadline_ms"),
        (ROUTE + "max_error = nan", "between 0 and 1"),
        ("grace_s = -1.0\n" + ROUTE, "grace_s"),
        ("max_consecutive_acts = 0\n" + ROUTE, "max_consecutive_acts"),
        ('host = ""\n' + ROUTE, "host must name an address"),
        (ROUTE + 'path = "/healthz"', "the gateway's own"),
        (ROUTE + 'path = "/metrics/v1"', "the gateway's own"),
        (ROUTE + 'path = "/api/v1/reflex"', "the gateway's own"),
        (ROUTE + 'path = "/a/../v1"', "holds . or .."),
        ('[[route]]\nupstream = "http://h/v1?key=1"', "must not hold a query"),
        ('[[route]]\nupstream = "http://h/v1#a"', "must not hold a fragment"),
        (ROUTE + "price = { input = -1.0, output = 1.0 }", "price.input must be from 0"),
        (ROUTE + "price = { input = 1.0 }", "output"),
        (ROUTE + "warm_connections = -1", "warm_connections must be from 0 to 1000"),
        (ROUTE + '[tls]\ncrt = "a"', ":4: tls.crt is not known; did you mean cert?"),
        (ROUTE + "[store]\nmax_bytes = 1", "store.max_bytes"),
        (
            f'{ROUTE}mode = "live"\nreflex = "a.reflex"\n'
            f'{ROUTE}path = "/v2"\nmode = "managed"\nreflex = "./a.reflex"\naudit = 0.0\n',
            "route 2: audit is 0.0, but adaptive where else ./a.reflex may act",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        _read(tmp_path, text)
    assert said in str(caught.value)
    assert "reflexarc.toml" in str(caught.value)


@pytest.mark.parametrize("url", ["http://me:pa55@h/v1", "http://me:pa55@h:x/v1", "me:pa55@h/v1"])
def test_a_password_in_an_upstream_is_refused_and_never_shown(url: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        _read(tmp_path, f'[[route]]\nupstream = "{url}"\n')
    assert "upstream must" in str(caught.value)
    assert "pa55" not in str(caught.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path / "none.toml")


def test_the_documented_file_shows_every_key_with_its_default(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "configuration.md"
    shown = page.read_text().split("```toml\n")[1].split("```")[0]
    config = _read(tmp_path, shown)
    plain = GatewayConfig(
        route=(
            Route(
                upstream="http://127.0.0.1:9100/v1",
                reflex="agent.reflex",
                api_key_env="MODEL_KEY",
                price=Price(2.5, 10.0, 1.25),
                prune=PruneConfig(),
            ),
        ),
        state="reflexarc-state",
        tls=Tls("gateway.crt", "gateway.key", "private-ca.crt"),
    )
    assert config == plain
    keys = {line.split("=")[0].strip() for line in shown.splitlines() if "=" in line}
    assert "price = { input = 2.5, cached = 1.25, output = 10.0 }" in shown
    known = {
        name
        for kind in (
            GatewayConfig,
            Route,
            Limits,
            Timeouts,
            System1Limits,
            StoreLimits,
            Lifecycle,
            Tls,
            AccountsConfig,
            QueueConfig,
            EngineOptions,
        )
        for name in kind.__struct_fields__
    }
    sections = {"route", "limits", "timeouts", "system1", "store", "lifecycle", "tls"}
    pool = {"provider", "model", "alias", "tier", "accounts", "queue", "engine"}
    # `# tier` and `prices` have no value that stands for their default.
    assert keys - {"# tier"} == known - sections - pool - {"prices"}


def test_the_documented_providers_and_models_can_be_meant(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "configuration.md"
    shown = page.read_text().split("```toml\n")[2].split("```")[0]
    config = _read(tmp_path, shown)
    assert [one.provider for one in config.model["coder"].of("standard")] == ["groq", "here"]
    assert config.tier == GatewayConfig(route=()).tier
    keys = {
        key.strip().lstrip("{ ").strip()
        for line in shown.splitlines()
        for key in re.findall(r"(?:^|[{,])\s*([a-z_0-9]+)\s*=", line.split("#")[0])
    }
    known = {
        name
        for kind in (ProviderConfig, TierConfig, Served, Timeouts)
        for name in kind.__struct_fields__
    }
    assert known - keys == {"key_file", "price"}
