"""Which implementation computes an attr: the lookup order, the process-wide dictionary, and its explanation."""

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar, NamedTuple

from jitkernels import pins, shipped
from jitkernels.attrs.base import KernelAttr
from jitkernels.disk import say_once
from jitkernels.errors import ArgumentTypeError, BuildError, NotUsableError, UnknownNameError
from jitkernels.kernel import Kernel
from jitkernels.locks import making
from jitkernels.native.threads import get_num_threads
from jitkernels.registry import Implementation, Variant, implementation, implementations
from jitkernels.tuning import store
from jitkernels.tuning.store import Measured, Record
from jitkernels.tuning.tuner import Candidate, tune

MISS_BUDGET = 0.2
"""Seconds of timing that one miss may cost under ``auto``."""
BUILD_BUDGET = 3.0
"""Seconds of building candidates that one miss may cost under ``auto``."""
PROCESS_BUDGET = 20.0
"""Seconds that all misses of a process may cost under ``auto``."""


MOST_MEASURED = 1 << 28
"""Bytes of arrays beyond which ``auto`` does not measure: drawing and checking them takes longer than timing."""


class Place(NamedTuple):
    """Where a kernel runs, the second part of the key of the dictionary."""

    device: str
    threads: int


@functools.cache
def _place(threads: int) -> Place:
    return Place("cpu", threads)


@dataclass(frozen=True)
class Choice:
    """What the lookup order came to: an implementation, its variant, the rule, and the record if there is one."""

    implementation: Implementation
    variant: Variant
    rule: str
    record: Record | None = None


class KernelFuncs:
    """The process-wide dictionary from (attr, place) to the best kernel. Get it by ``KernelFuncs.cache()``."""

    _instance: ClassVar["KernelFuncs"]
    _followers: ClassVar[list[Callable[[], None]]] = []

    def __init__(self) -> None:
        self._found: dict[tuple[KernelAttr, Place], Callable[..., None]] = {}
        self._spent = 0.0

    @classmethod
    def cache(cls) -> "KernelFuncs":
        """The one instance of this process."""
        return cls._instance

    def at(self, attr: KernelAttr) -> Callable[..., None]:
        """The best kernel for an attr, remembered: takes input arrays, then output arrays, returns None.

        A hit takes no lock. Raises NotUsableError when a pinned implementation cannot be used, BuildError
        when a pinned one cannot be built.
        """
        if pins.active() and isinstance(attr, KernelAttr):
            pinned = pins.pinned(attr)
            if pinned is not None:
                return get_kernel(attr, pinned)
        key = (attr, _place(get_num_threads()))
        try:
            found = self._found.get(key)
        except TypeError:  # not hashable, so not an attr
            raise ArgumentTypeError(f"attr: expected an attr such as VMulAttr(n=8), got {attr!r}") from None
        return found if found is not None else self._miss(key)

    __getitem__ = at

    def _miss(self, key: tuple[KernelAttr, Place]) -> Callable[..., None]:
        with making:
            if key not in self._found:
                choice = self.choose(key[0])
                self._found[key] = _picked(key[0], choice).callable
            return self._found[key]

    def clear(self) -> None:
        """Forget every kernel, so that the next `at` and the next everyday call look again."""
        with making:
            self._found.clear()
            _kernels.clear()
        for follow in self._followers:
            follow()

    @classmethod
    def when_cleared(cls, follow: Callable[[], None]) -> None:
        """Call a function after each `clear`: for those who remember kernels on their own."""
        cls._followers.append(follow)

    def choose(self, attr: KernelAttr, *, may_measure: bool = True) -> Choice:
        """Which implementation computes an attr. The first of these that has an answer decides:

        1. pinned: by ``jk.use(...)`` in this context, then by ``JITKERNELS_USE``;
        2. measured: the stored record of the attr's tuning class on this machine and these versions;
        3. shipped: the table that came with the package for this family of CPUs;
        4. measured now: under ``JITKERNELS_TUNE=auto``, while the budgets of the miss and the process last;
        5. static: the first usable of gen, more, refer.

        ``JITKERNELS_TUNE=replay`` leaves out step 4, ``off`` steps 2 to 4; ``JITKERNELS_POLICY=reproducible``
        leaves out all but 1 and 5, so that results do not depend on measurements. Without `may_measure`,
        step 4 is left out as well, and so it is for arrays of more than `MOST_MEASURED` bytes.
        """
        if not isinstance(attr, KernelAttr):
            raise ArgumentTypeError(f"attr: expected an attr such as VMulAttr(n=8), got {attr!r}")
        pinned = pins.pinned(attr)
        if pinned is not None:
            return Choice(pinned, _first_variant(pinned, attr), "pinned")
        mode = tuning_mode()
        if mode != "off":
            record = store.load(attr.tuning_class(), get_num_threads())
            choice = (record and _from_record(attr, record, "measured")) or _from_names(
                attr, shipped.order(attr)
            )
            if choice:
                return choice
            affordable = may_measure and mode == "auto" and self._spent < PROCESS_BUDGET
            if affordable and _nbytes(attr.tuning_class()) <= MOST_MEASURED:
                choice = _from_record(attr, self.measure(attr.tuning_class(), rounds=(1, 15)), "measured now")
                if choice:
                    return choice
        return _static(attr)

    def measure(
        self,
        attr: KernelAttr,
        budget: float = MISS_BUDGET,
        build_budget: float = BUILD_BUDGET,
        rounds: tuple[int, int] = (3, 15),
    ) -> Record:
        """Tune an attr now and store the record; see `jitkernels.tuning.tuner.tune` for the limits."""
        started = perf_counter()
        record = tune(attr, candidates(attr), budget=budget, build_budget=build_budget, rounds=rounds)
        store.save(attr, record, get_num_threads())
        self._spent += perf_counter() - started
        return record


