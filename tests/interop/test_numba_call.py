"""`numba_call` and `njit`: what is translated, what is refused, rules of the user's."""

import enum
import math
import pickle

import numba
import numpy as np
import pytest
from versions import has

import functrans as ft
import functrans.numpy as fnp

from .njit_programs import steps

NumbaTranslationError = ft.errors.NumbaTranslationError


def agrees(f, *args):
    """The translation computes what the jitted function does, with the same dtypes."""
    expected = f(*args)
    lanes = ft.vmap(f)(*[np.asarray(a)[None] for a in args])
    one = isinstance(expected, tuple)
    for want, got in zip(expected if one else (expected,), lanes if one else (lanes,), strict=True):
        assert got.dtype == np.asarray(want).dtype
        np.testing.assert_allclose(got[0], want, rtol=1e-13, atol=1e-14)
    return expected


LIMIT = 3.0
TABLE = np.array([1.0, -2.0, 0.5, 4.0])


def closing(scale):
    @ft.njit
    def inner(x):
        return scale * x + LIMIT

    return inner


SCALED = closing(2.0)


@ft.njit
def writes(y, i, x):
    y[i] += x
    return y


@ft.njit
def many_things(x, n):
    a = np.zeros((4, 5))
    row = a[1]
    row[2] = x[0]  # writes a
    a[:, 3] = x
    a[2:, 1] += 2.0 * x[2:]
    a[0] = np.arange(5) * x[1]
    for i, (u, v) in enumerate(zip(x, TABLE)):
        a[i, -1] = u * v
    for r in a:
        r[0] += 1.0
    total = 0.0
    for i in numba.prange(4):
        if i == 2:
            continue
        total += a[i, i] * SCALED(x[i])
    z = x.copy()
    view = z[::-1]
    view[0] = 7.0
    same = writes(z, 0, x[1])
    same[1] *= 3.0
    b = a.T
    b[4, 3] -= z[0]
    pair = (z, total)
    w, _ = pair
    w += 1.0
    k = 0
    while k < n and (x[0] < 100.0 or k > 2):
        k += 1
        if k == 3:
            break
    else:
        k = -1
    swap, other = np.ones(3), np.zeros(3)
    for _ in range(3):
        other[0] = swap[1] + x[0]
        swap, other = other, swap
    m = (k << 2) // 3 % 4 + int(7.9) - (-7 // 2)
    return a, z, total + np.sum(a @ np.ones(5)) + swap.sum(), m, math.hypot(x[0], 2.0), np.float32(x[0]) * 2


@pytest.mark.slow
def test_statements_and_expressions():
    x = np.array([0.3, -1.0, 2.0, 0.7])
    agrees(many_things, x, 5)
    before = x.copy()

    def loss(x):
        a, z, total, _, h, s = many_things(x, 5)
        return fnp.sum(a * a) + fnp.sum(z) * total + h + s

    d, h = np.array([0.5, 0.2, -1.0, 0.3]), 1e-3
    slope = float(ft.grad(loss)(x) @ d)
    at = [float(loss(x + k * h * d)) for k in (-2, -1, 1, 2)]
    # The function computes one term in float32.
    np.testing.assert_allclose((at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h), slope, rtol=2e-5)
    np.testing.assert_allclose(ft.jit(ft.jvp, static_argnums=0)(loss, (x,), (d,))[1], slope, rtol=1e-6)
    np.testing.assert_array_equal(x, before)


@ft.njit
def returns_early(x, flag):
    for i in range(len(x)):
        if flag:
            if x[i] > 1.0:
                return x[i] * x[i], i
            if x[i] < -1.0:
                break
        else:
            for k in range(i):
                if x[i] * x[k] < 0:
                    return x[k] ** 3, i * k
    return -x[0], -1


