"""The process-wide dictionary from attrs to kernels: what was chosen is built once and remembered here."""

from collections.abc import Callable, Collection
from importlib import import_module
from typing import Any, ClassVar

from jitkernels import pins
from jitkernels.attrs.base import KernelAttr
from jitkernels.choosing import Choice, best_variant, checked, choose, choose_for_class, is_for_any_size
from jitkernels.disk import say_once
from jitkernels.errors import BuildError
from jitkernels.implementation import sources_made_once
from jitkernels.kernel import Kernel, kernel_of
from jitkernels.locks import making
from jitkernels.native import load
from jitkernels.native.code import LOAD, Code, code_of
from jitkernels.registry import Implementation, implementation, implementations
from jitkernels.tuning.classes import class_of
from jitkernels.tuning.store import Measured

WATCHING = ("jitkernels.earning",)
"""Modules that watch what is picked. They build upon this one, so that the first pick has to bring them."""
LOOK = 0.02
"""Seconds of calls of a class, of whatever sizes, after which it is worth looking for a kernel of one size."""


class KernelFuncs:
    """The process-wide dictionary from attr to the best kernel. Get it by ``KernelFuncs.cache()``."""

    _instance: ClassVar["KernelFuncs"]
    _followers: ClassVar[list[Callable[[], None]]] = []
    _watchers: ClassVar[list[Callable[[Kernel, Choice], None]]] = []

    def __init__(self) -> None:
        self._found: dict[tuple[Any, ...], Callable[..., None]] = {}
        self._asked: dict[tuple[KernelAttr, str], Kernel] = {}
        self._classes: dict[KernelAttr, Kernel] = {}
        self._told: set[tuple[Any, ...]] = set()
        self._codes: dict[tuple[Any, ...], Code] = {}

    @classmethod
    def cache(cls) -> "KernelFuncs":
        """The one instance of this process."""
        return cls._instance

    def at(self, attr: KernelAttr) -> Callable[..., None]:
        """The best kernel for an attr, remembered: takes input arrays, then output arrays, returns None.

        A hit takes no lock. Raises NotUsableError when an implementation pinned for this kernel cannot be used,
        BuildError when a pinned one cannot be built.
        """
        if not pins.blocks:
            try:  # by its key: Python compares tuples and hashes them in a third of the time that methods take
                return self._found[attr._key]
            except (KeyError, AttributeError, TypeError):  # not remembered, or not an attr
                pass
        return self._look(attr)

    __getitem__ = at

    def _look(self, attr: KernelAttr) -> Callable[..., None]:
        """What `at` does but for a hit: a pinned kernel is not remembered as the pick."""
        key = checked(attr)._key
        pinned = pins.pinned(attr) if pins.blocks else None
        if pinned is not None:
            return self.get(attr, pinned)
        with making, sources_made_once():
            if key not in self._found:
                self._found[key] = _picked(attr, choose(attr)).callable
            return self._found[key]

    def of_class(self, attr: KernelAttr) -> Kernel:
        """The best kernel that serves every size of an attr's tuning class, remembered."""
        largest = class_of(attr)
        with making, sources_made_once():
            if largest not in self._classes:
                choice = choose_for_class(largest)
                self._classes[largest] = _picked(largest, choice, self._code_for_class(largest, choice))
            return self._classes[largest]

    def _code_for_class(self, attr: KernelAttr, choice: Choice) -> Code | None:
        """The code of another class that differs in sizes alone, which saves making its source again; None if unknown.

        What serves any size takes the sizes from its arguments, so it follows from the variant, the other fields and
        which extents are 1. Threads make an exception: where and along which extent their work is cut follows from
        the sizes.
        """
        found, variant = choice.implementation, choice.variant
        if found.is_reference or variant.get("parallel"):
            return None
        single = [extent == 1 for _, extent in attr.signature().integers]
        key = found, attr.without_extents, *single, *variant.items()
        if key not in self._codes:
            self._codes[key] = code_of(found.source(attr, variant))
        return self._codes[key]

    def cost_of_exact(self, attr: KernelAttr, paid: bool) -> float | None:
        """Seconds that calls are to cost before a kernel for exactly this attr is asked for; 0 if it may be now.

        None where that is no other than that of its class. Nobody looks at once, as most sizes are met a few times;
        a kernel that is not built yet is then to be paid for as well.
        """
        function = self._found.get(attr._key)
        known = kernel_of(function) if function else None
        if known is not None:
            return 0.0 if known.exact else None
        if not paid:
            return LOOK
        choice = choose(attr)
        if is_for_any_size(attr, choice):
            return None
        code = code_of(choice.implementation.source(attr, choice.variant))
        if not load.can_be_had(code.source):
            return None
        cost = code.seconds
        if cost <= LOAD or attr._key in self._told:
            return 0.0
        self._told.add(attr._key)
        return cost

    def get(self, attr: KernelAttr, found: Implementation) -> Callable[..., None]:
        """The kernel of one implementation in its best known variant, remembered apart from the pick.

        Raises NotUsableError with the reason if the implementation cannot be used for the attr.
        """
        found.demand(attr)
        variant = best_variant(attr, found)
        key = attr, Measured(found.name, dict(variant)).label
        kernel = self._asked.get(key)
        if kernel is None:
            kernel = self._asked.setdefault(key, Kernel(attr, found, variant))
        function: Callable[..., None] = kernel.callable
        return function

    def clear(self) -> None:
        """Forget every kernel, so that the next `at` and the next everyday call look again."""
        with making:
            self._found.clear()
            self._asked.clear()
            self._classes.clear()
            self._told.clear()
            self._codes.clear()
        for follow in self._followers:
            follow()

    @classmethod
    def when_cleared(cls, follow: Callable[[], None]) -> None:
        """Call a function after each `clear`: for those who remember kernels on their own."""
        cls._followers.append(follow)

    @classmethod
    def when_picked(cls, watch: Callable[[Kernel, Choice], None]) -> None:
        """Call a function with each kernel that was picked: for those who count its calls."""
        cls._watchers.append(watch)


