"""Ufuncs of the user's own functions: frompyfunc, ufunc."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ..core.values import ArrayLike, AxisLike, DTypeLike, Param, PyTree
from ..errors import ArgumentError, ArgumentValueError, ImmutableArrayError
from ..frontend.arguments import check_function, name_of
from ..frontend.checked import checked
from .calling import vectorize
from .dispatch import NO_VALUE
from .ufunc_methods import ufunc_method


class ufunc:
    """A function of numbers that maps over arrays, which broadcast; `frompyfunc` makes one.

    Parameters
    ----------
    func : callable
        A function of `nin` numbers, with `nout` results. It is traced once, and must use `where` instead of ``if``.
    nin, nout : int
    name : str, optional
        By default that of the function.
    nargs : int, optional
        ``nin + nout``.
    identity : number, optional
        The result of reducing no elements.

    Notes
    -----
    Reductions of functions that take two numbers and return one are unrolled: for many elements, write them with
    `lax.reduce` or `lax.scan`.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> add = fnp.frompyfunc(lambda x, y: x + 2 * y, 2, 1)
    >>> add([1.0, 2.0], 10.0), add.reduce(fnp.asarray([1.0, 2.0, 3.0]))
    (Array([21., 22.]), Array(11.))
    """

    @checked
    def __init__(
        self,
        func: Callable[..., PyTree],
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: Any = None,
    ):
        check_function("frompyfunc", func)
        if nin < 1 or nout < 1 or nargs not in (None, nin + nout):
            raise ArgumentValueError(
                f"frompyfunc: nin={nin} and nout={nout} must be positive, and nargs={nargs} their sum"
            )
        self.nin, self.nout, self.nargs, self.identity = nin, nout, nin + nout, identity
        self.__name__ = name_of(func) if name is None else name
        self.__doc__ = func.__doc__
        self._mapped = vectorize(func)

    def __repr__(self) -> str:
        return f"<functrans.numpy.ufunc {self.__name__!r}>"

    def __call__(self, *args: PyTree) -> Any:
        """The function of all elements."""
        if len(args) != self.nin:
            raise ArgumentError(f"{self.__name__}: expected nin={self.nin} arguments, got {len(args)}")
        out = self._mapped(*args)
        count = len(out) if isinstance(out, tuple) else 1
        if count != self.nout:
            raise ArgumentValueError(f"{self.__name__}: expected nout={self.nout} results, got {count}")
        return out

    def _method(self, method: str, *args: PyTree, **options: Param) -> Any:
        if (self.nin, self.nout) != (2, 1):
            raise ArgumentValueError(
                f"{self.__name__}.{method}: only functions of two numbers with one result have it, this one has "
                f"nin={self.nin} and nout={self.nout}"
            )
        return ufunc_method(method, self, self, f"{self.__name__}.{method}", *args, **options)

    @checked
    def reduce(
        self,
        a: ArrayLike,
        axis: AxisLike = 0,
        dtype: DTypeLike = None,
        out: Any = None,
        keepdims: bool = False,
        initial: ArrayLike = None,
        where: Any = None,
    ) -> Any:
        """Combine the elements along an axis, from the first to the last."""
        first = NO_VALUE if initial is None else initial
        return self._method("reduce", a, axis, dtype, out, keepdims, first, True if where is None else where)

    @checked
    def accumulate(self, a: ArrayLike, axis: int = 0, dtype: DTypeLike = None, out: ArrayLike = None) -> Any:
        """All results of `reduce` of the first elements along an axis."""
        return self._method("accumulate", a, axis, dtype, out)

    @checked
    def reduceat(
        self, a: ArrayLike, indices: ArrayLike, axis: int = 0, dtype: DTypeLike = None, out: ArrayLike = None
    ) -> Any:
        """`reduce` of slices, from each index to the next."""
        return self._method("reduceat", a, indices, axis, dtype, out)

    @checked
    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Any:
        """The function of all pairs of elements."""
        return self._method("outer", A, B)

    def at(self, a: ArrayLike, indices: Any, b: ArrayLike = None, /, *, inplace: bool = True) -> NoReturn:
        """Not available: arrays are immutable."""
        raise ImmutableArrayError(
            f"{self.__name__}.at: arrays are immutable: write x = x.at[i].apply(f), or x.at[i].set(f(x[i], v))"
        )


@checked
def frompyfunc(func: Callable[..., PyTree], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """Make a `ufunc` of a function of numbers.

    Parameters
    ----------
    func : callable
    nin, nout : int
        The numbers of arguments and results.
    identity : number, optional
        The result of reducing no elements.

    Returns
    -------
    ufunc

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> fnp.frompyfunc(lambda x, y: fnp.maximum(x, -y), 2, 1).outer([1.0, -3.0], [2.0, 1.0])
    Array([[ 1.,  1.],
           [-2., -1.]])
    """
    return ufunc(func, nin, nout, identity=identity)
