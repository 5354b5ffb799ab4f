"""SciPy, NumPy, pandas and Matplotlib with Arrays: each call gives what it gives for plain ndarrays.

A case is a function of `a`, which makes the arrays: `np.array` for the expected result, `asarray` for ours. What the
library is given, and what functions given to it return, are arrays of that kind.
"""

import importlib
import io

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize as so
import scipy.signal
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg
import scipy.spatial
import scipy.special
import scipy.stats

import functrans as ft
import functrans.numpy as fnp

OURS = fnp.asarray
T = np.linspace(0.1, 2.0, 12)
DATA = 2.0 * np.exp(-1.3 * T)
SPD = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
V = np.array([3.0, 1.0, 2.0, 5.0, 4.0, 2.5])
START = [0.5, 1.5]


def model(t, p):
    return p[0] * np.exp(-p[1] * t)


def residuals(a):
    return lambda p: a(model(T, np.asarray(p)) - DATA)


def jacobian(a):
    def jac(p):
        e = np.exp(-p[1] * T)
        return a(np.stack([e, -p[0] * T * e], axis=1))

    return jac


def least_squares(**options):
    def case(a):
        bounds = options.get("bounds")
        given = {**options, **({"bounds": (a(bounds[0]), a(bounds[1]))} if bounds else {})}
        if given.get("x_scale") == "array":
            given["x_scale"] = a([1.0, 2.0])
        return so.least_squares(residuals(a), a(START), jac=jacobian(a), **given).x

    return case


def rosen(a):
    return lambda x: a(so.rosen(np.asarray(x)))


def rosen_grad(a):
    return lambda x: a(so.rosen_der(np.asarray(x)))


def rosen_hess(a):
    return lambda x: a(so.rosen_hess(np.asarray(x)))


def minimize(method, *, jac=True, hess=False, bounds=False, constraints=None, start=(1.3, 0.7, 0.8)):
    def case(a):
        options = {"method": method, "options": {"maxiter": 40}}
        if jac:
            options["jac"] = rosen_grad(a)
        if hess:
            options["hess"] = rosen_hess(a)
        if bounds:
            options["bounds"] = so.Bounds(a([0.0, 0.0, 0.0]), a([2.0, 2.0, 2.0]))
        if constraints:
            options["constraints"] = constraints(a)
        return so.minimize(rosen(a), a(start), **options).x

    return case


def linear(a):
    return so.LinearConstraint(a([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]), a([0.0, 0.0]), a([1.8, 2.5]))


def nonlinear(a):
    return so.NonlinearConstraint(
        lambda x: a([x[0] ** 2 + x[1] ** 2]),
        a([0.0]),
        a([1.5]),
        jac=lambda x: a([[2.0 * x[0], 2.0 * x[1], 0.0]]),
        hess=lambda x, v: a(np.diag([2.0, 2.0, 0.0]) * v[0]),
    )


def slsqp(a):
    return [{"type": "ineq", "fun": lambda x: a(1.5 - x[0] ** 2 - x[1] ** 2)}]


def quadratic(a):
    return lambda x: a(np.asarray(x) ** 2 - np.array([2.0, 3.0]))


def quadratic_jac(a):
    return lambda x: a(np.diag(2.0 * np.asarray(x)))


def root(method, jac=True):
    return lambda a: (
        so.root(quadratic(a), a([1.0, 1.0]), method=method, **({"jac": quadratic_jac(a)} if jac else {})).x
    )


def ivp(method, **options):
    def case(a):
        given = dict(options)
        if method in ("Radau", "BDF", "LSODA"):
            given["jac"] = lambda t, y: a([[0.0, 1.0], [-1.0, -0.1]])
        actual = scipy.integrate.solve_ivp(
            lambda t, y: a([y[1], -y[0] - 0.1 * y[1]]), (0.0, 2.0), a([1.0, 0.0]), method=method,
            t_eval=a(np.linspace(0, 2, 5)), rtol=a(1e-6), atol=a([1e-8, 1e-8]), **given,
        )  # fmt: skip
        return actual.y

    return case


