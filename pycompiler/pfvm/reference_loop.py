"""The Loop of onnx's reference evaluator, with the shapes of its joined results corrected."""

from __future__ import annotations

from typing import Any

from onnx.reference.ops.op_loop import Loop as _Loop


class Loop(_Loop):
    """A Loop that joins what its turns give along a new axis.

    onnx's own class joins along the first axis of matrices, and gives numbers a second axis. The
    elements are in the right order, so a new shape is all that is needed.
    """

    op_domain = ""
    _run_body: Any

    def _run(self, *args: Any, **context: Any) -> tuple[Any, ...]:
        turns: list[list[tuple[int, ...]]] = []
        run_body = self._run_body

        def counted(*given: Any, **facts: Any) -> Any:
            results = run_body(*given, **facts)
            turns.append([result.shape for result in results[len(results) - self.K :]])
            return results

        self._run_body = counted
        try:
            found: tuple[Any, ...] = super()._run(*args, **context)  # type: ignore[no-untyped-call]
        finally:
            self._run_body = run_body
        if not turns:
            return found
        joined = zip(found[self.N : self.N + self.K], turns[-1], strict=True)
        shaped = (array.reshape(len(turns), *shape) for array, shape in joined)
        return (*found[: self.N], *shaped, *found[self.N + self.K :])
