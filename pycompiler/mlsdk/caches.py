"""The key-value caches of transformers among nested arguments and results."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from torch.utils import _pytree as pytree


def is_cache(value: object) -> bool:
    """Whether ``value`` is a cache of transformers; the library is not imported for that."""
    library = sys.modules.get("transformers")
    cache = getattr(library, "Cache", None)
    return isinstance(cache, type) and isinstance(value, cache)


def look_into_caches(values: Any) -> None:
    """Let torch look into the caches in ``values``, as transformers does for torch.export.

    Caches of other kinds than DynamicCache stay opaque.
    """
    if any(map(is_cache, pytree.tree_leaves(values))):
        from transformers.integrations import executorch

        register: Callable[[], None] = executorch.register_dynamic_cache_export_support
        register()


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
