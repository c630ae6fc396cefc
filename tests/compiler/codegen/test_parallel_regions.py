"""Parallel regions: the same bits for any number of threads and any order of execution between barriers.

An adversary takes the place of the threads: between two barriers it does all parts of all phases in some order.
"""

import threading
import warnings
from typing import Any

import numpy as np
import pytest
from processes import python

import jitkernels as jk
from jitkernels.tools.testing import guarded_workspaces

MAKER = """
import ctypes, random
import numpy as np
import jitkernels as jk
from jitkernels.compiler.lowering import build_segment as segments
from jitkernels.compiler.codegen.core import parallel_region as regions
from jitkernels.runtime.threads import team_size as openmp
regions.MIN_THREAD_WORK = segments.MIN_THREAD_WORK = 0  # however small, all that can be is a region

TERMS = ("{a}.T * 0.5", "{a}[::-1] + 1", "np.abs({a})", "{a} * {b}", "{a} + {b}.T", "{a} - {a}.mean(axis=0)",
    "{a} / (1 + np.abs({a}).max(axis=1)[:, None])", "np.where({a} > 0, {a}, {b})", "np.roll({a}, 1, axis=0)",
    "{a}.cumsum(axis=1) * 0.1", "np.concatenate([{b}[3:], {a}[:3]])", "{a}[:, ::-1] + {b}[:1]",
    "np.sqrt(np.abs({a})) - {b}[:, :1]", "{a}.sum() * 0.01 + {b}")

def program(seed):
    chosen = random.Random(seed)
    names, lines = ["x", "y"], []
    for number in range(chosen.randint(4, 12)):
        name = chosen.choice([f"v{number}", f"v{number}", names[-1]]) if number else "v0"
        term = chosen.choice(TERMS).format(a=chosen.choice(names[-3:]), b=chosen.choice(names))
        if name in names and chosen.random() < 0.5:
            lines.append(f"{name}[...] = {term}")  # where it lies
        else:
            lines.append(f"{name} = {term}")
        names = [one for one in names if one != name] + [name]
    code = f"def program(x, y):\\n    x = x + 0\\n    y = y + 0\\n    " + "\\n    ".join(lines)
    room = {"np": np}
    exec(code + f"\\n    return {', '.join(names[-3:])}\\n", room)
    return room["program"]

RANGE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, *[ctypes.c_int64] * 2)
order, crossings = random.Random(0), 0

def adversary(data, phases, count):
    global crossings
    table = (ctypes.c_int64 * (5 * count)).from_address(phases)
    waiting, statuses = [], 0
    for number in range(count + 1):
        if number == count or table[5 * number + 4]:
            if order is not None:
                order.shuffle(waiting)
            for function, begin, end in waiting:
                statuses |= RANGE(function)(data, begin, end)
            waiting = []
            crossings += 1
        if number < count:
            function, extent, unit = table[5 * number : 5 * number + 3]
            units = -(-extent // unit)
            parts = 1 if order is None else order.randint(1, max(1, min(units, 5)))
            limits = [min(units * part // parts * unit, extent) for part in range(parts + 1)]
            waiting += [(function, *pair) for pair in zip(limits, limits[1:])]
    return statuses

kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 2, ctypes.c_int64)
made = kind(adversary)
openmp._addresses()["jk_share_run"] = ctypes.cast(made, ctypes.c_void_p).value

def differing(seeds, levels=(0, 3)):
    "How many programs come out otherwise in one order than in another."
    global order
    found = 0
    for seed in seeds:
        x, y = (np.random.default_rng(seed + own).normal(size=(40, 40)) for own in (0, 99))
        for level in levels:
            function = jk.jit(program(seed), opt_level=level)
            with np.errstate(all="ignore"):
                order = None
                expected = [one.tobytes() for one in function(x, y)]
                same = True
                for again in range(6):
                    order = random.Random(again)
                    same = same and [one.tobytes() for one in function(x, y)] == expected
            found += not same
    return found
"""


def test_any_order_between_barriers() -> None:
    """Run random programs with the parts of each phase in random order."""
    code = "print(differing(range(14)), crossings > 200)"
    assert python(MAKER + code) == "0 True\n"


