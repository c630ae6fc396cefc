"""Parameters of kernel functions are bound by name: absent arrays are None, structs are read by field."""

import ctypes
from typing import Any, NamedTuple

import numpy as np
import pytest
from translated import written

from jitkernels.attrs.layer_norm import LayerNormAttr
from jitkernels.codegen.python import kernel_module
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import inlined, offset, symbol_of
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.errors import BuildError
from jitkernels.runtime.loading import loader

TYPES, NAMES = ("float64*", "float64*", "int64"), ("x", "y", "n")


class Range(NamedTuple):
    """A part of a range."""

    begin: int
    end: int


@frozen_dataclass
class Arrays:
    """An input, a factor that may be absent, and an output."""

    x: Any
    scale: Any
    y: Any


class Pair(NamedTuple):
    """Two numbers."""

    a: int
    b: float


class Problem(NamedTuple):
    """A struct of structs."""

    arrays: Arrays
    part: Range


@inlined()
def scaled(arrays: Arrays, i: int) -> Any:
    return arrays.x[i] * arrays.scale[i] if arrays.scale is not None else arrays.x[i]


@inlined()
def shifted(part: Range, by: int) -> Any:
    return Range(part.begin + by, part.end + by)


def ran(nest: RangeKernel, *arrays: np.ndarray[Any, Any]) -> int:
    """Call a kernel of arrays of one length."""
    entry = loader.functions_of(nest, (symbol_of(nest),))[symbol_of(nest)]
    kinds = [ctypes.c_void_p] * len(arrays)
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds, ctypes.c_int64)(entry)
    return int(function(*(array.ctypes.data for array in arrays), len(arrays[0])))


def body_of_scalars(y: Any, end: int, begin: int, x: Any, scale: Any) -> None:
    factors = offset(scale, 0)
    for i in range(begin, end):
        y[i] = x[i] if factors is None else x[i] * factors[i]


def body_of_structs(arrays: Arrays, part: Range) -> None:
    whole = Problem(arrays, shifted(part, 1))
    inside = shifted(whole.part, -1)
    for i in range(inside.begin, inside.end):
        whole.arrays.y[i] = scaled(whole.arrays, i)


@pytest.mark.parametrize("body", [body_of_scalars, body_of_structs])
@pytest.mark.parametrize("has_scale", [False, True])
def test_an_optional_array(body: Any, has_scale: bool) -> None:
    x, scale, y = np.arange(9.0), np.arange(9.0) + 2, np.zeros(9)
    if has_scale:
        nest = RangeKernel("optional", ("float64*", *TYPES), body, extent=3, names=("x", "scale", "y", "n"))
        assert ran(nest, x, scale, y) == 0
    else:
        nest = RangeKernel("optional", TYPES, body, extent=2, names=(*NAMES, "scale"))
        assert ran(nest, x, y) == 0
    assert np.array_equal(y, x * scale if has_scale else x)


