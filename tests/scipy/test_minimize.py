"""``minimize`` and ``least_squares``: against published minima, SciPy, and finite differences."""

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize

import functrans as ft
import functrans.numpy as fnp
from functrans import errors
from functrans.scipy.optimize import OptimizeResults, least_squares, minimize, root, root_scalar

sys.path.insert(0, str(Path(__file__).parent))

from nist import REGRESSIONS

METHODS = [
    "BFGS", "CG", "COBYLA", "COBYQA", "L-BFGS", "L-BFGS-B", "Nelder-Mead", "Newton-CG", "Powell", "SLSQP", "TNC",
    "dogleg", "trust-constr", "trust-exact", "trust-krylov", "trust-ncg", None,
]  # fmt: skip


def rosenbrock(x):
    return fnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def himmelblau(x):
    return (x[0] ** 2 + x[1] - 11.0) ** 2 + (x[0] + x[1] ** 2 - 7.0) ** 2


def beale(x):
    y = x[1]
    return (1.5 - x[0] * (1 - y)) ** 2 + (2.25 - x[0] * (1 - y**2)) ** 2 + (2.625 - x[0] * (1 - y**3)) ** 2


#: Function, guess, published minimisers.
PROBLEMS = {
    "rosenbrock": (rosenbrock, [-1.2, 1.0], [[1.0, 1.0]]),
    "rosenbrock in 20": (rosenbrock, np.linspace(-1.0, 1.5, 20), [np.ones(20)]),
    "himmelblau": (
        himmelblau,
        [1.0, 1.0],
        [[3.0, 2.0], [-2.805118, 3.131312], [-3.779310, -3.283186], [3.584428, -1.848126]],
    ),
    "beale": (beale, [1.0, 1.0], [[3.0, 0.5]]),
}


def quartic(x, a):
    """Its minimiser, element by element: ``4 (x - a)**3 + 2 x = 0``."""
    return fnp.sum((x - a) ** 4 + x**2)


def differences(fun, a, h=1e-4):
    return np.stack([(fun(a + h * e) - fun(a - h * e)) / (2 * h) for e in np.eye(a.size)], -1)


A = np.array([1.0, -2.0])


def minimiser(a, tol=1e-11, **settings):
    return minimize(quartic, np.zeros(2), (a,), tol=tol, **settings).x


# --- native loops -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_native_minima_are_the_published_ones(name, method):
    fun, guess, known = PROBLEMS[name]
    found = ft.jit(lambda x: minimize(fun, x, method=method, tol=1e-8))(np.array(guess))
    assert type(found) is OptimizeResults
    assert found.success
    assert found.status == 0
    assert min(np.abs(found.x - x).max() for x in known) < 1e-5
    assert found.fun < 1e-11
    assert np.abs(found.jac).max() <= 1e-8
    assert found.nit < found.nfev == found.njev < 300
    if method == "BFGS":
        hessian = ft.hessian(fun)(found.x)
        assert np.abs(found.hess_inv @ hessian - np.eye(len(guess))).max() < 1.0


def test_native_against_scipy():
    """In as many evaluations, about."""
    for fun, guess, _ in PROBLEMS.values():
        found = ft.jit(lambda x, fun=fun: minimize(fun, x, method="BFGS"))(np.array(guess))
        gradient = ft.jit(ft.grad(fun))
        theirs = scipy.optimize.minimize(lambda x, fun=fun: float(fun(x)), guess, jac=gradient)
        assert found.nfev <= 1.3 * theirs.nfev


def test_lanes_take_their_own_steps():
    starts = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [3.0, 2.0], [np.nan, 0.0]])
    found = ft.jit(ft.vmap(lambda x: minimize(himmelblau, x, method="BFGS")))(starts)
    alone = [minimize(himmelblau, x, options={"line_search_maxiter": 20}) for x in starts[:4]]
    np.testing.assert_array_equal(found.nit[:4], [r.nit for r in alone])
    np.testing.assert_allclose(found.x[:4], [r.x for r in alone], rtol=1e-12)
    assert found.nit[3] == 0
    assert found.success.tolist() == [True] * 4 + [False]


