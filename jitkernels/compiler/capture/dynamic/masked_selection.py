"""Elements that a mask of computed length selects, for reductions in loops: ``values[columns == i].sum()``.

No memory is needed where a reduction reads all elements, and those that are not selected are its identity.
"""

from typing import Any

import numpy as np

from jitkernels.compiler.capture.control_flow.loop_state import Variable
from jitkernels.compiler.capture.dynamic.dynamic_array import DynamicArray, Elementwise, Source
from jitkernels.compiler.capture.override_registry import TABLE
from jitkernels.compiler.ir.unsupported import UnknownSizeError


class MaskedSelection(DynamicArray):
    """``array[mask]`` as an operand of reductions; for other uses, the function is traced again with copies."""

    def __init__(self, array: DynamicArray, mask: DynamicArray) -> None:
        self._array, self._mask = array, mask
        self._sources = [*array.sources, *mask.sources]  # as they are now: NumPy copies the elements
        mask.tracer.needs_copies = True  # should the trace fail
        count = Variable("_jk_count", 0)
        mask.each(lambda index: count.set(count.value + mask.at(index).astype(np.int64)), count)
        super().__init__(mask.tracer, count.value, array.dtype)

    @property
    def sources(self) -> list[Source]:
        return self._sources

    def at(self, index: Any) -> Any:  # noqa: ARG002  # of the base class
        raise UnknownSizeError("elements chosen by a mask of computed length, in a loop or branch")

    def filled(self, identity: Any) -> Elementwise:
        """All elements of the array, and `identity` in place of those that are not selected."""
        array, mask = self._array, self._mask

        def read(index: Any) -> Any:
            return TABLE[np.where](mask.at(index), array.at(index), array.dtype.type(identity))

        return Elementwise(self.tracer, array.length, array.dtype, read, self.sources)