PLANTED = {
    "no barriers": """
real = regions.phases_of
def phases_of(calls, overlap):
    found = real(calls, overlap)
    for one in found:
        one.waits = False
    return found
regions.phases_of = phases_of
""",
    "all steps apart": "regions._disjoint_stride = lambda *given: 1\n",
    "memory of its own": """
real = regions.phases_of
regions.phases_of = lambda calls, overlap: real(calls, lambda one, other: one == other)
""",
}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_missing_barrier_is_caught(planted: str) -> None:
    code = "print(differing(range(5)) > 0)"
    assert python(MAKER + PLANTED[planted] + code) == "True\n"


def test_barriers_only_where_data_crosses() -> None:
    """Row-wise nests share a phase, independent nests wait for nothing, and reductions over columns wait."""
    code = """
real, found = regions.phases_of, []
def phases_of(calls, overlap):
    found.append(real(calls, overlap))
    return found[-1]
regions.phases_of = phases_of
def shapes(function, *given):
    found.clear()
    jk.jit(function, opt_level=0)(*given)
    return [[(len(one.calls), one.waits) for one in phases] for phases in found]
x, v = np.ones((40, 30)), np.ones(50)
print(shapes(lambda x: np.tanh(np.sqrt(x) + 1) * 2, x))
print(shapes(lambda x, v: (x * 2, v + 1, v[:20] * 3), x, v))
print(shapes(lambda x: np.sqrt(x)[::-1] + x, x))
print(shapes(lambda x: np.sqrt(x.sum(axis=1)) + 1, x))
"""
    lines = python(MAKER + code).splitlines()
    assert lines[0] == "[[(4, False)]]"
    assert "True" not in lines[1]
    assert lines[2].count("True") == 1
    assert "True" not in lines[3]


def norms(x: Any) -> Any:
    for _ in range(4):
        x = x - x.mean(axis=0)
        x = x / (np.abs(x).max(axis=1)[:, None] + 1)
    return x


def pieces(x: Any) -> Any:
    return np.exp(-x), (x * 2).T + 1, x.sum(axis=0), np.sqrt(np.abs(x)) - x.max(axis=1)[:, None]


@pytest.fixture(autouse=True)
def _restored_threads() -> Any:
    number = jk.get_num_threads()
    yield
    jk.set_num_threads(number)


def is_run(compiled: Any) -> bool:
    made = [one for kept in compiled._specializations.values() for one in kept]
    return any("@jk_share_run(" in step.source.text for one in made for step in one.program.steps)


def bits(found: Any) -> list[bytes]:
    return [one.tobytes() for one in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("function", [norms, pieces])
def test_threads_do_not_change_results(function: Any) -> None:
    compiled = jk.jit(function)
    for shape in ((401, 303), (7, 60_001), (60_001, 3), (64, 64), (1, 5)):
        x = np.random.default_rng(1).normal(size=shape)
        jk.set_num_threads(1)
        expected = bits(compiled(x))
        for threads in (2, 3, 8):
            jk.set_num_threads(threads)
            assert all(bits(compiled(x)) == expected for _ in range(4))
    assert is_run(compiled)


def test_concurrent_callers_with_guarded_workspaces() -> None:
    """Eight threads of Python start teams of their own; none writes beyond its pooled memory."""
    jk.set_num_threads(3)
    compiled = jk.jit(norms)
    x = np.random.default_rng(1).normal(size=(300, 200))
    expected = compiled(x).tobytes()
    wrong: list[Any] = []

    def work() -> None:
        wrong.extend(1 for _ in range(20) if compiled(x).tobytes() != expected)

    with guarded_workspaces("end"):
        assert compiled(x).tobytes() == expected
    threads = [threading.Thread(target=work) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong
    assert is_run(compiled)


def test_fp_errors_of_all_threads_are_reported() -> None:
    def ratios(x: Any) -> Any:
        return (1 / x).T + 1, x * 2

    jk.set_num_threads(2)
    compiled = jk.jit(ratios)
    x = np.ones((500, 400))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            compiled(x)
        for place in (0, -1):
            x[:] = 1
            x[place, place] = 0
            with pytest.raises(RuntimeWarning, match="divide by zero"):
                compiled(x)
