"""Functions whose text a test writes: from files, as code is made from their text."""

import importlib.util
from pathlib import Path
from typing import Any


def function_of(text: str, name: str, folder: Path) -> Any:
    """What is called ``function`` in a module of some text."""
    file = folder / f"{name}.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.function
