"""Let SciPy's own solvers accept traced values.

SciPy's solvers have no dispatch protocol (such as NumPy's ``__array_function__``). So each solver that functrans can
differentiate is wrapped in its public module: ``scipy.integrate``, ``scipy.optimize``. Outside transformations a
wrapper only calls SciPy's function. Inside one it calls the function of the same name in `functrans.scipy`, which
checks whether traced values are involved. So the only calls that change are those that would raise an error. SciPy's
function is the wrapper's ``__wrapped__``, and `unpatch` restores it.

This does not import SciPy's modules: each is patched when it is loaded. At that moment the module of functrans of the
same name is imported too, which registers what it has for traced values, such as the ufuncs of ``scipy.special``.
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

from ..core import current_trace, eval_trace, operators

#: SciPy's modules with solvers to wrap, and those for which functrans has a module of the same name.
_SOLVERS = ("scipy.integrate", "scipy.optimize")
_MODULES = (*_SOLVERS, "scipy.special")
#: What compiles the user's function, which SciPy's solver of the same name calls with numbers, and what SciPy lacks.
_COMPILING = ("OptimizeResults", "least_squares", "minimize")


class _AfterImport:
    """Finds the modules as the finders after it do, and prepares them once loaded."""

    patching = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in _MODULES:
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
    """Let ``scipy.integrate.quad`` and other solvers accept traced values. ``import functrans`` calls this.

    The functions are those of `functrans.scipy.integrate` and `functrans.scipy.optimize`. A name imported from SciPy
    earlier (``from scipy.integrate import quad``) remains SciPy's.

    Examples
    --------
    >>> import scipy.integrate, functrans as ft
    >>> ft.grad(lambda a: scipy.integrate.quad(lambda t: a * t**2, 0.0, 3.0)[0])(1.0)
    Array(9.)
    """
    if _after_import not in sys.meta_path:
        sys.meta_path.insert(0, _after_import)
    _after_import.patching = True
    for name in _MODULES:
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
    for module in [sys.modules[name] for name in _SOLVERS if name in sys.modules]:
        for solver in _wrappable(module):
            setattr(module, solver, unpatched(getattr(module, solver)))


def unpatched(solver: Callable[..., Any]) -> Callable[..., Any]:
    """SciPy's own function, even if `functrans.scipy.patch` has replaced it."""
    return getattr(solver, "_unpatched", solver)


def _ours(module: ModuleType) -> ModuleType:
    """The module of functrans of the same name."""
    return import_module(f"functrans.{module.__name__}")


def _wrappable(module: ModuleType) -> list[str]:
    """The solvers that compute as SciPy's do, of those that functrans has."""
    return [name for name in _ours(module).__all__ if name not in _COMPILING]


def _prepare(module: ModuleType) -> None:
    """Load our module, and wrap the solvers of SciPy's."""
    ours, name = _ours(module), module.__name__
    if name not in _SOLVERS:
        return
    operators.converting.update({f"{name}.{n}": f"Call functrans.{name}.{n}" for n in ours.__all__})
    for solver in _wrappable(module) if _after_import.patching else ():
        function = getattr(module, solver)
        if unpatched(function) is function:
            setattr(module, solver, _wrapped(function, name, getattr(ours, solver)))


def _wrapped(solver: Callable[..., Any], module: str, ours: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(solver)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if current_trace.get() is eval_trace:
            return solver(*args, **kwargs)
        return ours(*args, **kwargs)

    wrapper.__module__ = module  # used by pickle
    wrapper._unpatched = solver  # type: ignore[attr-defined]
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
