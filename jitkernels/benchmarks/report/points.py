"""The lines of a run with the cost model of their schemas: bytes accessed and operations of an attr."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import op_schema
from jitkernels.benchmarks.suite import Line
from jitkernels.errors import UnknownNameError


@dataclass(frozen=True)
class Point:
    """A line of the kernel table, its attr, and the attr's bytes and operations."""

    line: Line
    attr: KernelAttr
    nbytes: int
    operations: float

    @property
    def intensity(self) -> float:
        """Return the arithmetic intensity: operations per byte of the arrays."""
        return self.operations / max(self.nbytes, 1)

    @property
    def dtype(self) -> str:
        return str(self.attr.fields().get("dtype", ""))


def points_of(lines: Sequence[Line]) -> list[Point]:
    """Return the lines whose attr is in a sweep of this version of the package."""
    points = []
    for line in lines:
        attr = _sweep(line.group).get(line.case)
        if attr is not None and line.pick in line.timings:
            nbytes = sum(array.nbytes for array in attr.signature().arrays)
            points.append(Point(line, attr, nbytes, attr.operations()))
    return points


@functools.cache
def _sweep(kernel: str) -> Mapping[str, KernelAttr]:
    try:
        return {case.name: case.attr for case in op_schema(kernel).sweep()}
    except UnknownNameError:
        return {}
