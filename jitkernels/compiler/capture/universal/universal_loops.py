"""Loops of universal functions over the elements, or the rows, of broadcast arrays, as rewritten code.

They are ordinary nested loops of Python, which are traced as those of a user are: nests of rows are vectorized.
"""

import functools
import linecache
import types
from collections.abc import Sequence

from jitkernels.compiler.capture.rewrite.rewrite_function import inside, rewrite_code

FOLD = "for k in range(first, x0.shape[0]):"
"""The loop of a fold."""


@functools.cache
def elementwise_loops(inputs: int, outputs: int, ndim: int) -> types.CodeType:
    """The code of ``loops(x0, ..., o0, ...)``: each element of the outputs is a result of ``function``."""
    xs, os = _names("x", inputs), _names("o", outputs)
    at = _index(ndim)
    called = f"function({', '.join(f'{x}[{at}]' for x in xs)})"
    statement = f"{', '.join(f'{o}[{at}]' for o in os)} = {called}"
    return _code("elementwise", [*xs, *os], ndim, statement)


@functools.cache
def row_loops(inputs: int, outputs: int, ndim: int) -> types.CodeType:
    """The code of ``loops(x0, ..., o0, ...)``: ``function`` writes to its last arguments, the rows of the outputs."""
    names = [*_names("x", inputs), *_names("o", outputs)]
    at = f"[{_index(ndim)}]" if ndim else ""
    return _code("rows", names, ndim, f"function({', '.join(name + at for name in names)})")


@functools.cache
def fold_loops(ndim: int, *, accumulates: bool) -> types.CodeType:
    """The code of ``loops(x0, o0)``: the function of the result so far and the next row, or element, along axis 0.

    The result so far is `o0`, of `ndim` dimensions, or its previous row if it accumulates, which begins with the first.
    """
    at = _index(ndim)
    inner = f", {at}" if ndim else ""
    if accumulates:
        statement = f"o0[k{inner}] = function(o0[k - 1{inner}], x0[k{inner}])"
        return _code("accumulate", ["x0", "o0"], ndim, statement, folds=True)
    if ndim:
        return _code("reduce", ["x0", "o0"], ndim, f"o0[{at}] = function(o0[{at}], x0[k{inner}])", folds=True)
    lines = ["total = o0[()]", FOLD, "    total = function(total, x0[k])", "o0[()] = total"]  # a number in a register
    return _compiled("reduce2.0", ["def loops(x0, o0):", *(f"    {line}" for line in lines)])


def _names(letter: str, count: int) -> list[str]:
    return [f"{letter}{number}" for number in range(count)]


def _index(ndim: int) -> str:
    return ", ".join(_names("i", ndim))


def _code(kind: str, arguments: Sequence[str], ndim: int, statement: str, *, folds: bool = False) -> types.CodeType:
    lines = [f"def loops({', '.join(arguments)}):"]
    extents = [f"{arguments[0]}.shape[{axis + folds}]" for axis in range(ndim)]
    if folds:
        lines.append(f"    {FOLD}")
    lines += [
        f"{' ' * 4 * (1 + folds + axis)}for i{axis} in range({extent}):" for axis, extent in enumerate(extents)
    ]  # fmt: skip
    lines.append(f"{' ' * 4 * (1 + folds + ndim)}{statement}")
    return _compiled(f"{kind}{len(arguments)}.{ndim}", lines)


def _compiled(name: str, lines: Sequence[str]) -> types.CodeType:
    text = "\n".join(lines) + "\n"
    file = f"{__file__}:{name}"  # of the package: tracing does not check what it reads
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    code = inside(compile(text, file, "exec", dont_inherit=True), "loops")
    return rewrite_code(code) or code
