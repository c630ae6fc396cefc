"""Sources: their text determines their code, they build themselves, and assume only what is declared."""

import ctypes
import dataclasses
import inspect
import itertools
from typing import Any

import cases
import numpy as np
import pytest
from processes import python

import jitkernels as jk
from jitkernels.attrs.schema.registry import implementation, implementations
from jitkernels.codegen import c_source, source_protocol
from jitkernels.codegen.function_ast import parsed
from jitkernels.codegen.ir_source import IRSource
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import External, Source, inlined, symbol_of
from jitkernels.core import dtypes
from jitkernels.errors import BuildError
from jitkernels.runtime.loading import loader
from jitkernels.tools import testing

DOUBLING = """
define i64 @body(ptr %x, i64 %n, i64 %begin, i64 %end) {
start:
  %some = icmp slt i64 %begin, %end
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ %begin, %start ], [ %next, %loop ]
  %place = getelementptr double, ptr %x, i64 %i
  %value = load double, ptr %place
  %twice = fadd double %value, %value
  store double %twice, ptr %place
  %next = add nsw i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret i64 0
}
"""


def doubling(x: Any, n: int, begin: int, end: int) -> None:
    for i in range(begin, end):
        x[i] = x[i] + x[i]


def doubling_late(x: Any, n: int, begin: int, end: int) -> None:
    for i in range(begin, end):
        x[i] = 2 * x[i]


def doubling_with_scratch(x: Any, n: int, workspace: Any, begin: int, end: int) -> None:
    for i in range(begin, end):
        workspace[0] = x[i]
        x[i] = x[i] + workspace[0]


def doubling_together(x: Any, n: int, begin: int, end: int, words: Any, member: int, members: int) -> None:
    for i in range(begin + member, end, members):
        x[i] = x[i] + x[i]


def two(n: int, begin: int, end: int) -> int:
    return 2


def three(n: int, begin: int, end: int) -> int:
    return 3


def positive(x: Any, n: int) -> int:
    return 0 if n > 0 else 5


BASE = RangeKernel("doubling", ("double*", "int64"), doubling, extent=1)
SCRATCH = dataclasses.replace(BASE, body=doubling_with_scratch, workspace=64, workspace_dtype="float64")
THREADS = dataclasses.replace(BASE, parallel=True)
TOGETHER = dataclasses.replace(BASE, body=doubling_together, together=two)
C_BASE = c_source.CSource(
    "in_c", ("double*", "int64"), "twice", "static int64_t twice(double *x, int64_t n) { *x += *x; return 0; }"
)
C_OTHER = "static int64_t half(double *x, int64_t n) { *x /= 2; return 0; }"
IR_BASE = IRSource("in_ir", "define i64 @entry(ptr %x, i64 %n) {\n  ret i64 0\n}\n")

CHANGES: dict[Source, dict[str, list[Any]]] = {
    BASE: {
        "name": ["other"],
        "arguments": [("float*", "int64"), ("double* restrict", "int64")],
        "body": [doubling_late, DOUBLING, b"BC"],
        "extent": [0],
        "splits": [2],
        "block": [],  # for threads
        "max_blocks": [],
        "pitched": [],
        "parallel": [True],
        "together": [],  # which another body goes with
        "workspace": [],
        "workspace_dtype": [],
        "check": [positive, "define i64 @check(ptr %x, i64 %n) {\n  ret i64 0\n}\n"],
        "names": [],  # what the body binds by them, the code shows
        "flags": [(), ("nsz",)],
        "vector_bytes": [32],
        "reads_first": [True],
        "exact": [],  # what the sizes in the text say already
        "converts": [],  # as the text shows
        "straight": [True],
        "unrolls": [False],
        "calls": [(External("jk_test_halve", "double", ("double",), lambda: 0),)],
        "parts": [],  # which the body or the check calls
    },
    THREADS: {"block": [2], "max_blocks": [2, 64], "parallel": [False], "extent": [0]},
    TOGETHER: {"together": [three]},
    SCRATCH: {"workspace": [0, 128], "workspace_dtype": ["float32", "int64"]},
    C_BASE: {
        "name": ["other"],
        "arguments": [("double*",), ("float*", "int64")],
        "function": ["half"],
        "code": [C_OTHER],
        "flags": [("-O1",)],
        "externals": [],
    },
    IR_BASE: {"name": ["other"], "text": ["define i64 @entry() {\n  ret i64 1\n}\n"], "externals": []},
}
"""For each field of each kind of source other values, which make other code; none where a field makes none."""


