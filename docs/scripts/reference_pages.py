"""Write docs/api/*.rst: a page for each public object and each namespace, that Sphinx fills in.

`conf.py` calls `write` before each build. Nothing is listed by hand but the subjects of large namespaces
(`subjects.py`): the names in `__all__` are public. An object that several namespaces export has one page, under the
first of them; the other names lead there.
"""

import functools
import importlib
import inspect
import re
from dataclasses import dataclass, field
from pathlib import Path

from subjects import SUBJECTS

import functrans
from functrans.scipy import stats

FOLDER = Path(__file__).parents[1] / "api"
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
    "functrans.extend",
    "functrans.extend.core",
    "functrans.extend.ad",
    "functrans.extend.batching",
    "functrans.extend.mlir",
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
    "functrans.testing.domains",
    "functrans.errors",
)
DISTRIBUTIONS = "functrans.scipy.stats."  # those have few short functions each, on one page
DATA = re.compile(r"^\| `(\w+)` \| (.*) \| (.*) \|$")


@dataclass
class Entry:
    """An object of the reference: its first public name, where it is described, its other names."""

    name: str
    page: str
    value: object
    also: list = field(default_factory=list)

    @property
    def kind(self):
        if is_error(self.value):
            return "exception"
        return "class" if inspect.isclass(self.value) else "function"


def is_error(value):
    return inspect.isclass(value) and issubclass(value, Exception)


def is_ours(value):
    """Whether an object has a docstring of functrans; other exports are NumPy's classes, constants and types."""
    return callable(value) and (getattr(value, "__module__", "") or "").startswith("functrans")


def module_of(namespace):
    """The namespace itself: a module, or a distribution."""
    return functools.reduce(getattr, namespace.split(".")[1:], functrans)


def exported(module):
    """Public names and objects of a namespace, other namespaces left out."""
    if module is functrans.errors:
        return [(name, value) for name, value in vars(module).items() if is_error(value)]
    pairs = [(name, getattr(module, name)) for name in module.__all__]
    return [(name, value) for name, value in pairs if not inspect.ismodule(value)]


@functools.cache
def entries():
    """{public name: its entry}; the names of one object share an entry. Foreign objects and constants have none."""
    found, by_object = {}, {}
    for namespace in NAMESPACES:
        groups = {}
        for name, value in exported(module_of(namespace)):
            if is_ours(value):
                groups.setdefault(id(value), []).append((name, value))
        for group in groups.values():
            names, value = [name for name, _ in group], group[0][1]
            own = getattr(value, "__name__", "").rpartition(".")[2]
            names.sort(key=lambda name: (name not in listed(namespace), name != own))
            entry = by_object.get(id(value))
            if entry is None:
                full = f"{namespace}.{names.pop(0)}"
                entry = by_object[id(value)] = Entry(full, namespace if is_short(namespace) else full, value)
                found[full] = entry
            for name in names:
                entry.also.append(f"{namespace}.{name}")
                found[f"{namespace}.{name}"] = entry
    return found


def listed(namespace):
    """The names that `subjects.py` has for a namespace."""
    return " ".join(SUBJECTS.get(namespace, {}).values()).split()


def is_short(namespace):
    """Whether the objects of a namespace are described on its own page."""
    return namespace.startswith(DISTRIBUTIONS)


def foreign(namespace):
    """{name: object} of what a namespace exports without a page: constants, types, objects of other libraries."""
    return {
        name: value
        for name, value in exported(module_of(namespace))
        if f"{namespace}.{name}" not in entries()
    }


def tables(namespace):
    """{subject: names}, each object once and under its first name in this namespace; one table has no subject."""
    names, seen = [], set()
    for name, value in exported(module_of(namespace)):
        entry = entries().get(f"{namespace}.{name}")
        if entry is None:
            names.append(name)
        elif id(value) not in seen:
            seen.add(id(value))
            names.append(first_name(entry, namespace))
    if namespace not in SUBJECTS:
        if namespace == functrans.errors.__name__:
            return by_file(names)
        return {"": sorted(names, key=str.lower)}
    subjects = {subject: text.split() for subject, text in SUBJECTS[namespace].items()}
    # An alias may be listed beside its object, where readers look for both.
    have = listed(namespace)
    wrong = sorted((set(names) - set(have)) | {name for name in have if have.count(name) > 1})
    wrong += [name for name in have if not hasattr(module_of(namespace), name)]
    if wrong:
        raise ValueError(
            f"docs/scripts/subjects.py: {namespace}: not there, or not under one subject: {wrong}"
        )
    return subjects


