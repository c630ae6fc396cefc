"""Networks beyond the usual sizes and places: few and many images, odd layouts, other processes, interruptions."""

import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_cases import level_of, needs_onnx
from processes import python

import jitkernels as jk
from jitkernels.errors import ArgumentError, ArgumentTypeError, ModelError

pytestmark = needs_onnx
FILTERS = 8


def weights(channels: int, groups: int = 1) -> Any:
    values = np.random.default_rng(channels).standard_normal((FILTERS, max(channels // groups, 1), 3, 3))
    return values.astype(np.float32)


def network(channels: int = 3, groups: int = 1, padding: int = 1) -> Any:
    """A convolution of 3 x 3 and a rectifier on images of any number and size."""
    from onnx import TensorProto, helper, numpy_helper

    nodes = [
        helper.make_node("Conv", ["x", "w"], ["z"], pads=[padding] * 4, group=groups),
        helper.make_node("Relu", ["z"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", channels, "h", "w"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    kept = [numpy_helper.from_array(weights(channels, groups), "w")]
    graph = helper.make_graph(nodes, "network", [x], [y], kept)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def images(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def check(model: Any, x: Any, groups: int = 1, padding: int = 1) -> None:
    """Compare with sums in float64 over windows of the padded images."""
    channels = x.shape[1]
    w, own = weights(channels, groups).astype(np.float64), FILTERS // groups
    whole = np.pad(np.asarray(x, np.float64), [(0, 0), (0, 0), (padding,) * 2, (padding,) * 2])
    windows = np.lib.stride_tricks.sliding_window_view(whole, (3, 3), (2, 3))
    parts = np.split(windows, groups, 1)
    sums = [np.einsum("nchwij,fcij->nfhw", part, w[i * own : (i + 1) * own]) for i, part in enumerate(parts)]
    expected = np.maximum(np.concatenate(sums, 1), 0)
    found = model(x)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def compiles(model: Any) -> int:
    """How often the functions of a model were compiled."""
    return sum(
        function.stats().compiles for plan in model.plans for stage in plan.stages for function in stage.functions
    )


def test_any_number_of_images_of_any_size() -> None:
    model = jk.onnx.load(network())
    for batch in (2, 0, 1, 3, 17):
        check(model, images(batch, 3, 9, 10))
    for height, width in ((1, 1), (1, 7), (7, 1), (2, 2), (9, 11), (3, 2000)):
        check(model, images(1, 3, height, width))
    assert level_of(model) == "compiled"


@pytest.mark.parametrize(("channels", "groups"), [(1, 1), (3, 1), (17, 1), (4, 2), (8, 8)])
def test_channels_and_groups(channels: int, groups: int) -> None:
    check(jk.onnx.load(network(channels, groups)), images(2, channels, 5, 9), groups)


@pytest.mark.parametrize(("channels", "groups"), [(5, 2), (6, 3), (4, 3)])
def test_groups_that_do_not_divide(channels: int, groups: int) -> None:
    with pytest.raises(ModelError, match=rf"Conv.*{channels} channels, filters of shape .*, {groups} groups"):
        jk.onnx.load(network(channels, groups))(images(2, channels, 5, 9))


@pytest.mark.parametrize("operator", ["Conv", "MaxPool", "AveragePool", "LpPool"])
def test_windows_that_are_larger_than_the_image(operator: str) -> None:
    from onnx import TensorProto, helper, numpy_helper

    node = helper.make_node(operator, ["x", "w"][: 1 + (operator == "Conv")], ["y"], kernel_shape=[5, 5])
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy")
    kept = [numpy_helper.from_array(np.ones((2, 2, 5, 5), np.float32), "w")][: len(node.input) - 1]
    proto = helper.make_model(
        helper.make_graph([node], "g", [x], [y], kept), opset_imports=[helper.make_opsetid("", 17)]
    )
    reason = rf"^{operator}: a window of \[5, 5\] elements over an image of \[3, 4\], with the padding \[0, 0, 0, 0\]$"
    with pytest.raises(ModelError, match=reason):
        jk.onnx.load(proto)(images(1, 2, 3, 4))
    with pytest.raises(ModelError, match="over an image of"):
        jk.onnx.load(network(padding=0))(images(1, 3, 2, 2))


def test_layouts_and_types_of_images() -> None:
    model, x = jk.onnx.load(network()), images(2, 3, 9, 10)
    model(x)
    records = np.zeros(x.shape, [("x", np.float32), ("y", np.uint8)])
    records["x"] = x
    for other in (
        images(4, 3, 18, 20)[::2, :, ::2, ::2],
        x[:, :, ::-1, ::-1],
        np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2),
        np.asfortranarray(x),
        np.broadcast_to(x[:1], x.shape),
        x.astype(">f4"),
        np.frombuffer(b"1" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape),
        records["x"],
    ):
        check(model, other)
        check(jk.onnx.load(network()), other)
    for wrong in (x.astype(np.float64), x.astype(np.uint8), x.astype(np.float64).tolist()):
        with pytest.raises(ArgumentTypeError, match="x: expected an array of float32, got one of"):
            model(wrong)
    with pytest.raises(ArgumentError, match=r"x: expected the shape \['n', 3, 'h', 'w'\], got \[2, 4, 9, 10\]"):
        model(images(2, 4, 9, 10))
    assert level_of(model) == "compiled"


def test_batches_of_a_size_class_share_code() -> None:
    """One compile for each power of two, whatever the order of calls."""
    model = jk.onnx.load(network())
    for batch in (16, 9, 12, 16, 10, 15, 9):
        check(model, images(batch, 3, 9, 10))
    assert compiles(model) == 1
    for batch in (20, 32, 17, 12):
        check(model, images(batch, 3, 9, 10))
    assert compiles(model) == 2


def test_two_models_at_once() -> None:
    """Threads that call two models: neither disturbs the other, nor the first calls of both."""
    models = [jk.onnx.load(network()), jk.onnx.load(network(4))]
    inputs = [images(1 + i % 3, 3 + i % 2, 9, 10, seed=i) for i in range(24)]
    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(lambda i: models[i % 2](inputs[i]), range(24))]
    for i, result in enumerate(found):
        assert result.tobytes() == models[i % 2](inputs[i]).tobytes()
        check(models[i % 2], inputs[i])


def test_a_thread_of_its_own() -> None:
    model, results = jk.onnx.load(network()), list[Any]()
    thread = threading.Thread(target=lambda: results.append(model(images(2, 3, 9, 10))))
    thread.start()
    thread.join()
    assert results[0].tobytes() == model(images(2, 3, 9, 10)).tobytes()


OTHERS = """
import os, pickle, sys
import numpy as np
import jitkernels as jk
model = pickle.loads(open(PATH, "rb").read())
x = np.load(IMAGES)
if FIRST:
    model(x)
reading, writing = os.pipe()
if os.fork() == 0:
    os.write(writing, model(x).tobytes()[:4000])
    os._exit(0)
os.close(writing)
with os.fdopen(reading, "rb") as pipe:
    child = pipe.read()
os.wait()
assert child == model(x).tobytes()[:4000]
print(model(x).tobytes().hex())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("first", [False, True])
def test_pickled_for_another_process_that_forks(first: bool, tmp_path: Path) -> None:
    """The child compiles by itself, or calls what its parent has compiled."""
    model, x = jk.onnx.load(network().SerializeToString()), images(2, 3, 9, 10)
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(model))
    np.save(tmp_path / "x.npy", x)
    code = OTHERS.replace("PATH", repr(str(tmp_path / "model.pickle"))).replace("FIRST", str(first))
    printed = python(code.replace("IMAGES", repr(str(tmp_path / "x.npy"))))
    assert printed.strip() == model(x).tobytes().hex()


INTERRUPTED = """
import signal, sys, time
import numpy as np
import jitkernels as jk

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
x, interrupted = np.load(IMAGES), 0
for delay in (0.05, 0.1, 0.2, 0.4, 0.8):
    signal.setitimer(signal.ITIMER_REAL, delay)
    try:
        jk.onnx.load(PATH)(x)
    except KeyboardInterrupt:
        interrupted += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
assert interrupted
print(jk.onnx.load(PATH)(x).tobytes().hex())
"""


def test_interrupted_while_it_is_compiled(tmp_path: Path) -> None:
    """Ctrl-C at several times of a first call with an empty cache; a later call is right."""
    path, x = tmp_path / "model.onnx", images(2, 3, 9, 10)
    path.write_bytes(network().SerializeToString())
    np.save(tmp_path / "x.npy", x)
    code = INTERRUPTED.replace("PATH", repr(str(path))).replace("IMAGES", repr(str(tmp_path / "x.npy")))
    found = python(code, tmp_path / "cache")
    assert found.strip() == jk.onnx.load(network())(x).tobytes().hex()


PLACES = {
    "a disk that is full": """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
""",
    "a folder that nobody can write": """
import os
os.environ["JITKERNELS_CACHE_DIR"] = "/proc/self/net"
""",
}
CALLED = """
import numpy as np
import jitkernels as jk
model = jk.onnx.load(PATH)
print(model(np.load(IMAGES)).tobytes().hex(), model.explain(np.load(IMAGES)).cache)
"""


@pytest.mark.skipif(not Path("/proc/self/net").is_dir(), reason="there is no folder that even root cannot write")
@pytest.mark.parametrize("place", PLACES)
def test_no_room_for_the_cache(place: str, tmp_path: Path) -> None:
    """Models are compiled in each process then."""
    path, x = tmp_path / "model.onnx", images(2, 3, 9, 10)
    path.write_bytes(network().SerializeToString())
    np.save(tmp_path / "x.npy", x)
    code = PLACES[place] + CALLED.replace("PATH", repr(str(path))).replace("IMAGES", repr(str(tmp_path / "x.npy")))
    for _ in range(2):
        result, cached = python(code, tmp_path / "cache").strip().split(maxsplit=1)
        assert result == jk.onnx.load(network())(x).tobytes().hex()
        assert cached != "read from the cache"