def test_return_and_break_inside_of_loops():
    for values in ([0.5, 2.0], [0.5, 0.7], [0.5, -3.0, 5.0], [0.1, -0.2, 3.0]):
        for flag in (0, 1):
            agrees(returns_early, np.array(values), flag)
    xs = np.array([[0.5, 2.0, 1.0], [0.1, 0.2, 0.3], [0.5, -3.0, 5.0]])
    jacobians = ft.vmap(ft.jit(ft.grad(lambda x: returns_early(x, 1)[0])))(xs)
    np.testing.assert_allclose(jacobians, [[0, 4.0, 0], [-1, 0, 0], [-1, 0, 0]])


@ft.njit
def largest(a, b):
    return max(a, b, 0.0) - min(a, b)


def test_ties_are_shared_and_nan_is_python_s():
    assert [float(g) for g in ft.grad(largest, (0, 1))(2.0, 2.0)] == [0.0, 0.0]
    assert [float(g) for g in ft.grad(lambda a, b: max_of(a, b), (0, 1))(2.0, 2.0)] == [0.5, 0.5]
    for pair in ((1.0, math.nan), (math.nan, 1.0)):
        agrees(max_of, *pair)


@ft.njit
def max_of(a, b):
    return max(a, b)


def test_what_is_raised_is_raised():
    f = ft.grad(steps)
    assert float(ft.jit(f, static_argnums=1)(1.1, 2)) == pytest.approx(float(f(1.1, 2)))
    for g in (f, ft.jit(f), ft.jit(steps), lambda x, n: ft.vmap(steps, (0, None))(np.array([0.5, x]), n)):
        with pytest.raises(OverflowError) as error:
            g(4.0, 3)
        # Before Numba 0.67, an exception of Numba's has the number that stood there before the loop.
        assert error.value.args == ("too large", 16.0 if has("numba>=0.67") else 4.0)
        with pytest.raises(AssertionError, match="not positive"):
            g(-0.5, 0)
        with pytest.raises(ZeroDivisionError):
            g(1.0, 2)


def test_a_failure_is_explained_without_a_loop_in_numpy(monkeypatch):
    def slowly(*_):
        raise AssertionError("NumPy evaluates the loop")

    f = ft.jit(ft.grad(steps), static_argnums=1)
    f(1.1, 2)
    monkeypatch.setattr("functrans.lowering.run.executable.evaluate_on_host", slowly)
    for _ in range(2):
        with pytest.raises(OverflowError, match="too large"):
            f(4.0, 10**7)


@ft.njit(boundscheck=True)
def checked(x, i):
    return x[i]


@ft.njit(error_model="numpy")
def quotient(x):
    return 1.0 / x


def test_options_of_njit():
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(ft.grad(checked)(x, -1), [0, 0, 1])
    with pytest.raises(IndexError):
        ft.grad(checked)(x, 3)
    assert float(ft.jvp(quotient, (0.0,), (1.0,))[0]) == math.inf

    @numba.njit
    def outer(x):
        return quotient(x) + 1.0

    assert outer(2.0) == 1.5


@numba.njit
def cube(x):
    return x * x * x


def test_second_derivatives_and_batches():
    f = ft.numba_call(cube)
    assert float(ft.grad(ft.grad(f))(2.0)) == 12.0
    np.testing.assert_allclose(ft.vmap(ft.jit(ft.grad(f)))(np.array([1.0, 2.0])), [3.0, 12.0])
    assert float(ft.hessian(f)(2.0)) == 12.0
    assert f(2.0) == 8.0
    assert type(f(2.0)) is float
    assert ft.numba_call(f)(1) == 1
    assert ft.jit(f)(np.float32(2)).dtype == np.float32
    with ft.config.patch(backend="python"):
        assert float(ft.jit(f)(3.0)) == 27.0
    # The machine code runs in a loop of ours.
    total = ft.jit(lambda x: ft.lax.fori_loop(0, 3, lambda i, s: s + f(x + i), 0.0))
    assert float(total(1.0)) == 36.0


@numba.njit
def joined(x, n):
    y = x.copy()
    y[:n] = x[: n + 1]
    return y


@pytest.mark.slow
def test_slices_of_unequal_lengths_raise():
    f = ft.numba_call(joined)
    for call in (f, ft.jit(lambda x, n: ft.vmap(f, (0, None))(x[None], n))):
        with pytest.raises(ValueError, match=r"cannot assign (a )?slice"):
            call(np.ones(4), 2)


