"""A second process runs programs that the first one lowered, and does not lower them again."""

import base64
import gc
import json
import os
import subprocess
import sys
import textwrap
import weakref

import numpy as np
import pytest
from generator import drawing
from generator.choices import Seeded

import functrans as ft
import functrans.numpy as fnp
from functrans.lowering.run.filed import FiledExecutable

HEAD = """
import json, sys
import numpy as np
import functrans as ft, functrans.numpy as fnp
from functrans import lax
def lowered():
    return "functrans.lowering.lower" in sys.modules
"""


def run(program, directory, **options):
    """What a program prints as JSON, in a process of its own."""
    environment = {
        **os.environ,
        "FUNCTRANS_CACHE": "1",
        "FUNCTRANS_CACHE_DIR": str(directory),
        "FUNCTRANS_CHECKED": "0",
        "FUNCTRANS_WITHOUT": "",
        **{f"FUNCTRANS_{name.upper()}": value for name, value in options.items()},
    }
    path = directory.parent / "program.py"
    path.write_text(HEAD + textwrap.dedent(program))
    done = subprocess.run([sys.executable, path], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "cache"


#: Each sets `out`, a list of arrays or numbers; all of it is found by a second process.
FOUND = {
    "gradient": """
        w, x = np.linspace(-1.0, 1.0, 12).reshape(3, 4), np.linspace(0.0, 2.0, 4)
        out = [ft.jit(ft.grad(lambda w: fnp.sum(fnp.tanh(w @ x) ** 2)))(w)]
        """,
    "gradient of a jitted function": """
        f = ft.jit(lambda x: fnp.sum(fnp.exp(fnp.sin(x)) / (1.0 + x * x)))
        out = [ft.grad(f)(np.linspace(0.0, 1.0, 7)), ft.jit(ft.hessian(f))(np.linspace(0.0, 1.0, 7))]
        """,
    "loops": """
        def f(x, n):
            x = lax.fori_loop(0, n, lambda i, x: x * 0.5 + fnp.cos(x), x)
            return lax.scan(lambda c, r: (c + r, c * r), fnp.sum(x), x)
        out = [*ft.jit(f)(np.arange(5.0), 10)]
        """,
    "views, constants and numbers": """
        table = np.arange(6.0)
        f = ft.jit(lambda x, k: (x.reshape(2, 3), (table * x)[::-1], k * 2, 3.0))
        out = [*f(np.arange(6.0), 5), *f(np.arange(6.0), 7)]
        """,
    "random": "out = [ft.jit(lambda k: ft.random.normal(k, (4,)))(ft.random.key(3))]",
    "branches": """
        f = ft.jit(lambda x: lax.cond(x[0] > 0.0, lambda: fnp.sum(x), lambda: fnp.prod(x)))
        out = [f(np.array([1.0, 2.0])), f(np.array([-1.0, 2.0]))]
        """,
    "dtypes": """
        out = [ft.jit(lambda x, y: x + y)(np.arange(3, dtype=a), np.ones(3, b))
               for a, b in (("i4", "f4"), ("i2", "i8"), ("f4", "c8"), ("u1", "?"))]
        """,
    "empty": "out = [ft.jit(lambda x: (x * 2.0, fnp.sum(x)))(np.ones((0, 3)))[0]]",
    "solved": "out = [ft.jit(lambda a, b: fnp.linalg.solve(a, b))(2.0 * np.eye(3), np.ones(3))]",
}


@pytest.mark.parametrize("name", FOUND)
def test_a_second_process_lowers_nothing(name, directory):
    program = (
        textwrap.dedent(FOUND[name])
        + "\nrows = [np.asarray(x) for x in out]"
        + "\nprint(json.dumps([[x.tobytes().hex(), str(x.dtype), list(x.shape)] for x in rows] + [lowered()]))"
    )
    *first, here = run(program, directory)
    *second, there = run(program, directory)
    assert (here, there) == (True, False)
    assert first == second


#: What is lowered in each process, and why.
LOWERED = {
    "Python's functions": "out = ft.jit(lambda x: ft.pure_callback(np.sin, x, x))(np.ones(3))",
    "NumPy between kernels": "out = ft.jit(lambda x: fnp.linalg.eig(x)[0].real)(np.eye(3))",
    "donated arguments": "out = ft.jit(lambda x: 2.0 * x, donate_argnums=0)(fnp.ones(3))",
    "large constants": "c = np.ones(10_000)\nout = ft.jit(lambda x: c * x)(2.0)",
    "looking for NaN": "ft.config.debug_nans = True\nout = ft.jit(lambda x: 2.0 * x)(np.ones(3))",
    "Python as the backend": "ft.config.backend = 'python'\nout = ft.jit(lambda x: 2.0 * x)(np.ones(3))",
}


@pytest.mark.parametrize("name", LOWERED)
def test_what_is_lowered_in_each_process(name, directory):
    program = LOWERED[name] + "\nprint(json.dumps([np.asarray(out).tolist(), lowered()]))"
    assert run(program, directory) == run(program, directory)
    assert run(program, directory)[1]


PROGRAM = """
out = ft.jit(lambda x: fnp.sum(fnp.sin(x) * 3.0))(np.arange(4.0))
print(json.dumps([float(out), lowered()]))
"""


def test_whatever_changes_the_kernels_changes_the_key(directory):
    value, _ = run(PROGRAM, directory)
    assert run(PROGRAM, directory) == [value, False]
    edited = "from functrans.api.compiled import known_programs\nknown_programs._state = lambda: 'edited'\n"
    assert run(edited + PROGRAM, directory) == [value, True]
    assert run(PROGRAM, directory, num_threads="1" if os.cpu_count() > 1 else "2") == [value, True]
    assert run(PROGRAM, directory, without="fusion") == [pytest.approx(value), True]
    assert run(PROGRAM, directory, cache="0") == [value, True]
    assert run(PROGRAM.replace("3.0", "3"), directory) == [value, True]
    assert run(PROGRAM.replace("arange(4.0)", "arange(5.0)"), directory)[1]
    assert run(PROGRAM, directory) == [value, False]


def test_a_process_whose_files_have_been_replaced_reads_and_writes_nothing(directory):
    """It may have loaded files of before the change, and would name what they made after those of now."""
    value, _ = run(PROGRAM, directory)
    before = {file.name for file in directory.iterdir()}
    later = "from functrans.api.compiled import known_programs\nknown_programs.STARTED = 1.0\n"
    assert run(later + PROGRAM, directory) == [value, True]
    assert {file.name for file in directory.iterdir()} == before


def test_equal_programs_with_other_constants_are_others(directory):
    program = "c = fnp.array({})\nout = ft.jit(lambda x: c[x])(1)\nprint(json.dumps([float(out), lowered()]))"
    assert run(program.format([1.0, 2.0]), directory) == [2.0, True]
    assert run(program.format([1.0, 5.0]), directory) == [5.0, True]
    assert run(program.format([1.0, 2.0]), directory) == [2.0, False]


def test_the_files_hold_no_constants(directory):
    program = "c = np.array([1234.5678, 2.0])\nft.jit(lambda x: c * x)(1.0)\nprint(json.dumps(lowered()))"
    assert run(program, directory)
    assert not run(program, directory)
    for file in directory.iterdir():
        data = file.read_bytes()
        assert np.float64(1234.5678).tobytes() not in data
        assert base64.b64encode(np.array([1234.5678, 2.0]).tobytes()) not in data


ERRORS = """
def outer(x, i):
    y = fnp.sin(x)
    return y[i] * 2.0
def message(f, *args):
    try:
        f(*args)
    except Exception as error:
        return [type(error).__name__, str(error)]
g, h = ft.jit(outer), ft.jit(lambda n: fnp.arange(3)[n] // (n - n))
print(json.dumps([float(g(np.ones(3), 2)), message(g, np.ones(3), 7), float(g(np.ones(3), 1)), lowered()]))
"""


def test_errors_name_the_users_line_in_a_second_process_too(directory):
    *first, here = run(ERRORS, directory)
    *second, there = run(ERRORS, directory)
    assert first == second
    assert first[1][0] == "IndexOutOfBoundsError"
    assert "return y[i] * 2.0" in first[1][1]
    assert (here, there) == (True, True)  # the failure needed the equations


def test_a_program_without_its_kernels_is_lowered(directory):
    value, _ = run(PROGRAM, directory)
    for file in directory.iterdir():
        if b"own products" not in file.read_bytes():
            file.unlink()
    assert run(PROGRAM, directory) == [value, True]
    assert run(PROGRAM, directory) == [value, False]


@pytest.mark.parametrize(
    "text", ["", "nonsense", "{}", "[]", '{"own products": {}, "jaxpr": {}, "steps": []}', "null", "[" * 5000]
)
def test_entries_that_describe_no_program_are_not_used(text, directory):
    value, _ = run(PROGRAM, directory)
    wrong = f"from functrans.api.compiled import known_programs\nknown_programs.known_program = lambda key: {text!r}\n"
    assert run(wrong + PROGRAM, directory) == [value, True]


def test_what_one_asks_of_a_known_program(directory):
    program = """
        f = ft.jit(lambda x: fnp.sum(fnp.sin(x)))
        y = f(np.ones(3))
        info, before = f.cache_info(), lowered()
        compiled = f.lower(np.ones(3)).compile()
        print(json.dumps([before, info.compiles, info.disk_hits, compiled.as_text(), float(compiled(np.ones(3))),
            compiled.memory_analysis().temp_size_in_bytes, f.cache_info().compiles]))
        """
    first, second = run(program, directory), run(program, directory)
    assert (first[:3], second[:3]) == ([True, 1, 0], [False, 0, 1])
    assert first[3:6] == second[3:6]
    assert second[6] == 0


def found_again(program, xs):
    """The results of a function, and of an equal one that finds the program on disk; whether it did."""
    first, second = ft.jit(lambda *xs: program(*xs)), ft.jit(lambda *xs: program(*xs))
    with ft.config.patch(cache=True, checked=False, verify=False, without=frozenset()):
        results = [f(*xs) for f in (first, first, second, second)]
        return [[np.asarray(y) for y in ys] for ys in results], second.cache_info()


def check_found_again(seed, **drawn):
    program = drawing.draw_program(Seeded(seed), **drawn)
    rng = np.random.default_rng(seed)
    xs = [x + 0.1 * rng.standard_normal(x.shape) if x.dtype == float else x for x in program.inputs]

    def gradient(*xs):
        floats = [i for i, x in enumerate(xs) if x.dtype == float]

        def total(*ys):
            inputs = dict(zip(floats, ys))
            outs = program(*[inputs.get(i, x) for i, x in enumerate(xs)])
            return sum(fnp.sum(y) for y in outs if y.dtype == float)

        return ft.grad(total, argnums=tuple(range(len(floats))))(*[xs[i] for i in floats])

    found = 0
    for f in (program, gradient):
        try:
            results, info = found_again(f, xs)
        except ft.errors.FunctransError:  # the program is no function of these, which other tests look at
            continue
        for ys in results[1:]:
            for expected, y in zip(results[0], ys, strict=True):
                np.testing.assert_array_equal(y, expected, strict=True)
        assert info.compiles == 0
        found += 1
    return found


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_are_found_again(seed):
    check_found_again(seed, weights=drawing.WITHOUT_NUMBA, most=5, depth=1)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 300, 20))
