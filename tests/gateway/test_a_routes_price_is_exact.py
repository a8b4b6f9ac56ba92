"""A route's own price: as it stands in the file, cache writes apart, in whole micro-dollars."""

from pathlib import Path

import pytest

from reflexarc.gateway.config import GatewayConfig
from reflexarc.gateway.config_reading import load_config
from reflexarc.steps.errors import ConfigError
from reflexarc.wire.usage import Usage

USAGE = Usage(12_307, 550, cache_write=12_304)


def config(tmp_path: Path, price: str) -> GatewayConfig:
    path = tmp_path / "reflexarc.toml"
    path.write_text(f'[[route]]\nupstream = "http://127.0.0.1:9/v1"\nprice = {price}\n')
    return load_config(path)


@pytest.mark.parametrize(
    ("price", "micro_usd"),
    [
        ("{ input = 3, output = 15, cache_write = 3.75 }", 54_399),
        ("{ input = 3.0, output = 15.0, cached = 0.3, cache_write = 3.75, cache_write_1h = 6.0 }",
         54_399),
        ("{ input = 3, output = 15 }", 12_307 * 3 + 8250),
        ("{ input = 0.1, output = 0.7 }", 1616),  # 1230.7 + 385, and no binary fraction between
    ],
)  # fmt: skip
def test_what_is_written_costs_as_the_file_says(tmp_path: Path, price: str, micro_usd: int) -> None:
    [route] = config(tmp_path, price).route
    assert route.price is not None
    assert route.price.of_tokens().micro_usd(USAGE) == micro_usd


@pytest.mark.parametrize("name", ["cache_write", "cache_write_1h"])
def test_a_price_that_cannot_be_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=f"price.{name} must be from 0"):
        config(tmp_path, f"{{ input = 1, output = 1, {name} = -1 }}")
