"""Copies of proxies by the modules `copy` and `pickle`, which would make another proxy of the same memory."""

from typing import Any, NoReturn

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.iterables import RunTimeIterable
from jitkernels.compiler.capture.control_flow.tagged_union import Undecided
from jitkernels.compiler.capture.numpy_namespace_proxy import class_of
from jitkernels.compiler.capture.override_registry import METHODS
from jitkernels.compiler.capture.random.traced_generator import TracedRandom
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.ir.builder import UnsupportedError


def _copied(array: Traced, memo: Any = None) -> Any:
    """A copy of an array in its memory order; numbers are immutable."""
    return array if array.is_scalar or array.is_weak else METHODS["copy"](array, order="K")


def _itself(value: Any, memo: Any = None) -> Any:
    return value


def _refused(value: Any, protocol: Any) -> NoReturn:
    raise UnsupportedError(f"a copy of a {class_of(value).__name__} by the module copy or pickle")


for _name in ("__copy__", "__deepcopy__"):
    setattr(Traced, _name, _copied)
    setattr(SymInt, _name, _itself)
for _class in (Traced, SymInt, RunTimeIterable, TracedRandom, Undecided):
    setattr(_class, "__reduce_ex__", _refused)  # noqa: B010  # mypy refuses the assignment
