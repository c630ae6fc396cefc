"""What all tests share: a private cache, nothing measured by accident, and skips that CI can refuse."""

import dataclasses
import gc
import importlib.util
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import cases_per_push
import processor_skips
import pytest
from processes import FOLDERS

from jitkernels.core import cache_dirs

sys.path += [folder for folder in FOLDERS if folder not in sys.path]

OWN_ENVIRONMENTS = {
    "torch_backend": "torch",
    "documentation_site": "sphinx",
    "dask_arrays": "distributed",
    "ray_tasks": "ray",
    "foreign_arrays/test_torch_tensors.py": "torch",
    "foreign_arrays/test_jax_arrays.py": "jax",
    "foreign_arrays/test_arrow.py": "pyarrow",
    "foreign_arrays/test_xarray.py": "xarray",
    "foreign_arrays/test_array_api_packages.py": "array_api_strict",
}
"""Tests that have an environment of their own in CI, and the package that the extra `test` does not have."""
MISSING = {folder: package for folder, package in OWN_ENVIRONMENTS.items() if importlib.util.find_spec(package) is None}
collect_ignore = [*MISSING]
SETTINGS = ("USE", "POLICY", "NUM_THREADS", "KEEP_INTERM", "WORKDIR")  # but CPU_FEATURES may be limited
_own_cache: Path | None = None


def pytest_configure() -> None:
    """Before anything of the package runs: where it keeps objects, and that it measures nothing."""
    global _own_cache
    if not os.environ.get("JITKERNELS_TEST_CACHE_DIR"):
        _own_cache = Path(tempfile.mkdtemp(prefix="jitkernels-tests-"))
        os.environ["JITKERNELS_TEST_CACHE_DIR"] = str(_own_cache)  # of the workers too, which come after
    os.environ["JITKERNELS_CACHE_DIR"] = os.environ["JITKERNELS_TEST_CACHE_DIR"]
    os.environ["JITKERNELS_TUNE"] = "off"
    for name in SETTINGS:
        os.environ.pop(f"JITKERNELS_{name}", None)
    # A shell has its background jobs ignore Ctrl-C, and processes inherit that: those of tests shall be interrupted.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> list[str]:
    """Say why tests are not collected."""
    return [f"tests/{folder}: not collected, as {package} is not installed" for folder, package in MISSING.items()]


@pytest.fixture(autouse=True, scope="module")
def frozen_garbage() -> None:
    """Freeze the objects that exist before the tests of a file, so that garbage collections skip them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def nothing_left_registered() -> Iterator[None]:
    """Fail in the file whose tests leave a row, or a name of the package, that tests of other files would see."""
    yield
    import rows_of_tests

    import jitkernels

    rows = rows_of_tests.registered()
    assert not rows, f"rows that tests left in the registry: {rows}"
    names = rows_of_tests.unknown_names(jitkernels)
    assert not names, f"names that tests left in the package: {names}"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect tests without collecting garbage: twenty thousand tests stay, and are traversed again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: object) -> list[pytest.Item] | None:
    """Make no tests marked `full`, of which there are thousands, only to deselect them."""
    marks = getattr(obj, "pytestmark", ()) if name.startswith("test") else ()
    is_full = any(mark.name == "full" for mark in marks)
    return [] if is_full and collector.config.getoption("markexpr") == "not full" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the cases beyond those of a push to ``-m full``, and let static checks come first.

    All cases that ``-k`` selects run. One worker runs the static checks while others run tests, and nobody waits for
    them at the end.
    """
    if not config.getoption("keyword"):
        cases_per_push.mark_others(items)
    items.sort(key=lambda item: item.path.name != "test_static.py")