def test_native_options():
    run = lambda **options: ft.jit(lambda x: minimize(rosenbrock, x, options=options))(np.array([-1.2, 1.0]))
    assert (run(maxiter=3).nit, run(maxiter=3).status, run(maxiter=3).success) == (3, 1, False)
    assert np.linalg.norm(run(norm=2, gtol=1e-3).jac) <= 1e-3
    assert not run(line_search_maxiter=1, maxiter=400).nfev > 401
    limited = minimize(
        rosenbrock, [-1.2, 1.0], method="L-BFGS", options={"maxcor": 3, "gtol": 1e-9, "ftol": 0.0}
    )
    np.testing.assert_allclose(limited.x, 1.0, atol=1e-8)
    single = ft.jit(lambda x: minimize(rosenbrock, x, tol=1e-3))(np.array([-1.2, 1.0], np.float32))
    assert single.x.dtype == np.float32
    np.testing.assert_allclose(single.x, 1.0, atol=0.02)


def test_unbounded_and_undefined_functions_fail():
    found = ft.jit(lambda x: minimize(lambda x: fnp.sum(x), x, options={"maxiter": 50}))(np.zeros(2))
    assert not found.success
    found = ft.jit(lambda x: minimize(lambda x: fnp.sum(x - fnp.log(x)), x))(np.array([0.01, 3.0]))
    np.testing.assert_allclose(found.x, 1.0, atol=1e-5)  # steps to where the logarithm is NaN are taken back


# --- SciPy's ------------------------------------------------------------------------------------------------


COBYQA = pytest.param("COBYQA", marks=pytest.mark.needs("scipy>=1.14", reason="new there"))


@pytest.mark.parametrize("method", [COBYQA if method == "COBYQA" else method for method in METHODS])
def test_scipys_methods_with_compiled_derivatives(method):
    """On a tree, with the arguments that each method needs to run without warnings."""
    fun = lambda p: rosenbrock(fnp.stack([p["a"], p["b"][0]])) + p["b"][1] ** 2
    found = minimize(fun, {"a": 1.1, "b": np.array([1.2, 0.1])}, method=method)
    close = 0.25 if method == "COBYLA" else 1e-2
    np.testing.assert_allclose(found.x["a"], 1.0, atol=close)
    np.testing.assert_allclose(found.x["b"], [1.0, 0.0], atol=close)
    assert np.shape(found.fun) == ()
    if method not in ("COBYLA", "COBYQA", "Nelder-Mead", "Powell"):
        assert (found.grad if method == "trust-constr" else found.jac)["b"].shape == (2,)


def test_the_steps_are_those_of_scipy():
    for method in ("BFGS", "L-BFGS-B", "Newton-CG", "trust-exact"):
        exact = {"jac": scipy.optimize.rosen_der}
        if method in ("Newton-CG", "trust-exact"):
            exact["hess"] = scipy.optimize.rosen_hess
        theirs = scipy.optimize.minimize(scipy.optimize.rosen, [-1.2, 1.0, 0.5], method=method, **exact)
        ours = minimize(rosenbrock, [-1.2, 1.0, 0.5], method=method)
        np.testing.assert_allclose(ours.x, theirs.x, atol=1e-5)
        assert abs(ours.nit - theirs.nit) <= 3


def test_bounds_and_constraints():
    tree = {"x": np.zeros(2), "y": 0.5}
    fun = lambda p: rosenbrock(fnp.append(p["x"], p["y"]))
    plain = lambda x: float(rosenbrock(x))
    box = [(None, 0.5), (None, None), (0.1, None)]
    expected = scipy.optimize.minimize(plain, [0, 0, 0.5], bounds=box).x
    lower = {"x": np.full(2, -np.inf), "y": 0.1}
    upper = {"x": np.array([0.5, np.inf]), "y": np.inf}
    for bounds in (
        box,
        (lower, upper),
        scipy.optimize.Bounds([-np.inf, -np.inf, 0.1], [0.5, np.inf, np.inf]),
    ):
        found = minimize(fun, tree, bounds=bounds).x
        np.testing.assert_allclose(fnp.append(found["x"], found["y"]), expected, atol=1e-5)

    within = {"type": "ineq", "fun": lambda p, r: r - fnp.sum(p["x"] ** 2) - p["y"] ** 2, "args": (1.5,)}
    ball = {"type": "ineq", "fun": lambda x: 1.5 - np.sum(x**2)}
    expected = scipy.optimize.minimize(plain, [0, 0, 0.5], constraints=ball).x
    outside = scipy.optimize.NonlinearConstraint(lambda p: fnp.sum(p["x"] ** 2) + p["y"] ** 2, -np.inf, 1.5)
    for constraints in (within, [outside], [within, scipy.optimize.LinearConstraint(np.ones(3), -10, 10)]):
        found = minimize(fun, tree, constraints=constraints).x
        np.testing.assert_allclose(fnp.append(found["x"], found["y"]), expected, atol=1e-4)
    found = minimize(fun, tree, constraints=outside, method="trust-constr").x
    np.testing.assert_allclose(fnp.append(found["x"], found["y"]), expected, atol=1e-4)


