"""Peers of an elementwise row in one line: NumPy's function, an expression for compilers, and torch's function."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.base import KernelAttr
from jitkernels.peers import Bound, equivalent, peer
from jitkernels.peers.compiled import FUNCTIONS, made_of, of_jax, of_numba
from jitkernels.signature import AnyArray

LITERAL = re.compile(r"(?<![\w.])\d+(\.\d+)?(?![\w.])")


def elementwise(
    row: type[KernelAttr],
    numpy: Callable[..., Any],
    text: str | None,
    torch: Callable[..., Bound] | None = None,
    compiled: Mapping[str, str] | None = None,
) -> None:
    """Register the peers of a row of one result, and its equivalent.

    numpy: a function of the inputs, the options and ``out``. text: numexpr's expression of the inputs and floats by
    name, which JAX and numba compile as well; its numbers count as the arrays do. torch: gives the call for torch, a
    tensor of each array and the options. compiled: what the two compile where numexpr has no words for it, by the
    value of the row's option, or by "".
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
    texts = compiled or ({"": text} if text is not None else {})
    if texts:
        chosen = partial(_chosen, row, texts)
        of_numba(row, lambda attr: _named(chosen(attr), row, attr))
        of_jax(
            row,
            lambda attr, jax, *given: _in_jax(
                jax, chosen(attr), row, attr, dict(zip(inputs, given, strict=True))
            ),
        )


def _chosen(row: type[KernelAttr], texts: Mapping[str, str], attr: KernelAttr) -> str:
    (option,) = [str(value) for value in _options(row, attr).values()] if "" not in texts else [""]
    return texts[option]


def _in_jax(jax: Any, text: str, row: type[KernelAttr], attr: KernelAttr, given: dict[str, Any]) -> Any:
    """The expression of JAX's arrays; that of one element is a copy, as JAX would give its argument back."""
    names = {name: getattr(jax.numpy, name) for name in FUNCTIONS} | {"erf": jax.scipy.special.erf}
    names |= given | {name: getattr(attr, name) for name in row.floats}
    found = made_of(f"found = {text}", names)["found"]
    return jax.numpy.copy(found) if text in given else found


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
