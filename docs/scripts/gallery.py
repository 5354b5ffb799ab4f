"""The gallery: settings of Sphinx-Gallery, figures in both colour schemes, and cards that link to the programs."""

import builtins
import os
import re
from pathlib import Path

import numpy as np
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[2]
# Two programs run side by side, in processes of their own: threads of BLAS would wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
FOREGROUND = "#262626"
STYLE = {
    "figure.figsize": (7.6, 3.7),
    "figure.constrained_layout.use": True,
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": FOREGROUND,
    "axes.labelcolor": FOREGROUND,
    "axes.titlecolor": FOREGROUND,
    "text.color": FOREGROUND,
    "xtick.color": FOREGROUND,
    "ytick.color": FOREGROUND,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "image.cmap": "viridis",
}
# Each is at least three times as bright or as dark as the page, in either scheme.
COLORS = ["#3182ce", "#dd6b20", "#2f9e6e", "#d1477a", "#8b6fd6", "#808891"]
# A notebook has no file, and Jupyter's own arguments.
IN_A_NOTEBOOK = """\
# Run this notebook in the folder `examples` of a clone: the data are in its folder `data`.
import sys

__file__, sys.argv = "notebook.py", ["notebook.py"]"""
CONFIGURATION = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": "/",  # every program runs
    "ignore_pattern": r"__init__\.py|test_\w+\.py",  # for pytest
    "image_scrapers": ("gallery.both_schemes",),
    "reset_modules": ("matplotlib", "gallery.style"),
    "first_notebook_cell": IN_A_NOTEBOOK,
    "parallel": 2,
    "show_signature": False,
    "show_memory": False,
    "download_all_examples": False,
    "write_computation_times": False,
    "reference_url": {"functrans": None},
}


def style(configuration, name):
    """Set what all figures have in common, and the file that a program is in, before each program."""
    import matplotlib.pyplot as plt
    from cycler import cycler

    builtins.__file__ = str(name)  # Sphinx-Gallery runs programs in a module that has none
    plt.rcParams.update(STYLE, **{"axes.prop_cycle": cycler(color=COLORS)})


def both_schemes(block, variables, configuration):
    """Save the figures of a cell twice, with dark and with light text; return the lines that show them."""
    import matplotlib.pyplot as plt

    lines = []
    for number in plt.get_fignums():
        figure = plt.figure(number)
        path = Path(next(variables["image_path_iterator"]))
        save(figure, path)
        for artist in figure.findobj():
            turn(artist)
        save(figure, in_the_dark(path))
        for file, scheme in (path, "light"), (in_the_dark(path), "dark"):
            lines += [f".. image:: /gallery/images/{file.name}", f"   :class: only-{scheme}"]
            lines += [f"   :alt: {description(figure)}", ""]
    plt.close("all")
    return "\n".join(lines)


def save(figure, path):
    """The figure, and a small one for its card."""
    figure.savefig(path, dpi=150, transparent=True)
    card = path.with_name("card_" + path.name)
    figure.savefig(card, dpi=64, transparent=True)


def in_the_dark(path):
    return path.with_stem(path.stem + "_dark")


def description(figure):
    """What a figure says in words: the titles, or else the labels of its axes."""
    titles = [figure.get_suptitle(), *(axes.get_title() for axes in figure.axes)]
    labels = [f"{axes.get_ylabel()} against {axes.get_xlabel()}" for axes in figure.axes]
    return "; ".join(" ".join(text.split()) for text in [*filter(None, titles)] or labels) or "figure"


def turn(artist):
    """Exchange light and dark in the greys of an artist; colours stay, and what is white on a colour."""
    from matplotlib.colors import to_rgba_array

    if getattr(artist, "get_array", lambda: None)() is not None:
        return
    found = {}
    for name in ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor"):
        if hasattr(artist, f"set_{name}") and (read := getattr(artist, f"get_{name}", None)):
            found[name] = to_rgba_array(read())
    for name, colors in found.items():  # after all have been read: some follow others
        rgb = colors[:, :3]
        if len(rgb) and np.ptp(rgb, axis=1).max() < 0.05 and rgb.max() < 0.9:
            colors[:, :3] = 0.95 - 0.85 * rgb
            getattr(artist, f"set_{name}")(colors if len(colors) > 1 else colors[0])


class Cards(SphinxDirective):
    """Cards with the pictures of the programs whose names are its lines."""

    has_content = True

    def run(self):
        cards = "\n".join(map(card, self.content))
        text = f"::::{{grid}} 1 2 3 3\n:gutter: 3\n\n{cards}\n::::"
        return self.parse_text_to_nodes(text)


CARD = """\
:::{{grid-item-card}} {title}
:link: /gallery/{name}
:link-type: doc

```{{image}} /gallery/images/card_sphx_glr_{name}_001.png
:class: only-light
:alt: {title}
```
```{{image}} /gallery/images/card_sphx_glr_{name}_001_dark.png
:class: only-dark
:alt: {title}
```

{sentence}
:::"""


def card(name):
    """The card of a program: its title, its first figure and its first sentence."""
    source = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    heading, first = source.removeprefix('"""').split("\n\n")[:2]
    title = heading.partition("\n")[0]
    return CARD.format(name=name, title=title, sentence=" ".join(first.split()))


def commands(app, page, source):
    """Lines that start a program are indented in its docstring; on its page they are blocks of code."""
    if page.startswith("gallery/"):
        source[0] = re.sub(r"\n\n((?:    python .*\n)+)", r"\n\n.. code-block:: sh\n\n\1", source[0])


def setup(app):
    app.add_directive("gallery", Cards)
    app.connect("source-read", commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
