"""Factors that are read late are kept as halves, where LM is short.

The way back of a normalization multiplies by the differences from the mean, long after the forward
pass made them. In ``mixed``, factors may be rounded to half. So MNCoreNarrow rounds the differences
behind their last reader of the forward pass, and MNCoreWiden gives singles where they are factors
again. In between they take half the memory. If only the way back reads them, they are rounded where
they are made. Only factors are kept so: a sum would lose small addends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..graph.draft import Edit
from ..graph.dtypes import MNDtype
from ..graph.graph import MNGraph, MNNode, Side
from ..graph.rewrite import Facts, FlowRewrite
from ..layers.half_conversions import AXIS, NARROW, WIDEN
from .halves import channel_axes
from .life_times import FULL, filled_words, last_readers, most_words, reader_places

#: Operators that take a rounded factor.
_MULTIPLIES = ("Mul",)
#: Values are rounded if values fill more than this share of LM at some time in between.
_FULL = FULL


def _kept(graph: MNGraph, facts: Facts) -> Iterator[Edit]:
    """Keep a factor as halves, all its channels in long words: late x * y is half(x) * y."""
    target = facts.target
    axes = channel_axes(graph, target)
    ends = last_readers(graph)
    filled = filled_words(graph, ends, target)
    most = most_words(target, _FULL)
    kept = {*facts.exact, *(name for _, name in graph.outputs)}
    readers = reader_places(graph)
    made_at = {name: place for place, node in enumerate(graph.nodes) for name in node.outputs}
    fullest = filled.index(max(filled)) if filled else 0
    for name, axis in axes.items():
        value = graph.values[name]
        if name in kept or value.dtype is not MNDtype.FLOAT:
            continue
        places = readers.get(name, [])
        if places and made_at.get(name, fullest) < fullest < places[0]:
            # Only the way back reads it: it is rounded where it is made.
            places = [made_at[name], *places]
        late = _late(places, filled, most)
        if not late or not all(_multiplies(graph.nodes[place], name) for place in late):
            continue
        last, first = (graph.nodes[at] for at in (places[len(places) - len(late) - 1], late[0]))
        short, wide = f"{name}.kept", f"{name}.factor"
        edit = Edit(inputs={(graph.nodes[place].name, name): wide for place in late})
        edit.values[short] = replace(value, name=short, dtype=MNDtype.HALF)
        edit.values[wide] = replace(value, name=wide)
        along = ((AXIS, axis),)
        made = MNNode(f"{short}.{NARROW}", NARROW, (name,), (short,), along)
        edit.behind[last.name].append(made.near(last))
        made = MNNode(f"{wide}.{WIDEN}", WIDEN, (short,), (wide,), along)
        edit.before[first.name].append(made.near(first))
        yield edit


def _late(places: Sequence[int], filled: Sequence[float], most: float) -> Sequence[int]:
    """Return the places of readers behind the first time at which LM is short."""
    for number in range(1, len(places)):
        between = filled[places[number - 1] : places[number]]
        if max(between) > most:
            return places[number:]
    return ()


def _multiplies(node: MNNode, name: str) -> bool:
    return node.side is Side.DEVICE and node.op in _MULTIPLIES and node.inputs.count(name) == 1


KEEP_FACTORS_AS_HALVES = FlowRewrite(
    "keep_factors_as_halves", "factors of the backward pass are rounded to half", _kept
)
