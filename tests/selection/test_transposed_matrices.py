"""TRANSPOSE: kernels have fast code for the sizes of their class, and are right for others; graphs need few objects."""

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.attrs.schema.registry import implementation
from jitkernels.codegen.source_protocol import symbol_of
from jitkernels.dispatch.kernel import Kernel

FILTERS = [(count, depth) for count in (64, 128, 256, 512) for depth in (64, 128, 256, 512) if count >= depth]
"""Filters and channels of the layers of a network."""


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7, 8, 9, 64])
def test_a_kernel_serves_sizes_of_other_classes(rows: int) -> None:
    attr, gen = jk.TransposeAttr(batch=1, rows=rows, n=20), implementation(jk.TransposeAttr, "gen")
    kernel = Kernel(attr, gen, gen.variants(attr)[0])
    for shape in ((1, 1, 9), (1, 9, 1), (2, 2, 2), (2, 3, 50), (1, 7, 40), (1, 40, 5), (3, 33, 20)):
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        y = np.zeros((shape[0], shape[2], shape[1]), np.float32)
        kernel.run_as(jk.TransposeAttr(batch=shape[0], rows=shape[1], n=shape[2]), [x, y])
        np.testing.assert_array_equal(y, x.transpose(0, 2, 1))


def test_filters_of_a_network_need_few_objects() -> None:
    gen = implementation(jk.TransposeAttr, "gen")
    attrs = [jk.TransposeAttr(batch=count, rows=depth, n=9) for count, depth in FILTERS]
    attrs += [jk.TransposeAttr(batch=1, rows=count, n=9 * depth) for count, depth in FILTERS]
    sources = [gen.source(attr, gen.variants(attr)[-1]) for attr in attrs]
    assert len({symbol_of(source) for source in sources}) <= 6
