"""The diagnostics of the way from Python to ONNX."""

from __future__ import annotations

from .kinds import ExportError, Kind

EXPORT_TABLE: dict[str, Kind] = {
    "P0101": Kind(
        ExportError,
        "torch cannot capture the function as a graph: {reason}",
        "rewrite the line that it names: static shapes, and no if or loop that depends on values",
        {"reason": "data-dependent branch"},
    ),
    "P0102": Kind(
        ExportError,
        "torch cannot express `{op}` in ONNX",
        "rewrite it with operators of torch.nn.functional that have an ONNX form",
        {"op": "aten.linalg_eig.default"},
    ),
    "P0103": Kind(
        ExportError,
        "the shape of `{name}` is dynamic: {shape}",
        "every shape must be known at compile time: give fixed sizes, and use torch.where or "
        "torch.nonzero_static for operators whose output size depends on values (nonzero, "
        "masked_select, unique)",
        {"name": "y", "shape": "(n, 4)"},
    ),
    "P0104": Kind(
        ExportError,
        "the {what} must be a dict of str to torch.Tensor, not {got}",
        "pass and return dictionaries of named tensors",
        {"what": "function's result", "got": "Tensor"},
    ),
    "P0105": Kind(
        ExportError,
        "the function writes into {target} in place",
        "return the new value as an output instead",
        {"target": "its input `x`"},
    ),
    "P0106": Kind(
        ExportError,
        "torch's exporter failed: {reason}",
        "run torch.onnx.export(dynamo=True) on the function alone to see its full report",
        {"reason": "AssertionError"},
    ),
    "P0107": Kind(
        ExportError,
        "export_kwargs has `{key}`, which compile() sets itself",
        "remove it from export_kwargs",
        {"key": "dynamo"},
    ),
    "P0108": Kind(
        ExportError,
        "the ONNX model is invalid: {reason}",
        "correct what the message names; where torch's exporter made it, write that line of the "
        "function with other operators",
        {"reason": "node `a` reads `b`, which nothing makes"},
    ),
    "P0109": Kind(
        ExportError,
        "the {what} `{name}` is {kind}, which cannot be compiled",
        "use dense tensors of {legal}",
        {"what": "input", "name": "x", "kind": "complex64", "legal": "float32, int64"},
    ),
    "P0111": Kind(
        ExportError,
        "{op} `{node}` reads index {index} of axis {axis}, which has {size} elements",
        "use indices from -{size} to {last}",
        {"op": "Gather", "node": "node_embedding", "index": 99, "axis": 0, "size": 16, "last": 15},
    ),
    "P0112": Kind(
        ExportError,
        "{op} `{node}` cannot compute `{name}`: {reason}",
        "correct the shapes, attributes or constants; a reshape keeps the number of elements",
        {
            "op": "Reshape",
            "node": "node_view",
            "name": "y",
            "reason": "(2, 3) has 6 elements, (4, 2) has 8",
        },
    ),
    "P0113": Kind(
        ExportError,
        "`{name}` has a negative dimension: {shape}",
        "correct the shapes in the model",
        {"name": "x", "shape": "(2, -3)"},
    ),
    "P0114": Kind(
        ExportError,
        "the module {module} cannot be called with the inputs {names}: {reason}",
        "give the inputs the names of the parameters of its forward, or compile {call}",
        {
            "module": "Net",
            "names": "`a`",
            "reason": "its forward takes `x`, `y`",
            "call": 'lambda d: {"out": module(d["a"])}',
        },
    ),
    "P0115": Kind(
        ExportError,
        "the function changes the {kind} `{name}` of shape {shape}, which is not registered",
        "register it before compile(): context.registry.register(prefix, module) for a module, "
        "context.register_optimizer_buffers(optimizer) for an optimizer's state, "
        "context.register_buffer(tensor) for a tensor",
        {"kind": "parameter", "name": "model.weight", "shape": "(4, 4)"},
    ),
    "P0116": Kind(
        ExportError,
        "`{name}` is False, but the function differentiates or changes tensors",
        "leave the argument out",
        {"name": "training"},
    ),
    "P0117": Kind(
        ExportError,
        "{optimizer}.step() is called outside of a compiled function",
        "call zero_grad(), backward() and step() inside the function that compile() traces",
        {"optimizer": "MNCoreSGD"},
    ),
    "P0118": Kind(
        ExportError,
        "`{name}` cannot be the loss: it is {type}",
        "the loss must be a float tensor with one element, such as the sum or mean over a batch",
        {"name": "loss", "type": "float (4, 3)"},
    ),
    "P0120": Kind(
        ExportError,
        "the model is too large: {what}, more than {limit}",
        "compile it in parts, or correct the sizes in the model",
        {"what": "`y` of shape (1099511627776,) has 1099511627776 elements", "limit": "1073741824"},
    ),
    "P0131": Kind(
        ExportError,
        "the {what} `{name}` is text, which cannot be compiled",
        "make numbers of the text before the model, and cut the operators of text off",
        {"what": "value", "name": "x"},
    ),
    "P0132": Kind(
        ExportError,
        "the {what} `{name}` is a sequence, which cannot be compiled",
        "give each tensor of the sequence a name: Split for SplitToSequence, several inputs or"
        " outputs for one sequence",
        {"what": "value", "name": "x"},
    ),
    "P0133": Kind(
        ExportError,
        "the {what} `{name}` is optional, which cannot be compiled",
        "compile a model with the value and one without it",
        {"what": "value", "name": "x"},
    ),
    "P0134": Kind(
        ExportError,
        "the {what} `{name}` is a map, which cannot be compiled",
        "pass keys and values as two tensors",
        {"what": "value", "name": "x"},
    ),
    "P0135": Kind(
        ExportError,
        "the {what} `{name}` is {kind}, a float of 8 bits, which cannot be compiled",
        "convert it to float16 or float32 before the model",
        {"what": "value", "name": "x", "kind": "float8e4m3fn"},
    ),
    "P0136": Kind(
        ExportError,
        "the {what} `{name}` is {kind}, which has fewer than 8 bits and cannot be compiled",
        "unpack it to int8, uint8 or float16 before the model",
        {"what": "value", "name": "x", "kind": "int4"},
    ),
    "P0138": Kind(
        ExportError,
        "torch cannot express `{op}` in ONNX, and neither can the compiler",
        "{replacement}",
        {"op": "aten.geqrf.default", "replacement": "use torch.linalg.qr"},
    ),
    "P0139": Kind(
        ExportError,
        "the model leaves sizes of its inputs open: {inputs}",
        "every size must be known at compile time; give them, for example so: {remedy}",
        {
            "inputs": "`image` (batch, 3, 224, 224)",
            "remedy": "pycompiler compile model.onnx -o out --dim batch=1",
        },
    ),
    "P0140": Kind(
        ExportError,
        "the ONNX form of `{op}` makes {made}, but torch makes {wanted}",
        "convert its operands to one dtype before, or its result behind it",
        {"op": "aten.pow.Tensor_Tensor", "made": "int64 (3,)", "wanted": "float32 (3,)"},
    ),
}
