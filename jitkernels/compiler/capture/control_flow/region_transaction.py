"""One region while it is traced: what it writes and checks is its own, and undone behind it."""

import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, Self

from jitkernels.frontends.places import line_of
from jitkernels.frontends.storage import Storage, watched
from jitkernels.frontends.tracer import Tracer, is_ours
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.ir import Node, serial
from jitkernels.graph.unknown import note_raised


class ChangesError(UnknownError):
    """A region gives other values to some places in a list or dict."""

    def __init__(self, container: Any, keys: list[Any]) -> None:
        super().__init__(f"a {type(container).__name__} is changed in a loop or branch")
        self.container, self.keys = container, keys


class Attempt:
    """A region that is being traced. Behind it all storages have the values that they had before.

    `checks` are those of the region, `writes` the storages that it has changed, with their values before.
    """

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.checks: list[Node] = []
        self.writes: dict[int, tuple[Storage, Node]] = {}
        self.start = 0
        self._content: list[tuple[Any, list[Any]]] = []

    def __enter__(self) -> Self:
        self.start = serial()
        self._begun, self.tracer.begun = self.tracer.begun, self.start
        self._outer, self.tracer.checks = self.tracer.checks, self.checks
        self._logs, watched.logs = watched.logs, (*watched.logs, self.writes)
        self.tracer.depth += 1
        values = variables()
        self._content = [(one, _content(one)) for one in _containers(values)]
        iterator = next((one for one in values if isinstance(one, Iterator)), None)
        if iterator is not None:  # what a round takes of it, the next one would take again
            self.__exit__(None, None, None)
            raise UnknownError(
                f"the {type(iterator).__name__} {name_of(iterator)!r} may be advanced in a loop or branch: "
                "make a list of it"
            )
        return self

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, Exception):
            note_raised(error)  # what was done before it is undone here: nobody may catch it, and go on
        self.tracer.depth -= 1
        self.tracer.begun = self._begun
        self.tracer.checks, watched.logs = self._outer, self._logs
        for storage, node in self.writes.values():
            storage.node = node
        for container, content in self._content:
            if _changed(container, content) != []:
                _restore(container, content)

    def hold(self, storage: Storage, node: Node) -> None:
        """Let a storage have another value in the region, that of a parameter."""
        storage.log()
        storage.node = node

    def finish(self, entries: Sequence[tuple[Any, Any]], line: int) -> None:
        """Raise UnknownError where the region, which begins at a line, did what a graph cannot say.

        ChangesError where it gave other values to places in a container than those `entries`.
        """
        for container, content in self._content:
            keys = _changed(container, content)
            if keys is None:
                kind, name = type(container).__name__, name_of(container)
                raise UnknownError(
                    f"the {kind} {name!r} is changed in a loop or branch: take an array that is large enough",
                    line_of(name, line),
                )
            known = [key for one, key in entries if one is container]
            if any(key not in known for key in keys):
                raise ChangesError(container, [key for key in keys if key not in known])

    def has_written(self, storage: Storage) -> bool:
        """Whether the region has changed a storage."""
        return id(storage) in self.writes

    def written(self) -> list[Storage]:
        """The storages from before the region that it has changed."""
        return [storage for storage, _ in self.writes.values() if storage.born < self.start]


def variables() -> list[Any]:
    """What the variables of the functions around have."""
    found: list[Any] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.endswith("specialisation.py"):
        if not is_ours(frame.f_code.co_filename):
            found += frame.f_locals.values()
        frame = frame.f_back
    return found


def name_of(value: Any) -> str:
    """The name of the variable of the functions around that has a value."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_ours(frame.f_code.co_filename):
            for name, one in frame.f_locals.items():
                if one is value:
                    return name
        frame = frame.f_back
    return ""


def owners() -> list[tuple[str, Any]]:
    """The same with names, each variable once: functions inside of another one have variables of that."""
    found: list[tuple[str, Any]] = []
    inside: dict[str, Any] = {}
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.endswith("specialisation.py"):
        code = frame.f_code
        if not is_ours(code.co_filename):
            for name, value in frame.f_locals.items():
                if name in code.co_freevars:
                    inside[name] = value
                else:
                    found.append((name, value))
            for name in code.co_cellvars:
                inside.pop(name, None)
        frame = frame.f_back
    return [*found, *inside.items()]


def _containers(values: Sequence[Any]) -> list[Any]:
    """The lists, dicts and sets among them, which functions may change."""
    return list({id(one): one for one in values if type(one) in (list, dict, set)}.values())


def _content(container: Any) -> list[Any]:
    return [*container, *container.values()] if type(container) is dict else list(container)


def _changed(container: Any, content: list[Any]) -> list[Any] | None:
    """The places at which a container has another value than it had; None where it has other places."""
    now = _content(container)
    if len(now) != len(content):
        return None
    first = len(now) // 2 if type(container) is dict else 0
    if any(a is not b for a, b in zip(now[:first], content, strict=False)):
        return None
    keys = now[:first] if type(container) is dict else range(len(now))
    found = [key for key, a, b in zip(keys, now[first:], content[first:], strict=True) if a is not b]
    return None if found and type(container) is set else found


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
