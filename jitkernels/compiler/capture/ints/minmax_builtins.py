"""Python's own functions of numbers that only the running code knows: ``min``, ``max``, ``abs``."""

import operator
from collections.abc import Callable
from typing import Any

from jitkernels.frontends.flow.ints import least
from jitkernels.frontends.standin import CALLED
from jitkernels.frontends.traced import Traced
from jitkernels.frontends.universal import CLASSES
from jitkernels.frontends.whole import Whole


def _is_number(value: Any) -> bool:
    if type(value) is Traced:
        return value.is_scalar or value.is_weak
    return type(value) is Whole or type(value) in CLASSES


def _extreme(function: Callable[..., Any], better: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def call(*given: Any, **options: Any) -> Any:
        traced = [one for one in given if type(one) is Traced]
        if len(given) < 2 or options or not traced or not all(map(_is_number, given)):
            return function(*given, **options)
        tracer = traced[0].tracer
        if all(tracer.is_known(one.node) for one in traced):
            return function(*given)
        return least(tracer, given, better)

    return call


CALLED.update({min: _extreme(min, operator.lt), max: _extreme(max, operator.gt)})
