"""SciPy's own solvers on traced values, and SciPy as it is wherever there are none."""

import inspect
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

import functrans as ft

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
