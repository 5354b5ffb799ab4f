"""SciPy's own functions on traced values, and SciPy as it is wherever there are none."""

import importlib
import inspect
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.linalg
import scipy.optimize
import scipy.signal
import scipy.special
import scipy.stats
from versions import has

import functrans as ft
from functrans.scipy import patched

SOLVERS = [
    (scipy.integrate, "quad"),
    (scipy.integrate, "solve_ivp"),
    *[
        (scipy.optimize, name)
        for name in ("bisect", "brentq", "brenth", "ridder", "root_scalar", "root", "fsolve")
    ],
]


@pytest.mark.parametrize(("module", "name"), SOLVERS)
def test_the_wrapper_looks_like_the_function(module, name):
    solver = getattr(module, name)
    ours = getattr(getattr(ft.scipy, module.__name__.partition(".")[2]), name)
    own = solver.__wrapped__
    assert inspect.signature(solver) == inspect.signature(own)
    assert list(inspect.signature(ours).parameters) == list(inspect.signature(own).parameters)
    defaults = [p.default for p in inspect.signature(ours).parameters.values()]
    assert defaults == [p.default for p in inspect.signature(own).parameters.values()]
    assert solver.__doc__ == own.__doc__
    assert pickle.loads(pickle.dumps(solver)) is solver


WRAPPED = [
    (module, name)
    for module, names in patched._WRAPPED.items()
    for name in names.split()
    if module not in ("scipy.integrate", "scipy.optimize")
]


