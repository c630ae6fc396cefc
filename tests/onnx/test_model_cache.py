"""Compiled models on disk: a second process neither parses nor traces; what is not as it was is compiled again."""

import os
import pickle
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx_cases import needs_onnx
from processes import finish, start
from test_models import made, perceptron
from test_weights import expected, image, network

import jitkernels as jk
from jitkernels.core import cache_dirs
from jitkernels.errors import ArgumentTypeError, BuildError
from jitkernels.onnx import model_cache
from jitkernels.onnx.model_source import ModelFile
from jitkernels.runtime.threads.num_threads import get_num_threads

pytestmark = needs_onnx


@pytest.fixture
def file(tmp_path: Path, model_folder: Path) -> Path:
    """The network as a file, which was run: the cache has its code."""
    path = tmp_path / "model.onnx"
    path.write_bytes(network().SerializeToString())
    right(path)
    assert len([*model_folder.iterdir()]) == 1
    return path


def right(path: Path, proto: Any = None, **options: Any) -> Any:
    """A model whose result is checked."""
    from onnx.reference import ReferenceEvaluator

    model, x = jk.onnx.load(path, **options), image()
    wanted = expected(x) if proto is None else ReferenceEvaluator(proto).run(None, {"x": x})[0]
    np.testing.assert_allclose(model(x), wanted, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(model.run(None, {"x": x})[0], model(x))
    model_cache.wait_for_writers()
    return model


def is_cached(model: Any) -> bool:
    return model._served is not None


def test_a_known_file_is_neither_read_nor_traced(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = jk.onnx.load(file.read_bytes())
    result = compiled(image()).tobytes()
    for work in (
        "onnx.read_model.read_model",
        "compiler.dispatch.specialization.trace_call",
        "codegen.compiling.compiled",
    ):
        monkeypatch.setattr(f"jitkernels.{work}", None)
    model = right(file)
    assert is_cached(model)
    assert model(image()).tobytes() == result
    assert list(map(str, model.get_inputs())) == list(map(str, compiled.get_inputs()))
    assert list(map(str, model.get_outputs())) == list(map(str, compiled.get_outputs()))
    assert (repr(model), model.name) == (repr(compiled), compiled.name)


def test_the_model_is_read_for_those_who_ask_for_more(file: Path) -> None:
    for ask in (
        lambda model: str(model.explain(image())).replace("read from the cache", "written to the cache"),
        lambda model: model.stats().constant_bytes,
        lambda model: [plan.levels_of_nodes for plan in model.plans],
        lambda model: model.source(),
        lambda model: pickle.loads(pickle.dumps(model))(image()).tobytes(),
    ):
        cached, compiled = right(file), right(file, winograd=False, profile=False)
        compiled._cached, compiled._served, compiled._direct = None, None, None
        compiled(image())
        assert ask(cached) == ask(compiled)


def test_calls_that_the_code_does_not_accept(file: Path) -> None:
    model = right(file)
    x = image(12)[:, :, :, :7]
    np.testing.assert_allclose(model(x), expected(x), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model(image()), expected(image()), rtol=1e-4, atol=1e-4)
    with pytest.raises(ArgumentTypeError, match="x: expected an array of float32"):
        right(file)(image().astype(np.float64))
    first = jk.onnx.load(file)
    np.testing.assert_allclose(first(x), expected(x), rtol=1e-4, atol=1e-4)


def test_numpy_settings_that_raise(file: Path) -> None:
    with np.errstate(all="raise"):
        np.testing.assert_allclose(jk.onnx.load(file)(image()), expected(image()), rtol=1e-4, atol=1e-4)


def test_changed_weights_of_a_file_of_the_same_size_and_times(file: Path) -> None:
    from onnx import numpy_helper

    before, proto = file.stat(), network()
    for number in (0, 5):  # packed filters, and a matrix
        array = numpy_helper.to_array(proto.graph.initializer[number]) * 2
        proto.graph.initializer[number].CopyFrom(numpy_helper.from_array(array, proto.graph.initializer[number].name))
        with file.open("r+b") as opened:
            opened.write(proto.SerializeToString())
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert file.stat().st_size == before.st_size
        assert not is_cached(right(file, proto))
    assert is_cached(right(file, proto))


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda whole: whole[:40],
        lambda whole: whole[:-1],
        lambda whole: flipped(whole, 3),
        lambda whole: flipped(whole, 200),
        lambda whole: flipped(whole, len(whole) - 1),
    ],
)
def test_damaged_entries(file: Path, model_folder: Path, damage: Callable[[bytes], bytes]) -> None:
    (entry,) = model_folder.iterdir()
    whole = entry.read_bytes()
    entry.write_bytes(damage(whole))
    assert not is_cached(right(file))
    assert is_cached(right(file))


