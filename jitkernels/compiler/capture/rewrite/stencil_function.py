"""The Python function of a ``numba.stencil``: a loop over the elements whose neighborhood lies in the array.

numba indexes the arrays of a kernel relative to an element. Here the source of the kernel gets the indices of the
element as parameters, and each index of an array its element's; the loops around it are ordinary Python.
"""

import ast
import linecache
import types
from typing import Any

import numpy as np

from jitkernels.compiler.capture.rewrite.rewrite_function import bare, inside, source_tree
from jitkernels.errors import BuildError

FACTORY = "_stencil_factory"


def stencil_function(stencil: Any) -> types.FunctionType | None:
    """The function of a stencil, the same one for each call; None for kernels that are not rewritten."""
    found = vars(stencil).get("_jitkernels_function", False)
    if found is False:
        try:
            found = _function(stencil)
        except BuildError:
            found = None
        stencil._jitkernels_function = found
    return found  # type: ignore[no-any-return]


def _function(stencil: Any) -> types.FunctionType:
    kernel = stencil.kernel_ir.func_id.func
    tree = bare(source_tree(kernel.__code__))
    names = [argument.arg for argument in tree.args.args]
    rewriter = _RelativeIndices([name for name in names if name not in stencil.options.get("standard_indexing", ())])
    rewriter.visit(tree)
    hood = stencil.options.get("neighborhood") or rewriter.neighborhood()
    if kernel.__closure__ or not names or any(low > 0 or high < 0 for low, high in hood):
        raise BuildError("a kernel with free variables, or around other elements than its own")
    numbers = [f"_i{axis}" for axis in range(len(hood))]
    tree.args.args += [ast.arg(number) for number in numbers]
    text = _text(kernel.__name__, ast.unparse(ast.fix_missing_locations(tree)), names, hood, stencil)
    file = f"<stencil {kernel.__code__.co_filename}:{kernel.__code__.co_firstlineno}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    code = inside(inside(compile(text, file, "exec", dont_inherit=True), FACTORY), kernel.__name__)
    return types.FunctionType(code, kernel.__globals__, kernel.__name__, None, (types.CellType(np),))


def _text(name: str, kernel: str, names: list[str], hood: Any, stencil: Any) -> str:
    """The source: the kernel, its values where the neighborhood fits, and the border."""
    axes, first = range(len(hood)), names[0]
    call = f"{name}_kernel({', '.join(names)}, {', '.join(f'_i{axis}' for axis in axes)})"
    for axis in reversed(axes):
        low, high = hood[axis]
        call = f"[{call} for _i{axis} in range({-low}, {first}.shape[{axis}] - {high})]"
    inside = ", ".join(f"{-low}:{first}.shape[{axis}] - {high}" for axis, (low, high) in enumerate(hood))
    border = stencil.options.get("cval", 0)
    lines = [
        f"def {FACTORY}(_np):",
        f"    def {name}({', '.join(names)}):",
        *(f"        {line}" for line in kernel.replace(f"def {name}(", f"def {name}_kernel(", 1).splitlines()),
        f"        _values = _np.array({call})",
        f"        _result = _np.full({first}.shape, {_literal(border)}, _values.dtype)",
        f"        _result[{inside}] = _values",
        "        return _result",
        f"    return {name}",
    ]
    return "\n".join(lines) + "\n"


def _literal(number: Any) -> str:
    text = repr(number.item() if isinstance(number, np.generic) else number)
    return f"float({text!r})" if text in ("nan", "inf", "-inf") else text


class _RelativeIndices(ast.NodeTransformer):
    """Adds the element's indices to all indices of some arrays; notes the constant ones."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.offsets: list[tuple[int, ...] | None] = []

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.value, ast.Name) or node.value.id not in self.names:
            return node
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(isinstance(part, ast.Slice) for part in parts) or not isinstance(node.ctx, ast.Load):
            raise BuildError("a stencil of slices")
        self.offsets.append(_constants(parts))
        indices: list[ast.expr] = [
            ast.BinOp(ast.Name(f"_i{axis}", ast.Load()), ast.Add(), part) for axis, part in enumerate(parts)
        ]
        whole = indices[0] if len(indices) == 1 else ast.Tuple(indices, ast.Load())
        return ast.copy_location(ast.Subscript(node.value, whole, node.ctx), node)

    def neighborhood(self) -> list[tuple[int, int]]:
        """The least and the largest offset along each axis. Raises BuildError where some are not constant."""
        known = [offset for offset in self.offsets if offset is not None]
        if not known or len(known) < len(self.offsets) or len({len(offset) for offset in known}) > 1:
            raise BuildError("a stencil whose neighborhood is not constant")
        return [(min(0, *along), max(0, *along)) for along in zip(*known, strict=True)]


def _constants(parts: list[ast.expr]) -> tuple[int, ...] | None:
    try:
        values = tuple(ast.literal_eval(part) for part in parts)
    except ValueError:
        return None
    return values if all(type(value) is int for value in values) else None
