"""Which of LM0 and LM1 values lie in, and the copies that this saves."""

from __future__ import annotations

import random

import numpy as np
from compiling import compiled, run
from net import Net

from pycompiler.graph.text import parse_graph
from pycompiler.layers.local_copy import COPY


def test_operands_in_one_lm_are_not_copied() -> None:
    """Each node reads values that were made far apart, in any banks."""
    for seed in range(4):
        net = Net(random.Random(seed), 12, 8)
        names = ["x", net.input(12, 8)]
        for _ in range(12):
            op = net.rng.choice(["Add", "Mul", "Sub", "Neg", "Abs"])
            reads = net.rng.sample(names, 1 if op in ("Neg", "Abs") else 2)
            names.append(net.put(op, *reads))
        last = names[2]
        for name in names[3:]:
            last = net.put("Add", last, name)
        options = {"time_slice": "off", "fuse_elementwise": False}
        model = net.model([last])
        result, _ = compiled(model, "mini", scheduler="spill_opt", **options)
        plain, _ = compiled(model, "mini", scheduler="always_from_dram", **options)
        graph = parse_graph(result.dumps["layout.spill_opt.txt"])
        assert not any(node.op == COPY for node in graph.nodes), f"seed {seed}"
        draw = np.random.default_rng(seed)
        data = {n: draw.standard_normal(s).astype(np.float32) for n, s in net.inputs.items()}
        found, wanted = run(result, data), run(plain, data)
        assert found[last].tobytes() == wanted[last].tobytes(), f"seed {seed}"
