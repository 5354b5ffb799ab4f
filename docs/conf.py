"""Sphinx: `python -m sphinx -E -W --keep-going -b html docs docs/_build`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).with_name("scripts")))

import gallery
import parameters
import reference_pages as reference

import functrans

project = "functrans"
author = "The functrans developers"
version = release = functrans.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "linking",
    "sphinx_gallery.gen_gallery",
    "gallery",
]
sphinx_gallery_conf = gallery.CONFIGURATION
# Our own page of the gallery has the programs by subject.
exclude_patterns = [
    "_build",
    "inventories",
    "scripts",
    "gallery/index.rst",
    "gallery/data",
    "**/sg_execution_times.rst",
]
html_theme = "pydata_sphinx_theme"
html_title = f"functrans {release}"
html_theme_options = {
    "logo": {"text": "functrans"},
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 4,
    "navigation_with_keys": True,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc", "sourcelink"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}
html_sidebars = {"index": [], "api/*": ["reference-siblings"], "_modules/**": []}
copyright = "the functrans developers"
# The copy button leaves out prompts and what the program prints.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
# `name` in a docstring is a link where there is such an object, and code where there is none.
default_role = "py:obj"


# Places in other manuals; docs/scripts/generate_inventories.py writes the files, so that no build asks the network.
MANUALS = {
    "python": "https://docs.python.org/3/",
    "numpy": "https://numpy.org/doc/stable/",
    "scipy": "https://docs.scipy.org/doc/scipy/",
    "jax": "https://docs.jax.dev/en/latest/",
}
intersphinx_mapping = {name: (url, f"inventories/{name}.txt") for name, url in MANUALS.items()}
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).with_name("search_scorer.js"))  # Sphinx looks where it was started


def as_written(app, what, name, obj, options, lines):
    """Escape what reStructuredText would misread, but for examples; add parameters that a family shares."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[i] = reference.tolerable(line)
    if what == "function":
        parameters.added(name, obj, lines)


def setup(app):
    app.connect("autodoc-process-docstring", as_written, priority=400)  # before numpydoc
