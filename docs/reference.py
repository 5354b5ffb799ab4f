"""Write docs/api/*.rst, a page for each public namespace (a large one in several), that Sphinx fills in.

`conf.py` calls `write` before each build. Nothing is listed by hand: the names in `__all__` are public.
"""

import functools
import importlib
import inspect
from pathlib import Path

import functrans
from functrans.scipy import stats

FOLDER = Path(__file__).with_name("api")
NAMESPACES = (
    "functrans",
    "functrans.ad_checkpoint",
    "functrans.checkpoint_policies",
    "functrans.custom_derivatives",
    "functrans.custom_batching",
    "functrans.numpy",
    "functrans.numpy.linalg",
    "functrans.numpy.fft",
    "functrans.lax",
    "functrans.lax.linalg",
    "functrans.nn",
    "functrans.nn.initializers",
    "functrans.ops",
    "functrans.scipy",
    "functrans.scipy.special",
    "functrans.scipy.linalg",
    "functrans.scipy.fft",
    "functrans.scipy.signal",
    "functrans.scipy.sparse",
    "functrans.scipy.sparse.linalg",
    "functrans.scipy.integrate",
    "functrans.scipy.interpolate",
    "functrans.scipy.ndimage",
    "functrans.scipy.spatial",
    "functrans.scipy.spatial.transform",
    "functrans.scipy.cluster",
    "functrans.scipy.cluster.vq",
    "functrans.scipy.optimize",
    "functrans.scipy.stats",
    *[f"functrans.scipy.stats.{name}" for name in stats.__all__ if inspect.ismodule(getattr(stats, name))],
    "functrans.ir",
    "functrans.experimental",
    "functrans.experimental.multihost_utils",
    "functrans.experimental.ode",
    "functrans.example_libraries.optimizers",
    "functrans.example_libraries.stax",
    "functrans.dtypes",
    "functrans.random",
    "functrans.debug",
    "functrans.profiler",
    "functrans.distributed",
    "functrans.distributed.shards",
    "functrans.sharding",
    "functrans.tree",
    "functrans.tree_util",
    "functrans.typing",
    "functrans.flatten_util",
    "functrans.image",
    "functrans.test_util",
    "functrans.ref",
    "functrans.export",
    "functrans.testing",
    "functrans.errors",
)
ONE_PAGE = 60  # namespaces with more names than this have a page for each family
ELEMENTWISE = "functrans.lax.elementwise"  # also serves as the page of this name in other namespaces
FAMILIES = {
    "functrans.primitives.products.matmul": "functrans.numpy.products"
}  # functions listed under another family


def exported(module):
    """Public names and objects of a namespace, other namespaces left out."""
    if module is functrans.errors:
        return [(name, value) for name, value in vars(module).items() if is_error(value)]
    pairs = [(name, getattr(module, name)) for name in module.__all__]
    return [(name, value) for name, value in pairs if not inspect.ismodule(value)]


def gather(module):
    """What a namespace defines: {family: {name: other names}}, constants, and names of NumPy's own objects."""
    families, constants, foreign, names = {}, [], [], {}
    for name, value in exported(module):
        if not callable(value):
            constants.append(name)
        elif not (value.__module__ or "").startswith("functrans"):
            foreign.append(name)
        elif inspect.isclass(value) and is_listed_before(module, name, value):
            constants.append(name)  # a class has one place in the reference
        else:
            names.setdefault(id(value), []).append((name, value))
    for group in names.values():
        value = group[0][1]
        others = [name for name, _ in group]
        name = value.__name__ if value.__name__ in others else others[0]
        others.remove(name)
        families.setdefault(family(value), {})[name] = others
    return families, constants, foreign


def is_listed_before(module, name, value):
    """Whether a namespace further up exports the same object."""
    before = NAMESPACES[: NAMESPACES.index(module.__name__)]
    return any(vars(importlib.import_module(n)).get(name) is value for n in before)


