"""Which implementation computes: the lookup order, policies, pins, records, budgets, and what is remembered."""

import contextvars
import dataclasses
import json
import logging
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import python

import jitkernels as jk
from jitkernels import kernel_funcs, shipped
from jitkernels.errors import BuildError, UnknownNameError
from jitkernels.kernel import Kernel
from jitkernels.kernel_funcs import KernelFuncs
from jitkernels.native.threads import get_num_threads
from jitkernels.registry import implements
from jitkernels.tuning import store
from jitkernels.tuning.store import Measured, Record


@pytest.fixture
def attr(toy: Any, fresh: Path) -> Any:
    """An attr of a row that has ``gen``, ``theirs`` (two variants, the same code) and ``refer``."""

    def with_variants(attr: Any, **variant: Any) -> Any:
        return dataclasses.replace(toy.right(attr), vector_bytes=variant["vector_bytes"])

    implements(toy.ToyAttr, name="gen")(toy.right)
    both = [{"vector_bytes": 32}, {"vector_bytes": 64}]
    implements(toy.ToyAttr, name="theirs", variants=lambda attr: both)(with_variants)
    return toy.ToyAttr(n=9)


def chosen(attr: Any) -> Kernel:
    """The kernel behind what `at` gives, looked up anew."""
    KernelFuncs.cache().clear()
    function: Any = KernelFuncs.cache().at(attr)
    kernel = function.__self__
    assert isinstance(kernel, Kernel)
    arrays, expected = attr.signature().sample(), attr.signature().sample()
    function(*arrays)
    jk.get_refer(attr)(*expected)
    assert np.array_equal(arrays[-1], expected[-1])
    return kernel


def record(*names: str, variant: Any = None, error: str | None = None) -> Record:
    """A record in which the named implementations came in this order."""
    found = [Measured(name, dict(variant or {}), (i + 1) * 1e-6, 1e-8) for i, name in enumerate(names)]
    return Record(tuple(found))


def ship(monkeypatch: pytest.MonkeyPatch, attr: Any, *names: str) -> None:
    table = {f"{attr.name}({attr.tuning_class().text()})": list(names)}
    monkeypatch.setattr(shipped, "_table", lambda: table)