OPTIMIZE = {
    **{
        f"least_squares {name}": least_squares(**options)
        for name, options in {
            "trf": {"method": "trf"},
            "dogbox": {"method": "dogbox"},
            "lm": {"method": "lm"},
            "trf jac": {"method": "trf", "x_scale": "jac"},
            "dogbox jac": {"method": "dogbox", "x_scale": "jac"},
            "lm jac": {"method": "lm", "x_scale": "jac"},
            "trf array": {"method": "trf", "x_scale": "array"},
            "trf bounds": {"bounds": ([0.0, 0.0], [5.0, 5.0])},
            "trf bounds jac": {"bounds": ([0.0, 0.0], [5.0, 5.0]), "x_scale": "jac"},
            "dogbox bounds jac": {"bounds": ([0.0, 0.0], [1.9, 5.0]), "method": "dogbox", "x_scale": "jac"},
            "trf lsmr": {"tr_solver": "lsmr", "x_scale": "jac"},
            "dogbox lsmr": {"tr_solver": "lsmr", "method": "dogbox", "x_scale": "jac"},
            **{f"loss {loss}": {"loss": loss} for loss in ("soft_l1", "huber", "cauchy", "arctan")},
            "loss soft_l1 dogbox jac": {"loss": "soft_l1", "method": "dogbox", "x_scale": "jac"},
        }.items()
    },
    "least_squares 2-point": lambda a: so.least_squares(residuals(a), a(START)).x,
    "least_squares 3-point": lambda a: so.least_squares(residuals(a), a(START), jac="3-point").x,
    "curve_fit": lambda a: so.curve_fit(lambda t, p, q: a(model(t, (p, q))), a(T), a(DATA), p0=a(START))[0],
    "curve_fit sigma": lambda a: so.curve_fit(
        lambda t, p, q: a(model(t, (p, q))), a(T), a(DATA), p0=a(START), sigma=a(0.1 + T)
    )[1],
    "curve_fit bounds": lambda a: so.curve_fit(
        lambda t, p, q: a(model(t, (p, q))), a(T), a(DATA), p0=a(START), bounds=(a([0.0, 0.0]), a([9.0, 9.0]))
    )[0],
    "leastsq": lambda a: so.leastsq(residuals(a), a(START), Dfun=jacobian(a))[0],
    "Nelder-Mead": minimize("Nelder-Mead", jac=False),
    "Nelder-Mead bounds": minimize("Nelder-Mead", jac=False, bounds=True),
    "Powell": minimize("Powell", jac=False),
    "Powell bounds": minimize("Powell", jac=False, bounds=True),
    "CG": minimize("CG"),
    "BFGS": minimize("BFGS"),
    "BFGS 2-point": minimize("BFGS", jac=False),
    "Newton-CG": minimize("Newton-CG", hess=True),
    "L-BFGS-B": minimize("L-BFGS-B"),
    "L-BFGS-B bounds": minimize("L-BFGS-B", bounds=True),
    "TNC": minimize("TNC"),
    "TNC bounds": minimize("TNC", bounds=True),
    "COBYLA": minimize("COBYLA", jac=False),
    "COBYLA linear": minimize("COBYLA", jac=False, constraints=linear),
    "COBYQA": minimize("COBYQA", jac=False),
    "COBYQA bounds": minimize("COBYQA", jac=False, bounds=True),
    "COBYQA linear": minimize("COBYQA", jac=False, constraints=linear),
    "SLSQP": minimize("SLSQP"),
    "SLSQP bounds": minimize("SLSQP", bounds=True),
    "SLSQP dict": minimize("SLSQP", constraints=slsqp),
    "SLSQP linear": minimize("SLSQP", constraints=linear, bounds=True),
    "SLSQP nonlinear": minimize("SLSQP", constraints=nonlinear),
    "trust-constr": minimize("trust-constr", hess=True),
    "trust-constr bounds": minimize("trust-constr", hess=True, bounds=True),
    "trust-constr linear": minimize("trust-constr", hess=True, constraints=linear),
    "trust-constr nonlinear": minimize("trust-constr", hess=True, constraints=nonlinear, bounds=True),
    "dogleg": minimize("dogleg", hess=True, start=(1.1, 1.1, 1.2)),
    "trust-ncg": minimize("trust-ncg", hess=True),
    "trust-exact": minimize("trust-exact", hess=True),
    "trust-krylov": minimize("trust-krylov", hess=True),
    "minimize_scalar": lambda a: so.minimize_scalar(lambda x: a((x - 2.0) ** 2)).x,
    "minimize_scalar bounded": lambda a: so.minimize_scalar(lambda x: a((x - 2.0) ** 2), bounds=a([0, 5])).x,
    "brentq": lambda a: so.brentq(lambda x: a(x**3 - 2.0), a(0.0), a(2.0)),
    "newton": lambda a: so.newton(lambda x: a(x**3 - 2.0), a(1.0), fprime=lambda x: a(3.0 * x**2)),
    "newton array": lambda a: so.newton(lambda x: a(x**2 - V), a(V), fprime=lambda x: a(2.0 * x)),
    "root_scalar": lambda a: so.root_scalar(lambda x: a(x**3 - 2.0), bracket=a([0.0, 2.0])).root,
    **{f"root {m}": root(m) for m in ("hybr", "lm")},
    **{f"root {m}": root(m, jac=False) for m in ("broyden1", "broyden2", "anderson", "krylov", "df-sane")},
    "fsolve": lambda a: so.fsolve(quadratic(a), a([1.0, 1.0]), fprime=quadratic_jac(a)),
    "fixed_point": lambda a: so.fixed_point(lambda x: a(np.sqrt(x + 1.0)), a([1.0, 2.0])),
    "approx_fprime": lambda a: so.approx_fprime(a([1.3, 0.7, 0.8]), rosen(a), a([1e-6, 1e-6, 1e-6])),
    "check_grad": lambda a: so.check_grad(rosen(a), rosen_grad(a), a([1.3, 0.7, 0.8])) < 1e-4,
    "linprog": lambda a: so.linprog(a([1.0, 2.0]), A_ub=a([[-1.0, -1.0]]), b_ub=a([-1.0])).x,
    "milp": lambda a: so.milp(a([-1.0, -2.0]), bounds=so.Bounds(a([0.0, 0]), a([3.5, 2])), integrality=a([1, 1])).x,
    "nnls": lambda a: so.nnls(a(SPD), a([1.0, -2.0, 3.0]))[0],
    "lsq_linear": lambda a: so.lsq_linear(a(SPD), a([1.0, -2.0, 3.0]), bounds=(a([0.0, 0, 0]), a([1.0, 1, 1]))).x,
    "lsq_linear bvls": lambda a: so.lsq_linear(
        a(SPD), a([1.0, -2.0, 3.0]), bounds=(a([0.0, 0, 0]), a([1.0, 1, 1])), method="bvls"
    ).x,
    "linear_sum_assignment": lambda a: so.linear_sum_assignment(a(SPD))[1],
    "differential_evolution": lambda a: so.differential_evolution(
        rosen(a), so.Bounds(a([0.0, 0.0]), a([2.0, 2.0])), maxiter=5, seed=1
    ).x,
    "dual_annealing": lambda a: so.dual_annealing(rosen(a), a([[0.0, 2.0], [0.0, 2.0]]), maxiter=5, seed=1).x,
    "shgo": lambda a: so.shgo(rosen(a), so.Bounds(a([0.0, 0.0]), a([2.0, 2.0]))).x,
    "basinhopping": lambda a: so.basinhopping(
        rosen(a), a([1.3, 0.7]), niter=2, minimizer_kwargs={"jac": rosen_grad(a)}, seed=1
    ).x,
    "brute": lambda a: so.brute(lambda x: a(so.rosen(x)), ((0, 2), (0, 2)), Ns=4),
    "BroydenFirst.update": lambda a: _hessian_update(so.BFGS(), a),
    "SR1.update": lambda a: _hessian_update(so.SR1(), a),
}  # fmt: skip


