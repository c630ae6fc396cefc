"""cffi: declared prototypes of libraries, C functions as implementations, memory as arrays."""

import importlib.util
import re
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cffi
import numpy as np
import pytest
from processes import python

import jitkernels as jk
from jitkernels.attrs.schema import registry
from jitkernels.attrs.schema.schema_queries import is_everyday
from jitkernels.codegen.c_source import CSource, compiler
from jitkernels.core import cffi_values
from jitkernels.more.mkl import library as mkl
from jitkernels.more.onednn import library as onednn
from jitkernels.more.openblas import library as openblas
from jitkernels.runtime import cffi_library
from jitkernels.tools import c_prototypes as prototypes
from jitkernels.tools import testing

LIBRARIES = {"mkl": mkl, "openblas": openblas, "onednn": onednn}
PREFIXES = {"mkl": "", "openblas": openblas.SCIPY_PREFIX, "onednn": ""}


@pytest.mark.parametrize("header", prototypes.headers(), ids=lambda path: path.parent.name)
def test_generated_prototypes_are_those_of_the_header(header: Path) -> None:
    again = "run `python -m jitkernels.tools.c_prototypes`"
    assert header.with_suffix(".py").read_text() == prototypes.module_text(header), again


def called() -> Iterator[tuple[str, Any]]:
    """Every function of a library that generated code calls, with the types that it calls it with."""
    for row in registry.all_schemas():
        for name in LIBRARIES.keys() & registry.implementations(row).keys():
            found = registry.implementation(row, name)
            for case in testing.ci_cases(row):
                if found.reason_against(case.attr) is None:
                    for variant in found.variants(case.attr):
                        source = found.source(case.attr, variant)
                        yield from ((name, one) for one in source.externals)


def mismatch(library: str, external: Any) -> str | None:
    """How a call differs from the declaration of the function, or None."""
    name = external.symbol.removeprefix(f"jk_{library}_")
    if external.source is not None or name in ("primitives", "recurrence") or name == external.symbol:
        return None  # ours: the C compiler checks its entry
    found = LIBRARIES[library].demanded()
    kind = found.ffi.typeof(getattr(found.functions, PREFIXES[library] + name))
    types = [prototypes.argument_type(found.ffi, one) for one in (kind.result, *kind.args)]
    return None if types == [external.result, *external.arguments] else f"{name}: {types}"


def test_calls_have_the_declared_types() -> None:
    """For every library call of an implementation, compare function, arity and types."""
    seen = {(library, external.symbol): external for library, external in called()}
    assert {library for library, _ in seen} == {n for n, one in LIBRARIES.items() if one.library()[0]}
    assert [wrong for (name, _), one in seen.items() if (wrong := mismatch(name, one))] == []


def test_wrong_types_are_caught() -> None:
    if mkl.library()[0] is None:
        pytest.skip("MKL is not here")
    right = mkl.external("cblas_sgemm_64")
    for arguments in (right.arguments[:-1], ("int64", *right.arguments[1:])):
        wrong = SimpleNamespace(symbol=right.symbol, source=None, result="void", arguments=arguments)
        assert mismatch("mkl", wrong)


def test_declarations_of_openblas_match_its_header(tmp_path: Path) -> None:
    """The C compiler compares both."""
    include = pytest.importorskip("scipy_openblas32").get_include_dir()
    command, reason = compiler()
    if not command:
        pytest.skip(reason)
    (header,) = (path for path in prototypes.headers() if path.parent.name == "openblas")
    text = re.sub(r"typedef enum.*?;\n", "", prototypes.declarations(header), flags=re.DOTALL)

    def fits(declarations: str) -> bool:
        source = tmp_path / "both.c"
        source.write_text(f'#include <stdint.h>\n#include "cblas.h"\n{declarations}')
        done = subprocess.run([*command, "-fsyntax-only", f"-I{include}", str(source)], capture_output=True)
        return done.returncode == 0

    assert fits(text)
    assert not fits(text.replace("const int lda", "const long lda", 1))


SQUARES = """
#include <stdint.h>
int64_t status(const float *x, float *y, int64_t n) { for (int64_t i = 0; i < n; i++) y[i] = x[i] * x[i]; return 0; }
int number(const float *x, float *y, int64_t n) { return (int)status(x, y, n); }
void nothing(const void *x, void *y, int64_t n) { status(x, y, n); }
int64_t fails(const float *x, float *y, int64_t n) { return -5; }
void short_length(const float *x, float *y, int n) {}
void doubles(const double *x, double *y, int64_t n) {}
void fewer(const float *x, float *y) {}
float wrong_result(const float *x, float *y, int64_t n) { return 0; }
"""


