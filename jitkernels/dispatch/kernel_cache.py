"""The kernel cache: a process-wide dictionary from attrs to kernels, each selected and built once."""

from collections.abc import Callable, Collection
from typing import Any, ClassVar

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.kernel_impl import sources_cached
from jitkernels.attrs.schema.registry import Implementation, implementation, implementations
from jitkernels.core import hooks
from jitkernels.core.atomic_files import warn_once
from jitkernels.core.fork_locks import build_lock
from jitkernels.dispatch.kernel import Kernel, kernel_of
from jitkernels.errors import BuildError
from jitkernels.runtime.loading import loader
from jitkernels.runtime.loading.compiled_code import LOAD, Code, code_of
from jitkernels.selection import overrides
from jitkernels.selection.records import Measured
from jitkernels.selection.select import Choice, best_variant, checked, choose, choose_for_class, has_dynamic_shape
from jitkernels.selection.size_classes import class_of

LOOK = 0.02
"""Seconds of calls of a class, of any sizes, after which a search for a kernel of static shape pays off."""


class KernelFuncs:
    """The process-wide dictionary from attr to the fastest kernel. Get it by ``KernelFuncs.cache()``."""

    _instance: ClassVar["KernelFuncs"]
    _clear_callbacks: ClassVar[list[Callable[[], None]]] = []

    def __init__(self) -> None:
        self._selected: dict[tuple[Any, ...], Callable[..., None]] = {}
        self._requested: dict[tuple[KernelAttr, str], Kernel] = {}
        self._classes: dict[KernelAttr, Kernel] = {}
        self._priced: set[tuple[Any, ...]] = set()
        self._codes: dict[tuple[Any, ...], Code] = {}

    @classmethod
    def cache(cls) -> "KernelFuncs":
        """The single instance of this process."""
        return cls._instance

    def at(self, attr: KernelAttr) -> Callable[..., None]:
        """The fastest kernel for an attr, cached: takes input arrays, then output arrays, returns None.

        A hit takes no lock. Raises NotUsableError when an implementation pinned for this kernel cannot be used,
        BuildError when a pinned one cannot be built.
        """
        if not overrides.blocks:
            try:  # tuple keys: hashed and compared in a third of the time of Python methods
                return self._selected[attr._key]
            except (KeyError, AttributeError, TypeError):  # not cached, or not an attr
                pass
        return self._select(attr)

    __getitem__ = at

    def _select(self, attr: KernelAttr) -> Callable[..., None]:
        """The miss path of `at`: a pinned kernel is not cached as the selected one."""
        key = checked(attr)._key
        pinned = overrides.pinned(attr) if overrides.blocks else None
        if pinned is not None:
            return self.get(attr, pinned)
        with build_lock, sources_cached():
            if key not in self._selected:
                self._selected[key] = _build_choice(attr, choose(attr)).callable
            return self._selected[key]

    def of_class(self, attr: KernelAttr) -> Kernel:
        """The fastest kernel of dynamic shape that serves every size of an attr's size class, cached."""
        largest = class_of(attr)
        with build_lock, sources_cached():
            if largest not in self._classes:
                choice = choose_for_class(largest)
                self._classes[largest] = _build_choice(largest, choice, self._code_for_class(largest, choice))
            return self._classes[largest]

    def _code_for_class(self, attr: KernelAttr, choice: Choice) -> Code | None:
        """The code of another class that differs in sizes only, which saves generating its source; None if unknown.

        Code of dynamic shape takes the sizes from its arguments, so it depends on the variant, the other fields and
        which extents are 1. Parallel variants are an exception: how their work is partitioned depends on the sizes.
        """
        implementation, variant = choice.implementation, choice.variant
        if implementation.is_reference or variant.get("parallel"):
            return None
        single = [extent == 1 for _, extent in attr.signature().integers]
        key = implementation, attr.without_extents, *single, *variant.items()
        if key not in self._codes:
            self._codes[key] = code_of(implementation.source(attr, variant))
        return self._codes[key]

    def cost_of_exact(self, attr: KernelAttr, paid: bool) -> float | None:
        """Seconds that calls must cost before a kernel of static shape is requested for this attr; 0 if it may be now.

        None where it would be the kernel of the class. The search is not immediate, as most sizes occur a few times
        only; a kernel that is not built yet must be paid for as well.
        """
        function = self._selected.get(attr._key)
        known = kernel_of(function) if function else None
        if known is not None:
            return 0.0 if known.exact else None
        if not paid:
            return LOOK
        choice = choose(attr)
        if has_dynamic_shape(attr, choice):
            return None
        code = code_of(choice.implementation.source(attr, choice.variant))
        if not loader.is_loadable(code.source):
            return None
        cost = code.seconds
        if cost <= LOAD or attr._key in self._priced:
            return 0.0
        self._priced.add(attr._key)
        return cost

    def get(self, attr: KernelAttr, candidate: Implementation) -> Callable[..., None]:
        """The kernel of one implementation in its best known variant, cached apart from the selected one.

        Raises NotUsableError with the reason if the implementation cannot be used for the attr.
        """
        candidate.demand(attr)
        variant = best_variant(attr, candidate)
        key = attr, Measured(candidate.name, dict(variant)).label
        kernel = self._requested.get(key)
        if kernel is None:
            kernel = self._requested.setdefault(key, Kernel(attr, candidate, variant))
        function: Callable[..., None] = kernel.callable
        return function

    def clear(self) -> None:
        """Drop every kernel, so that the next `at` and the next everyday call select one."""
        with build_lock:
            for cache in (self._selected, self._requested, self._classes, self._priced, self._codes):
                cache.clear()
        for callback in self._clear_callbacks:
            callback()

    @classmethod
    def on_clear(cls, callback: Callable[[], None]) -> None:
        """Call a function after each `clear`, for caches of kernels elsewhere."""
        cls._clear_callbacks.append(callback)


KernelFuncs._instance = KernelFuncs()


def _build_choice(attr: KernelAttr, choice: Choice, code: Code | None = None) -> Kernel:
    """Build the kernel of a choice. If that fails, warn and fall back to refer."""
    try:
        kernel = Kernel(attr, choice.implementation, choice.variant, code)
    except BuildError as error:
        if choice.rule == "pinned" or choice.implementation.is_reference:
            raise
        warn_once(
            f"build {attr}", f"{choice.implementation.name} of {attr} cannot be built, falling back to refer: {error}"
        )
        choice = Choice(implementation(type(attr), "refer"), {}, f"{choice.rule}, but it could not be built")
        kernel = Kernel(attr, choice.implementation, choice.variant)
    kernel.rule = choice.rule
    if choice.record:
        kernel.timings = {m.label: m.seconds for m in choice.record.candidates if m.seconds is not None}
    hooks.watch_pick(kernel, choice)
    return kernel


def get_all_candidates(attr: KernelAttr, only: Collection[str] | None = None) -> dict[str, Callable[..., Any]]:
    """All usable implementations by name (those in `only`, if passed), in the order gen, more, refer."""
    known = implementations(type(checked(attr))).values()
    requested = (candidate for candidate in known if only is None or candidate.name in only)
    return {f.name: KernelFuncs.cache().get(attr, f) for f in requested if f.reason_against(attr) is None}


def get_refer(attr: KernelAttr) -> Callable[..., None]:
    """The kernel of the NumPy reference."""
    return KernelFuncs.cache().get(attr, implementation(type(checked(attr)), "refer"))


def get_default_best(attr: KernelAttr) -> Callable[..., None]:
    """The callable that ``KernelFuncs.cache().at(attr)`` returns."""
    return KernelFuncs.cache().at(attr)
