"""Compile jobs: what LLVM has to do for one object file, as data."""

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, fields, replace
from typing import Any

from jitkernels.core import cpu_target
from jitkernels.core.frozen_dataclass import frozen_dataclass

_gives_bitcode: ContextVar[bool] = ContextVar("gives_bitcode", default=False)


@frozen_dataclass
class CompileJob:
    """One object file. `parts`: LLVM IR texts or bitcode, of which only `visible` names are exported.

    `apart`: texts that are optimized separately, as by `fuse`, and linked then, as are those already
    `optimized`. `passes`: a pipeline of `jitkernels.codegen.llvm_backend`: ``optimize``, with the options `unrolls` and
    `versions_strides`, ``straighten`` (`run_light_pipeline`) or ``fuse``.
    `externals` may stay undefined. `hides_functions`: an exported function of `parts` other than `symbol` is an
    error. `level`: see `codegen.target_machine`; `reduces`: the loops of `parts` get strength reduction, which those
    that are `apart` never do. `forms`: intermediate texts that are dumped beside the object on request, by suffix.
    """

    name: str
    symbol: str
    parts: tuple[str | bytes, ...] = field(repr=False)
    externals: tuple[str, ...] = field(repr=False)
    passes: str
    visible: tuple[str, ...] | None = None
    apart: tuple[str, ...] = field(default=(), repr=False)
    optimized: tuple[str, ...] = field(default=(), repr=False)
    vector_bytes: int = 64
    level: int = 3
    unrolls: bool = True
    reduces: bool = True
    versions_strides: bool = True
    hides_functions: bool = False
    forms: Mapping[str, str] = field(default_factory=dict, repr=False)
    target: cpu_target.Target | None = None
    gives_bitcode: bool = False


def gives_bitcode() -> bool:
    """Whether jobs return bitcode here."""
    return _gives_bitcode.get()


def completed(job: CompileJob) -> CompileJob:
    """Return the job with this process's target, and with `as_bitcode` applied."""
    return replace(job, target=cpu_target.target(), gives_bitcode=_gives_bitcode.get())


def to_json(job: CompileJob) -> dict[str, Any]:
    """Return a completed job as JSON data."""
    data = {field_.name: getattr(job, field_.name) for field_ in fields(job)}
    target = {field_.name: getattr(job.target, field_.name) for field_ in fields(cpu_target.Target)}
    parts = [part if isinstance(part, str) else [b64encode(part).decode()] for part in job.parts]
    return {**data, "parts": parts, "target": {**target, "features": sorted(target["features"])}}


def from_json(data: dict[str, Any]) -> CompileJob:
    """Return the job that `to_json` serialized."""
    target = cpu_target.Target(**{**data["target"], "features": frozenset(data["target"]["features"])})
    parts = tuple(one if isinstance(one, str) else b64decode(one[0]) for one in data["parts"])
    lists = {name: tuple(one) for name, one in data.items() if isinstance(one, list)}
    return CompileJob(**{**data, **lists, "parts": parts, "target": target})


@contextmanager
def as_bitcode() -> Iterator[None]:
    """Let jobs return bitcode, which can be linked with other modules."""
    token = _gives_bitcode.set(True)
    try:
        yield
    finally:
        _gives_bitcode.reset(token)
