"""How a whole program is compiled: what was measured of it, kept by what it computes and the sizes of its arguments.

A pick is a variant as those of kernels are: fields of `JitConfig`, and for some nests, numbered in the order in which
they are made, the vectors of a step and their bytes, such as ``nest3="2 x 64"``; ``nests`` stands for all of which
nothing else is known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from jitkernels import choosing, machine
from jitkernels.attrs.program import ProgramAttr
from jitkernels.errors import AttrError
from jitkernels.graph import extents, fused, guesses
from jitkernels.graph.config import JitConfig
from jitkernels.graph.emit.memory import Array
from jitkernels.graph.emit.targets import Variant
from jitkernels.graph.extents import Extent, Guard, Scope
from jitkernels.graph.ir import Graph
from jitkernels.graph.nests import Nest
from jitkernels.graph.segments import Choose
from jitkernels.native.threads import get_num_threads

NEST, ALL_NESTS = "nest", "nests"
SILENT = ("backend", "cache", "profile", "rules", "strict")
"""Fields of a config that say nothing of how a program is compiled."""
MOST_EXACT = 8
"""Sizes with code of their own that code for all others is kept away from."""


@dataclass
class Picked:
    """How to compile a program: the config, and a variant for some of its nests; `choose` for all others."""

    config: JitConfig
    variant: Mapping[str, Any] = field(default_factory=dict)
    choose: Choose | None = None
    nests: list[Nest] = field(default_factory=list)

    @property
    def told(self) -> str:
        """The variant in words, if it is not what is taken without measuring."""
        said = ", ".join(f"{key}={value}" for key, value in self.variant.items())
        return f"compiled with {said}, measured" if said else ""

    def __call__(
        self, nest: Nest, arrays: Mapping[int, Array], scope: Scope, cost: float, unroll: int
    ) -> Variant | None:
        own = self.variant.get(f"{NEST}{len(self.nests)}")
        self.nests.append(nest)
        if own is None:
            found = self.choose(nest, arrays, scope, cost, unroll) if self.choose else None
            own = self.variant.get(ALL_NESTS)
            if found is not None or own is None:
                return found
        vectors, vector_bytes = map(int, own.split(" x "))
        return Variant(min(vector_bytes, machine.target().vector_bytes), vectors, guesses.stream(nest))


def with_fields(config: JitConfig, variant: Mapping[str, Any]) -> JitConfig:
    """A config with the fields of a variant."""
    return replace(config, **{key: value for key, value in variant.items() if not key.startswith(NEST)})


def picked(graph: Graph, scope: Scope, config: JitConfig, choose: Choose | None) -> Picked:
    """What measured best for the sizes that are traced; the config as it is where nothing was measured.

    Where other sizes have code for themselves alone, this code is kept from serving them.
    """
    unknown = Picked(config, {}, choose)
    if not machine.has_timings("program", get_num_threads()) or choosing.tuning_mode() == "off":
        return unknown
    try:
        attr = attr_of(graph, scope, config)
    except (AttrError, NotImplementedError):
        return unknown
    variant = _best(attr)
    if not variant.get("exact_sizes"):
        _keep_from_exact(attr, scope)
    return Picked(with_fields(config, variant), variant, choose)


def _best(attr: ProgramAttr) -> Mapping[str, Any]:
    record = choosing.known_record(attr)
    return record.pick.variant if record is not None else {}


def _keep_from_exact(attr: ProgramAttr, scope: Scope) -> None:
    """Guard code for all sizes against those that have code of their own, which is made when they come."""
    names = [*attr.extents()]
    row: Any = type(attr)
    found = 0
    for sizes in choosing.known_extents(attr):
        values = dict(zip(names, sizes, strict=True))
        if found >= MOST_EXACT or values == attr.extents() or not _best(row(**values)).get("exact_sizes"):
            continue
        found += 1
        apart: Any = 0
        for name, value in values.items():
            step = Extent({(extents.Atom(name),): 1}, scope) - value
            apart = apart + step * step
        if isinstance(apart, Extent):
            scope.guards[apart.key, ">"] = Guard(apart, ">", is_choice=True)


_rows: dict[str, type[ProgramAttr]] = {}


def attr_of(graph: Graph, scope: Scope, config: JitConfig) -> ProgramAttr:
    """The attr of a program that is compiled so, for the sizes that are traced.

    Raises NotImplementedError where it has something in it that no text says.
    """
    symbols = [
        name for name in scope.values if name not in scope.moving and name[0] != "s"
    ]  # strides have a sign
    if config.rules:
        raise NotImplementedError("rules of one's own have no text")
    told = [one.name for one in fields(config) if one.name not in SILENT]
    head = ", ".join(f"{name}={getattr(config, name)}" for name in told)
    layouts = [", ".join(map(str, node.options.get("strides") or ())) for node in graph.inputs]
    expression = f"{head}\nsteps {'; '.join(layouts)}\n{fused.text_of(graph)}"
    row = _rows.get(expression)
    if row is None:
        row = _rows[expression] = ProgramAttr.row(expression, symbols)
    return row(expression=expression, **{name: scope.values[name] for name in symbols})
