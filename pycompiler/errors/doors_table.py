"""The diagnostics of partitions, of plug-ins, and of several devices."""

from .kinds import GraphError, Kind, OptionError, PlanError, RunError

DOORS_TABLE: dict[str, Kind] = {
    # P08: partitions
    "P0801": Kind(
        GraphError,
        "the model cannot be cut: {reason}",
        "give a model for inference with static shapes, and a device such as emu2",
        {"reason": "it has registered values, which change from call to call"},
    ),
    "P0802": Kind(
        OptionError,
        "`{name}` is no pattern: {reason}",
        "write @pattern('Name') over a function that returns op('Operator', ...)",
        {"name": "Conv Relu", "reason": "its name must be letters, digits and _"},
    ),
    "P0803": Kind(
        PlanError,
        "the piece {piece} does not compile: {reason}",
        "cut with simulate=True, which leaves such pieces on the host",
        {"piece": "device_0", "reason": "P0303: Sin `s` would run on the host"},
    ),
    # P081: several devices
    "P0811": Kind(
        RunError,
        "rank {rank} got no answer in {what}; without a sign of life: rank {lost} ({reason})",
        "look at the output of that rank, and start all ranks again",
        {
            "rank": 0,
            "what": "the sum of gradients",
            "lost": "1",
            "reason": "Timed out waiting 5000ms for recv operation to complete",
        },
    ),
    "P0812": Kind(
        RunError,
        "a batch of {count} examples cannot be cut for {parts} {what}",
        "give at least one example for each part, and at least one part",
        {"count": 1, "parts": 2, "what": "ranks"},
    ),
}
