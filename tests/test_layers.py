"""The rooms of functrans: imports point downward, in no circle, and stand at the top of their files."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parents[1] / "functrans"
ROOMS = {
    0: ["errors"],
    1: ["runtime"],
    2: ["core"],
    3: ["passes", "arrays"],
    4: ["primitives"],
    5: ["frontend"],
    6: ["transforms"],
    7: ["control"],
    8: ["custom", "lowering"],
    9: [
        "api",
        "numpy",
        "lax",
        "interop",
        "scipy",
        "random",
        "nn",
        "ops",
        "image",
        "distributed",
        "dtypes",
        "sharding",
        "typing",
        "experimental",
        "example_libraries",
        "ad_checkpoint",
        "aot",
        "ir",
        "tree",
        "tree_util",
        "flatten_util",
        "ref",
        "bisect",
        "cache",
        "export",
        "testing",
        "test_util",
        "debug",
        "profiler",
        "checkpoint_policies",
        "custom_batching",
        "custom_derivatives",
        "extend",
        "jax_modules",
        "as_jax",
    ],
    10: ["__init__", "__main__"],
}
LEVEL = {room: level for level, rooms in ROOMS.items() for room in rooms}
#: Inside of `lowering`, from the bottom to the top.
STAGES = [
    "__init__",
    "undisturbed",
    "processor",
    "disk",
    "blas",
    "host",
    "steps",
    "jaxpr",
    "loops",
    "backend",
    "llvm",
    "python",
    "lower",
    "run",
]
#: What a function may import: the optional extras. (Libraries that are slow to load: see `runtime.libraries`.)
LATE = {"matplotlib", "tqdm", "rocket_fft", "threadpoolctl", "mpi4py", "ml_dtypes"}
LATE |= {"hypothesis", "pytest", "jax", "autograd"}
FILES = {p.relative_to(PACKAGE).with_suffix("").parts: p for p in sorted(PACKAGE.rglob("*.py"))}


def targets(name, node):
    """The modules of functrans that an import statement names, as tuples of names below the package."""
    if isinstance(node, ast.Import):
        dotted = [a.name.split(".") for a in node.names]
        bases = [tuple(d[1:]) for d in dotted if d[0] == "functrans"]
        return [b if b in FILES else (*b, "__init__") for b in bases]
    if node.level:
        base = name[: len(name) - node.level]
    elif node.module.split(".")[0] == "functrans":
        base = ()
    else:
        return []
    base += tuple((node.module or "").split(".")[0 if node.level else 1 :]) if node.module else ()
    inner = [(*base, a.name) for a in node.names]
    actual = [m if m in FILES else (*m, "__init__") for m in inner if m in FILES or (*m, "__init__") in FILES]
    return actual if len(actual) == len(inner) else [*actual, base if base in FILES else (*base, "__init__")]


class File(NamedTuple):
    """What the tests look at. The syntax trees are dropped: two million objects, which each garbage collection visits.

    Attributes
    ----------
    edges : set of tuple
        The modules of functrans that it imports, also those that it passes to `lazy_import`.
    typed : set of tuple
        Those that it imports for the type checker only.
    hidden : list of (int, str)
        The lines of imports in functions, and what they import; the optional extras left out.
    classes : list of str
        Its classes.
    by_name : list of int
        The lines that ask for the name of a primitive to decide something.
    """

    edges: set[tuple[str, ...]]
    typed: set[tuple[str, ...]]
    hidden: list[tuple[int, str]]
    classes: list[str]
    by_name: list[int]


@pytest.fixture(scope="module")
def files():
    """Every file of the package."""
    return {name: read(name) for name in FILES}


def read(name):
    tree = ast.parse(FILES[name].read_text())
    nodes = list(ast.walk(tree))
    edges = {*(t for n in imports(nodes) for t in targets(name, n)), *lazy_imports(nodes)} - {name}
    typed = {t for n in imports(nodes, typing=True) for t in targets(name, n)} - {name}
    classes = [n.name for n in tree.body if isinstance(n, ast.ClassDef)]
    return File(edges, typed, hidden_imports(nodes), classes, decided_by_name(nodes))


def imports(nodes, typing=False):
    """Import statements that run; with `typing`, those for the type checker."""
    blocks = [n for n in nodes if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test)]
    inside = {id(m) for n in blocks for m in ast.walk(n)}
    return [n for n in nodes if isinstance(n, (ast.Import, ast.ImportFrom)) and (id(n) in inside) == typing]


def lazy_imports(nodes):
    """The modules of functrans that a file passes to `lazy_import`."""
    calls = [n for n in nodes if isinstance(n, ast.Call)]
    lazy = [n.args[0] for n in calls if isinstance(n.func, ast.Name) and n.func.id == "lazy_import"]
    texts = [str(getattr(a, "value", "")) for a in lazy]
    return [tuple(text.split(".")[1:]) for text in texts if text.startswith("functrans.")]


def hidden_imports(nodes):
    hidden = []
    for function in nodes:
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            for node in ast.walk(function):
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    module = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
                    if getattr(node, "level", 0) or module.split(".")[0] not in LATE:
                        hidden.append((node.lineno, module))
    return hidden


def decided_by_name(nodes):
    """The lines where the name of a primitive is compared or looked up."""

    def is_name(node):
        """Whether it is ``eqn.primitive.name``, or a variable to which that was assigned."""
        if isinstance(node, ast.Name):
            return node.id in variables
        if not (isinstance(node, ast.Attribute) and node.attr == "name"):
            return False
        owner = node.value
        return getattr(owner, "attr", getattr(owner, "id", "")) in {"primitive", "prim"}

    lines = []
    for function in [n for n in nodes if isinstance(n, (ast.FunctionDef, ast.Lambda))]:
        variables = set()
        inside = list(ast.walk(function))
        variables |= {t.id for n in inside if isinstance(n, ast.Assign) and is_name(n.value)
                      for t in n.targets if isinstance(t, ast.Name)}  # fmt: skip
        for n in inside:
            asked = []
            if isinstance(n, ast.Compare):
                asked = [n.left, *n.comparators]
            elif isinstance(n, ast.Subscript):
                asked = [n.slice]
            elif isinstance(n, ast.Match):
                asked = [n.subject]
            elif isinstance(n, ast.Call) and getattr(n.func, "attr", "") in {"get", "startswith", "made_by"}:
                asked = n.args
            lines += [n.lineno for a in asked if is_name(a)]
    return sorted({*lines})


def test_no_file_decides_by_the_name_of_a_primitive(files):
    """Who asks what an operation is compares the records, or asks the record."""
    assert {f"{'/'.join(name)}.py": file.by_name for name, file in files.items() if file.by_name} == {}


def test_decisions_by_name_are_found():
    text = """
