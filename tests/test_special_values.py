"""NaN, infinities, signed zeros, subnormals and the ends of the range come out as mathematics has them."""

import cases
import oracles
import pytest

from jitkernels import testing
from jitkernels.attrs.base import KernelAttr


@pytest.mark.parametrize(("attr", "name"), cases.every_middle())
def test_special_values(attr: KernelAttr, name: str) -> None:
    for kernel in cases.kernels_of(attr, name):
        testing.check_special_values(attr, kernel.callable, oracles.expected, label=repr(kernel))


@pytest.mark.parametrize(("row", "name"), cases.every_implementation())
def test_special_values_in_long_arrays(row: type[KernelAttr], name: str) -> None:
    """At the largest "ci" size, where unrolled loops and the code paths of libraries for long vectors run."""
    for dtype in ("float32", "float64"):
        attrs = [attr for attr in cases.in_scope(row, name) if attr.fields()["dtype"] == dtype]
        attr = max(attrs, key=lambda attr: sum(array.nbytes for array in attr.signature().arrays))
        for kernel in cases.kernels_of(attr, name):
            testing.check_special_values(
                attr, kernel.callable, oracles.expected, label=repr(kernel), alone=False
            )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values_are_special(dtype: str) -> None:
    """The list itself: both zeros, both infinities, NaN, subnormals of both signs, no duplicates lost."""
    values = testing.special_values(dtype)
    assert values.dtype == dtype
    texts = {repr(float(value)) for value in values}
    assert {"nan", "inf", "-inf", "0.0", "-0.0"} <= texts
    assert len(texts) > 30