def test_the_users_own_derivatives_and_callbacks():
    tree = {"x": -1.2, "y": 1.0}
    fun = lambda p: rosenbrock(np.array([p["x"], p["y"]]))  # numbers, not traced
    jac = lambda p: dict(zip("xy", scipy.optimize.rosen_der(np.array([p["x"], p["y"]]))))
    hess = lambda p: scipy.optimize.rosen_hess(np.array([p["x"], p["y"]]))
    hessp = lambda p, v: dict(zip("xy", hess(p) @ np.array([v["x"], v["y"]])))
    seen = []
    for settings in (
        {"jac": jac, "callback": seen.append},
        {"jac": "2-point"},
        {"jac": jac, "hess": hess, "method": "trust-exact"},
        {"jac": jac, "hessp": hessp, "method": "Newton-CG"},
        {"jac": jac, "callback": lambda intermediate_result: seen.append(intermediate_result.x)},
    ):
        found = minimize(fun, tree, **settings).x
        assert found["x"] == pytest.approx(1.0, abs=1e-4)
    both = minimize(lambda p: (fun(p), jac(p)), tree, jac=True)
    assert both.x["y"] == pytest.approx(1.0, abs=1e-4)
    assert all(set(p) == {"x", "y"} for p in seen)


# --- derivatives --------------------------------------------------------------------------------------------


def quick(method, way):
    return pytest.param(method, way, marks=() if method is None or way == "jit" else pytest.mark.slow)


@pytest.mark.parametrize(
    ("method", "way"),
    [
        quick(method, way)
        for method in (None, "L-BFGS", "CG", "Nelder-Mead")
        for way in ("fwd", "rev", "jit", "vmap")
    ],
)
def test_derivatives_of_the_minimiser(method, way):
    jacobian = {
        "fwd": ft.jacfwd,
        "rev": ft.jacrev,
        "jit": lambda f: ft.jit(ft.jacrev(f)),
        "vmap": lambda f: lambda a: ft.vmap(ft.jacrev(f))(np.stack([2 * a, a]))[1],
    }[way]
    found = jacobian(lambda a: minimiser(a, method=method))(A)
    x = minimiser(A)
    expected = 12 * (x - A) ** 2 / (12 * (x - A) ** 2 + 2)
    np.testing.assert_allclose(found, np.diag(expected), atol=1e-6)


def test_second_derivatives():
    of_x = ft.jit(ft.jacfwd(ft.jacrev(lambda a: minimiser(a)[0])))(A)
    slope = lambda a: ft.jacrev(lambda a: minimiser(a)[0])(a)
    np.testing.assert_allclose(of_x, differences(slope, A), atol=1e-5)
    least = lambda a: minimize(quartic, np.zeros(2), (a,), tol=1e-11).fun
    np.testing.assert_allclose(ft.hessian(least)(A), differences(ft.grad(least), A), atol=1e-6)


def test_derivatives_at_bounds():
    kept = lambda a: minimiser(a, bounds=[(None, 0.1), (None, None)])
    for method in ("L-BFGS-B", "trust-constr"):
        found = ft.jacrev(
            lambda a, method=method: minimiser(a, 1e-9, bounds=[(None, 0.1), (None, None)], method=method)
        )(A)
        np.testing.assert_allclose(found, differences(kept, A), atol=1e-5)
    with pytest.raises(errors.ArgumentError, match="under constraints"):
        ft.jacrev(lambda a: minimiser(a, constraints={"type": "ineq", "fun": lambda x: 1.0 - x[0]}))(A)


