"""Nodes of traces that name their parents: what stands above and below one. Damage, as a node that
is its own ancestor, ends a walk."""

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

Node = TypeVar("Node")
Key = tuple[str, str]
"""A trace's id, a node's."""
_DEPTH = 256


class Tree(Generic[Node]):
    """`parents` gives, for each node by its key, the key of the one it stands under."""

    def __init__(self, nodes: Mapping[Key, Node], parents: Mapping[Key, Key]) -> None:
        self._nodes = nodes
        self._parents = parents
        self._children: dict[Key, list[Key]] = {}
        for key in nodes:
            self._children.setdefault(parents.get(key, ("", "")), []).append(key)

    def above(self, key: Key) -> Iterator[Node]:
        """From the parent up."""
        for _ in range(_DEPTH):
            found = self._parents.get(key)
            if found is None or found not in self._nodes:
                return
            yield self._nodes[found]
            key = found

    def below(self, key: Key) -> Iterator[Node]:
        """All under a node, each once."""
        seen = {key}
        waiting = [key]
        while waiting:
            for child in self._children.get(waiting.pop(), ()):
                if child not in seen:
                    seen.add(child)
                    waiting.append(child)
                    yield self._nodes[child]
