"""What a user would write or call instead of a kernel, registered beside it: one file per family, named as its row's.

Three things are registered for a row. **Peers** compute one attr with somebody else's code and stand beside the
implementations in the benchmark's table. The **equivalent** takes the same arguments as the everyday function and
is NumPy's; what gives another dtype than we do, such as products of int8, is timed with a conversion to ours.
**Ordinary calls** are arguments in all the forms that users pass, for both of them.
"""

import importlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from jitkernels import bfloat16
from jitkernels.attrs.base import KernelAttr
from jitkernels.errors import RegistrationError
from jitkernels.peers.forms import OrdinaryCall, in_all_forms
from jitkernels.signature import AnyArray

__all__ = [
    "Bound", "OrdinaryCall", "Peer", "equivalent", "equivalent_of", "ordinary_calls", "ordinary_calls_of", "peer",
    "peers_of",
]  # fmt: skip
Function = TypeVar("Function", bound=Callable[..., Any])
Bound = partial[Any]
"""A function with its arguments; a benchmark takes it apart, so that a peer does not pay for the wrapping."""


@dataclass(frozen=True)
class Peer:
    """Somebody else's way to compute a kernel: `function(attr, *arrays)` gives the call, or None if it has none.

    narrow: whether it takes the bits of bfloat16 as well.
    """

    name: str
    function: Callable[..., Bound | None]
    needs: str
    narrow: bool = False

    def bound(self, attr: KernelAttr, *arrays: AnyArray) -> Bound | None:
        """The call for these arrays; NumPy, which has no bfloat16, gets float32, and what it gives is rounded."""
        parameters = attr.signature().arrays
        if self.narrow or all(parameter.dtype != bfloat16.NAME for parameter in parameters):
            return self.function(attr, *arrays)
        if self.name != "numpy":
            return None
        held = [one.numbers(array) for one, array in zip(parameters, arrays, strict=True)]
        results = [
            (wide, array)
            for one, wide, array in zip(parameters, held, arrays, strict=True)
            if one.output and one.dtype == bfloat16.NAME
        ]
        found = self.function(attr, *held)
        return None if found is None else partial(_rounded, found, results)

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
    """Register the decorated function as a peer of a row; `needs` is the module it imports, by default `name`.

    `narrow` says that it takes the bits of bfloat16 too. Raises RegistrationError if the row has another peer of that
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
    """Register what NumPy has in place of the everyday function: same parameters, ``out`` the last."""

    def register(function: Function) -> Function:
        _equivalents[attr_class] = function
        return function

    return register


def ordinary_calls(
    attr_class: type[KernelAttr],
) -> Callable[[Callable[[int], Iterator[OrdinaryCall]]], Callable[[int], Iterator[OrdinaryCall]]]:
    """Register a function that gives the calls for about so many elements, the plainest first."""

    def register(
        function: Callable[[int], Iterator[OrdinaryCall]],
    ) -> Callable[[int], Iterator[OrdinaryCall]]:
        _ordinary[attr_class] = function
        return function

    return register


def peers_of(attr_class: type[KernelAttr]) -> dict[str, Peer]:
    """The peers of a row that are installed here, by name."""
    _import_family(attr_class)
    return {name: found for name, found in _peers.get(attr_class, {}).items() if found.installed}


def equivalent_of(attr_class: type[KernelAttr]) -> Callable[..., Any] | None:
    """NumPy's equivalent of the everyday function of a row, or None if nobody registered one."""
    _import_family(attr_class)
    return _equivalents.get(attr_class)


def ordinary_calls_of(attr_class: type[KernelAttr], elements: int) -> list[OrdinaryCall]:
    """The ordinary calls of a row for about so many elements, in arrays of their own.

    Behind those of the row's own stands its plainest once more, in all forms that any array may come in.
    """
    _import_family(attr_class)
    calls = list(_ordinary[attr_class](elements)) if attr_class in _ordinary else []
    return [*calls, *in_all_forms(calls[0])] if calls else []


def _import_family(attr_class: type[KernelAttr]) -> None:
    """Import the module here that bears the family name of a row; rows of other packages register where they like."""
    package, _, family = attr_class.__module__.rpartition(".")
    module = f"{__name__}.{family}"
    if package == "jitkernels.attrs" and importlib.util.find_spec(module) is not None:
        importlib.import_module(module)
