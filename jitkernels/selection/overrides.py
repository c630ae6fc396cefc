"""Pins: the user's word that an implementation is to be used, by context or by environment variable."""

import contextlib
import os
from _thread import get_ident  # what `threading` shows, without the rest of it
from collections.abc import Mapping, Sequence
from contextvars import ContextVar

from jitkernels import settings
from jitkernels.attrs.base import KernelAttr
from jitkernels.errors import ArgumentTypeError, NotUsableError, UnknownNameError, shown
from jitkernels.locks import writing
from jitkernels.native import launch
from jitkernels.registry import (
    Implementation,
    all_rows,
    find_implementation,
    implementation,
    implementations,
    row,
)

_pins: ContextVar[tuple[Mapping[str, str], ...]] = ContextVar("pins", default=())
EVERY = "*"
blocks: list[tuple[Mapping[str, str], int]] = []
"""The ``with jk.use(...)`` that are open in this process, each with the thread it was entered in."""


class Pins(contextlib.ContextDecorator):
    """What `use` gives: a block, or a decorated function, in which pins hold; entered as often as you like."""

    def __init__(self, chosen: Mapping[str, str]) -> None:
        self._chosen = chosen
        self._open: list[dict[str, str]] = []

    def __enter__(self) -> None:
        _validate("use", self._chosen)
        launch.reason_for_slow_path()  # loads the launcher if need be, which must not happen while writing
        entered = dict(self._chosen)
        with writing:
            self._open.append(entered)
            blocks.append((entered, get_ident()))
            launch.set_bypass(True)
        _pins.set((entered, *_pins.get()))

    def __exit__(self, *raised: object) -> None:
        held = _pins.get()
        with writing:
            here = [mine for entered in held for mine in self._open if entered is mine]
            if not self._open:
                raise NotUsableError("use: left more often than entered")
            entered = here[0] if here else self._open[-1]  # entered in another thread or task than this
            self._open = [mine for mine in self._open if mine is not entered]
            blocks[:] = [(mine, thread) for mine, thread in blocks if mine is not entered]
            launch.set_bypass(bool(blocks))
        entered.clear()  # tasks started inside the block hold a copy of the context, but not the block
        _pins.set(tuple(other for other in held if other is not entered))


def _drop_those_of_other_threads() -> None:
    """In a forked child: nobody is left to close what another thread had open, and calls need not look for it."""
    if blocks:
        blocks[:] = [(entered, thread) for entered, thread in blocks if thread == get_ident()]
        launch.set_bypass(bool(blocks))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_those_of_other_threads)  # no part of `locks`: it takes none


def use(implementation: str | None = None, **kernels: str) -> Pins:
    """Pin implementations inside a ``with`` block or a decorated function, in this thread or task only.

    ``use(implementation="refer")`` holds for every kernel that has one of that name, wherever it can be used;
    ``use(vmul="mkl")`` for that kernel alone, wins over the former, and where it cannot be used looking for a
    kernel raises NotUsableError with the reason. Entering raises UnknownNameError for a name that does not exist,
    ArgumentTypeError for what is no name.
    """
    chosen = _once("use", [(kernel.lower(), name) for kernel, name in kernels.items()])
    return Pins(chosen if implementation is None else {**chosen, EVERY: implementation})


def _once(where: str, named: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Implementations by kernel; raises UnknownNameError where two are named for the same."""
    chosen: dict[str, str] = {}
    for kernel, name in named:
        if chosen.setdefault(kernel, name) != name:
            which = "every kernel" if kernel == EVERY else kernel
            raise UnknownNameError(
                f"{where}: expected one implementation for {which}, got {chosen[kernel]} and {name}"
            )
    return chosen


def _validate(where: str, chosen: Mapping[str, str]) -> None:
    for kernel, name in chosen.items():
        if not isinstance(name, str):
            which = "implementation" if kernel == EVERY else kernel
            raise ArgumentTypeError(
                f"{where}: {which}: expected the name of an implementation, got {shown(name)}"
            )
        if kernel == EVERY:
            if not any(name in implementations(found) for found in all_rows()):
                raise UnknownNameError(f"{where}: no kernel has an implementation {name!r}")
        else:
            try:
                implementation(row(kernel), name)
            except UnknownNameError as error:
                raise UnknownNameError(f"{where}: {error}") from None


_parsed: dict[str, Mapping[str, str]] = {"": {}}


def _from_environment() -> Mapping[str, str]:
    """``JITKERNELS_USE="vmul=mkl,softmax=gen"`` or ``"refer"`` for every kernel that has it."""
    text = settings.read("JITKERNELS_USE")
    if text not in _parsed:
        entries = [part.strip() for part in text.split(",") if part.strip()]
        split = [part.rpartition("=") for part in entries]
        named = [
            (kernel.strip().lower() if equals else EVERY, name.strip()) for kernel, equals, name in split
        ]
        chosen = _once("JITKERNELS_USE", named)
        _validate("JITKERNELS_USE", chosen)
        _parsed[text] = chosen
    return _parsed[text]


def pinned(attr: KernelAttr) -> Implementation | None:
    """The implementation that is pinned for an attr here, innermost context first, environment last.

    A pin of this kernel holds or fails: raises NotUsableError with the reason if its implementation cannot be
    used for the attr. A pin of every kernel passes over those that its implementation cannot compute.
    """
    for chosen in filter(None, (*_pins.get(), _from_environment())):
        name = chosen.get(attr.name)
        if name is not None:
            found = implementation(type(attr), name)
            found.demand(attr)
            return found
        everywhere = find_implementation(type(attr), chosen[EVERY]) if EVERY in chosen else None
        if everywhere is not None and everywhere.reason_against(attr) is None:
            return everywhere
    return None
