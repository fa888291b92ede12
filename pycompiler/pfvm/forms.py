"""Refuses attributes and constants that contradict an operator, where ONNX's inference does not.

onnxruntime refuses them too, but the device would compute something with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper

from ..errors import error, place_of
from .held import Array
from .names import nodes_of
from .recurrent_layers import ACTIVATIONS, activations_of
from .source import source_of

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Given:
    """What is known of a node: shapes of values, and the data of constants."""

    node: onnx.NodeProto
    shapes: Mapping[str, Shape]
    constant: Callable[[str], Array | None]

    def attribute(self, name: str, default: Any) -> Any:
        """Return an attribute or its default."""
        found = (helper.get_attribute_value(a) for a in self.node.attribute if a.name == name)
        return next(found, default)

    def input(self, place: int) -> str:
        """Return the name of an input; empty if it is not given."""
        return self.node.input[place] if place < len(self.node.input) else ""

    def shape(self, place: int) -> Shape | None:
        """Return the shape of an input if it is known."""
        return self.shapes.get(self.input(place))

    def ends(self) -> tuple[Shape, Shape]:
        """Return the shapes of the first input and the first result, which are known."""
        return self.shapes[self.node.input[0]], self.shapes[self.node.output[0]]

    def data(self, place: int) -> Array | None:
        """Return the data of a constant input."""
        return self.constant(self.input(place)) if self.input(place) else None


def check_attributes(graph: onnx.GraphProto) -> None:
    """Refuse values of attributes that ONNX does not list, here and in bodies. P0112.

    They are looked at before ONNX's shape inference, which makes as many types as a Split's count
    of parts says.
    """
    for node in nodes_of(graph):
        for attribute in node.attribute if node.domain in ("", "ai.onnx") else ():
            for reason in _attribute_faults(node, attribute):
                raise refused(node, reason)


def _attribute_faults(node: onnx.NodeProto, attribute: onnx.AttributeProto) -> Iterator[str]:
    name, number = attribute.name, attribute.i
    words = _WORDS.get((node.op_type, name), _WORDS.get(("", name)))
    if words is not None and attribute.type == attribute.STRING:
        word = attribute.s.decode(errors="replace")
        if word not in words.split():
            yield f"`{name}` is `{word}`, which is none of {', '.join(words.split())}"
    if name in _FLAGS and attribute.type == attribute.INT and number not in (0, 1):
        yield f"`{name}` is {number} instead of 0 or 1"
    if name == "num_outputs" and number != len(node.output):
        yield f"it has {len(node.output)} outputs, and `{name}` is {number}"
    least = _LEAST.get((node.op_type, name))
    if least is not None and number < least:
        yield f"`{name}` is {number}"
    if (node.op_type, name) == ("LpNormalization", "p") and number > 2:
        yield f"`{name}` is {number} instead of 1 or 2"


#: The words that an attribute may be, by operator (any without one) and attribute, of all opsets.
_WORDS = {
    ("", "auto_pad"): "NOTSET VALID SAME_UPPER SAME_LOWER",
    ("", "direction"): "forward reverse bidirectional",
    ("BitShift", "direction"): "LEFT RIGHT",
    ("", "reduction"): "none sum mean",
    ("ScatterElements", "reduction"): "none add mul max min",
    ("ScatterND", "reduction"): "none add mul max min",
    ("Gelu", "approximate"): "none tanh",
    ("GridSample", "padding_mode"): "zeros border reflection",
    ("GridSample", "mode"): "linear nearest cubic bilinear bicubic",
    ("RoiAlign", "mode"): "avg max",
    ("RoiAlign", "coordinate_transformation_mode"): "half_pixel output_half_pixel",
    ("Pad", "mode"): "constant reflect edge wrap",
    ("DepthToSpace", "mode"): "DCR CRD",
    ("Cast", "round_mode"): "up down nearest",
    ("CastLike", "round_mode"): "up down nearest",
    ("Upsample", "mode"): "nearest linear cubic",
    ("Resize", "mode"): "nearest linear cubic",
    ("Resize", "nearest_mode"): "round_prefer_floor round_prefer_ceil floor ceil",
    ("Resize", "keep_aspect_ratio_policy"): "stretch not_larger not_smaller",
    ("Resize", "coordinate_transformation_mode"): (
        "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners asymmetric "
        "tf_half_pixel_for_nn tf_crop_and_resize"
    ),
}
_FLAGS = (
    *("align_corners", "allowzero", "antialias", "ceil_mode", "center_point_box"),
    *("count_include_pad", "exclude_outside", "exclusive", "fmod", "interleaved", "inverse"),
    *("is_causal", "keepdims", "largest", "layout", "linear_before_reset"),
    *("noop_with_empty_axes", "onesided", "periodic", "reverse", "select_last_index", "sorted"),
    *("saturate", "storage_order", "training_mode", "transA", "transB", "upper"),
)
_LEAST = {
    ("LRN", "size"): 1,
    ("LpNormalization", "p"): 1,
    ("LpPool", "p"): 1,
    ("GlobalLpPool", "p"): 1,
    ("GroupNormalization", "num_groups"): 1,
}


def refused(node: onnx.NodeProto, reason: str) -> Exception:
    """Return the diagnostic for a node whose form has no meaning. P0112."""
    name = next(iter(node.output), "")
    return error(
        "P0112",
        place=place_of(source_of(node)),
        op=node.op_type,
        node=node.name or name,
        name=name,
        reason=reason,
    )


Rule = Callable[[Given], Iterator[str]]


def _steps(given: Given) -> Iterator[str]:
    """Yield what is wrong with a constant Range."""
    found = [given.data(place) for place in range(3)]
    if any(data is None or data.size != 1 for data in found):
        return
    start, end, step = (float(np.asarray(data).reshape(())) for data in found)
    if not step:
        yield "its step is 0"
    elif not np.isfinite([start, end, step]).all() or not np.isfinite((end - start) / step):
        yield f"there are no finite steps of {step} from {start} to {end}"
    elif (end - start) / step >= 1 << 62:
        yield f"the steps of {step} from {start} to {end} are too many"


def _axis(default: int) -> Rule:
    def rule(given: Given) -> Iterator[str]:
        shape = given.shape(0)
        if shape is None:
            return
        axis, rank = int(given.attribute("axis", default)), len(shape)
        if not -rank <= axis < max(rank, 1):
            yield f"axis {axis} is none of {shape}"

    return rule


def _axis_input(given: Given) -> Iterator[str]:
    shape, data = given.shape(0), given.data(1)
    if shape is None or data is None or data.size != 1:
        return
    axis = int(data.reshape(()))
    if not -len(shape) <= axis < max(len(shape), 1):
        yield f"axis {axis} is none of {shape}"


_EACH = {"RNN": 1, "GRU": 2, "LSTM": 3}


def _activations(given: Given) -> Iterator[str]:
    names = [bytes(name).decode(errors="replace") for name in given.attribute("activations", [])]
    for name in names:
        if name.lower() not in ACTIVATIONS:
            yield f"ONNX has no activation `{name}`"
            return
    wanted = _EACH[given.node.op_type] * (
        1 + (given.attribute("direction", b"") == b"bidirectional")
    )
    if names and len(names) != wanted:
        yield f"it has {len(names)} activations instead of {wanted}"
    numbers = (given.attribute(f"activation_{key}", []) for key in ("alpha", "beta"))
    directions = wanted // _EACH[given.node.op_type]
    for name, own in activations_of(given.node.op_type, directions, names, *numbers):
        if np.isnan([*own.values()]).any():
            keys = " and ".join(f"`activation_{key}`" for key in own)
            yield f"{name} needs {keys}, for which runtimes have different defaults"


def _indices(given: Given) -> Iterator[str]:
    """Look at constant places along an axis."""
    shape, data = given.shape(0), given.data(1)
    axis = int(given.attribute("axis", 0))
    if shape and data is not None and -len(shape) <= axis < len(shape):
        check_places(given.node, data, axis % len(shape), shape[axis])
    return
    yield


def _places(given: Given) -> Iterator[str]:
    """Look at constant places along several axes, behind those of a batch."""
    shape, data, first = given.shape(0), given.data(1), int(given.attribute("batch_dims", 0))
    if shape and data is not None and data.ndim and data.shape[-1] <= len(shape[first:]):
        for place, size in enumerate(shape[first:][: data.shape[-1]]):
            check_places(given.node, data[..., place], first + place, size)
    return
    yield


def check_places(node: onnx.NodeProto, places: Array, axis: int, size: int) -> None:
    """Refuse places outside of an axis of ``size`` elements; negative ones count from its end.

    P0111.
    """
    bad = places[(places < -size) | (places >= size)]
    if bad.size:
        raise error(
            "P0111",
            place=place_of(source_of(node)),
            op=node.op_type,
            node=node.name or node.output[0],
            index=int(bad.reshape(-1)[0]),
            axis=axis,
            size=size,
            last=size - 1,
        )


def _divisor(given: Given) -> Iterator[str]:
    data = given.data(1)
    if data is not None and data.dtype.kind in "iu" and not data.all():
        yield "its constant divisor has a 0, and whole numbers have no quotient then"


def _blocks(given: Given) -> Iterator[str]:
    """Yield what is wrong with the columns that Col2Im joins."""
    shape, block = given.shape(0), given.data(2)
    if shape is None or block is None or len(shape) != 3 or not block.size:
        return
    if (block < 1).any() or shape[1] % int(block.prod()):
        yield f"blocks of {tuple(block.tolist())} do not divide the {shape[1]} rows"


def _depth(given: Given) -> Iterator[str]:
    """Yield what is wrong with the channels of a DepthToSpace."""
    shape, block = given.shape(0), int(given.attribute("blocksize", 1))
    if shape is not None and len(shape) == 4 and shape[1] % max(block * block, 1):
        yield f"blocks of {block}x{block} do not divide the {shape[1]} channels"


def _rest(given: Given) -> Iterator[str]:
    """Yield what is wrong with the padding of a ConvTranspose's result."""
    rest = given.attribute("output_padding", [])
    ones = [1] * len(rest)
    strides, dilations = given.attribute("strides", ones), given.attribute("dilations", ones)
    for more, stride, dilation in zip(rest, strides, dilations, strict=False):
        if not 0 <= more < max(stride, dilation):
            yield f"`output_padding` {more} is not below its stride {stride} or dilation {dilation}"


