"""A minute of the fuzzer: the same cases each time, split so that no worker holds them all."""

import pytest

from tests.wire.fuzzing.running import Fuzzer

CASES = 24_000
"""About ten seconds. `make fuzz` goes on for ten minutes, from another seed each time."""


@pytest.mark.parametrize("seed", range(6))
def test_nothing_but_errors_that_are_meant(seed: int) -> None:
    fuzzer = Fuzzer(seed)
    for _ in range(CASES):
        fuzzer.one()
    assert [failure.what for failure in fuzzer.failures] == []
    # Most of the mutations must come to something, or they would show nothing.
    assert fuzzer.outcomes["requests converted"] > CASES / 40
    assert fuzzer.outcomes["answers converted"] > CASES / 40
    assert fuzzer.outcomes["streams converted"] > CASES / 20
