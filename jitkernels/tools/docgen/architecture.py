"""ARCHITECTURE.md: its pictures and tables are drawn from the code, between its marks; the prose around them stays."""

import ast
import re
from collections.abc import Callable, Iterable, Sequence

from jitkernels.errors import ArgumentError, UnknownNameError
from jitkernels.tools.docgen.architecture_decisions import DECISIONS
from jitkernels.tools.docgen.architecture_glossary import GLOSSARY
from jitkernels.tools.docgen.architecture_map import CALL_PATHS, CallPath, Station
from jitkernels.tools.docgen.import_graph import (
    LAYERS,
    edges_between,
    imports_of_package,
    layer_of,
    transitive_reduction,
)
from jitkernels.tools.docgen.source_refs import Reference, file_of, resolved, uses

MARK = re.compile(r"<!-- drawn: ([\w-]+) -->\n.*?<!-- end of \1 -->", re.DOTALL)
"""A drawn part of the page."""


def page_of(text: str) -> str:
    """The page with all drawn parts as the code is now.

    Raises ArgumentError for a page whose marks are not those of all parts, UnknownNameError for a reference that no
    longer resolves, and ArgumentError for a station of a call path that no earlier station uses.
    """
    marks = MARK.findall(text)
    if sorted(marks) != sorted(PARTS):
        raise ArgumentError(f"expected a page with the marks {', '.join(PARTS)}, got {', '.join(marks) or 'none'}")
    return MARK.sub(lambda found: _marked(found[1]), text)


def drawn() -> str:
    """All drawn parts, one behind another."""
    return "\n\n".join(map(_marked, PARTS)) + "\n"


def _marked(part: str) -> str:
    return f"<!-- drawn: {part} -->\n{PARTS[part]()}\n<!-- end of {part} -->"


def references() -> list[str]:
    """Every reference of the page, for the test that resolves them."""
    stations = [station.at for path in CALL_PATHS.values() for station in path.stations]
    decisions = [at for places in DECISIONS.values() for at, _ in places]
    return [*stations, *decisions, *(at for _, _, at in GLOSSARY)]


def _layers() -> str:
    """The table of layers, from the bottom up, with the first line of each package's docstring."""
    rows = ["| layer | what it holds | imports |", "|---|---|---|"]
    edges = transitive_reduction(_edges(lambda layer: "" if layer == "compiler" else layer))
    for layer in reversed([one for one in LAYERS if one in edges]):
        below = ", ".join(f"`{one}`" for one in _in_order(edges[layer])) or "nothing of ours"
        rows.append(f"| {_layer_link(layer)} | {_first_line(layer)} | {below} |")
    return "\n".join(rows)


def _layer_link(layer: str) -> str:
    path = file_of(layer)
    if path is None:
        raise UnknownNameError(f"{layer}: expected a module of jitkernels")
    place = layer.replace(".", "/")
    if path.name == "__init__.py":
        return f"[`{place}/`](jitkernels/{place}/)"
    return f"[`{place}.py`](jitkernels/{place}.py)"


def _place(at: str) -> str:
    """A link to a definition, a module, or a package."""
    return resolved(at).link if ":" in at else _layer_link(at)


def _first_line(layer: str) -> str:
    path = file_of(layer)
    assert path is not None, "a layer that the tests hold to exist"
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return _as_markdown(docstring.partition("\n\n")[0].replace("\n", " ").rstrip("."))


def _as_markdown(text: str) -> str:
    return re.sub(r"``(.*?)``", r"`\1`", text).replace("|", "\\|")


def _edges(group: Callable[[str], str]) -> dict[str, set[str]]:
    """Which groups of layers import which; `group` names the group of a layer, or gives "" to leave it out."""
    imports = imports_of_package()
    groups = {module: group(layer_of(module)) for module in imports}
    return edges_between(imports, {module: one for module, one in groups.items() if one and one != "__main__"})


def _packages() -> str:
    """The packages at the root; an arrow where one imports another, and no longer way says so."""
    return _graph(_edges(lambda layer: layer if layer == "tools.cli" else layer.split(".")[0]))


