"""A range kernel written as a plain Python function over flat arrays, which numba compiles.

A function may use integers and floats, ``range``, ``min``, ``max``, ``abs``, and the names of this module: `real` is
the schema's floating-point type, and scalar functions such as `exp` are those of the table of operations for it. Plain
Python functions that it calls are inlined.
"""

import ast
import copy
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.codegen.numba_functions import PythonFunction, numba_version
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import DeferredIR, references
from jitkernels.core import dtypes
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.errors import BuildError
from jitkernels.microkernels.chunking import grain
from jitkernels.microkernels.range_kernel_of import range_kernel_of

if TYPE_CHECKING:
    from jitkernels.compiler.codegen.numba.spelling import Spelling

FLOATS = ("float32", "float64")
MIN_THREAD_WORK_OR_BYTES = 65536
"""Operations, or bytes, that a thread gets at least."""


@frozen_dataclass
class ScalarFunction:
    """An operation on the schema's floating-point type. `reduces`: it is a sum, or a maximum, in any order.

    `dtype`: another type that it is on.
    """

    name: str
    count: int = 1
    reduces: bool = False
    dtype: str = ""

    def __call__(self, *numbers: Any) -> Any:
        """For type checkers: printed loops call it, Python cannot."""
        raise BuildError(f"{self.name}{numbers} exists in compiled range kernels only")

    def spelled(self, spelling: "Spelling", dtype: str) -> str:
        """The function's name for a dtype."""
        from jitkernels.compiler.codegen.numba.python_accumulators import PrintedReduction

        names, dtype = [f"a{i}" for i in range(self.count)], self.dtype or dtype
        if self.reduces:
            call = PrintedReduction(self.name, dtype, "").combined(spelling, *names)
        else:
            call = spelling.elementwise(self.name, names, [dtype] * self.count, dtype)
        return call.partition("(")[0]


exp, log, sqrt, rint = map(ScalarFunction, ("exp", "log", "sqrt", "rint"))
add = ScalarFunction("sum", 2, reduces=True)
larger = ScalarFunction("max", 2, reduces=True)
maximum, minimum = ScalarFunction("maximum", 2), ScalarFunction("minimum", 2)
sin_float64, cos_float64 = ScalarFunction("sin", dtype="float64"), ScalarFunction("cos", dtype="float64")
real: Any = np.float64
"""The schema's floating-point type."""


def usable(attr: KernelAttr) -> bool | str:
    """Whether numba is there, and knows the schema's type."""
    dtype = attr.fields()["dtype"]
    return (numba_version() != "absent" or "numba is not installed") if dtype in FLOATS else f"numba has no {dtype}"


def numba_kernel(
    attr: KernelAttr,
    body: Callable[..., None],
    along: str,
    *,
    parallel: bool = False,
    in_place: bool = False,
    **options: Any,
) -> RangeKernel:
    """The range kernel of a Python function over `begin` to `end`, a part of the extent `along`.

    The function takes arguments of the schema by name; those of a parameter marked `RowArguments` are its attributes.
    `in_place`: results may lie over what is read. `options`: `check` and `workspace` of `RangeKernel`, by name, the
    latter of the schema's type, and `block`, of threads, if it is not the usual one.
    """
    from jitkernels.compiler.api.traced_kernel import compiler

    function = _function(attr, body, in_place=in_place, scratch="workspace" in options)
    key = f"{function.text}\n; by numba {numba_version()} and the compiler {compiler()}"
    return range_kernel_of(
        attr,
        f"{attr.name}_{attr.fields()['dtype']}_numba",
        DeferredIR(key, lambda _: _glue(function)),
        extent=along,
        parallel=parallel,
        **{
            "workspace_dtype": attr.fields()["dtype"] if "workspace" in options else "",
            **options,
            "block": (options.get("block") or _block(attr, along)) if parallel else 1,
        },
    )


def threads_along(along: str) -> Callable[[Any], list[dict[str, Any]]]:
    """Make the `variants` of a kernel: one thread, and several where two of them get two blocks of the extent each."""

    def variants(attr: KernelAttr) -> list[dict[str, Any]]:
        return [{}, {"parallel": True}] if attr.fields()[along] // _block(attr, along) >= 4 else [{}]

    return variants


def _block(attr: KernelAttr, along: str) -> int:
    return grain(attr.operations() / max(attr.fields()[along], 1), MIN_THREAD_WORK_OR_BYTES)


class RowArguments:
    """Marks a parameter whose attributes are arguments of the schema: sizes, and what a kernel reads once."""

    def __getattr__(self, name: str) -> Any:
        raise BuildError(f"{name} exists in compiled range kernels only")


