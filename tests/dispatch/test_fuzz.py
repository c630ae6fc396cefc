"""Fuzzing by hostile arguments: a right result, or one of our errors and nothing written.

``PYTHONPATH=tests/support python tests/dispatch/test_fuzz.py 50000 [first seed]`` makes that many and prints failures,
grouped by kind; so does ``pytest -m full``. Every call follows from its number alone, so each finding can be repeated.
"""

import collections
import functools
import inspect
import re
import resource
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import hostile
import numpy as np
import pytest

import jitkernels as jk
from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import all_schemas
from jitkernels.attrs.schema.schema_queries import inputs_of
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import equivalent_of, ordinary_calls_of
from jitkernels.benchmarks.peers.array_layouts import outs
from jitkernels.errors import JitKernelsError

CALLS, MANY_CALLS = 500, 50_000
SIZES = (8, 24, 960)
SHARE_OF_KERNELS = 0.3
ROWS = [row for row in all_schemas() if equivalent_of(row) is not None]
"""Listed before any test registers one, so that the calls do not depend on what ran before."""
MOST = 1 << 20
"""Extents beyond this are those of huge arrays."""
TOLERANCE = 2e-3
"""Of the largest value: whether it is the right function of the right arguments, no more."""

Row = Any
_plain: dict[tuple[Row, int], dict[str, Any]] = {}


@dataclass
class Attempt:
    """One call: what is called, with what, and what is special about it."""

    name: str
    function: Any
    arguments: list[Any]
    named: dict[str, Any]
    hostility: list[str]
    row: Row
    attr: KernelAttr | None = None

    def __str__(self) -> str:
        return f"{self.name}: {', '.join(self.hostility) or 'nothing special'}"


def attempt(number: int) -> Attempt:
    """The call of that number."""
    random = np.random.default_rng(number)
    row = ROWS[int(random.integers(len(ROWS)))]
    made = _kernel_call(row, random) if random.random() < SHARE_OF_KERNELS else _everyday_call(row, random)
    for _ in range(int(random.choice([0, 1, 1, 1, 2]))):
        _spoil(made, random)
    return made


def _everyday_call(row: Row, random: np.random.Generator) -> Attempt:
    calls = ordinary_calls_of(row, int(random.choice(SIZES)))
    call = calls[int(random.integers(len(calls)))]
    name = row.kernel_type.name.lower()
    made = Attempt(f"jk.{name}", getattr(jk, name), list(call.arguments), dict(call.named), [call.form], row)
    if "out" not in made.named and len(made.arguments) <= len(_parameters(row)) and random.random() < 0.4:
        try:
            made.named["out"] = _some_out(made, random)
        except Exception:  # noqa: BLE001  # the call itself is wrong: no shape for an out
            made.hostility.append("no out")
    return made


def _kernel_call(row: Row, random: np.random.Generator) -> Attempt:
    cases = _cases(row)
    attr = cases[int(random.integers(len(cases)))]
    function = jk.KernelFuncs.cache().at(attr)
    return Attempt(f"{attr.name} kernel", function, attr.signature().sample(int(random.integers(3))), {}, [], row, attr)


@functools.cache
def _cases(row: Row) -> list[KernelAttr]:
    return [case.attr for case in row.sweep() if "ci" in case.tags]


def _some_out(made: Attempt, random: np.random.Generator) -> Any:
    """An ``out`` of the right shape, in some memory."""
    results = made.function(*made.arguments, **made.named)
    chosen, several = [], isinstance(results, tuple)
    for result in results if several else (results,):
        kinds = outs(result)
        kind = list(kinds)[int(random.integers(len(kinds)))]
        made.hostility.append(f"out={kind}")
        chosen.append(kinds[kind])
    return tuple(chosen) if several else chosen[0]


def _parameters(row: Row) -> list[inspect.Parameter]:
    return list(row.parameters().parameters.values())


