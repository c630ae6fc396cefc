"""Special functions that NumPy lacks: registered as elementwise operations by name."""

from typing import Any

from jitkernels.compiler.capture.array_proxy import Traced, result
from jitkernels.compiler.capture.numpy.reductions import tracer_of
from jitkernels.compiler.capture.numpy.ufuncs import apply, operand
from jitkernels.compiler.capture.override_registry import overrides
from jitkernels.compiler.ir.special_functions import FUNCTIONS


def _enter(function: Any, name: str) -> None:
    @overrides(function)
    def operation(*operands: Any) -> Any:
        tracer = tracer_of()
        arguments = [operand(tracer, value) for value in operands]
        return result(
            tracer, apply(tracer, name, *arguments), *(argument for argument in arguments if type(argument) is Traced)
        )


for _function, _name in FUNCTIONS.items():
    _enter(_function, _name)
