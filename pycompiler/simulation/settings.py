"""The settings of a node: what a scheduler may still choose when layouts are known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from ..graph.graph import Location, MNGraph, MNNode
from ..layers.base import Placement, banks_of, distinct, mirrored
from ..layers.operators import LAYERS
from ..machine import Target

#: The modes, from an estimate to all settings.
FAKE, FAST, DEFAULT, BEST, FULL = "fake", "fast", "default", "best", "full"
MODES = (FAKE, DEFAULT, FAST, BEST, FULL)
LM = (Location.LM0, Location.LM1)
#: Nodes with more operands than this are tried in the layer's own banks only.
_MOST_OPERANDS = 5


@dataclass(frozen=True)
class Setting(Placement):
    """One way to run a node.

    ``keeps`` says that the input in whose place the first output goes is read later too, so that it
    is copied to the other LM first; without it, the room of a dead input is used.
    """

    keeps: bool = False

    @property
    def text(self) -> str:
        """A short form: banks of inputs, an arrow, banks of outputs, and what happens in place."""
        sides = [
            "+".join(bank.value for bank in side) or "-" for side in (self.inputs, self.outputs)
        ]
        shown = " -> ".join(sides)
        if self.inplace is not None:
            shown += f" on input {self.inplace}" + (", which is kept" if self.keeps else "")
        return shown


def own_setting(node: MNNode, graph: MNGraph) -> Setting:
    """Return the setting that the node's layer asks for."""
    return Setting(**vars(LAYERS[node.op].place(node, graph)))


def settings_of(node: MNNode, graph: MNGraph, target: Target, mode: str) -> list[Setting]:
    """Return the settings to simulate, the layer's own first.

    ``fast`` has only that one. ``default`` adds the one that keeps the input in whose place the
    result goes. ``best`` adds all banks that the layer accepts, with and without in-place, where
    settings that differ only by the exchange of LM0 and LM1 count once. ``full`` has those too, and
    every setting that keeps an input.
    """
    own = own_setting(node, graph)
    found = [own]
    if mode in (FAKE, FAST):
        return found
    if own.inplace is not None:
        found.append(replace(own, keeps=True))
    if mode == DEFAULT:
        return found
    inputs = [name for name in distinct(node.inputs) if name]
    if len(inputs) + len(node.outputs) > _MOST_OPERANDS:
        return found
    seen = {one if mode == FULL else _canonical(one) for one in found}
    for one in _others(own):
        key = one if mode == FULL else _canonical(one)
        if key not in seen and accepted(node, graph, target, one):
            seen.add(key)
            found.append(one)
            if mode == FULL and one.inplace is not None:
                kept = replace(one, keeps=True)
                if kept not in seen:
                    seen.add(kept)
                    found.append(kept)
    return found


def placed(node: MNNode, graph: MNGraph, setting: Setting) -> MNGraph:
    """Return the graph with the node's values in the memories of the setting."""
    banks = banks_of(node, setting)
    changed = {name: replace(graph.values[name], location=bank) for name, bank in banks.items()}
    return graph.with_values(changed)


def accepted(node: MNNode, graph: MNGraph, target: Target, setting: Setting) -> bool:
    """Whether the layer accepts its operands in these memories."""
    there = placed(node, graph, setting)
    return next(iter(LAYERS[node.op].refusals(node, there, target)), None) is None


def _canonical(setting: Setting) -> Setting:
    return min(setting, mirrored(setting), key=_banks)


def _banks(setting: Setting) -> list[str]:
    return [bank.value for bank in (*setting.inputs, *setting.outputs)]


def _others(own: Setting) -> Iterator[Setting]:
    """Yield all banks of what lies in LM; a result in place lies where its input does."""
    sides = [LM if bank in LM else (bank,) for bank in (*own.inputs, *own.outputs)]
    count = len(own.inputs)
    for banks in product(*sides):
        inputs, outputs = banks[:count], banks[count:]
        yield replace(own, inputs=inputs, outputs=outputs, inplace=None)
        if own.inplace is not None and outputs[0] is inputs[min(own.inplace, count - 1)]:
            yield replace(own, inputs=inputs, outputs=outputs)