@pytest.mark.parametrize(("module", "name"), WRAPPED)
def test_ours_takes_the_arguments_of_scipys(module, name):
    function = getattr(importlib.import_module(module), name)
    ours = getattr(importlib.import_module(f"functrans.{module}"), name)
    own, theirs = (
        [p for p in inspect.signature(f).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        for f in (ours, function.__wrapped__)
    )
    renamed = {"a": "x"} if module == "scipy.fft" else {}
    for mine, other in zip(own, theirs):
        if mine.name in ("where", "out"):  # ours alone, after those of SciPy
            break
        assert renamed.get(mine.name, mine.name) == other.name
        if (name, mine.name) == ("solve", "assume_a") and not has("scipy>=1.15"):
            continue  # SciPy does not look for a structure, and its default is another
        same = mine.default is other.default or mine.default == other.default
        assert same or (name, mine.name) == ("zeta", "q") or other.default == "hann_periodic"
    assert pickle.loads(pickle.dumps(function)) is function
    assert function.__doc__ == function.__wrapped__.__doc__


def test_functions_of_linalg_signal_and_stats():
    x, a = np.array([1.0, 2.0, 3.0]), np.diag([2.0, 3.0, 4.0])
    for f in (
        lambda x: scipy.special.logsumexp(x),
        lambda x: scipy.special.softmax(x)[0],
        lambda x: scipy.linalg.cho_solve((np.sqrt(a), True), x).sum(),
        lambda x: scipy.linalg.cho_solve((np.sqrt(a) * x[0], True), x).sum(),
        lambda x: scipy.linalg.solve_triangular(a, b=x).sum(),
        lambda x: scipy.linalg.expm(a * x).sum(),
        lambda x: scipy.linalg.toeplitz(x).sum(),
        lambda x: scipy.linalg.block_diag(a, [[x[0], x[1]]]).sum(),
        lambda x: scipy.signal.convolve(x, x, mode="same").sum(),
        lambda x: scipy.fft.dct(x)[1],
        lambda x: scipy.stats.skew(x**3),
    ):
        expected = np.sum([(f(x + h) - f(x - h)) / 2e-5 for h in 1e-5 * np.eye(3)])
        for gradient in (ft.grad(f), ft.jit(ft.grad(f))):
            np.testing.assert_allclose(gradient(x).sum(), expected, rtol=1e-5, atol=1e-9)
        assert not isinstance(f(x), ft.Array)
    under_jit = ft.jit(lambda x: x * scipy.linalg.expm(a))(1.0)  # numbers only: SciPy computes
    np.testing.assert_allclose(under_jit, scipy.linalg.expm(a))


def test_distributions_of_scipy_name_ours():
    for f in (
        lambda x: scipy.stats.norm.logpdf(x),
        lambda x: scipy.stats.norm(x).cdf(1.0),
        lambda x: scipy.stats.poisson.pmf(1, x),
        lambda x: scipy.stats.multivariate_normal.logpdf(np.ones(1), mean=x[None]),
    ):
        with pytest.raises(ft.errors.ConcretizationTypeError, match=r"functrans\.scipy\.stats"):
            ft.grad(f)(1.0)


def test_outside_of_transformations_it_is_scipy():
    found = scipy.integrate.quad(lambda t: t, 0, 1)
    assert found == scipy.integrate.quad.__wrapped__(lambda t: t, 0, 1)
    assert type(scipy.optimize.brentq(lambda x: x - 0.5, 0, 1)) is float
    assert ft.grad(lambda a: a * scipy.optimize.brentq(lambda x: x - 0.5, 0, 1))(1.0) == 0.5


def test_unpatch():
    ft.scipy.unpatch()
    try:
        for module, name in SOLVERS:
            assert not hasattr(getattr(module, name), "_unpatched")
        with pytest.raises(
            ft.errors.TracerScalarConversionError, match=r"Call functrans\.scipy\.integrate\.quad"
        ):
            ft.grad(lambda a: scipy.integrate.quad(lambda t: a * t, 0, 1)[0])(1.0)
        assert ft.grad(lambda a: ft.scipy.integrate.quad(lambda t: a * t, 0, 1)[0])(1.0) == 0.5
    finally:
        ft.scipy.patch()
        ft.scipy.patch()  # once more changes nothing
    assert not hasattr(scipy.integrate.quad.__wrapped__, "_unpatched")
    assert ft.grad(lambda a: scipy.integrate.quad(lambda t: a * t, 0, 1)[0])(1.0) == 0.5


@pytest.mark.parametrize(
    ("call", "error", "cure"),
    [
        (
            lambda a: scipy.integrate.dblquad(lambda x, y: a, 0, 1, 0, 1)[0],
            "Scalar",
            "integrate.quad in the integrand",
        ),
        (
            lambda a: scipy.integrate.nquad(lambda x, y: a, [(0, 1)] * 2)[0],
            "Scalar",
            "integrate.quad in the integrand",
        ),
        (
            lambda a: scipy.integrate.odeint(lambda y, t: a, 1.0, [0, 1])[-1, 0],
            "Array",
            "integrate.solve_ivp",
        ),
        (lambda a: scipy.optimize.toms748(lambda y: y**3 - a, 0, 5), "Array", "optimize.brentq"),
        (lambda a: scipy.optimize.minimize(lambda y: (y[0] - a) ** 2, [1.0]).x[0], "Array", "optimize.root"),
        (lambda a: scipy.optimize.leastsq(lambda y: y - a, 1.0)[0][0], "Array", "optimize.root"),
    ],
)
def test_other_solvers_are_refused_with_a_cure(call, error, cure):
    with pytest.raises(ft.errors.ConcretizationTypeError, match=cure) as met:
        ft.grad(call)(1.0)
    assert error in type(met.value).__name__
    with pytest.raises(ft.errors.ConcretizationTypeError, match=cure):
        ft.jit(call)(1.0)


PROGRAMS = {
    "SciPy first": "import scipy.integrate\nimport functrans as ft\nquad = scipy.integrate.quad",
    "SciPy last": "import functrans as ft\nimport scipy.integrate\nquad = scipy.integrate.quad",
    "a name, SciPy last": "import functrans as ft\nfrom scipy.integrate import quad",
    "lazily": "import functrans as ft\nimport scipy\nquad = lambda *args: scipy.integrate.quad(*args)",
}
LOSS = "print(ft.grad(lambda a: a**2 + quad(lambda t: a * t, 0, 1)[0])(1.0))"


@pytest.mark.wide(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_orders_of_imports(name):
    done = subprocess.run([sys.executable, "-c", f"{PROGRAMS[name]}\n{LOSS}"], capture_output=True, text=True)
    assert done.stdout == "2.5\n", done.stderr


def test_a_name_taken_before_is_refused_with_the_cure():
    text = f"from scipy.integrate import quad\nimport functrans as ft\n{LOSS}"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert "TracerScalarConversionError: scipy.integrate.quad asked for" in done.stderr
    assert "Call functrans.scipy.integrate.quad" in done.stderr


def test_neither_module_is_imported_for_it():
    text = (
        "import sys, functrans\nprint([m for m in ('scipy.integrate', 'scipy.optimize') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_in_both_modes_and_compiled():
    fun = lambda a: scipy.optimize.brentq(lambda y: y**3 + a * y - 1, 0, 1)
    y = fun(1.3)
    exact = -y / (3 * y**2 + 1.3)
    for transform in (ft.grad, ft.jacfwd, lambda f: ft.jit(ft.grad(f))):
        np.testing.assert_allclose(transform(fun)(1.3), exact, rtol=1e-9)
