"""Let SciPy's own functions accept traced values.

SciPy's functions have no dispatch protocol (such as NumPy's ``__array_function__``), except for ufuncs. So each one
that `functrans.scipy` has with SciPy's arguments is wrapped in its public module. Outside transformations a wrapper
only calls SciPy's function. Inside one, if an argument is traced, it calls the function of `functrans.scipy`. The
solvers of ``scipy.integrate`` and ``scipy.optimize`` call functions that may read traced values, so they do in any
case, and ours check what is involved. So the only calls that change are those that would raise an error. SciPy's
function is the wrapper's ``__wrapped__``, and `unpatch` restores it.

This does not import SciPy's modules: each is patched when it is loaded. At that moment the module of functrans of the
same name is imported too if it registers what it has for traced values, such as the ufuncs of ``scipy.special``. Others
load at the first call with a traced value.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ..arrays.traced_parts import has_tracer
from ..core import current_trace, eval_trace, operators
from ..core.values import ArrayLike, PyTree

#: SciPy's modules with solvers.
_SOLVERS = ("scipy.integrate", "scipy.optimize")
#: The functions to wrap, by module: those of functrans that compute as SciPy's do, from the same arguments. `minimize`
#: and `least_squares` compile the user's function, which SciPy's call with numbers.
_WRAPPED = {
    "scipy.integrate": "cumulative_trapezoid quad simpson solve_ivp trapezoid",
    "scipy.optimize": "bisect brenth brentq fsolve ridder root root_scalar",
    "scipy.special": "bernoulli comb factorial log_softmax logsumexp multigammaln polygamma softmax zeta",
    "scipy.linalg": """block_diag cho_factor cho_solve cholesky circulant companion convolution_matrix det eigh
        eigh_tridiagonal eigvalsh eigvalsh_tridiagonal expm expm_frechet fiedler fiedler_companion funm hankel
        hessenberg inv leslie lu lu_factor lu_solve pinv polar qr qr_multiply rsf2csf schur solve solve_sylvester
        solve_triangular sqrtm svd svdvals toeplitz""",
    "scipy.signal": """convolve convolve2d correlate correlate2d csd detrend fftconvolve istft lfilter periodogram stft
        welch""",
    "scipy.fft": """dct dctn dst dstn fft fft2 fftn fftshift hfft idct idctn idst idstn ifft ifft2 ifftn ifftshift ihfft
        irfft irfft2 irfftn rfft rfft2 rfftn""",
    "scipy.stats": "kurtosis mode rankdata sem skew zscore",
    "scipy.cluster.vq": "vq",
}
#: Our modules that must load with SciPy's: they register ufuncs, or solvers that are not wrapped.
_REGISTERING = {
    **{name: (name,) for name in _SOLVERS},
    "scipy.special": tuple(
        [f"scipy.special.{name}" for name in ("bessel", "error_functions", "gammas", "integrals")]
    ),
}


class _AfterImport:
    """Finds the modules as the finders after it do, and prepares them once loaded."""

    patching = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in _WRAPPED:
            return None
        for finder in [f for f in sys.meta_path if f is not self and hasattr(f, "find_spec")]:
            spec = finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                _listen(spec.loader)
                return spec
        return None


_after_import: Any = _AfterImport()


def _listen(loader: Any) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        _prepare(module)

    with suppress(AttributeError):  # a loader without settable attributes: patch() after the import does it
        loader.exec_module = exec_module


def patch() -> None:
    """Let SciPy's functions accept traced values, where `functrans.scipy` has them: ``scipy.integrate.quad``,
    ``scipy.linalg.expm``, ``scipy.special.logsumexp`` and others. ``import functrans`` calls this.

    A name imported from SciPy earlier (``from scipy.integrate import quad``) remains SciPy's.

    Examples
    --------
    >>> import scipy.integrate, functrans as ft
    >>> ft.grad(lambda a: scipy.integrate.quad(lambda t: a * t**2, 0.0, 3.0)[0])(1.0)
    Array(9.)
    """
    if _after_import not in sys.meta_path:
        sys.meta_path.insert(0, _after_import)
    _after_import.patching = True
    for name in _WRAPPED:
        if name in sys.modules:
            _prepare(sys.modules[name])


def unpatch() -> None:
    """Undo `patch`: restore SciPy's functions.

    Examples
    --------
    >>> import scipy.integrate, functrans as ft
    >>> ft.scipy.unpatch()
    >>> hasattr(scipy.integrate.quad, "__wrapped__")
    False
    >>> ft.scipy.patch()
    >>> hasattr(scipy.integrate.quad, "__wrapped__")
    True
    """
    _after_import.patching = False
    for module in [sys.modules[name] for name in _WRAPPED if name in sys.modules]:
        for function in _WRAPPED[module.__name__].split():
            setattr(module, function, unpatched(getattr(module, function)))


def unpatched(solver: Callable[..., Any]) -> Callable[..., Any]:
    """The function of SciPy, even if `functrans.scipy.patch` has replaced it."""
    return getattr(solver, "_unpatched", solver)


def _prepare(module: ModuleType) -> None:
    """Load our modules that register something, and wrap the functions of SciPy's."""
    name = module.__name__
    wrapped = _WRAPPED[name].split()
    for registering in _REGISTERING.get(name, ()):
        import_module(f"functrans.{registering}")
    if name == "scipy.special":
        operators.ufunc.update({getattr(module, n): ours for n, ours in operators.special.items()})
    for n in wrapped if _after_import.patching else ():
        function = getattr(module, n)
        if unpatched(function) is function:
            setattr(module, n, _wrapped(function, name, n))


def _wrapped(function: Callable[..., PyTree], module: str, name: str) -> Callable[..., Any]:
    solves = module in _SOLVERS

    @wraps(function)
    def wrapper(*args: ArrayLike, **kwargs: Any) -> PyTree:
        if current_trace.get() is eval_trace or not (solves or has_tracer(args) or has_tracer(kwargs)):
            return function(*args, **kwargs)
        return getattr(import_module(f"functrans.{module}"), name)(*args, **kwargs)

    wrapper.__module__ = module  # used by pickle
    wrapper._unpatched = function  # type: ignore[attr-defined]
    return wrapper


#: Alternatives to further functions of SciPy that do not accept traced values.
_CURES = {
    **dict.fromkeys(
        ("scipy.integrate.dblquad", "scipy.integrate.tplquad", "scipy.integrate.nquad"),
        "Call functrans.scipy.integrate.quad in the integrand of another quad",
    ),
    **dict.fromkeys(
        ("scipy.integrate.odeint", "scipy.integrate.ode"),
        "Call functrans.experimental.ode.odeint or functrans.scipy.integrate.solve_ivp",
    ),
    "scipy.optimize.toms748": "Call functrans.scipy.optimize.brentq",
    **dict.fromkeys(
        [f"scipy.optimize.{n}" for n in ("minimize_scalar", "leastsq", "curve_fit")],
        "Call functrans.scipy.optimize.minimize or functrans.scipy.optimize.least_squares",
    ),
}
operators.converting.update(_CURES)
_DISTRIBUTIONS = "The distributions of functrans.scipy.stats have functions of the same names"
#: The classes of SciPy's distributions, whose methods convert their arguments.
operators.converting.update(
    dict.fromkeys(
        [
            *[
                "rv_continuous",
                "rv_continuous_frozen",
                "rv_discrete",
                "rv_discrete_frozen",
                "rv_frozen",
                "rv_generic",
            ],
            *["dirichlet_gen", "multinomial_gen", "multivariate_normal_frozen", "multivariate_normal_gen"],
        ],
        _DISTRIBUTIONS,
    )
)
