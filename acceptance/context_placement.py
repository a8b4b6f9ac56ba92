"""Lines 5.1 on: prompts go where their beginning is held, in slots and at replicas.

The embedded engine with two slots and six sessions that take turns, beside llama.cpp alone; then
two replicas with prompt caches of their own behind real gateways.
"""

from acceptance import context_placement_replicas as replicas
from acceptance import context_placement_slots as slots
from acceptance.lines import Lines


def measure(lines: Lines) -> None:
    slots.measure(lines)
    replicas.measure(lines)
