"""Jitted functions called in the user's ``@njit``: the same values, dtypes and errors as from Python."""

import signal
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

Pair = namedtuple("Pair", "w b")

slope = ft.jit(ft.grad(lambda x: fnp.sum(fnp.sin(x) ** 2)))


@pytest.fixture(autouse=True)
def _known():
    """Other tests may have cleared the caches."""
    slope(np.ones(2))
    slope(np.ones((2, 2)))


def of_square_of_sine(x):
    return 2 * np.sin(x) * np.cos(x)


@numba.njit(nogil=True)
def call(x):
    return slope(x)


def same(a, b):
    """Equal, with the same structure and the same dtypes (a Numba scalar arrives as a Python number)."""
    if isinstance(b, tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if b is None or np.ndim(b) == 0:
        return np.array_equal(a, b)
    return type(a) is np.ndarray and a.flags.writeable and a.dtype == b.dtype and np.array_equal(a, b)


def test_sizes_are_looked_up_when_it_runs_and_layouts_do_not_matter():
    matrix = np.arange(12.0).reshape(3, 4)
    read_only = matrix.copy()
    read_only.flags.writeable = False
    views = [
        matrix,
        matrix.T,
        matrix[::2],
        matrix[:, ::-1],
        np.asfortranarray(matrix),
        matrix[1:, 1:3],
        np.zeros((0, 3)),
    ]
    for x in (np.ones(3), np.zeros(0), np.linspace(0, 1, 7)[::-2], *views, read_only, fnp.asarray(matrix)):
        before = np.array(x)
        np.testing.assert_allclose(call(x), of_square_of_sine(before), rtol=1e-14)
        assert np.array_equal(x, before)
    assert call(matrix).flags.writeable


def test_many_sizes_from_many_threads():
    @numba.njit(nogil=True)
    def total(x):
        result = 0.0
        for i in range(len(x)):
            result += slope(x[:i]).sum()
        return result

    x = np.linspace(0, 1, 80)
    expected = sum(of_square_of_sine(x[:i]).sum() for i in range(80))
    with ThreadPoolExecutor(4) as threads:
        for result in threads.map(total, [x] * 8):
            np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_arguments_are_those_of_python():
    def f(pair, scale, flag, nothing, *, times, name="a"):
        assert nothing is None
        out = pair.w * scale[0] if name == "a" else -pair.w
        return Pair(out * times, (pair.b + scale[1], None, flag)), times

    g = ft.jit(f, static_argnames=("times", "name"))
    pair, scale = Pair(np.arange(3, dtype=np.float32), 1.5), (2, np.float32(3))
    g(pair, scale, True, None, times=2)
    g(pair, scale, True, None, times=2, name="b")

    @numba.njit
    def calls(pair, scale, flag):
        return g(pair, scale, flag, None, times=2), g(pair, scale, nothing=None, name="b", flag=flag, times=2)

    g(pair, scale, nothing=None, name="b", flag=True, times=2)
    expected = (
        g(pair, scale, True, None, times=2),
        g(pair, scale, nothing=None, name="b", flag=True, times=2),
    )
    got = calls(pair, scale, True)
    assert same(got, expected)


def test_other_spellings_of_a_call_are_known():
    g = ft.jit(lambda x, scale=2.0, shift=None: x * scale if shift is None else x * scale + shift)
    x = np.arange(3.0)
    g(x, 1.0)
    g(x)

    @numba.njit
    def calls(x, given):
        half = 0.5 if given else None
        total = g(x, scale=1.0) + g(x=x, shift=None) + g(x, 1.0, None)
        return total if half is None else total * g(scale=half, x=x)

    assert np.array_equal(calls(x, True), 4.0 * x * 0.5 * x)


@pytest.mark.slow
def test_dtypes_are_those_of_python():
    g = ft.jit(lambda a, s: (a * s, s + s))

    @numba.njit
    def call(a, s):
        return g(a, s)

    for dtype in (np.float32, np.float64, np.int32, np.complex64, np.bool_, np.uint8):
        for s in (2, 2.5, 1j, True, np.float32(2), np.int16(3)):
            a = np.ones(3, dtype)
            expected = g(a, s)
            assert same(call(a, s), expected), (dtype, s)


def test_where_it_may_stand():
    double, increment = ft.jit(lambda x: 2.0 * x), ft.jit(lambda x: x + 1.0)

    def caller(f):
        return numba.njit(lambda x: f(x))

    @numba.njit
    def apply(f, fs, first, x):
        chosen = double if first else increment
        return f(x) + fs[0](x) * 10 + fs[1](x) * 100 + chosen(x) * 1000

    assert caller(increment)(3.0) == 4.0
    with pytest.warns(numba.errors.NumbaExperimentalFeatureWarning):
        assert apply(double, (double, increment), False, 3.0) == 6 + 60 + 400 + 4000
    assert numba.njit(lambda f: f)(double) is double


def test_prange():
    pick = ft.jit(lambda x, i: x[i] - 2 + i)

    @numba.njit(parallel=True)
    def rows(x):
        out = np.zeros(len(x))
        for i in numba.prange(len(x)):
            out[i] = pick(slope(x[i, : i + 1]), i) - i + 2
        return out

    pick(np.ones(2), 1)

    x = np.random.default_rng(0).normal(size=(40, 40))
    np.testing.assert_allclose(rows(x), of_square_of_sine(np.diag(x)), rtol=0, atol=1e-13)


def test_programs_of_all_kinds():
    """Constants, results that are arguments or numbers, scratch memory, tapes, host calls, a method."""
    table = np.arange(3.0)

    def grow(x):
        return lax.while_loop(lambda c: c[1] < 10.0, lambda c: (c[0] * 1.1, c[1] + c[0]), (x, 0.0 * x))[0]

    class Scaled:
        factor = 3.0

        @ft.jit
        def times(self, x):
            return self.factor * x

    scaled = Scaled()
    slope_of_growth = ft.jit(ft.grad(grow))
    several = ft.jit(lambda x: (x + table, table, x, 3.0, x))
    solve = ft.jit(ft.grad(lambda x: fnp.sum(fnp.linalg.solve(fnp.diag(x + 1.0) + fnp.ones((3, 3)), x) ** 2)))
    host = ft.jit(lambda x: ft.pure_callback(np.sin, ft.ShapeDtypeStruct(x.shape, x.dtype), x))
    method = scaled.times
    x = np.array([1.0, 2.0, 3.0])
    expected = [slope_of_growth(1.5), several(x), solve(x), np.sin(x), method(x)]
    host(x)

    @numba.njit
    def all_of_them(x):
        return slope_of_growth(1.5), several(x), solve(x), host(x), method(x)

    for a, b in zip(all_of_them(x), expected, strict=True):
        assert same(a, b)
    scaled.factor = 4.0
    assert same(all_of_them(x)[-1], 4.0 * x)


def test_a_method_whose_result_has_another_shape_since_its_instance_changed():
    class Filled:
        size = 3

        @ft.jit
        def times(self, x):
            return x * fnp.ones(self.size)

    filled = Filled()
    method = filled.times

    @numba.njit
    def call(x):
        return method(x)

    for size in (3, 1, 3):
        filled.size = size
        if size != 3 or method.cache_info().traces > 1:
            with pytest.raises(
                ft.errors.ShapeError, match=f"the result has the shape \\({size},\\), and had"
            ):
                call(2.0)
        assert same(call(2.0), np.full(size, 2.0))


@pytest.mark.slow
def test_machine_code_of_the_users_in_a_kernel_is_called_without_python(monkeypatch):
    def python(*_):
        raise AssertionError("Python was called")

    @numba.njit
    def root_of_sum(x, shift):
        if shift < 0.0:
            raise ValueError("negative", shift)
        return np.sqrt(x + shift).sum()

    f = ft.numba_call(root_of_sum)
    ruled = ft.numba_call(root_of_sum, vjp=lambda args, out, ct: (0.5 * ct / fnp.sqrt(sum(args)), None))
    value, slope = ft.jit(lambda x, s: 2.0 * f(x, s)), ft.jit(ft.grad(lambda x, s: ruled(x, s) ** 2))
    x = np.array([1.0, 4.0])
    expected = float(value(x, 0.0)), slope(x, 0.0)

    @numba.njit
    def call(x, shift):
        return value(x, shift), slope(x, shift)

    call(x, 0.0)
    monkeypatch.setattr("functrans.interop.jitted.tables.CallTable.run", python)
    assert same(call(x, 0.0), expected)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="negative"):
        call(x, -1.0)


