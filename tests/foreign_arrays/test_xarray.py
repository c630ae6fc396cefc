"""Compiled functions of xarray's objects give what the functions give: elements, coordinates, names, attributes."""

import importlib.util
from typing import Any

import numpy as np
import pytest
import xarray as xr

import jitkernels as jk
from jitkernels.compiler.api import labelled_arguments


def array(rows: int = 300, columns: int = 200) -> Any:
    values = np.random.default_rng(0).random((rows, columns))
    values[0, 0] = np.nan
    coordinates = {"a": np.arange(rows), "b": np.linspace(0, 1, columns), "of_a": ("a", np.arange(rows) % 3)}
    return xr.DataArray(values, coordinates, ("a", "b"), "temperature", {"unit": "K"})


def _assigned(x: Any) -> Any:
    x = x.copy()
    x[{"a": 0}] = 3.0
    return x


def _with_attribute(x: Any) -> Any:
    x.attrs["scale"] = 2
    return x * 2


FUNCTIONS: dict[str, Any] = {
    "exp": lambda x: np.exp(x) * 2 + 1,
    "mean": lambda x: x.mean(),
    "anomaly": lambda x: (x - x.mean("b")) / x.std("b"),
    "where": lambda x: x.where(x > 0.5, 0),
    "broadcast by name": lambda x: x.isel(b=0, drop=True) * x.isel(a=0, drop=True),
    "align": lambda x: x.isel(b=slice(1, None)) - x.isel(b=slice(0, -1)),
    "groups": lambda x: x.groupby("of_a").mean(),
    "difference": lambda x: x.diff("a"),
    "numpy": lambda x: np.mean(x, axis=0),
    "argmax": lambda x: x.fillna(0).argmax("b"),
    "cast": lambda x: x.astype("float32"),
    "assigned": _assigned,
    "itself": lambda x: x,
    "coordinate": lambda x: x.assign_coords(total=x.sum("b")),
    "several": lambda x: (x + 1, {"sum": x.sum("a")}),
    "number": lambda x: float(x.sum()),
}
OTHERS: dict[str, Any] = {
    "shift": lambda x: x.shift(b=1),
    "attribute": _with_attribute,
    "product": lambda x: x.dot(x, dim="b"),
}
"""What lazy arrays cannot do, or changes the argument: these fall back."""


def same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    if isinstance(expected, xr.DataArray | xr.Dataset | xr.Variable):
        xr.testing.assert_allclose(found, expected)
        assert found.attrs == expected.attrs
        parts = expected.variables.items() if isinstance(expected, xr.Dataset) else [("", expected)]
        for name, part in parts:
            other = found.variables[name] if name else found
            assert (other.dtype, type(other.data)) == (part.dtype, type(part.data))
        for name in getattr(expected, "coords", ()):
            assert type(found.coords[name].variable._data) is type(expected.coords[name].variable._data)
        if isinstance(expected, xr.DataArray):
            assert found.name == expected.name
    elif isinstance(expected, tuple | dict):
        assert len(found) == len(expected)
        for key in expected if isinstance(expected, dict) else range(len(expected)):
            same(found[key], expected[key])
    else:
        np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("name", [*FUNCTIONS, *OTHERS])
def test_functions(name: str) -> None:
    function = (FUNCTIONS | OTHERS)[name]
    compiled = jk.jit(function)
    for _ in range(3):
        given, other = array(), array()
        found = compiled(given)
        same(found, function(other))
        same(given, other)
        assert (found is given) == (name == "itself")
    served = {reason for reason, _ in compiled.stats().python_reasons}
    by_opt_einsum = name == "product" and importlib.util.find_spec("opt_einsum") is not None  # xarray prefers it
    assert ("an object of xarray" in served) == (name in FUNCTIONS or by_opt_einsum)


@pytest.mark.parametrize("name", ["exp", "mean", "anomaly", "where", "align"])
def test_datasets_and_variables(name: str) -> None:
    function, dataset = FUNCTIONS[name], xr.Dataset({"u": array(), "v": array() * 2}, attrs={"title": "x"})
    compiled = jk.jit(function)
    for _ in range(3):
        same(compiled(dataset), function(dataset))
    if name != "align":
        same(compiled(array().variable), function(array().variable))
    assert "an object of xarray" in {reason for reason, _ in compiled.stats().python_reasons}


def test_small_objects_and_those_of_other_arrays() -> None:
    function = FUNCTIONS["anomaly"]
    compiled = jk.jit(function)
    small = array().isel(a=slice(0, 3), b=slice(0, 4))
    text = xr.DataArray(np.array(["a", "b"]), dims="x")
    for _ in range(3):
        same(compiled(small), function(small))
        same(jk.jit(lambda x: x + "c")(text), text + "c")
    compiled(array())
    assert "an object of xarray" in {reason for reason, _ in compiled.stats().python_reasons}
    assert small.size < labelled_arguments.MIN_LABELLED_ELEMENTS <= array().size


def test_elements_are_not_copied() -> None:
    given = array()
    kept = jk.jit(lambda x: (x.isel(a=slice(1, None)), x.mean()))(given)[0]
    assert np.shares_memory(kept.data, given.data)


def test_objects_hold_arrays_of_the_namespace() -> None:
    """Without `jk.jit`: xarray computes with whatever array an object holds."""
    given = array()
    lazy = given.copy(data=jk.xp.asarray(given.data))
    found = FUNCTIONS["anomaly"](lazy)
    assert type(found.data) is jk.xp.Array
    assert not found.data.is_evaluated
    same(found.copy(data=np.asarray(found.data)), FUNCTIONS["anomaly"](given))
