"""External data of compiled models on disk: what is not as it was is compiled again."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_cases import needs_onnx
from test_model_cache import is_cached, right
from test_weights import expected, image, network

import jitkernels as jk
from jitkernels.errors import ModelError
from jitkernels.onnx import model_cache

pytestmark = needs_onnx


def external(tmp_path: Path) -> Path:
    import onnx

    path = tmp_path / "external.onnx"
    onnx.save(network(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    return path


def test_changed_external_data(tmp_path: Path, model_folder: Path) -> None:
    path, data = external(tmp_path), tmp_path / "weights.bin"
    right(path)
    assert is_cached(right(path))
    before = data.stat()
    content = np.fromfile(data, np.float32)
    content[: content.size // 2] *= 2
    content.tofile(data)
    os.utime(data, ns=(before.st_atime_ns, before.st_mtime_ns))
    model = jk.onnx.load(path)
    assert not np.allclose(model(image()), expected(image()), rtol=1e-3, atol=1e-3)
    assert not is_cached(model)
    model_cache.wait_for_writers()
    cached = jk.onnx.load(path)
    assert (cached(image()) == model(image())).all()
    assert is_cached(cached)
    data.unlink()
    with pytest.raises(ModelError, match="there is no such file"):
        jk.onnx.load(path)


def test_external_data_that_is_written_after_loading(tmp_path: Path, model_folder: Path) -> None:
    path, data = external(tmp_path), tmp_path / "weights.bin"
    right(path)
    model = right(path)
    data.write_bytes(bytes(data.stat().st_size))
    os.utime(data, ns=(0, 0))
    np.testing.assert_allclose(model(image()), expected(image()), rtol=1e-4, atol=1e-4)  # compiled already
    with pytest.raises(ModelError, match=r"weights\.bin: the file was written to since the model was loaded"):
        model(image(8))


def test_linked_external_data_is_no_entry(tmp_path: Path, model_folder: Path) -> None:
    """A link may lead elsewhere in the next process."""
    path, data = external(tmp_path), tmp_path / "weights.bin"
    data.rename(tmp_path / "first.bin")
    data.symlink_to("first.bin")
    right(path)
    assert not is_cached(right(path))


def test_external_data_that_becomes_a_link_is_a_miss(tmp_path: Path, model_folder: Path) -> None:
    path, data = external(tmp_path), tmp_path / "weights.bin"
    right(path)
    data.rename(tmp_path / "first.bin")
    data.symlink_to("first.bin")
    assert not is_cached(right(path))


def test_external_data_changed_before_the_entry_is_written(
    tmp_path: Path, model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its size and times are as they were: the entry of the old weights must not have the new name."""
    path, data, write = external(tmp_path), tmp_path / "weights.bin", model_cache._write

    def later(*args: Any, **options: Any) -> None:
        before = data.stat()
        content = np.fromfile(data, np.float32)
        (content * 2).tofile(data)
        os.utime(data, ns=(before.st_atime_ns, before.st_mtime_ns))
        write(*args, **options)

    monkeypatch.setattr(model_cache, "_write", later)
    right(path)
    assert not model_folder.is_dir() or not [*model_folder.iterdir()]


def test_external_data_that_is_no_file_is_a_miss(tmp_path: Path, model_folder: Path) -> None:
    path, data = external(tmp_path), tmp_path / "weights.bin"
    right(path)
    data.unlink()
    os.mkfifo(data)
    with pytest.raises(ModelError, match="there is no such file"):
        jk.onnx.load(path)
