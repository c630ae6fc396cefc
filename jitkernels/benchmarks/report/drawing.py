"""Figures as inline SVG: selectable text, colours from the page's style, unique ids.

Series differ in colour and in marker shape, so that they stay distinct in print and for colour-blind readers.
"""

import io
import re
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

INK, FAINT = "#010203", "#040506"
SERIES = ("#0a0101", "#0a0202", "#0a0303", "#0a0404", "#0a0505", "#0a0606", "#0a0707", "#0a0808")
"""Placeholder colours for those of the page: `COLOURS`."""
COLOURS = {INK: "--ink", FAINT: "--faint"} | {colour: f"--series-{i}" for i, colour in enumerate(SERIES)}
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p", "h")
STYLE: Any = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.facecolor": "none",
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.alpha": 0.35,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "figure.facecolor": "none",
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
}


def drawn(draw: Callable[[Figure], None], name: str, description: str, size: tuple[float, float] = (7.2, 3.6)) -> str:
    """Return an ``<svg>`` element of what `draw` puts on a figure; `name` must be unique on the page."""
    with mpl.rc_context(STYLE | {"svg.hashsalt": name}):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', text))
    text = re.sub(r' id="([^"]*)"', lambda match: match[0] if match[1] in used else "", text)
    for colour, variable in COLOURS.items():
        text = text.replace(colour, f"var({variable})")
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", text)
    label = description.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return re.sub(
        r'<svg [^>]*viewBox="([^"]*)"[^>]*>',
        lambda match: (
            f'<svg xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="{match[1]}" role="img" aria-label="{label}">'
        ),
        text,
        count=1,
    )


def series(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return colour and mark of each name, the same wherever the names are the same."""
    return {name: {"color": SERIES[i % len(SERIES)], "marker": MARKS[i % len(MARKS)]} for i, name in enumerate(names)}