def pytest_unconfigure() -> None:
    """Drop the cache, unless ``JITKERNELS_TEST_CACHE_DIR`` names one that stays."""
    if _own_cache is not None:
        shutil.rmtree(_own_cache, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """With ``JITKERNELS_TEST_NO_SKIPS=1`` a skip is a failure: with every extra installed only processors differ."""
    report: pytest.TestReport = yield  # type: ignore[assignment]
    is_avoidable = report.skipped and not hasattr(report, "wasxfail") and not processor_skips.is_due(report)
    if is_avoidable and os.environ.get("JITKERNELS_TEST_NO_SKIPS") == "1":
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} is skipped under JITKERNELS_TEST_NO_SKIPS=1: {report.longrepr}"
    return report  # type: ignore[return-value]  # what a wrapper returns is the hook's result


@pytest.fixture
def private_cache(tmp_path: Path) -> Path:
    """An empty cache folder for the subprocesses of one test."""
    place = tmp_path / "cache"
    place.mkdir(mode=0o700)
    return place


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Forget picks, records, everyday tables, shipped tables and messages; return the cache folder.

    Objects are those of all tests: what they are called says what is in them.
    """
    from jitkernels.codegen import object_cache
    from jitkernels.selection import shipped_tables

    place = tmp_path / "cache"
    objects = object_cache.path_of_directory(place, "objects")
    objects.parent.mkdir(mode=0o700, parents=True)
    place.chmod(0o700)
    shared = object_cache.objects_directory()
    if shared is not None:
        objects.symlink_to(shared)
    monkeypatch.setattr(cache_dirs, "cache_root", lambda: place)
    monkeypatch.setattr(shipped_tables, "FOLDER", tmp_path / "shipped")
    _forget()
    yield place
    _forget()


@pytest.fixture
def without_objects(fresh: Path) -> Path:
    """What `fresh` forgets, and no object is built yet."""
    from jitkernels.codegen import object_cache

    object_cache.path_of_directory(fresh, "objects").unlink(missing_ok=True)
    return fresh


def _forget() -> None:
    from jitkernels.core import atomic_files
    from jitkernels.dispatch import kernel_cache
    from jitkernels.selection import shipped_tables
    from jitkernels.tuning import tuning_budget

    kernel_cache.KernelFuncs.cache().clear()
    tuning_budget._budgets.clear()
    atomic_files._said.clear()
    shipped_tables.forget()


@pytest.fixture(autouse=True)
def restored_threads() -> Iterator[int]:
    """Restore the number of threads afterwards."""
    from jitkernels import get_num_threads, set_num_threads

    before = get_num_threads()
    yield before
    if get_num_threads() != before:
        set_num_threads(before)


@pytest.fixture
def eager_casting_nests(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Build casting nests at the first call, without cached kernels."""
    from jitkernels.dispatch import operators
    from jitkernels.dispatch.kernel_cache import KernelFuncs

    monkeypatch.setattr(operators, "CAST_NEST_SECONDS", 0.0)
    KernelFuncs.cache().clear()
    yield
    KernelFuncs.cache().clear()


@pytest.fixture
def toy() -> Iterator[ModuleType]:
    """The module `toy`, its row registered."""
    import toy as module

    with module.registered():
        yield module


@pytest.fixture
def attr(toy: Any, fresh: Path) -> Any:
    """An attr of a row that has ``gen``, ``theirs`` (two variants, the same code) and ``refer``."""
    from jitkernels.attrs.schema.registry import implements

    def with_variants(attr: Any, **variant: Any) -> Any:
        return dataclasses.replace(toy.right(attr), vector_bytes=variant["vector_bytes"])

    implements(toy.ToyAttr, name="gen")(toy.right)
    both = [{"vector_bytes": 32}, {"vector_bytes": 64}]
    implements(toy.ToyAttr, name="theirs", variants=lambda attr: both)(with_variants)
    return toy.ToyAttr(n=9)


@pytest.fixture
def model_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of compiled ONNX models, of this test alone."""
    from jitkernels.codegen import object_cache
    from jitkernels.onnx import model_cache

    path_of = object_cache.path_of_directory
    own = tmp_path / model_cache.MODELS

    def path(root: Path, kind: str) -> Path:
        return own if kind == model_cache.MODELS else path_of(root, kind)

    monkeypatch.setattr(object_cache, "path_of_directory", path)
    return own
