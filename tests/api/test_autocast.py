"""`autocast`: what it casts, where it is on, and that derivatives and loops follow."""

import asyncio
import threading

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax, nn
from functrans.errors import ArgumentError, ArgumentValueError, CarryTypeError

F32, F64 = np.dtype("float32"), np.dtype("float64")
rng = np.random.default_rng(0)
W = fnp.asarray(rng.normal(size=(4, 4)) / 2)
X = fnp.asarray(rng.normal(size=4))
X32 = abs(X).astype(F32)
EPS = float(np.finfo(F32).eps)


def layers(w, x):
    h = fnp.tanh(w @ x)
    return fnp.sum(fnp.exp(w @ h) ** 2) + fnp.linalg.norm(h + x)


def scanned(w, x):
    def body(h, _):
        h = fnp.tanh(h @ w)
        return h, fnp.sum(h)

    h, sums = lax.scan(body, x, None, length=4)
    return fnp.sum(h) + fnp.sum(sums)


def counted(w, x):
    return fnp.sum(lax.fori_loop(0, 3, lambda i, h: fnp.exp(-((h @ w) ** 2)), x))


def while_small(w, x):
    return fnp.sum(lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, fnp.tanh(s[1] @ w)), (0, x))[1])


def branches(w, x):
    return fnp.sum(lax.cond(x[0] > 0, lambda x: x @ w, lambda x: x, x)) + fnp.sum(
        lax.switch(0, [lambda x: x @ w, lambda x: fnp.exp(x), lambda x: x], x)
    )


def prefixes(w, x):
    return fnp.sum(lax.associative_scan(fnp.matmul, fnp.stack([w, w * x, w])))


def checkpointed(w, x):
    return fnp.sum(ft.checkpoint(lambda x: fnp.tanh(x @ w))(x) ** 3)


PROGRAMS = (layers, scanned, counted, while_small, branches, prefixes, checkpointed)
REVERSE = {
    "eager": ft.grad,
    "jit(grad)": lambda f: ft.jit(ft.grad(f)),
    "grad(jit)": lambda f: ft.grad(ft.jit(f)),
}


def difference(x, y):
    return float(np.max(np.abs(np.asarray(x) - np.asarray(y)) / (1 + np.abs(y))))


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_values_and_derivatives_stay_near_those_of_float64(f):
    """Within epsilon times the depth, in the dtypes of the parameters."""
    batch = fnp.stack([X, X / 2])
    value, gradient = f(W, X), ft.grad(f)(W, X)
    mapped, seconds = ft.vmap(f, (None, 0))(W, batch), ft.jvp(lambda w: ft.grad(f)(w, X), (W,), (W,))[1]
    with ft.autocast("float32"):
        got = f(W, X)
        assert got.dtype == F64
        assert 0 < difference(got, value) < 30 * EPS
        assert difference(ft.vmap(f, (None, 0))(W, batch), mapped) < 30 * EPS
        for reverse in REVERSE.values():
            result = reverse(f)(W, X)
            assert result.dtype == F64
            assert difference(result, gradient) < 100 * EPS
        second = ft.jvp(lambda w: ft.grad(f)(w, X), (W,), (W,))[1]
        assert second.dtype == F64
        assert difference(second, seconds) < 1000 * EPS


@pytest.mark.parametrize("target", ["float16", "bfloat16"])
def test_values_in_two_bytes_stay_near_those_of_float64(target):
    pytest.importorskip("ml_dtypes")
    eps = {"float16": 2.0**-10, "bfloat16": 2.0**-7}[target]
    for f in (layers, scanned, checkpointed):
        value, gradient = f(W, X), ft.grad(f)(W, X)
        with ft.autocast(target):
            assert (W @ X).dtype == target
            assert difference(f(W, X), value) < 30 * eps
            for result in (ft.grad(f)(W, X), ft.jit(ft.grad(f))(W, X)):
                assert result.dtype == F64
                assert difference(result, gradient) < 100 * eps


