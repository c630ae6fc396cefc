"""Transaction around the trace of one region (loop body or branch side): its end rolls back writes and guards."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from io import IOBase
from types import CellType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, Self

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.functionalization import Storage, watched
from jitkernels.compiler.capture.source_locations import line_of
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import Tracer, is_package_file
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.graph import Node, serial
from jitkernels.compiler.ir.regions import RegionBuilder
from jitkernels.compiler.ir.unsupported import note_raised


class RegionRoots(NamedTuple):
    """The results of a region, and its runtime guards."""

    outputs: list[Node]
    checks: list[Node]

    def inside(self, region_builder: RegionBuilder) -> "RegionRoots":
        """The same, cloned into the region."""
        return RegionRoots(region_builder.inside(self.outputs), region_builder.inside(self.checks))


class ContainerChangedError(UnsupportedError):
    """A region assigns to entries of a list or dict."""

    def __init__(self, container: Any, keys: list[Any]) -> None:
        super().__init__(f"a {type(container).__name__} is changed in a loop or branch")
        self.container, self.keys = container, keys


class _Snapshot(NamedTuple):
    """The content of a list, dict or set. The elements of a set are keys without values."""

    container: Any
    keys: list[Any]
    values: list[Any]

    @classmethod
    def take(cls, container: Any) -> Self:
        if type(container) is list:
            return cls(container, [*range(len(container))], [*container])
        return cls(container, [*container], [*container.values()] if type(container) is dict else [])

    def changed_keys(self) -> list[Any] | None:
        """The keys that have other values now; None where the keys themselves differ."""
        container, keys, values = self.take(self.container)
        if len(keys) != len(self.keys):
            return None
        if type(container) is not list and any(a is not b for a, b in zip(keys, self.keys, strict=True)):
            return None
        return [key for key, a, b in zip(keys, values, self.values, strict=False) if a is not b]

    def restore(self) -> None:
        if self.changed_keys() == []:
            return
        if type(self.container) is list:
            self.container[:] = self.values
            return
        self.container.clear()
        self.container.update(zip(self.keys, self.values, strict=True) if self.values else self.keys)


class RegionTransaction:
    """The trace of a region. At its end all storages have their previous values again.

    `checks` are the region's runtime guards, `writes` the storages that it has changed, with their previous values.
    """

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.checks: list[Node] = []
        self.writes: dict[Storage, Node] = {}
        self.start = 0
        self._snapshots: list[_Snapshot] = []

    def __enter__(self) -> Self:
        self.start = serial()
        self._outer_start, self.tracer.region_start = self.tracer.region_start, self.start
        self._outer_checks, self.tracer.checks = self.tracer.checks, self.checks
        self._logs, watched.logs = watched.logs, (*watched.logs, self.writes)
        self.tracer.depth += 1
        values = _reachable(value for frame in traced_frames() for value in frame.f_locals.values())
        self._snapshots = [_Snapshot.take(value) for value in values if type(value) in (list, dict, set)]
        iterator = next((one for one in values if isinstance(one, Iterator) and not isinstance(one, IOBase)), None)
        if iterator is not None:  # each iteration would take the same elements of it
            self.__exit__(None, None, None)
            raise UnsupportedError(
                f"the {type(iterator).__name__} {name_of(iterator)!r} may be advanced in a loop or branch: "
                "make a list of it"
            )
        return self

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, Exception):
            note_raised(error)  # the rollback undoes what preceded it: nobody may catch it and go on
        self.tracer.depth -= 1
        self.tracer.region_start = self._outer_start
        self.tracer.checks, watched.logs = self._outer_checks, self._logs
        for storage, node in self.writes.items():
            storage.node = node
        for snapshot in self._snapshots:
            snapshot.restore()

    def hold(self, storage: Storage, node: Node) -> None:
        """Bind a storage to a parameter of the region."""
        storage.log()
        storage.node = node

    def finish(self, entries: Sequence[tuple[Any, Any]], line: int) -> None:
        """Raise UnsupportedError where the region, which begins at a line, had effects that a graph cannot express.

        ContainerChangedError where it assigned to entries of a container that are not among `entries`.
        """
        for snapshot in self._snapshots:
            container, keys = snapshot.container, snapshot.changed_keys()
            if keys is None:
                kind, name = type(container).__name__, name_of(container)
                raise UnsupportedError(
                    f"the {kind} {name!r} is changed in a loop or branch: take an array that is large enough",
                    line_of(name, line),
                )
            known = [key for changed, key in entries if changed is container]
            if any(key not in known for key in keys):
                raise ContainerChangedError(container, [key for key in keys if key not in known])

    def outer_writes(self) -> list[Storage]:
        """The storages from before the region that it wrote to."""
        return [storage for storage in self.writes if storage.born < self.start]


MAX_REACHABLE = 10_000
"""Values of local variables that are looked at, with those inside of them."""
ATOMS = frozenset({Traced, SymInt, int, float, bool, complex, str, bytes, type(None), type, ModuleType, np.ndarray})
FOREIGN = sys.stdlib_module_names | {"jitkernels", "numpy"}


def _reachable(values: Iterable[Any]) -> list[Any]:
    """The values of variables that a region may change, and those that it reaches by them.

    That is by containers, by attributes of objects, and by variables of functions and methods.
    """
    found: dict[int, Any] = {}
    waiting = [iter(values)]
    while waiting and len(found) < MAX_REACHABLE:
        for value in waiting[-1]:
            if type(value) not in ATOMS and id(value) not in found:
                found[id(value)] = value
                waiting.append(iter(_parts(value)))
                break
        else:
            waiting.pop()
    return [*found.values()]


def _parts(value: Any) -> list[Any]:
    """The values that one holds; those of objects of Python's modules and of ours are no state of the function."""
    kind = type(value)
    if issubclass(kind, list):
        return [*list.__iter__(value)]  # those of a list that has grown in a loop are in arrays
    if issubclass(kind, tuple | set | frozenset):
        return [*value]
    if issubclass(kind, dict):
        return [*value.values()]
    if kind is FunctionType:
        return [part for cell in value.__closure__ or () for part in _content(cell)]
    if kind is MethodType:
        return [value.__self__]
    if kind is partial:
        return [value.func, *value.args, *value.keywords.values()]
    if kind.__module__.partition(".")[0] in FOREIGN or issubclass(kind, type):
        return []
    return [*getattr(value, "__dict__", {}).values()]


def _content(cell: CellType) -> list[Any]:
    """What a variable of a function holds; nothing where it is unbound."""
    try:
        return [cell.cell_contents]
    except ValueError:
        return []


trace_entries: set[CodeType] = set()
"""Code objects of the functions that start a trace: frames below them are no part of the traced function."""


def traced_frames() -> Iterator[FrameType]:
    """The frames of user code in the traced function, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code not in trace_entries:
        if not is_package_file(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def name_of(value: Any) -> str:
    """The name of a local variable that holds a value."""
    variables = (item for frame in traced_frames() for item in frame.f_locals.items())
    return next((name for name, held in variables if held is value), "")


def local_variables() -> list[tuple[str, Any]]:
    """Names and values of all local variables, each once: closures share variables with the enclosing function."""
    named: list[tuple[str, Any]] = []
    free_variables: dict[str, Any] = {}
    for frame in traced_frames():
        code = frame.f_code
        for name, value in frame.f_locals.items():
            if name in code.co_freevars:
                free_variables[name] = value
            else:
                named.append((name, value))
        for name in code.co_cellvars:
            free_variables.pop(name, None)
    return [*named, *free_variables.items()]
