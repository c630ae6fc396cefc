"""Builders of sources: the table of element types, and the C compiler."""

import dataclasses
from pathlib import Path

import pytest
from processes import python

from jitkernels.codegen import c_source
from jitkernels.core import dtypes
from jitkernels.errors import BuildError, UnknownNameError
from jitkernels.runtime import c_api
from jitkernels.runtime.loading import loader

CODE = "static int64_t twice(double *x, int64_t n) { *x += *x; return 0; }"
HALF = "static int64_t half(double *x, int64_t n) { *x /= 2; return 0; }"
SOURCE = c_source.CSource("in_c", ("double*", "int64"), "twice", CODE)
needs_compiler = pytest.mark.skipif(not c_source.compiler()[0], reason=c_source.compiler()[1])


def test_dtypes() -> None:
    """Every entry of the dtype table agrees with NumPy and C."""
    for name, dtype in dtypes.TABLE.items():
        assert dtypes.named(name) is dtype
        assert dtype.numpy.itemsize == dtype.size
        assert dtype.numpy.name == (name if name != "bfloat16" else "uint16")
        assert dtypes.c_type(f"{name}*").llvm == "ptr"
        assert dtypes.c_type(name).llvm == dtype.llvm
        assert dtype.is_float == ("float" in name)
    assert dtypes.named("double") is dtypes.named("float64")
    assert dtypes.c_type("void").llvm == "void"
    assert dtypes.c_type("float* restrict").declare("x") == "float *restrict x"
    assert dtypes.c_type("int64").declare("n") == "int64_t n"
    with pytest.raises(UnknownNameError, match="no element type 'quad'; there are float16"):
        dtypes.named("quad")


def test_all_dtypes_of_everyday_calls_are_in_the_table() -> None:
    """A dtype outside the table would be converted where the others are read in place."""
    assert {kind.name for kind in c_api.SCALARS} == {*dtypes.TABLE} - {"bfloat16"}


@needs_compiler
def test_sizes_of_dtypes_in_c() -> None:
    """The C compiler asserts the sizes."""
    checks = "".join(
        f'_Static_assert(sizeof({dtype.c}) == {dtype.size}, "{name}");\n'
        for name, dtype in dtypes.TABLE.items()
        if name != "float16"  # older compilers lack it
    )
    loader.address_of(dataclasses.replace(SOURCE, code=f"{checks}{CODE}"))
    with pytest.raises(BuildError, match=r"(?i)static.?assert"):
        loader.address_of(dataclasses.replace(SOURCE, code=f"{checks.replace('== 8', '== 7')}{CODE}"))


@needs_compiler
@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (CODE, ("float*", "int64")),
        (CODE, ("double*",)),
        (CODE, ("double*", "int64", "int64")),
        (CODE, ("int64", "int64")),
        (HALF, SOURCE.arguments),
        ("static void twice(double *x, int64_t n) { *x += *x; }", SOURCE.arguments),
    ],
    ids=["element", "too few", "too many", "no pointer", "absent", "no status"],
)
def test_c_code_is_checked_against_its_declaration(code: str, arguments: tuple[str, ...]) -> None:
    with pytest.raises(BuildError, match="error"):
        loader.address_of(dataclasses.replace(SOURCE, code=code, arguments=arguments))


@needs_compiler
def test_c_code_needs_no_python_headers(private_cache: Path) -> None:
    """Build with the path of the headers pointing nowhere."""
    code = f"""
import sys, sysconfig
sysconfig.get_path = lambda *arguments, **named: "/nowhere"
from jitkernels.codegen import c_source as c; from jitkernels.runtime.loading import loader as load
source = c.CSource("in_c", ("double*", "int64"), "twice", {CODE!r})
print(load.address_of(source) != 0)
"""
    assert python(code, private_cache) == "True\n"
