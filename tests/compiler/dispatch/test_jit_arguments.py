"""Arguments and results of compiled functions: containers, static arguments, defaults, keywords, foreign arrays."""

import dataclasses
import enum
from typing import Any, NamedTuple

import numpy as np
import pytest
from jitted import agree, array, given, reasons, same

import jitkernels as jk


@dataclasses.dataclass
class Layer:
    weights: Any
    bias: Any
    name: str = "layer"


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    scale: Any
    order: int


class Pair(NamedTuple):
    left: Any
    right: Any


class Mode(enum.Enum):
    PLUS = "plus"
    MINUS = "minus"


def compiles(function: Any) -> int:
    return sum(map(len, function._specializations.values()))


def test_nested_containers() -> None:
    def function(layer: Layer, inputs: dict[str, Any], pair: Pair, frozen: Frozen) -> Any:
        made = layer.weights @ inputs["x"][0] + layer.bias
        return {
            "sum": made, "list": [made * 2, (pair.left, pair.right + 1)], "layer": Layer(layer.weights * 2, layer.bias),
            "pair": Pair(made, None), "frozen": Frozen(frozen.scale * made, frozen.order), "name": layer.name,
        }  # fmt: skip

    agree(
        function,
        lambda: Layer(array(3, 3), array(3)),
        lambda: {"x": [array(3), 2.0], "y": ()},
        lambda: Pair(array(2), 3),
        lambda: Frozen(1.5, 2),
    )


def test_returned_arguments_keep_their_identity() -> None:
    compiled = jk.jit(lambda x, y, k: (x, [y], {"x": x}, k))
    x, y, k = array(3), array(4), 1234567
    found = compiled(x, y, k)
    assert found[0] is x
    assert found[1][0] is y
    assert found[2]["x"] is x
    assert found[3] is k


def test_signatures() -> None:
    def function(a: Any, /, b: Any = 2.0, *more: Any, c: Any = 3.0, **others: Any) -> Any:
        return a + b + sum(more) + c + others.get("d", 0)

    compiled, x = jk.jit(function), array(4)
    right: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((x,), {}), ((x, 1.0), {}), ((x, x, x, x), {}), ((x,), {"c": x}), ((x,), {"b": 5.0, "d": x, "c": 1}),
    ]  # fmt: skip
    for args, kwargs in right:
        same(compiled(*args, **kwargs), function(*args, **kwargs))
        same(compiled(*args, **kwargs), function(*args, **kwargs))
    assert not reasons(compiled)
    wrong: list[tuple[tuple[Any, ...], dict[str, Any]]] = [((), {}), ((), {"b": 1})]
    for args, kwargs in wrong:
        with pytest.raises(TypeError) as plain:
            function(*args, **kwargs)
        with pytest.raises(TypeError) as caught:
            compiled(*args, **kwargs)
        assert str(caught.value) == str(plain.value)


def test_keywords_and_defaults_share_a_specialization() -> None:
    compiled, x = jk.jit(lambda a, b=2.0: a * b), array(4)
    for found in (compiled(x), compiled(x, 2.0), compiled(a=x), compiled(x, b=2.0), compiled(b=2.0, a=x)):
        same(found, x * 2)
    assert compiles(compiled) == 1


def test_static_arguments() -> None:
    @jk.jit(static_argnames=("axis", "options"))
    def function(x: Any, axis: Any, options: Any = None) -> Any:
        total = x.sum(axis=axis)
        return total * 2 if options and options["double"] else total

    x = array(3, 4)
    for axis in (0, 1, (0, 1), None, 0):
        same(function(x, axis), x.sum(axis=axis))
    assert compiles(function) == 4
    options = {"double": True}
    same(function(x, 0, options), x.sum(axis=0) * 2)
    options["double"] = False
    same(function(x, 0, options), x.sum(axis=0))
    with pytest.raises(jk.ArgumentError, match="static_argnames: expected names of parameters"):
        jk.jit(static_argnames="nothing")(lambda x: x)


def test_other_arguments_are_static() -> None:
    def function(x: Any, mode: Any, flag: Any, way: Any) -> Any:
        y = x + 1 if mode is Mode.PLUS else x - 1
        return way(y) if flag else y

    for mode in Mode:
        for flag in (True, False, None, "yes"):
            for way in (np.sin, lambda v: v * 2, np.sum):
                agree(function, lambda: array(3), given(mode), given(flag), given(way))
    compiled = jk.jit(lambda x, s: x[s], static_argnames="s")
    same(compiled(array(6), slice(1, 4)), array(6)[1:4])


def test_equal_extents_share_a_symbol() -> None:
    compiled = jk.jit(lambda x, y: x + y)
    for one, other in (
        ((3, 4), (3, 4)),
        ((5, 6), (5, 6)),
        ((3, 3), (3, 3)),
        ((4,), (4,)),
        ((1, 4), (3, 1)),
        ((2, 5), (5,)),
    ):
        same(compiled(array(*one), array(*other)), array(*one) + array(*other))
    with pytest.raises(ValueError, match="could not be broadcast together"):
        compiled(array(3), array(4))
    same(compiled(array(1), array(7)), array(1) + array(7))


class Interface:
    """An array of another library."""

    def __init__(self, array: Any) -> None:
        self.__array_interface__ = array.__array_interface__
        self.kept = array


class Exchanged:
    """One that exchanges its memory by DLPack."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("kind", [Interface, Exchanged])
def test_arrays_of_other_libraries_are_read_in_place(kind: Any) -> None:
    compiled, memory = jk.jit(lambda x: x * 2), array(4)
    given = kind(memory)
    same(compiled(given), memory * 2)
    memory[0] = 7
    same(compiled(given), memory * 2)
    assert not reasons(compiled)


def test_unaligned_and_masked_arrays_fall_back() -> None:
    def unaligned() -> Any:
        return np.frombuffer(b"\0" + array(4).tobytes(), dtype="f8", offset=1)

    def packed() -> Any:
        return np.zeros(4, dtype=[("a", "f8"), ("b", "f4")])["a"]

    for make in (unaligned, packed, lambda: np.ma.masked_array(array(3), [True, False, False])):
        compiled = jk.jit(lambda x: x * 2)
        found, expected = compiled(make()), make() * 2
        assert type(found) is type(expected)
        np.testing.assert_array_equal(found, expected)
        assert reasons(compiled)


def test_layouts() -> None:
    def function(x: Any) -> Any:
        return x * 2, x.sum(0), x[1:], np.concatenate([x, x]), x @ x.T

    for make in (
        lambda: array(4, 4), lambda: array(4, 4).T, lambda: array(8, 8)[::2, ::2], lambda: array(4, 4)[::-1],
        lambda: array(4, 8)[:, ::-2], lambda: np.broadcast_to(array(4), (4, 4)), lambda: array(4, 4, 2)[..., 0],
    ):  # fmt: skip
        agree(function, make)


def test_wrong_uses_of_jit() -> None:
    with pytest.raises(jk.ArgumentTypeError, match="function: expected a function"):
        jk.jit(3)  # type: ignore[call-overload]
    with pytest.raises(jk.ArgumentTypeError, match="nonsense"):
        jk.jit(nonsense=1)
    with pytest.raises(jk.AttrError, match="opt_level: expected an int"):
        jk.jit(opt_level=9)
    with pytest.raises(jk.ArgumentError, match="config: expected no"):
        jk.jit(config=jk.JitConfig(), fast_math=True)
    with pytest.raises(jk.AttrError, match="backend: expected native, numba or interpreter"):
        jk.JitConfig(backend="other")
