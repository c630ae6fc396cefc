"""Identity and membership: a traced function compares the caller's objects, whatever stands for them in the trace."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk

numpy_default = np._NoValue
plain = object()
settings = [1, 2]
named = {"a": 1.0}


class Missing:
    """A sentinel with nothing to compute with."""


class Model:
    def __init__(self) -> None:
        self.scale = 2.0


missing, model = Missing(), Model()


def default_of_numpy(a: Any, b: Any = numpy_default) -> Any:
    return a + (2 if b is np._NoValue else 3)


def default_object(a: Any, b: Any = plain) -> Any:
    return a + (2 if b is plain else 3)


def default_instance(a: Any, b: Any = missing) -> Any:
    return a + (2 if b is missing else 3)


def without_branch(a: Any, b: Any = missing) -> Any:
    return a + (b is missing) + 2 * (b is not missing)


def function_of_numpy(a: Any, b: Any = np.sum) -> Any:
    return a + (b is np.sum)


def equal_function(a: Any, b: Any = np.sum) -> Any:
    return a + (2 if b == np.sum else 3)


def table_of_functions(a: Any, b: Any = np.sum) -> Any:
    return a + {np.sum: 2, np.mean: 3}[b]


def one_of_functions(a: Any, b: Any = np.sum) -> Any:
    return a + (2 if b in (np.mean, np.sum) else 3)


def module_of_numpy(a: Any, b: Any = np.linalg) -> Any:
    return a + (2 if b is np.linalg else 3)


def universal_function(a: Any, b: Any = np.add) -> Any:
    return a + (2 if b is np.add else 3)


def class_of_user(a: Any, b: Any = Missing) -> Any:
    return a + (2 if b is Missing else 3)


def member_of_set(a: Any, b: Any = 1) -> Any:
    return a * (b in {1, 2}) + (b not in set(settings))


COMPILED = (
    default_of_numpy, default_object, default_instance, without_branch, function_of_numpy, equal_function,
    table_of_functions, one_of_functions, module_of_numpy, universal_function, class_of_user, member_of_set,
)  # fmt: skip
OTHERS: dict[Callable[..., Any], Any] = {
    table_of_functions: np.mean,
    one_of_functions: np.max,
    equal_function: np.mean,
    function_of_numpy: np.mean,
    module_of_numpy: np.fft,
    universal_function: np.subtract,
    member_of_set: 7,
}


@pytest.mark.per_push
@pytest.mark.parametrize("function", COMPILED)
def test_what_stands_for_an_object_has_its_identity(function: Callable[..., Any]) -> None:
    a, compiled = np.arange(3.0), jk.jit(function)
    for arguments in ((a,), (a, OTHERS.get(function)), (a,)):
        np.testing.assert_array_equal(compiled(*arguments), function(*arguments))
    assert compiled.explain(a).kernels


SOURCELESS = """
listed, other = [1, 2], [1, 2]

def same_list(a, b=listed):
    return a + (2 if b is listed else 3)

def same_name(a, b=listed):
    return a * (b is not other) + (b is listed)

def member(a, b=listed):
    return a + (2 if b in [listed] else 3)

def of_constants(a, b=None):
    return a + (2 if b is None else 3)
"""


@pytest.mark.per_push
@pytest.mark.parametrize("name", ["same_list", "same_name", "member", "of_constants"])
def test_functions_without_a_source_compare_the_objects_of_the_caller(name: str) -> None:
    """Copies of lists stand for these in a trace, and without a source the tests are Python's."""
    scope: dict[str, Any] = {}
    exec(compile(SOURCELESS, "<nowhere>", "exec"), scope)  # as a REPL defines functions
    a, function = np.arange(3.0), scope[name]
    compiled = jk.jit(function)
    for arguments in ((a,), (a, [1, 2]), (a, scope["other"]), (a,)):
        np.testing.assert_array_equal(compiled(*arguments), function(*arguments))
    assert (compiled.explain(a).kernels > 0) == (name == "of_constants")


def same_list(a: Any, b: Any = settings) -> Any:
    return a + (2 if b is settings else 3)


def same_dict(a: Any, b: Any = named) -> Any:
    return a + (2 if b is named else 3)


def same_model(a: Any, b: Any = model) -> Any:
    return a * b.scale + (2 if b is not model else 3)


def same_list_without_branch(a: Any, b: Any = settings) -> Any:
    return a + (b is settings)


@pytest.mark.per_push
@pytest.mark.parametrize("function", [same_list, same_dict, same_model, same_list_without_branch])
def test_copies_of_arguments_are_refused(function: Callable[..., Any]) -> None:
    """A trace has copies of containers and objects: which of these the caller passed twice is not known."""
    a, compiled = np.arange(3.0), jk.jit(function)
    np.testing.assert_array_equal(compiled(a), function(a))
    assert "an identity test of two arguments of type" in str(compiled.explain(a))


def test_functions_that_compare_sentinels_by_themselves() -> None:
    """NumPy's own functions, given as they are, have `numpy._NoValue` as defaults."""
    a = np.linspace(0, 1, 7)
    for arguments, keywords in (((a, 0.2, 0.7), {}), ((a,), {"min": 0.2}), ((a,), {"a_min": 0.2, "a_max": None})):
        compiled = jk.jit(np.clip)
        np.testing.assert_array_equal(compiled(*arguments, **keywords), np.clip(*arguments, **keywords))
        assert compiled.explain(*arguments, **keywords).kernels == 1
