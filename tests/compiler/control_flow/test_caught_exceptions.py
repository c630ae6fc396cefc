"""Programs that catch exceptions: they catch Python's, never those by which the tracer refuses code."""
# ruff: noqa: E722, SIM105, SIM107  # as people write it

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
import pytest
from jitted import notes
from test_random_loops import alike

import jitkernels as jk

TABLE: list[tuple[Callable[..., Any], bool]] = []


def program(*, is_code: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A function of an array and a number that becomes code, or falls back to NumPy."""

    def added(function: Callable[..., Any]) -> Callable[..., Any]:
        TABLE.append((function, is_code))
        return function

    return added


class Quiet:
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> bool:
        return True


@contextlib.contextmanager
def quiet() -> Iterator[int]:
    try:
        yield 3
    except BaseException:  # noqa: BLE001
        pass


@program(is_code=False)
def bare(a: Any, n: Any) -> Any:
    try:
        b = a * 1 if a[0] > 0 else a[1:] * 2
    except:
        b = 3
    return b, 0


@program(is_code=False)
def suppressed(a: Any, n: Any) -> Any:
    b = 5
    with contextlib.suppress(BaseException):
        b = a * 2 if a[0] > 0 else a[1:] * 2
    return b, 0


@program(is_code=False)
def by_a_generator(a: Any, n: Any) -> Any:
    b = 5
    with quiet() as number:
        b = a * number if a[0] > 0 else a[1:] * 2
    return b, 0


@program(is_code=False)
def left_by_finally(a: Any, n: Any) -> Any:
    def tried(x: Any) -> Any:
        try:
            return hash(x) * 0 + 1
        finally:
            return 2  # noqa: B012

    return tried(a[0]), 0


@program(is_code=False)
def raised_again(a: Any, n: Any) -> Any:
    try:
        try:
            hash(a[0])
        except BaseException as error:
            raise ValueError from error
    except ValueError:
        return 1, 2
    return 3, 4


@program(is_code=True)
def index_in_a_loop(a: Any, n: Any) -> Any:
    total = 0.5
    try:
        for i in range(n):
            total += a[i]
    except IndexError:
        total = -1.0
    return total, 0


@program(is_code=True)
def in_each_round(a: Any, n: Any) -> Any:
    total = 0.5
    for i in range(n):
        try:
            total += a[i + 1] / (i + 1)
        except IndexError:
            total -= 1.0
        else:
            total += 0.25
        finally:
            a[i % 12] = total
    return total, n


@program(is_code=True)
def jumps(a: Any, n: Any) -> Any:
    for i in range(n):
        try:
            if a[i] > 0.9:
                continue
            if a[i] < 0.0:
                return i, 1.5
        except (IndexError, ValueError):
            break
        finally:
            a[i % 12] = 5.0
    return 0, 2.5


@program(is_code=True)
def its_own(a: Any, n: Any) -> Any:
    x = 0.0
    try:
        for i in range(n):
            if a[i % 12] < 0:
                raise ValueError("negative")
            x = a[i % 12]
    except ValueError:
        return -1.0, 0
    else:
        return x, 1


@program(is_code=False)
def undone(a: Any, n: Any) -> Any:
    try:
        for i in range(n):
            a[i % 12] = 5.0
            raise ValueError
    except ValueError:
        pass
    return a[0] + 0.5, 0


@program(is_code=False)
def text_of_an_error(a: Any, n: Any) -> Any:
    try:
        x = a[len(a)]
    except IndexError as error:
        return len(str(error)), 0
    return x, 0


@program(is_code=True)
def deleted(a: Any, n: Any) -> Any:
    y = 1.0
    for i in range(n):
        try:
            if a[i % 12] > 0.5:
                del y
            z = y
        except UnboundLocalError:
            z = y = 3.0
        a[i % 12] += z
    return a[0] + 0.5, 0


@program(is_code=True)
def values_from_before(a: Any, n: Any) -> Any:
    for i in range(n):
        try:
            x = i
            if a[i % 12] > 0:
                x = 6
            x = a[100]
        except IndexError:
            a[i % 12] += x
    return a[0] + 0.5, 0


@program(is_code=True)
def nothing_goes_wrong(a: Any, n: Any) -> Any:
    total = 0.5
    with Quiet(), np.errstate(all="ignore"):
        for i in range(n):
            with Quiet():
                part = a[i % 12] * 2
                total += part
            total += part
    return total, 0


@program(is_code=True)
def nested(a: Any, n: Any) -> Any:
    try:
        try:
            raise KeyError(n)
        except KeyError:
            raise ValueError from None
    except ValueError:
        a[0] = 1.0
    for i in range(n):
        a[i % 12] += i
    return a[0] + 0.5, 0


@program(is_code=False)
def generator(a: Any, n: Any) -> Any:
    numbers = (a[i % 12] for i in range(n))
    total = 0.5
    while True:
        try:
            total += next(numbers)
        except StopIteration:
            break
    return total, 0


@program(is_code=False)
def of_no_array(a: Any, n: Any) -> Any:
    try:
        b = a.no_such_method()
    except AttributeError:
        b = a * 2
    return b, 0


@pytest.mark.parametrize(("function", "is_code"), TABLE, ids=lambda one: getattr(one, "__name__", ""))
def test_caught_exceptions(function: Callable[..., Any], is_code: bool) -> None:
    compiled: Any = jk.jit(function)
    for a in (np.arange(12.0) - 3, np.full(12, 0.75), np.full(12, -0.5)):
        for n in (9, 12, 14):
            given, others = (a.copy(), n), (a.copy(), n)
            expected, found = function(*given), compiled(*others)
            assert alike((*found, *others), (*expected, *given)), (a, n)
    made = [one for kept in compiled._specializations.values() for one in kept]
    if is_code:
        assert any(one.has_flows and one.graph is not None for one in made)
        assert not notes(compiled)
    else:
        assert all(one.graph is None or not one.has_flows for one in made)
