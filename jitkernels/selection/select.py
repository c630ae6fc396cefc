"""Select the implementation of an attr: the lookup order. Nothing is built or cached here."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import (
    UNEARNED,
    Implementation,
    Variant,
    find_implementation,
    implementations,
    one_by_one,
)
from jitkernels.core import cpu_target, settings
from jitkernels.core.atomic_files import warn_once
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.errors import ArgumentTypeError, NotUsableError, shown
from jitkernels.runtime.loading import loader
from jitkernels.runtime.threads.num_threads import get_num_threads
from jitkernels.selection import nearest_record, overrides, records, shipped_tables
from jitkernels.selection.nearest_record import nearest
from jitkernels.selection.records import Measured, Record
from jitkernels.selection.size_classes import (
    MIN_SECONDS_FOR_AWAKE_THREADS,
    MIN_SECONDS_FOR_THREADS,
    class_of,
    has_elements,
    least_seconds,
    measured_member,
)


@frozen_dataclass
class Choice:
    """The result of the lookup order: an implementation, its variant, the rule, and the record if there is one."""

    implementation: Implementation
    variant: Variant
    rule: str
    record: Record | None = None
    for_class: bool = False


def choose(attr: KernelAttr) -> Choice:
    """Select the implementation of an attr. The first of these steps that has an answer decides:

    1. pinned: by ``jk.use(...)`` in this context, then by ``JITKERNELS_USE``, in its best known variant;
    2. measured: the stored record of the attr's size class on this machine and these versions;
    3. nearby: the record of the class with the nearest extents, if that is near enough;
    4. shipped: the imported or shipped table for this family of CPUs: of that class or of a nearby one;
    5. static: the first usable of gen, more, refer; with threads, where the work is enough for two of them.

    Nothing is measured here: under ``JITKERNELS_TUNE=auto`` the calls of a kernel earn its record (see
    `jitkernels.tuning.online_tuning`), ``replay`` uses existing records only, ``off`` skips steps 2 to 4. So does
    ``JITKERNELS_POLICY=reproducible``, so that results do not depend on measurements.
    """
    implementation = overrides.pinned(checked(attr))
    if implementation is not None:
        return Choice(implementation, best_variant(attr, implementation), "pinned")
    return _first_available(attr, preferences(attr))


def choose_for_class(attr: KernelAttr, *, in_code: bool = False) -> Choice:
    """As `choose`, but only kernels of dynamic shape, valid for every size of the class with largest member `attr`.

    Sources whose sizes are constants of the code are skipped; ``refer`` has dynamic shape. The ranking for exact sizes
    applies, as tables have no more than the best variant of each implementation. Raises NotUsableError where an
    implementation is pinned that has only sources of static shape.

    `in_code`: compiled code calls it. ``refer`` comes last then, as code would have to call back into Python.
    """
    pinned = overrides.pinned(attr)
    if pinned is not None:
        pinned.demand(attr)
    known: Iterator[Choice] = (
        c for c in preferences(attr, in_code=in_code) if pinned is None or c.implementation is pinned
    )
    offered = _with_dynamic_shape(attr, known)
    suiting = _with_reference_last(offered) if in_code else offered
    choice = _first_available(attr, suiting) if pinned is None else next(suiting, None)
    if choice is None:
        name = pinned.name if pinned else "any implementation"
        raise NotUsableError(
            f"{attr.name}: {name} cannot be used: expected a source of dynamic shape, as everyday calls need one, got "
            "sources of static shape only"
        )
    rule = choice.rule if pinned is None else "pinned"
    return Choice(choice.implementation, choice.variant, rule, choice.record, for_class=True)


def _with_dynamic_shape(attr: KernelAttr, offered: Iterator[Choice]) -> Iterator[Choice]:
    """The choices of dynamic shape; a static one is replaced by another variant unless that follows anyway."""
    for choice in offered:
        if has_dynamic_shape(attr, choice):
            yield choice
            continue
        if choice.rule == "static":
            continue  # step 5 offers all its variants
        same_rule: list[Choice] = []
        for other in offered:  # up to the next rule: querying a library loads it
            same_rule.append(other)
            if other.rule != choice.rule:
                break
        rest = [other for other in same_rule if has_dynamic_shape(attr, other)]
        measured = (other for other in rest if other.rule == choice.rule)
        if all(other.implementation is not choice.implementation for other in measured):
            others = (replace(choice, variant=other) for other in choice.implementation.variants(attr))
            yield from itertools.islice((other for other in others if has_dynamic_shape(attr, other)), 1)
        yield from rest
        yield from (other for other in offered if has_dynamic_shape(attr, other))


def _with_reference_last(offered: Iterator[Choice]) -> Iterator[Choice]:
    last: list[Choice] = []
    for choice in offered:
        if choice.implementation.is_reference:
            last.append(choice)
        else:
            yield choice
    yield from last


def _first_available(attr: KernelAttr, offered: Iterator[Choice]) -> Choice:
    """The first choice; without LLVM the first whose code is cached or that is the reference."""
    if cpu_target.has_compiler():
        return next(offered)
    best: Choice | None = None
    for choice in offered:
        best = best or choice
        implementation = choice.implementation
        if implementation.is_reference or loader.is_built(implementation.source(attr, choice.variant)):
            if implementation.is_reference and not best.implementation.is_reference:
                warn_once(
                    f"without {attr.name}",
                    f"{attr.name} falls back to NumPy: neither the cache nor a pack has its code for "
                    f"{attr.text()}, and llvmlite, which compiles it, is not installed",
                )
            return choice
    raise AssertionError("the reference can always be used")


def reselect(attr: KernelAttr, choice: Choice) -> Choice:
    """Select again, replacing an earlier choice."""
    return choose_for_class(attr) if choice.for_class else choose(attr)


def has_dynamic_shape(attr: KernelAttr, choice: Choice) -> bool:
    """Whether the code of a choice has dynamic shape: it takes its sizes from its arguments."""
    implementation = choice.implementation
    if implementation.is_reference:
        return True
    key = (implementation, *choice.variant.items())  # the same for all attrs: creating a source takes 1 ms
    if key not in _is_static:
        _is_static[key] = getattr(implementation.source(attr, choice.variant), "exact", False)
    return not _is_static[key]


_is_static: dict[tuple[object, ...], bool] = {}


def best_variant(attr: KernelAttr, implementation: Implementation) -> Variant:
    """The variant of an implementation that measured best, else the shipped, else its static one."""
    return next(choice.variant for choice in preferences(attr) if choice.implementation is implementation)


def choose_component(attr: KernelAttr) -> Choice:
    """Select an attr's implementation inside another kernel: one serial C function, not itself a composition.

    Steps 2 to 5; pins do not apply, because the enclosing kernel is cached beyond their block.
    """
    return next(choice for choice in preferences(attr) if _is_composable(choice))


def _is_composable(choice: Choice) -> bool:
    implementation = choice.implementation
    return not (implementation.is_reference or implementation.name == "mix" or choice.variant.get("parallel"))


def has_unmeasured_implementations(attr: KernelAttr, record: Record) -> bool:
    """Whether an implementation is missing from a record, such as one of a package installed since."""
    tried = {measured.implementation for measured in record.candidates}
    others = [candidate for name, candidate in implementations(type(attr)).items() if name not in tried | UNEARNED]
    usable = [candidate for candidate in others if candidate.reason_against(attr) is None]
    return any(candidate.reason_against(measured_member(attr)) is None for candidate in usable)


def tuning_mode() -> str:
    """The mode "auto", "replay" or "off", from ``JITKERNELS_TUNE`` and ``JITKERNELS_POLICY``."""
    return "off" if settings.read("JITKERNELS_POLICY") == "reproducible" else settings.read("JITKERNELS_TUNE")


def known_record(attr: KernelAttr) -> Record | None:
    """The stored record of an attr's size class, for the current number of threads; None for empty arrays."""
    return records.load(class_of(attr), get_num_threads()) if has_elements(attr) else None


