"""The rooms of functrans: imports point downward, in no circle, and stand at the top of their files."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "functrans"
ROOMS = {
    0: ["core"],
    1: ["passes", "arrays"],
    2: ["primitives"],
    3: ["frontend"],
    4: ["transforms"],
    5: ["control"],
    6: ["custom", "lowering"],
    7: [
        "api",
        "numpy",
        "lax",
        "interop",
        "scipy",
        "random",
        "nn",
        "ops",
        "image",
        "dtypes",
        "sharding",
        "typing",
        "experimental",
        "example_libraries",
        "ad_checkpoint",
        "aot",
        "tree",
        "tree_util",
        "flatten_util",
        "ref",
        "cache",
        "export",
        "testing",
        "test_util",
        "debug",
        "checkpoint_policies",
        "custom_batching",
        "custom_derivatives",
    ],
    8: ["__init__"],
}
ROOMS[7] += ["viz", "distributed"]
LEVEL = {room: level for level, rooms in ROOMS.items() for room in rooms}
#: Inside of `lowering`, from the bottom to the top.
STAGES = [
    "__init__",
    "undisturbed",
    "processor",
    "disk",
    "blas",
    "host",
    "jaxpr",
    "loops",
    "backend",
    "llvm",
    "python",
    "lower",
    "run",
]
#: What a function may import: the optional extras. (Libraries that are slow to load: see `core.libraries`.)
LATE = {"matplotlib", "tqdm", "rocket_fft", "threadpoolctl", "mpi4py", "ml_dtypes"}
LATE |= {"hypothesis", "pytest", "jax", "autograd"}
FILES = {p.relative_to(PACKAGE).with_suffix("").parts: p for p in sorted(PACKAGE.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text()) for name, path in FILES.items()}


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


def imports(name):
    """Import statements that run, without those for the type checker."""
    typing = [
        n for n in ast.walk(TREES[name]) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test)
    ]
    skipped = {id(m) for n in typing for m in ast.walk(n)}
    nodes = [n for n in ast.walk(TREES[name]) if isinstance(n, (ast.Import, ast.ImportFrom))]
    return [n for n in nodes if id(n) not in skipped]


def lazy_imports(name):
    """The modules of functrans that a file passes to `lazy_import`."""
    calls = [n for n in ast.walk(TREES[name]) if isinstance(n, ast.Call)]
    lazy = [n.args[0] for n in calls if isinstance(n.func, ast.Name) and n.func.id == "lazy_import"]
    texts = [str(getattr(a, "value", "")) for a in lazy]
    return [tuple(text.split(".")[1:]) for text in texts if text.startswith("functrans.")]


EDGES = {
    name: {*(t for n in imports(name) for t in targets(name, n)), *lazy_imports(name)} - {name}
    for name in FILES
}


def test_every_file_has_a_room():
    assert {name[0] for name in FILES} <= set(LEVEL)
    assert sum(map(len, EDGES.values())) > 100
    assert ("core", "aval") in EDGES["transforms", "jvp"]
    assert ("lowering", "run", "executable") in EDGES["api", "jit"]


@pytest.mark.parametrize("name", FILES, ids="/".join)
def test_arrows_point_downward(name):
    for target in EDGES[name]:
        same_room = target[0] == name[0]
        both_public = LEVEL[name[0]] == LEVEL[target[0]] == 7
        assert same_room or both_public or LEVEL[target[0]] < LEVEL[name[0]], f"{name} imports {target}"


def test_arrows_inside_lowering_point_to_earlier_stages():
    """And the two backends do not know of each other."""
    for name in FILES:
        if name[0] == "lowering":
            for _, stage, *_ in [t for t in EDGES[name] if t[0] == "lowering"]:
                assert STAGES.index(stage) <= STAGES.index(name[1]), f"{name} imports {stage}"
                assert {stage, name[1]} != {"llvm", "python"}, name


def test_imports_form_no_circle():
    rooms = {}
    for name, actual in EDGES.items():
        rooms.setdefault(name[0], set()).update(t[0] for t in actual if t[0] != name[0])
    for graph in (EDGES, rooms):
        left = {a: set(b) for a, b in graph.items()}
        while free := [a for a, b in left.items() if not b & left.keys()]:
            for a in free:
                del left[a]
        assert not left, f"circle among {sorted(left)}"


@pytest.mark.parametrize("name", FILES, ids="/".join)
def test_no_import_hides_in_a_function(name):
    for function in ast.walk(TREES[name]):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            for node in ast.walk(function):
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    module = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
                    late = not getattr(node, "level", 0) and module.split(".")[0] in LATE
                    assert late, f"{'/'.join(name)}.py:{node.lineno}"


def test_no_class_name_twice():
    """A name that two files give to different classes has the reader guess which of them is meant."""
    files = {}
    for name, tree in TREES.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                files.setdefault(node.name, []).append("/".join(name))
    assert len(files) > 300
    assert not {name: where for name, where in files.items() if len(where) > 1}


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
assert rooms == {{"core", "passes", "arrays", "primitives", "transforms"}}, rooms
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
