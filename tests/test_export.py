"""Exported functions: the same results elsewhere, without tracing or compiling; and what is said where that fails."""

import collections
import contextlib
import functools
import itertools
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans import errors, export, lax
from functrans.api.encoding import decode_jaxpr, encode_jaxpr
from functrans.lowering.llvm import backend, store
from functrans.lowering.processor import LEVELS, host, levels_of
from functrans.lowering.run.filed import FiledExecutable

X = np.linspace(0.1, 2.0, 12).reshape(3, 4)
Pair = collections.namedtuple("Pair", "first second")


def elementwise(x):
    return fnp.exp(-x) * fnp.sin(x) + np.arange(4.0)


def structures(tree, scale):
    return {"a": (tree["w"] * scale, None), "b": [Pair(tree["v"][0] + 1, scale)]}


def decompositions(x):
    return fnp.linalg.cholesky(x @ x.T + 3.0 * fnp.eye(3)), fnp.linalg.eigvalsh(x @ x.T), fnp.sort(x, axis=0)


def loops(x):
    def step(carry, row):
        carry = lax.cond(fnp.sum(row) > 3.0, lambda c: c * 0.5 + row, lambda c: c - row, carry)
        return carry, fnp.max(carry)

    carry, tops = lax.scan(step, fnp.zeros(4), x)
    return lax.while_loop(lambda c: fnp.sum(c) < 50.0, lambda c: c * 1.25 + 1.0, fnp.abs(carry)), tops


def transforms(x):
    return fnp.fft.rfft(x, axis=1), x[[2, 0]].at[0, 1].set(7.0), fnp.where(x > 1, x, 1j * x)


def gradient_of_while(x):
    return ft.grad(lambda x: fnp.sum(loops(fnp.sin(x))[0]))(x)


try:
    LOW = ft.bfloat16  # NumPy's code for it says nothing
except ft.errors.MissingLibraryError:
    LOW = np.float16

