"""Rotations in three dimensions: `Rotation`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ... import numpy as fnp
from ... import random
from ...arrays.array import Array
from ...core import ArgumentError, ArgumentValueError, DtypeError, ShapeError, concrete, is_float
from ...core.jax_dtypes import default_float
from ...core.values import ArrayLike, DTypeLike, PyTree, Value
from ...frontend.checked import checked
from ...frontend.pytree.register import register_pytree_node_class
from ...numpy.dispatch import array_operand
from ...primitives import ops
from ...primitives.ops import dtype_of, finish
from . import quaternions


@register_pytree_node_class
class Rotation:
    """A rotation in three dimensions, or an array of them.

    Parameters
    ----------
    quat : array_like, shape (..., 4)
        Quaternions, of any length but 0.
    normalize : bool
        Whether to divide them by their length.
    copy : bool
        Accepted, without effect: arrays are immutable.
    scalar_first : bool
        Whether the scalar part comes first; by default it is the last element.

    Notes
    -----
    An instance is a pytree of one array, `quat`: it can be an argument and a result of functions that are compiled,
    mapped and differentiated. Formulas are smooth wherever the rotation is, also at the identity. The angle and the
    axis have a kink at half a turn, Euler angles at gimbal lock.

    Examples
    --------
    >>> from functrans.scipy.spatial.transform import Rotation
    >>> r = Rotation.from_euler("z", 90.0, degrees=True)
    >>> r.apply([1.0, 2.0, 3.0]).round(12)
    Array([-2.,  1.,  3.])
    >>> (r * r).as_rotvec(degrees=True)
    Array([  0.,   0., 180.])
    """

    __slots__ = ("quat",)
    __array_ufunc__ = None  # NumPy leaves `*` to this class

    @checked
    def __init__(self, quat: Value, normalize: bool = True, copy: bool = True, scalar_first: bool = False):
        q = _rows(quat, "Rotation: quat", (4,))
        known = concrete(ops.operand(q, "Rotation")) if normalize else None
        if known is not None and np.any(np.all(np.asarray(known) == 0, -1)):
            raise ArgumentValueError("Rotation: quat has a quaternion of length 0")
        if scalar_first:
            q = fnp.roll(q, -1, -1)
        self.quat = quaternions.normalized(q) if normalize else q

    def tree_flatten(self) -> tuple[tuple[Any], None]:
        """The quaternions."""
        return (self.quat,), None

    @classmethod
    def tree_unflatten(cls, aux_data: PyTree, children: Any) -> Rotation:
        """A rotation of these quaternions, which are not checked."""
        return _raw(children[0])

    def __repr__(self) -> str:
        return f"Rotation(quat={self.quat!r})"

    # --- making ---------------------------------------------------------------------------------------------

    @classmethod
    @checked
    def from_quat(cls, quat: Value, *, scalar_first: bool = False) -> Rotation:
        """Rotations of quaternions, shape (..., 4), which are normalized.

        Examples
        --------
        >>> from functrans.scipy.spatial.transform import Rotation
        >>> Rotation.from_quat([0.0, 0.0, 2.0, 0.0]).as_quat()
        Array([0., 0., 1., 0.])
        """
        return cls(quat, scalar_first=scalar_first)

    @classmethod
    @checked
    def from_matrix(cls, matrix: Value, *, assume_valid: bool = True) -> Rotation:
        """Rotations of orthogonal matrices with determinant 1, shape (..., 3, 3).

        As in JAX, other matrices are not made orthogonal first.

        Examples
        --------
        >>> from functrans.scipy.spatial.transform import Rotation
        >>> Rotation.from_matrix([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]).magnitude()
        Array(1.57079633)
        """
        return _raw(quaternions.of_matrix(_rows(matrix, "Rotation.from_matrix: matrix", (3, 3))))

    @classmethod
    @checked
    def from_rotvec(cls, rotvec: Value, degrees: bool = False) -> Rotation:
        """Rotations about vectors, shape (..., 3), by their length.

        Examples
        --------
        >>> from functrans.scipy.spatial.transform import Rotation
        >>> Rotation.from_rotvec([0.0, 0.0, 180.0], degrees=True).as_quat().round(12)
        Array([0., 0., 1., 0.])
        """
        v = _rows(rotvec, "Rotation.from_rotvec: rotvec", (3,))
        return _raw(quaternions.of_rotvec(fnp.deg2rad(v) if degrees else v))

    @classmethod
    def from_mrp(cls, mrp: Value) -> Rotation:
        """Rotations of modified Rodrigues parameters, shape (..., 3): the axis times the tangent of angle / 4.

        Examples
        --------
        >>> from functrans.scipy.spatial.transform import Rotation
        >>> Rotation.from_mrp([0.0, 0.0, 1.0]).as_quat()
        Array([0., 0., 1., 0.])
        """
        return _raw(quaternions.of_mrp(_rows(mrp, "Rotation.from_mrp: mrp", (3,))))

    @classmethod
    @checked
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """Rotations about one to three axes, one after the other.

        Parameters
        ----------
        seq : str
            One to three letters: ``'xyz'`` are fixed axes (extrinsic), ``'XYZ'`` turn along (intrinsic). Neighbours
            must differ.
        angles : array_like, shape (..., len(seq)); for one letter also a number
        degrees : bool

        Raises
        ------
        ArgumentValueError
            If `seq` is not such a sequence.
        ShapeError
            If there is not one angle for each letter.

        Examples
        --------
        >>> from functrans.scipy.spatial.transform import Rotation
        >>> Rotation.from_euler("ZYX", [90.0, 0.0, 0.0], degrees=True).as_rotvec(degrees=True)
        Array([ 0.,  0., 90.])
        """
        name = "Rotation.from_euler"
        axes, intrinsic = _sequence(name, seq, (1, 2, 3))
        if len(axes) == 1 and not fnp.ndim(angles):
            angles = fnp.expand_dims(angles, -1)
        values = _rows(angles, f"{name}: angles", (len(axes),))
        return _raw(quaternions.of_euler(axes, intrinsic, fnp.deg2rad(values) if degrees else values))

    @classmethod
    @checked
    def identity(cls, num: int | None = None, dtype: DTypeLike = float) -> Rotation:
        """The rotation by no angle, or an array of `num` of them.

        Examples
        --------
        >>> from functrans.scipy.spatial.transform import Rotation
        >>> Rotation.identity().as_quat()
        Array([0., 0., 0., 1.])
        """
        one = fnp.asarray([0.0, 0.0, 0.0, 1.0], dtype)
        return _raw(one if num is None else fnp.tile(one, (num, 1)))

    @classmethod
    @checked
    def random(cls, random_key: Any, num: int | None = None) -> Rotation:
        """Rotations drawn uniformly, by a key of `functrans.random`.

        Examples
        --------
        >>> from functrans import random
        >>> from functrans.scipy.spatial.transform import Rotation
        >>> len(Rotation.random(random.key(0), 5))
        5
        """
        shape = (4,) if num is None else (num, 4)
        return _raw(quaternions.normalized(random.normal(random_key, shape)))

    @classmethod
    def concatenate(cls, rotations: Any) -> Rotation:
        """One array of several rotations.

        Examples
        --------
        >>> from functrans.scipy.spatial.transform import Rotation
        >>> len(Rotation.concatenate([Rotation.identity(), Rotation.identity(2)]))
        3
        """
        several = [rotations] if isinstance(rotations, Rotation) else rotations
        if not isinstance(several, Sequence) or not all(isinstance(r, Rotation) for r in several):
            raise ArgumentError(f"Rotation.concatenate: expected a sequence of Rotation, got {rotations!r}")
        return _raw(fnp.concatenate([fnp.atleast_2d(r.quat) for r in several]))

    # --- representing ---------------------------------------------------------------------------------------

    @checked
    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Value:
        """The unit quaternions, shape (..., 4), as they are or with a positive scalar part (`canonical`)."""
        q = quaternions.canonical(self.quat) if canonical else self.quat
        return fnp.roll(q, 1, -1) if scalar_first else q

    def as_matrix(self) -> Value:
        """The orthogonal matrices, shape (..., 3, 3)."""
        return quaternions.matrix(self.quat)

    @checked
    def as_rotvec(self, degrees: bool = False) -> Value:
        """The axes times the angles, which are at most half a turn, shape (..., 3)."""
        v = quaternions.rotvec(self.quat)
        return fnp.rad2deg(v) if degrees else v

    def as_mrp(self) -> Value:
        """The modified Rodrigues parameters, of a length of at most 1, shape (..., 3)."""
        return quaternions.mrp(self.quat)

    @checked
    def as_euler(self, seq: str, degrees: bool = False) -> Any:
        """The angles of `from_euler` for three axes, shape (..., 3), from -180 to 180 degrees (the second: see Notes).

        Notes
        -----
        The second angle is from 0 to 180 degrees if the first and third axis are the same, else from -90 to 90. At the
        ends of these intervals (gimbal lock) only the sum or the difference of the others is determined, and one of
        them is set to 0.
        """
        axes, intrinsic = _sequence("Rotation.as_euler", seq, (3,))
        angles = quaternions.euler(axes, intrinsic, self.quat)
        return fnp.rad2deg(angles) if degrees else angles

    def magnitude(self) -> Array:
        """The angles, from 0 to pi, shape (...)."""
        return quaternions.magnitude(self.quat)

    # --- computing ------------------------------------------------------------------------------------------

    @checked
    def apply(self, vectors: Any, inverse: bool = False) -> Any:
        """Rotate vectors, shape (..., 3), whose other axes are broadcast with those of the rotations.

        Examples
        --------
        >>> from functrans.scipy.spatial.transform import Rotation
        >>> Rotation.from_quat([0.0, 0.0, 1.0, 0.0]).apply([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
        Array([[-1.,  0.,  0.],
               [ 0.,  0.,  1.]])
        """
        v = _rows(vectors, "Rotation.apply: vectors", (3,))
        rows = quaternions.rows(self.quat)
        x, y, z = quaternions.parts(v)
        return quaternions.joined(*[a * x + b * y + c * z for a, b, c in (zip(*rows) if inverse else rows)])

    def inv(self) -> Rotation:
        """The inverse rotation."""
        return _raw(quaternions.inverse(self.quat))

    def __mul__(self, other: ArrayLike) -> Any:
        """The rotation by `other`, then by this one."""
        if not isinstance(other, Rotation):
            return NotImplemented
        both = quaternions.product(quaternions.parts(self.quat), quaternions.parts(other.quat))
        return _raw(quaternions.normalized(quaternions.joined(*both)))

    def __pow__(self, n: ArrayLike) -> Rotation:
        """The rotation by `n` times the angle; `n` may be any real number."""
        return Rotation.from_rotvec(self.as_rotvec() * n)

    def mean(self, weights: ArrayLike = None) -> Rotation:
        """The mean of an array of rotations: that with the least sum of squared distances of matrices.

        Parameters
        ----------
        weights : array_like, shape (n,), optional
            Not negative.

        Raises
        ------
        ShapeError
            If the weights do not match.

        References
        ----------
        F. L. Markley and others, "Averaging quaternions", J. Guidance 30 (2007).
        """
        q = fnp.reshape(self.quat, (-1, 4))
        if weights is None:
            w = fnp.ones(q.shape[0], q.dtype)
        else:
            w = fnp.astype(fnp.asarray(weights), q.dtype)
            if w.shape != q.shape[:1]:
                raise ShapeError(
                    f"Rotation.mean: expected {q.shape[0]} weights, one for each rotation, got shape {w.shape}"
                )
        _, vectors = fnp.linalg.eigh((w[:, None] * q).T @ q)
        return _raw(vectors[:, -1])

    def approx_equal(self, other: Rotation, atol: ArrayLike = None, degrees: bool = False) -> Any:
        """Whether the angle between rotations is less than `atol`, by default 1e-8 radians; shape (...)."""
        limit = 1e-8 if atol is None else fnp.deg2rad(atol) if degrees else atol
        return (other * self.inv()).magnitude() < limit

    # --- as a sequence --------------------------------------------------------------------------------------

    @property
    def single(self) -> bool:
        """Whether it is one rotation, not an array."""
        return self.quat.ndim == 1

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array of rotations."""
        return self.quat.shape[:-1]

    def __len__(self) -> int:
        if self.single:
            raise ArgumentError("Rotation: a single rotation has no len()")
        return self.quat.shape[0]

    def __getitem__(self, indexer: Any) -> Rotation:
        if self.single:
            raise ArgumentError("Rotation: a single rotation has no elements")
        index = indexer if isinstance(indexer, tuple) else (indexer,)
        inner = index if any(i is Ellipsis for i in index) else (*index, Ellipsis)
        return _raw(self.quat[(*inner, slice(None))])

    def __iter__(self) -> Iterator[Rotation]:
        return (self[i] for i in range(len(self)))


def _raw(quat: ArrayLike) -> Rotation:
    """A rotation of unit quaternions."""
    self = object.__new__(Rotation)
    self.quat = quat
    return self


def _rows(x: Value, what: str, last: tuple[int, ...]) -> Value:
    """Real floating-point numbers whose last axes have these extents."""
    value = array_operand(x, what)
    if dtype_of(value).kind == "c":
        raise DtypeError(f"{what} must be real, got {dtype_of(value)}")
    out = finish(value if is_float(dtype_of(value)) else ops.convert(value, default_float(dtype_of(value))))
    if out.shape[-len(last) :] != last:
        expected = ", ".join(map(str, last))
        raise ShapeError(f"{what} must have shape (..., {expected}), got {out.shape}")
    return out


def _sequence(name: str, seq: Any, lengths: tuple[int, ...]) -> tuple[tuple[int, ...], bool]:
    """The numbers of the axes, and whether they turn along."""
    if not isinstance(seq, str):
        raise ArgumentError(f"{name}: seq must be a string such as 'xyz' or 'ZYX', got {seq!r}")
    good = re.fullmatch("[xyz]+|[XYZ]+", seq) and len(seq) in lengths
    if not good or any(a == b for a, b in pairwise(seq)):
        raise ArgumentValueError(
            f"{name}: seq must be {' or '.join(map(str, lengths))} letters of 'xyz' (extrinsic) or of 'XYZ' "
            f"(intrinsic), of which neighbours differ, got {seq!r}"
        )
    return tuple(["xyz".index(c) for c in seq.lower()]), seq.isupper()
