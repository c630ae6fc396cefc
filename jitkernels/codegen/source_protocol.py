"""Sources of machine code: texts whose hash is the cache key, so that an edit is a miss.

A range kernel is a plain Python function over raw pointers and integers. Its source text, with that of every function
it calls and the value of every constant it uses, becomes one self-contained generated module. Generating that text
needs no compiler, which is why a warm process starts quickly.
"""

import ast
import copy
import functools
import inspect
import reprlib
import textwrap
import warnings
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import field
from types import CodeType
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from jitkernels.codegen.function_ast import parsed, place_of, syntax_of
from jitkernels.codegen.parameters import struct_fields, used_fields
from jitkernels.core.cached_property import unlocked_cached_property
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.core.hashing import sha256
from jitkernels.errors import BuildError

Function = TypeVar("Function", bound=Callable[..., Any])
Address = Callable[[], int]
NOINLINE = "noinline"
COLD = "cold"
"""LLVM's function attributes, as flags of functions: not inlined and called lane by lane; a slow path of all lanes."""
MAX_BITS = 1024
"""Bits of the largest integers in constant folding."""


class Source(Protocol):
    """Anything that can become one C function, and knows how.

    name: for people, and the readable part of the symbol. text: everything that decides the code, so that
    its hash is the key of what was built from it. externals: what the code links to. suffix: the form that
    `object_code` gives, ``.o`` for an object file or ``.so`` for a shared library, either of which defines
    the symbol. has_range: whether it also defines the symbol with ``_range`` behind it, which takes the same
    arguments, a begin and an end, and runs that part without threads of its own.
    """

    @property
    def name(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def externals(self) -> "tuple[External, ...]": ...

    @property
    def suffix(self) -> str: ...

    @property
    def has_range(self) -> bool: ...

    def object_code(self, symbol: str) -> bytes:
        """Build it; `symbol` is what its entry is called. Raises BuildError."""


@frozen_dataclass
class External:
    """A C function of another object or library, called by name from a range kernel.

    `result` and `arguments` are C types as `jitkernels.core.dtypes` writes them; `address` finds the function
    when the object is loaded and is therefore not part of the key. `source` is what it is made from, if it is ours.
    `python`: see `IRFunction`.
    """

    symbol: str
    result: str
    arguments: tuple[str, ...]
    address: Address = field(compare=False, repr=False)
    source: "Callable[[], Source] | None" = field(default=None, compare=False, repr=False)
    python: Callable[..., Any] | None = field(default=None, compare=False, repr=False)

    def __call__(self: "External | IRFunction", *arguments: Any) -> Any:
        """Range kernels call it; Python can where it has a substitute."""
        if self.python is not None:
            return self.python(*arguments)
        raise BuildError(f"{self.symbol}{arguments} exists in compiled range kernels only")


@frozen_dataclass
class Written:
    """A text that `writer` generates from `arguments`, at build time only: a process that loads code does not.

    `writer`: a function of one of `WRITERS`, or a method of a struct there; `arguments`: plain values and such structs.
    """

    writer: Callable[..., str]
    arguments: tuple[Any, ...]


def written_by(writer: Callable[..., str], *arguments: Any) -> Written:
    """A text that `writer` generates from `arguments` at build time."""
    return Written(writer, arguments)


WRITERS = tuple(
    f"microkernels/{name}.py"
    for name in (
        *("gemm/microkernel", "gemm/dot_microkernel", "gemm/microkernel_column", "gemm/packing"),
        *("attention/online_softmax", "epilogue/activations", "epilogue/bias_activation_row"),
        *("fft/butterfly", "fft/passes"),
        "sequence/gate_vectors",
        *(
            "convolution/tile",
            "convolution/tile_text",
            "convolution/int8_tile",
            *("convolution/pool_tile", "convolution/pool_columns"),
            "convolution/shared_vector_tile",
            "convolution/winograd_transform",
        ),
    )
)
"""Modules whose generated text depends on arguments, each other, `WRITTEN_OF` and the compiler only."""
WRITTEN_OF = ("microkernels/maths",)


@frozen_dataclass
class IRFunction:
    """A function in LLVM IR, linked into the object and called by name from a range kernel.

    `definition`: the definition of `symbol` and the declarations it needs, or its writer. `python`: what Python calls
    in its place, where functions that call it are evaluated without being compiled.
    """

    symbol: str
    result: str
    arguments: tuple[str, ...]
    definition: str | Written = field(repr=False)
    python: Callable[..., Any] | None = field(default=None, compare=False, repr=False)

    @unlocked_cached_property
    def text(self) -> str:
        return (
            self.definition if isinstance(self.definition, str) else self.definition.writer(*self.definition.arguments)
        )

    __call__ = External.__call__


@frozen_dataclass
class DeferredIR:
    """LLVM IR of a kernel's body that is generated at build time: a warm process needs no compiler.

    `key`: all that determines the IR; `make` returns it, for inputs of dtypes `reading` if these are not the kernel's
    own.
    """

    key: str
    make: Callable[[tuple[str, ...]], str] = field(compare=False, repr=False)
    reading: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The cache key of the IR."""
        return f"; reading {', '.join(self.reading)}\n{self.key}" if self.reading else self.key


@frozen_dataclass
class Table:
    """Rows of NumPy scalars of one type: `table[i]` in a function is row i, as a tuple.

    The number of rows is a power of two, and i counts modulo it: no lane loads out of bounds.
    """

    rows: tuple[tuple[Any, ...], ...]

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return self.rows[int(index) & len(self.rows) - 1]


class Range(NamedTuple):
    """The part of the extent that a body computes."""

    begin: int
    end: int


def inlined(*flags: str) -> Callable[[Function], Function]:
    """Mark a function that range kernels call, with the fast-math flags of its own instructions.

    The flags of the caller never reach it: a caller's ``reassoc`` would cancel a range reduction.
    """

    def mark(function: Function) -> Function:
        function.fastmath = flags  # type: ignore[attr-defined]  # functions take any
        return function

    return mark


def noinline(*flags: str) -> Callable[[Function], Function]:
    """As `inlined`, for cold code: it stays a function, so that it takes no registers from the loops around."""
    return inlined(NOINLINE, *flags)


def cold(*flags: str) -> Callable[[Function], Function]:
    """As `inlined`, for a slow path that few elements need: in vectorized code a noinline function of all lanes."""
    return inlined(COLD, *flags)


def apart(*flags: str) -> Callable[[Function], Function]:
    """Deprecated name of `noinline`."""
    warnings.warn("the decorator apart() is called noinline()", DeprecationWarning, stacklevel=2)
    return noinline(*flags)


def seldom(*flags: str) -> Callable[[Function], Function]:
    """Deprecated name of `cold`."""
    warnings.warn("the decorator seldom() is called cold()", DeprecationWarning, stacklevel=2)
    return cold(*flags)


def instruction(word: str) -> Callable[[Function], Function]:
    """Mark a function that equals an LLVM intrinsic bit by bit, which replaces it where the processor has it.

    ``fma``: ``a * b + c`` rounded once. ``ldexp``: ``a * 2**n`` rounded once, of any n. ``minimum``, ``maximum``: NaN
    where an operand is; of two selections of scalars in their place LLVM makes a branch, which data mispredict.
    """

    def mark(function: Function) -> Function:
        function.instruction = word  # type: ignore[attr-defined]  # functions take any
        return function

    return mark


def vectors(begin: int, end: int, lanes: int) -> range:
    """`range(begin, end)` with independent iterations: the remainder is one more masked vector.

    Without it the remainder runs one by one, which is slow for expensive iterations. With `lanes` 0, on processors
    without masks, it does.
    """
    raise BuildError(f"vectors({begin}, {end}, {lanes}) exists in compiled range kernels only")


def offset(pointer: Any, elements: int) -> Any:
    """`pointer + elements` in C; an intrinsic without a Python body."""
    raise BuildError("offset() exists in compiled range kernels only")


def high_product(a: Any, b: Any) -> Any:
    """The upper half of the product of two unsigned integers of one type; an intrinsic without a Python body."""
    raise BuildError("high_product() exists in compiled range kernels only")


@functools.cache
def _syntax(code: CodeType) -> tuple[str, str, frozenset[str]]:
    """Name and text of a function without decorators, annotations and docstring, so that only code counts.

    And the names in it that are not behind a dot.
    """
    tree = copy.copy(syntax_of(code)[0])  # which LLVM IR is written from
    tree.decorator_list, tree.returns, tree.args = [], None, copy.copy(tree.args)
    tree.args.args = [ast.arg(argument.arg) for argument in tree.args.args]
    if ast.get_docstring(tree) is not None:
        tree.body = tree.body[1:] or [ast.Pass()]
    names = frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    return tree.name, ast.unparse(tree), names


class Module:
    """A generated Python module of functions, each in a scope of its own so that names may repeat."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.names: dict[tuple[int, tuple[str, ...]], str] = {}
        self.kept: list[Any] = []
        self.externals: dict[str, External] = {}
        self.ir: dict[str, IRFunction] = {}

    @property
    def text(self) -> str:
        return "\n\n".join(self.parts) + "\n"

    def define(self, name: str, function: Callable[..., Any], flags: tuple[str, ...]) -> None:
        """Emit a function and its dependences under a name of the module."""
        try:
            self.parts.append(f"{name} = {self.add(function, flags)}")
        except RecursionError:
            where = place_of(function.__code__)
            raise BuildError(f"{where}: nested too deeply, itself or in what it calls") from None

    def add(self, function: Callable[..., Any], flags: tuple[str, ...]) -> str:
        """Emit a function after its dependences; return its name in the generated module."""
        key = id(function), flags
        if key in self.names:
            return self.names[key]
        if not inspect.isfunction(function):
            raise BuildError(f"a range kernel is made from {function!r}: expected a function written with 'def'")
        bare, text, _ = _syntax(function.__code__)
        unique = self.names[key] = f"{bare}_{len(self.names)}"
        self.kept.append(function)
        bindings = [
            f"{name} = {self.value(function, name, value)}"
            for name, value in references(function).items()
            if value is not np
        ]
        scope = textwrap.indent("\n".join([*bindings, text, f"return {bare}"]), "    ")
        listed = ", ".join(map(repr, (*flags, *(getattr(function, "instruction", "").split()))))
        self.parts.append(f"def scope_{unique}():\n{scope}\n{unique} = compiled(scope_{unique}(), [{listed}])")
        return unique

    def value(self, function: Callable[..., Any], name: str, value: Any) -> str:
        """The expression of a global or closure value in the generated module."""
        if value is offset or value is vectors:
            return f"language.{value.__name__}"
        if isinstance(value, Table):
            return f"table({[[*map(_number, row)] for row in value.rows]})"
        if type(value) is tuple:
            return f"({', '.join(self.value(function, name, item) for item in value)},)"
        if isinstance(value, External):
            self.know(self.externals, value)
            return f"external({value.symbol!r}, {value.result!r}, {value.arguments!r})"
        if isinstance(value, IRFunction):
            self.know(self.ir, value)
            return f"external({value.symbol!r}, {value.result!r}, {value.arguments!r})"
        if isinstance(value, np.number | np.bool_) and not isinstance(value, np.complexfloating):
            return _number(value)
        if isinstance(value, float) or (isinstance(value, int) and value.bit_length() <= MAX_BITS):
            return f"float.fromhex({value.hex()!r})" if isinstance(value, float) else repr(value)
        if isinstance(value, type) and issubclass(value, np.generic):
            return f"np.{value.__name__}"
        fields = struct_fields(value)
        if fields is not None:
            return f"struct({value.__name__!r}, {[*fields]})"
        if inspect.isfunction(value) and hasattr(value, "fastmath"):
            return self.add(value, value.fastmath)
        used = used_fields(value, function.__code__)
        if used is not None:
            return f"fields({', '.join(f'{field}={self.value(function, name, used[field])}' for field in used)})"
        tree, before = parsed(function.__code__)
        lines = [before + node.lineno for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name]
        raise BuildError(
            f"{place_of(function.__code__, min(lines))}: expected a number, a type of NumPy's or a function "
            f"marked @inlined(), got {name} = {type(value).__name__} {reprlib.repr(value)}{_cure(value)}"
        )

    def know(self, known: dict[str, Any], value: External | IRFunction) -> None:
        """Register a symbol. Raises BuildError if it has another meaning already."""
        if known.setdefault(value.symbol, value) != value:
            raise BuildError(
                f"two functions of a range kernel are called {value.symbol}: {known[value.symbol]}, {value}"
            )


def _number(value: Any) -> str:
    """The expression of a NumPy scalar."""
    if value.dtype.kind == "f":
        return f"np.{value.dtype.name}(float.fromhex({float(value).hex()!r}))"
    return f"np.{value.dtype.name}({int(value)})"


def _cure(value: Any) -> str:
    """A hint for a module such as ``math``, or one of its functions."""
    if inspect.ismodule(value):
        return "; of modules only NumPy's words are known, as in np.sqrt(x): other numbers need names of their own"
    known = inspect.isbuiltin(value) and hasattr(np, value.__name__)
    return f"; NumPy's is written np.{value.__name__}" if known else ""


def references(function: Callable[..., Any], names: AbstractSet[str] | None = None) -> dict[str, Any]:
    """The global and closure names that a function uses, with their values, in a fixed order.

    `names`: the free names of its syntax, if the caller has them.
    """
    if names is None:
        _, _, names = _syntax(function.__code__)
    try:
        result = inspect.getclosurevars(function)
    except ValueError:  # an empty cell
        where = place_of(function.__code__)
        raise BuildError(f"{where} uses a name of the function around it that has no value yet") from None
    return {name: value for name, value in sorted({**result.globals, **result.nonlocals}.items()) if name in names}


def digest_of(source: Source) -> str:
    """The hash of a source's bytecode key or text; cached."""
    own: dict[str, Any] = getattr(source, "__dict__", {})
    result: str | None = own.get("_digest")
    if result is None:
        identity = getattr(source, "identity", None)
        text = source.text if identity is None else identity.text
        result = own["_digest"] = sha256(text.encode()).hexdigest()
    return result


def symbol_of(source: Source) -> str:
    """The unique symbol of a source's entry: its name and a hash of its text."""
    return f"jk_{source.name}_{digest_of(source)[:16]}"