def _hessian_update(strategy, a):
    strategy.initialize(2, "hess")
    strategy.update(a([0.1, 0.2]), a([0.3, 0.1]))
    return strategy.get_matrix()


STRIP = np.arange(24.0).reshape(4, 6) % 7

SCIPY = {
    **{f"solve_ivp {m}": ivp(m) for m in ("RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA")},
    "solve_ivp event": ivp("RK45", events=lambda t, y: y[0]),
    "solve_ivp dense": ivp("RK45", dense_output=True),
    "solve_bvp": lambda a: scipy.integrate.solve_bvp(
        lambda x, y: a([y[1], -y[0]]), lambda u, v: a([u[0], v[0] - 1.0]), a([0.0, 0.5, 1.0]), a(np.zeros((2, 3)))
    ).y,
    "odeint": lambda a: scipy.integrate.odeint(lambda y, t: a(-y), a([1.0, 2.0]), a(T)),
    "quad": lambda a: scipy.integrate.quad(lambda t: a(t * t), a(0.0), a(1.0))[0],
    "quad_vec": lambda a: scipy.integrate.quad_vec(lambda t: a([t, t * t]), 0.0, 1.0)[0],
    "simpson": lambda a: scipy.integrate.simpson(a(DATA), x=a(T)),
    "trapezoid": lambda a: scipy.integrate.cumulative_trapezoid(a(DATA), x=a(T), initial=0),
    "solve": lambda a: scipy.linalg.solve(a(SPD), a([1.0, 2.0, 3.0]), assume_a="pos"),
    "inv overwrite": lambda a: scipy.linalg.inv(a(SPD), overwrite_a=True),
    "lu_factor": lambda a: scipy.linalg.lu_solve(scipy.linalg.lu_factor(a(SPD)), a([1.0, 2.0, 3.0])),
    "cho_solve": lambda a: scipy.linalg.cho_solve((a(np.linalg.cholesky(SPD)), True), a([1.0, 2.0, 3.0])),
    "eigh": lambda a: scipy.linalg.eigh(a(SPD), a(np.eye(3)))[0],
    "svd": lambda a: scipy.linalg.svd(a(STRIP))[1],
    "qr": lambda a: scipy.linalg.qr(a(STRIP), pivoting=True)[1],
    "expm": lambda a: scipy.linalg.expm(a(SPD)),
    "logm": lambda a: scipy.linalg.logm(a(SPD)),
    "sqrtm": lambda a: scipy.linalg.sqrtm(a(SPD)),
    "lstsq": lambda a: scipy.linalg.lstsq(a(STRIP), a(np.ones(4)))[0],
    "toeplitz": lambda a: scipy.linalg.toeplitz(a(V)),
    "block_diag": lambda a: scipy.linalg.block_diag(a(SPD), a(SPD)),
    "solve_banded": lambda a: scipy.linalg.solve_banded((1, 1), a([[0, 1, 1.0], [4, 4, 4], [1, 1, 0]]), a(V[:3])),
    "schur": lambda a: scipy.linalg.schur(a(SPD))[0],
    "solve_triangular": lambda a: scipy.linalg.solve_triangular(a(np.triu(SPD)), a(V[:3])),
    "cg": lambda a: scipy.sparse.linalg.cg(a(SPD), a(V[:3]), rtol=1e-10)[0],
    "gmres": lambda a: scipy.sparse.linalg.gmres(a(SPD), a(V[:3]), x0=a(np.zeros(3)), rtol=1e-10)[0],
    "bicgstab": lambda a: scipy.sparse.linalg.bicgstab(a(SPD), a(V[:3]), rtol=1e-10)[0],
    "minres": lambda a: scipy.sparse.linalg.minres(a(SPD), a(V[:3]), rtol=1e-10)[0],
    "lsqr": lambda a: scipy.sparse.linalg.lsqr(a(SPD), a(V[:3]))[0],
    "cg operator": lambda a: scipy.sparse.linalg.cg(
        scipy.sparse.linalg.LinearOperator((3, 3), matvec=lambda v: a(SPD @ np.asarray(v))), a(V[:3]), rtol=1e-10
    )[0],
    "spsolve": lambda a: scipy.sparse.linalg.spsolve(scipy.sparse.csc_array(a(SPD)), a(V[:3])),
    "eigsh": lambda a: scipy.sparse.linalg.eigsh(a(np.diag(V)), k=2, v0=a(np.ones(6)))[0],
    "csr of data": lambda a: scipy.sparse.csr_array(
        (a([1.0, 2.0, 3.0]), (a([0, 1, 2]), a([1, 2, 0]))), shape=(3, 3)
    ).toarray(),
    "csr set": lambda a: _sparse_set(a),
    "dijkstra": lambda a: scipy.sparse.csgraph.dijkstra(a(SPD)),
    "interp1d": lambda a: scipy.interpolate.interp1d(a(T), a(DATA), kind="cubic")(a([0.5, 1.0])),
    "CubicSpline": lambda a: scipy.interpolate.CubicSpline(a(T), a(DATA))(a([0.5, 1.0])),
    "PchipInterpolator": lambda a: scipy.interpolate.PchipInterpolator(a(T), a(DATA))(a([0.5, 1.0])),
    "UnivariateSpline": lambda a: scipy.interpolate.UnivariateSpline(a(T), a(DATA))(a([0.5, 1.0])),
    "RBFInterpolator": lambda a: scipy.interpolate.RBFInterpolator(a(T[:, None]), a(DATA))(a([[0.5]])),
    "griddata": lambda a: scipy.interpolate.griddata(a(T[:, None]), a(DATA), a([[0.5]])),
    "RegularGridInterpolator": lambda a: scipy.interpolate.RegularGridInterpolator((a(T),), a(DATA))(a([[0.5]])),
    "gaussian_filter": lambda a: scipy.ndimage.gaussian_filter(a(STRIP), a(1.0)),
    "map_coordinates": lambda a: scipy.ndimage.map_coordinates(a(STRIP), a([[0.5, 1.5], [1.0, 2.0]])),
    "label": lambda a: scipy.ndimage.label(a(STRIP > 3))[0],
    "zoom": lambda a: scipy.ndimage.zoom(a(STRIP), 2.0),
    "distance_transform_edt": lambda a: scipy.ndimage.distance_transform_edt(a(STRIP > 3)),
    "savgol_filter": lambda a: scipy.signal.savgol_filter(a(DATA), 5, 2),
    "filtfilt": lambda a: scipy.signal.filtfilt(*map(a, scipy.signal.butter(2, 0.3)), a(DATA)),
    "lfilter": lambda a: scipy.signal.lfilter(a([1.0]), a([1.0, -0.5]), a(DATA)),
    "fftconvolve": lambda a: scipy.signal.fftconvolve(a(DATA), a(V)),
    "find_peaks": lambda a: scipy.signal.find_peaks(a(V), height=1.0)[0],
    "welch": lambda a: scipy.signal.welch(a(DATA), nperseg=8)[1],
    "detrend": lambda a: scipy.signal.detrend(a(DATA)),
    "resample": lambda a: scipy.signal.resample(a(DATA), 7),
    "fft": lambda a: scipy.fft.fft(a(DATA)),
    "dct": lambda a: scipy.fft.dct(a(DATA)),
    "logsumexp": lambda a: scipy.special.logsumexp(a(STRIP), axis=0, b=a(np.ones((4, 6)))),
    "softmax": lambda a: scipy.special.softmax(a(STRIP), axis=1),
    "KDTree": lambda a: scipy.spatial.KDTree(a(STRIP)).query(a(STRIP[0] + 0.1))[0],
    "ConvexHull": lambda a: scipy.spatial.ConvexHull(a(STRIP[:, :2])).volume,
    "Delaunay": lambda a: scipy.spatial.Delaunay(a([[0.0, 0], [1, 0], [0, 1], [1, 1.1]])).simplices,
    "cdist": lambda a: scipy.spatial.distance.cdist(a(STRIP), a(STRIP)),
    "procrustes": lambda a: scipy.spatial.procrustes(a(STRIP), a(STRIP[::-1]))[2],

    "winsorize": lambda a: np.asarray(scipy.stats.mstats.winsorize(a(V), limits=(0.2, 0.2))),
    "mstats.trim": lambda a: scipy.stats.mstats.trim(a(V), (1.5, 4.5)).filled(0.0),
    "mstats.rankdata": lambda a: scipy.stats.mstats.rankdata(a(V)),
    "mquantiles": lambda a: scipy.stats.mstats.mquantiles(a(V)),
    "trim_mean": lambda a: scipy.stats.trim_mean(a(V), 0.2),
    "trimboth": lambda a: scipy.stats.trimboth(a(V), 0.2),
    "zscore": lambda a: scipy.stats.zscore(a(V)),
    "rankdata": lambda a: scipy.stats.rankdata(a(V)),
    "mode": lambda a: scipy.stats.mode(a(V)).mode,
    "iqr": lambda a: scipy.stats.iqr(a(V), rng=(10, 90)),
    "pearsonr": lambda a: scipy.stats.pearsonr(a(V), a(V[::-1])).statistic,
    "spearmanr": lambda a: scipy.stats.spearmanr(a(V), a(V[::-1])).statistic,
    "kendalltau": lambda a: scipy.stats.kendalltau(a(V), a(V[::-1])).statistic,
    "ttest_ind": lambda a: scipy.stats.ttest_ind(a(V), a(V + 1.0)).pvalue,
    "wilcoxon": lambda a: scipy.stats.wilcoxon(a(V), a(V[::-1])).statistic,
    "mannwhitneyu": lambda a: scipy.stats.mannwhitneyu(a(V), a(V + 1.0)).pvalue,
    "kstest": lambda a: scipy.stats.kstest(a(V), "norm").statistic,
    "gaussian_kde": lambda a: scipy.stats.gaussian_kde(a(V), weights=a(V))(a([2.0, 3.0])),
    "norm.fit": lambda a: scipy.stats.norm.fit(a(V)),
    "gamma.fit": lambda a: scipy.stats.gamma.fit(a(V), floc=0),
    "norm.logpdf": lambda a: scipy.stats.norm.logpdf(a(V), loc=a(1.0), scale=a([2.0])),
    "multivariate_normal": lambda a: scipy.stats.multivariate_normal(a(V[:3]), a(SPD)).logpdf(a(np.ones(3))),
    "binned_statistic": lambda a: scipy.stats.binned_statistic(a(T), a(DATA), bins=a([0.0, 1.0, 2.0])).statistic,
    "bootstrap": lambda a: scipy.stats.bootstrap((a(V),), np.mean, n_resamples=20, rng=1).standard_error,
    "linregress": lambda a: scipy.stats.linregress(a(T), a(DATA)).slope,
    "describe": lambda a: scipy.stats.describe(a(V)).kurtosis,
    "boxcox": lambda a: scipy.stats.boxcox(a(V))[0],
}  # fmt: skip


