"""NumPy's own tests that fail through `jit`, each with the reason."""

CONSTANT = "what is computed of constants in a trace warns of nothing; numbers of np.longlong are constants"
LAST_PLACE = "one result is compiled and the other is NumPy's, which differ in the last place"
REFERENCES = "code that is made during the test, or let go, refers to dtypes"
STAND_IN = "the test looks at NumPy's function itself, for which something stands here"
LAYOUT = "results of fancy indexing lie in C order; NumPy does not promise another"
ELLIPSIS = "out=... does not reach arrays of other libraries: results without dimensions are numbers"
FLAG = "arrays that warn of a write are written without"
WRAP = "an object that shows its memory is an array; its __array_wrap__ is not called"

CODE = "an array that warns of a write is read and written by code of NumPy's, which warns once more"

DIFFERENCES: dict[str, str] = {
    "test_umath.py::TestDivisionIntegerOverflowsAndDivideByZero::test_overflows": CONSTANT,
    "test_multiarray.py::TestStats::test_mean_where": CONSTANT,
    "test_multiarray.py::TestWhere::test_exotic": CONSTANT,
    "test_umath.py::TestSpecialFloats::test_sincos_overlaps": LAST_PLACE,
    "test_umath.py::TestSpecialMethods::test_wrap": STAND_IN,
    "test_umath.py::TestSpecialMethods::test_ufunc_docstring": STAND_IN,
    "test_umath.py::TestAttributes::test_doc": STAND_IN,
    "test_umath.py::TestAdd_newdoc_ufunc::test_ufunc_arg": STAND_IN,
    "test_ufunc.py::TestUfunc::test_pickle": STAND_IN,
    "test_ufunc.py::TestUfunc::test_broadcast": CODE,
    "test_ufunc.py::TestUfunc::test_output_ellipsis": ELLIPSIS,
    "test_indexing.py::TestIndexing::test_memory_order": LAYOUT,
    "test_indexing.py::TestIndexing::test_small_regressions": REFERENCES,
    "test_numeric.py::TestNonarrayArgs::test_std_with_mean_keyword_keepdims_false": LAST_PLACE,
    "test_numeric.py::TestNonarrayArgs::test_var_with_mean_keyword_keepdims_false": LAST_PLACE,
    "test_multiarray.py::TestFlags::test_warnonwrite": FLAG,
    "test_multiarray.py::TestTextSignatures::test_c_func_dispatcher_text_signature": STAND_IN,
    "test_function_base.py::Test_I0::test_non_array": WRAP,
}
"""Prefixes of test names."""


def reason_of(test: str) -> str:
    """Return the reason why a test fails, or "" if it should pass."""
    short = test.rpartition("/")[2]
    return next((reason for name, reason in DIFFERENCES.items() if short.startswith(name)), "")