def _compiler() -> str:
    """The folders of the compiler."""
    return _graph(_edges(lambda layer: layer if layer.startswith("compiler.") else ""))


def _graph(edges: dict[str, set[str]]) -> str:
    lines = ["```mermaid", "flowchart TD"]
    reduced = transitive_reduction(edges)
    lines += [f'  {_identifier(group)}["{group}"]' for group in reversed(_in_order(reduced))]
    for group in reversed(_in_order(reduced)):
        lines += [f"  {_identifier(group)} --> {_identifier(one)}" for one in _in_order(reduced[group])]
    return "\n".join([*lines, "```"])


def _in_order(groups: Iterable[str]) -> list[str]:
    """Layers, or groups of them, from the bottom up."""
    ranks = {layer: rank for rank, layer in enumerate(LAYERS)}

    def rank(group: str) -> int:
        return max(r for layer, r in ranks.items() if layer == group or layer.startswith(f"{group}."))

    return sorted(groups, key=rank)


def _identifier(group: str) -> str:
    return group.replace(".", "_").replace("export", "export_")  # "export" is no word of mermaid's, "end" would be


def _path(name: str) -> str:
    """One call path: the picture, whose arrows follow from the code, and its stations in order."""
    path = CALL_PATHS[name]
    found = [resolved(station.at) for station in path.stations]
    arrows = arrows_of(path, found)
    lines = ["```mermaid", "flowchart TD"]
    for number, reference in enumerate(found, 1):
        place = reference.path.removeprefix("jitkernels/")
        lines.append(f'  s{number}["{number}. {reference.name}<br/>{place}"]')
    for source, target, via in arrows:
        arrow = f'-. "{via}" .->' if via else "-->"
        lines.append(f"  s{source} {arrow} s{target}")
    lines += ["```", "", "| | station | what it does |", "|---|---|---|"]
    for number, (reference, station) in enumerate(zip(found, path.stations, strict=True), 1):
        stage = f"**{path.stages[station]}** " if station in path.stages else ""
        lines.append(f"| {stage}{number} | {reference.link} | {station.does} |")
    return "\n".join(lines)


def arrows_of(path: CallPath, found: Sequence[Reference]) -> list[tuple[int, int, str]]:
    """From which earlier station each is reached: numbers of both, and how, where no text of the caller names it.

    Raises ArgumentError for a station that no earlier one uses.
    """
    arrows: list[tuple[int, int, str]] = []
    for number, (target, station) in enumerate(zip(found, path.stations, strict=True), 1):
        earlier = [
            (source, number, "")
            for source, one in enumerate(found[: number - 1], 1)
            if one != target and uses(one, target)
        ]
        arrows += earlier or _indirect(path, number, station)
    return arrows


def _indirect(path: CallPath, number: int, station: Station) -> list[tuple[int, int, str]]:
    if number == 1 or station.is_entrance:
        return []
    if not station.via:
        raise ArgumentError(f"{path.title}: {station.at}: expected an earlier station that uses it, or `via`, got none")
    sources = [source for source, one in enumerate(path.stations, 1) if one.at == station.source]
    return [(sources[0] if sources else number - 1, number, station.via)]


def _decisions() -> str:
    rows = ["| what | decided by | how |", "|---|---|---|"]
    for what, places in DECISIONS.items():
        for number, (at, how) in enumerate(places):
            rows.append(f"| {f'**{what}**' if not number else ''} | {_place(at)} | {how} |")
    return "\n".join(rows)


def _glossary() -> str:
    rows = ["| term | meaning | where |", "|---|---|---|"]
    for term, meaning, at in sorted(GLOSSARY, key=lambda one: one[0].lower()):
        rows.append(f"| **{term}** | {meaning} | {_place(at)} |")
    return "\n".join(rows)


PARTS: dict[str, Callable[[], str]] = {
    "layers": _layers,
    "packages": _packages,
    "compiler": _compiler,
    "decisions": _decisions,
    "glossary": _glossary,
    **{name: lambda name=name: _path(name) for name in CALL_PATHS},  # type: ignore[misc]  # lambdas have no types
}
"""Each drawn part of the page by its mark."""