def _sparse_set(a):
    matrix = scipy.sparse.csr_array(a(SPD))
    matrix.data[:] *= 2.0
    matrix[0, 0] = 1.0
    return matrix.toarray()


def own(f):
    """What NumPy computes from an array, written to."""

    def case(a):
        actual = f(a)
        actual[...] = np.where(actual > 2, 0, actual)
        actual += 1
        return actual

    return case


def _masked_work(a):
    m = np.ma.masked_greater(a(V), 4.0)
    m[0] = np.ma.masked
    m[1] = 9.0
    m += 1.0
    m.sort()
    return m.filled(-1.0)


NUMPY = {
    **{f"own {name}": own(f) for name, f in {
        "sqrt": lambda a: np.sqrt(a(V)),
        "multiply": lambda a: np.multiply(a(V), 2.0),
        "where": lambda a: np.where(a(V) > 2, a(V), 0.0),
        "concatenate": lambda a: np.concatenate([a(V), a(V)]),
        "transpose": lambda a: np.transpose(a(SPD)),
        "reshape": lambda a: np.reshape(a(V), (2, 3)),
        "ravel": lambda a: np.ravel(a(SPD)),
        "atleast_1d": lambda a: np.atleast_1d(a(V)),
        "squeeze": lambda a: np.squeeze(a(V)),
        "split": lambda a: np.split(a(V), 2)[1],
        "solve": lambda a: np.linalg.solve(a(SPD), a(V[:3])),
        "eigh": lambda a: np.linalg.eigh(a(SPD)).eigenvalues,
        "rfft": lambda a: np.fft.irfft(np.fft.rfft(a(V))),
        "sum": lambda a: np.sum(a(SPD), axis=0),
        "sort": lambda a: np.sort(a(V)),
        "unique": lambda a: np.unique(a(V)),
        "subok": lambda a: np.array(a(V), subok=True),
        "empty_like": lambda a: np.copy(np.zeros_like(a(V))),
        "masked data": lambda a: np.ma.masked_array(a(V), copy=True).data,
    }.items()},
    "masked": _masked_work,
    "masked_invalid": lambda a: np.ma.masked_invalid(a([1.0, np.nan, 3.0])).filled(0.0),
    "ma.median": lambda a: np.ma.median(np.ma.masked_greater(a(V), 4.0)),
    "histogram": lambda a: np.histogram(a(V), bins=a([0.0, 2.0, 6.0]))[0],
    "digitize": lambda a: np.digitize(a(V), a([0.0, 2.0, 6.0])),
    "interp": lambda a: np.interp(a([0.5]), a(T), a(DATA)),
    "polyfit": lambda a: np.polyfit(a(T), a(DATA), 2, w=a(np.ones(12))),
    "Polynomial.fit": lambda a: np.polynomial.Polynomial.fit(a(T), a(DATA), 2).coef,
    "gradient": lambda a: np.gradient(a(DATA), a(T)),
    "piecewise": lambda a: np.piecewise(a(V), [a(V) < 2, a(V) >= 2], [0.0, lambda x: x + 1.0]),
    "select": lambda a: np.select([a(V) < 2], [a(V)], 7.0),
    "insert": lambda a: np.insert(a(V), 1, a(9.0)),
    "nanmedian": lambda a: np.nanmedian(a([1.0, np.nan, 3.0])),
    "nanpercentile": lambda a: np.nanpercentile(a([1.0, np.nan, 3.0]), a([20.0, 80.0])),
    "nan_to_num": lambda a: np.nan_to_num(a([1.0, np.nan, 3.0])),
    "percentile": lambda a: np.percentile(a(V), 30, overwrite_input=False),
    "cov": lambda a: np.cov(a(STRIP), aweights=a(V)),
    "corrcoef": lambda a: np.corrcoef(a(STRIP)),
    "pad": lambda a: np.pad(a(STRIP), 2, mode="linear_ramp"),
    "apply_along_axis": lambda a: np.apply_along_axis(lambda r: r / r.sum(), 1, a(SPD)),
    "vectorize": lambda a: np.vectorize(lambda x, y: x + y)(a(V), a(1.0)),
    "einsum": lambda a: np.einsum("ij,j->i", a(SPD), a(V[:3])),
    "savez": lambda a: _saved(a(V)),
    "Generator.choice": lambda a: np.random.default_rng(1).choice(a(V), 3, p=a(V / V.sum())),
    "Generator.normal": lambda a: np.random.default_rng(1).normal(a(V), a(1.0)),
    "Generator.permutation": lambda a: np.random.default_rng(1).permutation(a(V)),
}  # fmt: skip