def f(e):
    name = e.primitive.name
    if name in TABLE or e.primitive.name == "add":
        return TABLE[name]
    return f"{e.primitive.name} of {name}"
"""
    assert decided_by_name(list(ast.walk(ast.parse(text)))) == [4, 5]


def test_every_file_has_a_room(files):
    assert {name[0] for name in FILES} <= set(LEVEL)
    assert sum(len(f.edges) for f in files.values()) > 100
    assert ("core", "aval") in files["transforms", "jvp"].edges
    assert ("lowering", "run", "texts") in files["api", "compiled", "lowered"].edges
    assert ("api", "grad") in files["__init__",].edges


def test_arrows_point_downward(files):
    for name, file in files.items():
        for target in file.edges:
            same_room = target[0] == name[0]
            both_public = LEVEL[name[0]] == LEVEL[target[0]] == 9
            assert same_room or both_public or LEVEL[target[0]] < LEVEL[name[0]], f"{name} imports {target}"


def test_arrows_inside_lowering_point_to_earlier_stages(files):
    """And the two backends do not know of each other."""
    for name, file in files.items():
        if name[0] == "lowering":
            for _, stage, *_ in [t for t in file.edges if t[0] == "lowering"]:
                assert STAGES.index(stage) <= STAGES.index(name[1]), f"{name} imports {stage}"
                assert {stage, name[1]} != {"llvm", "python"}, name


def test_imports_form_no_circle(files):
    """Also none through an import for the type checker."""
    edges = {name: file.edges for name, file in files.items()}
    typed = {name: file.edges | file.typed for name, file in files.items()}
    rooms = {}
    for name, actual in edges.items():
        rooms.setdefault(name[0], set()).update(t[0] for t in actual if t[0] != name[0])
    for graph in (edges, rooms, typed):
        left = {a: set(b) for a, b in graph.items()}
        while free := [a for a, b in left.items() if not b & left.keys()]:
            for a in free:
                del left[a]
        assert not left, f"circle among {sorted(left)}"


def test_no_import_hides_in_a_function(files):
    hidden = {f"{'/'.join(name)}.py": file.hidden for name, file in files.items() if file.hidden}
    assert hidden == {}


def test_no_class_name_twice(files):
    """A name that two files give to different classes has the reader guess which of them is meant."""
    owners = {}
    for name, file in files.items():
        for own in file.classes:
            owners.setdefault(own, []).append("/".join(name))
    assert len(owners) > 300
    assert not {name: where for name, where in owners.items() if len(where) > 1}


ALONE = """
import sys, types
package = types.ModuleType("functrans")
package.__path__ = [{path!r}]
sys.modules["functrans"] = package

import numpy as np
import functrans.primitives
from functrans.transforms.linearize import linearize
from functrans.transforms.transpose import backward

x = np.array([1.0, 2.0, -3.0])
found = linearize(lambda x: [x * x], [x], [True])
(ct,) = backward(found.tape, found.tangents, [np.ones(3)], found.inputs)
assert np.array_equal(found.outs[0], x**2) and np.array_equal(ct, 2 * x)
rooms = {{name.split(".")[1] for name in sys.modules if name.startswith("functrans.")}}
assert rooms == {{"errors", "runtime", "core", "passes", "arrays", "primitives", "transforms"}}, rooms
assert "numba" not in sys.modules
"""


def test_the_lower_rooms_differentiate_alone():
    """``x * x``, in a process in which nothing above the transforms was imported."""
    code = ALONE.format(path=str(PACKAGE))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_suite_needs_no_library_that_it_does_not_install():
    """JAX and autograd record the expected numbers in programs of their own; the tests read what these wrote."""
    tests = [p for p in Path(__file__).parent.rglob("test_*.py") if p != Path(__file__)]
    named = re.compile(
        r"""^\s*(import|from) (jax|autograd|torch)\b|import_module\(["'](jax|autograd|torch)\b""", re.M
    )
    assert [str(p) for p in tests if named.search(p.read_text())] == []
