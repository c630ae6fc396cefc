"""Transaction around the trace of one region (loop body or branch side): its end rolls back writes and guards."""

import sys
from collections.abc import Iterator, Sequence
from types import CodeType, FrameType
from typing import Any, Self

from jitkernels.compiler.capture.functionalization import Storage, watched
from jitkernels.compiler.capture.source_locations import line_of
from jitkernels.compiler.capture.trace_context import Tracer, is_package_file
from jitkernels.compiler.ir.builder import UnknownError
from jitkernels.compiler.ir.graph import Node, serial
from jitkernels.compiler.ir.unsupported import note_raised


class ChangesError(UnknownError):
    """A region assigns to entries of a list or dict."""

    def __init__(self, container: Any, keys: list[Any]) -> None:
        super().__init__(f"a {type(container).__name__} is changed in a loop or branch")
        self.container, self.keys = container, keys


class Attempt:
    """The trace of a region. At its end all storages have their previous values again.

    `checks` are the region's runtime guards, `writes` the storages that it has changed, with their previous values.
    """

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.checks: list[Node] = []
        self.writes: dict[int, tuple[Storage, Node]] = {}
        self.start = 0
        self._content: list[tuple[Any, list[Any]]] = []

    def __enter__(self) -> Self:
        self.start = serial()
        self._begun, self.tracer.region_start = self.tracer.region_start, self.start
        self._outer, self.tracer.checks = self.tracer.checks, self.checks
        self._logs, watched.logs = watched.logs, (*watched.logs, self.writes)
        self.tracer.depth += 1
        values = variables()
        self._content = [(container, _content(container)) for container in _containers(values)]
        iterator = next((value for value in values if isinstance(value, Iterator)), None)
        if iterator is not None:  # each iteration would take the same elements of it
            self.__exit__(None, None, None)
            raise UnknownError(
                f"the {type(iterator).__name__} {name_of(iterator)!r} may be advanced in a loop or branch: "
                "make a list of it"
            )
        return self

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, Exception):
            note_raised(error)  # the rollback undoes what preceded it: nobody may catch it and go on
        self.tracer.depth -= 1
        self.tracer.region_start = self._begun
        self.tracer.checks, watched.logs = self._outer, self._logs
        for storage, node in self.writes.values():
            storage.node = node
        for container, content in self._content:
            if _changed(container, content) != []:
                _restore(container, content)

    def hold(self, storage: Storage, node: Node) -> None:
        """Bind a storage to a parameter of the region."""
        storage.log()
        storage.node = node

    def finish(self, entries: Sequence[tuple[Any, Any]], line: int) -> None:
        """Raise UnknownError where the region, which begins at a line, had effects that a graph cannot express.

        ChangesError where it assigned to entries of a container that are not among `entries`.
        """
        for container, content in self._content:
            keys = _changed(container, content)
            if keys is None:
                kind, name = type(container).__name__, name_of(container)
                raise UnknownError(
                    f"the {kind} {name!r} is changed in a loop or branch: take an array that is large enough",
                    line_of(name, line),
                )
            known = [key for changed, key in entries if changed is container]
            if any(key not in known for key in keys):
                raise ChangesError(container, [key for key in keys if key not in known])

    def has_written(self, storage: Storage) -> bool:
        """Whether the region wrote to a storage."""
        return id(storage) in self.writes

    def written(self) -> list[Storage]:
        """The storages from before the region that it wrote to."""
        return [storage for storage, _ in self.writes.values() if storage.born < self.start]


trace_entries: set[CodeType] = set()
"""Code objects of the functions that start a trace: frames below them are no part of the traced function."""


def variables() -> list[Any]:
    """The values of local variables of all frames of the traced function."""
    values: list[Any] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code not in trace_entries:
        if not is_package_file(frame.f_code.co_filename):
            values += frame.f_locals.values()
        frame = frame.f_back
    return values


def name_of(value: Any) -> str:
    """The name of a local variable that holds a value."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_package_file(frame.f_code.co_filename):
            for name, held in frame.f_locals.items():
                if held is value:
                    return name
        frame = frame.f_back
    return ""


def owners() -> list[tuple[str, Any]]:
    """Names and values of all local variables, each once: closures share variables with the enclosing function."""
    named: list[tuple[str, Any]] = []
    free_variables: dict[str, Any] = {}
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code not in trace_entries:
        code = frame.f_code
        if not is_package_file(code.co_filename):
            for name, value in frame.f_locals.items():
                if name in code.co_freevars:
                    free_variables[name] = value
                else:
                    named.append((name, value))
            for name in code.co_cellvars:
                free_variables.pop(name, None)
        frame = frame.f_back
    return [*named, *free_variables.items()]


def _containers(values: Sequence[Any]) -> list[Any]:
    """The mutable containers among values: lists, dicts and sets."""
    return list({id(value): value for value in values if type(value) in (list, dict, set)}.values())


def _content(container: Any) -> list[Any]:
    return [*container, *container.values()] if type(container) is dict else list(container)


def _changed(container: Any, content: list[Any]) -> list[Any] | None:
    """The keys whose values differ from `content`; None where the keys or the length differ."""
    now = _content(container)
    if len(now) != len(content):
        return None
    first = len(now) // 2 if type(container) is dict else 0
    if any(a is not b for a, b in zip(now[:first], content, strict=False)):
        return None
    keys = now[:first] if type(container) is dict else range(len(now))
    changed_keys = [key for key, a, b in zip(keys, now[first:], content[first:], strict=True) if a is not b]
    return None if changed_keys and type(container) is set else changed_keys


def _restore(container: Any, content: list[Any]) -> None:
    if type(container) is list:
        container[:] = content
        return
    container.clear()
    if type(container) is set:
        container.update(content)
    else:
        half = len(content) // 2
        container.update(zip(content[:half], content[half:], strict=True))
