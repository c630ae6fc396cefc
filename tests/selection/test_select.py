"""Selection of the implementation: lookup order, policies, budgets, and caching."""

import logging
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from picks import chosen, record, ship

import jitkernels as jk
from jitkernels.attrs.schema import registry
from jitkernels.attrs.schema.registry import all_schemas, implements
from jitkernels.core.fork_locks import build_lock
from jitkernels.dispatch.kernel import Kernel
from jitkernels.dispatch.kernel_cache import KernelFuncs
from jitkernels.errors import BuildError, UnknownNameError
from jitkernels.runtime.threads.num_threads import get_num_threads
from jitkernels.selection import records, select
from jitkernels.selection.select import choose
from jitkernels.selection.size_classes import MIN_SECONDS_FOR_THREADS, least_seconds
from jitkernels.tuning.tune import tune_class


def test_lookup_order(attr: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step has another answer; removing a step uncovers the next."""
    monkeypatch.setenv("JITKERNELS_TUNE", "auto")
    records.save(attr.size_class(), record("theirs", variant={"vector_bytes": 64}), get_num_threads())
    ship(monkeypatch, attr, "refer")
    with jk.use(toy_take="refer"):
        function: Any = KernelFuncs.cache().at(attr)
        assert function.__self__.implementation == "refer"
        assert choose(attr).rule == "pinned"
    measured = chosen(attr)
    assert (measured.implementation, measured.rule) == ("theirs", "measured")
    assert measured.variant == {"vector_bytes": 64}
    assert measured.timings == {"theirs[vector_bytes=64]": 1e-6}
    path = records.path_of(attr.size_class(), get_num_threads())
    assert path is not None
    path.unlink()
    assert (chosen(attr).implementation, chosen(attr).rule) == ("refer", "shipped")
    ship(monkeypatch, attr)
    assert (chosen(attr).implementation, chosen(attr).rule) == ("gen", "static")
    assert not path.exists(), "a miss measures nothing"


def test_replay_never_measures(attr: Any, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    assert chosen(attr).rule == "static"
    assert not list(records.files(fresh))
    records.save(attr.size_class(), record("refer"), get_num_threads())
    assert chosen(attr).rule == "measured"


@pytest.mark.parametrize(("name", "value"), [("JITKERNELS_TUNE", "off"), ("JITKERNELS_POLICY", "reproducible")])
def test_off_and_reproducible_ignore_measurements(
    attr: Any, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv("JITKERNELS_TUNE", "auto")
    monkeypatch.setenv(name, value)
    records.save(attr.size_class(), record("refer"), get_num_threads())
    ship(monkeypatch, attr, "refer")
    assert (chosen(attr).implementation, chosen(attr).rule) == ("gen", "static")
    with jk.use(implementation="theirs"):
        function: Any = KernelFuncs.cache().at(attr)
        assert function.__self__.implementation == "theirs", "a pin holds under every policy"


@pytest.mark.parametrize("name", ["JITKERNELS_TUNE", "JITKERNELS_POLICY"])
def test_unknown_setting(attr: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "nonsense")
    with pytest.raises(UnknownNameError, match=f"{name}: expected .*, got 'nonsense'"):
        chosen(attr)


def test_equal_attrs_give_the_same_callable(attr: Any) -> None:
    """By `at`, indexing and `get_default_best`."""
    cache = KernelFuncs.cache()
    function = cache.at(attr)
    assert cache.at(type(attr)(**attr.fields())) is function
    assert cache[attr] is function
    assert jk.get_default_best(attr) is function
    assert KernelFuncs.cache() is cache
    assert cache.at(type(attr)(n=10)) is not function
    candidates = jk.get_all_candidates(attr)
    assert all(jk.get_all_candidates(attr)[name] is candidates[name] for name in candidates)


def test_cold_attr_is_built_once(attr: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight threads that request one new attr get one kernel, built once."""
    built: list[Any] = []
    original = Kernel.__init__
    everyone = threading.Barrier(8)

    def counting(self: Kernel, *arguments: Any) -> None:
        built.append(arguments)
        original(self, *arguments)

    monkeypatch.setattr(Kernel, "__init__", counting)
    found: list[Any] = []

    def look() -> None:
        everyone.wait()
        found.append(KernelFuncs.cache().at(attr))

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 1
    assert len({id(function) for function in found}) == 1
    assert len(found) == 8


def test_hit_takes_no_lock(attr: Any) -> None:
    """A known attr is served while another thread holds the lock, which may build for seconds."""
    cache = KernelFuncs.cache()
    function = cache.at(attr)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with build_lock:
            held.set()
            done.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(60)
    found: list[Any] = []
    looker = threading.Thread(target=lambda: found.append(cache.at(attr)))
    looker.start()
    looker.join(30)
    done.set()
    holder.join()
    assert found == [function]


def test_build_budget(attr: Any) -> None:
    """Candidates beyond the build budget are omitted and recorded as such, and a pick exists all the same."""
    found = tune_class(attr, budget=0.01, build_budget=0.0)
    assert not found.complete
    assert {measured.implementation for measured in found.candidates} >= {"refer"}
    assert len(found.candidates) < 4
    assert tune_class(attr, budget=0.01, build_budget=60).complete


def test_implementations_that_cannot_be_built(attr: Any, toy: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Selected by name it is an error; as the static choice it is one log line, and the reference serves."""

    def broken(attr: Any) -> Any:
        raise BuildError("no such instruction")

    implements(toy.ToyAttr, name="openblas")(broken)
    with jk.use(toy_take="openblas"), pytest.raises(BuildError, match="no such instruction"):
        KernelFuncs.cache().at(attr)
    registry._implementations[toy.ToyAttr].pop("gen")
    with caplog.at_level(logging.WARNING, "jitkernels"):
        for _ in range(3):
            assert chosen(attr).implementation != "openblas"
    assert caplog.text.count("no such instruction") == 1


def test_clear_reaches_everyday_functions(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(9.0)
    jk.vmul(x, x)
    lookups: list[Any] = []
    for name in ("at", "of_class"):
        look = getattr(KernelFuncs, name)

        def noticed(self: KernelFuncs, attr: jk.KernelAttr, look: Any = look) -> Any:
            lookups.append(attr)
            return look(self, attr)

        monkeypatch.setattr(KernelFuncs, name, noticed)
    jk.vmul(x, x)
    assert not lookups
    KernelFuncs.cache().clear()
    jk.vmul(x, x)
    assert lookups


@pytest.mark.parametrize("wrong", ["vmul", 3, jk.KernelType])
def test_objects_that_are_no_attrs_are_rejected(wrong: Any) -> None:
    """Neither where the dictionary is searched nor where pins are looked up first; `explain` knows names of kernels."""
    at = KernelFuncs.cache().at
    cases: list[tuple[Any, str]] = [(at, "attr: expected an attr")]
    cases += [(jk.explain, "explain: expected an attr")] if wrong != "vmul" else []
    for look_up, said in cases:
        with pytest.raises(TypeError, match=said):
            look_up(wrong)
        with jk.use(implementation="refer"), pytest.raises(TypeError, match=said):
            look_up(wrong)


def test_kernels_and_everyday_functions_are_pickled(attr: Any) -> None:
    for name, function in jk.get_all_candidates(attr).items():
        copied: Any = pickle.loads(pickle.dumps(function))
        assert copied.__self__.attr == attr
        assert copied.__self__.implementation == name
        arrays, expected = attr.signature().sample(), attr.signature().sample()
        copied(*arrays)
        function(*expected)
        assert np.array_equal(arrays[-1], expected[-1])
    assert pickle.loads(pickle.dumps(jk.vmul)) is jk.vmul
    assert not hasattr(jk, "VMUL")


@pytest.mark.parametrize("wrong", [np.complex64(1), 10**400, np.float64("inf"), np.True_, "1", None])
def test_float_fields(wrong: Any) -> None:
    with pytest.raises(jk.errors.AttrError, match="eps: expected a finite number"):
        jk.LayerNormAttr(rows=2, n=3, eps=wrong)


@pytest.mark.parametrize("policy", ["fastest", "reproducible"])
def test_threads_without_measurements(monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    """Variants with threads are selected for much work, if they exist; else the first variant, as on one thread."""
    monkeypatch.setenv("JITKERNELS_TUNE", "off")
    monkeypatch.setenv("JITKERNELS_POLICY", policy)
    taken: set[str] = set()
    alone: set[str] = set()
    for row in all_schemas():
        cases = sorted((case.attr for case in row.sweep()), key=least_seconds)
        for attr in (cases[0], cases[-1]):
            found = choose(attr)
            assert found.rule == "static"
            own = found.implementation.variants(attr)
            monkeypatch.setattr(select, "get_num_threads", lambda: 2)
            shared = choose(attr)
            monkeypatch.setattr(select, "get_num_threads", lambda: 1)
            single = choose(attr)
            assert single.variant == own[0]
            much = policy != "reproducible" and least_seconds(attr) >= 2 * MIN_SECONDS_FOR_THREADS
            threads = next((each for each in own if each.get("parallel")), own[0])
            assert shared.variant == (threads if much else own[0]), attr
            (taken if shared.variant != own[0] else alone).add(row.kernel_type.name)
    assert alone, "little work is for one thread"
    assert ({"LSTM", "GRU", "ATTENTION"} <= taken) is (policy == "fastest")


def test_compiled_programs_use_awake_threads_for_less_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that spin between two kernels of a program pay off for a tenth of what it takes to wake one."""
    monkeypatch.setenv("JITKERNELS_TUNE", "off")
    monkeypatch.setattr(select, "get_num_threads", lambda: 2)
    sizes: dict[str, Any] = {"channels": 16, "filters": 64}
    small, middle, large = (jk.Conv2DPackedAttr(batch=1, height=n, width=n, **sizes) for n in (8, 56, 512))
    for attr, alone, in_code in ((small, False, False), (middle, False, True), (large, True, True)):
        assert bool(choose(attr).variant.get("parallel")) == alone, attr
        assert bool(select.choose_for_class(attr.size_class(), in_code=True).variant.get("parallel")) == in_code, attr
