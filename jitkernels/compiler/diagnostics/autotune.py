"""`tune` of a compiled function: a given time is spent on measuring where the time of its calls goes.

Kernels that can be measured by themselves are measured as rows of the registry, so that other functions have use of
that. All else is measured in its place: the whole program, compiled one way or another, on copies of its arguments.
Whatever computes something else than level 0 does is out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from jitkernels import machine
from jitkernels.errors import ArgumentError, ArgumentTypeError, AttrError, NotUsableError, shown
from jitkernels.explanation import Explanation
from jitkernels.frontends import programs
from jitkernels.frontends import specialisation as specialisations
from jitkernels.frontends.groups import groups_of
from jitkernels.frontends.specialisation import Specialisation
from jitkernels.graph import compilation, extents, fused, whole
from jitkernels.graph.config import JitConfig
from jitkernels.graph.nests import Nest
from jitkernels.graph.products import Product
from jitkernels.graph.program import Program, aligned
from jitkernels.measuring import require_use
from jitkernels.signature import AnyArray, Array, Signature
from jitkernels.ways import Ways, tune_for

LEAST_SHARE = 0.02
"""Kernels of a smaller share of the time are not looked at, nor calls of one."""
FOR_KERNELS, FOR_CONFIGS = 0.4, 0.3
"""Which part of the time goes to kernels by themselves, and to the ways of compiling the whole; nests get the rest."""
CONFIGS: tuple[Mapping[str, Any], ...] = (
    {}, {"fuse_reduce": False}, {"max_fusion_size": 24}, {"opt_level": 2}, {"exact_sizes": True},
)  # fmt: skip
"""The first one and the last one are tried however little time there is."""
STEPS = (1, 2, 4)
"""Vectors that a nest may take at once."""
SECONDS = 1.0
PROFILED = 3
"""Calls that tell where the time goes."""


def tune(compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Explanation, ...]:
    """What `JitFunction.tune` does."""
    takes_seconds = compiled._signature.takes("seconds")
    seconds = SECONDS if takes_seconds else kwargs.pop("seconds", SECONDS)
    calls = _profiled(compiled) if not (args or kwargs) else []
    try:
        calls = calls or [(*compiled._structure(args, kwargs), 1.0)]
    except TypeError as error:
        raise ArgumentTypeError(
            f"tune: expected the arguments of a call, or calls of a profile: {error}"
        ) from None
    if not isinstance(seconds, int | float) or not 0 < seconds < float("inf"):
        raise ArgumentError(f"seconds: expected a positive number, got {shown(seconds)}")
    function, config = compiled.__wrapped__, compiled.config
    ways = [(Call(function, structure, leaves, config), taken) for structure, leaves, taken in calls]
    require_use()
    total = sum(taken for _, taken in ways)
    told: dict[Any, Explanation] = {}
    compiled.release()
    for way, taken in sorted(ways, key=lambda one: -one[1]):
        share = taken / total if total else 1.0 / len(ways)
        if share >= LEAST_SHARE or not told:
            try:
                told |= {one.attr: one for one in way.tuned(seconds * share)}
            except IndexError as error:
                raise NotUsableError(f"{way.name} raises an exception for these arguments: {error}") from None
    compiled.release()
    return tuple(told.values())


def _profiled(compiled: Any) -> list[tuple[Any, list[Any], float]]:
    """Structures, leaves and seconds of the calls that were counted."""
    return [
        (structure, [*taken.arrays[: len(taken.arrays) - len(one.constants)]], taken.whole)
        for (structure, _), kept in compiled._specialisations.items()
        for one in kept
        if getattr(one.program, "profile", None) is not None
        for taken in one.program.profile.by_sizes.values()
        if taken.calls  # or none has come to its end
    ]


class Call:
    """One kind of calls, compiled in as many ways as there is time for."""

    def __init__(self, function: Any, structure: Any, leaves: Sequence[Any], config: JitConfig) -> None:
        self.function, self.structure = function, structure
        self.given = [laid_alike(one) for one in leaves]
        self.copies = [laid_alike(one) for one in leaves]
        self.config = replace(config, opt_level=abs(config.opt_level), profile=False)
        self.name = getattr(function, "__name__", type(function).__name__)
        self.traces: dict[bool, Specialisation] = {}
        made = self._trace(exact=self.config.exact_sizes)
        if made.graph is None or config.backend != "native":
            raise NotUsableError(
                f"{self.name} has no kernels: it is left to NumPy: {made.reason or 'the interpreter runs it'}"
            )
        if made.has_foreign:
            raise NotUsableError(f"{self.name} takes arrays of another library: expected NumPy's")
        self.written = made.written

    def tuned(self, seconds: float) -> list[Explanation]:
        started = perf_counter()

        def left(share: float) -> float:
            return max(0.0, started + share * seconds - perf_counter())

        told = self._kernels(left)
        reference = self._callable({"opt_level": 0, "exact_sizes": False})
        ways = Ways(self.row, self._callable, reference)
        best = ways.best([dict(one) for one in CONFIGS], left(FOR_KERNELS + FOR_CONFIGS))
        if self._nests_by_share(best) and left(1.0):
            best = ways.best([best, *_with(best, whole.ALL_NESTS, "")], left(1.0) / 2)
        for number, share in self._nests_by_share(best):
            if share < LEAST_SHARE or not left(1.0):
                break
            own = self._compiled(best)[1].nests[number].variant.split(",")[0].removesuffix(" bytes")
            best = ways.best([best, *_with(best, f"{whole.NEST}{number}", own)], left(1.0))
        kept = ways.kept()
        return [*told, kept] if kept is not None else told

    def _kernels(self, left: Callable[[float], float]) -> list[Explanation]:
        """Measure nests and products by themselves, those first that take longest."""
        collected: list[tuple[Nest, fused.FusedNest]] = []

        def collect(nest: Nest, *others: Any) -> Any:
            found = fused.fused_nest(nest, *others)
            if found is not None:
                collected.append((nest, found))
            return programs.measured(nest, *others)

        made = self._trace(exact=self.config.exact_sizes)
        assert made.graph is not None, "asked"
        program = compilation.compiled(made.graph, made.scope, replace(self.config, profile=True), collect)
        if not program.has_kernels:
            raise NotUsableError(f"{self.name} has no kernels: it is left to NumPy")
        alone = {id(nest): found for nest, found in collected}
        told: list[Explanation] = []
        for part, share in _shares(program, self._arrays(made), made):
            if share < LEAST_SHARE or (told and not left(FOR_KERNELS)):
                break
            try:
                if isinstance(part, Product) and not part.node.ndim > 2:
                    attr: Any = part.attr
                elif id(part) in alone:
                    attr = fused.attr_of(alone[id(part)], made.scope.values)
                else:
                    continue
            except AttrError:  # too large to be measured
                continue
            explained = tune_for(attr, left(FOR_KERNELS) * share)
            told += [explained] if explained is not None else []
        return told

    def _nests_by_share(self, best: Mapping[str, Any]) -> list[tuple[int, float]]:
        """The nests of a program compiled so that no row of the registry is for, by their share of its time."""
        program, how, made = self._compiled(best, profile=True)
        alone = {
            id(nest)
            for nest in how.nests
            if nest.variant.endswith("measured") and not self.config.exact_sizes
        }
        numbers = {id(nest): number for number, nest in enumerate(how.nests)}
        shares = _shares(program, self._arrays(made), made)
        return [(numbers[id(p)], share) for p, share in shares if id(p) in numbers and id(p) not in alone]

    def _trace(self, *, exact: bool) -> Specialisation:
        if exact not in self.traces:
            config = replace(self.config, exact_sizes=exact, backend="interpreter")
            self.traces[exact] = specialisations.made(self.function, self.structure, self.given, config)
        return self.traces[exact]

    def _compiled(
        self, variant: Mapping[str, Any], *, profile: bool = False
    ) -> tuple[Program, whole.Picked, Specialisation]:
        config = whole.with_fields(self.config, variant)
        made = self._trace(exact=config.exact_sizes)
        if made.graph is None:
            raise NotUsableError(f"{self.name} is left to NumPy: {made.reason}")
        how = whole.Picked(replace(config, profile=profile), variant, programs.measured)
        return compilation.compiled(made.graph, made.scope, how.config, how), how, made

    def _arrays(self, made: Specialisation) -> list[Any]:
        """The same memory whichever way the program is compiled: where arrays lie decides much."""
        return [*self.copies, *made.constants]

    def _callable(self, variant: Mapping[str, Any]) -> Callable[..., None]:
        """The program, compiled so, as a kernel of the arrays of `row`; before each call these are as they were."""
        program, _, made = self._compiled(variant)
        arrays = self._arrays(made)
        values = made.values(arrays)
        if values is None:
            raise NotUsableError("code that is for other calls")
        before = [(self.copies[i], self.given[i]) for i in self.written]
        call = program.bound(arrays, values)
        call()  # which is when code is made
        told = False

        def run(*given: AnyArray) -> None:
            nonlocal told
            for array, content in before:
                array[...] = content
            results = call()
            if not told:  # those who measure look at the results of the first call
                told = True
                for i in self.written:
                    given[i][...] = arrays[i]
                for array, result in zip(given[len(self.given) :], results, strict=True):
                    array[...] = result

        return run

    @property
    def row(self) -> Any:
        """The row of what is measured, with arguments and results as its arrays."""
        made = self._trace(exact=self.config.exact_sizes)
        assert made.graph is not None, "asked"
        attr = whole.attr_of(made.graph, made.scope, self.config)
        inputs = [np.asarray(one) for one in self.given]
        given = [
            Array(f"x{i}", "inout" if i in self.written else "in", one.shape, one.dtype.name)
            for i, one in enumerate(inputs)
        ]
        values = made.values(self.given) or {}
        results = [
            Array(
                f"y{i}", "out", tuple(extents.evaluated(extent, values) for extent in node.shape), node.dtype
            )
            for i, node in enumerate(made.graph.outputs)
        ]
        attr.measured_with(Given((*given, *results), inputs))
        return attr


class Given(Signature):
    """Arrays of a call that somebody made."""

    def __init__(self, arrays: tuple[Array, ...], inputs: Sequence[AnyArray]) -> None:
        super().__init__(arrays)
        self.__dict__["_inputs"] = inputs

    def sample(self, seed: int = 0) -> list[AnyArray]:
        inputs: Sequence[AnyArray] = self.__dict__["_inputs"]
        generator = np.random.default_rng(seed)
        return [
            *(one.copy() for one in inputs),
            *(one.sample(generator) for one in self.arrays[len(inputs) :]),
        ]


def laid_alike(leaf: Any) -> Any:
    """A copy of an array that lies in memory as that does."""
    if type(leaf) is not np.ndarray:
        return leaf
    reach = [(extent - 1) * step for extent, step in zip(leaf.shape, leaf.strides, strict=True)]
    first = -sum(min(one, 0) for one in reach)
    size = first + sum(max(one, 0) for one in reach) + leaf.itemsize if leaf.size else 0
    new: Any = np.ndarray(leaf.shape, leaf.dtype, aligned(size), first if leaf.size else 0, leaf.strides)
    new[...] = leaf
    new.flags.writeable = leaf.flags.writeable
    return new


def _shares(program: Program, arrays: Sequence[Any], made: Specialisation) -> list[tuple[Any, float]]:
    """The parts of a program that was compiled to be timed, by the share of its time that each took."""
    values = made.values(arrays)
    assert values is not None, "traced for these"
    assert program.profile is not None, "asked for"
    for _ in range(PROFILED):
        program.run(arrays, values)
    (taken,) = program.profile.by_sizes.values()
    groups = groups_of(program, program.graph)
    numbers = {id(part): number for number, part in enumerate(program.profile.parts)}
    total = sum(taken.seconds(numbers[id(part)]) for g in groups for part in g.parts if id(part) in numbers)
    found = [
        (part, taken.seconds(i) / total if total else 0.0) for i, part in enumerate(program.profile.parts)
    ]
    return sorted(found, key=lambda one: -one[1])


def _with(best: Mapping[str, Any], key: str, own: str) -> list[dict[str, Any]]:
    """The same with other vectors for some nests than their own."""
    widest = machine.target().vector_bytes
    texts = [f"{steps} x {wide}" for wide in (widest, widest // 2) for steps in STEPS if wide >= 16]
    return [{**best, key: text} for text in texts if text != own]
