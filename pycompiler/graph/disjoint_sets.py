"""Disjoint sets that are joined step by step, also known as union-find."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class DisjointSets(Generic[T]):
    """Every member starts in a set of its own. A set is named by one of its members, the root."""

    def __init__(self) -> None:
        self._parent: dict[T, T] = {}

    def root(self, member: T) -> T:
        """Return the root of the set that ``member`` is in."""
        parent = self._parent
        root = member
        while (above := parent.get(root, root)) != root:
            root = above
        while (above := parent.get(member, member)) != root:
            parent[member], member = root, above
        return root

    def join(self, member: T, other: T) -> None:
        """Make one set of the sets of both; its root is the root of ``other``."""
        self._parent[self.root(member)] = self.root(other)
