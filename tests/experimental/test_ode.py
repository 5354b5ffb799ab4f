"""``odeint``: solutions against SciPy's and closed forms, derivatives against closed forms and finite differences."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import functrans as ft
import functrans.numpy as fnp
from functrans import errors
from functrans.experimental.ode import odeint

MODES = pytest.mark.parametrize("gradient", ["adjoint", "direct"])
T = np.linspace(0.0, 2.0, 4)


def grow(y, t, rate):
    return rate * y * (1.0 - y)


def grown(rate, y0, t):
    """The solution of `grow`: Verhulst's logistic function."""
    return 1.0 / (1.0 + (1.0 / y0 - 1.0) * np.exp(-rate * (t - t[0])))


def in_rate(rate, y0, t):
    y = grown(rate, y0, t)
    return y * (1.0 - y) * (t - t[0])


def in_start(rate, y0, t):
    y = grown(rate, y0, t)
    return y * (1.0 - y) / (y0 * (1.0 - y0))


def lotka_volterra(y, t, p):
    return fnp.stack([(p[0] - p[1] * y[1]) * y[0], (-p[2] + p[3] * y[0]) * y[1]])


def lorenz(y, t, p):
    a, b, c = p
    return fnp.stack([a * (y[1] - y[0]), y[0] * (b - y[2]) - y[1], y[0] * y[1] - c * y[2]])


def forced(y, t, p):
    return fnp.stack([y[1], p * fnp.cos(3.0 * t) - y[0] ** 3 - 0.1 * y[1]])


SYSTEMS = {
    "lotka_volterra": (
        lotka_volterra, [30.0, 4.0], np.linspace(0, 10, 6), np.array([0.55, 0.028, 0.8, 0.024])
    ),
    "lorenz": (lorenz, [1.0, 2.0, 3.0], np.linspace(0, 2, 5), (10.0, 28.0, 8.0 / 3.0)),
    "forced": (forced, [1.0, 0.0], np.array([0.0, 0.1, 5.0, 5.5]), 2.0),
    "backward": (forced, [1.0, 0.0], np.array([1.0, 0.5, -4.0]), 2.0),
}  # fmt: skip


@pytest.mark.parametrize("name", SYSTEMS)
def test_solutions_are_scipys(name):
    func, y0, t, p = SYSTEMS[name]
    plain = lambda t, y: np.asarray(func(y, t, p))
    expected = solve_ivp(plain, (t[0], t[-1]), y0, method="DOP853", t_eval=t, rtol=1e-12, atol=1e-12).y.T
    found = odeint(func, np.array(y0), t, p)
    np.testing.assert_allclose(found, expected, rtol=3e-6, atol=3e-6)
    closer = odeint(func, np.array(y0), t, p, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(closer, expected, rtol=2e-9, atol=2e-9)


def test_the_error_falls_with_the_tolerance():
    errors_ = [
        np.abs(odeint(grow, 0.1, T, 3.0, rtol=r, atol=r) - grown(3.0, 0.1, T)).max()
        for r in (1e-4, 1e-6, 1e-8, 1e-10)
    ]
    assert all(e < 10 * r for e, r in zip(errors_, (1e-4, 1e-6, 1e-8, 1e-10)))
    assert errors_[0] > 100 * errors_[-1]


def test_trees_and_complex_numbers():
    def wave(y, t, k):
        return {"z": 1j * k * y["z"], "x": (y["x"][1], -y["x"][0]), "n": 2.0 * t}

    y0 = {"z": np.array([1.0, 2j]), "x": (1.0, 0), "n": np.float32(1)}
    y = odeint(wave, y0, T, 2.0)
    np.testing.assert_allclose(y["z"], np.exp(2j * T)[:, None] * y0["z"], atol=3e-7)
    np.testing.assert_allclose(y["x"], [np.cos(T), -np.sin(T)], atol=1e-7)
    np.testing.assert_allclose(y["n"], 1 + T**2, rtol=1e-6)
    assert (y["x"][0].dtype, y["n"].dtype) == (np.float64, np.float32)


def test_single_precision_and_times():
    y = odeint(grow, np.float32(0.5), T.astype(np.float32), 1.0, rtol=1e-5, atol=1e-5)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, grown(1.0, 0.5, T), rtol=1e-4)
    np.testing.assert_allclose(odeint(grow, 0.5, [0, 1, 2], 1.0), grown(1.0, 0.5, np.arange(3)), rtol=1e-7)
    np.testing.assert_array_equal(odeint(grow, 0.5, [1.0, 1.0], 1.0), [0.5, 0.5])
    np.testing.assert_array_equal(odeint(lambda y, t: 0.0 * y, np.ones(2), T), np.ones((4, 2)))
    assert odeint(lambda y, t: y, np.zeros((0, 2)), T).shape == (4, 0, 2)


