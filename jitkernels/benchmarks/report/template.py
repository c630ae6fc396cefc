"""The page's text from its template, style and script, which are files beside this module."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

FOLDER = Path(__file__).parent


def rendered(**values: Any) -> str:
    """Render the page; everything but the generated charts is escaped."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["chart"] = Markup
    parts = {name: Markup((FOLDER / name).read_text(encoding="utf-8")) for name in ("page.css", "page.js")}
    return environment.get_template("page.html").render(style=parts["page.css"], script=parts["page.js"], **values)
