"""Stages of a model: runs of nodes that are compiled as one function, and nodes that run by themselves.

A node ends a stage where a later one needs the elements of its result as a shape, and where it cannot be compiled.
"""

from collections.abc import Mapping, MutableMapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from jitkernels.compiler.api.jit import jit
from jitkernels.compiler.capture.array_proxy import Traced, traced
from jitkernels.compiler.capture.callee_monitor import monitor_suspended
from jitkernels.compiler.capture.fixed_extents import fix_extents
from jitkernels.compiler.capture.pytree.transposed_results import owned_result
from jitkernels.compiler.capture.trace_context import current
from jitkernels.compiler.ir.elementwise_ops import is_known
from jitkernels.compiler.ir.graph import Node, serial
from jitkernels.errors import ArgumentError, ArgumentTypeError, ModelError, TracingError, WorkspaceError, shown
from jitkernels.onnx.model_graph import OnnxNode
from jitkernels.onnx.model_interface import ValueType, plain
from jitkernels.onnx.narrow_types import NarrowArray, bits_type, has_narrow
from jitkernels.onnx.reference_node import ReferenceNode
from jitkernels.onnx.run_node import run_node
from jitkernels.onnx.values import NotServedError, TooLargeError, constant, materialized
from jitkernels.onnx.weights import Values, Weights

COMPILED_LEVEL, NUMPY_LEVEL, REFERENCE_LEVEL = "compiled", "NumPy", "onnx.reference"
"""How a node runs: in compiled code; its operator by NumPy; or by the reference implementation of ONNX."""
MAX_STATICS = 64
"""Most values of shapes, axes and the like for which a stage keeps code; NumPy serves the others."""
MAX_STATIC_BYTES = 1 << 16


class ReplanError(Exception):
    """Nodes have to run in another way than planned: `nodes` with their levels and the reasons."""

    def __init__(self, nodes: Mapping[OnnxNode, tuple[str, str]]) -> None:
        super().__init__()
        self.nodes = nodes


