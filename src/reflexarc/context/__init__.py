"""What prompts are made of: how much of each was sent before, and where that ends."""

from reflexarc.context.breaks import Break as Break
from reflexarc.context.breaks import compare as compare
from reflexarc.context.redundancy import Redundancy as Redundancy
from reflexarc.context.redundancy import Turn as Turn
from reflexarc.context.redundancy import redundancy as redundancy
from reflexarc.context.redundancy import turns as turns