_LABELS = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")


def _equation(given: Given) -> Iterator[str]:
    equation = bytes(given.attribute("equation", b"")).decode(errors="replace").replace(" ", "")
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(given.node.input):
        yield f"`{equation}` has {len(terms)} terms for {len(given.node.input)} operands"
    for place, term in enumerate(terms):
        shape, letters = given.shape(place), term.replace("...", "")
        if not _LABELS.fullmatch(term):
            yield f"the term `{term}` is not made of letters"
        elif shape is not None and (
            len(letters) > len(shape) or (letters == term and len(letters) < len(shape))
        ):
            yield f"the term `{term}` does not fit {shape}"
    if arrow and not _LABELS.fullmatch(result):
        yield f"the result `{result}` is not made of letters"
    letters = result.replace("...", "")
    if len(set(letters)) != len(letters):
        yield f"the result `{result}` has a letter twice"


#: Each yields what is wrong with a node, or raises P0111.
FORM_RULES: dict[str, tuple[Rule, ...]] = {
    "Range": (_steps,),
    "LayerNormalization": (_axis(-1),),
    "RMSNormalization": (_axis(-1),),
    "LpNormalization": (_axis(-1),),
    "Hardmax": (_axis(-1),),
    "CumSum": (_axis_input,),
    "CumProd": (_axis_input,),
    **dict.fromkeys(_EACH, (_activations,)),
    "ScatterElements": (_axis(0), _indices),
    **dict.fromkeys(("Gather", "GatherElements"), (_indices,)),
    **dict.fromkeys(("GatherND", "ScatterND"), (_places,)),
    "Div": (_divisor,),
    "Mod": (_divisor,),
    "Einsum": (_equation,),
    "Col2Im": (_blocks,),
    "DepthToSpace": (_depth,),
    "ConvTranspose": (_rest,),
}
