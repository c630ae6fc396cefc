"""Lazy imports: processes load only what they need."""

from pathlib import Path

import pytest
from processes import python

OPTIONAL = (
    "mkl",
    "scipy_openblas32",
    "scipy",
    "numexpr",
    "numba",
    "cffi",
    "_cffi_backend",
    "jax",
    "torch",
    "cyclopts",
    "rich",
)


def test_import_loads_no_compiler_or_optional_library() -> None:
    """Neither the compiler nor any optional library is imported."""
    code = f"import sys, jitkernels\nprint([name for name in {OPTIONAL!r} if name in sys.modules])"
    assert python(code) == "[]\n"


def test_listing_rows_imports_no_library() -> None:
    """Neither does listing their implementations."""
    code = f"""
import sys, jitkernels as jk
from jitkernels.attrs.schema.registry import all_schemas, implementations
for row in all_schemas():
    implementations(row)
print([name for name in {OPTIONAL!r} if name in sys.modules])
"""
    assert python(code) == "[]\n"


RECORD = """
import jitkernels as jk
from jitkernels.selection.records import Measured, Record
from jitkernels.tuning.tune import keep
candidates = [Measured(name, {}, seconds, 0.0) for name, seconds in (("numba", 1e-6), ("gen", 2e-6), ("refer", 3e-6))]
keep(jk.VMulAttr(n=1024, dtype="float64"), Record(tuple(candidates)), 0.0)
"""


@pytest.mark.parametrize("is_measured", [False, True])
def test_first_call_reads_no_metadata(private_cache: Path, is_measured: bool) -> None:
    """Plug-ins, and numba, are searched without `importlib.metadata`, which takes longer than the rest of the call."""
    code = """
import sys
from jitkernels.attrs.schema import plugins
plugins._may_name_the_group = lambda place: False
import jitkernels as jk
jk.vmul([1.0], [2.0])
print("importlib.metadata" in sys.modules)
"""
    if is_measured:  # each candidate checks whether it can be used
        python(RECORD, private_cache)
        code = code.replace("([1.0], [2.0])", "([1.0] * 1024, [2.0] * 1024)")
    python(code, private_cache, JITKERNELS_TUNE="replay")
    assert python(code, private_cache, JITKERNELS_TUNE="replay") == "False\n"


def test_warm_process_translates_no_loop(private_cache: Path) -> None:
    """Every generated kernel and everyday function runs from the cache of all tests without the front end."""
    code = """
import sys
import jitkernels as jk
from jitkernels.tools import testing
from jitkernels.dispatch.kernel_cache import KernelFuncs
from jitkernels.attrs.schema.registry import all_schemas
for row in all_schemas()[::STEP]:
    attr = testing.middle(row, "float32")
    function = KernelFuncs.cache().at(attr)
    function(*attr.signature().sample())
    assert function.__self__.implementation != "refer"
    getattr(jk, attr.name)
print("jitkernels.codegen.python.kernel_module" in sys.modules)
"""
    assert python(f"STEP = 12\n{code}", private_cache) == "True\n"
    python(f"STEP = 1\n{code}")
    assert python(f"STEP = 1\n{code}") == "False\n"


def test_calls_through_python_do_not_import_numpy_ma() -> None:
    """Checking for masked arrays must not import them, which takes 10 ms."""
    code = """
import sys
import numpy as np, jitkernels as jk
before = {name for name in sys.modules if name.startswith("numpy.")}
jk.vexp.__self__.call([1, 2, 3])
jk.softmax.__self__.call(np.ones((2, 3), np.int32), axis=0)
print(sorted({name for name in sys.modules if name.startswith("numpy.ma")} - before))
"""
    assert python(code) == "[]\n"