def _spoil(made: Attempt, random: np.random.Generator) -> None:
    """Make one thing about a call hostile."""
    kind = random.random()
    if kind < 0.08:
        _spoil_arity(made, random)
        return
    places: list[Any] = [*range(len(made.arguments)), *made.named]
    if not places:
        return
    place = places[int(random.integers(len(places)))]
    within = made.arguments if isinstance(place, int) else made.named
    value = within[place]
    if isinstance(value, np.ndarray) and max(value.shape, default=0) > MOST:
        return  # no form of a huge array can be made
    choices = {**hostile.FORMS, **hostile.WRONG}
    if isinstance(value, str | int | float) or kind < 0.12:
        choices = {**hostile.OPTIONS, **hostile.WRONG}
    elif kind < 0.15 and _as_large_as_its_argument(made):
        choices = hostile.HUGE
    elif kind < 0.6:
        choices = hostile.FORMS
    elif kind < 0.75 and type(value) is np.ndarray:
        _overlap(made, within, place, random)
        return
    name = list(choices)[int(random.integers(len(choices)))]
    try:
        with np.errstate(all="ignore"):
            new = _made_hostile(choices[name], value, random)
    except Exception:  # noqa: BLE001  # a form that this value, hostile already, cannot take
        return
    within[place] = new
    made.hostility.append(f"{place} {name}")


def _made_hostile(make: hostile.Make, value: Any, random: np.random.Generator) -> Any:
    """A value made hostile, or, of a tuple, one of its values mostly."""
    if isinstance(value, tuple) and value and random.random() < 0.8:
        chosen = int(random.integers(len(value)))
        return tuple(make(v, random) if i == chosen else v for i, v in enumerate(value))
    return make(value, random)


def _spoil_arity(made: Attempt, random: np.random.Generator) -> None:
    what = int(random.integers(5))
    if what == 0 and made.arguments:
        made.arguments.pop(int(random.integers(len(made.arguments))))
        made.hostility.append("one less")
    elif what == 1:
        made.arguments.append(np.ones(8, np.float32))
        made.hostility.append("one more")
    elif what == 2:
        made.named["nonsense"] = 1
        made.hostility.append("nonsense=")
    elif what == 3 and made.attr is None:
        parameter = _parameters(made.row)[int(random.integers(len(_parameters(made.row))))].name
        made.named[parameter] = made.arguments[0] if made.arguments else 1
        made.hostility.append(f"{parameter} by name")
    elif made.attr is None:
        wrong: list[Any] = [(), (None,), (None, None), [], "text", 5, np.zeros(0), np.zeros((1, 1, 1)), np.int64(3)]
        made.named["out"] = wrong[int(random.integers(len(wrong)))]
        made.hostility.append(f"out={made.named['out']!r}")


def _overlap(made: Attempt, within: Any, place: Any, random: np.random.Generator) -> None:
    """Let some array, an ``out`` among them, be memory of another argument."""
    others = [a for a in (*made.arguments, *made.named.values()) if type(a) is np.ndarray and a.size]
    value = within[place]
    fitting = [a for a in others if a is not value and a.dtype == value.dtype and a.size >= value.size]
    if not fitting:
        return
    other = fitting[int(random.integers(len(fitting)))].reshape(-1)
    start = int(random.integers(other.size - value.size + 1))
    part = other[start : start + value.size]
    within[place] = (part[::-1] if random.random() < 0.3 else part).reshape(value.shape)
    made.hostility.append(f"{place} overlaps")


def _as_large_as_its_argument(made: Attempt) -> bool:
    """Whether no memory can hold the result of a huge argument, so that none is computed for hours."""
    if made.attr is not None:
        return True  # kernels take what they were made for only
    plain = _plain_call(made.row, SIZES[0])
    result = made.function(**plain)
    return bool(not isinstance(result, tuple) and result.shape == np.shape(next(iter(plain.values()))))