def test_every_field_is_tested() -> None:
    for kind in (RangeKernel, c_source.CSource, IRSource):
        looked_at = {name for base, changes in CHANGES.items() if isinstance(base, kind) for name in changes}
        assert looked_at == {field.name for field in dataclasses.fields(kind)}


def key(source: Source) -> tuple[str, str]:
    return source.name, source.text


@pytest.mark.parametrize("base", CHANGES, ids=lambda base: base.name)
def test_every_change_of_code_changes_the_key(base: Any) -> None:
    """Sources that compile to different code have different texts, or at least different names."""
    sources = [base] + [
        dataclasses.replace(base, **{name: value}) for name, values in CHANGES[base].items() for value in values
    ]
    for one, other in itertools.combinations(sources, 2):
        assert key(one) != key(other)
        assert symbol_of(one) != symbol_of(other)


def decisive(source: Any) -> tuple[Any, ...]:
    """Everything but the functions that a source is made from, and the blocks of what has no threads."""
    if isinstance(source, RangeKernel) and not source.parallel:
        source = dataclasses.replace(source, block=1, max_blocks=0)
    values = (getattr(source, field.name) for field in dataclasses.fields(source))
    return (type(source), *(value for value in values if not callable(value)))


@pytest.mark.per_push
@pytest.mark.parametrize(("row", "name"), cases.every_compiled())
def test_equal_texts_have_equal_settings(row: cases.Row, name: str) -> None:
    """Over all rows: whatever a source says beside its functions is in its text."""
    found = implementation(row, name)
    known: dict[tuple[str, str], tuple[Any, ...]] = {}
    for attr in cases.in_turn(row, [case.attr for case in row.sweep()]):
        if found.reason_against(attr) is None:
            for variant in found.variants(attr):
                source = found.function(attr, **variant)
                assert known.setdefault(key(source), decisive(source)) == decisive(source), (attr, variant)


def called(source: Source, values: Any) -> Any:
    """What the C function of a source makes of an array."""
    result = values.copy()
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(loader.address_of(source))
    assert function(result.ctypes.data, result.size) == 0
    return result


def test_equal_names_of_different_types() -> None:
    """One loop over floats and over doubles, under one name, is two functions."""
    for dtype, argument in (("float64", "double*"), ("float32", "float*"), ("int64", "int64*"), ("int8", "int8*")):
        nest = dataclasses.replace(BASE, arguments=(argument, "int64"))
        values = np.arange(9).astype(dtype)
        assert (called(nest, values) == 2 * values).all()


def test_equal_texts_of_different_names() -> None:
    for base in (C_BASE, IRSource("in_ir", "define i64 @entry(ptr %x, i64 %n) {\n  ret i64 0\n}\n")):
        addresses = {loader.address_of(dataclasses.replace(base, name=name)) for name in ("one", "two")}
        assert len(addresses) == 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_workspace_dtype(dtype: str) -> None:
    """An integer workspace would cut 0.5 off, and one of float32 would round."""
    nest = dataclasses.replace(SCRATCH, workspace_dtype=dtype)
    values = np.array([0.5, 1 + 2.0**-40])
    expected = values + values.astype(dtype)
    assert (called(nest, values) == expected).all()
    with pytest.raises(BuildError, match="expected workspace_dtype to be one of"):
        dataclasses.replace(SCRATCH, workspace_dtype="")


@pytest.mark.parametrize("form", ["text", "bitcode"])
@pytest.mark.parametrize("parallel", [False, True])
def test_loop_nest_of_llvm_code(form: str, parallel: bool, private_cache: Any) -> None:
    """It is built without the front end, and gives what the same loop in Python gives."""
    code = f"""
import ctypes, sys
import llvmlite.binding as llvm, numpy as np
from jitkernels.runtime.loading import loader as load; from jitkernels.runtime.threads import num_threads as threads
from jitkernels.codegen.range_kernel import RangeKernel
DOUBLING = {DOUBLING!r}
threads.set_num_threads(2)
body = DOUBLING if {form!r} == "text" else llvm.parse_assembly(DOUBLING).as_bitcode()
nest = RangeKernel("doubling", ("double*", "int64"), body, extent=1, parallel={parallel})
values = np.arange(10000.0)
function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(load.address_of(nest))
assert function(values.ctypes.data, values.size) == 0
assert (values == 2 * np.arange(10000.0)).all()
print("jitkernels.codegen.python.kernel_module" in sys.modules)
"""
    assert python(code, private_cache) == "False\n"