def combined(ways, *quick):
    """Ways with gradients, of which all but some are left to slow runs."""
    rows = [(w, g) for w in ways for g in ("adjoint", "direct")]
    return [pytest.param(*row, marks=() if row in quick else pytest.mark.slow) for row in rows]


@pytest.mark.parametrize(
    ("way", "gradient"),
    combined(["jacfwd", "jit", "jacrev"], ("jacfwd", "adjoint"), ("jit", "adjoint"), ("jit", "direct")),
)
def test_derivatives(way, gradient):
    jacobian = {"jacfwd": ft.jacfwd, "jacrev": ft.jacrev, "jit": lambda f, n: ft.jit(ft.jacrev(f, n))}[way]
    f = lambda rate, y0, t: odeint(grow, y0, t, rate, gradient=gradient)
    found = jacobian(f, (0, 1, 2))(1.3, 0.4, T + 1.0)
    y = grown(1.3, 0.4, T)
    slope = 1.3 * y * (1 - y)
    in_times = np.diag(slope)
    in_times[:, 0] -= slope
    np.testing.assert_allclose(found[0], in_rate(1.3, 0.4, T), atol=1e-6)
    np.testing.assert_allclose(found[1], in_start(1.3, 0.4, T), atol=1e-6)
    np.testing.assert_allclose(found[2], in_times, atol=1e-6)


SECOND = {
    "reverse over reverse": lambda f: ft.jacrev(ft.jacrev(f)),
    "reverse over forward": lambda f: ft.jacrev(ft.jacfwd(f)),
    "forward over forward": lambda f: ft.jacfwd(ft.jacfwd(f)),
    "jit": lambda f: ft.jit(ft.hessian(f)),
}


@pytest.mark.parametrize(("way", "gradient"), combined(SECOND, ("jit", "adjoint")))
def test_second_derivatives(way, gradient):
    f = lambda p: odeint(grow, p[1], T, p[0], gradient=gradient)[2]
    p = np.array([1.3, 0.4])
    slopes = lambda p: np.array([in_rate(p[0], p[1], T)[2], in_start(p[0], p[1], T)[2]])
    expected = [(slopes(p + 1e-5 * e) - slopes(p - 1e-5 * e)) / 2e-5 for e in np.eye(2)]
    np.testing.assert_allclose(SECOND[way](f)(p), expected, atol=1e-5)


@MODES
def test_gradients_of_trees_and_closures(gradient):
    rng = np.random.default_rng(0)
    weights = {"w": rng.normal(size=(3, 3)), "b": rng.normal(size=3)}
    y0 = {"a": np.array([0.1, 0.2]), "b": 0.3}

    def loss(weights, y0, scale):
        def func(y, t, weights):
            h = fnp.tanh(weights["w"] @ fnp.append(y["a"], y["b"]) + t * weights["b"])
            return {"a": scale * h[:2], "b": h[2]}

        y = odeint(func, y0, T, weights, gradient=gradient)
        return fnp.sum(y["a"] ** 2) + fnp.sum(y["b"])

    args = weights, y0, 0.7
    found = ft.jit(ft.grad(loss, (0, 1, 2)))(*args)
    flat, unravel = ft.flatten_util.ravel_pytree(args)
    direction = rng.normal(size=flat.shape)
    step = lambda h: ft.jit(loss)(*unravel(flat + h * direction))
    expected = (step(1e-5) - step(-1e-5)) / 2e-5
    np.testing.assert_allclose(ft.flatten_util.ravel_pytree(found)[0] @ direction, expected, rtol=1e-6)


@pytest.mark.parametrize("gradient", ["adjoint", pytest.param("direct", marks=pytest.mark.slow)])
def test_complex_gradients(gradient):
    z0 = np.array([1.0 + 0.5j, 2j])
    f = lambda k, z: fnp.sum((odeint(lambda z, t: 1j * k * z, z, T, gradient=gradient)[-1]).real)
    in_k, in_z = ft.grad(f, (0, 1))(2.0, z0)
    np.testing.assert_allclose(in_k, np.sum(1j * T[-1] * np.exp(2j * T[-1]) * z0).real, rtol=1e-6)
    np.testing.assert_allclose(in_z, np.full(2, np.exp(2j * T[-1])), rtol=1e-6)  # JAX's convention


@MODES
def test_lanes_take_their_own_steps(gradient):
    """And one that needs too many steps does not spoil the others."""
    rates = np.array([0.1, 1.0, 400.0])
    f = lambda rate: odeint(grow, 0.5, T, rate, mxstep=60, gradient=gradient)
    values, slopes = ft.jit(ft.vmap(lambda r: (f(r), ft.grad(lambda r: f(r)[-1])(r))))(rates)
    for i in (0, 1):
        np.testing.assert_allclose(values[i], grown(rates[i], 0.5, T), rtol=1e-6)
        np.testing.assert_allclose(slopes[i], in_rate(rates[i], 0.5, T)[-1], atol=1e-6)
    assert values[2, 0] == 0.5
    assert np.isnan(values[2, 1:]).all()


