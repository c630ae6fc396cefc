"""The lines of a run beside what their rows know: how many bytes an attr touches, and how many operations it takes."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jitkernels.attrs.base import KernelAttr
from jitkernels.benchmark.suite import Line
from jitkernels.errors import UnknownNameError
from jitkernels.registry import row


@dataclass(frozen=True)
class Point:
    """A line of the table of kernels, its attr, and what the attr costs."""

    line: Line
    attr: KernelAttr
    nbytes: int
    operations: float

    @property
    def intensity(self) -> float:
        """Operations for each byte of the arrays."""
        return self.operations / max(self.nbytes, 1)

    @property
    def dtype(self) -> str:
        return str(self.attr.fields().get("dtype", ""))


def points_of(lines: Sequence[Line]) -> list[Point]:
    """Those lines whose attr is one of a sweep, as this version of the package has it."""
    found = []
    for line in lines:
        attr = _sweep(line.group).get(line.case)
        if attr is not None and line.pick in line.timings:
            nbytes = sum(array.nbytes for array in attr.signature().arrays)
            found.append(Point(line, attr, nbytes, attr.operations()))
    return found


@functools.cache
def _sweep(kernel: str) -> Mapping[str, KernelAttr]:
    try:
        return {case.name: case.attr for case in row(kernel).sweep()}
    except UnknownNameError:
        return {}