def test_gradients_of_trees_and_captured_values():
    def outer(p):
        inner = minimize(
            lambda x: quartic(x["u"], p["a"]) + p["k"] * x["v"] ** 2 - x["v"],
            {"u": np.zeros(2), "v": 0.0},
            tol=1e-11,
        )
        return fnp.sum(inner.x["u"]) + inner.x["v"]

    found = ft.jit(ft.grad(outer))({"a": A, "k": 3.0})
    x = minimiser(A)
    np.testing.assert_allclose(found["a"], 12 * (x - A) ** 2 / (12 * (x - A) ** 2 + 2), atol=1e-6)
    np.testing.assert_allclose(found["k"], -1 / 18, atol=1e-8)


# --- least squares ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REGRESSIONS)
def test_nist_regressions(name):
    """Parameters and the sum of squares to seven digits, standard deviations (from the compiled Jacobian) to six.

    Rounding decides the seventh digit of MGH09's parameters: SciPy with the derivatives written in NumPy is as far away
    (1.6e-7) where the start changes by 1e-10.
    """
    data = REGRESSIONS[name]
    digits = 1e-6 if name == "MGH09" else 1e-7
    residuals = lambda b: data.model(b, data.x) - data.y
    for start in data.starts:
        if name == "BoxBOD" and start is data.starts[0]:
            continue  # SciPy's solver ends far away, where the model is flat
        found = least_squares(
            residuals, start, x_scale="jac", xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=2000
        )
        np.testing.assert_allclose(found.x, data.b, rtol=digits)
        np.testing.assert_allclose(2 * found.cost, data.squares, rtol=1e-9)
    freedom = data.y.size - len(data.b)
    variances = np.diag(np.linalg.inv(found.jac.T @ found.jac)) * 2 * found.cost / freedom
    np.testing.assert_allclose(np.sqrt(variances), data.deviations, rtol=1e-6)


@pytest.mark.parametrize("name", ["Misra1a", "Rat43"])
def test_nist_by_bfgs(name):
    data = REGRESSIONS[name]
    scale = np.array(data.starts[1])
    squares = lambda b: fnp.sum((data.model(b * scale, data.x) - data.y) ** 2)
    found = ft.jit(lambda b: minimize(squares, b, tol=1e-6))(np.ones(scale.size))
    np.testing.assert_allclose(found.x * scale, data.b, rtol=1e-5)
    np.testing.assert_allclose(found.fun, data.squares, rtol=1e-9)


X, Y = REGRESSIONS["Misra1a"].x / 1000, REGRESSIONS["Misra1a"].y


def fitted(y, loss="linear", **settings):
    fun = lambda b, y: {"all": b["scale"] * (1.0 - fnp.exp(-b["rate"] * X)) - y}
    close = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}
    guess = {"scale": 220.0, "rate": 0.5}
    b = least_squares(fun, guess, args=(y,), loss=loss, f_scale=0.1, **close, **settings).x
    return fnp.stack([b["scale"], 100 * b["rate"]])


@pytest.mark.parametrize(
    "loss",
    ["linear", "huber", *[pytest.param(n, marks=pytest.mark.slow) for n in ("soft_l1", "cauchy", "arctan")]],
)
def test_derivatives_of_fits(loss):
    direction = np.cos(np.arange(Y.size))
    expected = (fitted(Y + 1e-4 * direction, loss) - fitted(Y - 1e-4 * direction, loss)) / 2e-4
    jacobian = (
        ft.jit(ft.jacfwd(lambda y: fitted(y, loss)))
        if loss == "linear"
        else ft.jacrev(lambda y: fitted(y, loss))
    )
    np.testing.assert_allclose(jacobian(Y) @ direction, expected, rtol=5e-3)


