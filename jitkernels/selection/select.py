"""Which implementation computes an attr: the lookup order. It looks and answers; it builds and keeps nothing."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from jitkernels import machine, pins, settings, shipped
from jitkernels.attrs.base import KernelAttr
from jitkernels.disk import say_once
from jitkernels.errors import ArgumentTypeError, NotUsableError, shown
from jitkernels.native import load
from jitkernels.native.threads import get_num_threads
from jitkernels.records import record
from jitkernels.registry import Implementation, Variant, find_implementation, implementations, one_by_one
from jitkernels.tuning import nearby, store
from jitkernels.tuning.classes import (
    LEAST_FOR_THREADS,
    class_of,
    has_elements,
    least_seconds,
    measured_member,
)
from jitkernels.tuning.nearby import nearest
from jitkernels.tuning.store import Measured, Record


@record
class Choice:
    """What the lookup order came to: an implementation, its variant, the rule, and the record if there is one."""

    implementation: Implementation
    variant: Variant
    rule: str
    record: Record | None = None
    for_class: bool = False


def choose(attr: KernelAttr) -> Choice:
    """Which implementation computes an attr. The first of these that has an answer decides:

    1. pinned: by ``jk.use(...)`` in this context, then by ``JITKERNELS_USE``, in its best known variant;
    2. measured: the stored record of the attr's tuning class on this machine and these versions;
    3. nearby: the record of the class whose extents are nearest, if that is not far;
    4. shipped: the table for this family of CPUs that was imported, or came with the package: of that class or nearby;
    5. static: the first usable of gen, more, refer; with threads, where the work is enough for two of them.

    Nothing is measured here: under ``JITKERNELS_TUNE=auto`` the calls of a kernel earn its record (see
    `jitkernels.earning`), under ``replay`` there are only the records that exist, ``off`` leaves out steps 2
    to 4. So does ``JITKERNELS_POLICY=reproducible``, so that results do not depend on measurements.
    """
    found = pins.pinned(checked(attr))
    if found is not None:
        return Choice(found, best_variant(attr, found), "pinned")
    return _first_to_be_had(attr, preferences(attr))


def choose_for_class(attr: KernelAttr, *, in_code: bool = False) -> Choice:
    """As `choose`, but of kernels that are right for every size of the attr's class, which is given by its largest.

    Sources whose sizes are constants of the code are left out; ``refer`` is none of them. What is best for exact sizes
    is taken for any size, if it can be: tables have no more than the best variant of each implementation. Raises
    NotUsableError where an implementation is pinned that has no others.

    `in_code`: compiled code calls it. ``refer`` comes last then, as code would have to stop for Python.
    """
    found = pins.pinned(attr)
    if found is not None:
        found.demand(attr)
    known: Iterator[Choice] = (c for c in preferences(attr) if found is None or c.implementation is found)
    offered = _for_any_size(attr, known)
    suiting = _with_reference_last(offered) if in_code else offered
    choice = _first_to_be_had(attr, suiting) if found is None else next(suiting, None)
    if choice is None:
        name = found.name if found else "any implementation"
        raise NotUsableError(
            f"{attr.name}: {name} cannot be used: expected a source for any size, as everyday calls need one, got "
            "sources of exact sizes only"
        )
    rule = choice.rule if found is None else "pinned"
    return Choice(choice.implementation, choice.variant, rule, choice.record, for_class=True)


def _for_any_size(attr: KernelAttr, offered: Iterator[Choice]) -> Iterator[Choice]:
    """What is offered for any size, and in place of what is not, another variant that is, unless that comes later."""
    for choice in offered:
        if is_for_any_size(attr, choice):
            yield choice
            continue
        if choice.rule == "static":
            continue  # all its variants are offered
        alike: list[Choice] = []
        for one in offered:  # no further than what goes by the same rule, as asking libraries loads them
            alike.append(one)
            if one.rule != choice.rule:
                break
        rest = [one for one in alike if is_for_any_size(attr, one)]
        measured = (one for one in rest if one.rule == choice.rule)
        if all(one.implementation is not choice.implementation for one in measured):
            others = (replace(choice, variant=one) for one in choice.implementation.variants(attr))
            yield from itertools.islice((one for one in others if is_for_any_size(attr, one)), 1)
        yield from rest
        yield from (one for one in offered if is_for_any_size(attr, one))


def _with_reference_last(offered: Iterator[Choice]) -> Iterator[Choice]:
    last: list[Choice] = []
    for choice in offered:
        if choice.implementation.is_reference:
            last.append(choice)
        else:
            yield choice
    yield from last


def _first_to_be_had(attr: KernelAttr, offered: Iterator[Choice]) -> Choice:
    """The first choice; without LLVM the first whose code was built before, of which the reference has none."""
    if machine.has_compiler():
        return next(offered)
    best: Choice | None = None
    for choice in offered:
        best = best or choice
        found = choice.implementation
        if found.is_reference or load.is_built(found.source(attr, choice.variant)):
            if found.is_reference and not best.implementation.is_reference:
                say_once(
                    f"without {attr.name}",
                    f"{attr.name} is left to NumPy: neither the cache nor a pack has its code for {attr.text()}, and "
                    "llvmlite, which makes it, is not installed",
                )
            return choice
    raise AssertionError("the reference can always be used")


def choose_again(attr: KernelAttr, choice: Choice) -> Choice:
    """What would be chosen now in place of an earlier choice."""
    return choose_for_class(attr) if choice.for_class else choose(attr)


def is_for_any_size(attr: KernelAttr, choice: Choice) -> bool:
    """Whether the code of a choice takes its sizes from its arguments."""
    found = choice.implementation
    if found.is_reference:
        return True
    key = found, *choice.variant.items()  # the variant says it for all attrs: asking takes a millisecond
    if key not in _exact:
        _exact[key] = getattr(found.source(attr, choice.variant), "exact", False)
    return not _exact[key]


_exact: dict[tuple[object, ...], bool] = {}


def best_variant(attr: KernelAttr, found: Implementation) -> Variant:
    """The variant of an implementation that measured best, else the shipped, else its static one."""
    return next(choice.variant for choice in preferences(attr) if choice.implementation is found)


def choose_component(attr: KernelAttr) -> Choice:
    """What computes an attr inside another kernel: one C function on one thread, and no composition itself.

    Steps 2 to 5; pins do not count, because the kernel around it is kept beyond their block.
    """
    return next(choice for choice in preferences(attr) if _can_be_inside(choice))


def _can_be_inside(choice: Choice) -> bool:
    found = choice.implementation
    return not (found.is_reference or found.name == "mix" or choice.variant.get("parallel"))


def has_newcomers(attr: KernelAttr, record: Record) -> bool:
    """Whether an implementation has come since a record was made, such as one of a package installed meanwhile."""
    tried = {measured.implementation for measured in record.candidates}
    others = [found for name, found in implementations(type(attr)).items() if name not in tried]
    usable = [found for found in others if found.reason_against(attr) is None]
    return any(found.reason_against(measured_member(attr)) is None for found in usable)


def tuning_mode() -> str:
    """The mode "auto", "replay" or "off", from ``JITKERNELS_TUNE`` and ``JITKERNELS_POLICY``."""
    return "off" if settings.read("JITKERNELS_POLICY") == "reproducible" else settings.read("JITKERNELS_TUNE")


def known_record(attr: KernelAttr) -> Record | None:
    """The stored record of an attr's tuning class, for the present number of threads; none without elements."""
    return store.load(class_of(attr), get_num_threads()) if has_elements(attr) else None


