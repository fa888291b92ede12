"""One simulation: a node, its layouts, a setting. Any process can run it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ..code.lines import Fragment
from ..emit.fragment_cache import Fragments, renamed
from ..emit.program import concatenate
from ..errors import PycompilerError, error
from ..graph.graph import Location, MNGraph, MNNode, MNValue
from ..layers.base import banks_of, layout_of
from ..layers.dram_transfer_plan import dram_words
from ..layers.local_copy import COPY
from ..layers.operators import LAYERS
from ..machine import Target, load_target
from ..version import software
from .outcome import Outcome
from .settings import LM, Setting

_OTHER = {Location.LM0: Location.LM1, Location.LM1: Location.LM0}
_KEPT = "kept"


@dataclass(frozen=True)
class Task:
    """A node by itself in one setting, on a machine that is named by its description's digest."""

    node: MNNode
    values: tuple[MNValue, ...]
    setting: Setting
    machine: str
    digest: str

    @cached_property
    def key(self) -> str:
        """A digest of all that the outcome depends on, also of this software."""
        facts = (self.node, self.values, self.setting, self.digest, software())
        return hashlib.sha256(repr(facts).encode()).hexdigest()


def task_of(node: MNNode, graph: MNGraph, setting: Setting, machine: str, digest: str) -> Task:
    """Return the task for a node of a graph with layouts. Equal nodes have equal tasks."""
    alone, values, _ = renamed(replace(node, inplace=None), graph)
    banks = banks_of(alone, setting)
    own = tuple(replace(value, location=banks[name]) for name, value in values.items())
    alone = replace(alone, inplace=setting.inplace)
    return Task(alone, own, setting, machine, digest)


def simulate(task: Task) -> dict[str, Any]:
    """Return the outcome of a task as plain values. A worker calls this.

    A diagnostic of a layer is an outcome too: the node cannot run so. RuntimeError if this process
    has another machine of that name.
    """
    target = load_target(task.machine)
    if target.digest != task.digest:
        raise RuntimeError(f"this worker has another machine `{task.machine}`")
    try:
        return _simulated(task, target).json()
    except (PycompilerError, AssertionError, ValueError, KeyError) as problem:
        said = " ".join(str(problem).split())[:200]
        return Outcome(task.key, refused=said or type(problem).__name__).json()


def _simulated(task: Task, target: Target) -> Outcome:
    node, values = task.node, {value.name: value for value in task.values}
    addresses, used = _addresses(task, values, target)
    for bank in LM:
        if used[bank] > target.words(bank.memory):
            refused = f"it needs {used[bank]} long words of {bank.memory}"
            return Outcome(task.key, refused=refused)
    graph = MNGraph("", target.name, nodes=(node,), values=values)
    there = graph.with_values({n: replace(v, addr=addresses[n]) for n, v in values.items()})
    for refusal in LAYERS[node.op].refusals(node, there, target):
        return Outcome(task.key, refused=refusal)
    made = Fragments(target)
    fragments: list[tuple[str, str, Fragment]] = []
    if task.setting.keeps:
        assert node.inplace is not None
        source = values[node.inputs[node.inplace]]
        copy = replace(source, name=_KEPT, location=_OTHER[source.location])
        moved = MNNode(_KEPT, COPY, (source.name,), (_KEPT,))
        fragments.append((_KEPT, _KEPT, made.of(moved, graph.with_values({_KEPT: copy}))))
    fragments.append((node.name, node.op, made.of(node, graph)))
    code = concatenate(fragments, addresses, target)
    # The assembler is the judge of banks that a layer was not asked for before.
    facts = target.assemble(code.text, "node.vsm").report()
    busy: dict[str, int] = {}
    for row in code.nodes:
        for slot, count in row.busy.items():
            busy[slot] = busy.get(slot, 0) + count
    return Outcome(
        task.key,
        steps=facts["steps"],
        cycles=facts["cycles"],
        lm0=used[Location.LM0],
        lm1=used[Location.LM1],
        read=sum(row.dram_read for row in code.nodes),
        written=sum(row.dram_written for row in code.nodes),
        busy=tuple(sorted(busy.items())),
    )


def _addresses(
    task: Task, values: Mapping[str, MNValue], target: Target
) -> tuple[dict[str, int], dict[Location, int]]:
    """Return addresses one behind the other, and the long words that each LM needs."""
    node, free = task.node, dict.fromkeys((*LM, Location.DRAM), 0)
    addresses: dict[str, int] = {}
    for name, value in values.items():
        bank = value.location
        if node.inplace is not None and name == node.outputs[0] and name not in node.inputs:
            taken = node.inputs[node.inplace]
            if values[taken].location is not bank:
                raise error("P0204", stage="simulation", rule="in place", problem=f"`{taken}`")
            addresses[name] = addresses[taken]
            end = addresses[name] + (value.num_lw or 0)
            free[bank] = max(free[bank], end)
            continue
        addresses[name] = free[bank]
        local = bank in LM
        free[bank] += (value.num_lw or 0) if local else dram_words(layout_of(value), target)
    if task.setting.keeps:
        assert node.inplace is not None
        taken = node.inputs[node.inplace]
        other = _OTHER[values[taken].location]
        addresses[_KEPT] = free[other]
        free[other] += values[taken].num_lw or 0
    return addresses, {bank: free[bank] for bank in LM}