@pytest.fixture(scope="module", params=["opened", "compiled"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The functions, in a library that cffi opens (ABI mode) and in a module that it compiles (API mode)."""
    command, reason = compiler()
    if not command:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("library")
    declared = re.sub(r"#.*|\{.*?\}(?=\n)", lambda found: ";" if found[0][0] == "{" else "", SQUARES)
    ffi = cffi.FFI()
    ffi.cdef(declared)
    built = folder / f"squares_{request.param}.so"
    source = built.with_suffix(".c")
    if request.param == "opened":
        source.write_text(SQUARES)
    else:
        ffi.set_source(built.stem, SQUARES)
        ffi.emit_c_code(str(source))
    headers = sysconfig.get_path("include")
    if request.param == "compiled" and not (Path(headers) / "Python.h").exists():
        pytest.skip("no headers of Python")
    subprocess.run([*command, "-O2", "-shared", "-fPIC", f"-I{headers}", str(source), "-o", str(built)], check=True)
    if request.param == "opened":
        return ffi.dlopen(str(built))
    specification = importlib.util.spec_from_file_location(built.stem, built)
    assert specification is not None
    return importlib.util.module_from_spec(specification).lib


@pytest.fixture
def unregistered() -> Iterator[None]:
    """Remove the implementations that a test registers."""
    registry.implementations(jk.VSquareAttr)
    known = registry._implementations[jk.VSquareAttr]
    before = dict(known)
    yield
    known.clear()
    known.update(before)
    jk.KernelFuncs.cache().clear()


@pytest.mark.parametrize("name", ["status", "number", "nothing"])
def test_a_c_function_is_an_implementation(library: Any, unregistered: None, name: str) -> None:
    registry.implementations(jk.VSquareAttr)
    function = getattr(library, name)
    assert jk.implements(jk.VSquareAttr, name="squares")(function) is function
    attr = jk.VSquareAttr(n=5)
    testing.check(attr, "squares")
    x = np.arange(5, dtype=np.float32)
    with jk.use(vsquare="squares"):
        np.testing.assert_array_equal(jk.vsquare(x), x * x)
    double = jk.VSquareAttr(n=5, dtype="float64")
    reason = registry.implementation(jk.VSquareAttr, "squares").reason_against(double)
    if name != "nothing":  # which takes pointers to anything
        assert reason is not None
        assert "expected int64(*)(float64*, float64*, int64), got" in reason


def test_functions_that_return_a_c_function_are_implementations(library: Any, unregistered: None) -> None:
    registry.implementations(jk.VSquareAttr)

    @jk.implements(jk.VSquareAttr, name="squares", can_be_used=lambda attr: attr.dtype == "float32" or "float32")
    def squares(attr: Any) -> Any:
        return library.nothing

    testing.check(jk.VSquareAttr(n=7), "squares")


@pytest.mark.parametrize("name", ["short_length", "fewer", "wrong_result", "doubles"])
def test_c_functions_of_another_signature_are_rejected(library: Any, unregistered: None, name: str) -> None:
    registry.implementations(jk.VSquareAttr)
    jk.implements(jk.VSquareAttr, name="squares")(getattr(library, name))
    with jk.use(vsquare="squares"), pytest.raises(jk.NotUsableError, match=r"expected int64\(\*\)\(float32\*"):
        jk.vsquare(np.ones(3, np.float32))

    @jk.implements(jk.VSquareAttr, name="given")
    def given(attr: Any) -> Any:
        return getattr(library, name)

    with jk.use(vsquare="given"), pytest.raises(jk.RegistrationError, match="the C function"):
        jk.vsquare(np.ones(3, np.float32))


def test_c_functions_of_equal_types_are_different_kernels(library: Any, unregistered: None) -> None:
    registry.implementations(jk.VSquareAttr)
    jk.implements(jk.VSquareAttr, name="squares")(library.status)
    jk.implements(jk.VSquareAttr, name="failing")(library.fails)
    x = np.ones(3, np.float32)
    with jk.use(vsquare="squares"):
        jk.vsquare(x)
    with jk.use(vsquare="failing"), pytest.raises(jk.JitKernelsError):
        jk.vsquare(x)
    with pytest.raises(jk.RegistrationError, match="already has an implementation 'squares'"):
        jk.implements(jk.VSquareAttr, name="squares")(library.nothing)
    with pytest.raises(jk.RegistrationError, match="expected a name"):
        jk.implements(jk.VSquareAttr)(library.nothing)


FFI = cffi.FFI()
ELEMENTS = {"float32": "float", "float64": "double", "bool": "_Bool"}


def memory(value: Any) -> Any:
    """An array's copy in memory of cffi's; all else as it is."""
    if not isinstance(value, np.ndarray) or value.dtype.name == "bfloat16" or not value.ndim:
        return value
    element = ELEMENTS.get(value.dtype.name, f"{value.dtype.name}_t")
    made = FFI.new(element + "".join(f"[{extent}]" for extent in value.shape))
    FFI.memmove(made, np.ascontiguousarray(value), value.nbytes)
    return made


def everyday_call(row: Any) -> tuple[dict[str, Any], Any]:
    """Arguments of an everyday call, of the first case that is one, and its results."""
    for case in testing.ci_cases(row):
        arguments = testing.named(case.attr)
        if (
            not any(case.attr.fields().get(a.transposed or "") for a in row.arrays)
            and case.attr.fields()["dtype"] == "float32"
        ):
            arguments |= {"axis": 0} if "axis" in arguments and arguments[row.arrays[0].name].ndim < 3 else {}
            return arguments, getattr(jk, case.attr.name)(**arguments)
    raise AssertionError(f"no case of {row.__name__} is an everyday call")


@pytest.mark.parametrize("row", registry.all_schemas(), ids=lambda row: row.__name__)
def test_memory_of_cffi_is_an_array(row: Any) -> None:
    """In every everyday function, as inputs and as results."""
    if not is_everyday(row):
        pytest.skip("no everyday function")
    function = getattr(jk, row.kernel_type.name.lower())
    arguments, expected = everyday_call(row)
    found = function(**{name: memory(value) for name, value in arguments.items()})
    several = expected if isinstance(expected, tuple) else (expected,)
    for one, other in zip(several, found if isinstance(found, tuple) else (found,), strict=True):
        np.testing.assert_array_equal(one, other)
    out = tuple(memory(np.zeros_like(one)) for one in several)
    given = out if isinstance(expected, tuple) else out[0]
    assert function(**arguments, out=given) is given
    for one, other in zip(several, out, strict=True):
        np.testing.assert_array_equal(one, cffi_values.array_of("", "", other))


def test_kernels_take_memory_of_cffi() -> None:
    kernel = jk.KernelFuncs.cache().at(jk.VSquareAttr(n=3))
    x, y = FFI.new("float[]", [1.0, 2.0, 3.0]), FFI.new("float[3]")
    kernel(x, y)
    assert list(y) == [1.0, 4.0, 9.0]


def test_cffi_objects_that_are_no_arrays() -> None:
    one = FFI.new("float *", 3.0)
    with pytest.raises(jk.ArgumentTypeError, match=r"vexp: argument 1: expected an array, such as ffi\.new"):
        jk.vexp(one)
    with pytest.raises(jk.ArgumentTypeError, match=r"vexp: x: expected an array"):
        jk.vexp(x=FFI.new("char[3]"))
    buffer = FFI.buffer(FFI.new("uint8_t[]", [0, 1, 2]))
    np.testing.assert_array_equal(jk.vexp(buffer), jk.vexp(np.array([0, 1, 2], np.uint8)))


def test_c_kernels_are_callable_through_their_prototype() -> None:
    command, reason = compiler()
    if not command:
        pytest.skip(reason)
    from jitkernels.runtime.loading import loader

    code = "static int64_t twice(const int32_t *x, double *y, int64_t n) { y[0] = 2.0 * x[n]; return n; }"
    source = CSource("twice", ("int32*", "double* restrict", "int64"), "twice", code)
    function = cffi_library.function_at(loader.address_of(source), source.prototype)
    x, y = FFI.new("int32_t[]", [3, 4]), FFI.new("double *")
    assert function(x, y, 1) == 1
    assert y[0] == 8.0


def test_warm_calls_do_not_import_cffi(private_cache: Path) -> None:
    code = """
import sys
import numpy as np, jitkernels as jk
x = np.ones((3, 8), np.float32)
jk.softmax(x), jk.vexp(x), jk.matmul(x, x.T)
jk.jit(lambda x: np.tanh(x) * 2 + 1)(x)
print([name for name in ("cffi", "_cffi_backend", "pycparser", "numba") if name in sys.modules])
"""
    python(code, private_cache)
    assert python(code, private_cache) == "[]\n"


def test_a_library_is_opened_without_a_parser_of_c() -> None:
    code = """
import sys
from jitkernels.more.mkl import library as mkl
from jitkernels.more.openblas import library as openblas
from jitkernels.more.onednn import library as onednn
mkl.status(), openblas.status(), onednn.status()
print([name for name in ("cffi", "pycparser") if name in sys.modules])
"""
    assert python(code) == "[]\n"