def _saved(x):
    file = io.BytesIO()
    np.savez(file, x=x)
    file.seek(0)
    return np.load(file)["x"]


def pandas(f):
    def case(a):
        actual = f(pytest.importorskip("pandas"), a)
        return actual.to_numpy() if hasattr(actual, "to_numpy") else np.asarray(actual)

    return case


def _frame_set(pd, a):
    frame = pd.DataFrame({"x": a(V), "y": a(V[::-1])})
    frame.loc[0, "x"] = 7.0
    frame["y"] *= 2.0
    frame["z"] = a(V)
    return frame


PANDAS = {
    name: pandas(f)
    for name, f in {
        "cut": lambda pd, a: pd.cut(a(V), 2).codes,
        "cut bins": lambda pd, a: pd.cut(a(V), a([0.0, 2.0, 6.0])).codes,
        "qcut": lambda pd, a: pd.qcut(a(V), 2).codes,
        "DataFrame": lambda pd, a: pd.DataFrame(a(SPD)).describe(),
        "DataFrame set": _frame_set,
        "Series set": lambda pd, a: _series_set(pd, a),
        "groupby": lambda pd, a: pd.DataFrame({"k": a([0, 1, 0, 1, 0, 1]), "x": a(V)}).groupby("k").mean(),
        "groupby array": lambda pd, a: pd.Series(V).groupby(a([0, 1, 0, 1, 0, 1])).sum(),
        "merge": lambda pd, a: pd.DataFrame({"k": a([0, 1]), "x": a([1.0, 2])}).merge(
            pd.DataFrame({"k": a([1, 0]), "y": a([3.0, 4])})
        ),
        "fillna": lambda pd, a: pd.Series(a([1.0, np.nan])).fillna(a(2.0)[()]),
        "rolling": lambda pd, a: pd.Series(a(V)).rolling(2).mean().dropna(),
        "mask": lambda pd, a: pd.Series(V)[a(V) > 2],
        "iloc": lambda pd, a: pd.Series(V).iloc[a([0, 2])],
        "where": lambda pd, a: pd.Series(V).where(a(V) > 2, a(V) * 10.0),
        "isin": lambda pd, a: pd.Series(V).isin(a([1.0, 2.0])),
        "value_counts": lambda pd, a: pd.Series(a([1, 1, 2])).value_counts(),
        "factorize": lambda pd, a: pd.factorize(a([3, 1, 3]))[0],
        "get_dummies": lambda pd, a: pd.get_dummies(pd.Series(a([0, 1]))).astype(float),
        "concat": lambda pd, a: pd.concat([pd.Series(a(V)), pd.Series(a(V))]),
        "map": lambda pd, a: pd.Series(a(V)).map(lambda x: x + 1.0),
        "unique": lambda pd, a: pd.unique(a(V)),
        "index": lambda pd, a: pd.Series(V, index=a(V)).sort_index(),
        "interpolate": lambda pd, a: pd.Series(a([1.0, np.nan, 3.0])).interpolate(),
        "rank": lambda pd, a: pd.DataFrame(a(SPD)).rank(),
        "corr": lambda pd, a: pd.DataFrame(a(STRIP)).corr().fillna(0.0),
    }.items()
}