def test_llvm_code_may_call_its_externals_only() -> None:
    calling = DOUBLING.replace("define i64", "declare double @jk_test_halve(double)\ndefine i64").replace(
        "%twice = fadd double %value, %value", "%twice = call double @jk_test_halve(double %value)"
    )
    nest = dataclasses.replace(BASE, name="calling", body=calling)
    with pytest.raises(BuildError, match="calls jk_test_halve, which is not an external of its own"):
        loader.address_of(nest)
    halve = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda value: value / 2)
    address = ctypes.cast(halve, ctypes.c_void_p).value or 0
    external = External("jk_test_halve", "double", ("double",), lambda: address)
    values = np.arange(5.0)
    assert (called(dataclasses.replace(nest, calls=(external,)), values) == values / 2).all()


@pytest.mark.parametrize(("wrong", "message"), [("nonsense", "is wrong"), ("", "do not fit|body")])
def test_invalid_llvm_code_is_reported(wrong: str, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        loader.address_of(dataclasses.replace(BASE, name="wrong", body=wrong))


def late(x: Any, y: Any, n: int, begin: int, end: int) -> None:
    """Shifts by one: right for y apart from x, and for y = x only if no element is written too early."""
    for i in range(begin, end):
        y[i] = x[i - 1] if i > 0 else x[i]


def test_pointers_are_noalias_only_where_declared() -> None:
    """A loop that carries a value through shared memory keeps its order."""
    arguments = ("double*", "double*", "int64")
    nest = RangeKernel("late", arguments, late, extent=2)
    values = np.arange(1.0, 100.0)
    shared = values.copy()
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(
        loader.address_of(nest)
    )
    function(shared.ctypes.data, shared.ctypes.data, shared.size)
    assert (shared == 1).all()


def test_in_place_arrays_are_not_noalias() -> None:
    """The C types of a row say ``restrict`` of exactly the arrays that are no other argument."""
    for row in (parameter.values[0] for parameter in cases.every_row()):
        signature = testing.middle(row, "float32").signature()
        for array, argument in zip(signature.arrays, signature.c_arguments, strict=False):
            assert dtypes.c_type(argument).is_restrict is not array.in_place


def _pairs(attr: jk.KernelAttr) -> list[tuple[int, int]]:
    arrays = attr.signature().arrays
    return [
        (i, j)
        for i, one in enumerate(arrays)
        for j, other in enumerate(arrays)
        if one.in_place and other.in_place and not one.output and other.output
    ]


@pytest.mark.parametrize("row", [p for p in cases.every_row() if "gen" in implementations(p.values[0])])
def test_in_place_calls_need_no_checks(row: cases.Row) -> None:
    """Where an output may be an input, generated code promises to read first: checks at run time made it scalar."""
    attr = testing.middle(row, "float32")
    found = implementation(row, "gen")
    promised = [found.source(attr, variant).reads_first for variant in found.variants(attr)]
    assert all(promised) or not _pairs(attr)


def test_any_source_of_the_protocol_can_be_loaded() -> None:
    """The loader knows no classes of sources."""

    @dataclasses.dataclass(frozen=True)
    class Wrapped:
        name: str = "wrapped"
        text: str = "an unknown kind of source"
        externals: tuple[External, ...] = ()
        suffix: str = ".o"
        has_range: bool = False

        def object_code(self, symbol: str) -> bytes:
            return BASE.object_code(symbol)

    values = np.arange(4.0)
    assert (called(Wrapped(), values) == 2 * values).all()


def test_functions_without_a_source_file_are_rejected() -> None:
    names: dict[str, Any] = {}
    exec("def body(x, n, begin, end):\n    x[begin] = 0\n", names)
    with pytest.raises(BuildError, match="the source of body is not available"):
        loader.address_of(dataclasses.replace(BASE, body=names["body"]))


@inlined()
def nothing_written_in_lines(value: Any) -> None:
    """A docstring alone,
which may begin its lines anywhere."""  # fmt: skip


@inlined()
def nothing(value: Any) -> None:
    """A docstring alone."""


def test_text_of_a_function_with_only_a_docstring() -> None:
    for function in (nothing, nothing_written_in_lines):
        tree, _ = parsed(function.__code__)
        assert tree.name == function.__name__
        assert len(tree.body) == 1


@pytest.mark.parametrize(("row", "name"), cases.every_compiled())
def test_texts_do_not_search_all_modules(row: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`inspect` does so to find the file of a function, which takes tens of milliseconds."""
    monkeypatch.setattr(inspect, "getsourcelines", lambda code: pytest.fail(f"looked for {code}"))
    source_protocol._syntax.cache_clear()
    made = 0
    for attr in cases.evenly(cases.in_scope(row, name), 10):
        found = implementation(row, name)
        if found.reason_against(attr) is None:
            made += sum(bool(found.source(attr, variant).text) for variant in found.variants(attr))
    if not made:
        cases.usable(attr, name)
