"""Runs ONNX operators one by one on a device: each is a kernel that is compiled once."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..errors import error
from ..graph.dtypes import onnx_elem_type
from ..graph.graph import TensorType
from ..pfvm.session import Array
from .interface import Form
from .pool import Buffer
from .session import Session, type_of

_OPSET = 20


class DeviceTensor:
    """A tensor in the memory of a device; the memory is freed with it."""

    def __init__(self, session: Session, form: Form):
        self.session, self.form = session, form
        self.buffer: Buffer = session.pool.allocate(form.size, session.stream)
        weakref.finalize(self, _freed, session, self.buffer)

    @property
    def type(self) -> TensorType:
        """Element type and shape."""
        return self.form.type

    def numpy(self) -> Array:
        """Return its values, once all operations before have ended."""
        session = self.session
        return session.copy_out(self.buffer, self.form, session.stream).result()


def _freed(session: Session, buffer: Buffer) -> None:
    session.pool.free(buffer)


class Eager:
    """ONNX operators on a device in kernel mode, in the order of the calls."""

    def __init__(self, session: Session, opset: int = _OPSET):
        if session.kernels is None:
            raise error("P0828", what="an operator", reason="it has no kernel mode")
        self.session, self.opset, self._kernels = session, opset, session.kernels
        #: The cycles of all operators so far.
        self.cycles = 0

    def tensor(self, array: Array) -> DeviceTensor:
        """Return an array as a tensor on the device. P0828."""
        return self._placed(np.asarray(array), self.session.form(np.asarray(array)))

    def run(
        self, op: str, *operands: DeviceTensor | Array | None, outputs: int = 1, **attributes: Any
    ) -> list[DeviceTensor]:
        """Run an operator and return its outputs.

        Operands that are arrays are parts of the kernel: give axes and shapes so, and data as
        tensors. P0103, P0828, and the diagnostics of a compile.
        """
        session = self.session
        tensors = [one for one in operands if isinstance(one, DeviceTensor)]
        if any(one.session is not session for one in tensors):
            raise error("P0822", what=f"an operand of {op}", reason="it is of another session")
        model = self._model(op, operands, outputs, attributes)
        names = [value.name for value in model.graph.input]
        forms = {name: one.form for name, one in zip(names, tensors, strict=True)}
        kernel = self._kernels.kernel(model, forms)
        given = [
            one if session.device.resources.same(one.form, form) else self._placed(one, form)
            for one, form in zip(tensors, kernel.inputs, strict=True)
        ]
        made = [DeviceTensor(session, form) for form in kernel.outputs]
        operands_at, results_at = ([one.buffer for one in some] for some in (given, made))
        executor = self._kernels.executor
        session.launch(executor, kernel, operands_at, results_at, session.stream)
        self.cycles += kernel.cycles or 0
        return made

    def _placed(self, source: DeviceTensor | Array, form: Form) -> DeviceTensor:
        array = source.numpy() if isinstance(source, DeviceTensor) else source
        made = DeviceTensor(self.session, form)
        self.session.copy_in(array, made.buffer, form, self.session.stream)
        return made

    def _model(
        self,
        op: str,
        operands: tuple[DeviceTensor | Array | None, ...],
        outputs: int,
        attributes: dict[str, Any],
    ) -> onnx.ModelProto:
        if not onnx.defs.has(op):
            raise error("P0828", what=op, reason="ONNX has no such operator")
        names = ["" if one is None else f"x{number}" for number, one in enumerate(operands)]
        results = [f"y{number}" for number in range(outputs)]
        inputs, constants = [], []
        for name, one in zip(names, operands, strict=True):
            if isinstance(one, DeviceTensor):
                elem = onnx_elem_type(one.type.elem)
                inputs.append(helper.make_tensor_value_info(name, elem, one.type.shape))
            elif one is not None:
                type_of(np.asarray(one))
                constants.append(numpy_helper.from_array(np.asarray(one), name))
        graph = helper.make_graph(
            [helper.make_node(op, names, results, op, **attributes)],
            "eager",
            inputs,
            [onnx.ValueInfoProto(name=name) for name in results],
            constants,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        try:
            return onnx.shape_inference.infer_shapes(model, True, strict_mode=True, data_prop=True)
        except Exception as problem:  # the checker's errors have no common base class
            reason = str(problem).strip().splitlines()[0]
            raise error("P0828", what=op, reason=reason) from problem
