"""What machine code is made from, as text, so that its hash is the key of the code and an edit is a miss.

A loop nest is written as a plain Python function over raw pointers and integers. Its source text, with that
of every function it calls and the value of every constant it uses, becomes one self-contained generated
module. Making that text needs no compiler, which is why a warm process starts quickly.
"""

import ast
import functools
import inspect
import reprlib
import textwrap
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import field
from types import CodeType
from typing import Any, Protocol, TypeVar

import numpy as np

from jitkernels.checksums import sha256
from jitkernels.errors import BuildError
from jitkernels.kept import kept_property
from jitkernels.native.parsing import parsed, place_of
from jitkernels.records import record

Function = TypeVar("Function", bound=Callable[..., Any])
Address = Callable[[], int]
APART = "apart"
SELDOM = "seldom"
"""What stands among the flags of functions that are not inlined: number by number, or all lanes at once."""
MOST_BITS = 1024
"""Bits of the largest integers that constants may be worked out with."""


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


@record
class External:
    """A C function of another object or library, called by name from a loop nest.

    `result` and `arguments` are C types as `jitkernels.dtypes` writes them; `address` finds the function
    when the object is loaded and is therefore not part of the key. `source` is what it is made from, if it is ours.
    """

    symbol: str
    result: str
    arguments: tuple[str, ...]
    address: Address = field(compare=False, repr=False)
    source: "Callable[[], Source] | None" = field(default=None, compare=False, repr=False)


@record
class Written:
    """The text that `writer` makes of what is `given`, made when code is: a process that loads code needs none.

    `writer` is a function of one of `WRITERS`, or a method of a record there, and `given` are plain values and such
    records.
    """

    writer: Callable[..., str]
    given: tuple[Any, ...]


def written_by(writer: Callable[..., str], *given: Any) -> Written:
    return Written(writer, given)


WRITERS = tuple(
    f"loops/{name}.py"
    for name in ("tile", "dot_tile", "tile_column", "pack", "attention_panel", "activations", "epilogue_rows")
)
"""Modules that make text of what they are given, of each other, `WRITTEN_OF` and what is in the key of all code."""
WRITTEN_OF = ("maths",)


@record
class IRFunction:
    """A function in LLVM IR, linked into the object and called by name from a loop nest.

    `made` holds the whole definition of `symbol` and the declarations it needs, or says who writes it.
    """

    symbol: str
    result: str
    arguments: tuple[str, ...]
    made: str | Written = field(repr=False)

    @kept_property
    def text(self) -> str:
        return self.made if isinstance(self.made, str) else self.made.writer(*self.made.given)

    def __call__(self, *arguments: Any) -> Any:
        """For type checkers: loop nests call it, Python cannot."""
        raise BuildError(f"{self.symbol}{arguments} exists in compiled loop nests only")


