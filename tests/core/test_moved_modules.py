"""Module paths of the previous version: each names its new place, and plug-ins that import them go on working."""

import importlib
import importlib.util

import pytest
from processes import python

import jitkernels as jk
from jitkernels.codegen import range_kernel
from jitkernels.core import moved_modules


def test_new_paths_exist() -> None:
    """Every new path of the table is a module, and no old one is."""
    for old, new in moved_modules.new_paths().items():
        assert importlib.util.find_spec(f"jitkernels.{new}") is not None, new
        found = importlib.util.find_spec(f"jitkernels.{old}") if "." not in old else None
        assert found is None or isinstance(found.loader, moved_modules._Moved), old


@pytest.mark.parametrize("old", ["graph", "graph.emit.alike", "frontends.jit", "choosing", "cli", "maths.exp"])
def test_an_old_path_names_the_new_one(old: str) -> None:
    package = old.partition(".")[0]
    with pytest.raises(
        ImportError, match=rf"jitkernels\.{package}\S* is now jitkernels\.{moved_modules.new_path(package)}"
    ):
        importlib.import_module(f"jitkernels.{old}")


def test_unknown_paths_are_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'jitkernels\.nowhere'"):
        importlib.import_module("jitkernels.nowhere")
    assert not hasattr(jk, "nowhere")


@pytest.mark.per_push
@pytest.mark.parametrize("old", sorted(moved_modules.PLUGIN_INTERFACE))
def test_old_paths_of_the_plugin_interface_work(old: str) -> None:
    """An old path that the recipes gave to plug-ins is the module at its new path."""
    new = moved_modules.new_path(old)
    code = f"""
import importlib, warnings
import jitkernels
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    old = importlib.import_module("jitkernels.{old}")
assert any("is now jitkernels.{new}" in str(one.message) for one in caught), caught
new = importlib.import_module("jitkernels.{new}")
assert old is new and new.__spec__.name == "jitkernels.{new}"
"""
    python(code)


def test_the_old_name_of_a_class_is_deprecated() -> None:
    with pytest.deprecated_call(match="LoopNest is called RangeKernel"):
        assert vars(range_kernel)["__getattr__"]("LoopNest") is range_kernel.RangeKernel
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        vars(range_kernel)["__getattr__"]("Nothing")
