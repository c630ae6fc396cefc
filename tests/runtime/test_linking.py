"""Kernels called by generated code: subranges, statuses with their origin, no nested threads."""

import ctypes
import dataclasses
import math
import sys
from pathlib import Path
from typing import Any

import cases
import numpy as np
import pytest
from processes import python

import jitkernels as jk
from jitkernels.attrs.schema.registry import implementation, implements
from jitkernels.codegen import error_status
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Source, symbol_of
from jitkernels.dispatch.kernel import Kernel, scalar_words
from jitkernels.errors import BuildError, WorkspaceError
from jitkernels.more.mix.component import component
from jitkernels.runtime.loading import loader
from jitkernels.runtime.threads import team_size
from jitkernels.tools import testing

needs_openmp = pytest.mark.skipif(team_size.runtime()[0] is None, reason=team_size.runtime()[1])
HUGE = 1 << 60
"""Bytes that no machine has."""
MAX_ATTRS, FEW_ATTRS = 10, 3
"""A product has a nest for every shape, in many variants; few are tested per push."""


def sources(attr: jk.KernelAttr, name: str) -> list[Source]:
    """The sources of all variants of an implementation; skips where it cannot be used."""
    cases.usable(attr, name)
    found = implementation(type(attr), name)
    return [] if found.is_reference else [found.function(attr, **variant) for variant in cases.variants_of(attr, name)]


def words(attr: jk.KernelAttr, arrays: list[Any]) -> list[int]:
    """Return what the C function takes: addresses of arrays, then numbers."""
    return [array.ctypes.data for array in arrays] + scalar_words(attr.signature())


@pytest.mark.parametrize(("row", "name"), cases.every_compiled())
def test_ranges_add_up_to_the_serial_entry(row: cases.Row, name: str, restored_threads: int) -> None:
    """Wherever the ranges begin."""
    _check_implementation(row, name, FEW_ATTRS)


@pytest.mark.full
@pytest.mark.parametrize(("row", "name"), cases.every_compiled())
def test_ranges_of_more_attrs_add_up(row: cases.Row, name: str, restored_threads: int) -> None:
    _check_implementation(row, name, MAX_ATTRS)


def _check_implementation(row: cases.Row, name: str, most: int) -> None:
    jk.set_num_threads(1)
    for attr in cases.evenly(cases.in_scope(row, name), most):
        for nest in sources(attr, name):
            if isinstance(nest, RangeKernel):
                _check_parts(attr, nest)


def _check_parts(attr: jk.KernelAttr, nest: RangeKernel) -> None:
    parts = attr.signature().sample(1)
    before = [array.copy() for array in parts]
    given = words(attr, parts)
    entry = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(given))(loader.address_of(nest))
    assert entry(*given) == 0
    whole = [array.copy() for array in parts]
    for array, old in zip(parts, before, strict=True):
        array[...] = old  # the same memory once more: where sums begin may depend on it
    external = loader.range_of(nest, nest.arguments)
    assert external.arguments == (*nest.arguments, "int64", "int64")
    ranged = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * (len(given) + 2))(external.address())
    extents = (nest.extent,) if isinstance(nest.extent, int) else nest.extent
    extent = nest.splits * math.prod(given[index] for index in extents)
    middle = extent // 2 // nest.block * nest.block
    first = middle // 2 // nest.block * nest.block if nest.splits > 1 else 0  # splits that begin amid rows
    for begin, end in ((0, first), (first, middle), (middle, extent)):
        assert begin >= end or ranged(*given, begin, end) == 0
    for one, other in zip(whole, parts, strict=True):
        same = one.tobytes() == other.tobytes()
        if nest.module.externals and one.dtype.kind == "f":  # a library sums in an order of its own
            bound = 64 * np.finfo(one.dtype).eps * np.abs(one).max(initial=0)
            same = bool((np.abs(one - other) <= bound).all())
        assert same, f"{nest.name} of {attr} differs in parts"


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("filters", [128, 260, 516])
@pytest.mark.parametrize("height", [1, 3, 7, 9])
@pytest.mark.parametrize("row", [jk.Conv2DAttr, jk.Conv2DPackedAttr], ids=lambda row: str(row.kernel_type.name))
def test_parts_of_filters_add_up_where_rows_are_few(
    row: Any, height: int, filters: int, groups: int, restored_threads: int
) -> None:
    """Threads share the filters of few rows, too."""
    jk.set_num_threads(1)
    attr = row(batch=1, height=height, width=5, channels=16, filters=filters, groups=groups, padding=((1, 1), (1, 1)),
               kernel_height=3, kernel_width=3, activation="relu")  # fmt: skip
    nests = [one for one in sources(attr, "gen") if isinstance(one, RangeKernel) and not one.parallel]
    assert [nest.splits > 1 for nest in nests] == [True]
    _check_parts(attr, nests[0])


def test_checks_are_separate_from_ranges(toy: Any) -> None:
    """Callers of ranges of a kernel call its check once."""
    attr = toy.ToyAttr(n=9)
    nest = toy.right(attr)
    name = f"{symbol_of(nest)}_check"
    address = loader.functions_of(nest, (name,))[name]
    arrays = attr.signature().sample()
    given = [array.ctypes.data for array in arrays] + [9, 5]
    check = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(given))(address)
    assert check(*given) == 0
    arrays[2][3] = 77
    assert check(*given) == 1


