"""What libraries do not promise is in one room and checked: a release that moves it gets a clear answer."""

import ast
import ctypes
import inspect
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from types import FunctionType, SimpleNamespace

import numba
import numpy as np
import pytest

import functrans as ft
from functrans.errors import UnsupportedLibraryError
from functrans.lowering.llvm import objects
from functrans.lowering.llvm.c import native_call
from functrans.lowering.processor import processor
from functrans.runtime import context
from functrans.runtime.private import checks, llvmlite_names, numba_names, numpy_names

PACKAGE = Path(inspect.getfile(ft)).parent
ROOM = PACKAGE / "runtime" / "private"
FILES = [p for p in sorted(PACKAGE.rglob("*.py")) if ROOM not in p.parents]
#: Names that Numba and llvmlite document for others, with all below.
PUBLIC = {
    "numba": {
        "cfunc", "config", "errors", "extending", "float64", "from_dtype", "int64", "njit", "prange", "types", "typeof",
        "__version__",
    },
    "llvmlite": {"binding", "ir", "__version__"},
}  # fmt: skip
#: A fork looks for locks among the modules that are loaded, since it must not import any.
EXCEPT = {
    "runtime/context.py": {"numba.core.compiler_lock", "llvmlite.binding.ffi"},
    "runtime/portable.py": {"numba."},  # how the names of its modules begin
}
UNDERSCORED = re.compile(r"_(?!_)\w+(?<!_)$")


