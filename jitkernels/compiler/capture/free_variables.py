"""Free variables of a function: its globals and closure cells, which a trace takes as arguments."""

import builtins
import dis
import enum
import functools
import inspect
import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jitkernels.compiler.capture.bytecode_calls import only_called
from jitkernels.compiler.capture.impure import IMPURE_BUILTINS, is_impure_module, why_impure
from jitkernels.compiler.capture.source_locations import line_of_def
from jitkernels.compiler.capture.trace_context import NUMPY, is_package_file
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.core.cached_property import cached_per_code
from jitkernels.core.frozen_dataclass import frozen_dataclass

GENERATES = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
STANDARD = str(Path(dis.__file__).parent) + "/"
OTHERS = (f"{STANDARD}site-packages/", f"{STANDARD}dist-packages/")


OF_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
STARTS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF")
READS = frozenset(dis.opmap[name] for name in ("LOAD_ATTR", "LOAD_METHOD") if name in dis.opmap)
"""Opcodes of attribute reads."""
ASSIGNABLE = frozenset({"shape"})
"""Attributes of arrays that tracing can assign."""


@frozen_dataclass
class CodeNames:
    """The globals that a code object reads, and the reason why tracing cannot capture it.

    `chains`: globals followed by the attributes read of them. `refused`, `line`: the reason, and its source line.
    `assigns`: an attribute that the code assigns; tracing supports that in constructors only, and for `ASSIGNABLE`
    attributes of variables that are no parameters. `prints`: the line of a call of ``print``, which may be in a branch
    that is not taken; 0 without one.
    """

    names: tuple[str, ...]
    chains: tuple[tuple[str, ...], ...] = ()
    refused: str = ""
    line: int = 0
    assigns: str = ""
    prints: int = 0


