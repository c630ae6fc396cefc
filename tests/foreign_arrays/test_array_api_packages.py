"""The packages of the Array API consortium find our namespace, and its functions have the standard's signatures."""

import inspect
from typing import Any

import array_api_compat
import array_api_strict
import numpy as np
import pytest
from foreign_values import address, check_shared
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.array_api import make_strategies_namespace

import jitkernels as jk

xp = jk.xp
OF_2025 = {"broadcast_shapes"}
"""Functions of later versions of the standard."""
FLAGS = {name for name in array_api_strict.__all__ if "flags" in name.lower()} | {"Device", "__version__"}
SPACES = [(array_api_strict, xp), (array_api_strict.linalg, xp.linalg), (array_api_strict.fft, xp.fft)]
xps = make_strategies_namespace(xp, api_version="2024.12")
strict_names = sorted({*array_api_strict.__all__} - FLAGS - OF_2025)


def test_namespace_is_found() -> None:
    x = xp.ones(3)
    assert array_api_compat.is_array_api_obj(x)
    assert array_api_compat.array_namespace(x, x) is xp
    assert array_api_compat.device(x) == "cpu"
    assert array_api_compat.to_device(x, "cpu") is x
    assert array_api_compat.size(x) == 3


def test_names_and_signatures() -> None:
    positional = inspect.Parameter.POSITIONAL_ONLY
    for theirs, ours in SPACES:
        names = {*theirs.__all__} - FLAGS - OF_2025
        assert not [name for name in names if not hasattr(ours, name)]
        for name in names:
            if not inspect.isfunction(getattr(theirs, name)):
                continue
            declared = inspect.signature(getattr(theirs, name)).parameters
            own = inspect.signature(getattr(ours, name)).parameters
            for i, (parameter, one) in enumerate(declared.items()):
                if one.kind is positional:
                    kind = [*own.values()][min(i, len(own) - 1)].kind
                    assert kind.name.startswith("POSITIONAL") or kind is inspect.Parameter.VAR_POSITIONAL
                elif one.kind is not inspect.Parameter.VAR_POSITIONAL:
                    assert parameter in own, f"{name}: {parameter}"
                    has_default = one.default is not inspect.Parameter.empty
                    assert not has_default or own[parameter].default is not inspect.Parameter.empty, name


def test_strict_arrays_are_read_in_place() -> None:
    value = array_api_strict.asarray(np.linspace(0.0, 1.0, 40))
    check_shared(value, address(np.asarray(value)), np.asarray(value))


ELEMENTWISE = sorted(
    name
    for name in array_api_strict.__all__
    if "elementwise" in getattr(getattr(array_api_strict, name), "__module__", "")
)


@pytest.mark.parametrize("name", ELEMENTWISE)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data())
def test_elementwise_functions_give_what_the_strict_namespace_gives(name: str, data: st.DataObject) -> None:
    """Where it accepts the dtypes."""
    theirs: Any = getattr(array_api_strict, name)
    count = sum(one.kind is inspect.Parameter.POSITIONAL_ONLY for one in inspect.signature(theirs).parameters.values())
    shapes = xps.mutually_broadcastable_shapes(min(count, 2), max_dims=3, max_side=4)
    drawn = data.draw(shapes).input_shapes
    dtype = data.draw(xps.scalar_dtypes())
    if name == "sign" and xp.isdtype(dtype, "complex floating"):  # infinities: NumPy's are right
        return
    with np.errstate(all="ignore"):
        ours = [data.draw(xps.arrays(dtype, shape)) for shape in drawn]
        strict = [array_api_strict.asarray(np.asarray(one)) for one in ours]
        try:
            expected = theirs(*strict)
        except (
            TypeError,
            ValueError,
        ):  # dtypes, and values such as negative shifts, which the standard leaves undefined
            return
        found = getattr(xp, name)(*ours)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-6)
    assert found.dtype == np.asarray(expected).dtype
    assert found.shape == expected.shape
