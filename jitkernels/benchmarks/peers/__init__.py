"""What a user would write or call instead of a kernel: one module per family, with the name of the schema's module.

Three things are registered for a schema. **Peers** compute one attr with another library and appear beside the
implementations in the benchmark's table. The **equivalent** is NumPy's function with the arguments of the everyday
function; if it returns another dtype, as products of int8 do, its time includes a conversion.
**Ordinary calls** are arguments in all the forms that users pass, for both of them. A schema that registers none of
these has those of its reference, `reference`.
"""

import importlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.schema_queries import is_everyday
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers.array_layouts import OrdinaryCall, in_all_forms
from jitkernels.benchmarks.peers.reference import reference_calls, reference_equivalent, reference_peer
from jitkernels.core import bfloat16
from jitkernels.errors import RegistrationError

__all__ = [
    "Bound", "OrdinaryCall", "Peer", "equivalent", "equivalent_of", "ordinary_calls", "ordinary_calls_of", "peer",
    "peers_of",
]  # fmt: skip
Function = TypeVar("Function", bound=Callable[..., Any])
Bound = partial[Any]
"""A function with its arguments; a benchmark unwraps it, so that a peer does not pay for the wrapper."""


@dataclass(frozen=True)
class Peer:
    """Another library's way to compute a kernel: `function(attr, *arrays)` returns the call, or None if it has none.

    narrow: whether it also accepts the bits of bfloat16.
    """

    name: str
    function: Callable[..., Bound | None]
    needs: str
    narrow: bool = False

    def bound(self, attr: KernelAttr, *arrays: AnyArray) -> Bound | None:
        """Return the call for these arrays; NumPy, which has no bfloat16, gets float32, and its result is rounded."""
        parameters = attr.signature().arrays
        if self.narrow or all(parameter.dtype != bfloat16.BFLOAT16_NAME for parameter in parameters):
            return self.function(attr, *arrays)
        if self.name != "numpy":
            return None
        held = [argument.numbers(array) for argument, array in zip(parameters, arrays, strict=True)]
        results = [
            (wide, array)
            for argument, wide, array in zip(parameters, held, arrays, strict=True)
            if argument.output and argument.dtype == bfloat16.BFLOAT16_NAME
        ]
        call = self.function(attr, *held)
        return None if call is None else partial(_rounded, call, results)

    @property
    def installed(self) -> bool:
        return importlib.util.find_spec(self.needs) is not None


def _rounded(call: Bound, results: Sequence[tuple[AnyArray, AnyArray]]) -> None:
    call()
    for wide, array in results:
        array[...] = bfloat16.stored(wide)


_peers: dict[type[KernelAttr], dict[str, Peer]] = {}
_equivalents: dict[type[KernelAttr], Callable[..., Any]] = {}
_ordinary: dict[type[KernelAttr], Callable[[int], Iterator[OrdinaryCall]]] = {}


def peer(
    attr_class: type[KernelAttr], *, name: str = "numpy", needs: str | None = None, narrow: bool = False
) -> Callable[[Function], Function]:
    """Register the decorated function as a peer of a schema; `needs` is the module it imports, by default `name`.

    `narrow`: it also accepts the bits of bfloat16. Raises RegistrationError if the schema has another peer of that
    name.
    """

    def register(function: Function) -> Function:
        known = _peers.setdefault(attr_class, {})
        if name in known and known[name].function.__code__ != function.__code__:
            raise RegistrationError(f"{attr_class.__name__} already has a peer {name!r}")
        known[name] = Peer(name, function, needs or name, narrow)
        return function

    return register


def equivalent(attr_class: type[KernelAttr]) -> Callable[[Function], Function]:
    """Register NumPy's equivalent of the everyday function: same parameters, ``out`` last."""

    def register(function: Function) -> Function:
        _equivalents[attr_class] = function
        return function

    return register


def ordinary_calls(
    attr_class: type[KernelAttr],
) -> Callable[[Callable[[int], Iterator[OrdinaryCall]]], Callable[[int], Iterator[OrdinaryCall]]]:
    """Register a function that returns calls for about `elements` elements, the simplest first."""

    def register(function: Callable[[int], Iterator[OrdinaryCall]]) -> Callable[[int], Iterator[OrdinaryCall]]:
        _ordinary[attr_class] = function
        return function

    return register


def peers_of(attr_class: type[KernelAttr]) -> dict[str, Peer]:
    """Return the installed peers of a schema, by name; NumPy's is the reference where none is registered."""
    _import_family(attr_class)
    known = {"numpy": Peer("numpy", reference_peer, "numpy", narrow=True)} | _peers.get(attr_class, {})
    return {name: candidate for name, candidate in known.items() if candidate.installed}


def has_equivalent(attr_class: type[KernelAttr]) -> bool:
    """Return whether NumPy has an equivalent of a schema's everyday function besides the reference."""
    _import_family(attr_class)
    return attr_class in _equivalents


def equivalent_of(attr_class: type[KernelAttr]) -> Callable[..., Any] | None:
    """Return NumPy's equivalent of a schema's everyday function, by default the reference; None without one.

    The reference is called behind bindings in Python, so its time is no measure: see `has_equivalent`.
    """
    if not has_equivalent(attr_class) and is_everyday(attr_class):
        return reference_equivalent(attr_class)
    return _equivalents.get(attr_class)


def ordinary_calls_of(attr_class: type[KernelAttr], elements: int) -> list[OrdinaryCall]:
    """Return the ordinary calls of a schema for about `elements` elements, in separate arrays.

    After the schema's own calls, or else those that follow from its arrays, comes its simplest one again, in all
    layouts and forms of arrays.
    """
    _import_family(attr_class)
    calls: list[OrdinaryCall] = []
    if attr_class in _ordinary:
        calls += _ordinary[attr_class](elements)
    elif is_everyday(attr_class):
        calls += reference_calls(attr_class, elements)
    return [*calls, *in_all_forms(calls[0])] if calls else []


def _import_family(attr_class: type[KernelAttr]) -> None:
    """Import the module here with a schema's family name; schemas of other packages register on their own."""
    package, _, family = attr_class.__module__.rpartition(".")
    module = f"{__name__}.{family}"
    if package == "jitkernels.attrs" and importlib.util.find_spec(module) is not None:
        importlib.import_module(module)