def known_extents(attr: KernelAttr) -> list[tuple[int, ...]]:
    """The extents of all attrs with a record that differ from an attr in these only."""
    return nearest_record.known_extents(attr, get_num_threads())


def checked(attr: KernelAttr) -> KernelAttr:
    """Return `attr`. Raises ArgumentTypeError if it is not an attr."""
    if not isinstance(attr, KernelAttr):
        raise ArgumentTypeError(f"attr: expected an attr such as VMulAttr(n=8), got {shown(attr)}")
    return attr


def preferences(attr: KernelAttr, *, in_code: bool = False) -> Iterator[Choice]:
    """The choices of steps 2 to 5, best first; step 5 offers every usable variant."""
    if tuning_mode() != "off" and has_elements(attr):
        measured = nearest(class_of(attr), get_num_threads())
        if measured is not None:
            near, record = measured
            if near == class_of(attr):
                yield from _offered(attr, record.candidates, "measured", record)
            else:
                yield from _offered_nearby(attr, near, record)
        found_in_table = shipped_tables.nearest(attr, get_num_threads())
        if found_in_table is not None:
            near, record = found_in_table
            if near == class_of(attr):
                yield from _offered(attr, record.candidates, "shipped")
            else:
                yield from _offered_nearby(attr, near, record, "shipped")
    for implementation in one_by_one(type(attr)):
        if implementation.reason_against(attr) is None:
            for variant in _static_order(attr, implementation, in_code=in_code):
                yield Choice(implementation, variant, "static")


