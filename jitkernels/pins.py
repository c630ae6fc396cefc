"""Pins: the user's word that an implementation is to be used, by context or by environment variable."""

import contextlib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar

from jitkernels import settings
from jitkernels.attrs.base import KernelAttr
from jitkernels.errors import UnknownNameError
from jitkernels.locks import writing
from jitkernels.native import launch
from jitkernels.registry import Implementation, all_rows, implementation, implementations, row

_pins: ContextVar[tuple[Mapping[str, str], ...]] = ContextVar("pins", default=())
EVERY = "*"
blocks = 0
"""How many ``with jk.use(...)`` are open in this process; read on the hot path."""


@contextlib.contextmanager
def use(implementation: str | None = None, **kernels: str) -> Iterator[None]:
    """Pin implementations inside a ``with`` block, in this thread or task only.

    ``use(implementation="refer")`` holds for every kernel that has one of that name, wherever it can be used;
    ``use(vmul="mkl")`` for that kernel alone, wins over the former, and where it cannot be used looking for a
    kernel raises NotUsableError with the reason. Raises UnknownNameError for a name that does not exist.
    """
    global blocks
    chosen = {kernel.lower(): name for kernel, name in kernels.items()}
    if implementation is not None:
        chosen[EVERY] = implementation
    _validate("use", chosen)
    launch.reason_for_slow_path()  # loads the launcher if need be, which must not happen while writing
    with writing:
        blocks += 1
        launch.set_bypass(True)
    token = _pins.set((chosen, *_pins.get()))
    try:
        yield
    finally:
        chosen.clear()  # tasks started inside the block hold a copy of the context, but not the block
        with writing:
            blocks -= 1
            launch.set_bypass(blocks > 0)
        _pins.reset(token)


def _validate(where: str, chosen: Mapping[str, str]) -> None:
    for kernel, name in chosen.items():
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
        split = [part.partition("=") for part in entries]
        chosen = {kernel.strip().lower(): name.strip() for kernel, equals, name in split if equals}
        chosen |= {EVERY: part for part in entries if "=" not in part}  # noqa: B035  # the last one wins
        _validate("JITKERNELS_USE", chosen)
        _parsed[text] = chosen
    return _parsed[text]


def pinned(attr: KernelAttr) -> Implementation | None:
    """The implementation that is pinned for an attr here, innermost context first, environment last.

    A pin of this kernel holds or fails: raises NotUsableError with the reason if its implementation cannot be
    used for the attr. A pin of every kernel passes over those that its implementation cannot compute.
    """
    for chosen in (*_pins.get(), _from_environment()):
        name = chosen.get(attr.name)
        if name is not None:
            found = implementation(type(attr), name)
            found.demand(attr)
            return found
        everywhere = implementations(type(attr)).get(chosen.get(EVERY, ""))
        if everywhere is not None and everywhere.reason_against(attr) is None:
            return everywhere
    return None
