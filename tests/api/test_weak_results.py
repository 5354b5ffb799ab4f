"""A result that was computed from Python numbers alone is weak: it meets arrays as the number would.

Every program has one dtype: called with a number, with a weak result in its place, compiled, or differentiated.
"""

import copy
import operator
import pickle

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

F32 = np.ones(2, np.float32)
weakly = ft.jit(lambda a: a * 1)


def square(a):
    return a * a


@ft.custom_jvp
def by_jvp(a):
    return a * a


by_jvp.defjvp(lambda p, t: (p[0] * p[0], 2 * p[0] * t[0]))


@ft.custom_vjp
def by_vjp(a):
    return a * a


by_vjp.defvjp(lambda a: (a * a, a), lambda a, g: (2 * a * g,))

#: Programs of one number; True where NumPy's promotion keeps the result of the same lines weak.
PROGRAMS = {
    "operators": (lambda a: -(2 * a + a / 3 - abs(a) ** 2), True),
    "jit": (ft.jit(square), True),
    "nested jit": (ft.jit(lambda a: ft.jit(square)(a) + 1), True),
    "grad": (ft.grad(square), True),
    "grad of exp": (ft.grad(lambda a: fnp.exp(a) * a), True),
    "grad of grad": (ft.grad(ft.grad(lambda a: a**3)), True),
    "grad of jit": (ft.grad(ft.jit(square)), True),
    "value_and_grad": (lambda a: sum(ft.value_and_grad(square)(a)), True),
    "auxiliary data": (lambda a: ft.grad(lambda a: (a * a, 2 * a), has_aux=True)(a)[1], True),
    "vjp": (lambda a: ft.vjp(square, a)[1](1.0)[0], True),
    "vjp of nothing": (lambda a: ft.vjp(lambda a, b: 1.0 * b, a, 2.0)[1](1.0)[0], True),
    "jvp": (lambda a: sum(ft.jvp(square, (a,), (1.0,))), True),
    "linearize": (lambda a: ft.linearize(square, a)[1](1.0), True),
    "jacfwd": (ft.jacfwd(square), True),
    "jacrev": (ft.jacrev(square), True),
    "hessian": (ft.hessian(lambda a: a**3), True),
    "checkpoint": (ft.checkpoint(square), True),
    "cond": (lambda a: lax.cond(True, square, lambda a: a + 1, a), True),
    "switch": (lambda a: lax.switch(1, [square, square], a), True),
    "fori_loop": (lambda a: lax.fori_loop(0, 2, lambda i, c: c * 1.5, a), True),
    "while_loop": (lambda a: lax.while_loop(lambda c: c < 100, lambda c: c * 2.0, a), True),
    "scan": (lambda a: lax.scan(lambda c, _: (c * 2.0, None), a, None, length=3)[0], True),
    "vmap": (lambda a: ft.vmap(lambda x, a: x * a, in_axes=(0, None))(F32, a)[0], True),
    "custom_jvp": (by_jvp, True),
    "custom_vjp": (by_vjp, True),
    "grad of custom_vjp": (ft.grad(by_vjp), True),
    "stop_gradient": (lax.stop_gradient, True),
    "real": (lambda a: lax.stop_gradient(a).real, True),
    "imag": (lambda a: a.imag + a, True),
    "conjugate": (lambda a: a.conjugate(), True),
    "clip": (fnp.clip, False),
    "quad": (lambda a: scipy.integrate.quad(lambda t: a * t, 0.0, 1.0)[0], True),  # SciPy returns a float
    "limit of quad": (lambda a: scipy.integrate.quad(lambda t: t, 0.0, a)[0], True),
    "grad of quad": (ft.grad(lambda a: scipy.integrate.quad(lambda t: a * t * a, 0.0, 1.0)[0]), True),
    "brentq": (lambda a: scipy.optimize.brentq(lambda x: x * x - a, 0.0, 9.0), True),
    "root_scalar": (lambda a: scipy.optimize.root_scalar(lambda x: x * x - a, bracket=(0, 9)).root, True),
    "newton": (lambda a: scipy.optimize.root_scalar(lambda x: x * x - a, x0=1.0, x1=2.0).root, False),
    "root": (lambda a: scipy.optimize.root(lambda x: x * x - a, 1.0).x[0], False),
    "tree.map": (lambda a: ft.tree.map(lambda x: x * 2, {"a": a})["a"], True),
    "sin": (fnp.sin, False),  # NumPy's functions know no weak numbers: np.sin(2.0) is np.float64
    "sum": (fnp.sum, False),
    "asarray": (fnp.asarray, False),
    "where": (lambda a: fnp.where(True, a, 1.0), False),
    "loop of sin": (lambda a: lax.fori_loop(0, 2, lambda i, c: fnp.sin(c), a), False),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_has_one_dtype_however_it_is_run(name):
    f, weak = PROGRAMS[name]
    result = weakly(3.0)
    ways = {
        "eager": lambda: f(3.0) * F32,
        "of a result": lambda: f(result) * F32,
        "compiled": lambda: ft.jit(lambda a, x: f(a) * x)(3.0, F32),
        "compiled, of a result": lambda: ft.jit(lambda a, x: f(a) * x)(result, F32),
        "captured": lambda: ft.jit(lambda x: f(result) * x)(F32),
        "differentiated": lambda: ft.value_and_grad(lambda a: fnp.sum(f(a) * F32))(3.0)[0],
        "without jit": lambda: ft.config.patch(disable_jit=True)(lambda: f(3.0) * F32)(),
    }
    actual = {way: run() for way, run in ways.items()}
    assert {way: str(x.dtype) for way, x in actual.items()} == dict.fromkeys(
        ways, "float32" if weak else "float64"
    )
    for x in actual.values():
        np.testing.assert_allclose(np.sum(x), np.sum(actual["eager"]), rtol=1e-6)


def test_a_counter_in_the_state_of_a_jitted_step():
    @ft.jit
    def step(p, m, t):
        g = 2 * p
        m = 0.9 * m + 0.1 * g
        return p - 0.01 * m / (1 - 0.9 ** (t + 1)), m, t + 1

    p, m, t = np.ones(2, np.float32), np.zeros(2, np.float32), 0
    for _ in range(3):
        p, m, t = step(p, m, t)
    assert p.dtype == m.dtype == np.float32
    assert t == 3
    assert t.weak_type
    assert step.cache_info().traces == 1
    assert step.cache_info().hits == 2


def test_a_learning_rate_schedule():
    rate = ft.jit(lambda t: 0.1 / (1 + t))
    assert (F32 - rate(3) * F32).dtype == np.float32
    assert (F32 - rate(rate(3)) * F32).dtype == np.float32
    assert rate.cache_info().traces == 2  # of an integer, of a float


def test_strong_and_weak_results_are_different_types_of_arguments():
    double = ft.jit(lambda a, x: a * x)
    assert double(weakly(3.0), F32).dtype == np.float32
    assert double(fnp.asarray(3.0), F32).dtype == np.float64
    assert double(3.0, F32).dtype == np.float32
    assert double.cache_info().traces == 2


OPERATORS = [getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")]
OTHERS = [
    2, 2.5, 2j, True, F32, np.float32(2), np.ones(2), np.float64(2), np.ones(2, np.int8), np.ones((), np.float32),
    [1.0, 2.0],
]  # fmt: skip


@pytest.mark.parametrize("number", [3, 3.0])
def test_operators_promote_as_for_the_number(number):
    ours = weakly(number)
    assert ours.weak_type
    for other in OTHERS:
        for apply in OPERATORS:
            if type(other) is complex and apply in (operator.floordiv, operator.mod):
                continue
            # In NumPy, numbers take part in lists as arrays do.
            plain = np.asarray(number) if isinstance(other, list) else number
            for actual, expected in (
                (apply(ours, other), apply(plain, other)),
                (apply(other, ours), apply(other, plain)),
            ):
                assert isinstance(
                    actual, ft.Array | np.generic
                )  # NumPy's scalars are called as functions here
                assert actual.dtype == np.asarray(expected).dtype
                np.testing.assert_allclose(actual, expected, rtol=1e-6)
                assert getattr(actual, "weak_type", False) == (type(other) in (int, float, complex))
        for apply in (operator.lt, operator.eq):
            np.testing.assert_array_equal(apply(ours, other), apply(np.asarray(number), other))
            np.testing.assert_array_equal(apply(other, ours), apply(np.asarray(other), number))


def test_ndarrays_of_functrans_meet_it_as_a_number():
    x, a = fnp.asarray(F32), weakly(3.0)
    for actual in (x * a, a * x, x + a, np.multiply(F32, a), fnp.multiply(x, a), divmod(x, a)[1], x < a):
        assert actual.dtype in (np.float32, np.bool_)
    x *= a
    assert x.dtype == np.float32


def test_it_is_an_array_and_stays_weak_when_stored():
    a = weakly(2.0)
    assert isinstance(a, ft.Array)
    assert isinstance(a, np.ndarray)
    assert (a.shape, a.dtype, a.ndim) == ((), np.float64, 0)
    assert type(float(a)) is type(a.item()) is float
    assert repr(a) == "Array(2.)"
    for same in (
        pickle.loads(pickle.dumps(a)),
        copy.deepcopy(a),
        copy.copy(a),
        +a,
        a[()],
        a[...],
        a.T,
        a.real,
        a.conj(),
        divmod(a, 3)[1],
        round(a),
    ):
        assert same.weak_type
        assert same == 2.0
    for strong in (a.sum(), a.astype(float), a.reshape(1), fnp.asarray(a), a < 3, fnp.asarray(F32)):
        assert not strong.weak_type
    with pytest.raises(ft.errors.ImmutableArrayError):
        a[()] = 1.0
    with pytest.raises(ft.errors.ImmutableArrayError):
        np.add(1.0, 1.0, out=a)
    assert [*range(weakly(3))] == [0, 1, 2]


def test_rules_of_users_receive_an_array():
    class Scale(ft.Function):
        @staticmethod
        def forward(ctx, x):
            assert x.shape == ()
            return 2.0 * x

        @staticmethod
        def backward(ctx, g):
            return 2.0 * g

    assert Scale.apply(weakly(3.0)) == 6.0
    for apply in (
        Scale.apply,
        ft.jit(Scale.apply),
        ft.grad(Scale.apply),
        lambda a: ft.vjp(Scale.apply, a)[0],
    ):
        assert apply(weakly(3.0)).weak_type
        assert (apply(weakly(3.0)) * F32).dtype == np.float32
    shape = ft.custom_jvp(lambda x: x + len(x.shape))
    shape.defjvp(lambda p, t: (shape(*p), t[0]))
    assert shape(weakly(3.0)) == 3.0


def test_numpy_prints_weak_results():
    x = ft.grad(lambda x: x * x)(2.0)
    assert x.weak_type
    assert (np.array_repr(x), np.array_str(x), np.array2string(x, precision=2)) == ("array(4.)", "4.0", "4.")
