"""Sphinx: `python -m sphinx -E -W --keep-going -b html docs docs/_build`."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import reference

import functrans

project = "functrans"
author = "The functrans developers"
version = release = functrans.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build"]
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
html_sidebars = {"index": []}
copyright = "the functrans developers"
# The copy button leaves out prompts and what the program prints.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
autosummary_generate = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
# `name` in a docstring is a link where there is such an object, and code where there is none.
default_role = "py:obj"


def as_written(app, what, name, obj, options, lines):
    """Escape two things that reStructuredText misreads: `Array`s, and shapes (*batch, n)."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = re.split(r"(``.*?``)", line)  # every second part is code, and stays as it is
            parts[::2] = [tolerable(part) for part in parts[::2]]
            lines[i] = "".join(parts)


def tolerable(text):
    text = re.sub(r"(`[\w.]+`)(?=\w)", r"\1\\ ", text)
    return re.sub(r"\([^()]*\)", lambda match: re.sub(r"(?<!\\)\*", r"\\*", match[0]), text)


def setup(app):
    app.connect("builder-inited", lambda _: reference.write())
    app.connect("autodoc-process-docstring", as_written, priority=400)  # before numpydoc
