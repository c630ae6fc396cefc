"""Derivatives: every operation of the table against differences, programs, and what is refused."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.benchmark.entries import training
from jitkernels.graph import partials, special
from jitkernels.graph.operations import OPERATIONS
from jitkernels.graph.scalars import SCALARS

SMOOTH = {
    "arccosh": (1.5, 3.0), "arcsin": (-0.8, 0.8), "arccos": (-0.8, 0.8), "arctanh": (-0.8, 0.8), "log": (0.5, 3.0),
    "log2": (0.5, 3.0), "log10": (0.5, 3.0), "sqrt": (0.5, 3.0), "power": (0.5, 2.5), "reciprocal": (0.5, 2.0),
    "divide": (0.5, 2.0), "log1p": (-0.4, 3.0), "cbrt": (0.5, 3.0), "fmod": (1.1, 1.9), "remainder": (1.1, 1.9),
    "tan": (-1.2, 1.2),
}  # fmt: skip
"""Where operations are smooth; others are from -2 to 2."""
STEPS = {"nextafter", "spacing", "heaviside", "ldexp"}
"""Operations whose results are not differences of neighbours, or whose operands are ints."""
FLOATS = sorted(name for name, one in SCALARS.items() if name in partials.PARTIALS and one.code.get("f"))


def difference(function: Any, x: Any, step: Any = 1e-3) -> Any:
    """The gradient of a function that gives a float, by Richardson's extrapolation of central differences."""
    found = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        values = []
        for h in (step, step / 2, step / 4):
            up, down = x.copy(), x.copy()
            up[i] += h
            down[i] -= h
            values.append((function(up) - function(down)) / (2 * h))
        first, second = (4 * values[1] - values[0]) / 3, (4 * values[2] - values[1]) / 3
        found[i] = (16 * second - first) / 15
    return found


def test_steps_of_training_are_numpys() -> None:
    """Loss, gradients and Adam as one function, all of it code, against gradients derived by hand."""
    layers = (20, 17, 9, 5)
    given, expected = training.state(layers, np.float64), training.state(layers, np.float64)
    x, y = training.batch(8, layers, np.float64)
    compiled = jk.jit(training.step)
    for number in range(1, 6):
        value = compiled(*given, np.float64(number), x, y)
        agree(value, training.by_hand(*expected, np.float64(number), x, y), 1e-12)
    for one, other in zip(given, expected, strict=True):
        for found, right in zip(one, other, strict=True):
            agree(found, right, 1e-9)
    told = compiled.explain(*given, np.float64(1), x, y)
    assert "0 calls of NumPy" in str(told)
    assert "copy" not in str(told)


def agree(found: Any, expected: Any, most: Any = 1e-6) -> None:
    __tracebackhide__ = True
    scale = np.maximum(np.abs(expected), 1.0)
    assert np.max(np.abs(found - expected) / scale) <= most, (found, expected)


def operands(name: Any, count: Any) -> Any:
    low, high = SMOOTH.get(name, (-2.0, 2.0))
    random = np.random.default_rng(len(name))
    given = [random.uniform(low, high, (2, 3)), random.uniform(low, high, 3)]
    return given[:count]


def applied(name: Any) -> Any:
    """A float made of an operation; how its elements are weighed makes each derivative count."""
    function: Any = (
        getattr(special, name, None) if not isinstance(SCALARS[name].numpy, np.ufunc) else SCALARS[name].numpy
    )
    return lambda *given: np.sum(function(*given) * np.array([1.0, -2.0, 0.5]))


@pytest.mark.parametrize("name", [one for one in FLOATS if one not in STEPS])
def test_operation(name: Any) -> None:
    """First and second derivatives, by each operand, broadcast and not."""
    rules = partials.PARTIALS[name]
    count = len(rules)
    given, function = operands(name, count), applied(name)
    weights = np.array([1.0, -2.0, 0.5])
    function_of = SCALARS[name].numpy if isinstance(SCALARS[name].numpy, np.ufunc) else getattr(special, name)

    def weighed(*arrays: Any) -> Any:
        return (function_of(*arrays[:-1]) * arrays[-1]).sum()

    found = jk.grad(weighed, argnums=tuple(range(count)))(*given, weights)
    for place, one in enumerate(found):

        def alone(x: Any, place: Any = place) -> Any:
            return function(*given[:place], x, *given[place + 1 :])

        if rules[place] is None:
            assert not one.any()
            continue
        agree(one, difference(alone, given[place]))
    if name in ("maximum", "minimum", "fmax", "fmin", "absolute", "fabs", "floor_divide"):
        return

    def first(x: Any, others: Any, weights: Any) -> Any:
        return (jk.grad(weighed)(x, *others, weights) ** 2).sum()

    def first_of_numpy(x: Any) -> Any:
        return float((jk.grad(weighed)(x, *given[1:], weights) ** 2).sum())

    agree(jk.grad(first)(given[0], given[1:], weights), difference(first_of_numpy, given[0]))