KernelFuncs._instance = KernelFuncs()


def _picked(attr: KernelAttr, choice: Choice, code: Code | None = None) -> Kernel:
    """The kernel of a choice, with the reason for it. If it cannot be built, that is said and refer serves."""
    try:
        kernel = Kernel(attr, choice.implementation, choice.variant, code)
    except BuildError as error:
        if choice.rule == "pinned" or choice.implementation.is_reference:
            raise
        say_once(
            f"build {attr}", f"{choice.implementation.name} of {attr} cannot be built, using refer: {error}"
        )
        choice = Choice(implementation(type(attr), "refer"), {}, f"{choice.rule}, but it could not be built")
        kernel = Kernel(attr, choice.implementation, choice.variant)
    kernel.rule = choice.rule
    if choice.record:
        kernel.timings = {m.label: m.seconds for m in choice.record.candidates if m.seconds is not None}
    for module in WATCHING:
        import_module(module)
    for watch in KernelFuncs._watchers:
        watch(kernel, choice)
    return kernel


def get_all_candidates(
    attr: KernelAttr, only: Collection[str] | None = None
) -> dict[str, Callable[..., Any]]:
    """Every implementation usable here by name, or those of these names, in the order gen, more, refer."""
    known = implementations(type(checked(attr))).values()
    asked = (found for found in known if only is None or found.name in only)
    return {f.name: KernelFuncs.cache().get(attr, f) for f in asked if f.reason_against(attr) is None}


def get_refer(attr: KernelAttr) -> Callable[..., None]:
    """The NumPy reference."""
    return KernelFuncs.cache().get(attr, implementation(type(checked(attr)), "refer"))


def get_default_best(attr: KernelAttr) -> Callable[..., None]:
    """The callable that ``KernelFuncs.cache().at(attr)`` remembers."""
    return KernelFuncs.cache().at(attr)
