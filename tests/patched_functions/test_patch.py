"""`jitkernels.patch()`: functions stay the same objects, and nothing of it is left behind."""

import ctypes
import inspect
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import python

import jitkernels as jk
from jitkernels.errors import NotUsableError, UnknownNameError
from jitkernels.patching import install
from jitkernels.patching.piece import Piece, pieces
from jitkernels.patching.swapped_code import forwarding_code, implementation_of, parameters_of
from jitkernels.patching.ufunc_loops import LOOPS_OFFSET

PIECES = pieces()
"""The rows, whose packages the extra `test` has."""


@pytest.fixture(autouse=True)
def unpatched() -> Iterator[None]:
    for one in PIECES:
        import_module(one.module)
    yield
    jk.unpatch()


def found(one: Piece) -> Any:
    return getattr(import_module(one.module), one.name)


def code_of(one: Piece) -> tuple[Any, ...]:
    """What a patch replaces: the code object of a function, or the addresses of the loops of a ufunc."""
    function = found(one)
    if isinstance(function, np.ufunc):
        loops = ctypes.c_void_p.from_address(id(function) + LOOPS_OFFSET).value or 0
        return tuple((ctypes.c_void_p * function.ntypes).from_address(loops))
    return (implementation_of(function).__code__,)


def references() -> dict[tuple[str, str], int]:
    """The identity of each attribute of each module of the patched packages."""
    prefixes = ("numpy", "scipy", "sklearn")
    return {
        (name, attribute): id(value)
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] in prefixes
        for attribute, value in list(vars(module).items())
        if callable(value)
    }


def test_every_target_is_patched_and_put_back() -> None:
    before, held = {one.target: code_of(one) for one in PIECES}, references()
    patch = jk.patch()
    assert patch.skipped == {}
    assert set(patch.installed) == {one.target for one in PIECES}
    assert all(code_of(one) != before[one.target] for one in PIECES)
    assert references() == held
    patch.undo()
    for one in PIECES:
        for old, new in zip(before[one.target], code_of(one), strict=True):
            assert new is old or (isinstance(new, int) and new == old)
    assert references() == held
    assert not patch.is_active
    assert patch.installed == ()


# pickle looks for a ufunc in every imported module: some warn of all their names.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("one", PIECES, ids=lambda one: one.target)
def test_introspection_sees_no_difference(one: Piece) -> None:
    function = found(one)

    def seen() -> tuple[Any, ...]:
        if isinstance(function, np.ufunc):
            return function.types, function.__doc__, pickle.dumps(function)
        inner = implementation_of(function)
        return (
            pickle.dumps(function), inspect.signature(function), inspect.getsource(inner), function.__doc__,
            inner.__defaults__, inner.__kwdefaults__, function.__module__, function.__qualname__,
        )  # fmt: skip

    before = seen()
    with jk.patch(one.target) as patch:
        assert patch.installed == (one.target,)
        assert seen() == before
        assert pickle.loads(pickle.dumps(function)) is function


def test_patches_are_nested_and_repeated() -> None:
    own = implementation_of(np.nanvar).__code__
    with jk.patch("numpy"):
        inner = jk.patch("numpy:nanvar", "numpy:nanstd")
        again = jk.patch()
        again.undo()
        again.undo()
        assert inner.installed == ("numpy:nanstd", "numpy:nanvar")
    assert implementation_of(np.nanvar).__code__ is not own  # of `inner`
    assert set(inner.installed) == {"numpy:nanstd", "numpy:nanvar"}
    inner.undo()
    assert implementation_of(np.nanvar).__code__ is own


def test_unpatch_undoes_all() -> None:
    own = implementation_of(np.nanvar).__code__
    patches = [jk.patch(), jk.patch("numpy"), jk.patch()]
    jk.unpatch()
    assert implementation_of(np.nanvar).__code__ is own
    assert not any(one.is_active for one in patches)
    jk.unpatch()


def test_an_error_in_the_block_undoes() -> None:
    own = implementation_of(np.nanvar).__code__
    with pytest.raises(ZeroDivisionError), jk.patch():
        raise ZeroDivisionError
    assert implementation_of(np.nanvar).__code__ is own


def test_names_select() -> None:
    assert [one.target for one in jk.patch("numpy:nanvar").selected] == ["numpy:nanvar"]
    assert {one.module for one in jk.patch("scipy.special").selected} == {"scipy.special"}
    assert {one.module.partition(".")[0] for one in jk.patch("sklearn").selected} == {"sklearn"}
    with pytest.raises(UnknownNameError, match=r"nothing of .scipy\.spec. can be patched; there are numpy"):
        jk.patch("scipy.spec")