def test_all_five_steps(attr: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step has another answer; taking the earlier ones away brings the next one up."""
    monkeypatch.setenv("JITKERNELS_TUNE", "auto")
    store.save(attr, record("theirs", variant={"vector_bytes": 64}), get_num_threads())
    ship(monkeypatch, attr, "refer")
    with jk.use(toy_take="refer"):
        function: Any = KernelFuncs.cache().at(attr)
        assert function.__self__.implementation == "refer"
        assert KernelFuncs.cache().choose(attr).rule == "pinned"
    measured = chosen(attr)
    assert (measured.implementation, measured.rule) == ("theirs", "measured")
    assert measured.variant == {"vector_bytes": 64}
    assert measured.timings == {"theirs[vector_bytes=64]": 1e-6}
    path = store.path_of(attr, get_num_threads())
    assert path is not None
    path.unlink()
    assert (chosen(attr).implementation, chosen(attr).rule) == ("refer", "shipped")
    ship(monkeypatch, attr)
    assert chosen(attr).rule == "measured now"
    assert path.exists()
    path.unlink()
    monkeypatch.setattr(KernelFuncs.cache(), "_spent", kernel_funcs.PROCESS_BUDGET)
    assert (chosen(attr).implementation, chosen(attr).rule) == ("gen", "static")
    assert not path.exists()


def test_replay_never_measures(attr: Any, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    assert chosen(attr).rule == "static"
    assert not list(store.files(fresh))
    store.save(attr, record("refer"), get_num_threads())
    assert chosen(attr).rule == "measured"


@pytest.mark.parametrize(
    ("name", "value"), [("JITKERNELS_TUNE", "off"), ("JITKERNELS_POLICY", "reproducible")]
)
def test_off_and_reproducible_ignore_measurements(
    attr: Any, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv("JITKERNELS_TUNE", "auto")
    monkeypatch.setenv(name, value)
    store.save(attr, record("refer"), get_num_threads())
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


def test_first_tune_is_the_second_process_s_record(attr: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one process measured, the next one reads; `explain` shows all of it and measures nothing."""
    monkeypatch.setenv("JITKERNELS_TUNE", "auto")
    assert "not measured" in str(jk.explain(attr))
    first = chosen(attr)
    assert first.rule == "measured now"
    again = chosen(attr)
    assert (again.rule, again.implementation, again.variant) == (
        "measured",
        first.implementation,
        first.variant,
    )
    explanation = jk.explain(attr)
    assert explanation.winner == first.implementation
    assert explanation.rule == "measured"
    assert [line.implementation for line in explanation.lines] == ["gen", "theirs", "refer"]
    assert all(line.seconds is not None and line.reason is None for line in explanation.lines)
    assert str(explanation).count("us") >= 3


def damaged(path: Path, change: str) -> None:
    """A record with one thing wrong."""
    content = json.loads(path.read_text())
    if change == "torn":
        path.write_text(path.read_text()[:-20])
    elif change == "empty":
        path.write_text("")
    elif change == "binary":
        path.write_bytes(b"\xff\x00\x80" * 9)
    elif change == "list":
        path.write_text("[]")
    else:
        edits: dict[str, dict[str, Any]] = {
            "foreign attr": {"attr": {"kernel": "OTHER"}},
            "foreign environment": {"environment": content["environment"] | {"cpu": "another"}},
            "future format": {"format": 2},
            "no candidates": {"candidates": []},
            "no timing": {"candidates": [content["candidates"][0] | {"seconds": None}]},
            "seconds are text": {"candidates": [content["candidates"][0] | {"seconds": "fast"}]},
            "variant is text": {"candidates": [content["candidates"][0] | {"variant": "wide"}]},
            "unknown key": {"candidates": [content["candidates"][0] | {"colour": "red"}]},
            "name is a number": {"candidates": [content["candidates"][0] | {"implementation": 5}]},
            "candidates are text": {"candidates": "refer"},
        }
        path.write_text(json.dumps(content | edits[change]))


DAMAGES = [
    "torn", "empty", "binary", "list", "foreign attr", "foreign environment", "future format", "no candidates",
    "no timing", "seconds are text", "variant is text", "unknown key", "name is a number", "candidates are text",
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_invalid_record_is_a_miss(
    attr: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    """Never an error, never a wrong pick; and one log line, however often it is read."""
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    store.save(attr, record("refer"), get_num_threads())
    path = store.path_of(attr, get_num_threads())
    assert path is not None
    damaged(path, damage)
    with caplog.at_level(logging.WARNING, "jitkernels"):
        for _ in range(3):
            assert (chosen(attr).implementation, chosen(attr).rule) == ("gen", "static")
            jk.explain(attr)
    assert len([line for line in caplog.records if str(path) in line.getMessage()]) == 1


@pytest.mark.parametrize(
    ("name", "variant", "answer"),
    [
        ("gone", {}, ("refer", "measured")),
        ("theirs", {"vector_bytes": 7777}, ("gen", "static")),
        ("theirs", {"no_such_parameter": 1}, ("gen", "static")),
    ],
)
def test_record_of_what_no_longer_exists(
    attr: Any, monkeypatch: pytest.MonkeyPatch, name: str, variant: dict[str, Any], answer: tuple[str, str]
) -> None:
    """The next of the record serves for an implementation that is gone; an unknown variant spoils the record."""
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    gone = Record((Measured(name, variant, 1e-9, 0.0), Measured("refer", {}, 1e-6, 0.0)))
    store.save(attr, gone, get_num_threads())
    assert (chosen(attr).implementation, chosen(attr).rule) == answer
    with jk.use(implementation="theirs"):
        function: Any = KernelFuncs.cache().at(attr)
        assert function.__self__.variant == {"vector_bytes": 32}


def test_disqualified_candidate_is_never_picked(attr: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    wrong = Measured("gen", {}, error="y[0] is 1, the reference gives 2")
    store.save(attr, Record((Measured("refer", {}, 1e-6, 0.0), wrong)), get_num_threads())
    assert chosen(attr).implementation == "refer"
    assert "disqualified: y[0] is 1" in str(jk.explain(attr))


def test_record_is_that_of_the_tuning_class(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One measurement serves all attrs of a class; those of other numbers of threads are others."""
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    row, small = next(
        (row, small) for row in jk.registry.all_rows() if (small := _in_a_class(row)) is not None
    )
    store.save(small.tuning_class(), record("refer"), get_num_threads())
    assert (chosen(small).implementation, chosen(small).rule) == ("refer", "measured")
    assert issubclass(row, jk.KernelAttr)
    before = get_num_threads()
    try:
        jk.set_num_threads(before + 1)
        assert KernelFuncs.cache().choose(small).rule == "static"
    finally:
        jk.set_num_threads(before)


def _in_a_class(row: Any) -> Any:
    attrs = (case.attr for case in row.sweep())
    return next((attr for attr in attrs if attr.tuning_class() != attr), None)


def test_pins(attr: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The innermost context wins, a kernel's own name over all names, contexts over the environment."""

    def now() -> str:
        function: Any = KernelFuncs.cache().at(attr)
        return str(function.__self__.implementation)

    assert now() == "gen"
    with jk.use(implementation="refer"):
        assert now() == "refer"
        with jk.use(toy_take="theirs"):
            assert now() == "theirs"
        assert now() == "refer"
        with jk.use(implementation="gen", toy_take="theirs"):
            assert now() == "theirs"
    assert now() == "gen"
    for text, expected in (
        ("toy_take=refer", "refer"),
        ("theirs", "theirs"),
        ("theirs, toy_take=refer", "refer"),
    ):
        monkeypatch.setenv("JITKERNELS_USE", text)
        KernelFuncs.cache().clear()
        assert now() == expected
        with jk.use(implementation="gen"):
            assert now() == "gen"
    with pytest.raises(ZeroDivisionError), jk.use(implementation="refer"):
        raise ZeroDivisionError
    monkeypatch.delenv("JITKERNELS_USE")
    KernelFuncs.cache().clear()
    assert now() == "gen"


def test_pins_hold_in_their_thread_only(attr: Any) -> None:
    seen: list[str] = []

    def look() -> None:
        function: Any = KernelFuncs.cache().at(attr)
        seen.append(function.__self__.implementation)

    with jk.use(implementation="refer"):
        look()
        other = threading.Thread(target=look)
        other.start()
        other.join()
    assert seen == ["refer", "gen"]


@pytest.mark.parametrize("text", ["nonsense", "toy_take=nonsense", "nonsense=gen", "toy_take=", "=gen"])
def test_wrong_pins(attr: Any, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("JITKERNELS_USE", text)
    with pytest.raises(UnknownNameError):
        chosen(attr)


def test_wrong_pins_in_context(attr: Any) -> None:
    for wrong in ({"implementation": "nonsense"}, {"toy_take": "nonsense"}, {"nonsense": "gen"}):
        with pytest.raises(UnknownNameError), jk.use(**wrong):
            raise AssertionError("entered")
    assert chosen(attr).implementation == "gen"


def test_pins_reach_everyday_functions() -> None:
    """Also when the dispatcher has already remembered another kernel."""
    code = """
import numpy as np, jitkernels as jk
from jitkernels.attrs.base import rows
from jitkernels.registry import implements
calls = []
for row in rows.values():
    attr = next(iter(row.sweep())).attr
    signature = attr.signature()
    if {array.shape for array in signature.arrays} != {(1,)} or len(signature.inputs) != 1:
        continue
    def spy(attr, x, y):
        calls.append(attr)
        y[...] = 7
    import dataclasses
    from jitkernels import registry
    known = registry.implementations(row)["refer"]
    registry._implementations[row]["refer"] = dataclasses.replace(known, function=spy)
    function = getattr(jk, attr.name)
    x = np.ones(5, np.float32)
    for _ in range(3):
        assert function(x)[0] != 7
    with jk.use(implementation="refer"):
        for _ in range(3):
            assert function(x)[0] == 7
    assert function(x)[0] != 7
    assert len(calls) == 3
    break
print(len(calls))
"""
    assert python(code) == "3\n"


def test_the_same_object_every_time(attr: Any) -> None:
    """`at`, indexing and `get_default_best` give one callable for equal attrs."""
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
    """Eight threads that want one new attr get one kernel, made once."""
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
    """While another thread holds the lock (it may be building for seconds), a known attr is served."""
    cache = KernelFuncs.cache()
    function = cache.at(attr)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with cache._lock:
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
    """What there was no time to build is left out, the record says so, and there is a pick all the same."""
    found = KernelFuncs.cache().measure(attr, budget=0.01, build_budget=0.0)
    assert not found.complete
    assert {measured.implementation for measured in found.candidates} >= {"refer"}
    assert len(found.candidates) < 4
    assert KernelFuncs.cache().measure(attr, budget=0.01, build_budget=60).complete


def test_process_budget(attr: Any, toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the process has spent its time, nothing more is measured."""
    monkeypatch.setenv("JITKERNELS_TUNE", "auto")
    monkeypatch.setattr(kernel_funcs, "PROCESS_BUDGET", 1e-9)
    assert chosen(attr).rule == "measured now"
    assert chosen(toy.ToyAttr(n=11)).rule == "static"


def test_what_cannot_be_built(attr: Any, toy: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Asked for by name it is an error; as the static choice it is one log line, and the reference serves."""

    def broken(attr: Any) -> Any:
        raise BuildError("no such instruction")

    implements(toy.ToyAttr, name="openblas")(broken)
    with jk.use(toy_take="openblas"), pytest.raises(BuildError, match="no such instruction"):
        KernelFuncs.cache().at(attr)
    jk.registry._implementations[toy.ToyAttr].pop("gen")
    with caplog.at_level(logging.WARNING, "jitkernels"):
        for _ in range(3):
            assert chosen(attr).implementation != "openblas"
    assert caplog.text.count("no such instruction") == 1


def test_noise_does_not_overturn_the_static_order() -> None:
    """A candidate behind in the static order wins only by more than the noise."""
    from jitkernels.tuning.tuner import NOISE, ordered

    near = [Measured("gen", {}, 1.0 + NOISE / 2), Measured("mkl", {}, 1.0), Measured("refer", {}, 5.0)]
    assert [measured.implementation for measured in ordered(near)] == ["gen", "mkl", "refer"]
    far = [Measured("gen", {}, 1.0 + 3 * NOISE), Measured("mkl", {}, 1.0)]
    assert [measured.implementation for measured in ordered(far)] == ["mkl", "gen"]


def test_record_on_disk(attr: Any, fresh: Path) -> None:
    """Readable JSON with sorted keys that names attr and environment; written whole, in a private folder."""
    store.save(attr, record("gen", "refer"), 3)
    (path,) = store.files(fresh)
    text = path.read_text()
    content = json.loads(text)
    assert text == json.dumps(content, indent=1, sort_keys=True)
    assert content["attr"] == {"kernel": "TOY_TAKE", **attr.fields()}
    assert content["environment"]["threads"] == "3"
    assert {"numba", "llvmlite", "numpy", "cpu", "features"} <= set(content["environment"])
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert path.parent.stat().st_mode & 0o077 == 0
    assert store.load(attr, 3) == record("gen", "refer")
    assert store.load(attr, 4) is None


@pytest.mark.parametrize("seconds", [float("nan"), -1.0, 10**400, "1", [1]])
def test_record_of_an_impossible_time_is_a_miss(
    attr: Any, fresh: Path, monkeypatch: pytest.MonkeyPatch, seconds: Any
) -> None:
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    store.save(attr, record("theirs", "gen"), get_num_threads())
    assert chosen(attr).rule == "measured"
    (path,) = store.files(fresh)
    content = json.loads(path.read_text())
    content["candidates"][0]["seconds"] = seconds
    path.write_text(json.dumps(content))
    assert chosen(attr).rule == "static"
    path.write_text("[" * 100_000)
    assert chosen(attr).rule == "static"


def test_pin_ends_with_its_block_in_copied_contexts(attr: Any) -> None:
    """A task started inside ``with jk.use`` copies the context; its picks must not become everybody's."""
    cache = KernelFuncs.cache()
    with jk.use(implementation="refer"):
        copied = contextvars.copy_context()
    copied.run(cache.at, attr)
    assert cache.at(attr).__self__.implementation == "gen"  # type: ignore[attr-defined]


def test_pins_in_upper_case_and_with_spaces(monkeypatch: pytest.MonkeyPatch, fresh: Path) -> None:
    attr = jk.VMulAttr(n=9)
    with jk.use(VMUL="refer"):
        assert chosen(attr).implementation == "refer"
    for text in ("VMUL=refer", "vmul = refer", " Vmul =refer,"):
        monkeypatch.setenv("JITKERNELS_USE", text)
        assert chosen(attr).implementation == "refer"


def test_arrays_too_large_to_measure(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITKERNELS_TUNE", "auto")
    attr = jk.VMulAttr(n=1 << 40)
    function: Any = KernelFuncs.cache().at(attr)
    assert function.__self__.rule == "static"


def test_clear_reaches_everyday_functions(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(9.0)
    jk.vmul(x, x)
    asked: list[Any] = []
    at = KernelFuncs.at

    def noticed(self: KernelFuncs, attr: jk.KernelAttr) -> Any:
        asked.append(attr)
        return at(self, attr)

    monkeypatch.setattr(KernelFuncs, "at", noticed)
    jk.vmul(x, x)
    assert not asked
    KernelFuncs.cache().clear()
    jk.vmul(x, x)
    assert asked


@pytest.mark.parametrize("wrong", ["vmul", 3, jk.KernelType])
def test_attr_that_is_none(wrong: Any) -> None:
    for ask in (KernelFuncs.cache().at, jk.explain):
        with pytest.raises(TypeError, match="attr: expected an attr"):
            ask(wrong)
        with jk.use(implementation="refer"), pytest.raises(TypeError, match="attr: expected an attr"):
            ask(wrong)


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
