"""`numpy.histogram` of equal bins in a known range, by the kernel of that name."""

from numbers import Real
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.callee_monitor import monitor_suspended
from jitkernels.compiler.capture.numpy.shape_ops import of_array, ravel
from jitkernels.compiler.capture.override_registry import SERVICES, overrides
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.dispatch import operators


@overrides(np.histogram)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:  # noqa: A002
    """The counts and the edges. Raises UnsupportedError where NumPy finds the range, or the bins differ in size."""
    array = of_array(a)
    if density or weights is not None or array.dtype.name not in ("float32", "float64"):
        raise UnsupportedError("numpy.histogram with these options")
    if type(bins) is not int or bins < 1 or not _is_range(range):
        raise UnsupportedError("numpy.histogram without known bins and range")
    low, high = map(float, range)
    edges = np.linspace(*range, bins + 1, dtype=array.dtype)
    if not np.all(edges[:-1] < edges[1:]):
        raise UnsupportedError("numpy.histogram of bins without width")
    with monitor_suspended():
        kernel = operators.everyday("histogram")
    options = {"bins": bins, "low": low, "high": high}
    counts: Traced = array.__jitkernels_call__(kernel.__self__.schema, kernel, (ravel(array),), options)
    return counts, SERVICES["function"](array.tracer, np.linspace, (*range, bins + 1), {"dtype": array.dtype})


def _is_range(limits: Any) -> bool:
    """Whether limits are two finite numbers, the first of which is less."""
    if type(limits) not in (tuple, list) or len(limits) != 2:
        return False
    if not all(isinstance(limit, Real) and not isinstance(limit, bool) and float(limit) == limit for limit in limits):
        return False
    low, high = map(float, limits)
    return bool(low < high and np.isfinite(high - low))
