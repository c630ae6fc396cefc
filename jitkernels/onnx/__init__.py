"""ONNX models as compiled functions: each operator is a few lines of NumPy, which `jk.jit` traces and compiles.

`load` reads a model. There is no second graph and no second executor: the nodes of a model run, in their order, on the
arrays of a trace. What the compiler cannot serve runs in NumPy, and what has no operator here by `onnx.reference`, node
by node; `Model.explain` lists both. The package `onnx` is an optional extra and is imported by `load`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jitkernels.onnx.model import Model


def load(model: Any, *, profile: bool = False, winograd: bool = False) -> "Model":
    """Load a model from a path, from bytes or from a ``ModelProto``. Raises ModelError for one that is not valid.

    `profile`: calls count the time of each kernel, for `Model.stats`; they go through Python, and take longer.
    `winograd`: convolutions of 3 x 3 are computed by Winograd's algorithm where that is faster, with other rounding
    errors, see `jitkernels.JitConfig`.
    """
    from jitkernels.onnx.model import loaded

    return loaded(model, profile=profile, winograd=winograd)