def known_extents(attr: KernelAttr) -> list[tuple[int, ...]]:
    """The extents of all attrs with a record that differ from an attr in these alone."""
    return nearby.known_extents(attr, get_num_threads())


def checked(attr: KernelAttr) -> KernelAttr:
    """The attr itself. Raises ArgumentTypeError if it is none."""
    if not isinstance(attr, KernelAttr):
        raise ArgumentTypeError(f"attr: expected an attr such as VMulAttr(n=8), got {shown(attr)}")
    return attr


def preferences(attr: KernelAttr) -> Iterator[Choice]:
    """Everything that steps 2 to 5 have to offer, best first; step 5 offers every usable variant."""
    if tuning_mode() != "off" and has_elements(attr):
        measured = nearest(class_of(attr), get_num_threads())
        if measured is not None:
            near, record = measured
            if near == class_of(attr):
                yield from _offered(attr, record.candidates, "measured", record)
            else:
                yield from _offered_nearby(attr, near, record)
        found_in_table = shipped.nearest(attr, get_num_threads())
        if found_in_table is not None:
            near, record = found_in_table
            if near == class_of(attr):
                yield from _offered(attr, record.candidates, "shipped")
            else:
                yield from _offered_nearby(attr, near, record, "shipped")
    for found in one_by_one(type(attr)):
        if found.reason_against(attr) is None:
            for variant in _static_order(attr, found):
                yield Choice(found, variant, "static")