def test_records_compile_to_single_parameters() -> None:
    """The code is that of a body of single parameters."""

    @inlined()
    def doubled(x: Any, i: int, factor: Any) -> Any:
        return x[i] * factor

    @inlined()
    def doubled_of(arrays: Arrays, part: Range) -> Any:
        return arrays.x[part.begin] * (2.0 if arrays.scale is None else arrays.scale[0])

    def plain(x: Any, y: Any, n: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            y[i] = doubled(x, i, 2.0)

    def in_structs(arrays: Arrays, part: Range) -> None:
        for i in range(part.begin, part.end):
            arrays.y[i] = doubled_of(arrays, Range(i, part.end))

    nests = RangeKernel("same", TYPES, plain, 2), RangeKernel("same", TYPES, in_structs, 2, names=(*NAMES, "scale"))
    assert nests[0].object_code("jk_same") == nests[1].object_code("jk_same")


class Step(NamedTuple):
    """Constants of a function, and a function."""

    factor: Any
    number: Any
    apply: Any
    name: str = "which no function reads"


@frozen_dataclass
class Constants:
    """A struct of a struct."""

    step: Step
    count: int

    @property
    def last(self) -> int:
        return self.count - 1


def with_constants(constants: Constants) -> RangeKernel:
    step = constants.step

    def body(x: Any, y: Any, begin: int, end: int) -> None:
        for i in range(begin, end):
            y[i] = step.apply(x[i]) * constants.step.factor + step.number(constants.last)

    return RangeKernel("constants", TYPES, body, extent=2, names=NAMES)


@inlined()
def squared(a: Any) -> Any:
    return a * a


@inlined()
def doubled(a: Any) -> Any:
    return a + a


def test_captured_records_are_constants() -> None:
    x, y = np.arange(9.0), np.zeros(9)
    assert ran(with_constants(Constants(Step(np.float64(0.5), np.float64, squared), 4)), x, y) == 0
    assert np.array_equal(y, x * x * 0.5 + 3)


def test_keys_contain_the_fields_read_of_a_record() -> None:
    steps = [
        Step(np.float64(0.5), np.float64, squared), Step(np.float64(0.25), np.float64, squared),
        Step(np.float64(0.5), np.float32, squared), Step(np.float64(0.5), np.float64, doubled),
    ]  # fmt: skip
    nests = [with_constants(Constants(step, 4)) for step in steps] + [with_constants(Constants(steps[0], 5))]
    assert len({symbol_of(nest) for nest in nests}) == len({nest.text for nest in nests}) == len(nests)
    unread = with_constants(Constants(steps[0]._replace(name="other"), 4))
    assert symbol_of(unread) == symbol_of(nests[0])
    assert unread.text == nests[0].text


def test_check_workspace_and_team_by_name() -> None:
    def body(x: Any, y: Any, workspace: Any, begin: int, end: int, thread: int) -> None:
        if thread == 0:
            for i in range(begin, end):
                workspace[i] = x[i]
            for i in range(begin, end):
                y[i] = workspace[i] + workspace[i]

    def check(n: int) -> int:
        return 7 if n == 3 else 0

    def needed(n: int, team_size: int) -> int:
        return 8 * n * team_size

    def threads(end: int) -> int:
        return min(end, 2)

    nest = RangeKernel(
        "by_name", TYPES, body, extent=2, names=NAMES, check=check, workspace=needed, workspace_dtype="float64",
        together=threads,
    )  # fmt: skip
    x, y = np.arange(5.0), np.zeros(5)
    assert ran(nest, x, y) == 0
    assert np.array_equal(y, 2 * x)
    assert ran(nest, np.arange(3.0), np.zeros(3)) == 7


def test_absent_arrays_are_part_of_the_key() -> None:
    def body(x: Any, bias: Any, y: Any, begin: int) -> None:
        y[begin] = x[begin] if bias is None else x[0]

    first, second = (
        RangeKernel("key", TYPES, body, extent=2, names=names)
        for names in (("x", "y", "n", "bias"), ("bias", "y", "n", "x"))
    )
    assert symbol_of(first) != symbol_of(second)
    assert first.text != second.text


def test_keys_contain_the_fields_of_a_parameter_record() -> None:
    def nest(kind: type) -> RangeKernel:
        def body(arrays: Any) -> None:
            arrays.y[0] = arrays.x[0]

        body.__annotations__["arrays"] = kind
        return RangeKernel("key", TYPES, body, extent=2, names=NAMES)

    kinds: list[Any] = [NamedTuple("Pair", [("x", Any), ("y", Any)]), NamedTuple("Pair", [("y", Any), ("x", Any)])]
    assert len({symbol_of(nest(kind)) for kind in kinds}) == len({nest(kind).text for kind in kinds}) == 2


def test_parameters_without_an_argument_of_their_name() -> None:
    def body(x: Any, scael: Any, y: Any, begin: int, end: int) -> None:
        y[begin] = x[begin]

    with pytest.raises(BuildError, match=r"the parameter scael is no argument of the kernel: expected some of x, y, n"):
        symbol_of(RangeKernel("wrong", TYPES, body, extent=2, names=(*NAMES, "scale")))


REFUSED = {
    "t = none[0]": r"expected a pointer to numbers, got None: none\[0\]",
    "none = p": r"none is a variable of one type: expected None, got float64\*",
    "t = pair.c": r"not in the language: pair.c",
    "t = pair + 1": r"expected numbers, got Pair\(int64, float64\) and literal: pair \+ 1",
    "t = Pair(n)": r"expected 2 fields \(a, b\), got 1: Pair\(n\)",
    "t = Pair((n, n), n)": r"an argument that is \(int64, int64\): expected one value",
    "pair = n": r"expected Pair\(int64, float64\), got int64",
    "n = pair": r"n is a variable of one type: expected int64, got Pair",
    "pair = Pair(0.5, p[0])": r"pair.a is a variable of one type: expected int64, got float64",
}


@pytest.mark.parametrize("text", REFUSED)
def test_invalid_parameters_are_rejected(text: str, tmp_path: Any) -> None:
    head = "def body(p, n, begin, end):\n    pair = Pair(n, p[0])\n    none = None"
    body = written(tmp_path / "refused.py", f"{head}\n    {text}\n", Pair=Pair)["body"]
    program = kernel_module.KernelModule("refused")
    with pytest.raises(BuildError, match=REFUSED[text]):
        program.export("body", body, ("float64*", "int64", "int64", "int64"), ())


def test_rows_name_their_arguments() -> None:
    attr = LayerNormAttr(rows=2, n=3, affine=False, dtype="float32")
    assert attr.signature().names == ("x", "y", "rows", "n", "eps", "bias", "mean", "scale", "var")
