"""onnxruntime's MatMulNBits, the peer of products with 8-bit and 4-bit weights."""

from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound

BLOCKS = (16, 32, 64, 128, 256)
"""Group sizes that the operator supports."""
ACCURACY_FLOAT32, ACCURACY_INT8 = 1, 4
"""Its ``accuracy_level``: a in float32, or quantized to int8."""


def matmul_nbits(
    a: AnyArray, packed: AnyArray, scale: AnyArray, c: AnyArray, *, bits: int, accuracy: int
) -> Bound | None:
    """Return the product of a and unsigned weights [n, groups, bytes]; None if the operator lacks such groups."""
    import onnxruntime
    import threadpoolctl
    from onnx import TensorProto, helper, numpy_helper

    (rows, k), (n, groups, size) = a.shape, packed.shape
    block = size * 8 // bits
    if a.dtype != np.float32 or block not in BLOCKS or 0 in (rows, n, groups):
        return None
    node = helper.make_node(
        "MatMulNBits", ["a", "packed", "scale"], ["c"], domain="com.microsoft", K=k, N=n, bits=bits,
        block_size=block, accuracy_level=accuracy,
    )  # fmt: skip
    graph = helper.make_graph(
        [node],
        "product",
        [helper.make_tensor_value_info("a", TensorProto.FLOAT, [rows, k])],
        [helper.make_tensor_value_info("c", TensorProto.FLOAT, [rows, n])],
        [numpy_helper.from_array(packed, "packed"), numpy_helper.from_array(scale.reshape(-1), "scale")],
    )
    versions = [helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=versions, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = max((pool["num_threads"] for pool in threadpoolctl.threadpool_info()), default=1)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding: Any = session.io_binding()
    held = onnxruntime.OrtValue.ortvalue_from_numpy(a)
    binding.bind_ortvalue_input("a", held)
    binding.bind_output("c", "cpu", 0, np.float32, c.shape, c.ctypes.data)

    def into(held: Any, c: AnyArray) -> None:
        session.run_with_iobinding(binding)

    return partial(into, held, c)
