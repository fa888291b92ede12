"""Disjoint sets that are joined step by step, also known as union-find."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class DisjointSets(Generic[T]):
    """Sets of members; each member starts alone, and one member of a set, the root, names it."""

    def __init__(self) -> None:
        self._parent: dict[T, T] = {}

    def root(self, member: T) -> T:
        """Return the root of the set of ``member``."""
        parent = self._parent
        root = member
        while (above := parent.get(root, root)) != root:
            root = above
        while (above := parent.get(member, member)) != root:
            parent[member], member = root, above
        return root

    def join(self, member: T, other: T) -> None:
        """Join the sets of the two members; the root of ``other`` becomes the common root."""
        self._parent[self.root(member)] = self.root(other)
