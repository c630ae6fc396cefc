"""How Sphinx makes the site: the pages of this folder, tutorial and programs, which it runs, and all docstrings.

`python docs/build_site.py FOLDER` makes it with a folder for each version.
"""

import re
import sys
from importlib import import_module, metadata
from pathlib import Path

DOCS = Path(__file__).parent
project, author = "jitkernels", "the authors of jitkernels"
release = version = metadata.version("jitkernels")
html_title = f"jitkernels {release}"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.mermaid",
]
html_theme = "furo"
html_static_path = ["static"]
html_js_files = ["versions.js"]
exclude_patterns = ["_build", "tutorial", "**/GALLERY_HEADER.rst", "sg_execution_times.rst"]
myst_heading_anchors = 3
myst_fence_as_directive = ["mermaid"]
myst_links_external_new_tab = True
default_role = "literal"
nitpicky = False
autodoc_member_order = "groupwise"
autodoc_typehints = "signature"
sphinx_gallery_conf = {
    "examples_dirs": ["tutorial"],
    "gallery_dirs": ["chapters"],
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "plot_gallery": True,
    "min_reported_time": 3600,
}
LITERAL = re.compile(r"(``.+?``|`[^`]+`)")


def _as_text(app, what, name, obj, options, lines):
    """Docstrings are text: between backquotes as it is, elsewhere without a meaning of single characters."""
    text = "\n".join(lines)
    parts = LITERAL.split(text)
    lines[:] = "".join(
        f"``{part.strip('`')}``" if i % 2 else re.sub(r"([*|_\\])", r"\\\1", part) for i, part in enumerate(parts)
    ).split("\n")


def _draw_programs(app):
    """Run each program of `examples/` and store its picture for the page on programs."""
    import matplotlib as mpl

    mpl.use("Agg")
    sys.path.insert(0, str(DOCS.parent / "examples"))
    (DOCS / "pictures").mkdir(exist_ok=True)
    for program in sorted((DOCS.parent / "examples").glob("*.py")):
        picture = DOCS / "pictures" / f"{program.stem}.png"
        if not picture.exists() or picture.stat().st_mtime < program.stat().st_mtime:
            module = import_module(program.stem)
            draw = getattr(module, "draw", None) or import_module("logistic_regression").draw
            draw(module.run(), str(picture))


SOURCE_LINK = re.compile(r"\[([^\]\n]+)\]\((?!https?:|#)([^)\s]+)\)")


def _link_pages(app, path, parent, content):
    """Links of files at the root: those to pages of this folder lead there, those to source files become text."""
    content[0] = SOURCE_LINK.sub(
        lambda link: f"[{link[1]}]({link[2].removeprefix('docs/')})" if link[2].startswith("docs/") else link[1],
        content[0],
    )


def _write_charts(app, error):
    """Write the measurements of `measurements/` as pages of charts."""
    if error is None and app.builder.format == "html":
        from jitkernels.benchmarks import report, saved

        for run in sorted((DOCS / "measurements").glob("*.json")):
            report.write(Path(app.outdir) / "measurements" / run.stem, [saved.load(run)])


def setup(app):
    """Have Sphinx call them."""
    app.connect("autodoc-process-docstring", _as_text, priority=400)
    app.connect("builder-inited", _draw_programs)
    app.connect("include-read", _link_pages)
    app.connect("build-finished", _write_charts)
