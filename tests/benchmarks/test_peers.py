"""Peer libraries compute what they are compared with, and every row has a peer."""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from unittest import mock

import cases
import numpy as np
import pytest
from test_everyday import Giving

import jitkernels as jk
from jitkernels.attrs.schema import schema_queries
from jitkernels.attrs.schema.schema_queries import is_everyday
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.vector import VMulAttr
from jitkernels.benchmarks import peers
from jitkernels.benchmarks.entries import random_attrs
from jitkernels.benchmarks.peers import array_layouts, equivalent_of, ordinary_calls_of, peer, peers_of
from jitkernels.core import dtypes
from jitkernels.dispatch import operators
from jitkernels.errors import RegistrationError
from jitkernels.tools import testing

Row = Any
pytestmark = pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor, torch.quantize_per_channel:UserWarning")


@pytest.mark.parametrize("row", cases.every_row())
def test_every_row_has_peers(row: Row) -> None:
    assert "numpy" in peers_of(row)
    assert not is_everyday(row) or equivalent_of(row) is not None
    assert not is_everyday(row) or len(ordinary_calls_of(row, 8)) >= 10


@pytest.mark.parametrize("row", [jk.VMulAttr, jk.SoftmaxAttr, jk.LayerNormAttr, jk.VClipAttr, jk.HArgMaxAttr])
def test_without_a_module_the_reference_is_the_peer(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    for table in (peers._peers, peers._equivalents, peers._ordinary):
        monkeypatch.setattr(peers, "_import_family", lambda _: None)
        monkeypatch.delitem(table, row, raising=False)
    assert list(peers_of(row)) == ["numpy"]
    assert not peers.has_equivalent(row)
    test_every_row_has_peers(row)
    test_peers_agree_with_the_reference(row)
    test_ordinary_calls_match_numpy(row)


@pytest.mark.parametrize("row", cases.every_row())
def test_peers_agree_with_the_reference(row: Row) -> None:
    attrs = [case.attr for case in testing.ci_cases(row)]
    check_peers(row, cases.in_turn(row, attrs) or attrs)


@pytest.mark.full
@pytest.mark.parametrize("row", cases.every_row())
def test_peers_agree_on_all_attrs(row: Row) -> None:
    check_peers(row, [case.attr for case in testing.ci_cases(row)])


@pytest.mark.parametrize("row", cases.every_row())
def test_peers_agree_on_attrs_that_no_sweep_has(row: Row) -> None:
    """As `jitkernels bench random-attrs` draws them."""
    drawn = random_attrs.attrs_between(row, 12, np.random.default_rng(random_attrs.ATTRS_SEED))
    check_peers(row, [attr for attr in drawn if attr.operations() <= 1e6])


def check_peers(row: Row, attrs: Sequence[Row]) -> None:
    for attr in attrs:
        expected = attr.signature().sample()
        jk.get_refer(attr)(*expected)
        for name, found in peers_of(row).items():
            arrays = attr.signature().sample()
            call = found.bound(attr, *arrays)
            if call is None:
                continue
            with np.errstate(all="ignore"):
                result = call()
            if not attr.signature().inputs:
                continue  # everybody draws numbers of their own
            parameters = attr.signature().arrays
            outputs = [i for i, parameter in enumerate(parameters) if parameter.role != "in"]
            values = returned(result)
            if values and all(value.size == arrays[i].size for i, value in zip(outputs, values, strict=False)):
                for i, value in zip(outputs, values, strict=False):
                    arrays[i] = value.reshape(arrays[i].shape).astype(arrays[i].dtype)
                outputs = outputs[: len(values)]  # peers may compute the first of several results alone
            for i, (parameter, got, right) in enumerate(zip(parameters, arrays, expected, strict=True)):
                if parameter.role == "out" and i not in outputs:
                    continue
                what = f"{name} of {attr}: {parameter.name}"
                close(parameter.numbers(got), parameter.numbers(right), what, relative_error_of(attr, name))


def returned(result: Any) -> list[AnyArray]:
    """The arrays that a peer returned; none of one that has written its results."""
    if isinstance(result, list | tuple):
        return [array for item in result for array in returned(item)]
    if hasattr(result, "is_quantized"):  # a torch tensor, which in bfloat16 is `out` itself
        if str(result.dtype) == "torch.bfloat16":
            return []
        return [(result.int_repr() if result.is_quantized else result).numpy()]
    return [] if result is None else [np.asarray(result)]


def relative_error_of(attr: jk.KernelAttr, name: str) -> float:
    """Libraries add bfloat16, and round to int8 and uint8, in ways of their own; a bfloat16 has 8 bits."""
    if attr.fields().get("dtype") == "bfloat16" and name == "numpy":
        return 2.0**-7
    if name in ("torch", "jax", "onnxruntime"):
        if attr.fields().get("dtype") == "bfloat16":
            return 2.0**-6
        if attr.fields().get("rounded") == "int8" or "q_dtype" in attr.fields():
            return 2e-2
    return 1e-3


@pytest.mark.parametrize("row", cases.every_row())
def test_ordinary_calls_match_numpy(row: Row) -> None:
    """With and without ``out``; integers and halves count as doubles and singles in this package."""
    if not is_everyday(row):
        return
    for elements in (8, 960):
        _check_ordinary_calls(row, elements)


def _check_ordinary_calls(row: Row, elements: int) -> None:
    equivalent = equivalent_of(row)
    calls = ordinary_calls_of(row, elements)
    function = getattr(jk, row.kernel_type.name.lower())
    assert len({call.form for call in calls}) == len(calls)
    others, again = ordinary_calls_of(row, elements), ordinary_calls_of(row, elements)
    for call, other, repeated in zip(calls, others, again, strict=True):
        assert equivalent is not None
        with np.errstate(all="ignore"):
            got = function(*call.arguments, **call.named)
            right = equivalent(*widened(other.arguments, calls[0].arguments), **other.named)
        if schema_queries.SHAPE in row.options:
            got, right = np.zeros_like(got), np.zeros(np.shape(right), np.asarray(right).dtype)
            assert got.dtype == right.dtype
        for result, value in zip(several(got), several(right), strict=True):
            close(result, value, f"{function.__name__}, {call.form}")
        assert is_served_by_compiled_code(partial(function, *repeated.arguments, **repeated.named)), call.form


def is_served_by_compiled_code(call: Callable[[], Any]) -> bool:
    """Whether one of the next few calls does not come to Python, as first ones do, and those that are counted."""
    if getattr(getattr(getattr(call, "func", None), "__self__", None), "_table", "") is None:
        return True  # a row whose calls Python serves all
    came: list[str] = []
    original = operators.Everyday.call

    def noticed(self: operators.Everyday, *arguments: Any, **named: Any) -> Any:
        came.append(self.name)
        return original(self, *arguments, **named)

    with mock.patch.object(operators.Everyday, "call", noticed), np.errstate(all="ignore"):
        for times in range(3):
            call()
            if len(came) <= times:
                return True
    return False


def test_calls_through_python_are_detected() -> None:
    x = np.ones(3, np.float32)
    assert not is_served_by_compiled_code(partial(jk.vmul, Giving(x), x))


def widened(arguments: tuple[Any, ...], plain: tuple[Any, ...]) -> tuple[Any, ...]:
    """Types as we count them, since NumPy's own numbers without a sign wrap around; indices stay as they are."""
    unsigned = {name: np.float64 for name in dtypes.TABLE if name.startswith("uint") or name == "bool"}
    small = {"float16": np.float32, **unsigned}
    found = list(arguments)
    for i, value in enumerate(arguments):
        is_index = i < len(plain) and isinstance(plain[i], np.ndarray) and plain[i].dtype.kind == "i"
        if isinstance(value, np.ndarray) and value.dtype.name in small and not is_index:
            found[i] = value.astype(small[value.dtype.name])
    return tuple(found)


def several(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def close(got: AnyArray, right: AnyArray, what: str, relative: float = 1e-3) -> None:
    __tracebackhide__ = True
    assert got.shape == np.shape(right), what
    scale = np.abs(right, where=np.isfinite(right), out=np.zeros(np.shape(right))).max(initial=0)
    np.testing.assert_allclose(
        got, right, rtol=relative, atol=(1e-5 if relative == 1e-3 else relative) * scale, err_msg=what
    )


@pytest.mark.parametrize("form", [*array_layouts.LAYOUTS, "transposed"])
def test_forms_keep_values(form: str) -> None:
    value = array_layouts.values((3, 4))
    changed = array_layouts.LAYOUTS.get(form, array_layouts.transposed)(value)
    assert np.array_equal(changed, value)
    if form not in ("list", "read-only"):
        assert not changed.flags.c_contiguous


@pytest.mark.parametrize("elements", [1, 8, 24, 960, 1000, 1 << 24])
def test_shapes_have_the_given_number_of_elements(elements: int) -> None:
    for dimensions in range(1, 6):
        shape = array_layouts.shape(elements, dimensions)
        assert len(shape) == dimensions
        assert int(np.prod(shape)) == elements


def test_duplicate_peer_names_are_rejected() -> None:
    assert "numpy" in peers_of(VMulAttr)
    with pytest.raises(RegistrationError, match="already has a peer 'numpy'"):
        peer(VMulAttr)(lambda attr, x, y, z: None)


def test_peers_that_are_not_installed_are_omitted() -> None:
    @peer(VMulAttr, name="nowhere", needs="no_such_module")
    def nowhere(attr: Any, x: Any, y: Any, z: Any) -> None:
        """It would fail if it were called."""

    assert "nowhere" not in peers_of(VMulAttr)
    assert "x" in inspect.signature(nowhere).parameters