CASES = {
    "elementwise": (elementwise, (X,)),
    "structures": (structures, ({"w": X, "v": (X[0],)}, 2.5)),
    "decompositions": (decompositions, (X,)),
    "loops": (loops, (X,)),
    "transforms": (transforms, (X,)),
    "gradient of while": (gradient_of_while, (X,)),
    "low precision": (lambda x: (fnp.tanh(x) * 2.3, fnp.sum(x)), (X.astype(LOW),)),
    "integers": (lambda n: (n // 3, n % 5, fnp.cumsum(n)), (np.arange(10, dtype=np.int32),)),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "function.ft"


@pytest.fixture
def no_compiler(monkeypatch):
    def fails(*args):
        raise AssertionError("compiled")

    store.forget()
    monkeypatch.setattr(backend, "compile_text", fails)


def assert_same(found, expected):
    assert ft.tree.structure(found) == ft.tree.structure(expected)
    for a, b in zip(ft.tree.leaves(found), ft.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
        assert np.result_type(a) == np.result_type(b)


@pytest.mark.parametrize("case", CASES)
def test_results_are_the_same(path, case):
    f, args = CASES[case]
    jitted = ft.jit(f)
    export.save(path, jitted, *args)
    assert_same(export.load(path)(*args), jitted(*args))


def test_loading_neither_traces_nor_compiles(path, request):
    export.save(path, ft.value_and_grad(lambda x: fnp.sum(elementwise(x))), X)
    request.getfixturevalue("no_compiler")
    loaded = export.load(path)
    value, gradient = loaded(X)
    np.testing.assert_allclose(value, np.sum(np.exp(-X) * np.sin(X) + np.arange(4.0)))
    np.testing.assert_allclose(gradient, np.exp(-X) * (np.cos(X) - np.sin(X)))
    assert repr(loaded) == "<exported <lambda> for native>"
    assert [str(a) for a in loaded.out_avals] == ["f64[]", "f64[3,4]"]


@pytest.mark.parametrize("cpu", LEVELS)
def test_levels(path, cpu):
    export.save(path, elementwise, X, cpu=cpu)
    if LEVELS[cpu] <= host().features:
        loaded = export.load(path)
        assert loaded.cpu == cpu
    else:
        with pytest.warns(RuntimeWarning, match=f"the level {cpu}, and this one lacks"):
            loaded = export.load(path)
        assert loaded.cpu == "native"
    np.testing.assert_allclose(loaded(X), elementwise(X), rtol=1e-13)


def test_a_level_of_another_architecture(path, monkeypatch):
    """None is written; one that such a machine wrote is compiled here."""
    foreign = "armv8.2" if "x86-64" in LEVELS else "x86-64-v3"
    with pytest.raises(ft.errors.ArgumentValueError, match=f"'{foreign}', a level of another architecture"):
        export.save(path, elementwise, X, cpu=foreign)
    with pytest.raises(ft.errors.ArgumentValueError, match=r"got 'i486'\n"):
        export.save(path, elementwise, X, cpu="i486")
    export.save(path, elementwise, X, cpu=next(iter(LEVELS)))
    monkeypatch.setattr(export, "LEVELS", levels_of("aarch64" if "x86-64" in LEVELS else "x86_64"))
    with pytest.warns(
        RuntimeWarning, match=f"of the level {next(iter(LEVELS))}, and this one is of the arch"
    ):
        loaded = export.load(path)
    np.testing.assert_allclose(loaded(X), elementwise(X), rtol=1e-13)


@pytest.mark.skipif("x86-64" not in LEVELS, reason="looks for registers of x86-64")
def test_levels_use_no_more_than_they_have(path):
    """An AVX-512 register has a name of its own, which no instruction of a v3 kernel encodes."""
    from functrans.lowering.backend import Options
    from functrans.lowering.llvm.emit import emit_llvm
    from functrans.lowering.lower import lower

    jaxpr = ft.jit(elementwise).lower(X).jaxpr
    (step,) = lower(jaxpr, Options()).steps
    texts = {cpu: emit_llvm(step.kernel, Options(cpu=cpu)).text for cpu in LEVELS}
    assert "_ZGVe" not in texts["x86-64-v3"]
    assert '"prefer-vector-width"="512"' not in texts["x86-64-v3"]
    assert '"prefer-vector-width"="512"' in texts["x86-64-v4"]


def test_the_loaded_function_is_transformed_and_called_in_others(path):
    export.save(path, ft.jit(lambda x: fnp.sum(fnp.sin(x) * x)), X[0])
    f = export.load(path)
    np.testing.assert_allclose(ft.grad(f)(X[0]), np.cos(X[0]) * X[0] + np.sin(X[0]))
    np.testing.assert_allclose(
        ft.jit(lambda x: 2 * f(x + 1))(X[0]), 2 * np.sum(np.sin(X[0] + 1) * (X[0] + 1))
    )
    np.testing.assert_allclose(ft.vmap(f)(X), np.sum(np.sin(X) * X, axis=1))


def test_rules_of_its_own_are_not_forgotten(path):
    @ft.custom_vjp
    def straight_through(x):
        return fnp.round(x)

    straight_through.defvjp(lambda x: (fnp.round(x), None), lambda _, g: (g,))
    export.save(path, lambda x: fnp.sum(straight_through(x) ** 2), X)
    loaded = export.load(path)
    np.testing.assert_allclose(loaded(X), np.sum(np.round(X) ** 2))
    with pytest.raises(errors.ExportError, match=r"had derivative rules.*value_and_grad"):
        ft.grad(loaded)(X)
    export.save(path, ft.value_and_grad(lambda x: fnp.sum(straight_through(x) ** 2)), X)
    np.testing.assert_allclose(export.load(path)(X)[1], 2 * np.round(X))


def test_arguments_of_other_types_are_refused(path):
    export.save(path, elementwise, ft.ShapeDtypeStruct((3, 4), "float64"))
    loaded = export.load(path)
    with pytest.raises(errors.ArgumentError, match="f32"):
        loaded(X.astype(np.float32))
    with pytest.raises(errors.ArgumentError, match="structure"):
        loaded(X, X)


def test_what_cannot_be_exported(path):
    callback = lambda x: ft.pure_callback(np.sin, ft.ShapeDtypeStruct((3, 4), "float64"), x) * 2
    with pytest.raises(errors.ExportError, match=r"'pure_callback' holds .*(?s:.*)test_export.py"):
        export.save(path, callback, X)
    with pytest.raises(errors.ExportError, match="'debug_callback' holds"):
        export.save(path, lambda x: (ft.debug.print("{}", x), x)[1], X)
    with pytest.raises(errors.ExportError, match="enclosing transformation"):
        ft.grad(lambda y: export.save(path, lambda x: x * y, X))(1.0)

    Local = collections.namedtuple("Local", "x")
    with pytest.raises(errors.ExportError, match="cannot be imported"):
        export.save(path, lambda x: Local(x), X)
    with pytest.raises(errors.ArgumentValueError, match="x86-64-v3"):
        export.save(path, elementwise, X, cpu="pentium")
    with pytest.raises(errors.ArgumentError, match="must be a function"):
        export.save(path, 3, X)
    with pytest.raises(TypeError, match="elementwise"):
        export.save(path, elementwise)
    assert not path.exists()


def test_damaged_files(path):
    export.save(path, elementwise, X)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:place])
        with pytest.raises(errors.ExportError, match=r"function\.ft is not a whole export"):
            export.load(path)
    for place in [*range(export._HEAD.size), *rng.integers(0, len(whole), 40)]:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(errors.ExportError, match=r"function\.ft is not a whole export"):
            export.load(path)
    with pytest.raises(FileNotFoundError):
        export.load(path.with_name("none"))
    with pytest.raises(errors.ArgumentError, match=r"export\.load: path must be a str"):
        export.load(3)


def rewritten(path, **changes):
    """The file with a changed description and a right checksum."""
    description, images = export._read(str(path))
    body = json.dumps({k: v for k, v in {**description, **changes}.items() if v is not ...}).encode()
    text = body + images
    path.write_bytes(export._HEAD.pack(export._MAGIC, export._checksum(len(body), text), len(body)) + text)


def test_other_versions(path):
    export.save(path, elementwise, X)
    major, minor = ft.__version__.split(".")[:2]
    rewritten(path, version=f"{major}.{int(minor) + 1}.0")
    with pytest.raises(errors.ExportError, match=rf"by functrans {major}\.{int(minor) + 1}\.0, and this is"):
        export.load(path)
    rewritten(path, version=f"{major}.{minor}.99")
    np.testing.assert_allclose(export.load(path)(X), elementwise(X))
    rewritten(path, fingerprint="another")
    with pytest.warns(RuntimeWarning, match="another version of functrans, LLVM, Python.*compiled here"):
        loaded = export.load(path)
    np.testing.assert_allclose(loaded(X), elementwise(X))
    rewritten(path, processor=["cray-1", "+vectors"])
    with pytest.warns(RuntimeWarning, match="for the processor cray-1, and this one is"):
        loaded = export.load(path)
    np.testing.assert_allclose(loaded(X), elementwise(X))
    rewritten(path, jaxpr={"name": "f"})
    with pytest.raises(errors.ExportError, match="cannot be built here"):
        export.load(path)


ODD = [None, True, 0, -1, 1 << 70, 1.5, "", "cpu", [], [1], [[]], {}, {"a": 1}]


def places(data, place=()):
    """The places of all values in JSON data."""
    yield place
    if isinstance(data, dict | list):
        for key in data if isinstance(data, dict) else range(len(data)):
            yield from places(data[key], (*place, key))


def replaced(data, place, value):
    if not place:
        return value
    changed = data.copy()
    changed[place[0]] = replaced(data[place[0]], place[1:], value)
    return changed


def load_or_refuse(path, call=True):
    """Load and call a file; nothing but functrans's own errors may come out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            loaded = export.load(path)
        except errors.ExportError:
            return
        with contextlib.suppress(errors.FunctransError, OverflowError):
            if call:
                loaded(X)


def test_odd_descriptions_are_refused(path):
    """Each part of a description, replaced by anything that JSON has, with a right checksum."""
    export.save(path, elementwise, X)
    whole = path.read_bytes()
    description, _ = export._read(str(path))
    for field, value in itertools.product(description, ODD):
        path.write_bytes(whole)
        rewritten(path, **{field: value})
        load_or_refuse(path)
    for field in description:
        path.write_bytes(whole)
        rewritten(path, **{field: ...})
        with pytest.raises(errors.ExportError, match=f"no '{field}'"):
            export.load(path)
    path.write_bytes(whole)
    rewritten(path, more=3)
    np.testing.assert_allclose(export.load(path)(X), elementwise(X))


@settings(max_examples=300)
@given(st.data())
def test_odd_parts_of_descriptions_are_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("odd") / "function.ft"
    case = data.draw(st.sampled_from(["elementwise", "structures", "loops"]))
    path.write_bytes(saved(case))
    description, _ = export._read(str(path))
    place = data.draw(st.sampled_from(list(places(description))[1:]))
    value = data.draw(st.sampled_from(ODD))
    rewritten(path, **replaced(description, place, value))
    load_or_refuse(path, call=case != "loops")  # with another number, a loop may never end


@functools.cache
def saved(case):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "function.ft")
        export.save(path, CASES[case][0], *CASES[case][1])
        return Path(path).read_bytes()


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"3", b"null", b"\xff", b"[" * 100_000])
def test_descriptions_that_are_no_json_are_refused(path, text):
    path.write_bytes(export._HEAD.pack(export._MAGIC, export._checksum(len(text), text), len(text)) + text)
    with pytest.raises(errors.ExportError, match=r"function\.ft is not a whole export"):
        export.load(path)


def test_another_process(path, tmp_path):
    export.save(path, ft.value_and_grad(lambda x: fnp.sum(elementwise(x))), X)
    code = f"""
import sys, numpy as np
from functrans import export
f = export.load({str(path)!r})
value, gradient = f(np.linspace(0.1, 2.0, 12).reshape(3, 4))
print(float(value), "numba" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    )
    value, numba = done.stdout.split()
    np.testing.assert_allclose(float(value), np.sum(elementwise(X)), rtol=1e-14)
    assert numba == "False"


@pytest.mark.parametrize(
    "case", [case for case in CASES if case != "structures"]
)  # whose classes are of this file
def test_another_process_lowers_nothing(path, shipped, case):
    """It imports neither the passes nor the compiler, and needs no source of the program; results are the same."""
    f, args = CASES[case]
    export.save(path, f, *args)
    np.savez(path.with_name("arguments.npz"), *map(stored, args))
    np.savez(path.with_name("expected.npz"), *map(stored, ft.tree.leaves(ft.jit(f)(*args))))
    code = f"""
import sys, numpy as np
import functrans as ft
from functrans import export
f = export.load({str(path)!r})
with np.load({str(path.with_name("arguments.npz"))!r}) as arguments:
    args = [x.view(f.in_avals[i].dtype) for i, x in enumerate(arguments.values())]
results = ft.tree.leaves(f(*args))
assert not [m for m in sys.modules if m in {NOT_FOR_CALLS!r}]
with np.load({str(path.with_name("expected.npz"))!r}) as expected:
    for x, y in zip(results, expected.values(), strict=True):
        np.testing.assert_array_equal(np.asarray(x).view(y.dtype), y)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, env=os.environ)


#: Modules that a call of a program from a file does without.
NOT_FOR_CALLS = {
    "functrans.lowering.lower", "functrans.lowering.loops.ir", "functrans.lowering.jaxpr.simplify",
    "functrans.lowering.llvm.emit", "functrans.lowering.run.compile", "functrans.lowering.run.executable",
}  # fmt: skip


def stored(x):
    """An array as NumPy's files take it."""
    return np.asarray(x).view(np.uint16) if np.asarray(x).dtype == LOW else np.asarray(x)


def test_primitives_of_modules_that_nobody_has_imported(path):
    """Those of special functions and random numbers, and the dtype of keys."""
    import functrans.random
    import functrans.scipy.special

    f = lambda key, x: functrans.scipy.special.jv(0.5, x) + functrans.random.normal(key, (3, 4))
    key = functrans.random.key(3)
    export.save(path, f, key, X)
    code = f"""
import numpy as np, functrans.random
from functrans import export
result = export.load({str(path)!r})(functrans.random.key(3), np.linspace(0.1, 2.0, 12).reshape(3, 4))
print(float(result[2, 3]).hex())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    np.testing.assert_allclose(float.fromhex(done.stdout), f(key, X)[2, 3], rtol=1e-13)


def test_files_without_the_modules_of_primitives_are_read(path):
    """As 0.2.0 wrote them."""
    export.save(path, elementwise, X)
    description, _ = export._read(str(path))
    rewritten(path, jaxpr={k: v for k, v in description["jaxpr"].items() if k != "primitives"})
    np.testing.assert_allclose(export.load(path)(X), elementwise(X), rtol=1e-13)


@pytest.mark.parametrize("home", ["os", "functrans.errors", "functrans.no_such_module", 3])
def test_a_primitive_that_is_not_where_the_file_says(path, home):
    export.save(path, lambda x: fnp.sinh(x), X)
    description, _ = export._read(str(path))
    rewritten(path, jaxpr={**description["jaxpr"], "primitives": {"sinh": home}})
    with pytest.raises(errors.ExportError, match="cannot be built here"):
        export.load(path)


def test_kernels_that_are_in_use_are_in_the_file(path, request):
    jitted = ft.jit(lambda x: fnp.sin(x) * 4.5)
    jitted(X)
    export.save(path, jitted, X)
    del jitted
    request.getfixturevalue("no_compiler")
    np.testing.assert_allclose(export.load(path)(X), np.sin(X) * 4.5)


@pytest.fixture
def shipped(monkeypatch):
    """Not checked: a kernel that is has more to it than its machine code, and is lowered again."""
    monkeypatch.setenv("FUNCTRANS_CHECKED", "0")
    with ft.config.patch(checked=False, verify=False):
        yield


def test_a_new_process_compiles_nothing(path, shipped):
    """Though the process that wrote the file had loaded what kernels share before: threads, products, large results."""
    a = np.linspace(0.0, 1.0, 160_000).reshape(400, 400)
    f = ft.jit(lambda a: (fnp.tanh(a @ a), fnp.sum(fnp.sin(a))))
    expected = f(a)
    export.save(path, f, a)
    code = f"""
import numpy as np
from functrans import export
from functrans.lowering.llvm import objects
def fails(*args):
    raise AssertionError("compiled")
objects._optimised = fails
product, total = export.load({str(path)!r})(np.linspace(0.0, 1.0, 160_000).reshape(400, 400))
print(float(product[3, 5]).hex(), float(total).hex())
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "FUNCTRANS_CACHE": "0"},
    )
    assert done.stdout.split() == [float(expected[0][3, 5]).hex(), float(expected[1]).hex()]


