"""Another batch for models that declare one image: their inputs, outputs and reshapes begin with 1."""

from typing import Any

from jitkernels.errors import ModelError


def with_batch(proto: Any, batch: int) -> Any:
    """The model for so many images at once; `proto` itself is changed.

    Raises ModelError for models whose inputs or reshapes do not begin with the batch.
    """
    if batch == 1:
        return proto
    from onnx import numpy_helper

    graph = proto.graph
    known = {one.name: one for one in graph.initializer}
    inputs = [one for one in graph.input if one.name not in known]
    for one in (*inputs, *graph.output):
        dims = one.type.tensor_type.shape.dim
        if one in inputs and (not dims or dims[0].dim_value != 1):
            raise ModelError(f"{graph.name}: {one.name}: expected an input of one image")
        if dims and dims[0].dim_value == 1:
            dims[0].dim_value = batch
    del graph.value_info[:]
    for i, node in enumerate(graph.node):
        if node.op_type != "Reshape" or node.input[0] in known:
            continue
        shape = known.get(node.input[1])
        sizes = numpy_helper.to_array(shape).copy() if shape is not None else []
        if len(sizes) == 0 or sizes[0] not in (0, 1):
            raise ModelError(f"{graph.name}: Reshape '{node.name}': expected a constant shape that begins with 1")
        sizes[0] = batch if sizes[0] else 0
        graph.initializer.append(numpy_helper.from_array(sizes, f"shape of batches {i}"))
        node.input[1] = graph.initializer[-1].name
    return proto