def test_each_float_operation_has_a_rule() -> None:
    """What gives floats has partials, or a rule of its own; what does not is named here, with all its kinds."""
    for name, operation in OPERATIONS.items():
        if operation.scalar is None or not operation.scalar.code.get("f"):
            continue
        compared = name.startswith(
            ("is", "logical", "bitwise", "equal", "not_equal", "less", "greater", "sign")
        )
        assert compared or operation.transpose is not None or operation.scalar.partials is not None, name


def stencil(x: Any, k: Any) -> Any:
    return np.sum((x[:-2] * k[0] + x[1:-1] * k[1] + x[2:] * k[2]) ** 2)


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def layer_norm(x: Any, g: Any) -> Any:
    m = x.mean(axis=-1, keepdims=True)
    v = x.var(axis=-1, keepdims=True)
    return np.sum(np.sin((x - m) / np.sqrt(v + 1e-5) * g))


def attention(q: Any, k: Any) -> Any:
    s = q @ k.T / np.sqrt(q.shape[1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return np.sum((e / e.sum(axis=-1, keepdims=True) @ k) ** 2)


def mlp(w: Any, v: Any) -> Any:
    h = np.maximum(np.linspace(-1.0, 1.0, 12).reshape(4, 3) @ w, 0.1)
    o = np.tanh(h @ v)
    return np.mean(o**2)


def logistic(w: Any, b: Any) -> Any:
    x = np.cos(np.arange(12.0)).reshape(4, 3)
    z = x @ w + b[0]
    return np.mean(np.logaddexp(0.0, z) - z * (np.arange(4) % 2))


def written(x: Any, y: Any) -> Any:
    z = np.zeros_like(x)
    z[1:] = x[:-1] * 2
    z[0] = y[0]
    z[::2] *= y[1]
    z += x
    return np.sum(z**3)


def picked(x: Any, y: Any) -> Any:
    i = np.array([0, 2, 2, 1])
    return np.sum(x[i] ** 2 * np.arange(4.0)) + np.sum(np.where(y > 0, y, y * 0.1) ** 2)


def joined(x: Any, y: Any) -> Any:
    z = np.concatenate([x, y[::-1], x * y])
    return (
        np.sum(np.cumsum(z) ** 2) + np.prod(y) + z.max() + np.stack([x, y], axis=1).T.reshape(-1)[2:5].sum()
    )


def produced(x: Any, y: Any) -> Any:
    return (
        np.einsum("i,j,i->", x, y, y)
        + np.linalg.norm(x)
        + np.outer(x, y).diagonal().sum()
        + np.dot(x, y) ** 2
    )


def normal(*shape: Any) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape)


PROGRAMS: dict[Any, Any] = {
    stencil: (normal(9), normal(3)), rosenbrock: (normal(5),), layer_norm: (normal(3, 4), normal(4)),
    attention: (normal(3, 4), normal(5, 4)), mlp: (normal(3, 5), normal(5, 2)), logistic: (normal(3), normal(1)),
    written: (normal(5), normal(2)), picked: (normal(3), normal(4)), joined: (normal(4), normal(4) + 3),
    produced: (normal(4), normal(4)),
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_program(program: Any) -> None:
    """Gradients by all arguments, at no level and at the highest, and a product with the second derivative."""
    given = PROGRAMS[program]
    numbers = tuple(range(len(given)))
    value, found = jk.value_and_grad(program, argnums=numbers)(*given)
    agree(value, program(*given), 1e-12)
    plain = jk.jit(jk.grad(program, argnums=numbers), opt_level=0)(*given)
    for place, (one, other) in enumerate(zip(found, plain, strict=True)):
        agree(one, other, 1e-11)
        agree(one, difference(lambda x, i=place: program(*given[:i], x, *given[i + 1 :]), given[place]))
    rest, along = given[1:], np.cos(np.arange(given[0].size)).reshape(given[0].shape)
    _, second = jk.jvp(lambda x: jk.grad(program)(x, *rest), (given[0],), (along,))
    ahead, behind = (jk.grad(program)(given[0] + h * along, *rest) for h in (1e-5, -1e-5))
    agree(second, (ahead - behind) / 2e-5, 1e-5)


def test_a_wrong_rule_is_found(monkeypatch: Any) -> None:
    """The differences tell when a rule is wrong."""
    monkeypatch.setitem(partials.PARTIALS, "tanh", (lambda x, y: 1.0 - y,))
    x = np.array([0.3, -0.7])
    with pytest.raises(AssertionError):
        agree(jk.grad(lambda x: np.sum(np.tanh(x)))(x), difference(lambda x: np.sum(np.tanh(x)), x))


def test_pull_and_push() -> None:
    """`vjp` and `jvp` are transposes of one another, and `has_aux` gives what is beside."""

    def function(x: Any, y: Any) -> Any:
        return np.sin(x) @ y, x * 2

    x, y, u = normal(3, 4), normal(4, 2), normal(3, 2)
    value, pull, aux = jk.vjp(function, x, y, has_aux=True)
    assert np.array_equal(value, np.sin(x) @ y)
    assert np.array_equal(aux, x * 2)
    pushed = jk.jvp(function, (x, y), (np.cos(x), y + 1), has_aux=True)
    assert np.array_equal(pushed[2], x * 2)
    given = pull(u)
    agree(np.sum(pushed[1] * u), np.sum(given[0] * np.cos(x)) + np.sum(given[1] * (y + 1)), 1e-12)


def test_trees_and_aux() -> None:
    """Gradients are like the arguments."""

    def loss(parameters: Any, x: Any) -> Any:
        found = x @ parameters["w"] + parameters["b"][0]
        return np.sum(found**2), found

    x = normal(4, 3)
    parameters = {"w": normal(3, 2), "b": [normal(2), 1.5]}
    (value, aux), found = jk.value_and_grad(lambda p, x: loss(p, x), has_aux=True)(parameters, x)
    agree(value, np.sum(aux**2), 1e-12)
    agree(found["w"], 2 * x.T @ aux, 1e-12)
    agree(found["b"][0], 2 * aux.sum(axis=0), 1e-12)
    assert found["b"][1] == 0


def test_through_rounds() -> None:
    """Loops of known rounds have derivatives, and branches that the trace decides."""

    def heated(u: Any, k: Any) -> Any:
        for i in range(20):
            new = u.copy()
            new[1:-1] += k * (u[2:] - 2 * u[1:-1] + u[:-2])
            if i % 2:
                new *= 0.9
            u = new
        return np.sum(u**2)

    u = normal(7)
    found = jk.grad(heated, argnums=(0, 1))(u, 0.1)
    agree(found[0], difference(lambda x: heated(x, 0.1), u))
    agree(found[1], difference(lambda k: heated(u, k[0]), np.array([0.1]))[0])


def test_through_branches() -> None:
    """Branches on values: numbers and arrays that either side changes."""

    def bent(x: Any, y: Any) -> Any:
        total = x[1] * y[0]
        if x[0] > 0:
            total = total * x[2] ** 2
        else:
            y[1:] = x[0] * np.sin(y[1:])
        return total * 3.0 + np.sum(y**2)

    for first in (0.5, -0.5):
        x, y = np.array([first, 1.3, 0.7]), normal(4)
        found = jk.grad(bent, argnums=(0, 1))(x, y)
        agree(found[0], difference(lambda one, y=y: bent(one, y.copy()), x))
        agree(found[1], difference(lambda one, x=x: bent(x, one.copy()), y))

        def first_of(x: Any, y: Any = y) -> Any:
            return np.sum(jk.grad(bent)(x, y.copy()) ** 2)

        agree(jk.grad(first_of)(x), difference(first_of, x))


def test_subgradients() -> None:
    """Ties are shared, as in JAX; nothing flows to what is not chosen."""
    assert jk.grad(lambda x: np.maximum(x, 1.0))(1.0) == 0.5
    assert jk.grad(lambda x: np.abs(x))(0.0) == 0.0
    assert jk.grad(lambda x: np.max(x))(np.array([3.0, 1.0, 3.0])).tolist() == [0.5, 0.0, 0.5]

    def rooted(x: Any) -> Any:
        return np.sum(np.where(x > 0, np.sqrt(np.where(x > 0, x, 1.0)), 0.0))

    assert jk.grad(rooted)(np.array([0.0, 4.0])).tolist() == [0.0, 0.25]
    assert jk.grad(lambda x: np.prod(x))(np.array([0.0, 2.0, 3.0])).tolist() == [6.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("function", "given", "words"),
    [
        (lambda x: x * 2, np.ones(3), "expected a float as the result, got float64 of shape (3,)"),
        (lambda x: np.sum(x > 0), np.ones(3), "expected a float as the result, got int64"),
        (lambda x: x * 1.0, 3, "argument 0: expected floats, in arrays or numbers, got the int 3"),
        (lambda x: np.sum(x * 1.0), np.arange(3), "argument 0: expected floats, in arrays or numbers, got int64"),
        (lambda x: np.sum(np.i0(x)), np.ones(3), "there is none of numpy.i0, " + __file__),
        (lambda x: np.sum(np.unique(x)), np.ones(3), "numpy.unique"),
    ],
)  # fmt: skip
def test_refused(function: Any, given: Any, words: Any) -> None:
    """Errors of our own, which name what was expected and what came."""
    with pytest.raises(jk.DerivativeError) as caught:
        jk.grad(function)(given)
    assert words in str(caught.value)
    assert __file__ in str(caught.value)


def test_wrong_options() -> None:
    """Options are looked at when the derivative is asked for."""
    with pytest.raises(jk.ArgumentTypeError, match="argnums"):
        jk.grad(np.sum, argnums="x")  # type: ignore[arg-type]
    with pytest.raises(jk.ArgumentTypeError, match="function"):
        jk.grad(3)  # type: ignore[arg-type]
    with pytest.raises(jk.DerivativeError, match="expected numbers of 1 positional arguments, got 2"):
        jk.grad(lambda x: x, argnums=2)(1.0)
