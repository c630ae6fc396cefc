"""Results have NumPy's memory layout, for operands with any order of dimensions."""

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.capture.pytree import result_spec
from jitkernels.compiler.dispatch import specialization


def written(x: Any) -> Any:
    made = np.empty_like(x)
    made[...] = x
    made[0] = 1
    return made


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "add": lambda x: x + 1,
    "sum": lambda x: x.sum(0),
    "max": lambda x: x.max(-1, keepdims=True),
    "where": lambda x: np.where(x > 3, x, 0),
    "cumsum": lambda x: x.cumsum(-1),
    "softmax": lambda x: np.exp(x - x.max(-1, keepdims=True)) / np.exp(x).sum(-1, keepdims=True),
    "slice": lambda x: x[..., ::-1] * 2,
    "transpose": lambda x: (x + 1, x.T * 2),
    "concatenate": lambda x: np.concatenate([x, x + 1], 1),
    "roll": lambda x: np.roll(x, 1, 0),
    "roll within": lambda x: np.roll(x, 2, -1),
    "pad": lambda x: np.pad(x, 1),
    "pick": lambda x: x[[1, 0]],
    "pick columns": lambda x: x[:, [1, 0]],
    "pick last": lambda x: x[..., [[1, 0], [0, 1]]],
    "pick pairs": lambda x: x[[0, 1], [1, 0]],
    "take": lambda x: np.take(x, [1, 0], -1),
    "written": written,
}
ORDERED: dict[str, Callable[[Any, Any], Any]] = {
    "copy": lambda x, order: x.copy(order),
    "array": lambda x, order: np.array(x, dtype="f4", order=order),
    "astype": lambda x, order: x.astype("f4", order=order),
    "zeros_like": lambda x, order: np.zeros_like(x, order=order),
    "ones_like": lambda x, order: np.ones_like(x, dtype="i4", order=order),
    "full_like": lambda x, order: np.full_like(x, 3, order=order),
}
FUNCTIONS |= {
    f"{name} {order}": functools.partial(lambda of, letter, x: of(x, letter), function, order)
    for name, function in ORDERED.items()
    for order in "CFAK"
}


def arrays() -> Iterator[Any]:
    for shape in ((3, 4), (2, 3, 4), (2, 3, 4, 5)):
        numbers = np.arange(2.0 ** len(shape) * np.prod(shape)).reshape([2 * extent for extent in shape]) % 7
        for axes in itertools.permutations(range(len(shape))) if len(shape) < 4 else ():
            whole = np.ascontiguousarray(numbers[tuple(slice(0, n) for n in shape)].transpose(axes))
            yield whole.transpose(np.argsort(axes))
        yield numbers[tuple(slice(0, n) for n in shape)]
        yield numbers.T[tuple(slice(None, None, 2) for _ in shape)]
        yield numbers[::-2, 1 : 1 + shape[1]]
    yield np.broadcast_to(np.arange(4.0), (3, 4))


def lies(value: Any) -> Any:
    if isinstance(value, tuple):
        return [lies(one) for one in value]
    steps = tuple(step for extent, step in zip(value.shape, value.strides, strict=True) if extent > 1)
    return (value.dtype, value.shape, steps, value.flags.c_contiguous, value.flags.f_contiguous, value.flags.writeable)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_have_numpys_strides(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specialization, "SECONDS_OF_PYTHON", 0.0)
    monkeypatch.setattr(specialization, "SECONDS_OF_RESULT", 0.0)
    function = FUNCTIONS[name]
    compiled: Any = jk.jit(function)
    for x in arrays():
        expected = function(x)
        found = compiled(x)
        assert lies(found) == lies(expected), (x.shape, x.strides)
        pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
        for one, other in pairs:
            np.testing.assert_allclose(one, other, rtol=2e-7)


def test_calls_with_results_in_any_order_need_no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specialization, "SECONDS_OF_PYTHON", 40e-6)
    compiled: Any = jk.jit(lambda x: x + 1)
    x = np.arange(24.0).reshape(2, 3, 4).transpose(1, 0, 2)
    compiled(x)
    compiled(x)
    monkeypatch.setattr(compiled, "look_up", None)
    found = compiled(x)
    assert found.base is None
    assert found.flags.owndata
    assert lies(found) == lies(x + 1)
    out = np.empty((2, 3, 4)).transpose(1, 0, 2)
    assert compiled(x, out=out) is out
    np.testing.assert_array_equal(out, x + 1)
    monkeypatch.undo()
    for out in (np.empty((3, 2, 4)), np.empty((4, 2, 3)).transpose(2, 1, 0)):
        compiled(x, out=out)
        np.testing.assert_array_equal(out, x + 1)


@pytest.mark.parametrize("axes", [*itertools.permutations(range(3))])
def test_transposed_results_need_no_python(axes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry makes them with NumPy's strides; those that share memory are still views."""

    def transposed(x: Any) -> Any:
        return np.transpose(x + 1, axes), np.transpose(x.sum(0))

    def shared(x: Any) -> Any:
        y = x + 1
        return np.transpose(y, axes), y

    for shape in ((2, 3, 5), (1, 3, 5), (4, 1, 1), (0, 3, 2), (3, 3, 3)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        for function in (transposed, shared):
            f = jk.jit(function, strict=True)
            for _ in range(2):
                assert lies(f(x)) == lies(function(x))
        y, z = jk.jit(shared, strict=True)(x)
        assert not x.size or np.shares_memory(y, z)
        f = jk.jit(transposed, strict=True)
        f(x)
        out = tuple(np.empty_like(one) for one in transposed(x))
        assert f(x, out=out) is out
        assert lies(out) == lies(transposed(x))
        monkeypatch.setattr(result_spec.ResultPlan, "finisher", None)
        for found, expected in zip(jk.jit(transposed, strict=True)(x), transposed(x), strict=True):
            np.testing.assert_array_equal(found, expected)
        monkeypatch.undo()