def test_damaged_entries_are_listed(file: Path, model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jitkernels.tools.cli import cache

    monkeypatch.setattr(cache, "_environments", lambda: iter([model_folder.parent]))
    assert cache.summary()["models"] == 1
    assert cache.verify() == 0
    (entry,) = model_folder.iterdir()
    entry.write_bytes(flipped(entry.read_bytes(), entry.stat().st_size - 1))
    assert cache.verify() == 1


def test_an_entry_that_is_no_file(file: Path, model_folder: Path) -> None:
    (entry,) = model_folder.iterdir()
    entry.unlink()
    entry.mkdir()
    assert not is_cached(right(file))


def test_objects_that_are_gone(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: Any, **__: Any) -> None:
        raise BuildError("not in the cache")

    with monkeypatch.context() as patched:
        patched.setattr("jitkernels.runtime.stored_entry.loader", SimpleNamespace(load=load))
        assert not is_cached(right(file))


@pytest.mark.parametrize("fact", ["cpu", "package", "onnx", "python", "setting", "threads", "measurement"])
def test_facts_that_have_changed(file: Path, fact: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    facts = model_cache._facts(["conv2d"])
    if fact == "cpu":
        monkeypatch.setattr("jitkernels.core.environment.environment_of_code", lambda: {"cpu": "another"})
    elif fact == "package":
        monkeypatch.setattr("jitkernels.core.source_hash.state_of", lambda *_: "another")
    elif fact == "onnx":
        monkeypatch.setattr("jitkernels.core.versions.version", lambda _: "another")
    elif fact == "python":
        monkeypatch.setattr(sys.implementation, "cache_tag", "another")
    elif fact == "setting":
        monkeypatch.setenv("JITKERNELS_OPT_LEVEL", "2")
    elif fact == "threads":
        monkeypatch.setattr(model_cache, "get_num_threads", lambda: get_num_threads() + 1)
    else:
        monkeypatch.setattr(cache_dirs, "timings_directory", lambda _: tmp_path)
        (tmp_path / "softmax-1.json").write_text("{}")
        assert model_cache._facts(["conv2d"])["measurements"] == []
        (tmp_path / "matmul-1.json").write_text("{}")
        (tmp_path / "conv2d-1.json").write_text("{}")
    assert model_cache._facts(["conv2d"]) != facts
    assert model_cache.find(ModelFile(file), winograd=False) is None


def test_other_options_are_other_entries(file: Path, model_folder: Path) -> None:
    assert not is_cached(right(file, winograd=True))
    assert is_cached(right(file, winograd=True))
    assert is_cached(right(file))
    assert not is_cached(right(file, profile=True))
    assert len([*model_folder.iterdir()]) == 2


def test_pins_decide_where_they_hold(file: Path, model_folder: Path) -> None:
    before = [path.stat().st_ino for path in model_folder.iterdir()]
    with jk.use(implementation="refer"):
        assert not is_cached(right(file))
    model = jk.onnx.load(file)
    with jk.use(implementation="refer"):
        model(image())
    model_cache.wait_for_writers()
    assert not is_cached(model)
    assert [path.stat().st_ino for path in model_folder.iterdir()] == before


def test_inputs_that_have_initializers(tmp_path: Path, model_folder: Path) -> None:
    from onnx import helper

    node = helper.make_node("Mul", ["x", "w"], ["y"])
    proto = made([node], [("x", [3]), ("w", [3])], [("y", [3])], [("w", np.full(3, 2, np.float32))])
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    x = np.arange(3, dtype=np.float32)
    for _ in range(2):
        model = jk.onnx.load(path)
        assert [one.name for one in model.get_inputs()] == ["x"]
        assert (model(x) == 2 * x).all()
        assert (model.run(None, {"x": x, "w": x})[0] == x * x).all()
        model_cache.wait_for_writers()
    assert is_cached(model)


def test_models_that_no_other_process_can_run(tmp_path: Path, model_folder: Path) -> None:
    from onnx import helper

    node = helper.make_node("NonZero", ["x"], ["y"])  # in NumPy
    proto = made([node], [("x", [3])], [])
    proto.graph.output.append(helper.make_tensor_value_info("y", 7, None))
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    jk.onnx.load(path)(np.ones(3, np.float32))
    jk.onnx.load(network())(image())  # no file
    model_cache.wait_for_writers()
    assert not model_folder.exists() or [*model_folder.iterdir()] == []


class Image:
    """What NumPy converts to an array."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return image()


def test_an_entry_is_written_once(tmp_path: Path, model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that need conversions do not write it again, and the code in it serves them."""
    path, written = tmp_path / "model.onnx", list[Any]()
    path.write_bytes(network().SerializeToString())
    store = model_cache.store
    monkeypatch.setattr(model_cache, "store", lambda *args, **named: written.append(store(*args, **named)))
    for process in range(2):
        model = jk.onnx.load(path)
        for _ in range(3):
            np.testing.assert_allclose(model(Image()), expected(image()), rtol=1e-4, atol=1e-4)
        model_cache.wait_for_writers()
        assert len(written) == 1
        assert is_cached(model) == bool(process)
        assert ("_executor" in vars(model)) != bool(process)


def test_threads_share_what_the_first_call_compiles(
    tmp_path: Path, model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, made = tmp_path / "model.onnx", list[Any]()
    path.write_bytes(network().SerializeToString())
    model = jk.onnx.load(path)
    make = model._executor_of

    def slowly(graph: Any) -> Any:
        time.sleep(0.05)
        made.append(make(graph))
        return made[-1]

    monkeypatch.setattr(model, "_executor_of", slowly)
    threads = [threading.Thread(target=model, args=(image(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1


def test_a_disk_without_room(tmp_path: Path, model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(network().SerializeToString())
    monkeypatch.setattr(model_cache, "_has_room", lambda *_: False)
    right(path)
    assert [*model_folder.iterdir()] == []


def test_least_recently_used_entries_make_room(file: Path, tmp_path: Path, model_folder: Path) -> None:
    (first,) = model_folder.iterdir()
    os.utime(first, (1, 1))
    draft = model_folder / ".unfinished-1"
    draft.write_bytes(b"")
    os.utime(draft, (1, 1))
    right(file)  # which is a use
    other = tmp_path / "other.onnx"
    other.write_bytes(perceptron().SerializeToString())
    jk.onnx.load(other)(np.ones((2, 3), np.float32))
    model_cache.wait_for_writers()
    assert first.exists()
    assert not draft.exists()
    (second,) = {*model_folder.iterdir()} - {first}
    os.utime(first, (1, 1))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(model_cache, "MAX_MODEL_BYTES", second.stat().st_size)
        model_cache._make_room(model_folder)
    assert [*model_folder.iterdir()] == [second]


def test_threads_that_load_at_once(file: Path) -> None:
    model = jk.onnx.load(file)
    with ThreadPoolExecutor(4) as pool:
        results = [*pool.map(lambda _: model(image()).tobytes(), range(8))]
        results += pool.map(lambda _: jk.onnx.load(file)(image()).tobytes(), range(8))
    assert len({*results}) == 1


WARM = """
import sys
import numpy as np
import jitkernels as jk
y = jk.onnx.load(PATH)(np.ones((1, 16, 9, 9), np.float32))
own = "jitkernels.compiler", "jitkernels.attrs.", "jitkernels.microkernels", "jitkernels.dispatch", "jitkernels.tuning"
unused = [name for name in sys.modules if name.startswith(own) or name in ("onnx", "llvmlite", "numba")]
unused = [name for name in unused if name not in ("jitkernels.attrs.schema", "jitkernels.attrs.schema.plugins")]
print(y.tobytes().hex(), unused)
"""


def test_a_warm_process_imports_no_compiler(tmp_path: Path) -> None:
    path, proto = tmp_path / "model.onnx", network()
    proto.doc_string = str(tmp_path)  # a file that no process has seen
    path.write_bytes(proto.SerializeToString())
    code = WARM.replace("PATH", repr(str(path)))
    both = [start(code), start(code)]  # at once, and both write
    first, second = (finish(process).split(maxsplit=1) for process in both)
    result, unused = finish(start(code)).split(maxsplit=1)
    assert first[0] == second[0] == result
    assert first[1] != "[]\n"
    assert unused == "[]\n"
