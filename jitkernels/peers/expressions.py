"""Peers of an elementwise row in one line: NumPy's function, an expression for numexpr, and torch's function."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.base import KernelAttr
from jitkernels.peers import Bound, equivalent, peer
from jitkernels.signature import AnyArray

LITERAL = re.compile(r"(?<![\w.])\d+(\.\d+)?(?![\w.])")


def elementwise(
    row: type[KernelAttr],
    numpy: Callable[..., Any],
    text: str | None,
    torch: Callable[..., Bound] | None = None,
) -> None:
    """Register the peers of a row of one result, and its equivalent.

    numpy: a function of the inputs, the options and ``out``. text: numexpr's expression of the inputs and floats by
    name; its numbers count as the arrays do. torch: gives the call for torch, a tensor of each array and the options.
    """
    equivalent(row)(numpy)
    inputs = [argument.name for argument in row.arrays[:-1]]

    def by_numpy(attr: KernelAttr, *arrays: AnyArray) -> Bound:
        return partial(numpy, *arrays[:-1], **_options(row, attr), out=arrays[-1])

    def by_numexpr(attr: KernelAttr, *arrays: AnyArray) -> Bound:
        import numexpr

        assert text is not None, "registered only where it is given"
        named, numbers = _named(text, row, attr)
        given = {**dict(zip(inputs, arrays, strict=False)), **numbers}
        return partial(numexpr.evaluate, named, local_dict=given, out=arrays[-1])

    def by_torch(attr: KernelAttr, *arrays: AnyArray) -> Bound:
        import torch as library

        assert torch is not None, "registered only where it is given"
        return torch(library, *map(library.from_numpy, arrays), **_options(row, attr))

    peer(row)(by_numpy)
    if text is not None:
        peer(row, name="numexpr")(by_numexpr)
    if torch is not None:
        peer(row, name="torch")(by_torch)


def _options(row: type[KernelAttr], attr: KernelAttr) -> dict[str, Any]:
    return {name: getattr(attr, name) for name in row.options}


def _named(text: str, row: type[KernelAttr], attr: KernelAttr) -> tuple[str, dict[str, Any]]:
    """The expression with a name in the place of each number, and all numbers in the dtype of the arrays.

    Python's own would make numexpr compute in float64.
    """
    number = np.dtype(attr.fields()["dtype"]).type
    numbers = {name: number(getattr(attr, name)) for name in row.floats}

    def name_of(found: re.Match[str]) -> str:
        name = f"c{found[0].replace('.', '_')}"
        numbers[name] = number(found[0])
        return name

    return LITERAL.sub(name_of, text), numbers
