"""Measured variants of whole programs: records keyed by what a program computes and the sizes of its arguments.

A variant holds fields of `JitConfig`, and for some loop nests, numbered in the order of code generation, the unroll
factor and the vector width in bytes, such as ``nest3="2 x 64"``; ``nests`` stands for all other nests.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from jitkernels.attrs.program import ProgramAttr
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.ir.graph import Graph
from jitkernels.compiler.ir.symbolic_dims import Extent, Guard, Scope
from jitkernels.compiler.lowering import autotune_nest
from jitkernels.compiler.lowering.build_segment import Choose, NestRequest
from jitkernels.compiler.schedule.loop_nest import LoopNest
from jitkernels.compiler.schedule.nest import heuristics
from jitkernels.compiler.schedule.nest.nest_schedule import NestSchedule
from jitkernels.core import cache_dirs, cpu_target
from jitkernels.errors import AttrError
from jitkernels.runtime.threads.num_threads import get_num_threads
from jitkernels.selection import select

NEST, ALL_NESTS = "nest", "nests"
SILENT = ("backend", "cache", "profile", "rules", "strict")
"""Fields of a config that do not change the code of a program."""
MAX_EXACT = 8
"""Sizes with specialized code that the general code excludes by guards, at most."""


@dataclass
class ProgramVariant:
    """How to compile a program: the config, and variants for some of its nests; `choose` decides for all others."""

    config: JitConfig
    variant: Mapping[str, Any] = field(default_factory=dict)
    choose: Choose | None = None
    nests: list[LoopNest] = field(default_factory=list)

    @property
    def description(self) -> str:
        """The variant as text, if it is not the default."""
        settings = ", ".join(f"{key}={value}" for key, value in self.variant.items())
        return f"compiled with {settings}, measured" if settings else ""

    def __call__(self, request: NestRequest) -> NestSchedule | None:
        own = self.variant.get(f"{NEST}{len(self.nests)}")
        self.nests.append(request.nest)
        if own is None:
            chosen = self.choose(request) if self.choose else None
            own = self.variant.get(ALL_NESTS)
            if chosen is not None or own is None:
                return chosen
        vectors, vector_bytes = map(int, own.split(" x "))
        return NestSchedule(
            min(vector_bytes, cpu_target.target().vector_bytes), vectors, heuristics.stream(request.nest)
        )


def with_fields(config: JitConfig, variant: Mapping[str, Any]) -> JitConfig:
    return replace(config, **{key: value for key, value in variant.items() if not key.startswith(NEST)})


def choose_variant(graph: Graph, scope: Scope, config: JitConfig, choose: Choose | None) -> ProgramVariant:
    """The variant that measured best for the traced sizes; the config as it is where nothing was measured.

    Where other sizes have specialized code, guards keep this code from serving them.
    """
    default = ProgramVariant(config, {}, choose)
    if not cache_dirs.has_timings("program", get_num_threads()) or select.tuning_mode() == "off":
        return default
    try:
        attr = attr_of(graph, scope, config)
    except (AttrError, NotImplementedError):
        return default
    variant = _best(attr)
    if not variant.get("exact_sizes"):
        _keep_from_exact(attr, scope)
    return ProgramVariant(with_fields(config, variant), variant, choose)


def _best(attr: ProgramAttr) -> Mapping[str, Any]:
    record = select.known_record(attr)
    return record.pick.variant if record is not None else {}


def _keep_from_exact(attr: ProgramAttr, scope: Scope) -> None:
    """Add guards against sizes that have specialized code, which is compiled when they occur."""
    names = [*attr.extents()]
    schema: Any = type(attr)
    excluded = 0
    for sizes in select.known_extents(attr):
        values = dict(zip(names, sizes, strict=True))
        if excluded >= MAX_EXACT or values == attr.extents() or not _best(schema(**values)).get("exact_sizes"):
            continue
        excluded += 1
        squared_distance: Any = 0
        for name, value in values.items():
            step = Extent({(symbolic_dims.Atom(name),): 1}, scope) - value
            squared_distance = squared_distance + step * step
        if isinstance(squared_distance, Extent):
            scope.guards[squared_distance.key, ">"] = Guard(squared_distance, ">", is_choice=True)


_schemas: dict[str, type[ProgramAttr]] = {}


def attr_of(graph: Graph, scope: Scope, config: JitConfig) -> ProgramAttr:
    """The attr of a program compiled with this config, for the traced sizes.

    Raises NotImplementedError for a program that no text describes completely.
    """
    symbols = [
        name for name in scope.values if name not in scope.loop_variant and name[0] != "s"
    ]  # strides have a sign
    if config.rules:
        raise NotImplementedError("rules of users have no text")
    config_fields = [field.name for field in fields(config) if field.name not in SILENT]
    head = ", ".join(f"{name}={getattr(config, name)}" for name in config_fields)
    layouts = [", ".join(map(str, node.options.get("strides") or ())) for node in graph.inputs]
    expression = f"{head}\nsteps {'; '.join(layouts)}\n{autotune_nest.text_of(graph)}"
    schema = _schemas.get(expression)
    if schema is None:
        schema = _schemas[expression] = ProgramAttr.schema(expression, symbols)
    return schema(expression=expression, **{name: scope.values[name] for name in symbols})