def by_file(names):
    """Error classes by the file that defines them."""
    subjects = {}
    for subject in ("base", "arrays", "tracing", "running", "custom", "distributed"):
        file = importlib.import_module(f"functrans.errors.{subject}")
        title = inspect.getdoc(file).splitlines()[0].rstrip(".")
        classes = re.findall(r"^class (\w+)", inspect.getsource(file), re.MULTILINE)
        subjects[title] = [name for name in classes if name in names]
    return subjects


def first_name(entry, namespace):
    """The name under which a namespace lists an object."""
    names = [n.rpartition(".")[2] for n in (entry.name, *entry.also) if n.rpartition(".")[0] == namespace]
    return names[0]


@functools.cache
def siblings():
    """{full name: (namespace, subject, full names under it)} of objects that have a page."""
    found = {}
    for namespace in NAMESPACES:
        for subject, names in tables(namespace).items():
            full = [f"{namespace}.{name}" for name in names if f"{namespace}.{name}" in entries()]
            for name in full:
                if entries()[name].name == name:
                    found[name] = (namespace, subject, full)
    return found


def summary(value):
    """The first sentence of a docstring, in one line."""
    text = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
    return re.split(r"(?<=\.)\s+(?=[A-Z`*])", text)[0]


@functools.cache
def coverage():
    """{full name: (derivative, compiled to)}, as the page of functions says."""
    found, namespace = {}, ""
    for line in FOLDER.with_name("coverage.md").read_text().splitlines():
        if line.startswith("## "):
            namespace = line[3:]
        elif row := DATA.match(line):
            found[f"{namespace}.{row[1]}"] = row[2], row[3]
    return found


def heading(text, underline):
    return f"{text}\n{underline * len(text)}\n"


def link(full):
    return f":py:obj:`{full.rpartition('.')[2]} <{full}>`"


def table(namespace, names):
    """Names and their first sentences."""
    rows = []
    for name in names:
        full = f"{namespace}.{name}"
        entry = entries().get(full)
        if entry is None:
            rows.append((link(full), about_foreign(full, getattr(module_of(namespace), name))))
            continue
        also = [n for n in (entry.name, *entry.also) if n != full and n.rpartition(".")[0] == namespace]
        also = [n for n in also if n.rpartition(".")[2] not in names]
        rows.append((", ".join(map(link, [full, *also])), summary(entry.value)))
    lines = [".. list-table::", "   :class: longtable names", "   :widths: 1 3", ""]
    for left, right in rows:
        lines += [f"   * - {left}", f"     - {tolerable(right)}"]
    return "\n".join([*lines, ""])


def tolerable(text):
    """Escape two things that reStructuredText misreads: `Array`s, and shapes (*batch, n)."""
    parts = re.split(r"(``.*?``)", text)  # every second part is code, and stays as it is
    for i in range(0, len(parts), 2):
        part = re.sub(r"(`[\w.]+`)(?=\w)", r"\1\\ ", parts[i])
        parts[i] = re.sub(r"\([^()]*\)", lambda m: re.sub(r"(?<!\\)\*", r"\\*", m[0]), part)
    return "".join(parts)


def about_foreign(full, value):
    """One line on an object that functrans exports and does not define."""
    name = full.rpartition(".")[2]
    if full == "functrans.config":
        return "The options, and `patch` to set them for a block."
    if full.startswith("functrans.numpy.") or (getattr(value, "__module__", "") or "") == "numpy":
        return f"NumPy's :py:obj:`numpy.{getattr(value, '__name__', name)}`."
    if inspect.isclass(value) or callable(value):
        return f"``{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', name)}``."
    return f"A constant of type ``{type(value).__name__}``."


def page_of(entry):
    """The page of one object."""
    return "\n".join([heading(entry.name, "="), described(entry)])