def test_machine_code_that_writes_to_its_argument_gets_a_copy():
    f = ft.numba_call(writes_its_argument, vjp=lambda args, out, ct: (ct * fnp.zeros(4),))
    x = np.zeros(4)
    assert float(ft.jit(f)(x)) == float(f(x.copy())) == 1.0
    assert not ft.grad(f)(x).any()
    assert not x.any()


def test_numbers_of_functrans_are_numbers():
    f = ft.njit(lambda x: math.exp(x) if x > 0 else x)
    assert f(fnp.sum(np.zeros(3))) == 0.0
    assert f(fnp.float32(1.0)) == np.float32(math.e)


def test_a_wrapped_function_is_a_dispatcher():
    """Its calls cost what those of the function do; it goes to other processes, and may be dropped."""
    f, g = ft.numba_call(cube), ft.njit(lambda x, k=2.0: x * k)
    assert isinstance(f, numba.core.dispatcher.Dispatcher)
    assert float(ft.grad(lambda x: g(k=3.0, x=x))(1.0)) == g(k=3.0, x=1.0) == 3.0
    again = pickle.loads(pickle.dumps(f))
    assert again(2.0) == 8.0
    assert float(ft.grad(again)(2.0)) == 12.0
    del f, again
    assert numba.njit(lambda x: cube(x))(2.0) == 8.0


def test_a_jitted_function_on_a_traced_value_names_the_cure():
    for transformed in (ft.grad(cube), ft.jit(cube)):
        with pytest.raises(NumbaTranslationError, match=r"functrans\.numba_call"):
            transformed(2.0)


# --- what is refused ----------------------------------------------------------------------------------------------


@numba.njit
def trying(x):
    try:
        return math.sqrt(x)
    except Exception:
        return 0.0


@numba.njit
def recursive(n, x):
    if n < 1:
        return x
    return recursive(n - 1, x * x)


@numba.njit
def lists(x):
    found = [x]
    for k in range(3):
        found.append(x * k)
    return found[2]


@numba.njit
def dicts(x):
    d = {1: x}
    return d[1]


@numba.njit
def sets(x):
    return x * len({1, 2})


@numba.njit
def random(x):
    return x * np.random.random()


@numba.njit
def strings(x):
    return x * len(str(int(x)))


@numba.njit
def writes_its_argument(x):
    x[0] = 1.0
    return x[0]


@numba.njit
def writes_a_row(x):
    y = x.reshape(2, 2)
    y[0, 1] = 3.0
    return y.sum()


@numba.njit
def sized(x):
    return np.zeros(int(x[0])).sum() + x[1]


@numba.njit
def either(x):
    a, b = np.zeros(2), np.ones(2)
    c = a if x[0] > 0 else b
    c[0] = x[1]
    return a[0]


@numba.njit
def uses_a_slice(x):
    return np.sort(x[: int(x[0])])[0]


class Colour(enum.Enum):
    RED = 1


@numba.njit
def python(x):
    with numba.objmode(y="float64"):
        y = x[0] + 1.0
    return 2.0 * y


REFUSED = {
    trying: (2.0, "try"),
    recursive: (2.0, "recursion"),
    lists: (2.0, "append|list"),
    dicts: (2.0, "dict"),
    sets: (2.0, "set"),
    random: (2.0, "random"),
    strings: (2.0, "str"),
    writes_its_argument: (np.ones(4), "argument 'x'"),
    writes_a_row: (np.ones(4), "write"),
    sized: (np.ones(4), "size"),
    either: (np.ones(4), "write"),
    uses_a_slice: (np.ones(4), "slice whose length"),
    python: (np.ones(4), "object mode|objmode|lifted|with"),
}


@pytest.mark.parametrize("f", REFUSED, ids=lambda f: f.__name__)
def test_refused(f):
    x, words = REFUSED[f]
    call = ft.numba_call(f)
    g = (lambda x: call(2, x)) if f is recursive else call
    with pytest.raises(NumbaTranslationError, match=words) as error:
        ft.grad(lambda x: fnp.sum(g(x)))(x)
    assert "test_numba_call.py" in str(error.value)
    assert f.__name__ in str(error.value)


