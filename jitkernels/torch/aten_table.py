"""The table of operators: for each overload of ATen's operators, the function that computes it on arrays."""

import functools
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable
from typing import Any

from jitkernels.core.frozen_dataclass import frozen_dataclass

TABLE: dict[str, "AtenOperator"] = {}
"""Operators by the names of overloads, as `add.Tensor`."""


@frozen_dataclass
class AtenOperator:
    """One overload of an ATen operator.

    `function` takes its arguments as ATen's schema orders them, arrays for tensors and NumPy's dtypes for torch's; one
    named `result` gets what torch infers of the results. `promotes`: what tensors are cast to before the call.
    `module`: the module that enters it; the function may be NumPy's.
    """

    name: str
    function: Callable[..., Any]
    takes_result: bool
    promotes: str
    module: str


def operator(*names: str, promotes: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function in the table, for these overloads.

    `promotes`: "result" casts tensors and numbers to the dtype of the result, "tensors" tensors alone, and "operands"
    to the dtype that torch promotes them to.
    """
    module = sys._getframe(1).f_globals["__name__"].rpartition(".")[2]

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        try:
            takes_result = "result" in inspect.signature(function).parameters
        except ValueError:  # some of NumPy's functions have no signature
            takes_result = False
        for name in names:
            TABLE[name] = AtenOperator(name, function, takes_result, promotes, module)
        return function

    return enter


@functools.cache
def all_operators() -> dict[str, AtenOperator]:
    """The table with the operators of all modules of the folder `operators`."""
    from jitkernels.torch import operators

    for module in pkgutil.iter_modules(operators.__path__):
        importlib.import_module(f"{operators.__name__}.{module.name}")
    return TABLE
