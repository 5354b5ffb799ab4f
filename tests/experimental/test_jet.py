"""`jet` against published series, nested `jvp`, and itself under transformations."""

from math import comb, factorial

import numpy as np
import pytest
import scipy.special
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.core.trace import eval_trace
from functrans.errors import ArgumentError, CallbackError, GradientError, ShapeError
from functrans.experimental.jet import jet
from functrans.primitives.elementwise.trig import sin_p
from functrans.transforms.jet import JetTrace, JetTracer, Series, _key

ORDER = 9
LINE = ((1.0, *[None] * (ORDER - 1)),)


def nested(f, series, x):
    """Derivatives of ``f(x(t))`` at 0 by nested `jvp`, for the curve with these derivatives."""

    def along(t):
        return f(x + sum(s * (t**k / factorial(k)) for k, s in enumerate(series, 1)))

    derivatives = []
    for _ in series:
        along = (lambda g: lambda t: ft.jvp(g, (t,), (1.0,))[1])(along)
        derivatives.append(along(0.0))
    return derivatives


def close(found, expected, rtol=1e-9):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * (1 + np.abs(np.asarray(b)).max(initial=0)))


# --- published series -----------------------------------------------------------------------------------------


def bernoulli(n):
    """Akiyama and Tanigawa's triangle, in exact arithmetic."""
    from fractions import Fraction

    row = []
    numbers = []
    for m in range(n + 1):
        row.append(Fraction(1, m + 1))
        for j in range(m, 0, -1):
            row[j - 1] = j * (row[j - 1] - row[j])
        numbers.append(-row[0] if m == 1 else row[0])
    return [float(b) for b in numbers]


def test_bernoulli_numbers():
    """``t / (e**t - 1)`` is the reciprocal of the series with the coefficients ``1 / (k + 1)!``."""
    series = [1 / factorial(k + 1) for k in range(1, 13)]
    out, found = jet(lambda g: 1.0 / g, (1.0,), (series,), factorial_scaled=False)
    expected = [b / factorial(k) for k, b in enumerate(bernoulli(12))]
    close([out, *found], expected, 1e-12)


