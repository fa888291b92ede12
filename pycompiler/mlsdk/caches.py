"""The key-value caches of transformers among nested arguments and results."""

from __future__ import annotations

import sys
from typing import Any

from torch.utils import _pytree as pytree

from ..errors import error


def is_cache(value: object) -> bool:
    """Whether ``value`` is a cache of transformers; the library is not imported for that."""
    library = sys.modules.get("transformers")
    cache = getattr(library, "Cache", None)
    return isinstance(cache, type) and isinstance(value, cache)


def look_into_caches(values: Any) -> None:
    """Let torch look into the caches in ``values``, as transformers does for torch.export.

    P0704 for caches that it cannot look into, so that none becomes a constant unnoticed.
    """
    if any(map(is_cache, pytree.tree_leaves(values, is_leaf=is_cache))):
        from transformers.integrations.executorch import register_dynamic_cache_export_support

        register_dynamic_cache_export_support()  # type: ignore[no-untyped-call]
    for cache in filter(is_cache, pytree.tree_leaves(values, is_leaf=is_cache)):
        try:
            opaque = any(map(is_cache, pytree.tree_leaves(cache)))
        except RuntimeError:  # transformers flattens only some kinds of layers
            opaque = True
        if opaque:
            legal = "a DynamicCache, or the tensors that the cache is made of"
            raise error("P0704", name="cache", value=f"a {type(cache).__name__}", legal=legal)


def leaves_of_caches(values: Any) -> set[int]:
    """Return the numbers of the leaves that stand in caches."""
    found: set[int] = set()
    place = 0
    for part in pytree.tree_leaves(values, is_leaf=is_cache):
        count = len(pytree.tree_leaves(part))
        if is_cache(part):
            found.update(range(place, place + count))
        place += count
    return found
