"""Functions that NumPy lacks, called with traced arrays: each is the operation of its name."""

from typing import Any

from jitkernels.frontends.reductions import tracer_of
from jitkernels.frontends.tables import implements
from jitkernels.frontends.traced import Traced, result
from jitkernels.frontends.universal import apply, operand
from jitkernels.graph.special import FUNCTIONS


def _enter(function: Any, name: str) -> None:
    @implements(function)
    def operation(*operands: Any) -> Any:
        tracer = tracer_of()
        given = [operand(tracer, one) for one in operands]
        return result(tracer, apply(tracer, name, *given), *(one for one in given if type(one) is Traced))


for _function, _name in FUNCTIONS.items():
    _enter(_function, _name)
