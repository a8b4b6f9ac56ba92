"""A System 2 that misbehaves on purpose, down to single bytes, and is strict in what it takes.

It serves the four dialects on a real port, answers a scripted turn, and does what words in the
request tell it: docs/simulator.md lists them.
"""

from reflexarc.sim.faulty.server import MISSING as MISSING
from reflexarc.sim.faulty.server import MODELS as MODELS
from reflexarc.sim.faulty.server import FaultyUpstream as FaultyUpstream
from reflexarc.sim.faulty.server import Received as Received