def _plain_call(row: Row, elements: int) -> dict[str, Any]:
    """The arguments of an ordinary call, by name."""
    if (row, elements) not in _plain:
        call = ordinary_calls_of(row, elements)[0]
        names = (p.name for p in _parameters(row))
        _plain[row, elements] = dict(zip(names, call.arguments, strict=False)) | dict(call.named)
    return _plain[row, elements]


def arrays_in(values: Any) -> Iterator[AnyArray]:
    """All arrays among arguments, those in tuples and lists too."""
    for value in values:
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, tuple | list):
            yield from arrays_in(value)


def root(value: Any) -> AnyArray:
    """The array that owns the memory of a view."""
    found = value
    while (base := getattr(found, "base", None)) is not None:
        found = base
    return found if isinstance(found, np.ndarray) else value


def memory(values: Any) -> dict[int, tuple[AnyArray, bytes]]:
    """The memory of all arrays among arguments; long doubles have bytes that mean nothing."""
    owners = {id(owner): owner for owner in map(root, arrays_in(values)) if owner.dtype.char not in "gG"}
    return {key: (owner, owner.tobytes()) for key, owner in owners.items() if owner.nbytes < 1 << 24}


def wrong_with(made: Attempt) -> str | None:
    """Make a call; what is wrong with how it went, or None."""
    everything = [*made.arguments, *made.named.values()]
    before = memory(everything)
    expected = _expected(made)
    least = 0.0 if expected is None else hostile.rounding(made.row, made.attr, made.arguments, made.named)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            got = made.function(*made.arguments, **made.named)
    except JitKernelsError:
        changed = [owner for owner, content in before.values() if owner.tobytes() != content]
        return "an error, but memory was written" if changed else None
    except Exception as error:  # noqa: BLE001  # finding those is what this is for
        said = re.sub("[0-9]+", "N", " ".join(str(error).split()))
        return f"{type(error).__name__} is not ours: {said[:60]}"
    written = {id(root(value)) for value in arrays_in(_outputs(made))}
    for key, (owner, content) in before.items():
        if key not in written and owner.tobytes() != content:
            return "an input was written"
    return _difference(expected, got if made.attr is None else _outputs(made), least)


def _outputs(made: Attempt) -> list[Any]:
    """The arguments that a call may write to."""
    if made.attr is not None:
        arrays = made.attr.signature().arrays
        return [v for v, p in zip(made.arguments, arrays, strict=False) if p.output]
    extra = made.arguments[len(_parameters(made.row)) :]
    given = made.named.get("out")
    return [*extra, *([] if given is None else given if isinstance(given, tuple) else [given])]


