"""Arrays of other libraries by their protocols, without the libraries: devices, byte order, errors."""

from typing import Any

import numpy as np
import pytest
from foreign_values import check_lifetime, check_shared, check_threads

import jitkernels as jk
from jitkernels.attrs.schema import foreign_arrays


class Exported:
    """An array that exports its memory by one protocol."""

    def __init__(self, array: Any) -> None:
        self.array, self.dtype = array, array.dtype


class ByDlpack(Exported):
    def __dlpack__(self, **keywords: Any) -> Any:
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class ByInterface(Exported):
    @property
    def __array_interface__(self) -> Any:
        return self.array.__array_interface__


class OnDevice(ByDlpack):
    device = "cuda:0"

    def __dlpack_device__(self) -> Any:
        return 2, 0


class Failing(ByDlpack):
    """A tensor that exports nothing."""

    def __dlpack__(self, **keywords: Any) -> Any:
        raise BufferError("tensors that require gradients are not exported")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("call detach() first")


KINDS = [ByDlpack, ByInterface]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "make",
    [
        lambda x: x, lambda x: x[::2], lambda x: x[:, ::-1], lambda x: np.broadcast_to(x[0], (4, x.shape[1])),
        lambda x: x.T, lambda x: x.astype(np.float32),
    ],
)  # fmt: skip
def test_memory_is_shared(kind: Any, make: Any) -> None:
    array = make(np.linspace(0.0, 1.0, 48).reshape(6, 8))
    array.flags.writeable = True if array.base is None or array.base.flags.writeable else False  # noqa: SIM210
    check_shared(kind(array), array.__array_interface__["data"][0], array)


@pytest.mark.parametrize("kind", KINDS)
def test_lifetimes_and_threads(kind: Any) -> None:
    check_lifetime(lambda: kind(np.linspace(0.0, 1.0, 1000)))
    check_threads(lambda i: np.linspace(0.0, i, 1000) if i % 2 else kind(np.linspace(0.0, i, 1000)).array)


def test_writes_reach_the_memory() -> None:
    def double(x: Any) -> None:
        x *= 2

    array = np.arange(4.0)
    compiled = jk.jit(double)
    for factor in (2, 4, 8):
        compiled(ByDlpack(array))
        np.testing.assert_array_equal(array, np.arange(4.0) * factor)


def test_read_only_memory() -> None:
    array = np.arange(4.0)
    array.flags.writeable = False
    check_shared(ByInterface(array), array.__array_interface__["data"][0], array)
    with pytest.raises(ValueError, match="read-only"):
        jk.jit(lambda x: x.fill(0))(ByInterface(array))


def test_out_receives_results() -> None:
    memory = np.zeros(4)
    given = ByDlpack(memory)
    compiled: Any = jk.jit(lambda x: x + 1)
    for _ in range(3):
        assert compiled(np.arange(4.0), out=given) is given
    np.testing.assert_array_equal(memory, np.arange(4.0) + 1)


@pytest.mark.parametrize("dtype", [">f8", ">i4", "<f4", ">c16"])
def test_byte_orders(dtype: str) -> None:
    """Elements of the other byte order are read right, by NumPy; DLPack has none of them."""
    array = np.arange(6).astype(dtype)
    compiled = jk.jit(lambda x: x * 2)
    np.testing.assert_array_equal(compiled(ByInterface(array)), array * 2)
    if array.dtype.isnative:
        np.testing.assert_array_equal(compiled(ByDlpack(array)), array * 2)
    else:
        with pytest.raises(jk.ArgumentTypeError, match=r"x: expected an array"):
            compiled(ByDlpack(array))


def test_errors_name_the_argument() -> None:
    compiled = jk.jit(lambda x, scale=1.0: x * scale)
    array = np.arange(4.0)
    for kind, reason in ((OnDevice, "cuda:0, which the processor cannot read"), (Failing, "call detach"), (0, "")):
        if kind == 0:
            break
        for call, name in (
            (lambda one: compiled(one), "x"), (lambda one: compiled(array, one), "scale"),
            (lambda one: compiled(array, scale=one), "scale"), (lambda one: jk.vexp(one), "x"),
        ):  # fmt: skip
            with pytest.raises(jk.ArgumentTypeError, match=f"{name}: .*{reason}"):
                call(kind(array))  # type: ignore[operator]
        with pytest.raises(jk.ArgumentTypeError, match=reason):
            jk.xp.asarray(kind(array))  # type: ignore[operator]


def test_static_arguments_stay_what_they_are() -> None:
    seen = []

    def function(x: Any, weights: Any) -> Any:
        seen.append(type(weights))
        return x * 2

    compiled = jk.jit(function, static_argnames="weights")
    compiled(np.arange(4.0), ByDlpack(np.ones(2)))
    assert seen
    assert set(seen) == {ByDlpack}


def test_containers_and_closures() -> None:
    array = np.arange(4.0)
    held = ByDlpack(array)
    compiled = jk.jit(lambda parts: parts["a"][0] * 2 + 1)
    for _ in range(3):
        np.testing.assert_array_equal(compiled({"a": [ByInterface(array)]}), array * 2 + 1)
        np.testing.assert_array_equal(compiled({"a": [held]}), array * 2 + 1)


def test_namespace_of_arrays_in_compiled_functions() -> None:
    """Code written for any namespace asks the array for one."""

    def softmax(x: Any) -> Any:
        space = x.__array_namespace__()
        shifted = space.exp(x - space.max(x, axis=-1, keepdims=True))
        return shifted / space.sum(shifted, axis=-1, keepdims=True)

    x = np.random.default_rng(0).standard_normal((50, 30))
    compiled = jk.jit(softmax, strict=True)
    np.testing.assert_allclose(compiled(x), softmax(x))
    np.testing.assert_allclose(np.asarray(softmax(jk.xp.asarray(x))), softmax(x))


def test_conversions_need_no_import_of_the_library() -> None:
    assert list(foreign_arrays.CONVERSIONS) == ["__array_interface__", "__dlpack__", "__array__"]
    for own in (np.ones(2), np.float64(1), 1.0, [1.0], None, "x", np.ma.masked_array([1.0]), np.ndarray):
        assert not foreign_arrays.is_foreign(own)