KNOWN = {
    "bell": (lambda t: fnp.exp(fnp.exp(t) - 1), [1, 1, 2, 5, 15, 52, 203, 877, 4140, 21147]),
    "euler": (lambda t: 1 / fnp.cosh(t), [1, 0, -1, 0, 5, 0, -61, 0, 1385, 0]),
    "tangent": (fnp.tan, [0, 1, 0, 2, 0, 16, 0, 272, 0, 7936]),
    "tanh": (fnp.tanh, [0, 1, 0, -2, 0, 16, 0, -272, 0, 7936]),
    "arcsin": (fnp.arcsin, [0, 1, 0, 1, 0, 9, 0, 225, 0, 11025]),
    "arctan": (fnp.arctan, [0, 1, 0, -2, 0, 24, 0, -720, 0, 40320]),
    "log1p": (fnp.log1p, [0, *[(-1) ** (k + 1) * factorial(k - 1) for k in range(1, 10)]]),
    "power": (lambda t: (1 + t) ** 2.5, [factorial(k) * scipy.special.binom(2.5, k) for k in range(10)]),
    "monomial": (lambda t: t**4, [0, 0, 0, 0, 24, 0, 0, 0, 0, 0]),
    "fibonacci": (
        lambda t: 1 / (1 - t - t**2),
        [factorial(k) * f for k, f in enumerate([1, 1, 2, 3, 5, 8, 13, 21, 34, 55])],
    ),
    "catalan": (
        lambda t: 2 / (1 + fnp.sqrt(1 - 4 * t)),
        [factorial(k) * comb(2 * k, k) // (k + 1) for k in range(10)],
    ),
    "bessel": (
        ft.scipy.special.i0,
        [0 if k % 2 else comb(k, k // 2) / 2**k for k in range(10)],
    ),
    "error function": (
        ft.scipy.special.erf,
        [
            k % 2 * 2 / np.sqrt(np.pi) * (-1) ** (k // 2) * factorial(k) / (factorial(k // 2) * max(k, 1))
            for k in range(10)
        ],
    ),
    "log gamma": (
        lambda t: ft.scipy.special.gammaln(1 + t),
        [0, -np.euler_gamma, *[(-1) ** k * factorial(k - 1) * scipy.special.zeta(k) for k in range(2, 10)]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_derivatives_at_zero(name):
    f, expected = KNOWN[name]
    out, found = jet(f, (0.0,), LINE)
    close([out, *found], expected, 1e-11)


@pytest.mark.parametrize("x", [-0.7, 0.0, 0.4])
def test_generating_functions_of_polynomials(x):
    legendre = jet(lambda t: (1 - 2 * x * t + t**2) ** -0.5, (0.0,), LINE, factorial_scaled=False)[1]
    close(legendre, [scipy.special.eval_legendre(k, x) for k in range(1, ORDER + 1)], 1e-12)
    hermite = jet(lambda t: fnp.exp(2 * x * t - t**2), (0.0,), LINE)[1]
    close(hermite, [scipy.special.eval_hermite(k, x) for k in range(1, ORDER + 1)], 1e-12)


# --- nested jvp, and transformations ----------------------------------------------------------------------------

RNG = np.random.default_rng(7)
X = np.array([0.5, 1.5, 0.8])
SERIES = [RNG.standard_normal(3) for _ in range(4)]


@ft.custom_jvp
def by_rule(x):
    return fnp.sin(x)


by_rule.defjvps(lambda t, ans, x: t * fnp.cos(x))


@ft.custom_vjp
def by_pullback(x):
    return fnp.sin(x)


by_pullback.defvjp(lambda x: (by_pullback(x), x), lambda x, ct: (fnp.cos(x) * ct,))


scaled = ft.jit(lambda y, t: y * t)


@ft.custom_jvp
def by_itself(x):
    return fnp.exp(x)


by_itself.defjvp(lambda p, t: (by_itself(*p), by_itself(*p) * t[0]))


@ft.custom_jvp
def of_two(x, y):
    return fnp.sin(x) * y


of_two.defjvp(lambda p, t: (of_two(*p), t[0] * fnp.cos(p[0]) * p[1] + of_two(p[0], t[1])))


@ft.custom_jvp
def by_calls(x):
    return fnp.exp(x), fnp.sin(x)


@by_calls.defjvp
def _(p, t):
    y = fnp.exp(*p)
    choice = lambda y, t: lax.cond(y[0] > -9, lambda y, t: y * t, lambda y, t: t, y, t)
    looped = lax.fori_loop(0, 1, lambda i, c: c * y, t[0])
    return (y, fnp.sin(*p)), ((looped + scaled(y, *t) + ft.jit(choice)(y, *t)) / 3, scaled(fnp.cos(*p), *t))


def loop(x):
    return lax.scan(lambda c, a: (fnp.sin(c) * a, c * a), x[0], x)[1]


FUNCTIONS = {
    "cond": lambda x: lax.cond(x[0] > 0, fnp.sin, lambda x: x * x, x) * x,
    "one constant branch": lambda x: lax.cond(x[0] > 1, lambda x: x * x, fnp.zeros_like, x),
    "branches without operands": lambda x: lax.cond(x[0] > 0, lambda: X + 1, lambda: X) * x,
    "compiled branches without operands": ft.jit(lambda x: lax.cond(x[0] > 0, lambda: 1.5, lambda: 0.5) * x),
    "scan": loop,
    "scan over constants": lambda x: lax.scan(lambda c, a: (c * x * a, c[0]), X, X)[1],
    "while": lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, fnp.sin(c[1]) * x), (0, x))[1],
    "fori": lambda x: lax.fori_loop(0, 3, lambda i, c: c / (1 + x * c), x),
    "checkpoint": ft.checkpoint(lambda x: fnp.exp(x) * fnp.sin(x)),
    "jit": lambda x: ft.jit(lambda x, y: (fnp.tanh(x), y))(x, x * x)[0] * x,
    "grad": lambda x: ft.grad(lambda x: fnp.sum(fnp.sin(x) * x**3))(x),
    "grad of scan": lambda x: ft.grad(lambda x: loop(x).sum())(x),
    "vmap": lambda x: ft.vmap(lambda a: fnp.exp(a) * fnp.sum(x))(x),
    "vmap of while": lambda x: ft.vmap(lambda a: lax.while_loop(lambda c: c < 9, lambda c: c * (1 + a), a))(x),
    "custom_jvp": lambda x: by_rule(x) * x,
    "custom_vjp": lambda x: by_pullback(x) * x,
    "custom_jvp by itself": by_itself,
    "custom_jvp by itself, compiled": ft.jit(by_itself),
    "custom_jvp by calls": lambda x: by_calls(x)[0] * by_calls(x)[1],
    "custom_jvp with constants": lambda x: of_two(x, X) * of_two(0.5 * X, x) + of_two(x, 2.0),
    "checkpoint of a rule": ft.checkpoint(lambda x: by_itself(x) * x),
    "a hook": lambda x: ft.cotangent_hook(fnp.sin(x), lambda ct: ct) * x,
    "integers": lambda x: x * fnp.floor(x).astype(int) + fnp.round(x),
    "nothing": lambda x: fnp.sin(x) * 0.0 + X,
    "powers": lambda x: x**3 / (1 + x**2),
    "grad of custom_jvp": ft.vmap(ft.grad(by_rule)),
    "products": lambda x: (x @ x) * fnp.outer(x, x) @ x,
    "convolve": lambda x: fnp.convolve(x, x * x),
    "max": lambda x: fnp.max(x * x) + fnp.sort(x)[1] + fnp.minimum(x, 1.0),
    "cumprod": fnp.cumprod,
    "gather": lambda x: x[fnp.array([2, 0, 2])] * fnp.asarray(x).at[1].set(x[0] ** 2),
    "solve": lambda x: fnp.linalg.solve(fnp.outer(x, x) + 2 * fnp.eye(3), x),
    "cholesky": lambda x: fnp.linalg.cholesky(fnp.outer(x, x) + fnp.eye(3)),
    "eigh": lambda x: fnp.linalg.eigh(fnp.outer(x, x) + fnp.diag(fnp.array([1.0, 3.0, 9.0])))[0],
    "complex": lambda x: fnp.abs(fnp.exp(1j * x) + x) ** 2,
    "single precision": lambda x: fnp.sin(x.astype(np.float32)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_like_nested_jvp(name):
    f = FUNCTIONS[name]
    rtol = 2e-5 if "single" in name else 1e-9
    expected = nested(f, SERIES, X)
    for order in (1, 4):
        out, found = jet(f, (X,), (SERIES[:order],))
        close([out], [f(X)], rtol)
        assert {np.asarray(d).dtype for d in found} == {np.asarray(out).dtype}
        close(found, expected[:order], rtol)


@pytest.mark.parametrize("name", ["scan", "cond", "custom_jvp", "solve"])
def test_compiled_batched_and_differentiated(name):
    f = FUNCTIONS[name]

    def last(x, series):
        return jet(f, (x,), (series,))[1][-1].sum()

    expected = last(X, SERIES)
    close([ft.jit(last)(X, SERIES)], [expected])
    batch = np.stack([X, X + 0.1]), [np.stack([s, s]) for s in SERIES]
    close(ft.vmap(last)(*batch), [expected, last(X + 0.1, SERIES)])
    slope = ft.grad(last)(X, SERIES) @ SERIES[0]
    h = 1e-4
    numeric = (last(X + h * SERIES[0], SERIES) - last(X - h * SERIES[0], SERIES)) / (2 * h)
    np.testing.assert_allclose(slope, numeric, rtol=1e-5)


STEPS = ["sin", "exp", "tanh", "square", "arctan", "log1p", "sqrt", "mul", "div", "sum"]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.sampled_from(STEPS), min_size=1, max_size=6),
    st.sampled_from([(), (1,), (0,), (2, 3), (3, 1)]),
    st.integers(1, 5),
    st.integers(0, 99),
)
def test_programs(steps, shape, order, seed):
    def f(x):
        y = x
        for name in steps:
            if name == "mul":
                y = y * x
            elif name == "div":
                y = x / (1.5 + fnp.cos(y))
            elif name == "sum":
                y = fnp.sum(y) + x
            elif name in ("sqrt", "log1p"):
                y = getattr(fnp, name)(y * y + 0.5)
            else:
                y = getattr(fnp, name)(fnp.sin(y))
        return y

    random = np.random.default_rng(seed)
    x = random.uniform(-1, 1, shape)
    series = [
        random.uniform(-1, 1, shape)[..., ::-1] if shape else random.uniform(-1, 1) for _ in range(order)
    ]
    expected = nested(f, series, x)
    close(jet(f, (x,), (series,))[1], expected, 1e-8)


# --- arguments ------------------------------------------------------------------------------------------------


def test_pytrees_constants_and_several_arguments():
    def f(p, n, y):
        return {"a": p["w"] * y, "b": (n, fnp.sum(p["w"]))}

    p, v = {"w": X}, {"w": SERIES[0]}
    out, series = jet(f, (p, 3, 2.0), ((v, None), (None, None), (1.0, 0)))
    assert out["b"][0] == 3
    close(series["a"], [SERIES[0] * 2 + X, 2 * SERIES[0]])
    close(series["b"][1], [SERIES[0].sum(), 0.0])
    assert [float(z) for z in series["b"][0]] == [0.0, 0.0]
    assert isinstance(series["a"], list)
    assert jet(fnp.sin, (1.0,), ((),))[1] == []


def test_the_curve_of_the_argument():
    """By Faa di Bruno's formula: ``(f o h)'' = f'' h'**2 + f' h''``."""
    h, h1, h2 = 0.5**3, 3 * 0.5**2, 6 * 0.5
    out, (f1, f2) = jet(fnp.sin, (h,), ((h1, h2),))
    close([out, f1, f2], [np.sin(h), np.cos(h) * h1, -np.sin(h) * h1**2 + np.cos(h) * h2], 1e-14)
    _, plain = jet(fnp.sin, (h,), ((h1, h2 / 2),), factorial_scaled=False)
    close(plain, [f1, f2 / 2], 1e-14)


def test_a_curve_that_begins_with_no_slope():
    """Of ``x = 1 + t**2 + t**4 / 24``, at ``t = 0``: the coefficients of the powers of a polynomial."""
    curve = (0.0, 2.0, 0.0, 1.0)
    fourth = 24 * (3 / 24 + 3)
    close(jet(lambda x: x**3, (1.0,), (curve,))[1], [0.0, 6.0, 0.0, fourth], 1e-14)
    # f'' = e^x x''; f = e^x (3 x**2 + x)
    close(jet(fnp.exp, (1.0,), (curve,))[1], np.e * np.array([0.0, 2.0, 0.0, 13.0]), 1e-14)


def test_a_variable_of_an_outer_jet_is_a_constant_of_the_inner_one():
    """``d2/dx2 of x y'' at y = x``, where the inner derivative does not see that `x` varies."""

    def inner(x):
        return jet(lambda y: x**3 * y**4, (x,), ((1.0, 0.0),))[1]

    def outer(x):
        return jet(lambda x: inner(x)[0] * x, (x,), ((1.0, 0.0),))

    value, (first, second) = outer(0.7)
    close([value, first, second], [4 * 0.7**7, 28 * 0.7**6, 168 * 0.7**5], 1e-13)
    (_, (slope, bend)) = jet(lambda x: inner(x)[1], (0.7,), ((1.0, 0.0),))
    close([slope, bend], [12 * 5 * 0.7**4, 12 * 20 * 0.7**3], 1e-13)


def test_the_series_of_what_another_trace_computes_is_one_coefficient():
    one = JetTrace(eval_trace)
    other = JetTrace(one)
    own = JetTracer(one, Series([X, X], 1))
    assert one.series(own) is own.series
    for constant, trace in ((X, one), (2.0, one), (own, other)):
        found = trace.series(constant)
        assert (len(found.known), found.order) == (1, 0)
        assert found.known[0] is constant


def test_what_is_zero_costs_nothing():
    jaxpr = ft.make_jaxpr(lambda x: jet(lambda x: 3.0 * x, (x,), ((1.0, *[None] * 7),))[0])(1.0)
    assert len(jaxpr.eqns) == 1


def test_cost_grows_with_the_square_of_the_order():
    def operations(order):
        def f(x, v):
            return jet(lambda x: fnp.exp(fnp.sin(fnp.tanh(x)) / x), (x,), ((v, *[None] * (order - 1)),))[1]

        return len(ft.make_jaxpr(f)(1.0, 1.0).eqns)

    counts = [operations(d) for d in (4, 8, 16)]
    assert counts[1] < 4.5 * counts[0]
    assert counts[2] < 4.5 * counts[1]


def test_errors():
    with pytest.raises(ArgumentError, match="primals must be a sequence"):
        jet(fnp.sin, 1.0, ((1.0,),))
    with pytest.raises(ArgumentError, match="an entry for each of the 1 primals, got 2"):
        jet(fnp.sin, (1.0,), ((1.0,), (1.0,)))
    with pytest.raises(ArgumentError, match=r"has 2 terms, that of argument 0 .* has 1"):
        jet(fnp.add, (1.0, 1.0), ((1.0,), (1.0, 0.0)))
    with pytest.raises(ArgumentError, match="must be a tuple or list of derivatives, got float"):
        jet(fnp.sin, (1.0,), (1.0,))
    with pytest.raises(ShapeError, match=r"term 2 has shape \(2,\), but its primal has shape \(3,\)"):
        jet(fnp.sin, (X,), ((X, np.ones(2)),))
    with pytest.raises(GradientError, match="complex"):
        jet(fnp.sin, (X,), ((1j * X,),))
    with pytest.raises(CallbackError, match="no derivative"):
        jet(lambda x: ft.pure_callback(np.sin, ft.ShapeDtypeStruct((3,), float), x), (X,), ((X,),))


def test_a_hook_inside_sees_the_cotangent_of_its_value():
    """Around `jet` runs reverse mode: the derivative of the function's value, and of its coefficients beside it."""
    seen = []

    def f(x):
        y = fnp.sin(x)
        ft.register_hook(y, lambda ct: seen.append(float(ct)))
        return y * y

    def value(x):
        return jet(f, (x,), ((1.0, 0.0),))[0]

    np.testing.assert_allclose(ft.grad(value)(0.4), np.sin(0.8))
    np.testing.assert_allclose(seen, [2 * np.sin(0.4)])


def test_of_no_arguments_there_are_no_coefficients():
    out, found = jet(lambda: 2.0, (), ())
    assert (out, found) == (2.0, [])


def test_equal_operations_are_found_by_what_can_be_hashed():
    x = Series([1.0, 2.0], 1)
    assert _key(sin_p, [1.0], [x], {"at": 1}) == _key(sin_p, [1.0], [x], {"at": 1})
    assert _key(sin_p, [1.0], [x], {"at": []}) is None


@pytest.mark.parametrize("name", ["arctan2", "hypot", "logaddexp", "power", "solve", "maximum", "sort"])
def test_operations_on_variables_of_two_jets(name):
    def of(x, y):
        if name == "solve":
            return fnp.linalg.solve(
                fnp.array([[2.0, 1.0], [1.0, 3.0]]) + x * fnp.eye(2), fnp.array([y, y * y])
            )[0]
        if name == "sort":
            return fnp.sort(fnp.array([x * y, 2.0, y]))[1] * x
        return getattr(fnp, name)(x + 1.0, y * y)

    def inner(x):
        return jet(lambda y: of(x, y), (2.0 * x,), ((1.0, 0.5, -0.2),))[1][2]

    def outer(x):
        return nested(lambda y: of(x, y), (1.0, 0.5, -0.2), 2.0 * x)[2]

    value, series = jet(inner, (0.7,), ((1.0, 0.3),))
    close([value, *series], [outer(0.7), *nested(outer, (1.0, 0.3), 0.7)], 1e-10)
