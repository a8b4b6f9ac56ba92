"""A reflex learned once from the parcel desk, shared by the tests that only read it."""

import pytest

from reflexarc.reflex import Reflex, learn
from tests.reflex import parcels


@pytest.fixture(scope="session")
def parcel_reflex() -> Reflex:
    return learn(parcels.sessions(0, 90, noise=0.02), max_error=0.1)
