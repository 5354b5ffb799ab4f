"""The distributions of scipy.stats: all functions of one together, since they share their code and one compilation."""

import copy
import doctest
import importlib
import inspect
import itertools
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import mpmath
import numpy as np
import pytest
import scipy.stats
from versions import has

import functrans as ft
import functrans.numpy as fnp
from functrans.errors import ArgumentError, DtypeError, NoAttributeError, ShapeError
from functrans.scipy import stats

sys.path.insert(0, str(Path(__file__).parent))

from distribution_cases import INVALID, SHAPES

NAN = np.nan
X = np.array(
    [
        -700.0,
        -37.6,
        -8.5,
        -3.2,
        -1.0,
        -0.01,
        0.0,
        1e-10,
        0.2,
        0.5,
        0.999,
        1.0,
        2.0,
        3.0,
        6.2,
        10.0,
        38.0,
        750.0,
    ]
)
ODD = np.array([np.inf, -np.inf, NAN])
Q = np.array([0.0, 1e-20, 1e-5, 0.11, 0.37, 0.5, 0.501, 0.9, 0.99999, 1.0, 1.1, -0.1, NAN])
DISCRETE = [name for name in SHAPES if hasattr(getattr(stats, name), "pmf")]
RTOL = 2e-11
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
if not has("scipy>=1.15"):
    SCIPY_FAILS |= {("cauchy", "ppf"): (), ("cauchy", "isf"): (), ("f", "logsf"): (1, 2)}
if not has("scipy>=1.17"):  # ten digits
    SCIPY_FAILS |= {("t", "ppf"): (0.5,), ("t", "isf"): (0.5,), ("f", "ppf"): ...}


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


def argument(function):
    return Q if function in ("ppf", "isf") else np.concatenate([X, ODD])


def all_of(name):
    """A function of (x, q, *shapes, *places) that returns what all functions do."""
    module = getattr(stats, name)
    chosen = [(getattr(module, f), f in ("ppf", "isf")) for f in functions_of(name)]

    def everything(x, q, *parameters):
        return tuple(f(q if of_q else x, *parameters) for f, of_q in chosen)

    return everything


def test_the_cases_are_complete():
    names = {n for n in stats.__all__ if inspect.ismodule(getattr(stats, n))}
    assert names == {*SHAPES, "dirichlet", "multinomial", "multivariate_normal"}
    assert {n for n, shapes in SHAPES.items() if shapes[0]} == {*INVALID}


@pytest.mark.parametrize("name", SHAPES)
def test_values(name):
    """The values of SciPy, where it has them, at ordinary and odd points."""
    theirs = getattr(scipy.stats, name)
    for function in getattr(stats, name).__all__:
        f, expected_of = getattr(getattr(stats, name), function), getattr(theirs, function)
        for shapes in SHAPES[name]:
            if SCIPY_FAILS.get((name, function)) in (..., shapes):
                continue
            for place in [(), *places(name)]:
                x = () if function == "entropy" else (argument(function),)
                got, expected = f(*x, *shapes, *place), expected_of(*x, *shapes, *place)
                what = f"{function}{shapes + place}"
                slack = 1e-15 if function in ("logcdf", "logsf") else 0.0  # SciPy rounds probabilities near 1
                assert got.dtype == np.float64, what
                assert got.shape == np.shape(expected), what
                compare(np.asarray(got), np.asarray(expected), x[0] if x else np.float64(0.0), slack, what)


def compare(got, expected, x, slack, what):
    different = ~((np.abs(got - expected) <= RTOL * np.abs(expected) + slack) | (got == expected))
    different &= ~(np.isnan(got) & np.isnan(expected))
    different &= ~(np.isnan(expected) & np.isinf(x))  # SciPy's densities at infinity
    assert not different.any(), (
        f"{what} at {np.asarray(x)[different]}: {got[different]}, not {expected[different]}"
    )


@pytest.mark.parametrize("name", SHAPES)
def test_beyond_the_support_and_with_invalid_parameters(name):
    """Derivatives are not NaN there, but values are for invalid parameters, as in SciPy."""
    x = np.concatenate([[-1e300, -12.5, 1e300], X[:6]]) if name != "truncnorm" else X - 300
    for shapes in SHAPES[name][:1]:
        parameters = [np.float64(v) for v in (*shapes, *places(name)[0])]
        for function in functions_of(name):
            f = getattr(getattr(stats, name), function)
            points = np.array([-0.1, 0.0, 1.0, 1.1]) if function in ("ppf", "isf") else x
            everything = range(len(parameters) + 1)
            slopes = ft.grad(lambda *v, f=f: f(*v).sum(), argnums=tuple(everything))(points, *parameters)
            for i, slope in enumerate(slopes):
                assert not np.isnan(slope).any(), f"{function}: argument {i}"
    for shapes in INVALID.get(name, ()):
        for function in getattr(stats, name).__all__:
            arguments = () if function == "entropy" else (Q if function in ("ppf", "isf") else X,)
            assert np.isnan(getattr(getattr(stats, name), function)(*arguments, *shapes)).all(), (
                function,
                shapes,
            )
    if name not in DISCRETE:
        for scale in (0.0, -1.0, NAN):
            assert np.isnan(getattr(stats, name).pdf(X, *SHAPES[name][0], 0.0, scale)).all()


