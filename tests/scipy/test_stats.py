"""Ranks, summaries, kernel density estimates and distributions of vectors, against SciPy and JAX."""

import warnings

import numpy as np
import pytest
import scipy.stats

import functrans as ft
from functrans.errors import ArgumentError, ArgumentValueError, LinAlgError, ShapeError
from functrans.scipy import stats

RANDOM = np.random.default_rng(0)
SAMPLES = {"integers": RANDOM.integers(0, 5, (4, 9)), "floats": RANDOM.integers(0, 5, (4, 9)) / 2}
SAMPLES["nan"] = np.where(np.arange(36).reshape(4, 9) == 1, np.nan, SAMPLES["floats"])
SAMPLES["nan"][2] = np.nan
POINTS, DATA = RANDOM.normal(size=(2, 7)), RANDOM.normal(size=(2, 50))
WEIGHTS = RANDOM.uniform(0.5, 1.0, 50)
COV = np.array([[2.0, 0.3], [0.3, 1.0]])


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# --- samples --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("policy", ["propagate", "omit"])
def test_ranks(sample, policy):
    x = SAMPLES[sample]
    for method in ("average", "min", "max", "dense", "ordinal"):
        for axis in (None, 0, 1):
            got = stats.rankdata(x, method, axis=axis, nan_policy=policy)
            expected = scipy.stats.rankdata(x, method, axis=axis, nan_policy=policy)
            np.testing.assert_array_equal(got, expected.reshape(got.shape))
            assert got.dtype == (np.int64 if sample == "integers" and method != "average" else np.float64)
    slope = ft.jvp(lambda y: stats.rankdata(y, nan_policy=policy), (x.astype(float),), (np.ones(x.shape),))[1]
    assert not slope.any()


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("policy", ["propagate", "omit"])
@pytest.mark.parametrize("keepdims", [False, True])
def test_summaries(sample, policy, keepdims):
    x = SAMPLES[sample]
    calls = [("sem", {}), ("skew", {}), ("skew", {"bias": False}), ("kurtosis", {}),
             ("kurtosis", {"bias": False, "fisher": False})]  # fmt: skip
    for axis in (None, 0, 1):
        options = {"axis": axis, "nan_policy": policy, "keepdims": keepdims}
        for name, more in calls:
            got = getattr(stats, name)(x, **options, **more)
            expected = getattr(scipy.stats, name)(x, **options, **more)
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
            assert np.shape(got) == np.shape(expected)
        for got, expected in zip(stats.mode(x, **options), scipy.stats.mode(x, **options)):
            np.testing.assert_array_equal(got, expected)
            assert np.shape(got) == np.shape(expected)
        got = stats.zscore(x, axis=axis, ddof=1, nan_policy=policy)
        expected = scipy.stats.zscore(x, axis=axis, ddof=1, nan_policy=policy)
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


def test_nan_policy_raise():
    x = np.array([1.0, np.nan])
    for name in ("rankdata", "mode", "sem", "zscore", "skew", "kurtosis"):
        f = getattr(stats, name)
        with pytest.raises(ArgumentValueError, match="contains NaN"):
            f(x, nan_policy="raise")
        with pytest.raises(ArgumentValueError, match="while tracing"):
            ft.jit(lambda y, f=f: f(y, nan_policy="raise"))(x)
        with pytest.raises(ArgumentValueError, match="nan_policy must be"):
            f(x, nan_policy="ignore")
    assert stats.rankdata([2.0, 1.0], nan_policy="raise").tolist() == [2.0, 1.0]
    with pytest.raises(ArgumentValueError, match="method"):
        stats.rankdata(x, "median")


# --- kernel density estimates ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [(DATA,), (DATA, "silverman"), (DATA, 0.3, WEIGHTS), (DATA[0],), (DATA, lambda kde: 0.5)]
)
def test_kernel_density(arguments):
    ours, theirs = stats.gaussian_kde(*arguments), scipy.stats.gaussian_kde(*arguments)
    points = POINTS if ours.d == 2 else POINTS[0]
    for name in ("neff", "weights", "covariance", "inv_cov", "factor"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-12, atol=1e-14)
    for name in ("scotts_factor", "silverman_factor"):
        assert getattr(ours, name)() == pytest.approx(getattr(theirs, name)())
    np.testing.assert_allclose(ours(points), theirs(points), rtol=1e-12)
    np.testing.assert_allclose(ours.logpdf(50 * points), theirs.logpdf(50 * points), rtol=1e-12)
    np.testing.assert_allclose(ft.jit(lambda k, x: k.pdf(x))(ours, points), theirs(points), rtol=1e-12)
    assert ours.integrate_kde(ours) == pytest.approx(theirs.integrate_kde(theirs))
    normal = np.zeros(ours.d), np.eye(ours.d)
    assert ours.integrate_gaussian(*normal) == pytest.approx(theirs.integrate_gaussian(*normal))
    if ours.d == 1:
        assert ours.integrate_box_1d(-0.2, 1) == pytest.approx(theirs.integrate_box_1d(-0.2, 1))
    else:
        with pytest.raises(ArgumentValueError, match="2 dimensions"):
            ours.integrate_box_1d(0, 1)


def test_a_kernel_density_is_a_tree_that_is_differentiated_in_its_sample():
    def fit(data):
        return stats.gaussian_kde(data).logpdf(POINTS).sum()

    slope, step = ft.grad(fit)(DATA), 1e-5 * RANDOM.normal(size=DATA.shape)
    assert np.vdot(slope, 2 * step) == pytest.approx(fit(DATA + step) - fit(DATA - step), rel=1e-6)
    kde = ft.jit(stats.gaussian_kde)(DATA)
    assert isinstance(kde, stats.gaussian_kde)
    np.testing.assert_allclose(kde(POINTS), stats.gaussian_kde(DATA)(POINTS), rtol=1e-12)