def _expected(made: Attempt) -> Any:
    """What NumPy gives for the arguments as doubles, or None where it gives nothing."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if made.attr is not None:
                copies = [np.array(value).copy() for value in made.arguments]  # `__array__` may give its own
                jk.get_refer(made.attr)(*copies)
                arrays = made.attr.signature().arrays
                return [copy for copy, p in zip(copies, arrays, strict=True) if p.output]
            if not inputs_of(made.row):
                return None  # random numbers are of another stream than NumPy's
            parameters = _parameters(made.row)
            given = dict(zip((p.name for p in parameters), made.arguments, strict=False)) | made.named
            given.pop("out", None)
            if not {*given} <= {p.name for p in parameters}:
                return None  # a ufunc would take one more for its result, and write there
            numpy, doubles = equivalent_of(made.row), _as_doubles(made.row, given)
            assert numpy is not None
            return numpy(*doubles.values()) if isinstance(numpy, np.ufunc) else numpy(**doubles)
    except Exception:  # noqa: BLE001  # no result of NumPy's, so nothing to compare with
        return None


def _as_doubles(row: Row, given: dict[str, Any]) -> dict[str, Any]:
    """Arguments as NumPy takes them; those that hold indices stay as they are."""
    arrays = [p.name for p in _parameters(row) if p.default in (p.empty, None)]
    indices = {n for n, v in _plain_call(row, SIZES[0]).items() if np.asarray(v).dtype.kind in "iu"}
    named = {}
    for name, value in given.items():
        if name not in arrays or value is None:
            named[name] = value
        else:
            named[name] = (np.array(value) if name in indices else np.array(value, np.float64)).copy()
    return named


def _difference(expected: Any, got: Any, least: float) -> str | None:
    """How results differ, by more than so much at least, or None where there is nothing to compare with."""
    if expected is None:
        return None
    rights = expected if isinstance(expected, tuple | list) else (expected,)
    values = got if isinstance(got, tuple | list) else (got,)
    if len(rights) != len(values):
        return f"{len(values)} results instead of {len(rights)}"
    for right, value in zip(rights, values, strict=True):
        right, value = np.asarray(right, np.float64), np.asarray(value)
        if value.dtype.kind not in "fiubcO":
            return f"a result of dtype {value.dtype}"
        value = value.astype(np.float64) if value.dtype.kind == "O" else value
        if right.shape != value.shape:
            return f"shape {value.shape} instead of {right.shape}"
        with np.errstate(all="ignore"):
            finite = np.isfinite(right)
            scale = np.abs(right[finite]).max(initial=0)
            close = np.abs(value - right) <= max(TOLERANCE * scale, least)
            beyond = (np.abs(right) > 3e38) & np.isinf(value) & (np.sign(value) == np.sign(right))
            alike = (np.isnan(right) & np.isnan(value)) | (right == value) | beyond
        if not (close & finite | alike).all():
            return "values differ"
    return None


def findings(calls: int, first: int = 0) -> dict[str, list[tuple[int, str]]]:
    """What was wrong with so many calls: kinds, each with the numbers of the calls and what they were."""
    found: dict[str, list[tuple[int, str]]] = collections.defaultdict(list)
    for number in range(first, first + calls):
        made = attempt(number)
        wrong = wrong_with(made)
        if wrong is not None:
            found[f"{made.name}: {wrong}"].append((number, str(made)))
    return found


def in_words(found: dict[str, list[tuple[int, str]]]) -> str:
    ordered = sorted(found.items(), key=lambda item: -len(item[1]))
    return "\n".join(f"{len(where)} x {kind}, call {where[0][0]} ({where[0][1]})" for kind, where in ordered)


def test_hostile_calls() -> None:
    found = findings(CALLS)
    assert not found, in_words(found)


@pytest.mark.full
def test_many_hostile_calls() -> None:
    found = findings(MANY_CALLS, CALLS)
    assert not found, in_words(found)


def test_the_fuzzer_catches_planted_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong value, a foreign error, a written input and an ``out`` written before an error are all caught."""
    x = np.ones(8, np.float32)
    row = next(row for row in all_schemas() if row.kernel_type.name == "VEXP")

    def attempt_with(function: Any, *arguments: Any) -> str | None:
        return wrong_with(Attempt("jk.vexp", function, list(arguments), {}, [], row))

    def writes_input(value: AnyArray) -> Any:
        result = np.exp(value)
        value[0] = 5
        return result

    def writes_then_fails(value: AnyArray, out: AnyArray) -> Any:
        out[0] = 5
        raise jk.errors.ArgumentError("too late")

    assert attempt_with(jk.vexp, x) is None
    assert attempt_with(np.exp, x) is None
    assert attempt_with(lambda value: np.exp(value) + 1, x) == "values differ"
    assert attempt_with(lambda value: np.exp(value)[1:], x) == "shape (7,) instead of (8,)"
    assert "ZeroDivisionError is not ours" in str(attempt_with(lambda value: 1 // 0, x))
    assert attempt_with(writes_input, x.copy()) == "an input was written"
    assert attempt_with(writes_then_fails, x, x.copy()) == "an error, but memory was written"


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))  # a finding must not take the machine down
    calls, first = (int(text) for text in (*sys.argv[1:3], "0")[:2])
    found = findings(calls, first)
    print(in_words(found))  # noqa: T201  # a script's output
    print(f"{sum(map(len, found.values()))} of {calls} calls went wrong, in {len(found)} ways")  # noqa: T201  # as above
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