def _static_order(attr: KernelAttr, implementation: Implementation, *, in_code: bool) -> Sequence[Variant]:
    """The variants of an implementation, parallel ones first where half of the work outlasts waking a thread.

    The parallel range itself decides at each call how many threads it uses.
    """
    own = implementation.variants(attr)
    if get_num_threads() < 2 or settings.read("JITKERNELS_POLICY") == "reproducible":
        return own
    if not any(variant.get("parallel") for variant in own) or least_seconds(attr) < 2 * (
        MIN_SECONDS_FOR_AWAKE_THREADS if in_code else MIN_SECONDS_FOR_THREADS
    ):
        return own
    return sorted(own, key=lambda variant: not variant.get("parallel"))


def _offered_nearby(attr: KernelAttr, near: KernelAttr, record: Record, rule: str = "nearby") -> Iterator[Choice]:
    """The choices that the record of the nearest class supports.

    Threads that paid off for four times the work may not for less, nor do streaming stores that won for twice as much;
    a serial winner at a third of the work says nothing about work large enough for threads.
    """
    work, known = attr.operations(), measured_member(near).operations()
    if work > 3 * known and get_num_threads() > 1 and _is_for_threads(attr):
        return
    unsaid = [*(["stream"] if 2 * work < known else []), *(["parallel"] if 4 * work < known else [])]
    ranked = [_without(measured, unsaid) for measured in record.candidates]
    yield from _offered(attr, ranked, rule, at=near)


def _is_for_threads(attr: KernelAttr) -> bool:
    """Whether some variant that calls pay for uses threads."""
    # Lazily: only usable implementations have variants, and querying a library loads it.
    usable = (
        implementation
        for implementation in one_by_one(type(attr))
        if implementation.name not in UNEARNED and implementation.reason_against(attr) is None
    )
    return any(variant.get("parallel") for implementation in usable for variant in implementation.variants(attr))


def _without(measured: Measured, flags: Sequence[str]) -> Measured:
    """The candidate with these flags of its variant switched off."""
    off = {flag: False for flag in flags if measured.variant.get(flag)}
    return replace(measured, variant={**measured.variant, **off}) if off else measured


def _offered(
    attr: KernelAttr, ranked: Sequence[Measured], rule: str, record: Record | None = None, at: KernelAttr | None = None
) -> Iterator[Choice]:
    """The candidates of a ranking, of the attr's own class or of that of `at`, that this attr can use."""
    for measured in ranked:
        if measured.seconds is None:
            continue
        implementation = find_implementation(type(attr), measured.implementation)
        if implementation is None or implementation.reason_against(attr) is not None:
            continue
        own = implementation.variants(attr)
        if measured.variant and not _exists(measured.variant, implementation, at or attr, own):
            return  # the variant no longer exists: its runner-up is not comparable
        variant = _most_similar(own, measured.variant)
        if variant is None:
            variant = own[0]  # the variant does not exist here: use the static one, not the runner-up
        yield Choice(implementation, variant, rule, record)


def _exists(wanted: Variant, implementation: Implementation, attr: KernelAttr, own: Sequence[Variant]) -> bool:
    """Whether an implementation still has a variant, for this attr or for the measured member of its class."""
    return wanted in own or wanted in implementation.variants(measured_member(attr))


def _most_similar(own: Sequence[Variant], wanted: Variant) -> Variant | None:
    """The variant of an attr that is most like the one measured for its class; None if none has its kind.

    Tile sizes follow from the exact extents; the parameters that are strings or bools must all agree.
    """
    if not wanted:
        return own[0]
    same_kind = [v for v in own if v.keys() == wanted.keys() and _kind(v) == _kind(wanted)]
    return max(same_kind, key=lambda v: sum(v[name] == wanted[name] for name in wanted), default=None)


def _kind(variant: Variant) -> dict[str, object]:
    return {name: value for name, value in variant.items() if isinstance(value, str | bool)}
