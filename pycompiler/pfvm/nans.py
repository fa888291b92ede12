"""Where NaNs and infinities go on the host: the forms of ``nans.toml`` instead of operators.

onnxruntime lets a NaN win or lose a comparison by its place. In the models of torch's functions,
the forms put it to where torch puts it. Models of others are as onnxruntime has them. The forms of
``integer_reductions.toml`` stand for reductions of integers in all models.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import onnx
import onnx.parser

from .declared import inferred
from .names import graphs, nodes_of
from .opsets import OLDEST, STANDARD, opset_of
from .runtime_faults import kinds_of
from .torch_calls import DOMAIN

#: Metadata of a node: the name of its form, and more facts behind a space.
NANS = "pycompiler.nans"
_FORMS, _WHOLE = (
    tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    for name in ("nans.toml", "integer_reductions.toml")
)
_OF_INTEGERS = {op: _WHOLE["sum"].replace("TERM", term) for op, term in _WHOLE["terms"].items()}
_OF_INTEGERS |= dict.fromkeys(_WHOLE["reals"], _WHOLE["real"])
_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE)
_LONGS = tuple(map(onnx.TensorProto.DataType.Value, ("INT32", "INT64", "UINT32", "UINT64")))
_TEXT = "g (float a, float b, float c) => (float y) {{ %s }}"
_FACTS = """unknown = Constant<value_float=nan>() nan = CastLike(unknown, a) lost = IsNaN(a)
    number = Cast<to=1>(lost) """


def with_forms(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with forms instead of operators."""
    of_torch = any(opset.domain == DOMAIN for opset in model.opset_import)
    floats = _FORMS["everywhere"] | (_FORMS["torch"] if of_torch else {})
    forms = {name: _FACTS + text for name, text in floats.items()}
    used = {_name(node)[0] for node in nodes_of(model.graph)}
    if not used & {*forms, *_OF_INTEGERS} or opset_of(model) < OLDEST:
        return model
    out = inferred(model)
    kinds = kinds_of(out.graph)
    for part in graphs(out.graph):
        made = [one for node in part.node for one in _written(node, forms, kinds)]
        del part.node[:]
        part.node.extend(made)
    return out


def _name(node: onnx.NodeProto) -> list[str]:
    """Return the name of the form of a node, and the facts that stand behind it."""
    note = next((item.value for item in node.metadata_props if item.key == NANS), "")
    return [*(note or node.op_type).split(" ", 1), ""]


def _written(
    node: onnx.NodeProto, forms: dict[str, str], kinds: dict[str, int]
) -> list[onnx.NodeProto]:
    form, more, *_ = _name(node)
    kind = kinds.get(node.input[0]) if node.input else None
    forms = _OF_INTEGERS if kind in _LONGS else forms if kind in _FLOATS else {}
    facts = {a.name.partition("_")[0]: onnx.helper.get_attribute_value(a) for a in node.attribute}
    own = node.op_type != "ScatterElements" or facts.get("reduction") in (b"max", b"min")
    if form not in forms or node.domain not in STANDARD or not own:
        return [node]
    facts = {"axis": -1, "keepdims": 1, "noop": 0, **facts, "facts": more}
    given = [*node.input, "", ""][:3]
    ends = dict(zip("abcyz", [*given, *node.output], strict=False))
    made = list(onnx.parser.parse_graph((_TEXT % forms[form]).format(**facts)).node)
    for one in made:
        if one.op_type == "OWN":
            one.op_type = node.op_type
            one.attribute.extend(node.attribute)
        for names in (one.input, one.output):
            names[:] = [ends.get(name, f"{node.output[0]}.{name}") for name in names]
    return made
