"""What a function refers to by name: its globals and closure cells, which a trace takes as arguments."""

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

from jitkernels.frontends.places import line_of_def
from jitkernels.frontends.tracer import NUMPY, is_ours
from jitkernels.graph.construct import UnknownError
from jitkernels.records import record

IMPURE_MODULES = (
    "random",
    "time",
    "datetime",
    "secrets",
    "uuid",
    "os",
    "sys",
    "io",
    "logging",
    "threading",
    "warnings",
)
IMPURE_BUILTINS = {
    "print",
    "input",
    "open",
    "exec",
    "eval",
    "globals",
    "locals",
    "vars",
    "setattr",
    "delattr",
    "id",
    "breakpoint",
    "__import__",
}

GENERATES = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
STANDARD = str(Path(dis.__file__).parent) + "/"
OTHERS = (f"{STANDARD}site-packages/", f"{STANDARD}dist-packages/")


OF_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
STARTS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF")
READS = frozenset(dis.opmap[name] for name in ("LOAD_ATTR", "LOAD_METHOD") if name in dis.opmap)
"""What code that reads attributes has among its instructions."""


@record
class Names:
    """The globals that a code object reads, and why no graph can say what it does.

    `chains` are globals followed by the attributes that are read of them, `attributes` all names of attributes.
    `line` is where that is. `assigns` is an attribute that it assigns to: objects that it makes may be made so, others
    may not be changed.
    """

    names: tuple[str, ...]
    chains: tuple[tuple[str, ...], ...] = ()
    attributes: frozenset[str] = frozenset()
    refused: str = ""
    line: int = 0
    assigns: str = ""