def test_products_run_low_and_delicate_operations_wide():
    """Of Arrays and traced values, by functions, operators, methods and NumPy's functions."""

    def dtypes(w, x, x32):
        return [
            (F32, [w @ x, fnp.matmul(w, w), np.matmul(w, x), w.dot(w), np.dot(w, w), np.ones((4, 4)) @ w]),
            (F32, [fnp.einsum("ij,jk", w, w), np.tensordot(w, w), lax.dot(w, w), fnp.convolve(x, x)]),
            (F32, [fnp.dot(w, x), fnp.inner(w, x), fnp.dot([[1.0] * 4], x), fnp.sin(x32), nn.gelu(x32)]),
            (F64, [fnp.dot(x, x32), fnp.vdot(x32, x), fnp.exp(x32), np.exp(x32), lax.exp(x32), lax.pow(x32, x)]),
            (F64, [x32**2, x32**0.5, 2.0**x32, x32**x32, np.float32(2) ** x32, fnp.power(x32, 2), np.add.reduce(x32)]),
            (F64, [x32.sum(), np.sum(x32), fnp.mean(x32), x32.std(), np.linalg.norm(x32), nn.softmax(x32)]),
            (F64, [lax.select(x > 0, x32, x), x32.at[0].set(x[0]), lax.atan2(x32, x), np.multiply.accumulate(x32)]),
            (F32, [x32 + x32, x32 * 2.0, fnp.tanh(x32), x32.at[0].add(1.0), fnp.max(x32), abs(x32)]),
            (np.dtype(int), [fnp.eye(2, dtype=int) @ fnp.ones(2, int), fnp.sum(fnp.arange(3))]),
            (np.dtype("complex128"), [fnp.fft.fft(x32), (w + 1j) @ (w + 1j)]),
        ]  # fmt: skip

    def check(w, x, x32):
        for dtype, values in dtypes(w, x, x32):
            assert [v.dtype for v in values] == [dtype] * len(values)

    with ft.autocast():
        check(W, X, X32)
        ft.make_jaxpr(check)(W, X, X32)
        ft.vmap(check, (None, 0, 0))(W, W, abs(W).astype(F32))
    assert type(np.exp(X32)) is np.ndarray  # as outside
    assert (W @ X).dtype == F64
    assert fnp.exp(X32).dtype == F32


def test_blocks_nest_and_end():
    """An island is off, rules of outer blocks stay, and an exception restores; other threads and tasks see nothing."""
    assert not ft.is_autocast_enabled()
    assert ft.get_autocast_dtype() == F32
    with ft.autocast(rules={"exp": "none"}):
        with ft.autocast(enabled=False):
            assert not ft.is_autocast_enabled()
            assert (W @ X).dtype == F64
            with ft.autocast(rules={"tanh": "wide", "mul": "low"}):
                assert [fnp.exp(X32).dtype, fnp.tanh(X32).dtype, (X * X).dtype] == [F32, F64, F32]
        with pytest.raises(ZeroDivisionError), ft.autocast(rules={"matmul": "none"}):
            assert (W @ X).dtype == F64
            1 / 0
        assert (W @ X).dtype == F32
        seen = []
        thread = threading.Thread(target=lambda: seen.append(ft.is_autocast_enabled()))
        thread.start()
        thread.join()
        assert seen == [False]
    assert not ft.is_autocast_enabled()

    async def task(on):
        with ft.autocast(enabled=on):
            await asyncio.sleep(0)
            return ft.is_autocast_enabled()

    async def both():
        return await asyncio.gather(task(True), task(False))

    assert asyncio.run(both()) == [True, False]


def test_it_decorates_functions():
    """Recursive ones too; generators run after their call, so they are refused."""

    @ft.autocast()
    def product(n):
        return product(n - 1) if n else W @ X

    assert product(2).dtype == F32
    assert not ft.is_autocast_enabled()

    def rows():
        yield W @ X

    async def later():
        return W @ X

    for f in (rows, later):
        with pytest.raises(ArgumentError, match="generator or coroutine runs after its call"):
            ft.autocast()(f)

    def inside():
        with ft.autocast():
            yield W @ X

    assert [x.dtype for x in inside()] == [F32]
    assert not ft.is_autocast_enabled()


