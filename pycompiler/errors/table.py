"""The table of diagnostics."""

from __future__ import annotations

from .doors_table import DOORS_TABLE
from .export_table import EXPORT_TABLE
from .kinds import (
    FileError,
    GraphError,
    InternalError,
    Kind,
    NoRoomError,
    NoSwitchError,
    OptionError,
    PlanError,
    RunError,
    UsageError,
)

TABLE: dict[str, Kind] = {
    # P00: command line and files
    "P0001": Kind(
        FileError,
        "cannot read `{path}`: {reason}",
        "check the path and its permissions",
        {"path": "model.onnx", "reason": "no such file"},
    ),
    "P0002": Kind(
        FileError,
        "`{path}` is not an ONNX model: {reason}",
        "give a file written by torch.onnx.export or onnx.save",
        {"path": "model.onnx", "reason": "it is empty"},
    ),
    "P0003": Kind(
        FileError,
        "cannot write `{path}`: {reason}",
        "choose a folder that you may write to; the compiler creates missing parent folders",
        {"path": "out", "reason": "permission denied"},
    ),
    "P0004": Kind(
        FileError,
        "`{path}` is not a codegen_dir: {reason}",
        "give a folder that a successful compile wrote (it holds {wanted})",
        {"path": "out", "reason": "model.app is missing", "wanted": "model.app"},
    ),
    "P0005": Kind(
        FileError,
        "cannot read `{path}` as Python source: {reason}",
        "give a Python script in UTF-8",
        {"path": "add.py", "reason": "byte 0xff at offset 3 is not UTF-8"},
    ),
    "P0006": Kind(
        FileError,
        "`{path}` is not a set of tensors: {reason}",
        "write the inputs with numpy.savez(path, name=array, ...)",
        {"path": "in.npz", "reason": "not an .npz file"},
    ),
    "P0007": Kind(
        UsageError,
        "{problem}",
        "usage: {usage}",
        {"problem": "no script given", "usage": "python -m pycompiler.mlsdk SCRIPT [ARG...]"},
    ),
    "P0008": Kind(
        FileError,
        "`{package}` is not installed",
        "run pip install 'emu2[{extra}]'",
        {"package": "scikit-learn", "extra": "demo"},
    ),
    "P0009": Kind(
        FileError,
        "`{path}` has no rows of an earlier run: {reason}",
        "name another file, or leave out --keep to start a new file",
        {"path": "rows.json", "reason": "it is no list"},
    ),
    "P0010": Kind(
        FileError,
        "`{path}`: {reason}",
        "name another file",
        {"path": "in.npz", "reason": "--outputs would overwrite --inputs"},
    ),
    "P0011": Kind(
        FileError,
        "`{path}` was not written by `python -m pycompiler.mlsdk install`: {reason}",
        "move it away, or use another environment; `python -m pycompiler.mlsdk SCRIPT` needs no "
        "install",
        {"path": "site-packages/mlsdk", "reason": "it has no `written_by_pycompiler.json`"},
    ),
    # P01: from Python to ONNX
    **EXPORT_TABLE,
    # P02: graphs and layouts
    "P0201": Kind(
        GraphError,
        "`{text}` is not a layout: {reason}",
        "write it like ((8_L2B:1, 4:2), (2:1, 4_PE:1, 2_W:1); B@[MAB,L1B])",
        {"text": "((3:1)", "reason": "`)` expected at the end"},
    ),
    "P0202": Kind(
        GraphError,
        "layout `{layout}` breaks a rule: {reason}",
        "change the sizes or strides of the digits on that level",
        {"layout": "((32_MAB:1))", "reason": "MAB reaches 31 of 0..15"},
    ),
    "P0203": Kind(
        GraphError,
        "cannot read the graph text: {reason}",
        "give a file that a compile wrote as l3ir.txt",
        {"reason": "`)` expected"},
    ),
    "P0204": Kind(
        InternalError,
        "the graph is wrong after the pass {stage}: rule {rule}: {problem}",
        "this is a bug of the compiler; please report it with the model",
        {"stage": "layout", "rule": "defined", "problem": "`x` is read before it is made"},
    ),
    # P03: planning
    "P0301": Kind(
        NoRoomError,
        "tensor `{value}` is too large: it takes {words} long words of a PE, {memory} holds "
        "{capacity}",
        "split the tensor {shape} in the model, for example along its first axis; {node} works on "
        "whole tensors",
        {
            "value": "x",
            "words": 4096,
            "memory": "lm0",
            "capacity": 2048,
            "shape": "(4096, 16384)",
            "node": "Add `node_add`",
        },
    ),
    "P0302": Kind(
        PlanError,
        "the tensors of the model need {words} long words per group in {memory}, which has "
        "{capacity}",
        "compile a smaller model or batch",
        {"words": 600000000, "memory": "dram", "capacity": 536870912},
    ),
    "P0303": Kind(
        PlanError,
        "strict: {op} `{node}` would run on the host: {reason}",
        "replace the operator, or compile without the option `strict`",
        {
            "op": "Sin",
            "node": "node_sin",
            "reason": "Sin does not compute (Double) -> Double on the device",
        },
    ),
    "P0304": Kind(
        NoRoomError,
        "the tensors of {node} do not fit {memory} together: they need {words} long words per PE, "
        "it has {capacity}",
        "split the tensors in the model, for example along their first axis",
        {"node": "Add `node_add`", "memory": "lm0", "words": 3000, "capacity": 2048},
    ),
    "P0305": Kind(
        NoSwitchError,
        "no way on the device from layout {source} to {result}: every one needs more than LM holds",
        "split the tensor in the model; or use the option overrides to give the value a layout "
        "that has more digits in common with the other one",
        {"source": "((4_PE:1))", "result": "((4:1))"},
    ),
    "P0306": Kind(
        PlanError,
        "the override of `{value}` cannot be followed: {reason}",
        "use names and layouts that the file layout.layout.txt of a compile shows; the keys are "
        "layout, plan, gene, location, dtype, precision, time_slice, keep and address",
        {"value": "x", "reason": "there is no such value"},
    ),
    "P0310": Kind(
        FileError,
        "`{path}` is no list of forced layouts: {reason}",
        "see docs/compiler/overrides.md, section Files of forced layouts, for the form of entries",
        {"path": "spec.json", "reason": "it is no list of entries"},
    ),
    "P0311": Kind(
        PlanError,
        "the forced layout of {entry} cannot be followed at {op} `{node}`: {reason}",
        "compile without the entry, and start from the layouts that layout.layout.txt then shows",
        {
            "entry": "entry 0 of spec.json",
            "op": "MatMul",
            "node": "node_MatMul_1",
            "reason": "axis 0 has 16 elements, its digits reach 8",
        },
    ),
    # P04: code generation
    "P0401": Kind(
        InternalError,
        "the assembler refuses the generated code: {reason}",
        "this is a bug of the compiler; please report it with the model",
        {"reason": "error[E0201]: ..."},
    ),
    "P0402": Kind(
        InternalError,
        "the transfer code of {layout} is wrong: {reason}",
        "this is a bug of the compiler; please report it with the model",
        {"layout": "((4_PE:1))", "reason": "long word 3 of group 0"},
    ),
    "P0403": Kind(
        InternalError,
        "segment {segment} has {found} steps and {found_cycles} cycles, "
        "but the compiler counted {steps} and {cycles}",
        "this is a bug of the compiler; please report it with the model",
        {"segment": 0, "found": 120, "found_cycles": 480, "steps": 118, "cycles": 472},
    ),
    # P05: apps
    "P0501": Kind(
        FileError,
        "`{path}` is not an app: {reason}",
        "give the model.app of a codegen_dir",
        {"path": "model.app", "reason": "wrong identifier"},
    ),
    "P0502": Kind(
        FileError,
        "`{path}` has format {found}, this version reads {wanted}",
        "compile the model again with this version",
        {"path": "model.app", "found": 9, "wanted": 1},
    ),
    "P0503": Kind(
        FileError,
        "`{path}` is compiled for the machine {found}, the device is {device}",
        "run it on emu2:{found}, or compile the model again for {device}",
        {"path": "out", "found": "mini", "device": "mncore2"},
    ),
    "P0504": Kind(
        FileError,
        "`{path}` does not say which node each line belongs to: an earlier version wrote it",
        "compile the model again with this version",
        {"path": "model.app"},
    ),
    # P06: devices and calls
    "P0601": Kind(
        RunError,
        "there is no device `{name}`",
        "{near}use {legal}",
        {"name": "emuu2", "near": "did you mean `emu2`? ", "legal": "emu2, mncore2:auto, pfvm:cpu"},
    ),
    "P0602": Kind(
        RunError,
        "the host runtime cannot run {what}: {reason}",
        "run the model with onnxruntime alone; the host cannot run operators and types that it "
        "lacks",
        {"what": "model.onnx", "reason": "NOT_IMPLEMENTED"},
    ),
    "P0603": Kind(
        RunError,
        "the inputs of the call are wrong: {problem}",
        "call it with the inputs that it was compiled for: {signature}",
        {"problem": "`y` is missing", "signature": "x: float32 (3, 4)"},
    ),
    "P0604": Kind(
        RunError,
        "the device program failed: {reason}",
        "the device state is lost; make a new Context",
        {"reason": "address past the end of L1BM"},
    ),
    "P0605": Kind(
        RunError,
        "storage path `{path}` has the scheme `{scheme}`, which is not a local file",
        "use a path of the local file system",
        {"path": "s3://bucket/x", "scheme": "s3"},
    ),
    "P0606": Kind(
        RunError,
        "the compiler cannot use the machine `{spec}`: {reason}",
        "name a known machine (mncore2, mini) or the path of a description",
        {"spec": "mncore9", "reason": "no such folder"},
    ),
    "P0607": Kind(
        RunError,
        "the context on {device} was invalidated: its device memory is freed",
        "read values with cpu() before invalidate(), or make a new Context",
        {"device": "emu2"},
    ),
    "P0608": Kind(
        RunError,
        "the tensor `{name}` cannot be registered or found: {problem}",
        "name tensors with set_tensor_name or set_tensor_name_in_module, then register them with "
        "register_param, register_buffer or registry.register; names are unique in a Context",
        {"name": "model.weight", "problem": "it is not registered"},
    ),
    "P0609": Kind(
        RunError,
        "the values cannot be loaded: {problem}",
        "give a tensor or a proxy of {wanted}",
        {"problem": "it is float32 (2,)", "wanted": "float32 (3, 4)"},
    ),
    "P0610": Kind(
        RunError,
        "output `{output}` has {count} elements that nothing has written, first {element}",
        "this is a bug of the compiler; please report it with the model",
        {"output": "y", "count": 3, "element": [0, 5]},
    ),
    "P0611": Kind(
        RunError,
        "the model in `{path}` runs in part on the host, so its assembly cannot be stepped through",
        "replace the operators that report.json lists under `host_fallback`",
        {"path": "out"},
    ),
    "P0612": Kind(
        RunError,
        "a check of node `{node}` has failed: {problem}",
        "look at its arguments in a log (`--log FILE`); unless the model's own numbers overflow, "
        "please report the model",
        {"node": "node_relu", "problem": "`y` has 3 elements that nothing has written"},
    ),
    "P0613": Kind(
        RunError,
        "the host made `{name}` of shape {found} in this call, but the model declares {wanted}",
        "give inputs that lead to the declared shape, or declare another and compile again",
        {"name": "y", "found": "(12,)", "wanted": "(10,)"},
    ),
    # P07: options
    "P0701": Kind(
        OptionError,
        "unknown option `{key}`",
        "{near}the options are {legal}",
        {
            "key": "flaot_dtype",
            "near": "did you mean `float_dtype`? ",
            "legal": "float_dtype, strict",
        },
    ),
    "P0702": Kind(
        OptionError,
        "option `{key}` cannot be {value}",
        "it must be {legal}",
        {"key": "float_dtype", "value": "'half'", "legal": "'float' or 'mixed'"},
    ),
    "P0703": Kind(
        OptionError,
        "`{name}` is not supported: {reason}",
        "{remedy}",
        {"name": "optimizers", "reason": "it needs the training path", "remedy": "leave it out"},
    ),
    "P0704": Kind(
        OptionError,
        "`{name}` cannot be {value}",
        "it must be {legal}",
        {"name": "options", "value": "['float']", "legal": "a dict or None"},
    ),
    "P0705": Kind(
        OptionError,
        "the constraint of `{name}` cannot be followed: {reason}",
        "io_spec_constraints maps inputs and outputs of this function to IOSpecs of another on the "
        "same device, with the same shape and dtype",
        {"name": "out", "reason": "the function has no such input or output"},
    ),
    "P0706": Kind(
        OptionError,
        "`{name}` is no preset: {reason}",
        "{near}name a preset of docs/compiler/presets.md, or a JSON file with a dict of options",
        {"name": "O11", "reason": "there is no such file", "near": "did you mean `O1`? "},
    ),
    "P0708": Kind(
        OptionError,
        "a sweep cannot set `{setting}`: {reason}",
        "use {names}, or any number of the machine's description as SECTION.KEY or "
        "SECTION.NAME.KEY, such as timing.mv_latency",
        {"setting": "lm=1", "reason": "there is no value of this name", "names": "lm_words"},
    ),
    "P0709": Kind(
        OptionError,
        "`{name}` {problem}",
        "{remedy}",
        {"name": "Context.compil", "problem": "is unknown", "remedy": "did you mean `compile`?"},
    ),
    "P0710": Kind(
        OptionError,
        "the environment variable `{name}` is unknown",
        "{remedy} docs/mlsdk_environment.md lists those of MLSDK that may be set",
        {"name": "CODEGEN_SA_STEP", "remedy": "did you mean `CODEGEN_SA_STEPS`?"},
    ),
    # P08: partitions, plug-ins, several devices
    **DOORS_TABLE,
    # P09: our bugs, and a host that is too small
    "P0901": Kind(
        InternalError,
        "internal error: {reason}",
        "this is a bug of pycompiler; please report it. PYCOMPILER_TRACEBACK=1 shows where",
        {"reason": "KeyError: 'x'"},
    ),
    "P0902": Kind(
        RunError,
        "this process may not use as much memory as it needs: {reason}",
        "give it more memory, or compile a smaller model or picture",
        {"reason": "MemoryError"},
    ),
}
