"""How Sphinx makes the site: the pages of this folder, the tutorial, which it runs, and all docstrings."""

import re

project, author = "jitkernels", "the authors of jitkernels"
html_title = "jitkernels"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
html_theme = "furo"
exclude_patterns = ["_build", "tutorial", "**/GALLERY_HEADER.rst", "sg_execution_times.rst"]
myst_heading_anchors = 3
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


def setup(app):
    """Have Sphinx call it."""
    app.connect("autodoc-process-docstring", _as_text, priority=400)