def described(entry):
    """The directive for one object, its other names and what the page of functions says of it."""
    lines = [f".. auto{entry.kind}:: {entry.name}"]
    if entry.kind == "class":
        lines.append("   :members:")
    lines.append("")
    if entry.also:
        lines += [
            f".. also:: {entry.name}",
            f"   :names: {' '.join(entry.also)}",
            "   :kind: " + entry.kind,
            "",
        ]
        lines += [f"Also known as {', '.join(f'``{n}``' for n in entry.also)}.", ""]
    if entry.name in coverage():
        derivative, target = coverage()[entry.name]
        lines += [
            ".. rst-class:: facts",
            "",
            f"Derivative: {derivative}. Compiled to: {rest_of(target)}.",
            "",
        ]
    return "\n".join(lines)


def rest_of(markdown):
    """A cell of a Markdown table as reStructuredText."""
    return re.sub(r"`([^`]+)`", r"``\1``", markdown)


def page_of_namespace(namespace):
    """A namespace: what it is for, a table by subject, and the objects that have no page of their own."""
    parts = [heading(namespace, "="), f".. automodule:: {namespace}\n   :no-members:\n"]
    if not inspect.ismodule(module_of(namespace)):
        parts = [heading(namespace, "="), f"{tolerable(summary(module_of(namespace)))}\n"]
    pages = []
    for subject, names in tables(namespace).items():
        if subject:
            parts.append(heading(subject, "-"))
        if names:
            parts.append(table(namespace, names))
        pages += [
            n for n in (f"{namespace}.{name}" for name in names) if siblings().get(n, ("",))[0] == namespace
        ]
    if is_short(namespace):
        parts.append(heading("Functions", "-"))
        parts += [described(entries()[name]) for name in pages]
    else:
        parts += [".. toctree::", "   :hidden:", "", *(f"   {name}" for name in pages), ""]
    parts += [data(f"{namespace}.{name}", value) for name, value in foreign(namespace).items()]
    return "\n".join(parts)


def data(full, value):
    """The entry of a constant, a type, or an object of another library."""
    if full == "functrans.config":
        return (
            heading("config", "-")
            + "\n.. py:data:: functrans.config\n\n.. autoclass:: functrans.runtime.config.Config\n   :members: patch\n"
        )
    return f".. py:data:: {full}\n\n   {about_foreign(full, value)}\n"


def alphabetical():
    """All public names, each a link."""
    rows = {}
    for full in [*entries(), *(f"{n}.{name}" for n in NAMESPACES for name in foreign(n))]:
        namespace, _, name = full.rpartition(".")
        rows.setdefault(name.lower()[0], []).append((name.lower(), name, namespace, full))
    parts = [heading("All names", "="), "Every public name, and the namespaces that have it.\n"]
    for letter in sorted(rows):
        parts.append(heading(letter.upper(), "-"))
        by_name = {}
        for _, name, namespace, full in sorted(rows[letter]):
            by_name.setdefault(name, []).append(f":py:obj:`{namespace} <{full}>`")
        parts += [f"| ``{name}``: {', '.join(links)}" for name, links in by_name.items()] + [""]
    return "\n".join(parts)


def index():
    """The first page of the reference."""
    lines = [
        heading("API reference", "="),
        "Every public object by its public name. :doc:`names` lists all of them.\n",
    ]
    lines += [".. list-table::", "   :class: longtable names", "   :widths: 1 2", ""]
    for namespace in NAMESPACES:
        lines += [f"   * - :doc:`{namespace}`", f"     - {tolerable(about(namespace))}"]
    lines += ["", ".. toctree::", "   :hidden:", "", "   names", *(f"   {name}" for name in NAMESPACES), ""]
    return "\n".join(lines)


def about(namespace):
    """The summary of a namespace, without its name in front."""
    text = re.sub(r"^`*functrans[\w.]*`*: ", "", summary(module_of(namespace)))
    return text[:1].upper() + text[1:]


def write():
    """Write the pages that have changed, and remove those that no longer exist."""
    FOLDER.mkdir(exist_ok=True)
    texts = {"index": index(), "names": alphabetical()}
    texts |= {namespace: page_of_namespace(namespace) for namespace in NAMESPACES}
    texts |= {entry.page: page_of(entry) for entry in entries().values() if entry.page not in texts}
    for path in FOLDER.glob("*.rst"):
        if path.stem not in texts:
            path.unlink()
    for name, text in texts.items():
        path = FOLDER / f"{name}.rst"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    write()
