"""Computations that fail for particular numbers."""

from __future__ import annotations

import numpy as np

from .base import FunctransError


class LinAlgError(FunctransError, np.linalg.LinAlgError):
    """A decomposition failed: a matrix that is not positive definite, or singular.

    >>> import numpy as np, functrans as ft, functrans.numpy as fnp
    >>> ft.jit(fnp.linalg.cholesky)(-np.eye(2))
    Traceback (most recent call last):
    ...
    functrans.core.errors.LinAlgError: cholesky: the matrix is not positive definite...

    ``except numpy.linalg.LinAlgError`` catches it. Add a small multiple of the identity, or let the result be NaN:

    >>> with ft.config.patch(linalg_errors="nan"):
    ...     bool(np.isnan(fnp.linalg.cholesky(-np.eye(2))).any())
    True
    """


class NaNError(FunctransError, FloatingPointError):
    """An operation returned NaN while ``config.debug_nans`` is on.

    >>> import functrans as ft, functrans.numpy as fnp
    >>> @ft.jit
    ... def f(x):
    ...     return fnp.sum(fnp.log(x) * x)
    >>> with ft.config.patch(debug_nans=True):
    ...     f(fnp.asarray([1.0, -1.0]))
    Traceback (most recent call last):
    ...
    functrans.core.errors.NaNError: log returned NaN (1 of 2 elements, the first at (1,))...

    The message names the operation that returned it (in compiled functions too), or the backward of a custom operation
    (``MyOpBackward``), and shows your line. If the NaN is discarded, as in ``fnp.where(x > 0, fnp.log(x), 0.0)``, give
    the function valid numbers: ``fnp.log(fnp.where(x > 0, x, 1.0))``. This also fixes the gradient.
    """


class SolverError(FunctransError, RuntimeError):
    """A SciPy solver found no solution, but its derivative is needed.

    >>> import functrans as ft
    >>> from functrans.scipy.optimize import brentq
    >>> ft.grad(lambda a: brentq(lambda y: y**3 + a * y - 1, 0.0, 1.0, maxiter=2))(1.3)
    Traceback (most recent call last):
    ...
    functrans.core.errors.SolverError: brentq: no root was found: convergence error...

    The derivative follows from the equation, which holds only at a solution. Without derivatives, SciPy's own warnings
    and flags apply. Start closer, widen the bracket, allow more iterations, or loosen the tolerances.
    """
