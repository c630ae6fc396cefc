"""The loop of ``numpy.vectorize``: a function of elements, applied to those of broadcast arrays.

NumPy calls the function once for each element, with Python's numbers. Here the loop is ordinary Python, which is traced
as that of a user is.
"""

import functools
import linecache
import types

from jitkernels.compiler.capture.rewrite.rewrite_function import inside, rewrite_code

PYTHON_NUMBER = "float({0}) if {1} == 'f' else complex({0}) if {1} == 'c' else bool({0}) if {1} == 'b' else int({0})"
"""The element as Python's number, by the kind of its dtype."""


@functools.cache
def elementwise_code(count: int, *, by_scalar: bool) -> types.CodeType:
    """The rewritten code of the loop over `count` arrays, with the globals ``np``, ``function`` and ``cast``.

    `by_scalar`: NumPy's scalar of the first element decides the dtype, which is not that for Python's number.
    """
    arrays, kinds, elements = ([f"{name}{number}" for number in range(count)] for name in "xke")
    arguments = ", ".join(PYTHON_NUMBER.format(*names) for names in zip(elements, kinds, strict=True))
    flat = [f"{name}.ravel()" for name in arrays]
    first = ", ".join(f"{one}[0]" for one in flat)
    loop = f"for e0 in {flat[0]}" if count == 1 else f"for {', '.join(elements)} in zip({', '.join(flat)})"
    text = "\n".join([
        f"def vectorized({', '.join(arrays)}):",
        *([f"    {', '.join(arrays)} = np.broadcast_arrays({', '.join(arrays)})"] if count > 1 else []),
        *(f"    {kind} = {name}.dtype.kind" for kind, name in zip(kinds, arrays, strict=True)),
        "    if x0.size == 0:",
        "        raise ValueError('cannot call `vectorize` on size 0 inputs unless `otypes` is set')",
        f"    result = np.array([function({arguments}) {loop}]).reshape(x0.shape)",
        *([f"    result = cast(result, np.asarray(function({first})).dtype)"] if by_scalar else []),
        "    return result\n",
    ])  # fmt: skip
    file = f"{__file__}:{count}{'s' * by_scalar}"  # of the package: tracing does not check what it reads
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    rewritten = rewrite_code(inside(compile(text, file, "exec", dont_inherit=True), "vectorized"))
    assert rewritten is not None, "the text above has a branch and a loop"
    return rewritten
