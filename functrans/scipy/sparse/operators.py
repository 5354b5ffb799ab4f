"""What stands for a matrix: a function, an array, a sparse matrix of SciPy; trees of arrays as vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import numpy as fnp
from ...api.derivatives import linear_transpose
from ...arrays.arguments import shown
from ...core import ArgumentError, LinAlgError, ShapeError, Tracer
from ...core.values import ArrayLike, PyTree
from ...flatten_util import ravel_pytree
from ...frontend.pytree import tree_structure
from ...lax.equations.solution import SolutionSpec
from ...numpy.dispatch import array_operand
from ...ops import segment_sum
from ...primitives.ops import shape_of
from ...runtime.records import dataclass


def matvec_of(matrix: ArrayLike, where: str) -> Callable[[Any], Any]:
    """The product with a matrix, as a function of a vector or tree.

    Raises
    ------
    ArgumentError
        If it is not a function or a matrix.
    LinAlgError
        If it is not square.
    """
    if hasattr(matrix, "tocoo") and not isinstance(matrix, Tracer):
        return _sparse(matrix, where)
    if isinstance(matrix, np.ndarray | Tracer | list | tuple):
        a = fnp.asarray(array_operand(matrix, where))
        _check_square(shape_of(a), where)
        return lambda x: a @ x
    if callable(matrix):
        return matrix
    if hasattr(matrix, "__matmul__"):
        _check_square(tuple(getattr(matrix, "shape", (1, 1))), where)
        return lambda x: matrix @ x
    raise ArgumentError(
        f"{where} must be a function, a square array or a sparse matrix of SciPy, got {shown(matrix)} of type "
        f"{type(matrix).__name__}"
    )


def in_dtype_of(matrix: ArrayLike, b: ArrayLike) -> Any:
    """A right-hand side in the common dtype with a matrix; a tree, or that of a function, is returned as it is."""
    dtype = getattr(matrix, "dtype", None)
    if dtype is None or not isinstance(b, np.ndarray | Tracer):
        return b
    return fnp.asarray(b).astype(np.result_type(dtype, b.dtype))


def _check_square(shape: tuple[int, ...], where: str) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise LinAlgError(f"{where} must be a square matrix, got shape {shape}")


def _sparse(matrix: ArrayLike, where: str) -> Callable[[Any], Any]:
    """The product with a sparse matrix: one pass over its elements.

    Rows of similar lengths are filled up to one length with zeros, so that their sums need no scatter.
    """
    _check_square(matrix.shape, where)
    csr = matrix.tocsr()
    csr.sum_duplicates()
    n, lengths = matrix.shape[0], np.diff(csr.indptr)
    rows = np.repeat(np.arange(n), lengths)
    width = int(lengths.max(initial=0))
    if n * width > 2 * len(rows) + n:
        data, columns = fnp.asarray(csr.data), np.asarray(csr.indices, np.int64)
        return lambda x: segment_sum(data * fnp.asarray(x)[columns], rows, n)
    places = np.arange(len(rows)) - np.repeat(csr.indptr[:-1], lengths)
    filled, sources = np.zeros((n, width), csr.data.dtype), np.zeros((n, width), np.int64)
    filled[rows, places], sources[rows, places] = csr.data, csr.indices
    return lambda x: fnp.sum(filled * fnp.asarray(x)[sources], axis=1)


@dataclass(frozen=True)
class Vectors:
    """The trees of a system of equations, as vectors.

    Attributes
    ----------
    spec : SolutionSpec
        Of the right-hand side.
    unravel : callable
        From a vector to a tree.
    """

    spec: SolutionSpec
    unravel: Callable[[Any], Any]

    @staticmethod
    def of(name: str, b: Any) -> tuple[Vectors, Any]:
        """Those like a right-hand side, and itself, in floats."""
        spec, values = SolutionSpec.of(name, "b", b)
        tree = spec.filled(values)
        return Vectors(spec, ravel_pytree(tree)[1]), tree

    @property
    def size(self) -> int:
        """The number of unknowns."""
        return sum(a.size for a in self.spec.avals)

    def flat(self, tree: PyTree) -> Any:
        """A tree as a vector."""
        return ravel_pytree(tree)[0]

    def linear(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """A function of trees as one of vectors."""
        return lambda x: self.flat(function(self.unravel(x)))

    def transposed(self, matrix: ArrayLike, where: str) -> Callable[[Any], Any]:
        """The product with the transpose of a preconditioner."""
        if isinstance(matrix, np.ndarray | Tracer):
            return lambda x: fnp.swapaxes(matrix, 0, 1) @ x
        if hasattr(matrix, "tocoo"):
            return _sparse(matrix.T, where)
        function = matvec_of(matrix, where)

        def product(x: ArrayLike) -> Any:
            return linear_transpose(function, x)(x)[0]

        return product

    def guess(self, name: str, x0: ArrayLike) -> Any:
        """A tree like `b`.

        Raises
        ------
        ArgumentError
            If it has another structure.
        ShapeError
            If an array has another shape.
        """
        own, values = SolutionSpec.of(name, "x0", x0)
        if own.tree != self.spec.tree:
            raise ArgumentError(
                f"{name}: x0 must be a tree like b, {self.spec.tree}, got {tree_structure(x0)}"
            )
        for given, expected in zip(own.avals, self.spec.avals):
            if given.shape != expected.shape:
                raise ShapeError(
                    f"{name}: x0 must have the shapes of b, got {given.shape} for {expected.shape}"
                )
        leaves = [fnp.asarray(x).astype(aval.dtype) for x, aval in zip(values, self.spec.avals)]
        return self.spec.filled(leaves)
