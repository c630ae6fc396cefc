"""Inline-cache links to the plain function, for calls that it serves faster than compiled code."""

import sys
from typing import Any

import numpy as np

from jitkernels.compiler.ir.elementwise_ops import DTYPES
from jitkernels.runtime import inline_cache, python_fallback
from jitkernels.runtime.loading import loader

NUMBERS = frozenset({np.ndarray, float, int, bool, str, type(None), *(np.dtype(name).type for name in DTYPES)})
"""Types of arguments whose size is known without traversal."""
CHOICES = (str, bool, type(None), type)
"""Types of arguments that typically select a code path of a function."""


def has_plain_links() -> bool:
    """Whether the machine code of plain links exists or can be built."""
    return loader.is_loadable(python_fallback.source())


class PlainLink:
    """A link that sends calls of one form straight to the plain function, faster than a lookup of code.

    It guards the types of the arguments by position and name, and of arrays the dtype, number of dimensions, flags and
    at most `most` elements. Arguments of the types `same` must be equal. It accepts `calls` calls until `allow` resets
    the count; all calls if that is negative.
    """

    def __init__(
        self,
        function: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        most: int,
        same: tuple[type, ...],
        calls: int = -1,
    ) -> None:
        names, values = tuple(map(sys.intern, kwargs)), (*args, *kwargs.values())
        held: list[Any] = [type(value) for value in values]
        self.kept, self.calls = (function, names, held), calls
        words = [id(function), len(args), id(names) if names else 0, most, len(values), calls]
        for value in values:
            words.append(id(type(value)))
            if type(value) is np.ndarray:
                held.append(value.dtype)
                words += [id(value.dtype), value.ndim, value.flags.num & python_fallback.FLAGS]
            elif isinstance(value, same):
                held.append(value)
                words += [id(value), 0, 0]
            else:
                words += [0, 0, 0]
        self.context = np.array(words, np.int64)
        address = loader.address_of(python_fallback.source())
        self.link = inline_cache.link(address, self.context.ctypes.data, len(args), (), names, is_last=True)

    def allow(self, calls: int) -> None:
        """Accept `calls` further calls."""
        self.context[python_fallback.CALLS_WORD] = calls
