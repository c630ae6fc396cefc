"""Bundles: the same bits from C, from Python without this package, and from the command line; and what is refused."""

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from jitted import array

import jitkernels as jk
from jitkernels.compiler.export.link_object import OF_SYSTEM
from jitkernels.compiler.export.manifest import checksum, in_c
from jitkernels.compiler.export.run_bundle import Bundle
from jitkernels.core import atomic_files
from jitkernels.errors import ArgumentError, ArgumentTypeError, BundleError, JitKernelsError

W = [array(16, 16, dtype="f4"), array(16, 16, dtype="f4", seed=2)]
B = [array(16, dtype="f4", seed=3), array(16, dtype="f4", seed=4)]


def mlp(x: Any) -> Any:
    return np.maximum(x @ W[0] + B[0], 0) @ W[1] + B[1]


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.T / np.sqrt(np.float32(q.shape[1]))
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights @ v / weights.sum(-1, keepdims=True), scores.max()


def far(x: Any) -> Any:
    """Sines of huge numbers are outlined cold code."""
    return np.sin(x * 1e30) + np.log1p(abs(x)), (x > 0).sum(), x.astype("f2")


def steps(u: Any, rounds: int) -> Any:
    for _ in range(rounds):
        u[1:-1] = (u[:-2] + u[2:]) / 2
    return u.max()


def rounds(x: Any, most: float) -> Any:
    """A loop whose end elements tell, which asks for signals where there is Python."""
    y = x * 1.0
    while y.sum() > most:
        y = y * 0.9
    return y


def picked(table: Any, numbers: Any) -> Any:
    return table[numbers] * 2


def scaled(model: Any, x: Any, factor: float) -> Any:
    return (x @ model.weights + model.bias) * factor


MODEL = SimpleNamespace(weights=array(40, 30), bias=array(30))
CASES: dict[str, tuple[Callable[..., Any], tuple[Callable[[], Any], ...]]] = {
    "mlp": (mlp, (lambda: array(1, 16, dtype="f4"),)),
    "attention": (attention, tuple(partial(array, 70, 64, dtype="f4", seed=i) for i in range(3))),
    "large": (lambda a, b: np.tanh(a @ b), (lambda: array(200, 300), lambda: array(300, 250))),
    "far": (far, (lambda: array(1000),)),
    "steps": (steps, (lambda: array(500), lambda: 7)),
    "rounds": (rounds, (lambda: array(30) + 3, lambda: 5.0)),
    "picked": (picked, (lambda: array(20, 3), lambda: np.array([4, 19, 0, -1]))),
    "scaled": (scaled, (lambda: MODEL, lambda: array(5, 40), lambda: 2.5)),
    "nothing": (lambda x: x * 2, (lambda: array(0, 3),)),
}


def exported(name: str, folder: Path) -> tuple[Bundle, list[Any], list[Any]]:
    """A bundle, inputs for it, and what the compiled function gives for these."""
    function, make = CASES[name]
    compiled: Any = jk.jit(function)
    about = compiled.export(folder, *(one() for one in make))
    given = [one() for one in make]
    expected = compiled(*given)
    compiled(*(one() for one in make))
    inputs = [one() for one in make if not isinstance(one(), int | SimpleNamespace)]
    assert len(inputs) == len(about.inputs)
    return Bundle(folder), inputs, [*expected] if isinstance(expected, tuple) else [expected]


def bits(arrays: Any) -> list[bytes]:
    return [np.asarray(one).tobytes() for one in arrays]


@pytest.mark.parametrize("name", CASES)
def test_same_bits_as_the_compiled_function(name: str, tmp_path: Path) -> None:
    bundle, inputs, expected = exported(name, tmp_path)
    found = bundle(*inputs)
    assert bits(found) == bits(expected)
    assert [(one.dtype, one.shape) for one in found] == [(np.asarray(one).dtype, np.shape(one)) for one in expected]
    if name == "steps":  # the input is changed as the function changes it
        u = array(500)
        steps(u, 7)
        assert np.allclose(inputs[0], u, rtol=1e-13)


def built(folder: Path, *command: str) -> None:
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", *command], cwd=folder, check=True)