def dotted(node):
    """``a.b.c`` of an expression of attributes; None of another one."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *names[::-1]]) if isinstance(node, ast.Name) else None


def mentioned(tree):
    """All that a file could mean of libraries: imports, chains of attributes, and strings that are names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from [f"{node.module}.{a.name}" for a in node.names]
        elif isinstance(node, ast.Attribute):
            yield dotted(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value if re.fullmatch(r"[\w.:]+", node.value) else None


def is_private(name):
    library, *path = re.split("[.:]", name)
    if library in PUBLIC:
        return bool(path) and (path[0] not in PUBLIC[library] or "ffi" in path)
    if library == "llvm":  # `llvmlite.binding`
        return path[:1] == ["ffi"]
    return library in ("np", "numpy") and any(UNDERSCORED.match(p) for p in path)


@pytest.fixture(scope="module")
def read():
    """Private names of libraries, by file; names with underscores that `interop` uses, and those that are ours."""
    found, used, ours = {}, set(), set()
    for path in FILES:
        tree, is_interop = ast.parse(path.read_text()), PACKAGE / "interop" in path.parents
        names = {n for n in mentioned(tree) if n and is_private(n)}
        if names:
            found[str(path.relative_to(PACKAGE))] = names
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                ours.add(node.name)
            elif isinstance(node, ast.Attribute) and UNDERSCORED.match(node.attr):
                (ours if isinstance(node.ctx, ast.Store) else used if is_interop else set()).add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                ours.add(node.id)
    return found, used, ours


def test_private_names_are_in_one_room(read):
    assert read[0] == EXCEPT


def test_the_test_would_see_them():
    text = "import numba.core.types\nfrom numba.np import x\nllvm.ffi.lib\nf('numpy._core:y')\nnumba.core.z\nnp.exp"
    names = {n for n in mentioned(ast.parse(text)) if n and is_private(n)}
    assert names == {
        "numba.core.types", "numba.np.x", "llvm.ffi.lib", "llvm.ffi", "numpy._core:y", "numba.core.z", "numba.core",
    }  # fmt: skip


def test_attributes_with_underscores_are_ours_or_checked(read):
    """In the files that deal with Numba's objects."""
    _, used, ours = read
    listed = {part for path in numba_names.NEEDED for part in re.split("[.:]", path)}
    listed |= {part for path in numba_names.ATTRIBUTES for part in path.split(".")}
    listed |= {"_fields", "_getvalue"}  # of named tuples; of the structures that `make_array` returns
    assert used - ours <= listed


def test_what_is_overridden_is_checked():
    """Methods of Numba's dispatchers that functrans replaces must be there to be replaced."""
    from functrans.interop.calls.njit_function import NumbaCall
    from functrans.interop.jitted.type import JittedType, _Dispatcher

    for ours in (NumbaCall, _Dispatcher, JittedType):
        base = ours.__mro__[1]
        replaced = {
            n
            for n, x in vars(ours).items()
            if hasattr(base, n)
            and not n.startswith("__")
            and isinstance(x, FunctionType | classmethod | property)
        }
        listed = {path.rpartition(".")[2] for path in numba_names.NEEDED} | set(numba_names.ATTRIBUTES)
        assert replaced <= listed


# --- Numba ----------------------------------------------------------------------------------------------------


def test_all_is_there():
    numba_names.check()
    assert numba_names.example() == 0


def without(path):
    """`pkgutil.resolve_name` of a release in which something is missing."""

    def resolve_name(name):
        if name == path:
            raise AttributeError(name)
        return original(name)

    original = checks.pkgutil.resolve_name
    return SimpleNamespace(resolve_name=resolve_name)


def instead(path, other):
    original = checks.pkgutil.resolve_name
    return SimpleNamespace(resolve_name=lambda name: other if name == path else original(name))


MOVED = [*numba_names.NEEDED, *[f"{numba_names.__name__}:example.{a}" for a in numba_names.ATTRIBUTES]]


@pytest.mark.parametrize("path", MOVED)
def test_what_a_release_has_moved_is_named(path, monkeypatch):
    monkeypatch.setattr(checks, "pkgutil", without(path))
    with pytest.raises(UnsupportedLibraryError) as error:
        numba_names.check()
    text = str(error.value)
    assert text.startswith(
        f"numba {version('numba')} does not have {path.replace(':', '.')}, which functrans uses."
    )
    assert f"numba {numba_names.NUMBA.works}" in text
    assert isinstance(error.value, ImportError)


CHANGED = [path for path, shape in numba_names.NEEDED.items() if shape is not None]


@pytest.mark.parametrize("path", CHANGED)
def test_what_takes_something_else_is_named(path, monkeypatch):
    for other in (lambda: None, lambda a, b, c, d, e, f, g, h, i: None, 3):
        if numba_names.NEEDED[path].accepts(other):
            continue  # it takes nothing
        monkeypatch.setattr(checks, "pkgutil", instead(path, other))
        with pytest.raises(
            UnsupportedLibraryError, match=re.escape(f"{path.replace(':', '.')} as a function of")
        ):
            numba_names.check()
        monkeypatch.undo()


@pytest.mark.slow
def test_the_doors_say_what_is_missing():
    """Of both directions, from the user's call."""
    program = """
import numba, numpy as np, functrans as ft
import numba.core.cgutils
del numba.core.cgutils.loop_nest
inner = numba.njit(lambda x: 2.0 * x)
g = ft.jit(lambda x: 2.0 * x)
print(g(np.ones(2)))  # needs none of it
for call in (lambda: ft.numba_call(inner), lambda: numba.njit(lambda x: g(x))(np.ones(2))):
    try:
        call()
    except Exception as error:
        print(type(error).__name__, str(error).splitlines())
    else:
        print("no error")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, *others = done.stdout.splitlines()
    assert first == "[2. 2.]"
    assert len(others) == 2
    for line in others:
        assert "does not have numba.core.cgutils.loop_nest" in line


def test_the_versions_are_those_of_the_package():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    stated = re.search(r"^dependencies = \[(.*?)\]", text, re.MULTILINE)[1]
    oldest = dict(re.findall(r'"(\w+)>=([\d.]+)"', stated))
    assert set(oldest) == {"numpy", "numba", "llvmlite", "scipy"}
    assert numba_names.NUMBA.works.startswith(f"{oldest['numba']} to ")


# --- callers that failed -----------------------------------------------------------------------------------------


RETRIES = """
import numba, numpy as np, functrans as ft

g = ft.jit(lambda x: 2.0 * x)
sibling = numba.njit(lambda x: x + 1.0)
inner = numba.njit(lambda x: g(x) + sibling(x))
middle = numba.njit(lambda x: inner(x))
outer = numba.njit(lambda x: sibling(middle(x)))
x = np.ones(3)
for _ in range(2):
    for f in (outer, middle, inner):
        try:
            f(x)
        except numba.TypingError as error:
            assert "it has not been traced for them" in str(error)
        else:
            raise AssertionError("it is known")
g(x)
print(outer(x), middle(x), inner(x))
"""


@pytest.mark.slow
def test_callers_of_callers_are_compiled_after_the_trace():
    """In a new process: functrans meets Numba for the first time while Numba compiles all three."""
    done = subprocess.run([sys.executable, "-c", RETRIES], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[5. 5. 5.] [4. 4. 4.] [4. 4. 4.]\n"


def test_other_failures_are_remembered():
    """Numba's own note of what has no types, which saves it from trying again, stays."""
    unknown = numba.njit(lambda x: x.no_such_attribute)
    for _ in range(2):
        with pytest.raises(numba.TypingError):
            unknown(1.0)
    assert len(unknown._compiler._failed_cache) == 1


# --- llvmlite, NumPy, locks ---------------------------------------------------------------------------------------


def test_pass_managers_are_freed():
    assert llvmlite_names._free_function() is not None


def test_without_the_function_that_frees_pass_managers_kernels_compile(monkeypatch):
    llvmlite_names._free_function.cache_clear()
    monkeypatch.setattr(llvmlite_names, "llvm", SimpleNamespace(ffi=SimpleNamespace(lib=SimpleNamespace())))
    try:
        assert llvmlite_names._free_function() is None
        text = "define i64 @f(i64 %x) {\n  %y = add i64 %x, 1\n  ret i64 %y\n}\n"
        loaded = objects.load_object(objects.compile_object(text, "f", processor()), {})
        assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(loaded.address)(41) == 42
    finally:
        llvmlite_names._free_function.cache_clear()


@pytest.fixture
def other_table(monkeypatch):
    def change(name, value):
        monkeypatch.setattr(numpy_names, name, value)
        numpy_names.c_functions.cache_clear()

    yield change
    monkeypatch.undo()
    numpy_names.c_functions.cache_clear()
    assert numpy_names.c_functions() is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_CAPSULE", "numpy._core.multiarray:_MOVED"),
        ("_CAPSULE", "numpy.no_such_module:_ARRAY_API"),
        ("_CAPSULE", "numpy:ndarray"),
        ("_TYPE", 3),
        ("_KNOWN_VERSION", 0x3000000),
    ],
    ids=["no capsule", "no module", "something else", "another order", "another ABI"],
)
def test_without_numpys_table_results_are_made_in_python(name, value, other_table):
    other_table(name, value)
    assert numpy_names.c_functions() is None
    assert native_call.result_maker([(np.ndarray, np.dtype(float), (3,))]) is None
    f = ft.jit(lambda x: (x * 2.0, x + 7.25))
    for x in (np.ones(3), np.ones((2, 2))):
        for _ in range(3):
            double, more = f(x)
            assert np.array_equal(double, 2 * x)
            assert np.array_equal(more, x + 7.25)


def test_the_locks_of_compilers_are_found():
    """A fork waits for both."""
    ft.jit(lambda x: x + 1.0)(np.ones(2))
    numba_lock, llvmlite_lock = context._native_locks()
    assert numba_lock is numba_names.global_compiler_lock
    assert hasattr(llvmlite_lock, "__enter__")
