"""Python's ``min`` and ``max`` of numbers that only the compiled code knows."""

import operator
from collections.abc import Callable
from typing import Any

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.ints.int64_arithmetic import min_or_max
from jitkernels.compiler.capture.numpy.ufuncs import CLASSES
from jitkernels.compiler.capture.numpy_namespace_proxy import CALLED
from jitkernels.compiler.capture.symint import Whole


def _is_number(value: Any) -> bool:
    if type(value) is Traced:
        return value.is_scalar or value.is_weak
    return type(value) is Whole or type(value) in CLASSES


def _extreme(function: Callable[..., Any], better: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        traced = [argument for argument in arguments if type(argument) is Traced]
        if len(arguments) < 2 or options or not traced or not all(map(_is_number, arguments)):
            return function(*arguments, **options)
        tracer = traced[0].tracer
        if all(tracer.is_known(argument.node) for argument in traced):
            return function(*arguments)
        return min_or_max(tracer, arguments, better)

    return call


CALLED.update({min: _extreme(min, operator.lt), max: _extreme(max, operator.gt)})
