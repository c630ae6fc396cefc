"""Online tuning: nothing is measured before calls have paid for it, everything in the end, never above their cost."""

import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from time import thread_time
from typing import Any

import numpy as np
import pytest
from picks import chosen, record

import jitkernels as jk
from jitkernels.attrs.schema.registry import implementation, implements
from jitkernels.core import fork_locks
from jitkernels.dispatch import operators
from jitkernels.dispatch.kernel import Kernel
from jitkernels.dispatch.kernel_cache import KernelFuncs
from jitkernels.runtime.threads.num_threads import get_num_threads
from jitkernels.selection import records
from jitkernels.selection.select import choose, choose_for_class, known_record
from jitkernels.tuning import online_tuning, tune, tuning_budget
from jitkernels.tuning.online_tuning import Account, open_account


def processor_seconds() -> float:
    """Of this thread and of the compilers that have ended: what others do here at the same time is not in it."""
    ended = os.times()
    return thread_time() + ended.children_user + ended.children_system


class Caller:
    """What a compiled context does: counts calls down, settles when they are up, and follows the new choice."""

    def __init__(self, attr: Any) -> None:
        self.attr = attr
        self.arrays = attr.signature().sample()
        self.settled = self.spent = self.called = 0.0
        self._choose()

    def _choose(self) -> None:
        choice = choose(self.attr)
        self.kernel = Kernel(self.attr, choice.implementation, choice.variant)
        self.account = open_account(self.attr, choice)
        self.left = self.account.calls if self.account else 0

    def call(self, calls: int) -> None:
        function, arrays = self.kernel.callable, self.arrays
        while calls:
            now = min(calls, self.left or calls)
            started = processor_seconds()
            for _ in range(now):
                function(*arrays)
            self.called += processor_seconds() - started
            calls -= now
            if self.account is not None and self.left:
                self.left -= now
                if self.left == 0:
                    self._settle(self.account)
                    function = self.kernel.callable

    def pay(self, times: int) -> None:
        """Call until the account has been settled so often, or is closed."""
        for _ in range(times):
            if self.account is not None and self.account.calls:
                self.call(self.left)

    def _settle(self, account: Account) -> None:
        started = processor_seconds()
        changed = account.settle()
        self.spent += processor_seconds() - started
        self.settled += 1
        if changed:
            self._choose()
        else:
            self.left = account.calls