class _Inlined(ast.NodeTransformer):
    """Replaces the attributes of some parameters by the arguments that they name."""

    def __init__(self, parameters: set[str]) -> None:
        self.parameters = parameters

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:  # a name of the `ast` module
        if isinstance(node.value, ast.Name) and node.value.id in self.parameters:
            return ast.Name(node.attr, node.ctx)
        return node


def _function(attr: KernelAttr, body: Callable[..., None], *, in_place: bool, scratch: bool) -> PythonFunction:
    from jitkernels.codegen.function_ast import parsed
    from jitkernels.codegen.python.simd_library import Library
    from jitkernels.compiler.codegen.core import module_text
    from jitkernels.compiler.codegen.numba.spelling import Spelling

    dtype, signature = attr.fields()["dtype"], attr.signature()
    own = ("workspace",) if scratch else ()
    names = (*signature.names[: len(signature.c_arguments)], *own, "begin", "end")
    tree, _ = parsed(body.__code__)
    sizes = {name for name, kind in inspect.get_annotations(body).items() if kind is RowArguments}
    unknown = {argument.arg for argument in tree.args.args} - sizes - {*names}
    if unknown:
        raise BuildError(f"{body.__qualname__} takes {', '.join(sorted(unknown))}: expected some of {', '.join(names)}")
    tree.decorator_list, tree.returns = [], None
    tree.args.args = [ast.arg(name) for name in names]
    _Inlined(sizes).visit(tree)
    spelling, callees = Spelling(Library(alone={})), dict[str, ast.FunctionDef]()
    constants = _constants(body, spelling, dtype, callees)
    tree.body = [*callees.values(), *tree.body]  # numba inlines the functions in a function
    text = "\n".join([*constants, ast.unparse(tree)])
    kinds = [_kind(kind) for kind in (*signature.c_arguments, *(f"{dtype}*" for _ in own), "int64", "int64")]
    alone = frozenset(
        name for name, kind in zip(names, signature.c_arguments, strict=False) if "restrict" in kind and not in_place
    ) | {*own}
    definitions = module_text.unit_text(spelling.library, [*spelling.texts.values()])
    return PythonFunction(
        "body.python", text, tuple(zip(names, kinds, strict=True)), alone, spelling.functions, definitions
    )


def _constants(
    function: Callable[..., Any], spelling: "Spelling", dtype: str, callees: dict[str, ast.FunctionDef]
) -> dict[str, None]:
    """Definitions of the names in a function and its callees; the latter go to `callees`, innermost first."""
    from jitkernels.codegen.function_ast import parsed

    found: dict[str, None] = {}
    for name, value in references(function).items():
        if isinstance(value, FunctionType):
            if name not in callees:
                found |= _constants(value, spelling, dtype, callees)
                tree = copy.deepcopy(parsed(value.__code__)[0])
                tree.decorator_list, tree.returns, tree.name = [], None, name
                for argument in tree.args.args:
                    argument.annotation = None
                callees[name] = tree
        elif value is not RowArguments:
            found[f"{name} = {_value(value, spelling, dtype)}"] = None
    return found


def _kind(text: str) -> str:
    kind = dtypes.c_type(text)
    return f"{kind.element.name}*" if kind.is_pointer and kind.element else "int64"


def _value(value: Any, spelling: "Spelling", dtype: str) -> str:
    """What a name of the function stands for."""
    if value is real:
        return dtype
    if isinstance(value, ScalarFunction):
        return value.spelled(spelling, dtype)
    if isinstance(value, type) and issubclass(value, np.generic):
        return value.__name__
    if isinstance(value, bool | int | float):
        return repr(value)
    raise BuildError(f"a printed loop refers to {value!r}: expected a number, a type, or a scalar function")


def _glue(function: PythonFunction) -> str:
    """LLVM IR of the body, which calls what numba makes of the function."""
    arguments = [("ptr" if kind.endswith("*") else "i64", f"%a{i}") for i, (_, kind) in enumerate(function.arguments)]
    listed = ", ".join(f"{kind} {name}" for kind, name in arguments)
    return "\n".join(
        [
            f"define i64 @body({listed}) alwaysinline {{",
            "  %result = alloca ptr",
            "  %raised = alloca ptr",
            f'  %status = call i32 @"{function.symbol}"(ptr %result, ptr %raised, {listed})',
            "  ret i64 0\n}",
            function.declaration(),
            function.comment(),
        ]
    )
