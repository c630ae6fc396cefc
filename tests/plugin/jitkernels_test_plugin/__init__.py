"""Kernels of another package, its modules imported in the most awkward order: the reference comes last."""

from jitkernels_test_plugin import theirs, handmade, middle, refer  # noqa: F401, I001  # the order is the point
