"""The convolutions of an ONNX model: the kernels that its compiled code calls, and how often."""

from collections import Counter
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.attrs.convolution import Conv2DAttr
from jitkernels.compiler.diagnostics.kernel_summary import groups_of
from jitkernels.onnx.random_inputs import random_inputs


def layers_of(proto: Any) -> Counter[Conv2DAttr]:
    """The distinct convolutions of a model in the order in which they first run, with their numbers of calls."""
    model = jk.onnx.load(proto)
    model.explain(*random_inputs(model.get_inputs(), {}).values())
    groups = [
        group
        for plan in model.plans
        for stage in plan.stages
        for specialization in getattr(stage, "specializations", ())
        for group in groups_of(specialization.program, specialization.program.graph)
    ]
    attrs = (group.nodes[0].options["function"].attr for group in groups if group.kind == "kernel")
    return Counter(attr for attr in attrs if isinstance(attr, Conv2DAttr) and attr.dtype == "float32")


def in_words(attr: Conv2DAttr) -> str:
    """A layer in few words: the sizes of images and filters, and the number of filters."""
    image = f"{attr.height}x{attr.width}x{attr.channels}"
    options = [f"{attr.kernel_height}x{attr.kernel_width} {attr.filters}"]
    options += [f"stride {attr.stride[0]}"] * (attr.stride != (1, 1))
    options += [f"groups {attr.groups}"] * (attr.groups != 1)
    return ", ".join([f"{image} {options[0]}", *options[1:], *["residual"] * attr.has_residual, attr.activation])


def random_arrays(attr: Conv2DAttr) -> tuple[list[np.ndarray[Any, Any]], np.ndarray[Any, Any]]:
    """Images, filters in the order of CONV2D, and where it has them a bias and a residual; then the result."""
    rng = np.random.default_rng(0)
    result = attr.batch, attr.out_height, attr.out_width, attr.filters
    shapes: list[tuple[int, ...]] = [(attr.batch, attr.height, attr.width, attr.channels)]
    shapes.append((attr.kernel_height, attr.kernel_width, attr.group_channels, attr.filters))
    shapes += [*[(attr.filters,)] * attr.biased, *[result] * attr.has_residual]
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    arrays[1] /= np.float32(np.sqrt(attr.terms))
    return arrays, np.empty(result, np.float32)