def family(value):
    """The name of an object's home module; `elementwise` for functions made directly from primitives."""
    home = value.__module__
    if home in NAMESPACES:  # functions made by a factory are named after their namespace, for pickle
        made = getattr(value, "__globals__", {}).get("__name__", "")
        home = made if made.startswith(("functrans.primitives.", ELEMENTWISE)) else home
    home = FAMILIES.get(home, home)
    return ELEMENTWISE if home.startswith("functrans.primitives.") else home


def title(home):
    """The subject of a module: its docstring up to the first colon or full stop."""
    if home.endswith(".elementwise"):
        return "Elementwise functions"
    line = inspect.getdoc(importlib.import_module(home)).splitlines()[0]
    return line.split(":")[0].split(". ")[0].rstrip(".").replace("``", "")


def heading(text, underline):
    return f"{text}\n{underline * len(text)}\n"


def entries(module, names):
    """A table of names with their first lines, then each with its docstring."""
    lines = [".. autosummary::", "   :nosignatures:", "", *(f"   {name}" for name in sorted(names)), ""]
    for name, others in sorted(names.items()):
        value = getattr(module, name)
        kind = "function" if not inspect.isclass(value) else "class"
        lines.append(f".. auto{'exception' if is_error(value) else kind}:: {name}")
        if kind == "class" and not is_error(value):
            lines.append("   :members:")
        lines.append("")
        if others:
            lines += [f"   Also known as {', '.join(f'``{other}``' for other in others)}.", ""]
    return "\n".join(lines)


def is_error(value):
    return inspect.isclass(value) and issubclass(value, Exception)


def rest(module, constants, foreign):
    """The paragraphs on objects without a docstring."""
    parts = []
    if module.__name__ == "functrans":
        constants.remove("config")
        parts.append(
            heading("config", "-") + "\n.. autoclass:: functrans.runtime.config.Config\n   :members: patch\n"
        )
    if constants:
        parts.append(f"Constants and types: {', '.join(f'``{name}``' for name in constants)}.\n")
    if foreign:
        parts.append(f"NumPy's own, under NumPy's names: {', '.join(f'``{name}``' for name in foreign)}.\n")
    return parts


def pages(namespace):
    """{file name: text} for a namespace."""
    module = functools.reduce(getattr, namespace.split(".")[1:], functrans)
    families, constants, foreign = gather(module)
    here = f".. currentmodule:: {module.__name__}\n"
    head = [heading(namespace, "="), f".. automodule:: {module.__name__}\n   :no-members:\n"]
    if sum(map(len, families.values())) <= ONE_PAGE:
        names = {name: others for group in families.values() for name, others in group.items()}
        return {
            namespace: "\n".join([*head, here, entries(module, names), *rest(module, constants, foreign)])
        }
    files, toctree = {}, [".. toctree::", "   :maxdepth: 1", ""]
    for home, names in sorted(families.items(), key=lambda pair: title(pair[0]).lower()):
        name = f"{namespace}.{home.rpartition('.')[2]}"
        about = heading(title(home), "=")
        files[name] = "\n".join([about, f"{here}\nOf ``{namespace}``.\n", entries(module, names)])
        toctree.append(f"   {name}")
    text = "\n".join([*head, here, *toctree, "", *rest(module, constants, foreign)])
    return {namespace: text, **files}


def write():
    """Write the pages that have changed, and remove those that no longer exist."""
    FOLDER.mkdir(exist_ok=True)
    texts = {}
    for namespace in NAMESPACES:
        texts |= pages(namespace)
    texts["index"] = "\n".join(
        [heading("API reference", "="), ".. toctree::", "   :maxdepth: 1", ""]
        + [f"   {name}" for name in NAMESPACES if name in texts]
    )
    for path in FOLDER.glob("*.rst"):
        if path.stem not in texts:
            path.unlink()
    for name, text in texts.items():
        path = FOLDER / f"{name}.rst"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    write()
