"""Register peers of an elementwise schema in one line: NumPy's function, an expression for compilers, torch's."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, equivalent, peer
from jitkernels.benchmarks.peers.compiled import FUNCTIONS, globals_of, of_jax, of_numba, of_torch

LITERAL = re.compile(r"(?<![\w.])\d+(\.\d+)?(?![\w.])")


def elementwise(
    schema: type[KernelAttr],
    numpy: Callable[..., Any],
    text: str | None,
    torch: Callable[..., Bound] | None = None,
    compiled: Mapping[str, str] | None = None,
) -> None:
    """Register the peers of a schema with one result, and its equivalent.

    numpy: a function of the inputs, the options and ``out``. text: numexpr's expression of the inputs and floats by
    name, which JAX and numba compile as well; its numbers have the arrays' dtype. torch: returns the call for torch, a
    tensor of each array and the options. compiled: what the two compile if numexpr cannot express it, by the value of
    the schema's option, or by "".
    """
    equivalent(schema)(numpy)
    inputs = [argument.name for argument in schema.arrays[:-1]]

    def by_numpy(attr: KernelAttr, *arrays: AnyArray) -> Bound:
        return partial(numpy, *arrays[:-1], **_options(schema, attr), out=arrays[-1])

    def by_numexpr(attr: KernelAttr, *arrays: AnyArray) -> Bound:
        import numexpr

        assert text is not None, "registered only where it is given"
        named, numbers = _named(text, schema, attr)
        values = {**dict(zip(inputs, arrays, strict=False)), **numbers}
        return partial(numexpr.evaluate, named, local_dict=values, out=arrays[-1])

    peer(schema)(by_numpy)
    if text is not None:
        peer(schema, name="numexpr")(by_numexpr)
    if torch is not None:
        of_torch(schema, lambda attr, library, *tensors: torch(library, *tensors, **_options(schema, attr)))
    texts = compiled or ({"": text} if text is not None else {})
    if texts:
        chosen = partial(_chosen, schema, texts)
        of_numba(schema, lambda attr: _named(chosen(attr), schema, attr))
        of_jax(
            schema,
            lambda attr, jax, *given: _in_jax(jax, chosen(attr), schema, attr, dict(zip(inputs, given, strict=True))),
        )


def _chosen(schema: type[KernelAttr], texts: Mapping[str, str], attr: KernelAttr) -> str:
    (option,) = [str(value) for value in _options(schema, attr).values()] if "" not in texts else [""]
    return texts[option]


def _in_jax(jax: Any, text: str, schema: type[KernelAttr], attr: KernelAttr, values: dict[str, Any]) -> Any:
    """Return the expression of JAX's arrays; a single name is copied, as JAX would return its argument."""
    names = {name: getattr(jax.numpy, name) for name in FUNCTIONS} | {"erf": jax.scipy.special.erf}
    names |= values | {name: getattr(attr, name) for name in schema.floats}
    found = globals_of(f"found = {text}", names)["found"]
    return jax.numpy.copy(found) if text in values else found


def _options(schema: type[KernelAttr], attr: KernelAttr) -> dict[str, Any]:
    return {name: getattr(attr, name) for name in schema.options}


def _named(text: str, schema: type[KernelAttr], attr: KernelAttr) -> tuple[str, dict[str, Any]]:
    """Return the expression with a name for each number, and all numbers in the dtype of the arrays.

    Python numbers would make numexpr compute in float64.
    """
    number = np.dtype(attr.fields()["dtype"]).type
    numbers = {name: number(getattr(attr, name)) for name in schema.floats}

    def name_of(match: re.Match[str]) -> str:
        name = f"c{match[0].replace('.', '_')}"
        numbers[name] = number(match[0])
        return name

    return LITERAL.sub(name_of, text), numbers