def test_a_rule_for_each_mode():
    called = []

    def vjp(args, out, ct):
        called.append("vjp")
        return (ct * 3 * args[0] ** 2,)

    def jvp(args, out, tangents):
        called.append("jvp")
        return tangents[0] * 3 * args[0] ** 2

    f = ft.numba_call(cube, vjp=vjp, jvp=jvp)
    x = np.array([2.0, 3.0])
    for derivative, rule in (
        (ft.grad(f), "vjp"),
        (lambda x: ft.jvp(f, (x,), (1.0,))[1], "jvp"),
        (ft.jacfwd(f), None),
    ):
        called.clear()
        assert derivative(2.0) == ft.jit(derivative)(2.0) == 12
        assert rule is None or set(called) == {rule}
        np.testing.assert_allclose(ft.jit(ft.vmap(derivative))(x), 3 * x**2)


def test_bad_arguments():
    with pytest.raises(ft.errors.ArgumentError, match="njit"):
        ft.numba_call(math.sin)
    with pytest.raises(ft.errors.ArgumentError, match="vjp"):
        ft.numba_call(cube, vjp=3)


# --- rules --------------------------------------------------------------------------------------------------------


@numba.njit
def opaque(x, s):
    try:
        return x * x * s
    except Exception:
        return x


@numba.njit
def opaque_vjp(args, out, ct):
    x, s = args
    return 2.0 * x * s * ct, (x * x * ct).sum()


def total(f, x, s):
    return fnp.sum(f(x, s))


@pytest.mark.slow
def test_rules():
    x = np.array([1.0, 2.0, 3.0])
    spec = ft.ShapeDtypeStruct((3,), float)
    by_numba = ft.numba_call(opaque, vjp=opaque_vjp, result_shape_dtypes=spec)
    by_hand = ft.numba_call(
        opaque,
        vjp=lambda args, out, ct: (2.0 * args[0] * args[1] * ct, None),
        result_shape_dtypes=lambda x, s: ft.ShapeDtypeStruct(x.shape, x.dtype),
    )
    pushed = ft.numba_call(
        opaque,
        jvp=lambda args, out, t: 2.0 * args[0] * args[1] * t[0] + args[0] ** 2 * t[1],
        result_shape_dtypes=spec,
    )
    for f in (by_numba, by_hand, pushed):
        np.testing.assert_array_equal(f(x, 2.0), 2.0 * x * x)
        gradient = ft.grad(total, argnums=1)
        for g in (gradient, ft.jit(gradient, static_argnums=0)):
            np.testing.assert_allclose(g(f, x, 2.0), 4.0 * x)
        lanes = ft.vmap(f, (0, None))(np.stack([x, 2 * x]), 2.0)
        np.testing.assert_allclose(lanes, [2 * x * x, 8 * x * x])
    for f in (by_numba, pushed):
        assert float(ft.grad(total, argnums=2)(f, x, 2.0)) == 14.0
    _, t = ft.jvp(lambda s: pushed(x, s), (2.0,), (1.0,))
    np.testing.assert_allclose(t, x * x)
    with pytest.raises(ft.errors.ArgumentError, match="result_shape_dtypes"):
        ft.grad(lambda x: fnp.sum(ft.numba_call(opaque, vjp=opaque_vjp)(x, 2.0)))(x)
    with pytest.raises(ft.errors.GradientStructureError, match="2 arguments"):
        ft.grad(
            lambda x: fnp.sum(ft.numba_call(opaque, vjp=lambda *a: (x,), result_shape_dtypes=spec)(x, 2.0))
        )(x)


@pytest.mark.parametrize("call", [lambda f: f, ft.jit, ft.vmap])
def test_numba_has_no_float16(call):
    x = np.ones(3, np.float16)
    with pytest.raises(
        ft.errors.DtypeError, match=r"closing\S*inner: an argument has dtype float16.*float32"
    ):
        call(closing(2.0))(x)