KernelFuncs._instance = KernelFuncs()


def tuning_mode() -> str:
    """The mode "auto", "replay" or "off", from ``JITKERNELS_TUNE`` and ``JITKERNELS_POLICY``."""
    mode = os.environ.get("JITKERNELS_TUNE") or "auto"
    if mode not in ("auto", "replay", "off"):
        raise UnknownNameError(f"JITKERNELS_TUNE: expected auto, replay or off, got {mode!r}")
    policy = os.environ.get("JITKERNELS_POLICY") or "fastest"
    if policy not in ("fastest", "reproducible"):
        raise UnknownNameError(f"JITKERNELS_POLICY: expected fastest or reproducible, got {policy!r}")
    return "off" if policy == "reproducible" else mode


def candidates(attr: KernelAttr) -> list[Candidate]:
    """Everything that can compute an attr here, variant by variant, in the static order."""
    return [
        Candidate(found.name, variant, lambda f=found, v=variant: Kernel(attr, f, v).callable)  # type: ignore[misc]
        for found in implementations(type(attr)).values()
        if found.reason_against(attr) is None
        for variant in found.variants(attr)
    ]


def _nbytes(attr: KernelAttr) -> int:
    return sum(array.nbytes for array in attr.signature().arrays)


def _first_variant(found: Implementation, attr: KernelAttr) -> Variant:
    return found.variants(attr)[0]


def _static(attr: KernelAttr) -> Choice:
    usable = (f for f in implementations(type(attr)).values() if f.reason_against(attr) is None)
    found = next(usable)
    return Choice(found, _first_variant(found, attr), "static")


def _from_record(attr: KernelAttr, record: Record, rule: str) -> Choice | None:
    """The fastest candidate of a record that this attr can use; the record may be of its tuning class."""
    known = implementations(type(attr))
    for measured in record.candidates:
        found = known.get(measured.implementation)
        if measured.seconds is None or found is None or found.reason_against(attr) is not None:
            continue
        variant = _known_variant(found, attr, measured)
        # A variant that no longer exists tells of other code: what came second to it is no answer.
        return None if variant is None else Choice(found, variant, rule, record)
    return None


def _from_names(attr: KernelAttr, names: Sequence[str]) -> Choice | None:
    """The first implementation of a shipped order that this attr can use."""
    known = implementations(type(attr))
    usable = (known[name] for name in names if name in known and known[name].reason_against(attr) is None)
    found = next(usable, None)
    return None if found is None else Choice(found, _first_variant(found, attr), "shipped")


def _known_variant(found: Implementation, attr: KernelAttr, measured: Measured) -> Variant | None:
    """The variant of a record if there still is one like it, the static one if the record names none."""
    if not measured.variant:
        return _first_variant(found, attr)
    known = (*found.variants(attr), *found.variants(attr.tuning_class()))
    return next((variant for variant in known if variant == measured.variant), None)


def _picked(attr: KernelAttr, choice: Choice) -> Kernel:
    """The kernel of a choice, with the reason for it. If it cannot be built, that is said and refer serves."""
    try:
        kernel = _kernel(attr, choice.implementation, choice.variant)
    except BuildError as error:
        if choice.rule == "pinned" or choice.implementation.is_reference:
            raise
        say_once(
            f"build {attr}", f"{choice.implementation.name} of {attr} cannot be built, using refer: {error}"
        )
        choice = Choice(implementation(type(attr), "refer"), {}, f"{choice.rule}, but it could not be built")
        kernel = _kernel(attr, choice.implementation, choice.variant)
    kernel.rule = choice.rule
    if choice.record:
        kernel.timings = {m.label: m.seconds for m in choice.record.candidates if m.seconds is not None}
    return kernel


def get_kernel(attr: KernelAttr, found: Implementation) -> Callable[..., None]:
    """The kernel of one implementation, in its best known variant. Raises NotUsableError with the reason."""
    reason = found.reason_against(attr)
    if reason is not None:
        raise NotUsableError(f"{attr.kernel_type.name}({attr.text()}): {found.name} cannot be used: {reason}")
    function: Callable[..., None] = _kernel(attr, found, best_variant(attr, found)).callable
    return function


_kernels: dict[tuple[KernelAttr, str], Kernel] = {}


def _kernel(attr: KernelAttr, found: Implementation, variant: Variant) -> Kernel:
    """The kernel of a variant, made once: a pick and a candidate of the same name are the same object."""
    key = (attr, Measured(found.name, dict(variant)).label)
    kept = _kernels.get(key)
    return kept if kept is not None else _kernels.setdefault(key, Kernel(attr, found, variant))


def best_variant(attr: KernelAttr, found: Implementation) -> Variant:
    """The variant of an implementation that measured best, else its static choice."""
    record = store.load(attr.tuning_class(), get_num_threads()) if tuning_mode() != "off" else None
    for measured in record.candidates if record else ():
        if measured.implementation == found.name and measured.seconds is not None:
            variant = _known_variant(found, attr, measured)
            if variant is not None:
                return variant
    return _first_variant(found, attr)


def get_all_candidates(attr: KernelAttr) -> dict[str, Callable[..., None]]:
    """Every implementation usable here by name, in the order gen, more, refer."""
    known = implementations(type(attr)).values()
    return {f.name: get_kernel(attr, f) for f in known if f.reason_against(attr) is None}


def get_refer(attr: KernelAttr) -> Callable[..., None]:
    """The NumPy reference."""
    return get_kernel(attr, implementation(type(attr), "refer"))


def get_default_best(attr: KernelAttr) -> Callable[..., None]:
    """The callable that ``KernelFuncs.cache().at(attr)`` remembers."""
    return KernelFuncs.cache().at(attr)