def test_resample():
    """The numbers of JAX 0.10.2, for the same key."""
    expected = [
        [1.4440341, -0.69929812, 1.83656407, 0.40595414, 1.26143611],
        [0.28837425, 0.02713288, -0.65369021, 1.45838101, -0.05827014],
    ]
    got = stats.gaussian_kde(DATA, weights=WEIGHTS).resample(ft.random.key(3), (5,))
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-8)


def test_bad_kernel_densities():
    with pytest.raises(ArgumentValueError, match="more than one point"):
        stats.gaussian_kde([1.0])
    with pytest.raises(ShapeError, match="weights"):
        stats.gaussian_kde(DATA, weights=[1.0])
    with pytest.raises(ArgumentValueError, match="bw_method"):
        stats.gaussian_kde(DATA, "wide")
    with pytest.raises(ShapeError, match="dimension"):
        stats.gaussian_kde(DATA)(np.ones((3, 4)))
    with pytest.raises(ArgumentError, match="gaussian_kde"):
        stats.gaussian_kde(DATA).integrate_kde(DATA)


# --- vectors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "mean", "cov"),
    [(POINTS.T, np.zeros(2), COV), (POINTS.T, None, COV), (POINTS[0], None, 2.0), (POINTS[0], 0.3, 2.0),
     (POINTS.T, np.ones(2), [1.0, 2.0]), (POINTS.T, np.ones(2), 3.0), (POINTS.T[0], np.ones(2), COV)],
)  # fmt: skip
def test_multivariate_normal(x, mean, cov):
    for name in ("logpdf", "pdf"):
        got = getattr(stats.multivariate_normal, name)(x, mean, cov)
        expected = getattr(scipy.stats.multivariate_normal, name)(x, mean, cov)
        np.testing.assert_allclose(got, expected, rtol=1e-12)
        assert np.shape(got) == np.shape(expected)


def test_batches_of_multivariate_normals():
    means, covs = POINTS.T + 1, np.stack([COV * (1 + i) for i in range(7)])
    expected = [scipy.stats.multivariate_normal.logpdf(*a) for a in zip(POINTS.T, means, covs)]
    np.testing.assert_allclose(stats.multivariate_normal.logpdf(POINTS.T, means, covs), expected)
    np.testing.assert_allclose(ft.vmap(stats.multivariate_normal.logpdf)(POINTS.T, means, covs), expected)


def test_singular_covariances():
    cov = np.ones((2, 2))
    for x in ([1.0, 1.0], [1.0, 2.0]):
        expected = scipy.stats.multivariate_normal.logpdf(x, np.zeros(2), cov, True)
        assert stats.multivariate_normal.logpdf(x, np.zeros(2), cov, True) == pytest.approx(expected)
    for f in (stats.multivariate_normal.logpdf, ft.jit(stats.multivariate_normal.logpdf)):
        with pytest.raises(LinAlgError, match="positive definite"):
            f(np.ones(2), np.zeros(2), -COV)
    with pytest.raises(ShapeError, match="cov must have shape"):
        stats.multivariate_normal.logpdf(np.ones(3), np.zeros(3), COV)
    with pytest.raises(ShapeError, match="components"):
        stats.multivariate_normal.logpdf(np.ones(3), np.zeros(2), COV)


def test_dirichlet():
    alpha = [1.0, 2.0, 3.0]
    x = RANDOM.dirichlet(alpha, 5).T
    expected = scipy.stats.dirichlet.logpdf(x, alpha)
    np.testing.assert_allclose(stats.dirichlet.logpdf(x, alpha), expected)
    np.testing.assert_allclose(stats.dirichlet.logpdf(x[:2], alpha), expected)
    assert stats.dirichlet.entropy(alpha) == pytest.approx(scipy.stats.dirichlet.entropy(alpha))
    assert stats.dirichlet.logpdf([0.0, 0.5, 0.5], alpha) == pytest.approx(
        2.0149030205422647
    )  # alpha 1 at an edge
    assert stats.dirichlet.logpdf([0.5, 0.6, 0.5], alpha) == -np.inf
    assert np.isnan(stats.dirichlet.logpdf([0.2, 0.3, 0.5], [1.0, 0.0, 1.0]))
    outside = ft.grad(stats.dirichlet.logpdf, argnums=(0, 1))(np.array([-0.5, 1.0, 0.5]), np.array(alpha))
    assert not any(slope.any() for slope in outside)
    with pytest.raises(ShapeError, match="alpha"):
        stats.dirichlet.logpdf([0.5, 0.5], [1.0, 2.0, 3.0, 4.0])


def test_multinomial():
    counts, p = [[1, 2, 3], [1, 2, 2], [6, 0, 0], [7, -1, 0]], [0.2, 0.3, 0.5]
    np.testing.assert_allclose(
        stats.multinomial.logpmf(counts, 6, p), scipy.stats.multinomial.logpmf(counts, 6, p)
    )
    for bad in ((-1, p), (2.5, p), (6, [0.2, 1.3, 0.5])):
        assert np.isnan(stats.multinomial.logpmf(counts[0], *bad))
    slope = ft.grad(stats.multinomial.logpmf, argnums=2)(np.array(counts[0]), 6, np.array(p))
    np.testing.assert_allclose(slope, np.divide(counts[0], p))
    with pytest.raises(ShapeError, match="outcomes"):
        stats.multinomial.logpmf([1, 2], 3, p)
