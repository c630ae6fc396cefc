"""What machine code is made from, as text, so that its hash is the key of the code and an edit is a miss.

A loop nest is written as a plain Python function over raw pointers and integers. Its source text, with that
of every function it calls and the value of every constant it uses, becomes one self-contained generated
module. Making that text needs no compiler, which is why a warm process starts quickly.
"""

import ast
import functools
import hashlib
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Protocol, TypeVar

import numpy as np

from jitkernels.errors import BuildError

Function = TypeVar("Function", bound=Callable[..., Any])
Address = Callable[[], int]


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


@dataclass(frozen=True)
class External:
    """A C function of another object or library, called by name from a loop nest.

    `result` and `arguments` are C types as `jitkernels.dtypes` writes them; `address` finds the function
    when the object is loaded and is therefore not part of the key.
    """

    symbol: str
    result: str
    arguments: tuple[str, ...]
    address: Address = field(compare=False, repr=False)


@dataclass(frozen=True)
class IRFunction:
    """A function in LLVM IR, linked into the object and called by name from a loop nest.

    `text` holds the whole definition of `symbol` and the declarations it needs.
    """

    symbol: str
    result: str
    arguments: tuple[str, ...]
    text: str = field(repr=False)

    def __call__(self, *arguments: Any) -> Any:
        """For type checkers: loop nests call it, Python cannot."""
        raise BuildError(f"{self.symbol}{arguments} exists in compiled loop nests only")


def inlined(*flags: str) -> Callable[[Function], Function]:
    """Mark a function that loop nests call, with the fast-math flags of its own instructions.

    The flags of the caller never reach it: a caller's ``reassoc`` would cancel a range reduction.
    """

    def mark(function: Function) -> Function:
        function.fastmath = flags  # type: ignore[attr-defined]
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
def _syntax(code: CodeType) -> tuple[str, str]:
    """Name and text of a function without decorators, annotations and docstring, so that only code counts."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(code))).body[0]
    except OSError:
        raise BuildError(
            f"the text of {code.co_qualname} is not in a file: a loop nest is made from it"
        ) from None
    if not isinstance(tree, ast.FunctionDef):
        raise BuildError(f"{code.co_qualname} is not written with 'def'")
    tree.decorator_list = []
    tree.returns = None
    for argument in tree.args.args:
        argument.annotation = None
    if ast.get_docstring(tree) is not None:
        tree.body = tree.body[1:] or [ast.Pass()]
    return tree.name, ast.unparse(tree)


class Module:
    """A generated Python module: functions, each in a scope of its own so that equal names may differ."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.names: dict[int, str] = {}
        self.kept: list[Any] = []
        self.externals: dict[str, External] = {}
        self.ir: dict[str, IRFunction] = {}

    @property
    def text(self) -> str:
        return "\n\n".join(self.parts) + "\n"

    def define(self, name: str, function: Callable[..., Any], flags: tuple[str, ...]) -> None:
        """Emit a function and everything it needs, and give it a name of the module's own."""
        self.parts.append(f"{name} = {self.add(function, flags)}")

    def add(self, function: Callable[..., Any], flags: tuple[str, ...]) -> str:
        """Emit a function after everything it needs; returns its name in the generated module."""
        if id(function) in self.names:
            return self.names[id(function)]
        bare, text = _syntax(function.__code__)
        bindings = [
            f"{name} = {self.value(name, value)}" for name, value in _references(function) if name != "np"
        ]
        unique = f"{bare}_{len(self.names)}"
        self.names[id(function)] = unique
        self.kept.append(function)
        scope = textwrap.indent("\n".join([*bindings, text, f"return {bare}"]), "    ")
        listed = ", ".join(map(repr, flags))
        self.parts.append(
            f"def scope_{unique}():\n{scope}\n{unique} = compiled(scope_{unique}(), [{listed}])"
        )
        return unique

    def value(self, name: str, value: Any) -> str:
        """The expression that stands for a global or closure value in the generated module."""
        if value is offset or value is vectors:
            return f"language.{value.__name__}"
        if isinstance(value, External):
            self.externals[value.symbol] = value
            return f"external({value.symbol!r}, {value.result!r}, {value.arguments!r})"
        if isinstance(value, IRFunction):
            self.ir[value.symbol] = value
            return f"external({value.symbol!r}, {value.result!r}, {value.arguments!r})"
        if isinstance(value, np.generic):
            return (
                f"np.{value.dtype.name}(float.fromhex({float(value).hex()!r}))"
                if value.dtype.kind == "f"
                else (f"np.{value.dtype.name}({int(value)})")
            )
        if isinstance(value, bool | int | float):
            return f"float.fromhex({value.hex()!r})" if isinstance(value, float) else repr(value)
        if isinstance(value, type) and issubclass(value, np.generic):
            return f"np.{value.__name__}"
        if inspect.isfunction(value) and hasattr(value, "fastmath"):
            return self.add(value, value.fastmath)
        raise BuildError(
            f"a loop nest uses {name!r} = {value!r}, which is neither a constant nor an inlined function"
        )


def _references(function: Callable[..., Any]) -> list[tuple[str, Any]]:
    """The global and closure names that a function uses, with their values, in a fixed order."""
    found = inspect.getclosurevars(function)
    return sorted({**found.globals, **found.nonlocals}.items())


def symbol_of(source: Source) -> str:
    """The unique name of the entry of a source: readable part and hash of the text."""
    return f"jk_{source.name}_{hashlib.sha256(source.text.encode()).hexdigest()[:16]}"