#: Values in the tails, where SciPy's are 0, infinite, NaN or rounded: the distribution, the function, its arguments.
TAILS = [
    ("cauchy", "logpdf", (1e200,), lambda x: -mpmath.log(mpmath.pi * (1 + x * x))),
    ("cauchy", "ppf", (1e-200,), lambda q: -mpmath.cot(mpmath.pi * q)),
    ("cauchy", "sf", (1e20,), lambda x: mpmath.atan(1 / x) / mpmath.pi),
    ("gamma", "logsf", (900.0, 1.7), lambda x, a: mpmath.log(mpmath.gammainc(a, x) / mpmath.gamma(a))),
    ("gamma", "logcdf", (1e-200, 1.7), lambda x, a: mpmath.log(mpmath.gammainc(a, 0, x) / mpmath.gamma(a))),
    ("chi2", "logsf", (4000.0, 900.0), lambda x, n: mpmath.log(
        mpmath.gammainc(n / 2, x / 2) / mpmath.gamma(n / 2))),
    ("invgamma", "logcdf", (1e-3, 2.5), lambda x, a: mpmath.log(mpmath.gammainc(a, 1 / x) / mpmath.gamma(a))),
    ("gumbel_l", "logcdf", (-800.0,), lambda x: mpmath.log(-mpmath.expm1(-mpmath.exp(x)))),
    ("gumbel_r", "logsf", (800.0,), lambda x: mpmath.log(-mpmath.expm1(-mpmath.exp(-x)))),
    ("halfnorm", "logcdf", (1e-10,), lambda x: mpmath.log(mpmath.erf(x / mpmath.sqrt(2)))),
    ("halfnorm", "ppf", (1e-20,), lambda q: mpmath.sqrt(2) * mpmath.erfinv(q)),
    ("laplace", "logcdf", (-800.0,), lambda x: x - mpmath.log(2)),
    ("logistic", "logsf", (800.0,), lambda x: -mpmath.log1p(mpmath.exp(x))),
    ("maxwell", "logcdf", (1e-160,), lambda x: mpmath.log(mpmath.gammainc(1.5, 0, x * x / 2, regularized=True))),
    ("maxwell", "logcdf", (1e-8,), lambda x: mpmath.log(mpmath.gammainc(1.5, 0, x * x / 2, regularized=True))),
    ("maxwell", "logsf", (60.0,), lambda x: mpmath.log(mpmath.gammainc(1.5, x * x / 2, regularized=True))),
    ("norm", "logsf", (300.0,), lambda x: mpmath.log(mpmath.erfc(x / mpmath.sqrt(2)) / 2)),
    ("norm", "logcdf", (9.0,), lambda x: mpmath.log(mpmath.ncdf(x))),
    ("poisson", "logsf", (2.0, 60.0), lambda k, mu: mpmath.log1p(-mpmath.gammainc(k + 1, mu, regularized=True))),
    ("rayleigh", "logcdf", (1e-160,), lambda x: mpmath.log(-mpmath.expm1(-x * x / 2))),
    ("t", "isf", (1e-200, 2.0), lambda q, df: (1 - 2 * q) / mpmath.sqrt(2 * q * (1 - q))),
    ("truncnorm", "isf", (1e-20, 3.0, 10.0), lambda q, a, b: mpmath.findroot(
        lambda x: (mpmath.ncdf(-x) - mpmath.ncdf(-b)) / (mpmath.ncdf(-a) - mpmath.ncdf(-b)) / q - 1, 9.9)),
    ("vonmises", "cdf", (-1.0, 40.0), lambda x, k: mpmath.quad(
        lambda u: mpmath.exp(k * mpmath.cos(u)), mpmath.linspace(-mpmath.pi, x, 20)
    ) / (2 * mpmath.pi * mpmath.besseli(0, k))),
    ("weibull_min", "logcdf", (1e-200, 2.5), lambda x, c: mpmath.log(-mpmath.expm1(-(x**c)))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "function", "arguments", "exact"), TAILS, ids=lambda v: str(v)[:12])
def test_tails(name, function, arguments, exact):
    with mpmath.workdps(450 if arguments[0] in (9.0, 60.0) else 60):
        expected = float(exact(*map(mpmath.mpf, arguments)))
    got = getattr(getattr(stats, name), function)(*arguments)
    assert abs(got - expected) <= 2e-13 * abs(expected)


