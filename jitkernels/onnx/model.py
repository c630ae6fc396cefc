"""`Model`: an ONNX model as a compiled function, with the methods of onnxruntime's ``InferenceSession``.

What runs a model that the cache has, and what reads and compiles any other, are imported when they are needed: a
process that only runs a known model has no use for the compiler.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jitkernels.core.cached_property import unlocked_cached_property
from jitkernels.core.fork_locks import build_lock
from jitkernels.errors import ArgumentError, ArgumentTypeError, shown
from jitkernels.onnx import model_cache
from jitkernels.onnx.detach_tensors import MIN_DETACHED_BYTES
from jitkernels.onnx.model_cache import CachedModel
from jitkernels.onnx.model_interface import ModelInterface, ValueType, checked_input, plain
from jitkernels.onnx.model_source import ModelBytes, ModelSource, reduced, source_of
from jitkernels.runtime.stored_source import NotStorableError

if TYPE_CHECKING:
    from jitkernels.onnx.diagnostics.model_drawing import ModelDrawing
    from jitkernels.onnx.diagnostics.model_explanation import ModelExplanation
    from jitkernels.onnx.diagnostics.model_stats import ModelStats
    from jitkernels.onnx.executor import Executor, Plan
    from jitkernels.onnx.model_graph import OnnxGraph
    from jitkernels.onnx.read_model import ReadModel


NOT_CALLED = "not looked at yet: the model was not called"
"""State of the code of a model in the cache."""


class NotCachedError(Exception):
    """A call that the code in the cache does not accept."""


def loaded(source: Any, *, profile: bool = False, winograd: bool = False) -> "Model":
    """The model of a path, bytes, or a ``ModelProto``. Raises ModelError, and ArgumentTypeError for another option."""
    if type(winograd) is not bool:
        raise ArgumentTypeError(f"winograd: expected a bool, got {shown(winograd)}")
    opened = source_of(source)
    cached = None if opened is None or profile else model_cache.find(opened, winograd=winograd)
    if opened is not None and cached is not None:
        if opened.size < MIN_DETACHED_BYTES:  # its file need not stay open
            opened = ModelBytes(opened.content(), str(opened), opened.folder)
        return Model(cached.interface, partial(_read_later, opened, cached), cached, winograd=winograd)
    from jitkernels.runtime.loading import build_ahead

    build_ahead.prepare()
    from jitkernels.onnx.read_model import read_model, read_proto

    read = read_proto(source) if opened is None else read_model(opened)
    return Model(read.graph.interface, lambda: read, profile=profile, winograd=winograd)


def _read_later(source: ModelSource, cached: CachedModel) -> "ReadModel":
    """The model of which the cache has code, which does not serve all calls."""
    from jitkernels.onnx.read_model import read_model

    with build_lock:
        return read_model(source, cached.external_files())


def _refuse(*_: Any) -> None:
    raise NotCachedError


class Model:
    """A model as a function of its inputs, which returns its output, or a tuple of its outputs."""

    def __init__(
        self,
        interface: ModelInterface,
        read: "Callable[[], ReadModel]",
        cached: CachedModel | None = None,
        *,
        profile: bool = False,
        winograd: bool = False,
    ) -> None:
        """`read` gives the model with its nodes; `cached`: code for calls that need none of these."""
        self._interface, self._make_read, self._cached = interface, read, cached
        self._options = {"profile": profile, "winograd": winograd}
        self._executors: dict[frozenset[str], Executor] = {}
        self._direct: Any = None
        self._served: tuple[Any, ...] | None = None
        self._is_stored, self._cache_state = False, NOT_CALLED
        self._input_names, self._output_names = interface.input_names, list(interface.output_names)

    @unlocked_cached_property
    def _read(self) -> "ReadModel":
        with build_lock:  # threads that call it for the first time share what they read and compile
            known: ReadModel | None = self.__dict__.get("_read")
            if known is None:
                known = self.__dict__["_read"] = self._make_read()
            return known

    @property
    def graph(self) -> "OnnxGraph":
        """The nodes of the model, its constants, and what it declares."""
        return self._read.graph

    @unlocked_cached_property
    def _executor(self) -> "Executor":
        with build_lock:
            known: Executor | None = self.__dict__.get("_executor")
            if known is None:
                known = self.__dict__["_executor"] = self._executor_of(self.graph)
            return known

    def _executor_of(self, graph: "OnnxGraph") -> "Executor":
        """What compiles the nodes of a graph, and runs them."""
        from jitkernels.onnx.executor import Executor

        return Executor(graph, is_profiled=self._options["profile"], winograd=self._options["winograd"])

    def __repr__(self) -> str:
        return f"<onnx model {self._interface.name!r}: {', '.join(map(str, self.get_inputs()))}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as the model that it was loaded from, which is compiled again."""
        load = partial(loaded, **self._options) if any(self._options.values()) else loaded
        return reduced(load, self._read.source, has_external_data=bool(self._read.external_files))

    @property
    def plans(self) -> "list[Plan]":
        """How calls of each kind of arguments so far run their nodes."""
        self._compile_served()
        return self._executor.plans

    def get_inputs(self) -> tuple[ValueType, ...]:
        """The names, types and shapes of the inputs that a call passes."""
        return tuple(one for one in self._interface.inputs if one.name not in self._interface.defaults)

    def get_outputs(self) -> tuple[ValueType, ...]:
        """The names, types and shapes of the outputs."""
        return self._interface.outputs

    def __call__(self, *inputs: Any) -> Any:
        """The outputs for these inputs, in the order of `get_inputs`."""
        direct = self._direct
        if direct is not None:
            try:
                results = direct(inputs)
            except Exception:  # noqa: BLE001  # the checks of the other path say what is wrong
                return self._checked_call(inputs)
            return results[0] if len(results) == 1 else results
        return self._checked_call(inputs)

    def _checked_call(self, inputs: tuple[Any, ...]) -> Any:
        """The same, arguments converted and checked."""
        names = self._input_names
        if len(inputs) != len(names):
            raise ArgumentError(f"expected {len(names)} inputs ({', '.join(names)}), got {len(inputs)}")
        results = self._run(dict(zip(names, inputs, strict=True)))
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, output_names: Sequence[str] | None, feeds: Mapping[str, Any]) -> list[Any]:
        """The outputs of these names, of all for None; `feeds`: the inputs by name."""
        direct, names = self._direct, self._output_names
        is_whole = output_names is None or output_names == self._output_names
        if direct is not None and is_whole and len(feeds) == len(self._input_names):
            with suppress(Exception):  # the checks below say what is wrong
                return list(direct(tuple([feeds[name] for name in self._input_names])))
        unknown = [name for name in output_names or () if name not in names]
        if unknown:
            raise ArgumentError(f"expected names of outputs ({', '.join(names)}), got {', '.join(unknown)}")
        known = dict(zip(names, self._run(feeds), strict=True))
        return [known[name] for name in output_names or names]

    def _run(self, feeds: Mapping[str, Any]) -> list[Any]:
        values = self._checked(feeds)
        given = self._interface.defaults.intersection(values)
        if given:
            return self._overridden(given).run(values)
        inputs = tuple([values[name] for name in self._input_names])
        cached = self._cached
        if cached is not None:
            served = self._run_cached(cached, inputs)
            if served is not None:
                return served
        results = self._executor.run(values)
        self._direct = direct = self._executor.direct_function(self._input_names)
        if self._served is None and not self._is_stored:
            self._is_stored = direct is not None
            self._cache_state = self._store(direct, inputs)
        return results

    def _run_cached(self, cached: CachedModel, inputs: tuple[Any, ...]) -> list[Any] | None:
        """The outputs by code from the cache; None where that does not serve such inputs."""
        if model_cache.are_pinned():
            return None
        with build_lock:
            function = cached.function(_refuse)
        try:
            results = None if function is None else function(inputs)
        except NotCachedError:
            results = None
        if results is None:
            self._cached = None
            return None
        self._direct, self._served = function, tuple((array.shape, array.dtype) for array in inputs)
        self._cache_state = "read from the cache"
        return list(results)

    def _store(self, function: Any, inputs: tuple[Any, ...]) -> str:
        """Keep the code of such calls for other processes, where they can run it; what became of it, as text."""
        from jitkernels.compiler.export.store_entry import described_call

        source = self._read.source
        reason = (
            "it counts times" if self._options["profile"]
            else "the model is no file" if source is None or source.folder is None
            else "tensors other than initializers lie in files of their own" if self._read.reads_more_files
            else "jk.use pins implementations" if model_cache.are_pinned()
            else "it is not one compiled function of all inputs that returns all outputs as arrays" if function is None
            else ""
        )  # fmt: skip
        if reason or source is None:
            return f"not kept, as {reason}"
        try:
            code = described_call(function, inputs)
        except NotStorableError as error:
            return f"not kept, as it needs what only this process has: {error}"
        external, winograd = self._read.external_files, self._options["winograd"]
        return model_cache.store(source, self._interface, code, external=external, winograd=winograd)

    def _compile_served(self) -> None:
        """Compile what code from the cache has computed so far, for those who ask how."""
        served, self._served = self._served, None
        if served is not None:
            self._executor.run(dict(zip(self._input_names, map(np.zeros, *zip(*served, strict=True)), strict=True)))

    def _overridden(self, names: frozenset[str]) -> "Executor":
        """The executor for calls that pass inputs which have initializers."""
        if names not in self._executors:
            constants = self.graph.constants.copy()
            for name in names:
                del constants[name]
            self._executors[names] = self._executor_of(replace(self.graph, constants=constants))
        return self._executors[names]

    def _checked(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs as arrays. Raises ArgumentError for missing and unknown ones, and for other shapes or types."""
        names, inputs = self._input_names, self._interface.inputs
        unknown = [name for name in feeds if name not in names and name not in self._interface.defaults]
        missing = [name for name in names if name not in feeds]
        if unknown or missing:
            text = f"missing: {', '.join(missing)}" if missing else f"unknown: {', '.join(unknown)}"
            raise ArgumentError(f"expected the inputs {', '.join(names)}; {text}")
        return {one.name: checked_input(one, feeds[one.name]) for one in inputs if one.name in feeds}

    def explain(self, *inputs: Any) -> "ModelExplanation":
        """How each node runs for such inputs: runs the model once. Without inputs: as it is planned."""
        from jitkernels.onnx.diagnostics.model_explanation import explanation

        if inputs:
            self(*inputs)
            self._compile_served()
        values = dict(zip(self._input_names, map(plain, inputs), strict=False))
        return explanation(self.name, self._executor, values if inputs else None, cache=self._cache_state)

    def drawing(self, *inputs: Any) -> "ModelDrawing":
        """Draw the kernels of a call with these inputs, with nodes and, after ``load(model, profile=True)``, times.

        Runs the model once. Nodes that run by themselves are boxes between the drawings of compiled code.
        """
        from jitkernels.onnx.diagnostics.model_drawing import ModelDrawing

        self(*inputs)
        self._compile_served()
        values = dict(zip(self._input_names, map(plain, inputs), strict=True))
        return ModelDrawing(self.name, self._executor.plan_for(values).stages, is_timed=self._executor.is_profiled)

    def stats(self) -> "ModelStats":
        """Time, arithmetic rate and memory of each layer in calls of the latest kind of arguments so far.

        Times need ``load(model, profile=True)``; shares of the peak measure the rate of multiply-adds, a tenth of a
        second for each dtype.
        """
        from jitkernels.onnx.diagnostics.model_stats import stats_of

        self._compile_served()
        plans = [plan for executor in (self._executor, *self._executors.values()) for plan in executor.plans]
        return stats_of(self.name, plans[-1].stages if plans else (), is_timed=self._executor.is_profiled)

    @property
    def name(self) -> str:
        """The name of the model's graph."""
        return self._interface.name or "model"

    def source(self) -> str:
        """The nodes as statements, in the order in which they run."""
        lines = []
        for node in self.graph.nodes:
            attributes = [f"{name}={shown(value)}" for name, value in node.attributes.items()]
            arguments = ", ".join([*(name or "None" for name in node.inputs), *attributes])
            lines.append(f"{', '.join(name or '_' for name in node.outputs)} = {node.op}({arguments})")
        return "\n".join(lines)