def test_what_is_traced_under_it_is_cached_separately():
    traces = []

    @ft.jit
    def f(w):
        traces.append(1)
        return w @ w

    for _ in range(2):
        assert f(W).dtype == F64
        with ft.autocast():
            assert f(W).dtype == F32
        with ft.autocast(rules={"matmul": "none"}):
            assert f(W).dtype == F64
        with ft.autocast(enabled=False):
            assert f(W).dtype == F64
    assert len(traces) == 3


@pytest.mark.slow
def test_a_parameter_is_cast_once():
    """Several products of it keep one copy. An array that changes is cast at each use, and no trace leaks."""

    def kept(cached):
        with ft.autocast(cache_casts=cached):
            return ft.vjp(lambda w: fnp.sum(w @ X) + fnp.sum(w @ w), W)[1].residual_bytes

    assert kept(True) < kept(False)
    with ft.autocast():
        first = fnp.matmul(W, X)
        with ft.autocast():
            assert np.array_equal(fnp.matmul(W, X), first)
        changing = np.ones((4, 4))
        before = fnp.matmul(changing, X)
        changing *= 2.0
        assert np.array_equal(fnp.matmul(changing, X), 2 * before)
        buffer = np.array(W, subok=True)  # an Array that is writable
        before = fnp.matmul(buffer, X)
        buffer *= 2.0
        assert np.array_equal(fnp.matmul(buffer, X), 2 * before)
        assert fnp.dot(np.float64(2.0), W).dtype == F32
        with ft.checking_leaks():
            for transformed in (ft.grad(layers), ft.jit(ft.grad(layers)), ft.grad(ft.jit(layers))):
                transformed(W, X)


def test_a_dtype_that_is_requested_is_kept():
    with ft.autocast():
        for x in (
            fnp.matmul(W, W, preferred_element_type=F64),
            fnp.matmul(W, W, dtype=F64),
            fnp.einsum("ij,jk", W, W, dtype=F64),
            fnp.dot(W, W, preferred_element_type=F64),
        ):
            assert np.allclose(x, np.asarray(W) @ np.asarray(W), rtol=1e-14)
        assert [fnp.exp(X, dtype=F32).dtype, fnp.sum(X32, None, F32).dtype, X32.sum(dtype=F32).dtype] == [
            F32
        ] * 3


def test_a_carry_keeps_its_dtype_only_where_autocast_changes_it():
    def body(h, _):
        return h.astype(F32), None

    with ft.autocast(), pytest.raises(CarryTypeError):
        lax.scan(body, X, None, length=2)

    def own(h, _):
        with ft.autocast():
            return fnp.tanh(h @ W), None

    assert lax.scan(own, X, None, length=2)[0].dtype == F64
    with ft.autocast():
        assert lax.reduce(X32, np.float32(1.0), lambda a, b: fnp.exp(a) * b, (0,)).dtype == F32
        assert lax.associative_scan(fnp.logaddexp, X32).dtype == F32
        solved = lax.custom_linear_solve(
            lambda x: W.astype(F32) @ x, X32, lambda matvec, b: fnp.linalg.solve(W, b)
        )
        assert solved.dtype == F32
    with ft.disable_jit(), ft.autocast():
        assert scanned(W, X).dtype == F64


@pytest.mark.parametrize(
    ("arguments", "keywords", "message"),
    [
        (("int32",), {}, "dtype must be a floating-point dtype, got int32; use 'float32'"),
        ((None,), {}, "dtype must be a floating-point dtype, got None"),
        (("float23",), {}, "'float23' is not a dtype.*use 'float32'"),
        ((), {"rules": {"sofmax": "low"}}, "no operation 'sofmax'; did you mean 'softmax'"),
        ((), {"rules": {"exp": "high"}}, "must be one of 'low', 'wide', 'promote', 'none', got 'high'"),
    ],
)
def test_bad_arguments(arguments, keywords, message):
    with pytest.raises(ArgumentValueError, match=message):
        ft.autocast(*arguments, **keywords)