class CompiledStage:
    """Nodes that are compiled as one function.

    `statics`: the names among its inputs whose elements are constants of the code. `is_exact`: the sizes of all inputs
    are fixed by the model, and are constants of the code, too. `is_profiled`: its code counts the time of each kernel.
    `origins`: the serials of the graph's nodes at which the trace of each node began; None follows the last one.
    `winograd`: as in `JitConfig`.
    """

    level = COMPILED_LEVEL

    def __init__(
        self,
        nodes: Sequence[OnnxNode],
        inputs: Sequence[str],
        statics: Sequence[str],
        outputs: Sequence[str],
        constants: Weights,
    ) -> None:
        self.nodes, self.inputs, self.statics, self.outputs = tuple(nodes), tuple(inputs), tuple(statics), outputs
        self.is_exact = self.is_profiled = self.winograd = False
        self.origins: list[tuple[int, OnnxNode | None]] = []
        self.declared: Mapping[str, ValueType] = {}
        self._has_numbers = False
        self._constants = constants
        self._functions: dict[Any, Any] = {}
        self._at: OnnxNode | None = None
        self._copies = False
        self._bases: set[Node] = set()
        self._narrow: dict[str, Any] = {}

    @property
    def functions(self) -> list[Any]:
        """The compiled functions, one for each set of elements of the static values."""
        return [*self._functions.values()]

    @property
    def specializations(self) -> list[Any]:
        """The code of all of these."""
        return [one for function in self.functions for one in function.specializations]

    def function(self, values: Mapping[str, Any]) -> Any:
        """The compiled function for the elements of the static values."""
        narrow = {name: values[name].dtype for name in self.inputs if has_narrow(values[name])}
        key = (*(_content(values[name]) for name in self.statics), *narrow.items())
        function = self._functions.get(key)
        if function is None:
            if len(self._functions) >= MAX_STATICS:
                raise ReplanError(self._all(NUMPY_LEVEL, "its shapes, axes and the like differ from call to call"))
            known = {name: constant(values[name]) for name in self.statics}

            def model(arrays: Any) -> Any:
                return self._run(arrays, known, narrow)

            function = self._functions[key] = jit(
                model, strict=True, exact_sizes=self.is_exact, profile=self.is_profiled, winograd=self.winograd
            )
            function.is_interpreter = True
        return function

    def direct_function(self, inputs: Sequence[str], outputs: Sequence[str]) -> Any:
        """The function itself, if it takes just these inputs and returns just these outputs as arrays; else None."""
        is_whole = self.inputs == tuple(inputs) and tuple(self.outputs) == tuple(outputs) and not self.statics
        is_plain = not self._narrow and not self._has_numbers and all(len(key) == 0 for key in self._functions)
        return next(iter(self._functions.values()), None) if is_whole and is_plain else None

    def run(self, values: MutableMapping[str, Any]) -> None:
        """Run the nodes on arrays. Raises ReplanError where one cannot be compiled."""
        arrays = tuple([_bits(values[name]) for name in self.inputs])
        function = self.function(values)
        try:
            results = function(arrays)
        except (TracingError, NotServedError) as error:
            if not self._copies and self._at is None and not self._unsupported(arrays):
                self._copies = True  # results that are views of arguments or of one another
                self._functions.clear()
                self.run(values)
                return
            raise ReplanError(self._failed(error, arrays)) from None
        except (ArgumentError, ArgumentTypeError, MemoryError):
            raise
        except TooLargeError as error:
            raise ModelError(f"{self._at}: {error}") from error
        except Exception as error:  # the next level computes the node, or raises its error
            if self._at is None:
                raise
            raise ReplanError({self._at: (NUMPY_LEVEL, f"{type(error).__name__}: {error}")}) from None
        for name, result in zip(self.outputs, results, strict=True):
            is_number = isinstance(result, np.generic)
            self._has_numbers |= is_number
            array = np.asarray(result) if is_number else result
            values[name] = array.view(self._narrow[name]) if name in self._narrow else array

    def _run(self, arrays: Sequence[Any], known: Mapping[str, Any], narrow: Mapping[str, Any]) -> tuple[Any, ...]:
        """What is traced: the nodes, one after another."""
        tracer = current()
        if tracer is not None:
            tracer.is_quiet = tracer.accepts_arrays = True
        values = Values(self._constants, {**dict(zip(self.inputs, arrays, strict=True)), **known})
        if not narrow:
            for name, array in zip(self.inputs, arrays, strict=True):
                check_declared(self.declared.get(name), array)
                _fix_declared(self.declared.get(name), array)
        values.update((name, NarrowArray(values[name], dtype)) for name, dtype in narrow.items())
        self._at = None
        with monitor_suspended(), np.errstate(all="ignore"):
            for node in self.nodes:
                self._at = node
                self.origins.append((serial(), node))
                run_node(node, values)
            self.origins.append((serial(), None))
            results, self._bases = [], set()
            for name in self.outputs:
                self._at = next(node for node in self.nodes if name in node.outputs)
                value = values[name]
                if has_narrow(value):
                    self._narrow[name] = value.dtype
                    value = value.bits if type(value) is NarrowArray else constant(_bits(np.asarray(value)))
                results.append(self._result(value))
        self._at, self._bases = None, set()
        return tuple(results)

    def _result(self, value: Any) -> Any:
        """A value as a result of compiled code, which constants are no results of."""
        if isinstance(value, list):
            return [self._result(one) for one in value]
        tracer, value = current(), materialized(value)
        if value is None or tracer is None:
            return plain(value)
        if type(value) is not Traced:
            return traced(tracer, value).copy()
        if value.is_weak:
            return np.array(value)
        return value.copy() if self._copies else owned_result(value, self._bases)

    def _all(self, level: str, reason: str) -> dict[OnnxNode, tuple[str, str]]:
        return dict.fromkeys(self.nodes, (level, reason))

    def _unsupported(self, arrays: Sequence[Any]) -> set[str]:
        """The inputs that compiled code does not take."""
        return {name for name, array in zip(self.inputs, arrays, strict=True) if not _is_compilable(array)}

    def _failed(self, error: Exception, arrays: Sequence[Any]) -> dict[OnnxNode, tuple[str, str]]:
        """The nodes that an error excludes from compiled code."""
        reason = str(error).rpartition("falls back to NumPy: ")[2]
        if self._at is not None:
            return {self._at: (NUMPY_LEVEL, reason)}
        names = self._unsupported(arrays)
        readers = {node: (NUMPY_LEVEL, reason) for node in self.nodes if names.intersection(node.reads)}
        return readers or self._all(NUMPY_LEVEL, reason)