def _series_set(pd, a):
    series = pd.Series(a(V), copy=True)
    series[0] = 7.0
    series.iloc[1:] += 1.0
    return series


def drawn(draw):
    """The pixels of a figure."""

    def case(a):
        pytest.importorskip("matplotlib")
        figure = importlib.import_module("matplotlib.figure").Figure((2, 2), dpi=40)
        canvas = importlib.import_module("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
        draw(figure.add_subplot(), a)
        canvas.draw()
        return np.asarray(canvas.buffer_rgba())

    return case


MATPLOTLIB = {
    name: drawn(draw)
    for name, draw in {
        "plot": lambda ax, a: ax.plot(a(T), a(DATA)),
        "semilogy": lambda ax, a: ax.semilogy(a([1.0, 2.0])),
        "semilogx": lambda ax, a: ax.semilogx(a(T), a(DATA)),
        "loglog": lambda ax, a: ax.loglog(a(T), a(DATA)),
        "symlog": lambda ax, a: (ax.plot(a(T), a(DATA)), ax.set_yscale("symlog")),
        "logit": lambda ax, a: (ax.plot(a(T), a(DATA / 3)), ax.set_yscale("logit")),
        "asinh": lambda ax, a: (ax.plot(a(T), a(DATA)), ax.set_yscale("asinh")),
        "limits": lambda ax, a: (ax.plot(a(T)), ax.set_xlim(a(0.0), a(5.0)), ax.set_yscale("log")),
        "scatter": lambda ax, a: ax.scatter(a(T), a(DATA), s=a(10 * T), c=a(T)),
        "hist": lambda ax, a: ax.hist(a(V), bins=a([0.0, 2.0, 6.0]), weights=a(V), log=True),
        "bar": lambda ax, a: ax.bar(a([0, 1, 2]), a([1.0, 2.0, 3.0]), yerr=a([0.1, 0.2, 0.3])),
        "errorbar": lambda ax, a: ax.errorbar(a(T), a(DATA), yerr=a(0.1 * T)),
        "fill_between": lambda ax, a: ax.fill_between(a(T), a(DATA), a(T), where=a(T) > 1.0),
        "imshow": lambda ax, a: ax.imshow(a(STRIP), norm="log", vmin=a(1.0)),
        "contourf": lambda ax, a: ax.contourf(a(STRIP), levels=a([0.0, 2.0, 4.0])),
        "pcolormesh": lambda ax, a: ax.pcolormesh(a(STRIP)),
        "boxplot": lambda ax, a: ax.boxplot([a(V), a(V + 1)]),
        "violinplot": lambda ax, a: ax.violinplot(a(V)),
        "quiver": lambda ax, a: ax.quiver(a(V), a(V), a(V), a(V)),
        "step": lambda ax, a: ax.step(a(T), a(DATA)),
        "ticks": lambda ax, a: (ax.plot(a(T)), ax.set_xticks(a([0.0, 5.0]))),
    }.items()
}

CASES = {
    f"{library}: {name}": case
    for library, cases in (
        ("optimize", OPTIMIZE), ("scipy", SCIPY), ("numpy", NUMPY), ("pandas", PANDAS), ("matplotlib", MATPLOTLIB)
    )
    for name, case in cases.items()
}  # fmt: skip


#: What SciPy lacks, computes in place, or does not take: a bracket and a width that are arrays.
NEEDS = {
    **{f"optimize: {name}": "scipy>=1.14" for name in OPTIMIZE if name.startswith("COBYQA")},
    **dict.fromkeys(("optimize: root_scalar", "scipy: gaussian_filter", "scipy: bootstrap"), "scipy>=1.15"),
    "scipy: zscore": "scipy>=1.16",
}


def case(name):
    needs = (
        [pytest.mark.needs(NEEDS[name], reason="before, not there, or not of arrays")]
        if name in NEEDS
        else []
    )
    return pytest.param(name, marks=needs)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [case(name) for name in CASES])
