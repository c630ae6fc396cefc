"""Every operation of the table and NumPy's functions: first and second derivatives against finite differences.

What is tested is read from the tables: an operation that is entered with a rule is tested, and one without is refused.
"""

import functools
from typing import Any

import numpy as np
import pytest
from differences import agree, along, gradient
from gradient_functions import FUNCTIONS, NONE

import jitkernels as jk
from jitkernels.compiler.autodiff import elementwise_rules
from jitkernels.compiler.autodiff.linalg_rules import RULES
from jitkernels.compiler.autodiff.vjp_rules import TRANSPOSES
from jitkernels.compiler.capture.numpy import decompositions  # noqa: F401  # fills the table
from jitkernels.compiler.capture.override_registry import DECOMPOSITIONS
from jitkernels.compiler.ir import special_functions
from jitkernels.compiler.ir.elementwise_ops import BETWEEN_PLANES, SCALARS
from jitkernels.compiler.ir.ops import REDUCTIONS

SMOOTH = {
    "arccosh": (1.5, 3.0), "arcsin": (-0.8, 0.8), "arccos": (-0.8, 0.8), "arctanh": (-0.8, 0.8), "log": (0.5, 3.0),
    "log2": (0.5, 3.0), "log10": (0.5, 3.0), "sqrt": (0.5, 3.0), "power": (0.5, 2.5), "reciprocal": (0.5, 2.0),
    "divide": (0.5, 2.0), "log1p": (-0.4, 3.0), "cbrt": (0.5, 3.0), "fmod": (1.1, 1.9), "remainder": (1.1, 1.9),
    "tan": (-1.2, 1.2), **dict.fromkeys(("gamma", "lgamma", "digamma"), (0.5, 3.0)),
    "arctan2": (0.4, 2.0), "hypot": (0.4, 2.0), "log_hypot": (0.4, 2.0), "libm_log": (0.5, 3.0),
    "libm_log1p": (-0.4, 3.0),
}  # fmt: skip
"""Where operations are smooth; others are from -2 to 2, and nowhere near a step."""
NEIGHBOURS = frozenset({"nextafter", "spacing"})
"""Operations whose results say where the next number is, which differences do not tell."""
ELEMENTWISE = sorted(name for name, one in SCALARS.items() if one.code.get("f") and name not in BETWEEN_PLANES)
"""What there is code of for floats."""


def function_of(name: str) -> Any:
    """An elementwise operation as a function of NumPy, or of what NumPy lacks."""
    found = SCALARS[name].numpy
    return found if isinstance(found, np.ufunc) else getattr(special_functions, name, found)


def gives_floats(name: str) -> bool:
    kind: str = np.asarray(function_of(name)(*operands(name))).dtype.kind
    return kind == "f"


def operands(name: str) -> list[Any]:
    """Arrays at which an operation is looked at: the same each time, no two elements equal, none whole."""
    low, high = SMOOTH.get(name, (-2.0, 2.0))
    random = np.random.default_rng(len(name))
    given = [random.permutation(np.linspace(low, high, 8)[1:-1] + 0.013 + 0.031 * i) for i in range(3)]
    if name == "where":
        return [given[0] > 0, *given[1:]]
    if name == "ldexp":
        return [given[0], np.array([1, -2, 3, 0, 1, 2])]
    return given[
        : len(elementwise_rules.PARTIALS[name])
        if name in elementwise_rules.PARTIALS
        else getattr(SCALARS[name].numpy, "nin", 1)
    ]


DERIVED = [one for one in ELEMENTWISE if gives_floats(one)]
TESTED = [one for one in DERIVED if one not in NEIGHBOURS]
WEIGHTS = np.array([1.0, -2.0, 0.5, 1.5, -0.7, 0.9])


def floats_of(name: str) -> tuple[int, ...]:
    return tuple(i for i, one in enumerate(operands(name)) if one.dtype.kind == "f")


def applied(function: Any, given: Any, own: Any, floats: Any) -> Any:
    """A function of some arguments, of which others take the places that are those of floats."""
    given = list(given)
    for place, one in zip(own, floats, strict=True):
        given[place] = one
    return function(*given) * WEIGHTS


@functools.cache
def of_all() -> tuple[Any, Any, Any, Any]:
    """Floats of all operations, directions, gradients, and how these change along directions."""
    floats = {name: [operands(name)[i] for i in floats_of(name)] for name in TESTED}
    directions = {name: [np.sin(WEIGHTS * (i + 1)) for i, _ in enumerate(one)] for name, one in floats.items()}
    functions = {name: function_of(name) for name in TESTED}
    given, own = {name: operands(name) for name in TESTED}, {name: floats_of(name) for name in TESTED}

    def total(floats: Any, given: Any) -> Any:
        return sum(np.sum(applied(functions[name], given[name], own[name], one)) for name, one in floats.items())

    first = jk.jit(jk.grad(total))(floats, given)
    second = jk.jvp(lambda x: jk.grad(total)(x, given), (floats,), (directions,))[1]
    return floats, directions, first, second