def _is_compilable(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_compilable, value))
    return value is None or is_known(np.asarray(value).dtype)


def _bits(value: Any) -> Any:
    """An array as compiled code takes it: the bits of elements that NumPy lacks."""
    return value.view(bits_type(value.dtype)) if has_narrow(value) else value


def _content(value: Any) -> Any:
    """The elements of a static value, as a key."""
    array = np.asarray(value)
    if array.nbytes > MAX_STATIC_BYTES:
        raise ModelError(f"an array of shape {array.shape} decides a shape, an axis or the like")
    return array.dtype.str, array.shape, array.tolist().__repr__() if array.dtype.hasobject else array.tobytes()


def check_declared(declared: ValueType | None, array: Any) -> None:
    """Raise ArgumentTypeError or ArgumentError for an array that is not what a model declares."""
    if declared is None or not declared.dtype or declared.dtype == "object":
        return
    if not hasattr(array, "dtype") or array.dtype.name != declared.dtype:
        raise ArgumentTypeError(f"{declared.name}: expected an array of {declared.dtype}, got {shown(array)}")
    shape = declared.shape
    if shape is not None and (
        len(shape) != array.ndim
        or any(type(one) is int and one != size for one, size in zip(shape, array.shape, strict=True))
    ):
        raise ArgumentError(f"{declared.name}: expected the shape {list(shape)}, got an array of another")


def _fix_declared(declared: ValueType | None, array: Any) -> None:
    """Make the sizes that a model fixes constants of the code."""
    if declared is not None and declared.shape is not None and type(array) is Traced:
        fix_extents(array, [size if type(size) is int else None for size in declared.shape])


class SingleStage:
    """One node by itself: its operator on NumPy's arrays, or the reference implementation."""

    statics: tuple[str, ...] = ()

    def __init__(self, node: OnnxNode, level: str, constants: Weights) -> None:
        self.nodes, self.level = (node,), level
        self.inputs, self.outputs = node.reads, tuple(name for name in node.outputs if name)
        self._constants = constants
        self._reference = ReferenceNode(node) if level == REFERENCE_LEVEL else None
        self.least_seconds: float | None = None

    def run(self, values: MutableMapping[str, Any]) -> None:
        """Run the node. Raises ReplanError where NumPy cannot, ModelError where nothing can."""
        began = perf_counter()
        self._run(values)
        seconds = perf_counter() - began
        self.least_seconds = seconds if self.least_seconds is None else min(seconds, self.least_seconds)

    def _run(self, values: MutableMapping[str, Any]) -> None:
        (node,) = self.nodes
        inputs = {name: values[name] if name in values else self._constants[name] for name in self.inputs}
        if self._reference is not None:
            values.update(self._reference.run(inputs))
            return
        try:
            with np.errstate(all="ignore"):
                run_node(node, inputs)
        except MemoryError as error:
            raise WorkspaceError(f"{node}: {error}") from error
        except ModelError as error:  # no implementation computes it
            raise ModelError(f"{node}: {error}") from error
        except Exception as error:  # the reference computes the node, or raises its error
            if node.proto is None:  # it contains the nodes behind it, which the reference does not know
                raise ModelError(f"{node}: {type(error).__name__}: {error}") from error
            raise ReplanError({node: (REFERENCE_LEVEL, f"{type(error).__name__}: {error}")}) from error
        for name in self.outputs:
            values[name] = plain(inputs[name])
