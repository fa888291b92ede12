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
        "write @pattern('Name') above a function that returns op('Operator', ...)",
        {"name": "Conv Relu", "reason": "its name must be letters, digits and _"},
    ),
    "P0803": Kind(
        PlanError,
        "the piece {piece} does not compile: {reason}",
        "use simulate=True, which leaves such pieces on the host",
        {"piece": "device_0", "reason": "P0303: Sin `s` would run on the host"},
    ),
    # P081: several devices
    "P0811": Kind(
        RunError,
        "rank {rank} got no message during {what}; ranks that do not respond: {lost} ({reason})",
        "read the output of these ranks, and start all ranks again",
        {
            "rank": 0,
            "what": "the sum of gradients",
            "lost": "1",
            "reason": "Timed out waiting 5000ms for recv operation to complete",
        },
    ),
    "P0812": Kind(
        RunError,
        "a batch of {count} examples cannot be divided among {parts} {what}",
        "the batch needs at least one example for each of them, and there must be at least one",
        {"count": 1, "parts": 2, "what": "ranks"},
    ),
    # P082: plug-ins
    "P0821": Kind(
        RunError,
        "{device} has no free block of {size} {unit}: {used} of {capacity} {unit} are in use",
        "free buffers, or give the pool a larger capacity",
        {"device": "host", "size": 4096, "unit": "bytes", "used": 1024, "capacity": 2048},
    ),
    "P0822": Kind(
        RunError,
        "{what} is used on the wrong stream: {reason}",
        "record an event after the earlier use, and let the stream wait for it",
        {"what": "memory at 64", "reason": "stream 2 does not wait for operation 1 of stream 1"},
    ),
    "P0823": Kind(
        RunError,
        "{what} is used after it was freed",
        "free a buffer after its last use; the pool keeps the order of streams",
        {"what": "64 bytes at 128"},
    ),
    "P0824": Kind(
        RunError,
        "a buffer of {what} cannot be freed: {reason}",
        "free every buffer once, with the pool that allocated it",
        {"what": "64 bytes", "reason": "it is free already"},
    ),
    "P0825": Kind(
        RunError,
        "{what} cannot be used: {reason}",
        "allocate a buffer of the size that the form of the tensor states",
        {"what": "memory at 64", "reason": "4096 bytes do not fit its 1024"},
    ),
    "P0826": Kind(
        PlanError,
        "memory cannot be planned: {reason}",
        "give each tensor a size, and a step that writes it first",
        {"reason": "step 0 reads `x` before any step writes it"},
    ),
    "P0827": Kind(
        RunError,
        "there is no plug-in `{name}`: {reason}",
        "install the package that contains it, or use another name",
        {"name": "chip", "reason": "the plug-ins are emu2-graph, emu2-kernel, host"},
    ),
    "P0828": Kind(
        PlanError,
        "the device does not support {what}: {reason}",
        "run it on the host, as a mixed graph does",
        {"what": "`y`", "reason": "no program of the device moves it"},
    ),
}