@pytest.fixture
def earned(attr: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("JITKERNELS_TUNE", "auto")
    return attr


@pytest.fixture
def cheap_tuning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few calls pay for any measurement."""
    monkeypatch.setattr(online_tuning, "_seconds_per_call", lambda attr, choice: 1.0)


def test_measurements_wait_for_enough_calls(earned: Any, fresh: Path) -> None:
    caller = Caller(earned)
    assert caller.account is not None
    assert caller.account.calls > 1000
    caller.call(caller.account.calls - 1)
    assert caller.settled == 0
    caller.call(1)
    assert caller.settled == 1
    assert not list(records.files(fresh)), "one settlement of short calls pays for nothing but itself"


def test_paid_candidates_are_all_measured(earned: Any, cheap_tuning: None, caplog: pytest.LogCaptureFixture) -> None:
    """Then the record is complete, the account is closed, and one INFO line per contest says so."""
    caller = Caller(earned)
    with caplog.at_level(logging.INFO, "jitkernels"):
        caller.pay(5)
    found = known_record(earned)
    assert found is not None
    assert found.complete
    labels = [measured.label for measured in found.candidates]
    assert sorted(labels) == sorted(candidate.label for candidate in tune.candidates(earned))
    assert caller.account is None or caller.account.calls == 0
    assert open_account(earned, choose(earned)) is None
    lines = [line for line in caplog.records if "tuned TOY_TAKE" in line.getMessage()]
    assert 1 <= len(lines) <= 4
    assert all(line.levelno == logging.INFO for line in lines)
    assert chosen(earned).rule == "measured"


def test_tuning_costs_less_than_the_calls(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measured with a cold cache, for short calls and longer ones."""
    monkeypatch.setenv("JITKERNELS_TUNE", "auto")
    for attr in (jk.VMulAttr(n=8), jk.SoftmaxAttr(rows=30, n=500)):
        caller = Caller(attr)
        caller.call(100_000)
        assert caller.spent <= caller.called, attr


def test_contests_are_bought_one_at_a_time(earned: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class whose calls paid for one build gets one, not all."""
    monkeypatch.setattr(tuning_budget.TuningBudget, "_cost", lambda self, candidate: 10.0)
    monkeypatch.setattr(online_tuning, "_seconds_per_call", lambda attr, choice: 1e-6)
    caller = Caller(earned)
    account: Any = caller.account
    account._budget.earned = tuning_budget.SAFETY * 10.5
    account.settle()
    found = known_record(earned)
    assert found is not None
    assert not found.complete
    assert [m.label for m in found.candidates if m.implementation == "theirs"] == ["theirs[vector_bytes=32]"]
    assert account._budget.open


def test_incomplete_records_are_completed_by_later_processes(earned: Any, cheap_tuning: None) -> None:
    """Measured candidates are not measured again, but for the best one, which has to be beaten."""
    begun = record("gen", "refer")
    records.save(earned.size_class(), records.Record(begun.candidates, complete=False), get_num_threads())
    caller = Caller(earned)
    assert choose(earned).rule == "measured"
    caller.pay(3)
    found = known_record(earned)
    assert found is not None
    assert found.complete
    refer = next(measured for measured in found.candidates if measured.implementation == "refer")
    assert refer in begun.candidates


def test_candidates_installed_later_are_measured(
    earned: Any, cheap_tuning: None, toy: Any, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, and only where they are usable."""
    records.save(earned.size_class(), record("refer", "gen", "theirs"), get_num_threads())
    assert open_account(earned, choose(earned)) is None
    implements(toy.ToyAttr, name="elsewhere", can_be_used=lambda attr: "not here")(toy.right)
    assert open_account(earned, choose(earned)) is None
    implements(toy.ToyAttr, name="later")(toy.right)
    caller = Caller(earned)
    caller.pay(5)
    found = known_record(earned)
    assert found is not None
    assert found.complete
    assert {measured.implementation for measured in found.candidates} == {"refer", "gen", "theirs", "later"}
    assert open_account(earned, choose(earned)) is None


def test_calls_of_all_members_count_for_their_class(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITKERNELS_TUNE", "auto")
    small, large = jk.VMulAttr(n=600), jk.VMulAttr(n=1000)
    assert small.size_class() == large.size_class()
    accounts: list[Any] = [open_account(attr, choose(attr)) for attr in (small, large)]
    assert accounts[0]._budget is accounts[1]._budget
    other: Any = open_account(jk.VMulAttr(n=100), choose(jk.VMulAttr(n=100)))
    assert other._budget is not accounts[0]._budget


def test_settling_is_deferred_while_another_thread_measures(earned: Any, cheap_tuning: None) -> None:
    account = open_account(earned, choose(earned))
    assert account is not None
    calls = account.calls
    answers: list[bool] = []
    with fork_locks.measure_lock:
        thread = threading.Thread(target=lambda: answers.append(account.settle()))
        thread.start()
        thread.join(30)
    assert answers == [False]
    assert account.calls == calls


@pytest.mark.parametrize("mode", ["replay", "off"])
def test_other_modes_open_no_account(attr: Any, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setenv("JITKERNELS_TUNE", mode)
    assert open_account(attr, choose(attr)) is None


def test_no_account_without_candidates_to_measure(earned: Any) -> None:
    with jk.use(toy_take="theirs"):
        assert open_account(earned, choose(earned)) is None
    records.save(earned.size_class(), record("gen", "theirs", "refer"), get_num_threads())
    assert open_account(earned, choose(earned)) is None
    for attr in (jk.VMulAttr(n=0), jk.SoftmaxAttr(rows=0, n=5), jk.VMulAttr(n=1 << 40)):
        assert open_account(attr, choose(attr)) is None


def test_explicit_tuning(earned: Any) -> None:
    """`jk.tune` measures all, whatever is known; a second look-up gives the winner."""
    records.save(earned.size_class(), record("refer"), get_num_threads())
    before: Any = jk.get_default_best(earned)
    assert before.__self__.implementation == "refer"
    explanation = jk.tune(earned)
    assert explanation == jk.explain(earned)
    assert all(line.seconds is not None for line in explanation.lines)
    after: Any = jk.get_default_best(earned)
    assert after.__self__.implementation == explanation.winner
    with pytest.raises(TypeError, match="attr: expected an attr"):
        jk.tune(3)  # type: ignore[arg-type]


def test_tuning_with_measurements_off_is_an_error(attr: Any, fresh: Path) -> None:
    """The suite runs with measurements off."""
    with pytest.raises(jk.errors.NotUsableError, match="would not be used"):
        jk.tune(attr)
    assert not list(records.files(fresh))


def test_calls_of_any_size_count_as_the_smallest(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everyday calls of a class share one kernel and one account, which does not know their sizes."""
    monkeypatch.setenv("JITKERNELS_TUNE", "auto")
    largest = jk.MatMulAttr(m=256, n=256, k=256)
    seen: list[tuple[int, ...]] = []
    original = Kernel.__init__

    def noticed(self: Kernel, attr: Any, *more: Any) -> None:
        seen.append((attr.m, attr.n, attr.k))
        original(self, attr, *more)

    account = open_account(largest, choose_for_class(largest))
    assert account is not None
    own = open_account(largest, choose(largest))
    assert own is not None
    assert account.calls > own.calls
    monkeypatch.setattr(Kernel, "__init__", noticed)
    account.settle()
    assert seen[0] == (129, 129, 129)


def noted(seen: list[int], again: int) -> Callable[[], int]:
    """What is done when calls are due: it is noted, and wants to hear of it again after so many."""

    def settle() -> int:
        seen.append(1)
        return again

    return settle


def test_calls_served_by_python_do_not_restart_the_count(fresh: Path) -> None:
    """Calls count once for each account, whatever else makes Python serve one of them."""
    x = np.ones(8, np.float32)
    jk.vexp(x)
    seen: list[int] = []
    kernel = KernelFuncs.cache().of_class(jk.VExpAttr(n=8))
    kernel.watch(100, noted(seen, 100))
    operators._holders["vexp"].forget()
    for _ in range(60):
        jk.vexp(x)
    operators._holders["vexp"].call(x)
    assert not seen
    for _ in range(60):
        jk.vexp(x)
    assert len(seen) == 1


def test_exact_size_kernels_count_their_own_calls(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that settle the class do not count for them, nor the reverse."""
    a = np.ones((7, 5), np.float32)
    jk.matmul(a, a.T)
    holder = operators._holders["matmul"]
    settled: list[int] = []
    made = 0
    looked: list[tuple[int, bool]] = []
    kernel = KernelFuncs.cache().of_class(jk.MatMulAttr(m=7, n=7, k=5, trans_b=True))

    def look(self: Any, attr: jk.KernelAttr, earned: bool) -> int:
        looked.append((made, earned))
        return 70

    def settle() -> int:
        settled.append(made)
        return 50

    monkeypatch.setattr(operators.Everyday, "_register_exact", look)
    kernel.watch(50, settle)
    holder.forget()
    holder.call(a, a.T)
    looked.clear()
    for made in range(1, 290):  # noqa: B007  # read above
        jk.matmul(a, a.T)
    assert [round(at / 50) for at in settled] == [1, 2, 3, 4, 5]
    assert [round(at / 70) for at, earned in looked if earned] == [1, 2, 3, 4]


def test_calls_that_the_reference_serves_are_counted(fresh: Path) -> None:
    """Where it won a contest that was not the last, they pay for the next."""
    x = np.ones(8, np.float32)
    attr = jk.VExpAttr(n=8)
    kernel = KernelFuncs.cache().of_class(attr)
    kernel.replace_code(Kernel(attr, implementation(type(attr), "refer"), {}))
    seen: list[int] = []
    kernel.watch(20, noted(seen, 20))
    for _ in range(50):
        jk.vexp(x)
    assert len(seen) == 2
