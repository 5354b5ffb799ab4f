"""Distributions under transformations, and frozen ones: all functions of a distribution in one program."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.stats
from distribution_cases import SHAPES

import functrans as ft
from functrans.errors import ArgumentError, NoAttributeError
from functrans.scipy import stats
from functrans.testing.finite_difference import directional_derivative

DISCRETE = [name for name in SHAPES if hasattr(getattr(stats, name), "pmf")]
#: Where SciPy has NaN or a value outside of the support, computes ``ppf(1 - q)``, or stops a sum early, or multiplies
#: by a number that has lost digits near the smallest.
SCIPY_FAILS = {
    ("geom", "entropy"): (1.0,),
    ("nbinom", "entropy"): (0.5, 0.01),
    ("poisson", "entropy"): (1e4,),
    **dict.fromkeys([("vonmises", f) for f in ("cdf", "sf", "logcdf", "logsf", "ppf", "isf")], (40.0,)),
    ("geom", "ppf"): (1.0,),
    ("truncnorm", "isf"): ...,
    ("halfnorm", "ppf"): ...,
    ("maxwell", "pdf"): ...,
}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def functions_of(name):
    """The functions of arrays of a distribution, without entropy, in order."""
    return [f for f in getattr(stats, name).__all__ if f != "entropy"]


def places(name):
    return [(0.5, 2.0)] if name not in DISCRETE else [(3,)]


def all_of(name):
    """A function of (x, q, *shapes, *places) that returns what all functions do."""
    module = getattr(stats, name)
    chosen = [(getattr(module, f), f in ("ppf", "isf")) for f in functions_of(name)]

    def everything(x, q, *parameters):
        return tuple(f(q if of_q else x, *parameters) for f, of_q in chosen)

    return everything


class Point:
    """Arguments at which all functions are smooth, random directions and weights.

    Integers are held, and the parameters of the incomplete beta function for second derivatives, which has none.
    """

    def __init__(self, name, seed=0, order=1):
        random = np.random.default_rng(seed)
        shapes = [np.asarray(a, float) for a in SHAPES[name][0]]
        if name in DISCRETE:
            x = (
                {"bernoulli": 0, "geom": 1}.get(name, 0)
                + 3
                + np.array([0.0, 1.0, float(name != "bernoulli")])
            )
        elif name in ("beta", "uniform"):
            x = 0.5 + 2 * random.uniform(0.1, 0.9, 3)
        else:
            x = {"truncnorm": -0.9, "pareto": 1.1}.get(name, 0) + 3.5 + 2 * random.uniform(0.1, 0.9, 3)
        everything = [x, random.uniform(0.1, 0.9, 3), *shapes, *[np.float64(v) for v in places(name)[0]]]
        held = [0, len(everything) - 1] if name in DISCRETE else []
        held += [2] if name in ("binom", "betabinom") else []
        held += range(2, 2 + len(shapes)) if order == 2 and name in OF_BETA else []
        self.free = [i for i in range(len(everything)) if i not in held]
        self.values = [everything[i] for i in self.free]
        self.everything, self.all = everything, all_of(name)
        self.directions = [random.normal(size=np.shape(v)) for v in self.values]
        self.weights = [random.normal(size=3) for _ in functions_of(name)]

    def f(self, *values):
        arguments = list(self.everything)
        for i, v in zip(self.free, values):
            arguments[i] = v
        return tuple(y + np.zeros(3) for y in self.all(*arguments))  # not all depend on x or q

    def derivatives(self, values, directions, weights):
        """Values, tangents, cotangents."""
        out, tangents = ft.jvp(self.f, tuple(values), tuple(directions))
        return out, tangents, self.gradient(values, weights)

    def gradient(self, values, weights):
        return ft.vjp(self.f, *values)[1](tuple(weights))

    def now(self):
        return self.derivatives(self.values, self.directions, self.weights)


OF_BETA = ("beta", "binom", "f", "nbinom", "t")


def agree(got, expected, rtol=1e-9, atol=0.0):
    for g, e in zip(ft.tree_util.tree_leaves(got), ft.tree_util.tree_leaves(expected), strict=True):
        size = np.max(np.abs(e), initial=0)
        np.testing.assert_allclose(g, e, rtol=rtol, atol=rtol * size + atol)


@pytest.mark.wide(3)
@pytest.mark.parametrize("name", SHAPES)
def test_transformations(name):
    """Both modes, second order, jit and vmap, against finite differences and each other."""
    point, other = Point(name), Point(name, 1)
    out, tangents, cotangents = point.now()
    compiled = ft.jit(point.derivatives)
    agree(compiled(point.values, point.directions, point.weights), (out, tangents, cotangents), 1e-11)
    lanes = [np.stack(v) for v in zip(point.values, other.values)]
    agree(ft.vmap(point.f)(*lanes), [np.stack(v) for v in zip(out, point.f(*other.values))], 1e-12)

    slopes, errors = directional_derivative(
        lambda v: [np.asarray(y) for y in point.f(*v)], point.values, point.directions
    )
    for function, t, s, error in zip(functions_of(name), tangents, slopes, errors):
        slack = 1e-7 * max(1.0, np.abs(s).max()) + 30 * np.max(error)
        np.testing.assert_allclose(t, s, rtol=0, atol=slack, err_msg=function)
    left = sum(np.vdot(t, w) for t, w in zip(tangents, point.weights))
    right = sum(np.vdot(d, c) for d, c in zip(point.directions, cotangents))
    assert abs(left - right) < 1e-8 * (1 + abs(left)), "the modes disagree"

    point = Point(name, order=2) if name in OF_BETA else point
    gradient = ft.jit(lambda v: point.gradient(v, point.weights))
    bends = ft.jvp(lambda *v: point.gradient(v, point.weights), tuple(point.values), tuple(point.directions))[
        1
    ]
    slopes, errors = directional_derivative(
        lambda v: [np.asarray(c) for c in gradient(v)], point.values, point.directions
    )
    for b, s, error in zip(bends, slopes, errors):
        slack = 1e-6 * max(1.0, np.abs(s).max()) + 30 * np.max(error)
        np.testing.assert_allclose(b, s, rtol=0, atol=slack)


@pytest.mark.parametrize("name", SHAPES)
def test_a_frozen_distribution_has_scipys_functions(name):
    ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
    shapes = SHAPES[name][0]
    frozen, expected = ours(*shapes, loc=1.0), theirs(*shapes, loc=1.0)
    x = np.array([0.2, 1.0, 2.0, 3.0])
    for function in ours.__all__:
        if (name, function) in SCIPY_FAILS:
            continue
        quantiles = function in ("ppf", "isf")
        points = () if function == "entropy" else (np.array([0.1, 0.5, 0.9]) if quantiles else x,)
        np.testing.assert_allclose(
            getattr(frozen, function)(*points), getattr(expected, function)(*points), rtol=1e-9, atol=1e-300
        )
    assert repr(frozen).startswith(f"{name}(")
    again = pickle.loads(pickle.dumps(frozen))
    assert again.dist is ours
    assert list(again.kwds) == list(frozen.kwds)


def test_frozen_distributions_under_transformations():
    x, mu = np.array([0.3, 1.7]), 0.5
    loss = lambda mu, s: stats.norm(mu, scale=s).logpdf(x).sum()
    expected = [(x - mu).sum() / 4, ((x - mu) ** 2 / 8 - 0.5).sum()]
    for gradient in (ft.grad(loss, (0, 1)), ft.jit(ft.grad(loss, (0, 1)))):
        np.testing.assert_allclose(gradient(mu, 2.0), expected)
    cdf = ft.jit(lambda d, x: d.cdf(x))
    np.testing.assert_allclose(cdf(stats.gamma(2.0, scale=x), x), scipy.stats.gamma(2.0, scale=x).cdf(x))
    lanes = ft.vmap(stats.norm)(x)
    np.testing.assert_allclose(ft.vmap(lambda d: d.sf(0.2))(lanes), scipy.stats.norm(x).sf(0.2))
    slopes = ft.grad(lambda d: d.logpdf(1.0))(stats.norm(0.0, 2.0))
    assert slopes.kwds == {"loc": 0.25, "scale": -0.375}
    mine = np.array([0.0])
    kept = stats.norm(mine)
    mine[:] = 9.0
    assert kept.kwds["loc"] == 0.0


def test_frozen_distributions_of_vectors():
    mean, cov = np.array([1.0, 2.0]), np.array([[2.0, 0.5], [0.5, 1.0]])
    ours, theirs = stats.multivariate_normal(mean, cov), scipy.stats.multivariate_normal(mean, cov)
    np.testing.assert_allclose(ours.logpdf([0.0, 1.0]), theirs.logpdf([0.0, 1.0]))
    np.testing.assert_allclose(ours.pdf(x=[0.0, 1.0]), theirs.pdf([0.0, 1.0]))
    singular = stats.multivariate_normal(mean, cov, allow_singular=True)
    np.testing.assert_allclose(singular.entropy(), theirs.entropy())
    np.testing.assert_allclose(
        stats.dirichlet([1.0, 2.0]).pdf([0.4, 0.6]), scipy.stats.dirichlet([1, 2]).pdf([0.4, 0.6])
    )
    p = [0.2, 0.3, 0.5]
    np.testing.assert_allclose(
        stats.multinomial(6, p).pmf([1, 2, 3]), scipy.stats.multinomial(6, p).pmf([1, 2, 3])
    )


def test_frozen_distributions_refuse():
    with pytest.raises(ArgumentError, match=r"norm: too many positional arguments; .* \(loc=0, scale=1\)"):
        stats.norm(1.0, 2.0, 3.0)
    with pytest.raises(ArgumentError, match="gamma: missing a required argument: 'a'"):
        stats.gamma()
    with pytest.raises(ArgumentError, match=r"dirichlet: missing a required argument: 'alpha'; .* \(alpha\)"):
        stats.dirichlet(beta=1.0)
    with pytest.raises(NoAttributeError, match=r"norm has no 'rvs'. functrans.random draws samples"):
        stats.norm().rvs(3)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        stats.norm().logpdf()
