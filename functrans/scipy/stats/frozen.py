"""Distributions with fixed parameters, ``stats.norm(mu, s)``, and the namespaces that make them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from functools import partial, wraps
from importlib import import_module
from types import ModuleType
from typing import Any

from ...core import ArgumentError
from ...core.values import ArrayLike, PyTree
from ...frontend.pytree.nodes import GetAttrKey
from ...frontend.pytree.register import register_pytree_with_keys
from ...numpy.creation.filled import asarray
from ...runtime.module_getattr import module_attributes
from ...runtime.tracebacks import boundary

PACKAGE = "functrans.scipy.stats"
_HINTS = {"rvs": "functrans.random draws samples, from keys", "fit": "Minimize -sum(logpdf(data, ...))"}


class Namespace(ModuleType):
    """The functions of one distribution, as a module that can be called: that fixes the parameters.

    Parameters
    ----------
    name : str
        In `scipy.stats`.
    doc : str
    functions : iterable of callable
        The point is their first argument, except for `entropy`; the parameters follow.
    """

    def __init__(self, name: str, doc: str, functions: Iterable[Callable[..., Any]]):
        super().__init__(f"{PACKAGE}.{name}", doc)
        names = self.__dict__
        names.update({f.__name__: f for f in functions})
        names["__all__"] = sorted(f.__name__ for f in functions)
        names["__getattr__"], self._names = module_attributes(self.__name__, names, _HINTS)
        sys.modules[self.__name__] = self  # so that ``import functrans.scipy.stats.norm`` works, and pickling

    def __dir__(self) -> list[str]:
        return self._names()

    def __reduce__(self) -> tuple[Callable[..., ModuleType], tuple[str]]:
        return import_module, (self.__name__,)

    @boundary
    def __call__(self, *args: ArrayLike, **kwds: Any) -> FrozenDistribution:
        """The distribution with these parameters: ``stats.norm(mu, s).logpdf(x)`` is ``stats.norm.logpdf(x, mu, s)``.

        Parameters
        ----------
        *args, **kwds
            The parameters, as the functions take them after their first argument. They may be traced.

        Returns
        -------
        FrozenDistribution
            A pytree of the parameters.

        Raises
        ------
        ArgumentError
            If the distribution does not have these parameters.

        Examples
        --------
        >>> import functrans as ft
        >>> from functrans.scipy.stats import norm
        >>> norm(1.0, scale=2.0).cdf(1.0)
        Array(0.5)
        >>> ft.grad(lambda mu: norm(mu).logpdf(3.0))(1.0)
        Array(2.)
        """
        name = self.__name__.rpartition(".")[2]
        main = next(f for n, f in vars(self).items() if n in ("logpdf", "logpmf"))
        _, *parameters = inspect.signature(main).parameters.values()
        try:
            bound = inspect.Signature(parameters).bind(*args, **kwds)
        except TypeError as error:
            listed = ", ".join(str(p.replace(annotation=p.empty)) for p in parameters)
            raise ArgumentError(f"{name}: {error}; the parameters are ({listed})") from None
        return FrozenDistribution(name, {n: _kept(x) for n, x in bound.arguments.items()})


def _kept(x: ArrayLike) -> Any:
    """A parameter that does not change with the caller's array; Python numbers, which are weak, as they are."""
    return x if x is None or type(x) in (bool, int, float) else asarray(x)


class FrozenDistribution:
    """A distribution with fixed parameters: its functions take the remaining argument.

    A pytree of the parameters, so that it may be an argument or a result of a jitted function.

    Attributes
    ----------
    name : str
        Of the distribution.
    kwds : dict
        The parameters.
    """

    __slots__ = ("kwds", "name")

    def __init__(self, name: str, kwds: dict[str, Any]):
        self.name = name
        self.kwds = kwds

    @property
    def dist(self) -> Any:
        """The distribution: the namespace of its functions."""
        return import_module(f"{PACKAGE}.{self.name}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        function = getattr(self.dist, name)
        taken = inspect.signature(function).parameters
        return wraps(function)(partial(function, **{n: x for n, x in self.kwds.items() if n in taken}))

    def __dir__(self) -> list[str]:
        return ["dist", "kwds", "name", *self.dist.__all__]

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{n}={x}' for n, x in self.kwds.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDistribution, (self.name, self.kwds)


def _flatten(x: FrozenDistribution) -> tuple[list[Any], Any]:
    return [(GetAttrKey(n), v) for n, v in x.kwds.items()], (x.name, tuple(x.kwds))


def _unflatten(aux: PyTree, children: Iterable[Any]) -> FrozenDistribution:
    return FrozenDistribution(aux[0], dict(zip(aux[1], children)))


register_pytree_with_keys(FrozenDistribution, _flatten, _unflatten)
