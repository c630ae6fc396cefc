"""Overrides: the user pins an implementation, by context or by environment variable."""

import contextlib
import os
from _thread import get_ident  # what `threading` shows, without the rest of it
from collections.abc import Mapping, Sequence
from contextvars import ContextVar

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import (
    Implementation,
    all_schemas,
    find_implementation,
    implementation,
    implementations,
    op_schema,
)
from jitkernels.core import hooks, settings
from jitkernels.core.fork_locks import writing
from jitkernels.errors import ArgumentTypeError, NotUsableError, UnknownNameError, shown

_pins: ContextVar[tuple[Mapping[str, str], ...]] = ContextVar("pins", default=())
EVERY_KERNEL = "*"
blocks: list[tuple[Mapping[str, str], int]] = []
"""The open ``with jk.use(...)`` blocks of this process, each with the thread that entered it."""


class Pins(contextlib.ContextDecorator):
    """The result of `use`: a re-entrant context manager and decorator inside which pins hold."""

    def __init__(self, chosen: Mapping[str, str]) -> None:
        self._chosen = chosen
        self._open: list[dict[str, str]] = []

    def __enter__(self) -> None:
        _validate("use", self._chosen)
        hooks.prepare_launcher()  # may load the launcher, which must not happen while writing
        entered = dict(self._chosen)
        with writing:
            self._open.append(entered)
            blocks.append((entered, get_ident()))
            hooks.bypass_launcher(True)
        _pins.set((entered, *_pins.get()))

    def __exit__(self, *raised: object) -> None:
        active = _pins.get()
        with writing:
            own = [block for entered in active for block in self._open if entered is block]
            if not self._open:
                raise NotUsableError("use: expected at most one exit per entry, got another exit")
            entered = own[0] if own else self._open[-1]  # entered in another thread or task
            self._open = [block for block in self._open if block is not entered]
            blocks[:] = [(block, thread) for block, thread in blocks if block is not entered]
            hooks.bypass_launcher(bool(blocks))
        entered.clear()  # tasks started inside hold a copy of the context, not of the block
        _pins.set(tuple(other for other in active if other is not entered))


def _drop_blocks_of_other_threads() -> None:
    """In a forked child: no thread is left to exit the blocks of other threads, so calls need not look for them."""
    if blocks:
        blocks[:] = [(entered, thread) for entered, thread in blocks if thread == get_ident()]
        hooks.bypass_launcher(bool(blocks))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_blocks_of_other_threads)  # apart from `fork_locks`: it takes no lock


def use(implementation: str | None = None, **kernels: str) -> Pins:
    """Pin implementations inside a ``with`` block or a decorated function, in this thread or task only.

    ``use(implementation="refer")`` applies to every kernel that has an implementation of that name, wherever it can be
    used; ``use(vmul="mkl")`` to that kernel alone: it takes precedence, and where it cannot be used, looking up the
    kernel raises NotUsableError with the reason. Entering raises UnknownNameError for a name that does not exist,
    ArgumentTypeError for a value that is not a name.
    """
    chosen = _once("use", [(kernel.lower(), name) for kernel, name in kernels.items()])
    return Pins(chosen if implementation is None else {**chosen, EVERY_KERNEL: implementation})


def _once(where: str, named: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Implementations by kernel; raises UnknownNameError where a kernel is named with two."""
    chosen: dict[str, str] = {}
    for kernel, name in named:
        if chosen.setdefault(kernel, name) != name:
            which = "every kernel" if kernel == EVERY_KERNEL else kernel
            raise UnknownNameError(f"{where}: expected one implementation for {which}, got {chosen[kernel]} and {name}")
    return chosen


def _validate(where: str, chosen: Mapping[str, str]) -> None:
    for kernel, name in chosen.items():
        if not isinstance(name, str):
            which = "implementation" if kernel == EVERY_KERNEL else kernel
            raise ArgumentTypeError(f"{where}: {which}: expected the name of an implementation, got {shown(name)}")
        if kernel == EVERY_KERNEL:
            if not any(name in implementations(schema) for schema in all_schemas()):
                raise UnknownNameError(f"{where}: no kernel has an implementation {name!r}")
        else:
            try:
                implementation(op_schema(kernel), name)
            except UnknownNameError as error:
                raise UnknownNameError(f"{where}: {error}") from None


def are_pinned_here() -> bool:
    """Whether this code runs inside of a ``with jk.use(...)`` block."""
    return bool(_pins.get())


_parsed: dict[str, Mapping[str, str]] = {"": {}}


def _from_environment() -> Mapping[str, str]:
    """``JITKERNELS_USE="vmul=mkl,softmax=gen"`` or ``"refer"`` for every kernel that has it."""
    text = settings.read("JITKERNELS_USE")
    if text not in _parsed:
        entries = [part.strip() for part in text.split(",") if part.strip()]
        split = [part.rpartition("=") for part in entries]
        named = [(kernel.strip().lower() if equals else EVERY_KERNEL, name.strip()) for kernel, equals, name in split]
        chosen = _once("JITKERNELS_USE", named)
        _validate("JITKERNELS_USE", chosen)
        _parsed[text] = chosen
    return _parsed[text]


def pinned(attr: KernelAttr) -> Implementation | None:
    """The implementation that is pinned for an attr here, innermost context first, environment last.

    A pin of this kernel is binding: raises NotUsableError with the reason if its implementation cannot be used for the
    attr. A pin of every kernel skips attrs that its implementation cannot compute.
    """
    for chosen in filter(None, (*_pins.get(), _from_environment())):
        name = chosen.get(attr.name)
        if name is not None:
            match = implementation(type(attr), name)
            match.demand(attr)
            return match
        everywhere = find_implementation(type(attr), chosen[EVERY_KERNEL]) if EVERY_KERNEL in chosen else None
        if everywhere is not None and everywhere.reason_against(attr) is None:
            return everywhere
    return None
