"""Imports go downwards through the layers, and never in a circle; module names in strings count as imports."""

from pathlib import Path

from jitkernels.tools.docgen.import_graph import (
    FORBIDDEN,
    LAYERS,
    PACKAGE,
    circle_in,
    imports_between,
    imports_of_package,
    layer_of,
)

FILES = sorted(PACKAGE.rglob("*.py"))


def test_imports_go_downwards() -> None:
    wrong = []
    for module, targets in imports_of_package().items():
        own = layer_of(module)
        for target in sorted(targets):
            layer = layer_of(target)
            if LAYERS.index(layer) > LAYERS.index(own) or layer in FORBIDDEN.get(own, ()):
                wrong.append(f"{module} ({own}) imports {target} ({layer})")
    assert not wrong, "\n".join(wrong)


def test_layers_all_exist() -> None:
    """Every listed layer is a folder."""
    assert {layer_of(module) for module in imports_of_package()} == set(LAYERS)


def test_no_import_cycles() -> None:
    """Neither between modules nor by imports inside functions."""
    assert len(imports_of_package()) == len(FILES)
    assert sum(map(len, imports_of_package().values())) > 2 * len(FILES)
    assert circle_in(imports_of_package()) == []


def test_upward_imports_and_cycles_are_caught(tmp_path: Path) -> None:
    assert LAYERS.index(layer_of("jitkernels.dispatch.kernel")) > LAYERS.index(layer_of("jitkernels.runtime.errstate"))
    package = tmp_path / "package"
    package.mkdir()
    texts = {
        "__init__": "",
        "low": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from package import high\n",
        "middle": "from package import low\n",
        "high": "import package.middle\nfrom package.low import anything\n",
    }
    files = []
    for name, text in texts.items():
        files.append(package / f"{name}.py")
        files[-1].write_text(text)
    assert circle_in(imports_between(files, package)) == []
    for upward in ("from package.high import something", "import_module('package.high')"):
        (package / "low.py").write_text(f"def later():\n    {upward}\n")
        assert set(circle_in(imports_between(files, package))) == {"package.low", "package.high"}