class Same:
    """Equal for the same object alone; keeps it alive, so that no other can take its place."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


class Constant(Same):
    """A static argument: equal for what `key` says is equal."""

    __slots__ = ("key",)

    def __init__(self, key: Any, value: Any) -> None:
        super().__init__(value)
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)


@functools.lru_cache(maxsize=4096)
def names_of(code: types.CodeType) -> Names:
    """What the code of a function, and of functions in it, refers to."""
    names: dict[str, None] = {}
    chains: dict[tuple[str, ...], None] = {}
    assigns = ""
    for one in codes(code):
        chain: tuple[str, ...] = ()
        if one is code and one.co_flags & GENERATES:
            is_async = code.co_flags & ~inspect.CO_GENERATOR & GENERATES
            kind = "a coroutine, with async" if is_async else "a generator, with yield"
            return _refused(kind, next(_yields(code), None), code)
        for step in dis.get_instructions(one):
            if step.opname in OF_ATTRIBUTES:
                if chain:
                    chain = (*chain, step.argval)
                    chains.setdefault(chain)
            else:
                chain = (step.argval,) if step.opname in STARTS else ()
            if step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                return _refused(f"the function assigns to the global {step.argval!r}", step, one)
            if step.opname in ("STORE_ATTR", "DELETE_ATTR"):
                assigns = str(step.argval)
            if step.opname == "IMPORT_NAME" and not _is_standard(step.argval):
                return _refused(f"the function imports {step.argval}", step, one)
            if step.opname == "STORE_DEREF" and one is code and step.argval in code.co_freevars:
                return _refused(f"the function assigns to the nonlocal {step.argval!r}", step, one)
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                if step.argval in IMPURE_BUILTINS:
                    return _refused(f"the function calls {step.argval}", step, one)
                names.setdefault(step.argval)
    return Names(tuple(names), tuple(chains), attributes_in(code), assigns=assigns)


BY_NAME = {"getattr", "hasattr", "__getattribute__", "attrgetter"}
"""What reads attributes whose names are strings."""
UNUSED = {
    "__new__",
    "__init__",
    "__post_init__",
    "__init_subclass__",
    "__repr__",
    "__str__",
    "__del__",
    "__reduce__",
}
"""Methods that no trace calls: of objects that are made, shown and given up."""
WRAPPERS = (
    *(property, staticmethod, classmethod, types.MethodType),
    *(functools.partial, functools.partialmethod, functools.cached_property),
)
"""What functions are wrapped in in classes."""


@functools.lru_cache(maxsize=4096)
def attributes_in(code: types.CodeType) -> frozenset[str]:
    """All names of attributes that code, and what is written in it, may read."""
    found: set[str] = set()
    for one in codes(code):
        names = {
            step.argval
            for step in dis.get_instructions(one)
            if step.opname in (*OF_ATTRIBUTES, "LOAD_SUPER_ATTR")
        }
        found |= names
        if names & BY_NAME or BY_NAME.intersection(one.co_names):
            found.update(value for value in one.co_consts if isinstance(value, str))
    return frozenset(found)


def called_by(value: Any) -> Iterator[types.CodeType]:
    """The code of what stands in a class: that of a function, and of what functions are wrapped in there."""
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
    """What a class gives its objects that is called by operators and the like, without its name."""
    for base in kind.__mro__:
        if base.__module__ not in ("builtins", "typing", "abc"):
            for name, one in vars(base).items():
                if name.startswith("__") and name not in UNUSED:
                    yield one


def _refused(text: str, step: dis.Instruction | None, code: types.CodeType) -> Names:
    line = step.positions.lineno if step is not None and step.positions is not None else None
    return Names((), refused=text, line=line or line_of_def(code))


def place_of(code: types.CodeType, name: str) -> str:
    """Where a function first names a global, a variable or an attribute, for the end of a message."""
    for one in codes(code):
        for step in dis.get_instructions(one):
            if name in _variables(step) and step.positions is not None:
                return f" ({code.co_filename}:{step.positions.lineno})"
    return f" ({code.co_filename}:{code.co_firstlineno})"


def _yields(code: types.CodeType) -> Iterator[dis.Instruction]:
    return (step for step in dis.get_instructions(code) if step.opname in ("YIELD_VALUE", "GET_AWAITABLE"))


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from codes(one)


def globals_of(function: types.FunctionType, names: tuple[str, ...]) -> dict[str, Any]:
    """The values of names now; those of builtins are left out, and so are those that nothing has."""
    found = {}
    table = function.__globals__
    for name in names:
        if name in table:
            found[name] = table[name]
        elif not hasattr(builtins, name):
            raise UnknownError(f"the name {name!r} is not defined")
    return found


@record
class Read:
    """A value that is read as an attribute of `owner`, a module or class; `is_known`: of NumPy's or Python's."""

    chain: tuple[str, ...]
    owner: Any
    value: Any
    is_known: bool


def attributes_of(names: Names, around: Mapping[str, Any], table: Mapping[str, Any]) -> Iterator[Read]:
    """What is read as attributes of modules and classes, such as constants of a module of one's own.

    Names are those of the functions around, and of globals. Of NumPy and Python only what stands in their modules,
    which somebody may have replaced; and of classes nothing that is made when it is read.
    """
    for chain in names.chains:
        value = around[chain[0]] if chain[0] in around else table.get(chain[0])
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
    """Whether a module or class is NumPy's or Python's, which nobody changes."""
    return _is_standard(value.__name__ if isinstance(value, types.ModuleType) else value.__module__)


def _is_standard(name: str) -> bool:
    root = name.partition(".")[0]
    return root in ("numpy", "builtins") or (root in sys.stdlib_module_names and root != "__main__")


def around(function: types.FunctionType) -> dict[str, Any]:
    """The variables of the functions around one."""
    if not function.__closure__:
        return {}
    cells = zip(function.__code__.co_freevars, function.__closure__, strict=True)
    return {name: cell_value(cell) for name, cell in cells}


def is_tracked(frame: types.FrameType) -> str:
    """What a function of users that a trace calls reads, and no later call would look at again; nothing if nothing."""
    if _is_importing(frame):
        return ""
    if str(frame.f_globals.get("__name__")).partition(".")[0] == "numpy":
        return ""
    names = names_of(frame.f_code)
    if names.refused:
        return f"{names.refused} ({frame.f_code.co_filename}:{names.line})"
    if names.assigns and frame.f_code.co_name not in ("__init__", "__post_init__", "__new__"):
        place = place_of(frame.f_code, names.assigns)
        return f"{frame.f_code.co_name} assigns to an attribute, {names.assigns!r}{place}"
    for one in names.names:
        if one in frame.f_globals and not _is_fixed(frame.f_globals[one]):
            return f"{frame.f_code.co_name} reads the global {one!r}{place_of(frame.f_code, one)}"
    for read in attributes_of(names, frame.f_locals, frame.f_globals):
        if not read.is_known and not callable(read.value):
            chain = ".".join(read.chain)
            return f"{frame.f_code.co_name} reads {chain}{place_of(frame.f_code, read.chain[0])}"
    for one in frame.f_code.co_freevars:
        if one != "__class__" and not _is_fixed(frame.f_locals.get(one)):
            return f"{frame.f_code.co_name} reads the variable {one!r} around it{place_of(frame.f_code, one)}"
    return ""


@functools.lru_cache(maxsize=4096)
def _chains_of_variables(code: types.CodeType) -> tuple[tuple[str, ...], ...]:
    """Variables of a function, also as functions in it see them, followed by the attributes that are read of them."""
    own, chains = {*code.co_varnames, *code.co_cellvars}, dict[tuple[str, ...], None]()
    for one in codes(code):
        if READS.isdisjoint(one.co_code[::2]):  # to look at each instruction takes some hundred times as long
            continue
        chain: tuple[str, ...] = ()
        for step in dis.get_instructions(one):
            if step.opname in ("LOAD_ATTR", "LOAD_METHOD") and chain:
                chain = (*chain, step.argval)
                chains.setdefault(chain)
            else:
                name = _loaded(step)
                chain = (name,) if name in own else ()
    return tuple(chains)


def _loaded(step: dis.Instruction) -> str:
    """The variable that an instruction leaves on top of the stack: the second one of two, where it loads both."""
    if "LOAD_FAST" not in step.opname and step.opname != "LOAD_DEREF":
        return ""
    return str(_variables(step)[-1])


def _variables(step: dis.Instruction) -> tuple[Any, ...]:
    """What an instruction names: from Python 3.13 on some name two variables."""
    return step.argval if isinstance(step.argval, tuple) and "_FAST" in step.opname else (step.argval,)


def read_of_classes(frame: types.FrameType) -> str:
    """What a function reads of classes and modules that its variables are, such as that of a class method."""
    chains = _chains_of_variables(frame.f_code)
    if not chains:
        return ""
    variables = frame.f_locals
    chains = tuple([one for one in chains if isinstance(variables.get(one[0]), types.ModuleType | type)])
    for read in attributes_of(Names((), chains), variables, {}):
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
    """What a closure cell holds."""
    try:
        return cell.cell_contents
    except ValueError:
        raise UnknownError("a variable of the enclosing function that has no value yet") from None


def refuse_module(module: types.ModuleType) -> None:
    """Raise UnknownError for modules whose functions give something else each time."""
    root = module.__name__.partition(".")[0]
    if root in IMPURE_MODULES or module.__name__ == "numpy.random":
        raise UnknownError(f"the function uses the module {module.__name__}")


def is_library(function: types.FunctionType) -> bool:
    """Whether a function comes from NumPy or Python's own library: it is called as it is."""
    return is_of_library(function.__code__.co_filename)


@functools.cache
def is_of_library(file: str) -> bool:
    """Whether code of a file is NumPy's, Python's own library's or ours."""
    if file.startswith((NUMPY, "<frozen")) or is_ours(file):
        return True
    return file.startswith(STANDARD) and not file.startswith(OTHERS)
