"""The order of possible calls, of which those of several tools are hard to compare."""

from collections.abc import Sequence

from reflexarc.reflex.ranking import RankedCall

_MANY_ARGUMENTS = 0.3
"""The power by which the number of arguments softens their product, in `by_standing`."""


def by_standing(calls: Sequence[RankedCall]) -> list[RankedCall]:
    """Calls, best first: by their joint probability, but where best calls of tools are compared,
    each argument counts the less the more of them there are. The product takes arguments for
    independent, and those that have the right order have the right items, too: a call of one
    argument would come before those of a much likelier tool of seven."""
    order = sorted(calls, key=lambda call: -call.joint)
    standing: list[tuple[float, RankedCall]] = []
    seen: set[str] = set()
    for call in order:
        stands = call.joint
        if call.name not in seen:
            seen.add(call.name)
            power = max(1, len(call.chosen)) ** -_MANY_ARGUMENTS
            stands = call.tool_probability * call.argument_probability**power
        standing.append((stands, call))
    standing.sort(key=lambda one: -one[0])
    return [call for _, call in standing]