class Same:
    """Equal by identity only; keeps the object alive, so that its id stays unique."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


class Constant(Same):
    """A static argument, compared by its `key`."""

    __slots__ = ("key",)

    def __init__(self, key: Any, value: Any) -> None:
        super().__init__(value)
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)


WRITTEN_VIEWS = frozenset({"real", "imag"})
"""Attributes of arrays that are views: an assignment to one writes elements."""


def _count_parameters(code: types.CodeType) -> int:
    """The number of parameters, which are the first variables."""
    stars = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_argcount + code.co_kwonlyargcount + stars


@cached_per_code
def names_of(code: types.CodeType) -> CodeNames:
    """The names that the code of a function, and of nested ones, refers to."""
    names: dict[str, None] = {}
    chains: dict[tuple[str, ...], None] = {}
    assigns, prints = "", 0
    for part in codes(code):
        chain: tuple[str, ...] = ()
        if part is code and part.co_flags & GENERATES:
            is_async = code.co_flags & ~inspect.CO_GENERATOR & GENERATES
            kind = "a coroutine, with async" if is_async else "a generator, with yield"
            return _refused(kind, next(_yields(code), None), code)
        receiver = ""
        for step in dis.get_instructions(part):
            if step.opname in OF_ATTRIBUTES:
                if chain:
                    chain = (*chain, step.argval)
                    chains.setdefault(chain)
            else:
                chain = (step.argval,) if step.opname in STARTS else ()
            if step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                return _refused(f"the function assigns to the global {step.argval!r}", step, part)
            is_of_variable = receiver in part.co_varnames[_count_parameters(part) :] and step.argval in ASSIGNABLE
            is_written = step.opname == "STORE_ATTR" and (is_of_variable or step.argval in WRITTEN_VIEWS)
            if step.opname in ("STORE_ATTR", "DELETE_ATTR") and not is_written:
                assigns = str(step.argval)
            receiver = step.argval if step.opname == "LOAD_FAST" else ""
            if step.opname == "IMPORT_NAME" and not _is_standard(step.argval):
                return _refused(f"the function imports {step.argval}", step, part)
            if step.opname == "STORE_DEREF" and part is code and step.argval in code.co_freevars:
                return _refused(f"the function assigns to the nonlocal {step.argval!r}", step, part)
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                if step.argval == "print" and "print" in only_called(code):
                    prints = (step.positions and step.positions.lineno) or line_of_def(code)
                elif step.argval in IMPURE_BUILTINS:
                    return _refused(f"the function calls {step.argval}", step, part)
                names.setdefault(step.argval)
    return CodeNames(tuple(names), tuple(chains), assigns=assigns, prints=prints)


@cached_per_code
def strings_in(code: types.CodeType) -> frozenset[str]:
    """The string constants of a code object and of nested ones."""
    return frozenset(value for part in codes(code) for value in part.co_consts if isinstance(value, str))


BY_NAME = {"getattr", "hasattr", "__getattribute__", "attrgetter", "vars", "__dict__"}
"""Functions, and an attribute, that read attributes by string names."""
UNUSED = {"__new__", "__init__", "__post_init__", "__init_subclass__", "__repr__", "__str__", "__del__", "__reduce__"}
"""Methods that a trace never calls: construction, display and destruction of objects."""
WRAPPERS = (
    *(property, staticmethod, classmethod, types.MethodType),
    *(functools.partial, functools.partialmethod, functools.cached_property),
)
"""Descriptor types that wrap functions in classes."""


@cached_per_code
def attributes_in(code: types.CodeType) -> frozenset[str]:
    """All attribute names that a code object and nested ones may read."""
    names: set[str] = set()
    for part in codes(code):
        names |= {
            step.argval for step in dis.get_instructions(part) if step.opname in (*OF_ATTRIBUTES, "LOAD_SUPER_ATTR")
        }
    return frozenset(names)


@cached_per_code
def reads_by_name(code: types.CodeType) -> bool:
    """Whether a code object or a nested one may read attributes by string names."""
    return any(not BY_NAME.isdisjoint(part.co_names) for part in codes(code))


@cached_per_code
def handles_exceptions(code: types.CodeType) -> bool:
    """Whether a code object or a nested one may handle an exception."""
    return any(part.co_exceptiontable for part in codes(code))


def called_by(value: Any) -> Iterator[types.CodeType]:
    """The code objects of a class attribute: of a function, or of the functions that a descriptor wraps."""
    if isinstance(value, types.FunctionType):
        if not is_library(value):
            yield value.__code__
        return
    inner = getattr(type(value), "__jitkernels_traced__", None)
    if inner is not None:
        yield from called_by(inner(value))
    for name in ("fget", "func", "__func__") if isinstance(value, WRAPPERS) else ():
        yield from called_by(getattr(value, name, None))


def operators_of(kind: type) -> Iterator[Any]:
    """The special methods of a class, which operators call implicitly."""
    for base in kind.__mro__:
        if base.__module__ not in ("builtins", "typing", "abc"):
            for name, method in vars(base).items():
                if name.startswith("__") and name not in UNUSED:
                    yield method


def _refused(text: str, step: dis.Instruction | None, code: types.CodeType) -> CodeNames:
    line = step.positions.lineno if step is not None and step.positions is not None else None
    return CodeNames((), refused=text, line=line or line_of_def(code))


def place_of(code: types.CodeType, name: str) -> str:
    """The source location where a function first refers to a name, as a suffix of a message."""
    for part in codes(code):
        for step in dis.get_instructions(part):
            if name in _variables(step) and step.positions is not None:
                return f" ({code.co_filename}:{step.positions.lineno})"
    return f" ({code.co_filename}:{code.co_firstlineno})"


def _yields(code: types.CodeType) -> Iterator[dis.Instruction]:
    return (step for step in dis.get_instructions(code) if step.opname in ("YIELD_VALUE", "GET_AWAITABLE"))


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def globals_of(function: types.FunctionType, names: tuple[str, ...]) -> dict[str, Any]:
    """The current values of globals; builtins are omitted. Raises UnsupportedError for undefined names."""
    values = {}
    table = function.__globals__
    for name in names:
        if name in table:
            values[name] = table[name]
        elif not hasattr(builtins, name):
            raise UnsupportedError(f"the name {name!r} is not defined")
    return values


@frozen_dataclass
class Read:
    """A read of an attribute of `owner`, a module or class; `is_known`: of NumPy or the standard library."""

    chain: tuple[str, ...]
    owner: Any
    value: Any
    is_known: bool


def attributes_of(names: CodeNames, around: Mapping[str, Any], table: Mapping[str, Any]) -> Iterator[Read]:
    """The attribute reads of modules and classes, such as constants of a user's module.

    `around` and `table` are the variables of enclosing functions, and globals. Of NumPy and the standard library only
    attributes in a module's namespace count, which may be monkeypatched; of classes no computed attributes.
    """
    for chain in names.chains:
        value = around[chain[0]] if chain[0] in around else table.get(chain[0])
        if is_impure_module(value):
            continue
        owner = None
        for name in chain[1:]:
            owner = value
            if not isinstance(owner, types.ModuleType | type):
                break
            if isinstance(owner, type) and (is_unchanging(owner) or issubclass(owner, enum.Enum)):
                break
            if name not in vars(owner) and isinstance(owner, types.ModuleType) and is_unchanging(owner):
                break
            value = getattr(owner, name, None)
        else:
            is_known = isinstance(owner, types.ModuleType) and is_unchanging(owner)
            is_made = isinstance(owner, type) and isinstance(value, types.MethodType | property)
            if not is_made and not isinstance(value, types.ModuleType | enum.Enum):
                yield Read(chain, owner, value, is_known)


def is_unchanging(value: Any) -> bool:
    """Whether a module or class belongs to NumPy or the standard library, which are assumed immutable."""
    return _is_standard(value.__name__ if isinstance(value, types.ModuleType) else value.__module__)


def _is_standard(name: str) -> bool:
    root = name.partition(".")[0]
    return root in ("numpy", "builtins") or (root in sys.stdlib_module_names and root != "__main__")


def around(function: types.FunctionType) -> dict[str, Any]:
    """The free variables of a function, with their values."""
    if not function.__closure__:
        return {}
    cells = zip(function.__code__.co_freevars, function.__closure__, strict=True)
    return {name: cell_value(cell) for name, cell in cells}


def is_tracked(frame: types.FrameType) -> str:
    """The state read by a user function that a trace calls, which no guard would check; empty if none."""
    if _is_importing(frame):
        return ""
    if str(frame.f_globals.get("__name__")).partition(".")[0] == "numpy":
        return ""
    names = names_of(frame.f_code)
    if names.refused:
        return f"{names.refused} ({frame.f_code.co_filename}:{names.line})"
    if names.prints:
        return f"the function calls print ({frame.f_code.co_filename}:{names.prints})"
    if names.assigns and frame.f_code.co_name not in ("__init__", "__post_init__", "__new__"):
        location = place_of(frame.f_code, names.assigns)
        return f"{frame.f_code.co_name} assigns to an attribute, {names.assigns!r}{location}"
    for name in names.names:
        if name in frame.f_globals and not _is_fixed(frame.f_globals[name]):
            return f"{frame.f_code.co_name} reads the global {name!r}{place_of(frame.f_code, name)}"
        reason = why_impure(frame.f_globals.get(name))
        if reason:
            return f"{reason}{place_of(frame.f_code, name)}"
    for read in attributes_of(names, frame.f_locals, frame.f_globals):
        if not read.is_known and not callable(read.value):
            chain = ".".join(read.chain)
            return f"{frame.f_code.co_name} reads {chain}{place_of(frame.f_code, read.chain[0])}"
    for name in frame.f_code.co_freevars:
        if name != "__class__" and not _is_fixed(frame.f_locals.get(name)):
            return f"{frame.f_code.co_name} reads the variable {name!r} around it{place_of(frame.f_code, name)}"
    return ""


@cached_per_code
def _chains_of_variables(code: types.CodeType) -> tuple[tuple[str, ...], ...]:
    """Local variables of a function, also as seen in nested ones, followed by the attributes read of them."""
    local_names, chains = {*code.co_varnames, *code.co_cellvars}, dict[tuple[str, ...], None]()
    for part in codes(code):
        if READS.isdisjoint(part.co_code[::2]):  # disassembling takes some hundred times as long
            continue
        chain: tuple[str, ...] = ()
        for step in dis.get_instructions(part):
            if step.opname in ("LOAD_ATTR", "LOAD_METHOD") and chain:
                chain = (*chain, step.argval)
                chains.setdefault(chain)
            else:
                name = _loaded(step)
                chain = (name,) if name in local_names else ()
    return tuple(chains)


def _loaded(step: dis.Instruction) -> str:
    """The variable that an instruction leaves on top of the stack: the second one where it loads two."""
    if "LOAD_FAST" not in step.opname and step.opname != "LOAD_DEREF":
        return ""
    return str(_variables(step)[-1])


def _variables(step: dis.Instruction) -> tuple[Any, ...]:
    """The names in an instruction: from Python 3.13 on some instructions name two variables."""
    return step.argval if isinstance(step.argval, tuple) and "_FAST" in step.opname else (step.argval,)


def read_of_classes(frame: types.FrameType) -> str:
    """Attribute reads of classes and modules in local variables, such as ``cls``; empty if there are none."""
    chains = _chains_of_variables(frame.f_code)
    if not chains:
        return ""
    variables = frame.f_locals
    chains = tuple([chain for chain in chains if isinstance(variables.get(chain[0]), types.ModuleType | type)])
    for read in attributes_of(CodeNames((), chains), variables, {}):
        if not read.is_known and not callable(read.value):
            where = place_of(frame.f_code, read.chain[0])
            return f"{frame.f_code.co_name} reads {'.'.join(read.chain)} of a variable{where}"
    return ""


def _is_importing(frame: types.FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _is_fixed(value: Any) -> bool:
    return callable(value) or isinstance(value, types.ModuleType | enum.Enum)


def cell_value(cell: types.CellType) -> Any:
    """The content of a closure cell."""
    try:
        return cell.cell_contents
    except ValueError:
        raise UnsupportedError("a variable of the enclosing function that has no value yet") from None


def is_library(function: types.FunctionType) -> bool:
    """Whether a function belongs to NumPy or the standard library: tracing calls it as it is."""
    return is_of_library(function.__code__.co_filename)


@functools.cache
def is_of_library(file: str) -> bool:
    """Whether a file belongs to NumPy, the standard library or this package."""
    if file.startswith((NUMPY, "<frozen")) or is_package_file(file):
        return True
    return file.startswith(STANDARD) and not file.startswith(OTHERS)