def test_fits_within_bounds_and_by_other_losses():
    bounds = ({"scale": 0.0, "rate": 0.0}, {"scale": 230.0, "rate": np.inf})
    assert fitted(Y, bounds=bounds)[0] == pytest.approx(230.0)
    assert np.abs(ft.jacrev(lambda y: fitted(y, bounds=bounds))(Y)[0]).max() == 0.0
    robust = lambda z: np.array([np.log1p(z), 1 / (1 + z), -1 / (1 + z) ** 2])
    np.testing.assert_allclose(fitted(Y, robust), fitted(Y, "cauchy"), rtol=1e-6)
    by_differences = least_squares(
        lambda b: np.asarray([10 * (b[1] - b[0] ** 2), 1 - b[0]]), [-1.2, 1], jac="2-point"
    )
    np.testing.assert_allclose(by_differences.x, 1.0, rtol=1e-6)
    cost = ft.grad(lambda y: least_squares(lambda b: b[0] * X - y, [1.0], args=()).cost)(Y)
    np.testing.assert_allclose(cost, Y - X * (X @ Y) / (X @ X), rtol=1e-6)


# --- roots --------------------------------------------------------------------------------------------------


def test_roots_of_trees_with_compiled_jacobians():
    def system(p, k):
        return {"sum": p["u"] + fnp.sum(p["v"]) - k, "products": p["u"] * p["v"] - np.array([1.0, 2.0])}

    guess = {"u": 1.0, "v": np.array([0.5, 1.0])}
    solve = lambda k, **settings: root(system, guess, (k,), tol=1e-13, **settings)
    x = solve(4.0).x  # u + 3 / u = 4
    np.testing.assert_allclose([x["u"], *x["v"]], [1.0, 1.0, 2.0], rtol=1e-9)
    assert solve(4.0).nfev < solve(4.0, jac=False).nfev
    slope = ft.jit(ft.jacfwd(lambda k: solve(k).x))(4.0)
    np.testing.assert_allclose([slope["u"], *slope["v"]], [-0.5, 0.5, 1.0], rtol=1e-7)
    assert "njev" in root(lambda x: [x[0] ** 2 - 2.0], [1.0])


def test_halleys_method_needs_no_derivatives_of_the_user():
    cube = lambda a: root_scalar(lambda x: x**3 - a, method="halley", x0=1.0).root
    assert cube(2.0) == pytest.approx(2 ** (1 / 3), rel=1e-14)
    assert ft.jit(ft.grad(cube))(2.0) == pytest.approx(2 ** (-2 / 3) / 3)


# --- errors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: minimize(rosenbrock, [1j, 0.0]), errors.DtypeError, "x0 must be real"),
        (lambda: minimize(rosenbrock, "a"), errors.ArgumentError, "x0"),
        (lambda: minimize(1.0, [0.0]), errors.ArgumentError, "fun"),
        (lambda: minimize(lambda x: x, [0.0, 1.0]), errors.ArgumentError, "must return a real number"),
        (lambda: minimize(lambda x: None, [0.0]), errors.ArgumentError, "must return a real number"),
        (lambda: minimize(rosenbrock, [0.0, 1.0], method="newton"), errors.ArgumentValueError, "method"),
        (lambda: minimize(rosenbrock, [0.0], method="L-BFGS", options={"eps": 1}), errors.ArgumentValueError, "eps"),
        (lambda: minimize(rosenbrock, [0.0, 1.0], method="L-BFGS", hess=np.eye), errors.ArgumentError, "hess"),
        (lambda: minimize(rosenbrock, [0.0, 1.0], jac=lambda x: x[:1]), errors.ShapeError, "jac has 1 elements"),
        (lambda: minimize(rosenbrock, [0.0, 1.0], jac=True), errors.ArgumentError, "must return a pair"),
        (lambda: least_squares(lambda x: 1j * x, [1.0]), errors.DtypeError, "must return real"),
        (lambda: least_squares(lambda x: x, [1.0], loss="l1"), errors.ArgumentValueError, "loss"),
        (
            lambda: ft.grad(lambda a: minimize(quartic, [0.0], (a,), "CG", options={"maxiter": 1}).x[0])(9.0),
            errors.SolverError,
            "no minimum was found",
        ),
        (
            lambda: ft.grad(lambda a: scipy.optimize.minimize(lambda x: (x - a) ** 2, 0.0).x[0])(1.0),
            errors.TracerArrayConversionError,
            "functrans.scipy.optimize.minimize",
        ),
    ],
)  # fmt: skip
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()
