"""Kernels from the cache on disk: the same results, no compilation, and at worst a compilation."""

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import config, lax
from functrans.lowering.disk import Disk
from functrans.lowering.llvm import store
from functrans.lowering.run.cache import kernels
from functrans.lowering.run.executable import compile_jaxpr

X = np.linspace(0.1, 2.0, 12).reshape(3, 4)


@pytest.fixture
def cached(tmp_path):
    """A directory, and a function that runs another one as a new process would, with kernels from the directory."""
    path = tmp_path / "cache"

    def run(f, *args):
        kernels.clear()
        store._opened.cache_clear()
        jitted = ft.jit(lambda *args: f(*args))
        with config.patch(cache=True, cache_dir=str(path)):
            result = jitted(*args)
        return result, jitted.cache_info()

    run.path = path
    yield run
    store._opened.cache_clear()


def files(run):
    return sorted(run.path.glob("*.entry"))


def elementwise(x):
    return fnp.exp(-x) * fnp.sin(x) + 1.25


def products(x):
    return fnp.linalg.cholesky(x @ x.T + 3.0 * fnp.eye(3)), fnp.tanh(x @ x.T)


def loop(x):
    return lax.while_loop(lambda c: fnp.sum(c) < 1e3, lambda c: c * 1.5 + 1.0, x)


def gradient_of_loop(x):
    return ft.grad(lambda x: fnp.sum(loop(fnp.sin(x))))(x)


def calls_python(x):
    def step(c, row):
        return c + ft.pure_callback(np.cumsum, ft.ShapeDtypeStruct((4,), "float64"), row), row[::-1]

    return lax.scan(step, fnp.zeros(4), x)


def complex_numbers(x):
    return fnp.exp(1j * x) @ fnp.sqrt(x.T + 2j)


def special(x):
    return fnp.sum(ft.scipy.special.digamma(x)) + ft.scipy.special.i0(x)