def test_what_is_not_reached_is_nan():
    assert np.isnan(odeint(lambda y, t: y**2, 1.0, T, mxstep=10_000)[2:]).all()  # infinite at 1
    assert np.isnan(odeint(lambda y, t: -1e6 * y, 1.0, T, mxstep=50)[1:]).all()
    assert np.isnan(odeint(grow, np.nan, T, 1.0)).all()
    unordered = ft.jit(lambda t: odeint(grow, 0.5, t, 1.0))(np.array([0.0, 1.0, 0.2, 2.0]))
    assert np.isnan(unordered).tolist() == [False, False, True, False]


def test_direct_derivatives_of_a_decay_where_the_adjoint_is_unstable():
    decay = lambda k, g: odeint(lambda y, t: -k * y, 1.0, np.array([0.0, 1.0]), gradient=g)[1]
    assert ft.grad(decay)(30.0, "direct") == pytest.approx(-np.exp(-30.0), abs=1e-7)


def test_bounds_may_be_traced():
    f = ft.jit(lambda tol, h: odeint(grow, 0.5, T, 1.0, rtol=tol, atol=tol, hmax=h))
    assert np.abs(f(1e-2, 1.0) - grown(1.0, 0.5, T)).max() > np.abs(f(1e-9, 0.1) - grown(1.0, 0.5, T)).max()
    assert ft.grad(lambda tol: odeint(grow, 0.5, T, 1.0, rtol=tol)[1])(1e-6) == 0.0


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: odeint(grow, 0.5, [0.0, 2.0, 1.0], 1.0), errors.ArgumentValueError, "ascending or desc"),
        (lambda: odeint(grow, 0.5, 1.0, 1.0), errors.ShapeError, "t must be a vector"),
        (lambda: odeint(grow, 0.5, [], 1.0), errors.ShapeError, "t must be a vector"),
        (lambda: odeint(grow, 0.5, [1j], 1.0), errors.DtypeError, "t must hold real"),
        (lambda: odeint(grow, 0.5, T, 1.0, rtol=-1.0), errors.ArgumentValueError, "rtol must be zero or pos"),
        (lambda: odeint(grow, 0.5, T, 1.0, rtol=0, atol=0), errors.ArgumentValueError, "rtol or atol"),
        (lambda: odeint(grow, 0.5, T, 1.0, mxstep=0), errors.ArgumentValueError, "mxstep must be positive"),
        (lambda: odeint(grow, 0.5, T, 1.0, hmax="a"), errors.ArgumentError, "hmax"),
        (lambda: odeint(grow, 0.5, T, 1.0, gradient="x"), errors.ArgumentValueError, "gradient"),
        (lambda: odeint(grow, "a", T, 1.0), errors.ArgumentError, "y0"),
        (lambda: odeint(1.0, 0.5, T), errors.ArgumentError, "func"),
        (lambda: odeint(grow, 0.5, T, "a"), errors.ArgumentError, r"args\[0\]"),
        (lambda: odeint(lambda y, t: y[:1], np.ones(2), T), errors.ShapeError, "where y0 has"),
        (lambda: odeint(lambda y, t: (y, y), 1.0, T), errors.ArgumentError, "structure of y0"),
        (lambda: odeint(lambda y, t: 1j * y, 1.0, T), errors.DtypeError, "y0 must be"),
    ],
)  # fmt: skip
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_io_callback_is_where_jax_has_it():
    seen = []
    show = lambda x: ft.experimental.io_callback(lambda v: seen.append(float(v)), None, x)
    ft.jit(lambda x: show(2.0 * x))(3.0)
    assert seen == [6.0]
    assert ft.experimental.io_callback is ft.io_callback


def test_the_right_hand_side_may_return_a_list():
    t = np.linspace(0.0, 1.0, 3)
    expected = np.stack([np.cos(t), -np.sin(t)], 1)
    start = np.array([1.0, 0.0])
    for f in (lambda y, t: [y[1], -y[0]], lambda y, t: (y[1], -y[0])):
        np.testing.assert_allclose(odeint(f, start, t), expected, atol=1e-7)
        np.testing.assert_allclose(ft.jit(lambda y, f=f: odeint(f, y, t))(start), expected, atol=1e-7)
        np.testing.assert_allclose(np.stack(odeint(f, [1.0, 0.0], t), 1), expected, atol=1e-7)
    rows = odeint(lambda y, t: fnp.stack([y[1], -y[0]]), [1.0, 0.0], t)
    assert isinstance(rows, list)
    np.testing.assert_allclose(np.stack(rows, 1), expected, atol=1e-7)
    with pytest.raises(errors.ShapeError, match=r"must return|shape"):
        odeint(lambda y, t: [y[1]], start, t)
    with pytest.raises(errors.ArgumentError, match="structure of y0"):
        odeint(lambda y, t: {"a": y}, start, t)