def _static_order(attr: KernelAttr, found: Implementation) -> Sequence[Variant]:
    """The variants of an implementation, those with threads first where half of the work outlasts their waking up.

    Its own parallel range has the last word, at each call, on how many threads it is worth.
    """
    own = found.variants(attr)
    if get_num_threads() < 2 or settings.read("JITKERNELS_POLICY") == "reproducible":
        return own
    if not any(variant.get("parallel") for variant in own) or least_seconds(attr) < 2 * LEAST_FOR_THREADS:
        return own
    return sorted(own, key=lambda variant: not variant.get("parallel"))


def _offered_nearby(
    attr: KernelAttr, near: KernelAttr, record: Record, rule: str = "nearby"
) -> Iterator[Choice]:
    """What the nearest class has to offer.

    Threads that were worth it for four times the work may not be for less, nor are stores past the caches that won
    for twice as much; what won without threads at a third of it says nothing of work that threads are for.
    """
    work, known = attr.operations(), measured_member(near).operations()
    if work > 3 * known and get_num_threads() > 1 and _is_for_threads(attr):
        return
    unsaid = [*(["stream"] if 2 * work < known else []), *(["parallel"] if 4 * work < known else [])]
    ranked = [_without(measured, unsaid) for measured in record.candidates]
    yield from _offered(attr, ranked, rule, at=near)


def _is_for_threads(attr: KernelAttr) -> bool:
    """Whether some variant of it uses threads."""
    # One after the other, since only what can be used has variants, and asking a library loads it.
    usable = (found for found in one_by_one(type(attr)) if found.reason_against(attr) is None)
    return any(variant.get("parallel") for found in usable for variant in found.variants(attr))


def _without(measured: Measured, flags: Sequence[str]) -> Measured:
    """The same with flags off that its variant has."""
    off = {flag: False for flag in flags if measured.variant.get(flag)}
    return replace(measured, variant={**measured.variant, **off}) if off else measured


def _offered(
    attr: KernelAttr,
    ranked: Sequence[Measured],
    rule: str,
    record: Record | None = None,
    at: KernelAttr | None = None,
) -> Iterator[Choice]:
    """Those of a ranking, of the attr's tuning class or that of another attr, which this attr can use."""
    for measured in ranked:
        if measured.seconds is None:
            continue
        found = find_implementation(type(attr), measured.implementation)
        if found is None or found.reason_against(attr) is not None:
            continue
        own = found.variants(attr)
        if measured.variant and not _exists(measured.variant, found, at or attr, own):
            return  # it tells of other code: what came second to it is no answer
        variant = _likest(own, measured.variant)
        if variant is None:
            variant = own[0]  # what came second elsewhere is no answer to a variant that there is not here
        yield Choice(found, variant, rule, record)


def _exists(wanted: Variant, found: Implementation, attr: KernelAttr, own: Sequence[Variant]) -> bool:
    """Whether an implementation still has a variant, for this attr or for the one measured on its behalf."""
    return wanted in own or wanted in found.variants(measured_member(attr))


def _likest(own: Sequence[Variant], wanted: Variant) -> Variant | None:
    """The variant of an attr that is most like the one measured for its class; None if none is of that kind.

    Tiles follow from the exact extents; of the parameters that are words or yes and no, all must agree.
    """
    if not wanted:
        return own[0]
    alike = [v for v in own if v.keys() == wanted.keys() and _kind(v) == _kind(wanted)]
    return max(alike, key=lambda v: sum(v[name] == wanted[name] for name in wanted), default=None)


def _kind(variant: Variant) -> dict[str, object]:
    return {name: value for name, value in variant.items() if isinstance(value, str | bool)}
