"""What jitted functions offer to code that Numba compiles. `functrans.interop`, which loads when asked, provides it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.array import Array
from ...core import ArgumentError, DtypeError, ImmutableArrayError, ShapeError, Tracer
from ...core.values import Param, PyTree
from ...frontend.arguments import name_of
from ...frontend.pytree import tree_flatten_with_path, tree_structure
from ...frontend.pytree.nodes import keystr
from ...runtime.module_getattr import slots
from ...runtime.portable import Portable, in_words


class CalledFromNumba(Portable):
    """A jitted function that code compiled by Numba may call."""

    @property
    def _numba_type_(self) -> Any:
        """What Numba makes of the function in code that it compiles."""
        return slots.numba.forms_of(self).type

    @property
    def into(self) -> Into:
        """The function with its results written into your arrays: ``g.into(out, *args, **kwargs)``.

        `out` is a writable array of the result's shape and dtype, or a tuple of arrays where the result is one; a
        number needs an array without axes. It may overlap an argument. From Python and from code that Numba compiles,
        where the call allocates nothing through Numba's runtime. After an error its contents are undefined.

        Raises
        ------
        ShapeError
            When called: `out` has another shape than the result.
        DtypeError, ArgumentError, ImmutableArrayError
            When called: `out` is not an array, is read-only, or has another dtype or tree. Numba raises a
            `TypingError` for these.

        Examples
        --------
        >>> import functrans as ft, numpy as np
        >>> g = ft.jit(ft.grad(lambda x: (x**3).sum()))
        >>> out = np.empty(3)
        >>> g.into(out, np.array([1.0, 2.0, 3.0]))
        >>> out
        array([ 3., 12., 27.])
        """
        return Into(self)

    def cfunc(self, signature: Any, **options: Param) -> Any:
        """The function of numbers as a C function, by `numba.cfunc`.

        Parameters
        ----------
        signature : Numba signature, or its text
            Such as ``"float64(float64, float64)"``.
        options : dict
            Those of `numba.cfunc`.

        Returns
        -------
        numba.core.ccallback.CFunc
            With ``.address`` and ``.ctypes``, which `scipy.LowLevelCallable` takes.

        Raises
        ------
        ArgumentError
            If an argument or the result is not a number.

        Examples
        --------
        >>> import functrans as ft, scipy.integrate
        >>> slope = ft.jit(ft.grad(lambda x: x**3)).cfunc("float64(float64)")
        >>> round(scipy.integrate.quad(scipy.LowLevelCallable(slope.ctypes), 0.0, 2.0)[0], 12)
        8.0
        """
        return slots.numba.forms_of(self).cfunc(signature, options)


class Into:
    """See `CalledFromNumba.into`."""

    def __init__(self, jitted: Any):
        self._jitted = jitted

    @property
    def _numba_type_(self) -> Any:
        return slots.numba.forms_of(self._jitted, into=True).type

    def __call__(self, out: Any, *args: PyTree, **kwargs: PyTree) -> None:
        """Call the function, and write its results to `out`."""
        where = f"into of {name_of(self._jitted.__wrapped__)}"
        result = self._jitted(*args, **kwargs)
        given, wanted = tree_structure(out), tree_structure(result)
        if given != wanted:
            raise ArgumentError(f"{where}: out has the structure {given}, but the result has {wanted}")
        pairs = [
            (target, value, f"{where}: out{keystr(path)}")
            for (path, target), (_, value) in zip(
                tree_flatten_with_path(out)[0], tree_flatten_with_path(result)[0], strict=True
            )
        ]
        for pair in pairs:
            _check(*pair)
        for target, value, _ in pairs:
            target[...] = value

    def __repr__(self) -> str:
        return f"<into of {in_words(self._jitted)}>"


def _check(out: Any, result: Any, where: str) -> None:
    """Raise if an array is not memory for a result."""
    if isinstance(result, Tracer):
        raise ArgumentError(
            f"{where} would be written while a transformation traces the call: call the function itself there"
        )
    if not isinstance(out, np.ndarray):
        raise ArgumentError(f"{where} must be an array of shape {result.shape}, got a {type(out).__name__}")
    if isinstance(out, Array) or not out.flags.writeable:
        raise ImmutableArrayError(
            f"{where} is read-only: pass a writable ndarray, such as np.empty({result.shape})"
        )
    if out.shape != result.shape:
        raise ShapeError(f"{where} has shape {out.shape}; the result has {result.shape}")
    if out.dtype != result.dtype:
        raise DtypeError(f"{where} has dtype {out.dtype}; the result has {result.dtype}")