def test_other_versions_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that is gone, or has other parameters, stays as it is, and the patch says why."""
    table = (
        Piece("numpy:no_such_function", lambda x: x, "", lambda: ()),
        Piece("numpy:median", lambda x: x, "", lambda: ()),
        Piece("numpy:add", lambda x: x, "", lambda: ()),
        Piece("numpy:pad", {"float32": np.add}, "", lambda: ()),
    )
    monkeypatch.setattr(install, "pieces", lambda: table)
    patch = jk.patch()
    assert patch.installed == ()
    assert "no attribute 'no_such_function'" in patch.skipped["numpy:no_such_function"]
    assert patch.skipped["numpy:median"].startswith("expected the parameters (x), got (a, axis, out")
    assert "no function written in Python" in patch.skipped["numpy:add"]
    assert patch.skipped["numpy:pad"] == "numpy:pad is no universal function"


def test_all_kinds_of_parameters_are_passed_on() -> None:
    def function(a: Any, /, b: Any, c: Any = 3, *rest: Any, d: Any, e: Any = 5, **others: Any) -> Any:
        return "original", a, b, c, rest, d, e, others

    def replacement(a: Any, /, b: Any, c: Any = 3, *rest: Any, d: Any, e: Any = 5, **others: Any) -> Any:
        return NotImplemented if a == 0 else ("replacement", a, b, c, rest, d, e, others)

    original = implementation_of(function)
    copied = type(original)(original.__code__, {})
    assert parameters_of(function) == parameters_of(replacement) == "a, /, b, c, *rest, d, e, **others"
    function.__code__ = forwarding_code(original, replacement, copied)
    assert function(1, 2, d=4) == ("replacement", 1, 2, 3, (), 4, 5, {})
    assert function(0, 2, 6, 7, d=4, f=8) == ("original", 0, 2, 6, (7,), 4, 5, {"f": 8})
    with pytest.raises(TypeError, match=r"function\(\) missing 1 required keyword-only argument: 'd'"):
        function(1, 2)  # type: ignore[call-arg]


def test_closures_are_refused() -> None:
    around = 1

    def function() -> int:
        return around

    with pytest.raises(NotUsableError, match="refers to variables of the function around it"):
        implementation_of(function)


def test_patching_while_others_call() -> None:
    x = np.random.default_rng(0).standard_normal((50, 8))
    expected, stop, wrong = np.nanvar(x, axis=0), threading.Event(), []

    def calls() -> None:
        while not stop.is_set():
            result = np.nanvar(x, axis=0)
            if not np.allclose(result, expected, rtol=1e-12):
                wrong.append(result)

    threads = [threading.Thread(target=calls) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        with jk.patch("numpy", "scipy.special"):
            pass
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


LATER = """
import sys
import jitkernels as jk
patch = jk.patch()
assert not {name.partition(".")[0] for name in sys.modules} & {"scipy", "sklearn"}, "nothing is imported"
assert all(target.startswith("numpy") for target in patch.installed)
assert type(sys.meta_path[0]).__module__ == "jitkernels.patching.import_hook"
from scipy.special import expit
from sklearn.cluster import KMeans
import scipy.spatial, sklearn.preprocessing
assert set(patch.installed) == {one.target for one in patch.selected}, set(patch.selected) - set(patch.installed)
assert patch.skipped == {}
assert type(sys.modules["sklearn.cluster._kmeans"].__spec__.loader).__name__ == "SourceFileLoader"
assert not any(type(finder).__module__ == "jitkernels.patching.import_hook" for finder in sys.meta_path)
jk.unpatch()
jk.patch("scipy"); jk.unpatch()
from jitkernels.patching.swapped_code import implementation_of
import numpy as np
assert "function_" not in implementation_of(np.nanvar).__code__.co_varnames
"""


def test_modules_imported_later() -> None:
    done = subprocess.run([sys.executable, "-P", "-c", LATER], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, *rest):
        if name.partition(".")[0] in ("scipy", "sklearn"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
import numpy as np, jitkernels as jk
with jk.patch() as patch:
    assert np.allclose(np.nanvar(np.arange(6.0).reshape(2, 3), axis=0), 2.25)
    assert all(target.startswith("numpy") for target in patch.installed)
"""


def test_without_scipy_and_scikit_learn() -> None:
    done = subprocess.run([sys.executable, "-P", "-c", WITHOUT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


SLOW_IMPORT = """
import sys, threading, time
import jitkernels
from jitkernels.patching import piece
piece.pieces()
piece.add(piece.Piece("slow_module:function", lambda x: NotImplemented, "", lambda: ()))
jitkernels.patch("slow_module")
thread = threading.Thread(target=lambda: __import__("slow_module"))
thread.start()
while "slow_module" not in sys.modules:
    time.sleep(0.01)
made = jitkernels.patch("slow_module")
thread.join()
print(made.installed)
"""


def test_imports_of_other_threads_end(tmp_path: Path) -> None:
    """A thread whose import waits for the lock must not be waited for with the lock held."""
    (tmp_path / "slow_module.py").write_text("import time\ndef function(x):\n    return x\ntime.sleep(0.5)\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{SLOW_IMPORT}"
    assert python(code, timeout=60) == "('slow_module:function',)\n"