@record
class LaterIR:
    """LLVM IR of a loop nest's body that is made when the object is, and not before: a warm process needs no compiler.

    `key` is all that decides the IR; `make` gives it, for inputs of the dtypes `reading` where these are not the
    kernel's own.
    """

    key: str
    make: Callable[[tuple[str, ...]], str] = field(compare=False, repr=False)
    reading: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What stands for the IR where code is told from other code."""
        return f"; reading {', '.join(self.reading)}\n{self.key}" if self.reading else self.key


@record
class Table:
    """Rows of NumPy's numbers, all of one type: `table[i]` in a function is row i, as a tuple.

    There are as many rows as a power of two, and i counts modulo that: no lane reads what is elsewhere.
    """

    rows: tuple[tuple[Any, ...], ...]

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return self.rows[int(index) & len(self.rows) - 1]


def inlined(*flags: str) -> Callable[[Function], Function]:
    """Mark a function that loop nests call, with the fast-math flags of its own instructions.

    The flags of the caller never reach it: a caller's ``reassoc`` would cancel a range reduction.
    """

    def mark(function: Function) -> Function:
        function.fastmath = flags  # type: ignore[attr-defined]  # functions take any
        return function

    return mark


def apart(*flags: str) -> Callable[[Function], Function]:
    """As `inlined`, for what seldom runs: it stays a function, so that the loops around take no heed of it."""
    return inlined(APART, *flags)


def seldom(*flags: str) -> Callable[[Function], Function]:
    """As `inlined`, for what few numbers need: where code has its own vectors, it is a function of all lanes."""
    return inlined(SELDOM, *flags)


def instruction(word: str) -> Callable[[Function], Function]:
    """Mark a function that is one of LLVM's, to the last bit, which takes its place where a processor has it.

    ``fma``: ``a * b + c`` rounded once. ``ldexp``: ``a * 2**n`` rounded once, of any integer n.
    """

    def mark(function: Function) -> Function:
        function.instruction = word  # type: ignore[attr-defined]  # functions take any
        return function

    return mark


def vectors(begin: int, end: int, lanes: int) -> range:
    """`range(begin, end)`, of whose steps none depends on another: what whole vectors leave is one more, masked.

    Without it the last steps run one by one, which takes long where each takes long. Where `lanes` is 0, as on
    processors that have no masks, they do.
    """
    raise BuildError(f"vectors({begin}, {end}, {lanes}) exists in compiled loop nests only")


def offset(pointer: Any, elements: int) -> Any:
    """`pointer + elements` in C; known to the compiler, so it has no Python body."""
    raise BuildError("offset() exists in compiled loop nests only")


@functools.cache
def _syntax(code: CodeType) -> tuple[str, str, frozenset[str]]:
    """Name and text of a function without decorators, annotations and docstring, so that only code counts.

    And the names in it that are not behind a dot.
    """
    tree, _ = parsed(code)
    tree.decorator_list = []
    tree.returns = None
    for argument in tree.args.args:
        argument.annotation = None
    if ast.get_docstring(tree) is not None:
        tree.body = tree.body[1:] or [ast.Pass()]
    names = frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    return tree.name, ast.unparse(tree), names


class Module:
    """A generated Python module: functions, each in a scope of its own so that equal names may differ."""

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
        """Emit a function and everything it needs, and give it a name of the module's own."""
        try:
            self.parts.append(f"{name} = {self.add(function, flags)}")
        except RecursionError:
            where = place_of(function.__code__)
            raise BuildError(f"{where}: nested too deeply, itself or in what it calls") from None

    def add(self, function: Callable[..., Any], flags: tuple[str, ...]) -> str:
        """Emit a function after everything it needs; returns its name in the generated module."""
        key = id(function), flags
        if key in self.names:
            return self.names[key]
        if not inspect.isfunction(function):
            raise BuildError(f"a loop nest is made from {function!r}: expected a function written with 'def'")
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
        self.parts.append(
            f"def scope_{unique}():\n{scope}\n{unique} = compiled(scope_{unique}(), [{listed}])"
        )
        return unique

    def value(self, function: Callable[..., Any], name: str, value: Any) -> str:
        """The expression that stands for a global or closure value in the generated module."""
        if value is offset or value is vectors:
            return f"language.{value.__name__}"
        if isinstance(value, Table):
            return f"table({[[*map(_number, row)] for row in value.rows]})"
        if isinstance(value, External):
            self.know(self.externals, value)
            return f"external({value.symbol!r}, {value.result!r}, {value.arguments!r})"
        if isinstance(value, IRFunction):
            self.know(self.ir, value)
            return f"external({value.symbol!r}, {value.result!r}, {value.arguments!r})"
        if isinstance(value, np.number | np.bool_) and not isinstance(value, np.complexfloating):
            return _number(value)
        if isinstance(value, float) or (isinstance(value, int) and value.bit_length() <= MOST_BITS):
            return f"float.fromhex({value.hex()!r})" if isinstance(value, float) else repr(value)
        if isinstance(value, type) and issubclass(value, np.generic):
            return f"np.{value.__name__}"
        if inspect.isfunction(value) and hasattr(value, "fastmath"):
            return self.add(value, value.fastmath)
        tree, before = parsed(function.__code__)
        lines = [
            before + node.lineno for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name
        ]
        raise BuildError(
            f"{place_of(function.__code__, min(lines))}: expected a number, a type of NumPy's or a function "
            f"marked @inlined(), got {name} = {type(value).__name__} {reprlib.repr(value)}{_cure(value)}"
        )

    def know(self, known: dict[str, Any], value: External | IRFunction) -> None:
        """One symbol has one meaning in an object."""
        if known.setdefault(value.symbol, value) != value:
            raise BuildError(
                f"two functions of a loop nest are called {value.symbol}: {known[value.symbol]}, {value}"
            )


def _number(value: Any) -> str:
    """One of NumPy's."""
    if value.dtype.kind == "f":
        return f"np.{value.dtype.name}(float.fromhex({float(value).hex()!r}))"
    return f"np.{value.dtype.name}({int(value)})"


def _cure(value: Any) -> str:
    """What an author may have meant by a module such as ``math``, or by a function of it."""
    if inspect.ismodule(value):
        return "; of modules only NumPy's words are known, as in np.sqrt(x): other numbers need names of their own"
    known = inspect.isbuiltin(value) and hasattr(np, value.__name__)
    return f"; NumPy's is written np.{value.__name__}" if known else ""


def references(function: Callable[..., Any], names: AbstractSet[str] | None = None) -> dict[str, Any]:
    """The global and closure names that a function uses, with their values, in a fixed order.

    `names` are those in its syntax that are not behind a dot, if the caller has it at hand.
    """
    if names is None:
        _, _, names = _syntax(function.__code__)
    try:
        found = inspect.getclosurevars(function)
    except ValueError:  # an empty cell
        where = place_of(function.__code__)
        raise BuildError(f"{where} uses a name of the function around it that has no value yet") from None
    return {
        name: value for name, value in sorted({**found.globals, **found.nonlocals}.items()) if name in names
    }


def digest_of(source: Source) -> str:
    """The hash of the text of a source, or of its identity if it has one; it is asked for several times."""
    own: dict[str, Any] = getattr(source, "__dict__", {})
    found: str | None = own.get("_digest")
    if found is None:
        identity = getattr(source, "identity", None)
        text = source.text if identity is None else identity.text
        found = own["_digest"] = sha256(text.encode()).hexdigest()
    return found


def symbol_of(source: Source) -> str:
    """The unique name of the entry of a source: readable part and hash of the text."""
    return f"jk_{source.name}_{digest_of(source)[:16]}"