@pytest.mark.parametrize(
    ("name", "shapes"), [("nbinom", (0.5, 0.01)), ("poisson", (1e4,)), ("binom", (2000, 0.4))]
)
def test_entropy_of_counts(name, shapes):
    """SciPy stops some of these sums early."""
    log = getattr(scipy.stats, name).logpmf(np.arange(20000), *shapes)
    expected = -np.sum(np.where(log > -700, log, 0.0) * np.exp(log))
    assert abs(getattr(stats, name).entropy(*shapes) - expected) < 1e-10


GAMMA_ENTROPY = lambda a: a + mpmath.loggamma(a) + (1 - a) * mpmath.digamma(a)
BETA_ENTROPY = lambda a, b: (
    mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b) - (a - 1) * mpmath.digamma(a)
    - (b - 1) * mpmath.digamma(b) + (a + b - 2) * mpmath.digamma(a + b)
)  # fmt: skip
ENTROPIES = {
    "gamma": (GAMMA_ENTROPY, 1),
    "chi2": (lambda df: GAMMA_ENTROPY(df / 2) + mpmath.log(2), 1),
    "invgamma": (lambda a: GAMMA_ENTROPY(a) - 2 * mpmath.digamma(a), 1),
    "beta": (BETA_ENTROPY, 2),
    "dirichlet": (BETA_ENTROPY, 2),
}


@pytest.mark.parametrize("name", ENTROPIES)
def test_entropy_where_its_terms_cancel(name):
    """SciPy's entropy of the beta distribution loses digits for large parameters."""
    published, count = ENTROPIES[name]
    entropy = getattr(stats, name).entropy
    f = (lambda a, b: entropy(fnp.stack([a, b]))) if name == "dirichlet" else entropy
    compiled = ft.jit(f)
    sizes = [0.7, 31.0, 1e12, 8e307] if count == 2 else [1e-5, 3.0, 29.0, 31.0, 1e5, 1.7e308]
    for shapes in itertools.product(sizes, repeat=count):
        with mpmath.workdps(40 + max(0, int(np.log10(max(shapes))))):
            expected = published(*map(mpmath.mpf, shapes))
            for found in (f(*shapes), compiled(*shapes)):
                assert abs(found - expected) <= 4e-14 * max(abs(expected), 1), shapes
    assert abs(compiled(*[np.float32(1e30)] * count) / f(*[1e30] * count) - 1) < 1e-6


def _gamma_terms(x, a):
    return (a - 1) * mpmath.log(x) - x - mpmath.loggamma(a), mpmath.log(x) - mpmath.digamma(a)


def _invgamma_terms(x, a):
    return -(a + 1) * mpmath.log(x) - 1 / x - mpmath.loggamma(a), -mpmath.log(x) - mpmath.digamma(a)


@pytest.mark.parametrize("a", [0.3, 29.0, 31.0, 1e3, 1e8, 1e15, 1e300])
@pytest.mark.parametrize("name", ["gamma", "invgamma"])
def test_densities_of_gammas_whose_terms_cancel(name, a):
    """Also far from the mode, and the derivative in the shape; at the largest float the terms overflow."""
    f, exact = getattr(stats, name).logpdf, _gamma_terms if name == "gamma" else _invgamma_terms
    for k in (1e-300, 1e-20, 0.4, 0.6, 1.4, 2.0, 1e4):
        x = a * k if name == "gamma" else 1 / (a * k)
        with mpmath.workdps(350):
            value, slope = map(float, exact(mpmath.mpf(x), mpmath.mpf(a)))
        for g in (f, ft.jit(f)):
            np.testing.assert_allclose(g(x, a), value, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(ft.grad(f, 1)(x, a), slope, rtol=1e-12)
    largest = np.finfo(float).max
    points = np.array([5e-324, 0.5, 2.0, 1e300])
    for g in (f, ft.jit(f)):
        assert not np.isnan(g(points, largest)).any()
        assert (getattr(stats, name).pdf(points, largest) == 0).all()


@pytest.mark.parametrize("kappa", [0.0, 2.0, 1e10])
def test_turns_of_huge_angles(kappa):
    """Where an angle has no digits after the point, the number of turns is all that is left."""
    x = np.array([3.3e19, -1e300, 2.0**63, 1e8])
    for f in (stats.vonmises.cdf, ft.jit(stats.vonmises.cdf)):
        np.testing.assert_allclose(f(x, np.array(kappa)), x / (2 * np.pi), rtol=1e-7)


F_POINTS = [(2.0, 1e10, 0.5), (0.3, 1e22, 0.5), (1e22, 1e10, 2.5), (0.01, 3.5, 4.5), (7.0, 3.5, 4.5)]


@pytest.mark.parametrize(("x", "m", "n"), F_POINTS)
def test_density_of_f_for_many_degrees_of_freedom(x, m, n):
    """SciPy's is exp(0) at the second point."""
    with mpmath.workdps(60):
        a, b = mpmath.mpf(m) / 2, mpmath.mpf(n) / 2
        ratio = a * x / b
        powers = (a - 1) * mpmath.log(ratio) - (a + b) * mpmath.log1p(ratio)
        log_beta = mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)
        expected = float(powers + mpmath.log(a / b) - log_beta)
    for f in (stats.f.logpdf, ft.jit(stats.f.logpdf)):
        assert abs(f(x, m, n) - expected) <= 1e-14 * max(1.0, abs(expected))