def test_a_failure_raises_what_python_gets_and_may_be_caught():
    pick = ft.jit(lambda x, i: x[i])
    solve = ft.jit(lambda a, b: fnp.linalg.solve(a, b))
    x, eye = np.arange(4.0), np.eye(2)
    pick(x, 1)
    solve(eye, np.ones(2))

    @numba.njit
    def pick_or(x, i):
        try:
            return pick(x, i)
        except Exception:
            return -1.0

    call_pick, call_solve = numba.njit(lambda x, i: pick(x, i)), numba.njit(lambda a, b: solve(a, b))
    assert (pick_or(x, 2), pick_or(x, 9)) == (2.0, -1.0)
    for jitted, called, args in [(pick, call_pick, (x, 9)), (solve, call_solve, (np.zeros((2, 2)), x[:2])),
                                 (solve, call_solve, (eye, x))]:  # fmt: skip
        with pytest.raises(Exception) as expected:
            jitted(*args)
        with pytest.raises(type(expected.value)) as got:
            called(*args)
        assert str(got.value) == str(expected.value)
        assert "test_jitted_in_njit.py" in str(got.value)


def test_types_that_are_not_known():
    g = ft.jit(lambda x: 2.0 * x)
    call = numba.njit(lambda x: g(x))
    x = np.ones((2, 3))
    with pytest.raises(
        numba.TypingError, match=r"g\.lower\(ft\.ShapeDtypeStruct\(\(n, m\), 'float64'\)\)\.compile\(\)"
    ):
        call(x)
    g.lower(ft.ShapeDtypeStruct((5, 5), "float64")).compile()
    assert np.array_equal(call(x), 2 * x)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ([1.0], r"argument 0 \('x'\) is a list"),
        ((1.0, ("a",)), r"argument 0 \('x'\)\[1\]\[0\] is a unicode_type"),
        (numba.typed.Dict.empty(numba.int64, numba.float64), r"argument 0 \('x'\) is a dict"),
        (
            np.ones(3, np.float16),
            r"argument 0 \('x'\) is an array of float16, which .* cannot hold: pass float32",
        ),
        (np.array(["a"]), r"argument 0 \('x'\) is an array of \[unichr"),
        (1, r"result\['w'\] is in a dict"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*reflected list")
def test_trees_that_numba_does_not_have(argument, message):
    g = ft.jit(lambda x: {"w": x})
    with pytest.raises(numba.TypingError, match=message):
        numba.njit(lambda x: g(x))(argument)


def test_the_number_of_arguments():
    g = ft.jit(lambda x, y: x + y)
    with pytest.raises(numba.TypingError, match=r"too many positional arguments. Its signature is \(x, y\)"):
        numba.njit(lambda x: g(x, 1, 2))(np.ones(2))


def test_a_static_argument_is_a_literal():
    g = ft.jit(lambda x, n: x * n, static_argnums=1)
    with pytest.raises(numba.TypingError, match=r"argument 1 \('n'\) is static.*literal"):
        numba.njit(lambda x, n: g(x, n))(1.0, 2)


def test_into_writes_to_memory_of_the_callers():
    g = ft.jit(lambda x, y: (fnp.flip(x) + y, (fnp.sum(x), None)))
    x = np.arange(4.0)
    g(x, 1.0)
    into = g.into

    @numba.njit
    def write(out, x, y, times):
        for _ in range(times):
            g.into(out, x, y)
        into(out, x, y)

    def memory(array):
        return array, (np.zeros(()), None)

    numba.core.runtime._nrt_python.memsys_enable_stats()
    once = allocations(write, memory(np.zeros(4)), x, 1.0, 1)
    assert allocations(write, memory(np.zeros(4)), x, 1.0, 50) == once
    for f in (lambda out, x: write(out, x, 1.0, 0), lambda out, x: g.into(out, x, 1.0)):
        for pick in (slice(1, 5), slice(0, 4), slice(None, None, 3), slice(9, 1, -2)):
            a = np.arange(10.0)
            out = memory(a[pick])
            expected = a.copy()
            expected[pick] = a[3::-1] + 1.0
            f(out, a[:4])
            assert np.array_equal(a, expected)
            assert out[1][0] == 6.0
        with pytest.raises(ValueError, match=r"out\[0\] has shape \(3,\); the result has \(4,\)"):
            f(memory(np.zeros(3)), x)
        for out in (
            np.zeros(4),
            memory(np.zeros((4, 1))),
            memory(np.zeros(4, "f4")),
            memory(fnp.zeros(4)),
            (1.0, 2.0),
        ):
            with pytest.raises((numba.TypingError, ft.errors.FunctransError), match=r"into of .*: out"):
                f(out, x)
    with pytest.raises(ft.errors.ArgumentError, match="while a transformation traces"):
        ft.grad(lambda x: g.into(memory(np.zeros(4)), x, 1.0))(x)


def allocations(f, *args):
    """How many blocks Numba's runtime allocates in a call."""
    stats = numba.core.runtime.rtsys.get_allocation_stats
    f(*args)
    before = stats().alloc
    f(*args)
    return stats().alloc - before


def test_cfunc():
    scipy_integrate = pytest.importorskip("scipy.integrate")
    from scipy import LowLevelCallable

    slope_of_cube = ft.jit(ft.grad(lambda x: x**3))
    as_c = slope_of_cube.cfunc("float64(float64)", nopython=True)
    assert as_c.ctypes(2.0) == 12.0
    assert abs(scipy_integrate.quad(LowLevelCallable(as_c.ctypes), 0.0, 2.0)[0] - 8.0) < 1e-12
    with pytest.raises(ft.errors.ArgumentError, match=r"cfunc of <lambda>: argument 0 .*takes numbers"):
        slope_of_cube.cfunc("float64(float64[:])")
    with pytest.raises(ft.errors.ArgumentError, match="returns a number"):
        slope_of_cube.cfunc(numba.float64[:](numba.float64))


def test_what_python_drops_or_traces_meanwhile():
    factor = [2.0]
    g = ft.jit(lambda x: x * factor[0])

    @numba.njit
    def call(x):
        return g(x)

    def traced(x):
        assert call(5.0) == 5.0 * factor[0]  # a call with numbers, with a trace in progress
        return x

    assert call(3.0) == 6.0
    factor[0] = 4.0
    g.clear_cache()
    assert call(3.0) == 12.0
    g.clear_cache()
    assert ft.jit(traced)(1.0) == 1.0
    assert ft.grad(traced)(1.0) == 1.0


def test_an_interrupt_ends_a_kernel():
    spin = ft.jit(lambda x: lax.fori_loop(0, 10**12, lambda i, c: fnp.sin(c) + 1.0, x))

    @numba.njit
    def call(x):
        return spin(x)

    def interrupt(*_):
        raise KeyboardInterrupt

    call.compile((numba.float64,))
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            call(1.0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def test_float16_is_used_inside_alone():
    """Numba's code for the CPU has no arrays of it."""
    g = ft.jit(lambda x: fnp.sum(fnp.sin(x.astype(np.float16)), dtype=np.float32))
    x = np.linspace(0, 1, 50, dtype=np.float32)
    expected = g(x)
    assert numba.njit(lambda x: g(x))(x) == expected
    narrow = ft.jit(lambda x: x.astype(np.float16))
    narrow(x)
    with pytest.raises(numba.TypingError, match=r"result has dtype float16.*return x.astype\('float32'\)"):
        numba.njit(lambda x: narrow(x))(x)
