"""What prompts are made of: how much of each was sent before."""

from reflexarc.context.redundancy import Redundancy as Redundancy
from reflexarc.context.redundancy import Turn as Turn
from reflexarc.context.redundancy import redundancy as redundancy
from reflexarc.context.redundancy import turns as turns
