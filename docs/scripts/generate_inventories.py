"""Write docs/inventories/: where NumPy's, SciPy's, JAX's and Python's manuals describe what our pages name.

    python docs/scripts/generate_inventories.py PYTHON_OBJECTS_INV PYTHON_WITH_JAX

Sphinx reads these files instead of asking the sites, so a build needs no network and always gives the same links. They
have only names that our pages mention, or that have a namesake here. Python's places are those of its own inventory
(in Debian's package python3.11-doc); those of the others follow from the names.
"""

import builtins
import re
import subprocess
import sys
from pathlib import Path

import reference_pages as reference
from sphinx.util.inventory import InventoryFile
from subjects import SUBJECTS

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parents[1] / "inventories"
CAPTURED = {"capture_output": True, "text": True, "check": True}
HEAD = "# Sphinx inventory version 1\n# Project: {project}\n# Version: stable\n"
PAGES = {
    "numpy": "reference/generated/{}.html",
    "scipy": "reference/generated/{}.html",
    "jax": "_autosummary/{}.html",
}
# Pages that describe several objects.
PLACES = {
    "numpy.random.Generator": "reference/random/generator.html",
    "numpy.random.default_rng": "reference/random/generator.html",
    "numpy.random.SeedSequence": "reference/random/bit_generators/generated/numpy.random.SeedSequence.html",
    **dict.fromkeys(
        ["numpy.pi", "numpy.e", "numpy.inf", "numpy.nan", "numpy.newaxis", "numpy.euler_gamma"],
        "reference/constants.html",
    ),
    **dict.fromkeys(
        [
            f"numpy.{name}"
            for name in SUBJECTS["functrans.numpy"]["Data types"].partition(" dtype")[0].split()
            if name != "ndarray"
        ],
        "reference/arrays.scalars.html",
    ),
}
# JAX's modules whose objects are on one page, and those that its manual leaves out.
MODULES = (
    "jax.tree_util",
    "jax.tree",
    "jax.errors",
    "jax.example_libraries.optimizers",
    "jax.example_libraries.stax",
)
UNDESCRIBED = ("jax.core.", "jax.interpreters.", "jax.testing.", "jax.test_util.")
NAME = re.compile(r"\b(numpy|np|scipy|jax|jnp)\.((?:\w+\.)*\w+)")


def mentioned():
    """Dotted names of other libraries in pages and docstrings."""
    texts = [
        p.read_text() for p in [*ROOT.glob("docs/*.md"), *ROOT.glob("functrans/**/*.py"), ROOT / "README.md"]
    ]
    full = {"np": "numpy", "jnp": "jax.numpy"}
    return {f"{full.get(m[1], m[1])}.{m[2]}" for text in texts for m in NAME.finditer(text)}


def namesakes():
    """Names that a library would give to the public names here."""
    for name in reference.entries():
        inner = name.removeprefix("functrans.")
        if inner.startswith("scipy.stats.") and inner.count(".") == 3:
            yield inner.rpartition(".")[0]  # SciPy has a page for a distribution, not for its methods
        elif inner.startswith(("numpy.", "scipy.")):
            yield inner
        yield f"jax.{inner}"


EXISTING = """
import importlib, inspect, sys
for name in sys.stdin.read().split():
    parts = name.split(".")
    for i in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:i]))
        except ImportError:
            continue
        for part in parts[i:]:
            found = getattr(found, part, None)
        if found is not None and not inspect.ismodule(found):
            print(name)
        break
"""


def existing(python, names):
    """Those of the dotted names that are objects of libraries which that Python has."""
    return subprocess.run([python, "-c", EXISTING], input=" ".join(names), **CAPTURED).stdout.split()


def rows(library, python):
    names = {n for n in {*mentioned(), *namesakes()} if n.startswith(f"{library}.") and "._" not in n}
    for name in existing(python, sorted(names)):
        if not name.startswith(UNDESCRIBED):
            module = next((m for m in MODULES if name.startswith(f"{m}.")), None)
            place = f"{module}.html" if module else PLACES.get(name, PAGES[library].format(name))
            # All are functions to Sphinx, whose role `obj` finds these; an inventory of objects finds none.
            yield f"{name} function {place}"


def rows_of_python(inventory):
    """Built-in names, and what is named with its module."""
    texts = [p.read_text() for p in [*ROOT.glob("docs/*.md"), *ROOT.glob("functrans/**/*.py")]]
    words = {word for text in texts for word in re.findall(r"\w+(?:\.\w+)+", text)}
    for kind, objects in sorted(inventory.items()):
        for name, item in sorted(objects.items()):
            named = hasattr(builtins, name) or name in words
            place, _, anchor = item.uri.partition("#")
            if kind.startswith("py:") and kind != "py:module" and named and anchor in (name, "$"):
                yield f"{name} function {place}"


def write(library, project, lines):
    (FOLDER / f"{library}.txt").write_text(HEAD.format(project=project) + "\n".join(lines) + "\n")


def main(inventory, jax_python):
    FOLDER.mkdir(exist_ok=True)
    write("numpy", "NumPy", rows("numpy", sys.executable))
    write("scipy", "SciPy", rows("scipy", sys.executable))
    write("jax", "JAX", rows("jax", jax_python))
    write("python", "Python", rows_of_python(InventoryFile.loads(Path(inventory).read_bytes(), uri="").data))


if __name__ == "__main__":
    main(*sys.argv[1:])
