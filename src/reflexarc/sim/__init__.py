"""A simulated System 2: an OpenAI-compatible server with a policy and a latency profile."""

from reflexarc.sim.policy import Answer as Answer
from reflexarc.sim.policy import PlannedCall as PlannedCall
from reflexarc.sim.policy import Policy as Policy
from reflexarc.sim.policy import RecordedPolicy as RecordedPolicy
from reflexarc.sim.policy import UnknownConversationError as UnknownConversationError
from reflexarc.sim.prefix import PrefixCache as PrefixCache
from reflexarc.sim.profiles import Profile as Profile
from reflexarc.sim.profiles import load_profiles as load_profiles
from reflexarc.sim.profiles import profile_named as profile_named
from reflexarc.sim.server import SimulatedSystem2 as SimulatedSystem2
