"""The table of operators: for each name of ONNX, the functions that compute it, by the opset from which they hold."""

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from typing import Any

from jitkernels.core.frozen_dataclass import frozen_dataclass

TABLE: dict[tuple[str, str], list["Operator"]] = {}
"""Operators by domain and name, those of newer opsets first."""


@frozen_dataclass
class Operator:
    """One operator from an opset on.

    `function` takes the inputs of a node, None for absent ones, and attributes as keywords; one named `node` gets the
    node itself. `static`: inputs whose elements decide shapes. `sizes`: whether it computes sizes too, with symbolic
    ints as elements. `host`: it runs in NumPy, as the shapes of its results depend on elements. `narrow`: it takes
    elements that NumPy lacks, which are widened for all others.
    """

    name: str
    since: int
    function: Callable[..., Any]
    keywords: tuple[str, ...]
    static: tuple[int, ...]
    sizes: bool
    host: bool
    narrow: bool


def operator(
    *names: str,
    since: int = 1,
    domain: str = "",
    static: tuple[int, ...] = (),
    sizes: bool = False,
    host: bool = False,
    narrow: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function in the table, for these operators."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        parameters = inspect.signature(function).parameters.values()
        keywords = tuple(one.name for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY)
        for name in names:
            entries = TABLE.setdefault((domain, name), [])
            entries.append(Operator(name, since, function, keywords, static, sizes, host, narrow))
            entries.sort(key=lambda one: -one.since)
        return function

    return enter


@functools.cache
def _filled() -> dict[tuple[str, str], list[Operator]]:
    """The table with the operators of all modules of the folder `operators`."""
    from jitkernels.onnx import operators

    for module in pkgutil.iter_modules(operators.__path__):
        importlib.import_module(f"{operators.__name__}.{module.name}")
    return TABLE


def find_operator(domain: str, name: str, opset: int) -> Operator | None:
    """The operator of a name in an opset; None where there is none."""
    return next((one for one in _filled().get((domain, name), ()) if one.since <= opset), None)


def all_operators() -> dict[tuple[str, str], list[Operator]]:
    """The whole table."""
    return _filled()