@pytest.mark.parametrize("name", TESTED)
def test_elementwise(name: str) -> None:
    """Gradients by each operand against differences of NumPy's values, and second derivatives against theirs."""
    floats, directions, first, second = of_all()

    def weighed(*arrays: Any) -> Any:
        return applied(function_of(name), operands(name), floats_of(name), arrays)

    def once(*arrays: Any) -> Any:
        return along(weighed, arrays, directions[name], 8)

    for i, found in enumerate(first[name]):
        alone = [np.zeros(6) if i != j else np.ones(6) for j in range(len(floats[name]))]
        agree(found, along(weighed, floats[name], alone), 1e-6, (name, i))
    change = sum(one * u for one, u in zip(second[name], directions[name], strict=True))
    agree(change, along(once, floats[name], directions[name], 8), 1e-6, name)


def test_operations_without_a_rule() -> None:
    """Float results without a rule are an error that names the operation; bools and ints have no derivative."""
    lacking = [one for one in DERIVED if one not in elementwise_rules.PARTIALS and one not in TRANSPOSES]
    for name in lacking:
        with pytest.raises(jk.DerivativeError, match=f"there is none of {name}"):
            jk.grad(lambda x, name=name: np.sum(function_of(name)(x)))(WEIGHTS)
    flat = [one for one in ELEMENTWISE if one not in DERIVED]
    given, functions = {name: operands(name) for name in flat}, {name: function_of(name) for name in flat}

    def total(given: Any) -> Any:
        return sum(np.sum(functions[name](*one) * one[0]) for name, one in given.items())

    found = jk.grad(total)(given)
    for name in flat:
        agree(found[name][0], function_of(name)(*given[name]).astype(float), 1e-15, name)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: getattr(one, "__name__", str(one)))
def test_numpy_function(function: Any) -> None:
    """First and second derivatives match differences; all of it is code, fused and not."""
    losses, arrays = [one for one, _ in FUNCTIONS[function]], [x for _, x in FUNCTIONS[function]]
    directions = [np.sin(np.arange(x.size) + 1.0).reshape(x.shape) for x in arrays]

    def total(arrays: Any) -> Any:
        return sum(loss(x) for loss, x in zip(losses, arrays, strict=True))

    def plain(*arrays: Any) -> Any:
        return np.array([loss(x.copy()) for loss, x in zip(losses, arrays, strict=True)])

    found = jk.jit(jk.value_and_grad(total))
    value, first = found(arrays)
    agree(value, plain(*arrays).sum(), 1e-12)
    pushed = jk.jit(lambda x, u: jk.jvp(jk.grad(total), (x,), (u,))[1], backend="interpreter")(arrays, directions)
    unfused = jk.jit(found, backend="interpreter", opt_level=0)(arrays)[1]
    for i, loss in enumerate(losses):
        agree(unfused[i], first[i], 1e-11, (function, i))
        agree(first[i], gradient(lambda x, loss=loss: loss(x.copy()), [arrays[i]], 0), 1e-6, (function, i))
    for i, one in enumerate(pushed):
        change = along(lambda *x, i=i: found(list(x))[1][i], arrays, directions)
        agree(one, change, 1e-6, (function, i))


def test_each_function_with_a_rule() -> None:
    """All traced NumPy functions and rules of calls are tested, and compute what NumPy computes."""
    assert {*DECOMPOSITIONS, *RULES} <= FUNCTIONS.keys()


def test_each_operation_with_a_rule() -> None:
    """All kinds of operations that are not elementwise occur in the tests."""
    met: set[Any] = {("reduce", "any"), ("reduce", "all")}  # of truth values
    for losses in FUNCTIONS.values():
        for loss, x in losses:
            compiled = jk.jit(loss, backend="interpreter")
            compiled(x.copy())
            graphs = [one.graph for kept in compiled._specializations.values() for one in kept]
            for graph in graphs:
                met |= {(node.operation, node.options.get("kind")) for node in graph} if graph else set()
    apart = {"kernel", "complex", "real", "imag"}  # differentiated by the tests of rows, and those of complex numbers
    assert {name for name in TRANSPOSES if name not in apart} <= {name for name, _ in met}
    assert {("reduce", kind) for kind in REDUCTIONS} <= met
    assert {("scan", kind) for kind in ("sum", "prod", "min", "max")} <= met


@pytest.mark.parametrize("function", NONE, ids=lambda one: one.__name__)
def test_unknown_functions_are_rejected(function: Any) -> None:
    """NumPy functions without a rule are rejected, also those with several results."""
    loss, x = NONE[function]
    with pytest.raises(jk.DerivativeError, match=f"there is none of numpy.{function.__name__}, .*gradient_functions"):
        jk.grad(loss)(x)