def test_a_library_computes_with_arrays_what_it_computes_with_ndarrays(name):
    ours, theirs = CASES[name](OURS), CASES[name](np.array)
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-9, atol=1e-12)


# --- JAX in the same process ----------------------------------------------------------------------------------

#: Reads attributes as JAX's functions do (`convert_to_metaty` of jax._src.pjit, `full_like` of jax._src.lax.lax).
AS_JAX = """
def read(x, name):
    return getattr(x, name, None)

def has(x, name):
    return hasattr(x, name)

def export(x, **options):
    return x.__dlpack__(**options)
"""


def as_jax(module="jax._src.pjit"):
    namespace = {"__name__": module}
    exec(AS_JAX, namespace)
    return namespace


def test_functions_of_jax_see_an_array_that_is_on_none_of_their_devices():
    for x in (fnp.ones(3), ft.grad(lambda x: x * x)(2.0)):
        own = x.sharding
        assert own == ft.devices()[0]
        assert as_jax()["read"](x, "sharding") is None
        assert not as_jax("jax._src.lax.lax")["has"](x, "sharding")
        assert as_jax("jaxtyping")["read"](x, "sharding") == own
        assert as_jax()["read"](x, "dtype") == x.dtype


@pytest.mark.needs("numpy>=2.1", reason="NumPy 2.0 does not know that memory is read-only")
def test_dlpack_shares_memory_with_those_who_know_that_it_is_read_only():
    class Consumer:
        """Hands a capsule to NumPy."""

        def __init__(self, capsule):
            self.capsule = capsule

        def __dlpack__(self, **options):
            return self.capsule

        def __dlpack_device__(self):
            return (1, 0)

    x = fnp.arange(3.0)
    shared = np.from_dlpack(x)
    assert np.shares_memory(shared, x)
    assert not shared.flags.writeable
    for options in ({}, {"stream": None}, {"max_version": (0, 8)}):  # as JAX asks
        own = np.from_dlpack(Consumer(as_jax()["export"](x, **options)))
        np.testing.assert_array_equal(own, x)
        assert not np.shares_memory(own, x)
    with pytest.raises(BufferError):
        x.__dlpack__(copy=False)