@pytest.mark.parametrize("name", ["mlp", "attention", "far"])
def test_examples(name: str, tmp_path: Path) -> None:
    _, inputs, expected = exported(name, tmp_path)
    files = [f"{i}.bin" for i in range(len(inputs))]
    for file, one in zip(files, inputs, strict=True):
        one.tofile(tmp_path / file)
        np.save(tmp_path / f"{file}.npy", one)
    prefix = json.loads(next(tmp_path.glob("*.json")).read_text())["name"]
    built(tmp_path, "-O2", "example.c", f"{prefix}.o", "-o", "example")
    ran = subprocess.run(["./example", f"{prefix}.weights", *files], cwd=tmp_path, check=True, capture_output=True)
    assert ran.stdout == b"".join(bits(expected))
    built(tmp_path, "-shared", "-o", f"lib{prefix}.so", f"{prefix}.o")
    alone = "import sys; sys.modules['jitkernels'] = None; sys.path.insert(0, '.'); import example, numpy as np"
    given = ", ".join(f"np.load('{file}.npy')" for file in files)
    show = f"[print(one.tobytes().hex()) for one in example.run({given})]"
    lines = subprocess.run(
        [sys.executable, "-c", f"{alone}; {show}"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout.split()
    assert [bytes.fromhex(line) for line in lines] == bits(expected)


def test_objects_export_one_symbol_and_need_only_the_c_library(tmp_path: Path) -> None:
    exported("attention", tmp_path)
    exported("mlp", tmp_path / "mlp")
    symbols = subprocess.run(["nm", "attention.o"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert re.findall(r" [TDBRCWV] (\w+)", symbols) == ["attention_run"]
    assert {*re.findall(r" U (\w+)", symbols)} <= {*OF_SYSTEM, "_GLOBAL_OFFSET_TABLE_"}
    assert (tmp_path / "mlp" / "mlp.o").stat().st_size < 20_000
    # Several bundles are one program.
    (tmp_path / "both.c").write_text(
        '#include "attention.h"\n#include "mlp/mlp.h"\n#include <stdio.h>\n'
        "int main(void) { return (void *)attention_run == (void *)mlp_run; }\n"
    )
    built(tmp_path, "both.c", "attention.o", "mlp/mlp.o", "-o", "both")
    subprocess.run(["./both"], cwd=tmp_path, check=True)


def test_threads_run_one_bundle(tmp_path: Path) -> None:
    bundle, inputs, expected = exported("attention", tmp_path)
    wrong: list[int] = []

    def run() -> None:
        wrong.extend(i for i in range(20) if bits(bundle(*inputs)) != bits(expected))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


def test_indices_out_of_bounds(tmp_path: Path) -> None:
    bundle, (table, _), _ = exported("picked", tmp_path)
    with pytest.raises(IndexError, match="out of bounds"):
        bundle(table, np.array([4, 20, 0, 1]))


def test_inputs_are_checked(tmp_path: Path) -> None:
    bundle, (x,), _ = exported("mlp", tmp_path)
    with pytest.raises(ArgumentTypeError, match="x: expected dtype float32, got float64"):
        bundle(x.astype("f8"))
    with pytest.raises(ArgumentError, match=re.escape("x: expected shape (1, 16), got (16,)")):
        bundle(x[0])
    with pytest.raises(ArgumentTypeError, match=r"expected .*, got 2 inputs"):
        bundle(x, x)
    assert bits(bundle(np.asfortranarray(x))) == bits(bundle(x))
    assert "mlp(x: float32[1, 16])" in repr(bundle)
    changing, (u,), _ = exported("steps", tmp_path / "steps")
    with pytest.raises(ArgumentError, match="u: expected an array in C order"):
        changing(np.repeat(u, 2)[::2])


def unknown(x: Any) -> Any:
    return np.linalg.pinv(x)


def of_views(x: Any) -> Any:
    return {"x": x * 2}


def doubled(x: Any) -> Any:
    x *= 2
    return x, 5


def changing(x: Any) -> Any:
    B[0][:] = x
    return x + 1


@pytest.mark.parametrize(
    ("function", "given", "message"),
    [
        (unknown, (array(3, 3),), "NumPy"),
        (of_views, (array(3),), "expected a function that returns a new array"),
        (doubled, (array(3),), "expected a function that returns a new array"),
        (lambda x: None, (array(3),), "it computes nothing"),
        (lambda x: x, (array(3),), "expected a function that returns a new array"),
        (lambda x: x + 1, (array(3).astype(">f8"),), "function falls back to NumPy"),
        (changing, (array(16, dtype="f4"),), "weights are changed|falls back to NumPy"),
    ],
)
def test_unsupported_functions_are_rejected(function: Any, given: Any, message: str, tmp_path: Path) -> None:
    before = B[0].copy()
    with pytest.raises(BundleError, match=message):
        jk.jit(function).export(tmp_path / "none", *given)
    assert not (tmp_path / "none").exists()
    assert np.array_equal(before, B[0])


def test_broken_bundles(tmp_path: Path) -> None:
    exported("mlp", tmp_path)
    whole = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def refused(name: str, content: bytes | None, message: str) -> None:
        path = tmp_path / name
        path.unlink() if content is None else path.write_bytes(content)
        with pytest.raises(BundleError, match=message):
            Bundle(tmp_path)
        path.write_bytes(whole[path])

    refused("mlp.o", None, "expected a folder with one bundle, got 0")
    refused("mlp.weights", None, "missing")
    refused("mlp.weights", b"123", "mlp.weights: the file is damaged")
    weights = whole[tmp_path / "mlp.weights"]
    refused("mlp.weights", weights[:-1] + bytes([weights[-1] ^ 1]), "expected SHA-256")
    refused("mlp.json", b"{}", "describes no bundle")
    refused("mlp.json", b"\xa0{}", "describes no bundle")
    refused("mlp.json", whole[tmp_path / "mlp.json"].replace(b'"format": 3', b'"format": 9'), "expected 3, got 9")
    about = json.loads(whole[tmp_path / "mlp.json"])
    refused("mlp.json", signed({**about, "features": ["x86-64-v9", *about["features"]]}), "v9")
    code = whole[tmp_path / "mlp.o"]
    for cut in (0, 3, 100, len(code) // 2):
        refused("mlp.o", code[:cut], "mlp.o: the file is damaged")
    refused("mlp.o", code[:-9] + bytes([code[-9] ^ 16]) + code[-8:], "mlp.o: the file is damaged")
    whole[tmp_path / "mlp.o"] = code[:100]
    (tmp_path / "mlp.o").write_bytes(code[:100])
    cut_off = {**about, "checksums": {**about["checksums"], ".o": checksum(code[:100])}}
    refused("mlp.json", signed(cut_off), "object file")
    (tmp_path / "mlp.o").write_bytes(code)
    assert Bundle(tmp_path)


def signed(about: dict[str, Any]) -> bytes:
    """A description with the checksum that an export would give it."""
    files = {end: one for end, one in about["checksums"].items() if end != ".json"}
    content = json.dumps({**about, "checksums": files}, sort_keys=True).encode()
    return json.dumps({**about, "checksums": {**files, ".json": checksum(content)}}).encode()


def changed(value: Any) -> Iterator[Any]:
    """A JSON value with each of its parts changed, one at a time."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from ({**value, key: other} for other in changed(one))
            yield {name: other for name, other in value.items() if name != key}
    elif isinstance(value, list):
        for i, one in enumerate(value):
            yield from ([*value[:i], other, *value[i + 1 :]] for other in changed(one))
            yield [*value[:i], *value[i + 1 :]]
        yield [*value, *value[:1], "more"]
    elif isinstance(value, str):
        yield from (value + "x", value[1:])
    else:
        yield from (value + 1, value - 1)


@pytest.mark.parametrize("name", ["mlp", "steps"])
def test_edited_manifests_are_rejected(name: str, tmp_path: Path) -> None:
    """Edited sizes and offsets would let the code read beyond arrays."""
    exported(name, tmp_path)
    path = next(tmp_path.glob("*.json"))
    about = json.loads(path.read_text())
    edits = [one for one in changed(about) if one.get("format") != 2]
    assert len(edits) > 80
    for edit in edits:
        path.write_text(json.dumps(edit))
        with pytest.raises(BundleError, match=r"changed after the export|describes no bundle|bundle format"):
            Bundle(tmp_path)
    path.write_text(json.dumps(about, separators=(",", ":")))  # the same in other words
    assert Bundle(tmp_path)


def test_bundles_of_the_previous_version_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic_files, "_said", set())
    bundle, inputs, _ = exported("mlp", tmp_path)
    path = next(tmp_path.glob("*.json"))
    about = json.loads(path.read_text())
    del about["checksums"][".json"]
    path.write_text(json.dumps({**about, "format": 2}))
    again = Bundle(tmp_path)
    (line,) = [one.getMessage() for one in caplog.records]
    assert "has the previous format" in line
    assert again(*inputs)[0].tobytes() == bundle(*inputs)[0].tobytes()


def test_names_in_c() -> None:
    assert in_c(["x", "w[0]", "w 0", "model.bias", "0", "ü", "x"]) == [
        "x", "w_0", "w_0_2", "model_bias", "_0", "array", "x_2",
    ]  # fmt: skip


def test_the_command(tmp_path: Path) -> None:
    _, (x,), (expected,) = exported("mlp", tmp_path)
    np.save(tmp_path / "x.npy", x)
    command = [sys.executable, "-m", "jitkernels", "run", str(tmp_path)]
    given = ["--input", str(tmp_path / "x.npy"), "--output", str(tmp_path / "y.npy")]
    ran = subprocess.run([*command, *given], check=True, capture_output=True, text=True)
    assert "result: float32[1, 16]" in ran.stdout
    assert np.load(tmp_path / "y.npy").tobytes() == expected.tobytes()
    failed = subprocess.run(command, check=False, capture_output=True, text=True)
    assert failed.returncode != 0
    assert "got 0 inputs" in failed.stderr


def test_errors_are_of_this_package() -> None:
    assert jk.BundleError is BundleError
    assert issubclass(BundleError, JitKernelsError)