def test_many_random_programs_are_found_again(first):
    drawn = {"weights": drawing.WITHOUT_NUMBA, "most": 8, "depth": 2}
    assert sum(check_found_again(first + i, **drawn) for i in range(100, 120)) > 20


def test_a_found_program_is_freed_with_its_function():
    with ft.config.patch(cache=True, checked=False, verify=False, without=frozenset()):
        for _ in range(2):
            f = ft.jit(lambda x: fnp.sum(fnp.cos(x) * 7.25))
            f(np.ones(3))
        traced = f.trace(np.ones(3))
        made = traced.jaxpr.derive(("executable", False), lambda: None)
        assert isinstance(made, FiledExecutable)
        alive = weakref.ref(made)
        gc.collect()
        gc.disable()
        try:
            del f, traced, made
            assert alive() is None  # without the collector
        finally:
            gc.enable()


def test_hooks_that_are_set_later_run():
    with ft.config.patch(cache=True, checked=False, verify=False, without=frozenset()):
        for factor in (2.0, 3.0):
            f = ft.jit(lambda x, by=factor: fnp.sum(ft.cotangent_hook(x, lambda g: by * g)))
            np.testing.assert_array_equal(ft.grad(f)(np.ones(2)), [factor, factor])


def test_a_known_program_is_shown_as_it_was_lowered():
    def text(without):
        with ft.config.patch(cache=True, checked=False, verify=False, without=without, num_threads=1):
            compiled = (
                ft.jit(lambda x: fnp.sum(fnp.cos(x)) + fnp.sum(x * 8.125)).lower(np.ones(3000)).compile()
            )
            return compiled.as_text("python")

    first, other = text(frozenset()), text(frozenset({"fusion"}))
    assert first != other
    assert [text(frozenset()), text(frozenset({"fusion"}))] == [first, other]


def test_states_of_hooks_that_a_program_captures_are_no_constants():
    state = ft.BackwardState()
    inner = ft.jit(lambda x, s: ft.cotangent_hook(3.0 * x, s, "on_ct") ** 2)
    with ft.config.patch(cache=True, checked=False, verify=False, without=frozenset()):
        outer = ft.jit(lambda x: inner(x, state) + 1.0)
        _, pull = ft.vjp(outer, 2.0)
        for k in (1.0, 2.0):
            state.on_ct = lambda ct, k=k: k * ct
            assert pull(1.0)[0] == k * 36.0