@pytest.mark.parametrize("name", ["gen", "mkl", "intrinsic"])
def test_components_of_every_implementation(name: str, fresh: Any) -> None:
    """`mix` links any implementation, parallel variants without their threads."""
    attr = jk.VMulAttr(n=100_000)
    for source in sources(attr, name):
        multiply = component(attr, source)
        nest = _squaring(multiply)
        values = np.arange(1000, dtype=np.float32)
        expected = values * values
        function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(loader.address_of(nest))
        assert function(values.ctypes.data, values.size) == 0
        assert (values == expected).all()


def _squaring(multiply: Any) -> RangeKernel:
    def body(x: Any, n: int, begin: int, end: int) -> Any:
        return multiply(x, x, x, n)

    return RangeKernel("squaring", ("float*", "int64"), body, extent=1)


def _needy(name: str, workspace: int = HUGE) -> RangeKernel:
    def body(x: Any, n: int, workspace: Any, begin: int, end: int) -> None:
        for i in range(begin, end):
            x[i] = x[i] + workspace[0] * 0

    return RangeKernel(name, ("float*", "int64"), body, extent=1, workspace=workspace, workspace_dtype="float32")


def _calling(inner: RangeKernel, parallel: bool) -> RangeKernel:
    called = loader.range_of(inner, inner.arguments)

    def body(x: Any, n: int, begin: int, end: int) -> Any:
        return called(x, n, begin, end)

    return RangeKernel("calling", ("float*", "int64"), body, extent=1, parallel=parallel)


@pytest.mark.parametrize("parallel", [False, True])
def test_status_codes_name_their_nest(parallel: bool) -> None:
    """The workspace error of the innermost of three nests is reported by its name, through both callers."""
    innermost = _needy("innermost")
    nest = _calling(dataclasses.replace(_calling(innermost, False), name="between"), parallel)
    values = np.arange(100_000, dtype=np.float32)
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(loader.address_of(nest))
    code = function(values.ctypes.data, values.size)
    error = error_status.error_of(code, "vmul", "mine")
    assert isinstance(error, WorkspaceError)
    assert str(error) == "vmul: mine: no memory for the workspace of innermost"
    assert code != error_status.no_memory_for("between")
    assert (values == np.arange(100_000)).all()
    unknown = error_status.error_of(3, "vmul", "mine")
    assert isinstance(unknown, BuildError)
    assert str(unknown) == "vmul: mine returned the unknown status 3: expected 0"


def test_workspace_errors_of_components_are_raised(toy: Any, fresh: Any) -> None:
    """The error names kernel, implementation and component."""
    inner = _needy("greedy_component")
    called = loader.range_of(inner, inner.arguments)

    def needs_too_much(attr: Any) -> RangeKernel:
        def body(x: Any, table: Any, ids: Any, y: Any, n: int, m: int, begin: int, end: int) -> Any:
            return called(y, n, begin, end)

        return RangeKernel("outer", attr.signature().c_arguments, body, extent=4)

    implements(toy.ToyAttr, name="mine")(needs_too_much)
    attr = toy.ToyAttr(n=9)
    kernel = Kernel(attr, implementation(toy.ToyAttr, "mine"), {}).callable
    with pytest.raises(WorkspaceError, match=r"^toy_take: mine: no memory for the workspace of greedy_component$"):
        kernel(*attr.signature().sample())


def test_a_body_returns_a_status_or_nothing() -> None:
    def body(x: Any, n: int, begin: int, end: int) -> float:
        return 0.5

    with pytest.raises(BuildError, match=r"body \(.*\): expected to return nothing, or an int"):
        loader.address_of(RangeKernel("strange", ("float*", "int64"), body, extent=1))


NESTED = """
import ctypes, os
import numpy as np
import jitkernels as jk
from jitkernels.runtime.loading import loader as load
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.attrs.schema.registry import implementation

jk.set_num_threads(3)
attr = jk.VMulAttr(n=1 << 16)
inner = implementation(jk.VMulAttr, "gen").function(attr, parallel=True, vector_bytes=32)
multiply = load.entry_of(inner, inner.arguments)

def body(x, y, rows, n, begin, end):
    for row in range(begin, end):
        status = multiply(x, x, y, n)
        if status != 0:
            return status
    return 0

nest = RangeKernel("nested", ("float*", "float*", "int64", "int64"), body, extent=2, parallel=True)
x, y = np.ones(1 << 16, np.float32), np.zeros(1 << 16, np.float32)
address = load.address_of(nest)
function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)(address)
before = len(os.listdir("/proc/self/task"))
for _ in range(20):
    assert function(x.ctypes.data, y.ctypes.data, 12, 1 << 16) == 0
print(len(os.listdir("/proc/self/task")) - before)
"""


@needs_openmp
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts threads in /proc")
def test_parallel_regions_do_not_nest(tmp_path: Path) -> None:
    """Where the runtime would allow it, threads start no teams of their own: there are two helpers and no more."""
    (tmp_path / "nested.py").write_text(NESTED)
    code = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport nested"
    printed = python(code, OMP_NUM_THREADS="3", OMP_MAX_ACTIVE_LEVELS="4", OMP_DYNAMIC="false")
    assert int(printed) == 2


def test_symbol_names() -> None:
    """A kernel has a symbol, an address and words."""
    attr = testing.middle(jk.VExpAttr, "float32")
    kernel = Kernel(attr, implementation(jk.VExpAttr, "gen"), {})
    assert kernel.symbol == symbol_of(implementation(jk.VExpAttr, "gen").function(attr))
    assert kernel.address == loader._held[kernel.symbol].address
    assert Kernel(attr, implementation(jk.VExpAttr, "refer"), {}).symbol == ""
