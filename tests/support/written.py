"""Functions with source text written by a test: in files, as the compiler reads source from files."""

import importlib.util
from pathlib import Path
from typing import Any


def function_of(text: str, name: str, folder: Path) -> Any:
    """Return ``function`` of a module with some text."""
    file = folder / f"{name}.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.function