def is_lowered_here(loaded):
    program = loaded._traced.jaxpr.derive(("executable", False), lambda: None)
    return not isinstance(program, FiledExecutable)


@pytest.mark.parametrize(
    "options",
    [
        {"strict": True},
        {"checked": True},
        {"without": {"fusion"}},
        {"debug_nans": True},
        {"specialize_below": 2},
    ],
)
def test_under_other_options_it_is_lowered_again(path, shipped, options):
    export.save(path, elementwise, X)
    assert not is_lowered_here(export.load(path))
    with ft.config.patch(**options):
        loaded = export.load(path)
        assert is_lowered_here(loaded)
        np.testing.assert_allclose(loaded(X), elementwise(X), rtol=1e-13)


def test_another_patch_of_functrans_lowers_again(path, shipped):
    export.save(path, elementwise, X)
    major, minor = ft.__version__.split(".")[:2]
    rewritten(path, version=f"{major}.{minor}.98")
    assert not is_lowered_here(export.load(path))  # the version in the description is for messages
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ft, "__version__", f"{major}.{minor}.99")
        loaded = export.load(path)
    assert is_lowered_here(loaded)
    np.testing.assert_allclose(loaded(X), elementwise(X), rtol=1e-13)


@pytest.mark.parametrize("others", [1, 3])
def test_the_number_of_threads_matters_where_loops_are_shared(path, shipped, others):
    x = np.linspace(0.0, 1.0, 400_000)
    shared, alone = (lambda x: fnp.sum(fnp.sin(x))), (lambda x: fnp.sum(fnp.sin(x[:20])))
    for f, again in ((shared, True), (alone, False)):
        with ft.config.patch(num_threads=2):
            export.save(path, f, x)
            assert not is_lowered_here(export.load(path))
        with ft.config.patch(num_threads=others):
            loaded = export.load(path)
            assert is_lowered_here(loaded) == again
            np.testing.assert_allclose(loaded(x), f(x), rtol=1e-13)


