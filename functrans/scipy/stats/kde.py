"""Kernel density estimates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import numpy as fnp
from ... import random
from ...core import ArgumentError, ArgumentValueError, ShapeError
from ...core.values import ArrayLike, ShapeLike, Value
from ...frontend.checked import checked
from ...frontend.pytree.register import register_pytree_node_class
from ...numpy.linalg import cholesky
from ...primitives import ops
from ...primitives.ops import finish, shape_of
from .. import special
from ..linalg import solve_triangular
from .namespaces import floats

LOG_TAU = math.log(2 * math.pi)


@register_pytree_node_class
class gaussian_kde:
    """A density estimated from a sample: the mean of normal densities around its points.

    Parameters
    ----------
    dataset : array_like, shape (d, n) or (n,)
        The `n` points of the sample.
    bw_method : {'scott', 'silverman'}, float or callable, optional
        The bandwidth: the factor by which the standard deviations of the sample are multiplied; or ``f(kde)`` that
        returns it. By default 'scott'.
    weights : array_like, shape (n,), optional
        Positive; they are normalised. By default equal.

    Attributes
    ----------
    dataset : Array, shape (d, n)
    weights : Array, shape (n,)
        Their sum is 1.
    neff : Array
        The effective number of points, ``1 / sum(weights**2)``.
    factor : Array
        The bandwidth.
    covariance, inv_cov : Array, shape (d, d)
        Of each normal density, and its inverse.

    Raises
    ------
    ArgumentValueError
        For a sample of one point or none, and an unknown bandwidth.
    ShapeError
        If the shapes do not fit together.
    LinAlgError
        If the covariance of the sample is singular.

    Notes
    -----
    A pytree: it can be passed to transformed functions, made in them, and differentiated in the sample.

    References
    ----------
    D. W. Scott, Multivariate density estimation, 1992.

    Examples
    --------
    >>> from functrans.scipy.stats import gaussian_kde
    >>> kde = gaussian_kde([1.0, 2.0, 4.0])
    >>> kde.evaluate([2.0])
    Array([0.21489537])
    """

    @checked
    def __init__(self, dataset: Value, bw_method: Any = None, weights: ArrayLike = None):
        given = [dataset] if weights is None else [dataset, weights]
        data, *rest = floats("gaussian_kde", *given, broadcast=False)
        shape = shape_of(data)
        if len(shape) > 2:
            raise ShapeError(f"gaussian_kde: dataset must have shape (d, n) or (n,), got {shape}")
        self.dataset = np.reshape(data, (1, -1)) if len(shape) < 2 else data
        if self.n < 2:
            raise ArgumentValueError(
                f"gaussian_kde: dataset should have more than one point along its last axis, got shape {shape}"
            )
        self.weights = self._normalised(*rest)
        self.neff = 1 / np.sum(np.square(self.weights))
        self.factor = self._bandwidth(bw_method)
        self.covariance = _covariance(self.dataset, self.weights, self.neff) * np.square(self.factor)
        self.inv_cov = fnp.linalg.inv(self.covariance)
        self._factored = cholesky(self.covariance)
        self._finish()

    def _finish(self) -> None:
        for name in _FIELDS:
            setattr(self, name, finish(getattr(self, name)))

    def _normalised(self, weights: ArrayLike = None) -> Value:
        if weights is None:
            return np.full(self.n, 1 / self.n, ops.dtype_of(self.dataset))
        if shape_of(weights) != (self.n,):
            raise ShapeError(
                f"gaussian_kde: weights must have shape ({self.n},), one for each point, got {shape_of(weights)}"
            )
        return weights / np.sum(weights)

    def _bandwidth(self, method: Any) -> Value:
        d, neff = self.d, self.neff
        if method is None or (isinstance(method, str) and method == "scott"):
            return neff ** (-1 / (d + 4))
        if isinstance(method, str) and method == "silverman":
            return (neff * (d + 2) / 4) ** (-1 / (d + 4))
        if isinstance(method, str):
            raise ArgumentValueError(
                f"gaussian_kde: bw_method must be 'scott', 'silverman', a number or a function, got {method!r}"
            )
        (factor,) = floats("gaussian_kde: bw_method", method(self) if callable(method) else method)
        if shape_of(factor):
            raise ShapeError(f"gaussian_kde: bw_method must be one number, got shape {shape_of(factor)}")
        return ops.convert(factor, ops.dtype_of(self.dataset))

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return int(shape_of(self.dataset)[0])

    @property
    def n(self) -> int:
        """The number of points."""
        return int(shape_of(self.dataset)[1])

    def scotts_factor(self) -> Value:
        """Scott's bandwidth, ``neff**(-1 / (d + 4))``."""
        return finish(self._bandwidth("scott"))

    def silverman_factor(self) -> Value:
        """Silverman's bandwidth, ``(neff * (d + 2) / 4)**(-1 / (d + 4))``."""
        return finish(self._bandwidth("silverman"))

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """The arrays, for `functrans.tree_util`."""
        return tuple(getattr(self, name) for name in _FIELDS), None

    @classmethod
    def tree_unflatten(cls, _: None, children: ArrayLike) -> gaussian_kde:
        """The estimate again."""
        kde = object.__new__(cls)
        for name, child in zip(_FIELDS, children):
            setattr(kde, name, child)
        return kde

    # --- the density

    def evaluate(self, points: Value) -> Value:
        """The density.

        Parameters
        ----------
        points : array_like, shape (d, m) or (d,); for ``d = 1`` also (m,)

        Returns
        -------
        Array, shape (m,)
        """
        energy = self._energy("gaussian_kde.evaluate", points)
        return finish(np.sum(self.weights * np.exp(self._log_norm() - energy), axis=-1))

    def logpdf(self, x: Value) -> Any:
        """The logarithm of the density, also where that is too small for a float; `x` as in `evaluate`."""
        energy = self._energy("gaussian_kde.logpdf", x)
        return special.logsumexp(self._log_norm() - energy, axis=-1, b=self.weights)

    def pdf(self, x: Value) -> Any:
        """The density: `evaluate`."""
        return self.evaluate(x)

    __call__ = evaluate

    def _points(self, name: str, points: Value) -> Value:
        x, _ = floats(name, points, self.dataset, broadcast=False)
        x = np.reshape(x, (1, -1)) if not shape_of(x) else np.atleast_2d(x)
        if shape_of(x)[0] != self.d and shape_of(x) == (1, self.d):
            x = np.reshape(x, (self.d, 1))
        if len(shape_of(x)) != 2 or shape_of(x)[0] != self.d:
            raise ShapeError(
                f"{name}: points have dimension {shape_of(x)[0]}, dataset has {self.d}: pass an array of shape "
                f"({self.d}, m)"
            )
        return x

    def _log_norm(self) -> Value:
        return -0.5 * self.d * LOG_TAU - np.sum(np.log(np.diagonal(self._factored)))

    def _energy(self, name: str, points: Value) -> Value:
        """Half the squared distance between each point and each of the sample, in units of the bandwidth: (m, n)."""
        x = solve_triangular(self._factored, self._points(name, points), lower=True, check_finite=False)
        centres = solve_triangular(self._factored, self.dataset, lower=True, check_finite=False)
        return 0.5 * np.sum(np.square(x[:, :, None] - centres[:, None, :]), axis=0)

    def resample(self, key: ArrayLike, shape: ShapeLike = ()) -> Any:
        """Points drawn from the density.

        Parameters
        ----------
        key : Array
            A key of `functrans.random`.
        shape : tuple of int
            How many points.

        Returns
        -------
        Array, shape (d, *shape)
        """
        which, noise = random.split(key)
        centres = random.choice(which, self.n, tuple(shape), p=self.weights)
        steps = random.multivariate_normal(
            noise, np.zeros(self.d, self.covariance.dtype), self.covariance, tuple(shape)
        )
        return finish(self.dataset[:, centres] + np.moveaxis(steps, -1, 0))

    # --- integrals

    def integrate_gaussian(self, mean: Value, cov: Value) -> Any:
        """The integral of the product with a normal density, of mean (d,) and covariance (d, d)."""
        name = "gaussian_kde.integrate_gaussian"
        mean, cov, _ = floats(name, mean, cov, self.dataset, broadcast=False)
        mean, cov = np.atleast_1d(mean), np.atleast_2d(cov)
        for what, x, shape in (("mean", mean, (self.d,)), ("cov", cov, (self.d, self.d))):
            if shape_of(x) != shape:
                raise ShapeError(f"{name}: {what} must have shape {shape}, got {shape_of(x)}")
        return self._overlap(self.dataset - mean[:, None], self.weights, self.covariance + cov)

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Value:
        """The probability of an interval, for a density in one dimension.

        Raises
        ------
        ArgumentValueError
            In more dimensions.
        """
        if self.d != 1:
            raise ArgumentValueError(
                f"gaussian_kde.integrate_box_1d: the density has {self.d} dimensions, not one"
            )
        low, high, _ = floats("gaussian_kde.integrate_box_1d", low, high, self.neff)
        deviation = self._factored[0, 0]
        upper, lower = ((x - self.dataset[0]) / deviation for x in (high, low))
        return finish(np.sum(self.weights * (special.ndtr(upper) - special.ndtr(lower))))

    def integrate_kde(self, other: ArrayLike) -> Any:
        """The integral of the product with another estimate of the same dimension."""
        if not isinstance(other, gaussian_kde):
            raise ArgumentError(
                f"gaussian_kde.integrate_kde: other must be a gaussian_kde, got {type(other).__name__}"
            )
        if other.d != self.d:
            raise ArgumentValueError(
                f"gaussian_kde.integrate_kde: the densities have different dimensions, {self.d} and {other.d}"
            )
        apart = self.dataset[:, :, None] - other.dataset[:, None, :]
        weights = self.weights[:, None] * other.weights
        return self._overlap(
            np.reshape(apart, (self.d, -1)), np.reshape(weights, -1), self.covariance + other.covariance
        )

    def _overlap(self, deviations: Any, weights: Value, cov: Value) -> Value:
        factor = cholesky(cov)
        energy = 0.5 * np.sum(
            np.square(solve_triangular(factor, deviations, lower=True, check_finite=False)), axis=0
        )
        log_norm = -0.5 * self.d * LOG_TAU - np.sum(np.log(np.diagonal(factor)))
        return finish(np.sum(weights * np.exp(log_norm - energy)))


_FIELDS = ("neff", "dataset", "weights", "covariance", "inv_cov", "factor", "_factored")


def _covariance(x: Value, weights: Value, neff: Value) -> Value:
    """The weighted covariance of the columns, corrected for bias."""
    deviation = x - np.sum(weights * x, axis=1, keepdims=True)
    return (deviation * weights) @ deviation.T / (1 - 1 / neff)
