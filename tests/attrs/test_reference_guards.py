"""References that are right for some sizes only: the error names the guard and the line that needs it."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_declared_limits import ToyLimitsAttr

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.compiler.api import traced_kernel
from jitkernels.compiler.capture.trace_reference import graph_of
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.errors import BuildError


def compares_a_size(attr: ToyLimitsAttr, x: AnyArray, y: AnyArray) -> None:
    y[...] = x
    if attr.n > 4:
        y[...] = x + 1


def compares_an_extent(attr: ToyLimitsAttr, x: AnyArray, y: AnyArray) -> None:
    y[...] = x * 2 if len(x) != 6 else x


def needs_a_plain_int(attr: ToyLimitsAttr, x: AnyArray, y: AnyArray) -> None:
    names = [0] * int(attr.n)
    y[...] = x + len(names)


def compares_a_number(attr: ToyLimitsAttr, x: AnyArray, y: AnyArray) -> None:
    y[...] = x
    if bool(attr.above > 0.75):
        y[...] = -x


def has_a_helper(attr: ToyLimitsAttr, x: AnyArray, y: AnyArray) -> None:
    y[...] = helped(attr.n, x)


def helped(n: int, x: AnyArray) -> AnyArray:
    return x if n < 3 else x + 2


def has_two(attr: ToyLimitsAttr, x: AnyArray, y: AnyArray) -> None:
    y[...] = x
    if attr.n == 11:
        y[...] = x + 1
    if attr.k >= 5:
        y[...] = helped(attr.k, x)


GUARDED: dict[str, tuple[Callable[..., None], str, str]] = {
    "size": (compares_a_size, r"-4 \+ n > 0", "if attr.n > 4:"),
    "extent": (compares_an_extent, r"-11 \+ n == 0", "y[...] = x * 2 if len(x) != 6 else x"),
    "int": (needs_a_plain_int, r"-11 \+ n == 0", "names = [0] * int(attr.n)"),
    "number": (compares_a_number, r"above > 0\.75", "if bool(attr.above > 0.75):"),
    "helper": (has_a_helper, r"-3 \+ n >= 0", "return x if n < 3 else x + 2"),
    "two": (has_two, r"-11 \+ n == 0", "if attr.n == 11:"),
}


@pytest.mark.parametrize("name", GUARDED)
def test_errors_print_the_guard_and_its_line(name: str) -> None:
    reference, guard, text = GUARDED[name]
    attr = ToyLimitsAttr(n=9)
    with pytest.raises(UnsupportedError, match=guard) as raised:
        graph_of(reference, ToyLimitsAttr.arrays, ["float32"] * 2, attr.fields(), ToyLimitsAttr.floats)
    message = str(raised.value)
    lines, start = inspect.getsourcelines(helped if name == "helper" else reference)
    line = start + next(i for i, one in enumerate(lines) if one.strip() == text)
    assert f"{__file__}:{line}: `{text}`" in message
    assert "if attr.k >= 5:" in message or name != "two"


def test_building_a_guarded_reference_is_an_error() -> None:
    attr = ToyLimitsAttr(n=9)
    nest = traced_kernel.range_kernel(attr, compares_a_size, 2, 64, False, False)
    with pytest.raises(BuildError, match=r"(?s)ToyLimitsAttr: the reference cannot.*-4 \+ n > 0.*if attr\.n > 4:"):
        nest.object_code("toy_limits")


def test_references_without_guards_are_traced() -> None:
    def plain(attr: Any, x: AnyArray, y: AnyArray) -> None:
        y[...] = np.exp(x) * attr.above

    graph, _ = graph_of(plain, ToyLimitsAttr.arrays, ["float32"] * 2, ToyLimitsAttr(n=9).fields(), ToyLimitsAttr.floats)
    assert graph.writes