@pytest.mark.parametrize(
    "f", [elementwise, products, loop, gradient_of_loop, calls_python, complex_numbers, special]
)
def test_kernels_from_disk_compute_the_same(cached, f):
    first, cold = cached(f, X)
    again, warm = cached(f, X)
    assert (cold.disk_hits, warm.compiles) == (0, 0)
    assert cold.compiles == warm.disk_hits > 0
    for a, b in zip(ft.tree_util.tree_leaves(first), ft.tree_util.tree_leaves(again), strict=True):
        np.testing.assert_array_equal(a, b)
    with config.patch(backend="python"):
        plain = f(X)
    for a, b in zip(ft.tree_util.tree_leaves(again), ft.tree_util.tree_leaves(plain), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_a_kernel_from_disk_reports_errors_with_the_users_line(cached):
    def lookup(x, i):
        return x[i]

    cached(lookup, X, np.array([0, 2]))
    with pytest.raises(IndexError, match=r"test_store.py.*\n?.*return x\[i\]|return x\[i\]"):
        cached(lookup, X, np.array([0, 3]))


def test_jitted_code_calls_a_kernel_from_disk(cached):
    from numba import njit

    cached(elementwise, X)
    kernels.clear()
    with config.patch(cache=True, cache_dir=str(cached.path)):
        executable = compile_jaxpr(ft.make_jaxpr(ft.jit(elementwise))(X))
        (unit,) = executable.kernels
    assert unit.code.code.origin == "disk"
    entry = unit.code.code.entry
    numbers = np.array([*unit.ints, *np.array(unit.floats).view(np.int64)], np.int64)
    arrays = (X, out := np.zeros_like(X))
    assert len(unit.kernel.storages) == 2
    assert njit(lambda a, n: entry(a, n))(id(arrays), numbers.ctypes.data) == 0
    np.testing.assert_allclose(out, np.exp(-X) * np.sin(X) + 1.25, rtol=1e-14)


def damage_nothing(paths):
    pass


def cut(paths):
    for path in paths:
        path.write_bytes(path.read_bytes()[:200])


def overwrite(paths):
    for path in paths:
        path.write_bytes(os.urandom(500))


def exchange(paths):
    contents = [p.read_bytes() for p in paths]
    for path, content in zip(paths, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)


def whole_but_no_code(paths):
    """Files with right keys and checksums around an image that is none."""
    disk = Disk(str(paths[0].parent))
    for entry in list(disk.entries()):
        code, about = store.unpacked(entry.data)
        head = json.dumps({"about": about, "entry": code.entry, "symbols": code.symbols}).encode()
        disk.put(entry.key, head + b"\n" + code.image[: len(code.image) // 2], 1 << 30)


def missing_symbol(paths):
    disk = Disk(str(paths[0].parent))
    for entry in list(disk.entries()):
        head, image = entry.data.split(b"\n", 1)
        disk.put(entry.key, head.replace(b"functrans_", b"functions_") + b"\n" + image, 1 << 30)


def no_header(paths):
    disk = Disk(str(paths[0].parent))
    for entry in list(disk.entries()):
        disk.put(entry.key, b"{}", 1 << 30)


@pytest.mark.parametrize("what", [cut, overwrite, exchange, whole_but_no_code, missing_symbol, no_header])
def test_damaged_files_cost_a_compilation(cached, what):
    expected = elementwise(X), (X @ X.T) * 2.0
    both = lambda x: (elementwise(x), fnp.sqrt((x @ x.T) ** 2) * 2.0)
    cached(elementwise, X)
    cached(both, X)
    paths = files(cached)
    assert len(paths) >= 2
    what(paths)
    result, info = cached(both, X)
    assert (info.compiles, info.disk_hits) == (1, 0)
    for a, b in zip(result, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)
    assert cached(both, X)[1].disk_hits == 1, "the damaged file was replaced"


def test_what_the_key_is_made_of(cached, monkeypatch):
    """Another processor, version or option is another kernel."""
    cached(elementwise, X)
    assert cached(elementwise, X)[1].disk_hits == 1
    with config.patch(strict=True):
        assert cached(elementwise, X)[1].disk_hits == 0
    with config.patch(checked=not config.checked):
        assert cached(elementwise, X)[1].disk_hits == 0
    import llvmlite.binding as llvm

    for owner, name, value in (
        (store, "_hash_of_sources", lambda: "another version"),
        (store, "_c_library", lambda: ("glibc 9.9",)),
        (llvm, "llvm_version_info", (99, 0, 0)),
        (sys.implementation, "cache_tag", "cpython-399"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, value)
            store.fingerprint.cache_clear()
            assert cached(elementwise, X)[1].disk_hits == 0
    store.fingerprint.cache_clear()
    assert cached(elementwise, X)[1].disk_hits == 1


def test_a_change_of_any_module_that_writes_llvm_text_is_another_version(tmp_path, monkeypatch):
    package = Path(ft.__file__).parent
    for name in ("lowering", "runtime", "passes", "primitives"):
        shutil.copytree(package / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(store, "__file__", str(tmp_path / "lowering" / "llvm" / "store.py"))
    seen = {store._hash_of_sources()}
    modules = sorted((tmp_path / "lowering" / "llvm").rglob("*.py"))
    modules += [tmp_path / name for name in store._SOURCES if "*" not in name]
    for module in modules:
        module.write_text(module.read_text() + "# changed\n")
        seen.add(store._hash_of_sources())
    assert len(modules) > 30
    assert len(seen) == len(modules) + 1


def test_compiling_ahead_fills_the_cache(cached):
    f = ft.jit(lambda x: elementwise(x) - 0.71875)
    with config.patch(cache=True, cache_dir=str(cached.path)):
        f.lower(ft.ShapeDtypeStruct((3, 4), "float64")).compile()
    assert cached(lambda x: elementwise(x) - 0.71875, X)[1].disk_hits == 1


def test_switched_off_it_writes_nothing(tmp_path):
    with config.patch(cache=False, cache_dir=str(tmp_path / "none")):
        ft.jit(lambda x: x * 3.0 + 0.125)(X)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("where", ["/proc/self/none/cache", "{}/file/cache", "{}/file"])
def test_a_directory_that_cannot_be_made(tmp_path, where):
    (tmp_path / "file").write_bytes(b"")
    kernels.clear()
    store._opened.cache_clear()
    with config.patch(cache=True, cache_dir=where.format(tmp_path)):
        with pytest.warns(RuntimeWarning, match="not cached on disk.*FUNCTRANS_CACHE_DIR"):
            result = ft.jit(lambda x: x * 3.0 + 0.375)(X)
        np.testing.assert_allclose(result, X * 3.0 + 0.375)


def test_a_relative_directory_stays_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kernels.clear()
    store._opened.cache_clear()
    with config.patch(cache=True, cache_dir="here"):
        ft.jit(lambda x: x * 3.0 + 0.4375)(X)
        monkeypatch.chdir("/")
        shutil.rmtree(tmp_path / "here")
        kernels.clear()
        ft.jit(lambda x: x * 3.0 + 0.4375)(X)
    assert list((tmp_path / "here").iterdir())
    store._opened.cache_clear()


def test_an_untrusted_directory_is_refused_with_a_warning(cached, tmp_path):
    cached(elementwise, X)
    cached.path.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="other users may write to"):
        info = cached(elementwise, X)[1]
    assert (info.compiles, info.disk_hits) == (1, 0)


SCRIPT = """
import sys, numpy as np
import functrans as ft, functrans.numpy as fnp
f = ft.jit(ft.grad(lambda x: fnp.sum(fnp.exp(x) * (fnp.sin(x @ x.T) @ x))))
x = np.arange(6.0).reshape(3, 2) / 7
first = f(x)
info = f.cache_info()
print(info.compiles, info.disk_hits, "numba" in sys.modules, float(first.sum()))
"""


def process(environment):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        env={k: v for k, v in {**os.environ, "FUNCTRANS_CACHE": "1", **environment}.items() if v is not None},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    compiles, hits, numba, value = done.stdout.split()
    return int(compiles), int(hits), numba, float(value)


@pytest.mark.slow
def test_processes(tmp_path):
    """A second process compiles nothing and imports no Numba; another processor's kernels are its own."""
    here = {"FUNCTRANS_CACHE_DIR": str(tmp_path / "cache")}
    compiles, hits, _, value = process(here)
    assert (compiles > 0, hits) == (True, 0)
    assert process(here) == (0, compiles, "False", value)
    old = {**here, "NUMBA_CPU_NAME": "x86-64-v2"} if os.uname().machine == "x86_64" else here
    other = process(old)
    assert other[0] == (compiles if old is not here else 0)
    assert abs(other[3] - value) < 1e-12


def test_without_a_home(tmp_path):
    """Kernels compile without a warning."""
    home = {"HOME": "/proc/self/none", "XDG_CACHE_HOME": None, "FUNCTRANS_CACHE_DIR": None}
    compiles, hits, *_ = process(home)
    assert (compiles > 0, hits) == (True, 0)


@pytest.mark.slow
def test_processes_that_start_at_once(tmp_path):
    children = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "FUNCTRANS_CACHE": "1", "FUNCTRANS_CACHE_DIR": str(tmp_path / "cache")},
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    answers = {child.communicate()[0].split()[-1] for child in children}
    assert len(answers) == 1
    shutil.rmtree(tmp_path / "cache")


def test_the_default_directory(monkeypatch):
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if sys.platform.startswith("linux"):
        assert store.default_directory() == "/home/someone/.cache/functrans"
        monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
        assert Path(store.default_directory()) == Path("/elsewhere/functrans")
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # the specification: to be ignored
        assert store.default_directory() == "/home/someone/.cache/functrans"
        monkeypatch.setenv("HOME", "relative")
        assert store.default_directory() == ""


ODD_HEADS = [
    b"", b"null", b"[]", b"3", b"{", b"\xff", b"[" * 10_000, b'{"entry": "f", "symbols": []}',
    b'{"entry": 3, "symbols": [], "about": ""}', b'{"entry": "f", "symbols": [3], "about": ""}',
    b'{"entry": "f", "symbols": "sin", "about": ""}', b'{"entry": "f", "symbols": [], "about": null}',
    b'{"entry": "none", "symbols": ["no_such_function"], "about": ""}',
    b'{"entry": "none", "symbols": [], "about": ""}',
]  # fmt: skip


@pytest.mark.parametrize("head", ODD_HEADS, ids=repr)
def test_what_describes_no_kernel_is_compiled(cached, head):
    """With a right checksum, and the image as it was, or none."""
    expected, _ = cached(elementwise, X)
    (file,) = [f for f in files(cached) if b"own products" not in f.read_bytes()]  # that is a program
    disk, key = Disk(str(cached.path)), file.name.removesuffix(".entry")
    image = disk.get(key).split(b"\n", 1)[1]
    for data in (head, head + b"\n", head + b"\n" + image, head + b"\n" + image[: len(image) // 2]):
        disk.put(key, data, 1 << 30)
        found, info = cached(elementwise, X)
        np.testing.assert_array_equal(found, expected)
        assert (info.compiles, info.disk_hits) == (1, 0)


def test_the_key_of_code_names_the_c_library(monkeypatch):
    """Which vector functions it has depends on its version."""
    monkeypatch.setattr(os, "confstr", lambda name: "glibc 9.9", raising=False)
    assert store._c_library() == ("glibc 9.9",)
    monkeypatch.setattr(os, "confstr", lambda name: None, raising=False)
    assert store._c_library() == ("",)
    monkeypatch.delattr(os, "confstr")
    assert store._c_library() == platform.libc_ver()
