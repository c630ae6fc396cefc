"""Tests of ONNX models: skipped, with a reason, where the package onnx is not installed."""

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if importlib.util.find_spec("onnx") is None:
        skipped = pytest.mark.skip(reason="the package onnx is not installed: pip install 'jitkernels[onnx]'")
        for item in items:
            if item.path.is_relative_to(FOLDER):
                item.add_marker(skipped)