# --- dtypes, names, documentation ------------------------------------------------------------------------------


def test_dtypes():
    """float32 stays; Python numbers have no influence; integers count as float64."""
    single = np.float32([0.3, 0.6])
    assert stats.gamma.logpdf(single, 2.0, loc=0.1, scale=3).dtype == np.float32
    assert stats.binom.pmf(np.float32(1), 3, 0.5).dtype == np.float32
    assert stats.gamma.logpdf(single, np.array([2, 3])).dtype == np.float64
    assert stats.norm.cdf(np.array([1, 2])).dtype == stats.norm.cdf(1).dtype == np.float64
    for name in SHAPES:
        everything = all_of(name)(single + 1, single, *SHAPES[name][0])
        assert {y.dtype for y in everything} == {np.dtype(np.float32)}, (name, [y.dtype for y in everything])


def test_namespaces():
    assert importlib.import_module("functrans.scipy.stats.norm") is stats.norm
    assert str(inspect.signature(stats.gamma.logpdf)) == "(x, a, loc=0, scale=1)"
    assert str(inspect.signature(stats.poisson.ppf)) == "(q, mu, loc=0)"
    assert pickle.loads(pickle.dumps(stats.beta.cdf)) is stats.beta.cdf
    for distribution in (stats.norm, stats.poisson, stats.multivariate_normal):
        assert pickle.loads(pickle.dumps(distribution)) is copy.deepcopy(distribution) is distribution
    with pytest.raises(NoAttributeError, match="Nearest: logpdf"):
        stats.norm.logpd
    with pytest.raises(ArgumentError, match=r"norm\.cdf: argument 0"):
        stats.norm.cdf("a")
    with pytest.raises(TypeError, match=r"norm\.cdf.*scal"):
        stats.norm.cdf(1.0, scal=2.0)
    with pytest.raises(DtypeError, match="complex"):
        stats.norm.cdf(1j)
    with pytest.raises(ShapeError, match="gamma"):
        stats.gamma.cdf(np.ones(2), np.ones(3))


#: The parameters of JAX's densities (version 0.10.2).
PARAMETERS_OF_JAX = {
    "x loc scale": "cauchy expon gumbel_l gumbel_r laplace logistic norm uniform",
    "x a b loc scale": "beta truncnorm",
    "x df loc scale": "chi2 t",
    "x a loc scale": "gamma",
    "x b loc scale": "pareto",
    "x beta": "gennorm",
    "x kappa": "vonmises",
    "x c": "wrapcauchy",
    "x alpha": "dirichlet",
    "x n p": "multinomial",
    "x mean cov": "multivariate_normal",
    "k p loc": "bernoulli geom",
    "k n p loc": "binom nbinom",
    "k n a b loc": "betabinom",
    "k mu loc": "poisson",
}


@pytest.mark.parametrize("parameters", PARAMETERS_OF_JAX)
def test_signatures_of_jax(parameters):
    """Arguments have the names and the order of JAX's, where JAX has the distribution."""
    functions = {"pdf", "pmf", "logpdf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf"}
    for name in PARAMETERS_OF_JAX[parameters].split():
        for function in functions & set(getattr(stats, name).__all__):
            expected = parameters.split()
            if function in ("ppf", "isf"):
                expected[0] = "q"  # as in SciPy
            got = list(inspect.signature(getattr(getattr(stats, name), function)).parameters)
            assert got[: len(expected)] == expected, f"{name}.{function}"


@pytest.mark.parametrize("name", SHAPES)
def test_examples(name):
    """Those of the docstrings, which are put together."""
    module, runner = getattr(stats, name), doctest.DocTestRunner()
    for function in module.__all__:
        f = getattr(module, function)
        runner.run(doctest.DocTestParser().get_doctest(f.__doc__, {}, function, None, 0))
        assert inspect.cleandoc(f.__doc__).splitlines()[0].endswith(".")
    assert runner.summarize(verbose=False) == (0, 3 * len(module.__all__))


def test_scipys_own_is_not_loaded():
    program = "import sys, functrans.scipy.stats; sys.exit('scipy.stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