def test_another_jaxpr_is_not_run_by_the_steps_of_this_one(path, shipped):
    export.save(path, lambda x: x + 1.0, X)
    description, _ = export._read(str(path))
    jaxpr = json.loads(json.dumps(description["jaxpr"]).replace('"add"', '"sub"'))
    jaxpr["primitives"]["sub"] = "functrans.primitives.elementwise.arithmetic"
    rewritten(path, jaxpr=jaxpr)
    np.testing.assert_array_equal(export.load(path)(X), X - 1.0)


def test_what_is_not_in_the_file_is_lowered_when_it_is_asked_for(path, shipped):
    export.save(path, lambda x: fnp.sum(fnp.tan(x)), X)
    loaded = export.load(path)
    assert not is_lowered_here(loaded)
    assert "tan" in loaded.as_text("python")
    assert loaded.memory_analysis().argument_size_in_bytes == X.nbytes
    assert loaded.cost_analysis()["bytes accessed"] == X.nbytes + 8
    np.testing.assert_allclose(loaded(X), np.sum(np.tan(X)))


def test_errors_of_kernels_are_those_of_numpy(path, shipped):
    export.save(path, lambda x, n: (fnp.linalg.cholesky(x), n // 2), np.eye(3), 4)
    loaded = export.load(path)
    assert not is_lowered_here(loaded)
    np.testing.assert_array_equal(loaded(4.0 * np.eye(3), 6)[0], 2.0 * np.eye(3))
    with pytest.raises(np.linalg.LinAlgError):
        loaded(-np.eye(3), 6)


def test_host_calls_and_views_between_kernels(path, shipped):
    f = lambda x: fnp.sort(fnp.linalg.eigvals(x @ x.T + 1.0).real).reshape(3, 1) * 2.0
    export.save(path, f, X)
    loaded = export.load(path)
    assert not is_lowered_here(loaded)
    np.testing.assert_array_equal(loaded(X), ft.jit(f)(X))


def test_checked_programs_are_lowered_again(path, shipped):
    with ft.config.patch(checked=True):
        export.save(path, elementwise, X)
        assert is_lowered_here(export.load(path))


def test_constants_are_written_once(path, shipped):
    weights = np.random.default_rng(0).normal(size=(300, 300))
    export.save(path, lambda x: fnp.tanh(x @ weights), np.ones(300))
    assert path.stat().st_size < 1.6 * weights.nbytes  # as text: 4 / 3
    loaded = export.load(path)
    assert not is_lowered_here(loaded)
    np.testing.assert_allclose(loaded(np.ones(300)), np.tanh(np.ones(300) @ weights), rtol=1e-12)


def test_jaxprs_survive_the_encoding():
    for f, args in CASES.values():
        jaxpr = ft.make_jaxpr(f)(*args)
        again = decode_jaxpr(json.loads(json.dumps(encode_jaxpr(jaxpr))))
        assert str(again) == str(jaxpr)
