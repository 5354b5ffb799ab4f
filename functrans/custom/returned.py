"""What users' rules return as derivatives, checked and brought to the shapes and dtypes of what they belong to.

`DerivativeCheck` is the strict way of JAX's front ends: the structure of the arguments and their shapes, dtypes
converted, None for a zero of any part. `Gradients` and `Tangents` check a `Function` as PyTorch does: something for
each argument or output, where what is not an array has no derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, NoReturn

import numpy as np

from .. import errors
from ..arrays.array import Array, unwrap, wrap
from ..core import dtype_kind
from ..core.aval import Aval, Zero, aval_of
from ..core.dtypes import is_float0, is_inexact
from ..core.trace import PYTHON_KEYS, concrete
from ..core.values import ArrayLike, Rule, Tangent, Value
from ..errors.source import Source, last_line
from ..frontend.arguments import given
from ..frontend.partition import NUMBERS, Layout, Part, Static, is_array, own_value
from ..frontend.pytree import PyTree, PyTreeDef, leaf_path, tree_leaves, tree_structure
from ..frontend.pytree.nodes import KeyPath, SequenceKey, keystr
from ..frontend.tree_spec import Mismatch, derivative_leaves, leaf_mismatch, real_for_real
from ..primitives.checks import check_p
from ..primitives.elementwise.arithmetic import eq_p
from ..primitives.elementwise.complexes import conj_p
from ..primitives.elementwise.identities import check_nans
from ..primitives.operands import strong
from ..primitives.reductions.reduce import reduce_and_p
from ..primitives.structure.linear import instantiate, unbroadcast
from ..runtime.config import config
from ..runtime.failures import Failure
from ..runtime.records import dataclass


def sum_to_shape(x: PyTree, aval: Aval) -> Value:
    """`x` summed over the axes along which a value of type `aval` broadcasts to it; `x` itself where it does not."""
    shape, smaller = aval_of(x).shape, aval.shape
    if shape == smaller:
        return x
    trailing = shape[len(shape) - len(smaller) :]
    if len(shape) < len(smaller) or any(n != m and m != 1 for n, m in zip(trailing, smaller)):
        return x
    return unbroadcast(x, aval)


def turned(x: ArrayLike) -> Value:
    """The complex conjugate: gradients of a `Function` are those of PyTorch, inside they are those of JAX."""
    return conj_p.bind(x) if x.dtype.kind == "c" else x


def gradient_given(ct: Tangent, materialize: bool = True) -> Value | None:
    """A cotangent as users' rules get it; without `materialize` None for a symbolic zero."""
    if type(ct) is Zero:
        return given(instantiate(ct)) if materialize else None
    if ct.dtype.kind == "c":
        ct = conj_p.bind(ct)
    return wrap(ct) if type(ct) is np.ndarray else given(ct)


def exact(leaves: Sequence[PyTree], avals: Sequence[Aval], kinds: str) -> list[Any] | None:
    """The values of arrays (`Zero` for None) that need neither check nor conversion; None where one does."""
    if len(leaves) != len(avals):
        return None
    values: list[Any] = []
    for x, aval in zip(leaves, avals):
        if x is None:
            values.append(Zero(aval))
            continue
        dtype = aval.dtype
        if (
            type(x) is not Array
            or x.dtype != dtype
            or x.shape != aval.shape
            or dtype_kind(dtype) not in kinds
        ):
            return None
        values.append(unwrap(x))
    return values


@dataclass(frozen=True)
class Kind:
    """How messages call a derivative, and which errors they are."""

    name: str
    structure: type[errors.FunctionError]
    shape: type[errors.FunctionError]
    dtype: type[errors.FunctionError]
    value: type[errors.FunctionError]


GRADIENT = Kind(
    "gradient",
    errors.GradientStructureError,
    errors.GradientShapeError,
    errors.GradientDtypeError,
    errors.BackwardError,
)
TANGENT = Kind(
    "tangent", errors.TangentError, errors.TangentShapeError, errors.TangentDtypeError, errors.TangentError
)


@dataclass(frozen=True)
class DerivativeCheck:
    """The check of what a rule returned.

    Attributes
    ----------
    kind : Kind
    title : str
        The rule in words, at the beginning of messages.
    rule : callable
        The user's function, whose last line messages show.
    place : callable
        From the key path of a leaf to how messages call what it is the derivative of.
    """

    kind: Kind
    title: str
    rule: Rule
    place: Callable[[KeyPath], str]
    #: Whether numbers stand for arrays without axes only, and gradients of integers must be zero.
    strict: ClassVar[bool] = False
    #: Whether a derivative may have a shape to which that of its argument broadcasts: it is summed.
    sums: ClassVar[bool] = False

    def fitted(self, tree: PyTree, treedef: PyTreeDef, avals: Sequence[Aval]) -> list[Tangent]:
        """The leaves, each a value of its type or `Zero`.

        Parameters
        ----------
        tree : pytree
        treedef, avals
            Structure and leaves of what it is the derivative of.
        """
        leaves = self._leaves(tree, treedef, ())
        return [
            self._leaf(x, aval, partial(leaf_path, treedef, i))
            for i, (x, aval) in enumerate(zip(leaves, avals))
        ]

    def fail(self, error: type[errors.FunctionError], text: str) -> NoReturn:
        """Raise an error at the last line of the user's rule."""
        raise error(f"{self.title} {text}", last_line(self.rule))

    def _leaves(self, tree: PyTree, treedef: PyTreeDef, path: KeyPath) -> list[Value]:
        leaves = derivative_leaves(tree, treedef)
        if not isinstance(leaves, Mismatch):
            return leaves
        expected, got = ["an array" if x == "a leaf" else x for x in (leaves.expected, leaves.got)]
        return self.fail(
            self.kind.structure,
            f"returned a {self.kind.name} of another structure for {self.place((*path, *leaves.path))}: expected "
            f"{expected}, got {got}. None stands for a zero {self.kind.name} of any part\n"
            f"  expected: {treedef}\n"
            f"  returned: {tree_structure(tree)}",
        )

    def _leaf(self, x: ArrayLike, aval: Aval, path: Callable[[], KeyPath]) -> Tangent | None:
        if x is None or type(x) is Zero or is_float0(x):
            return Zero(aval)
        x = self._value(x, aval, path)
        if not is_inexact(aval.dtype):
            self._check_integer(x, aval, path)
            return Zero(aval)
        if self.sums:
            x = sum_to_shape(x, aval)
        own = aval_of(x)
        mismatch = leaf_mismatch(own, aval, real_for_real)
        if mismatch:
            self._refuse_leaf(mismatch, own, aval, path())
        if own.dtype != aval.dtype or own.weak:
            x = strong(x, aval.dtype)
        if not config.debug_nans:
            return x
        what = f"the {self.kind.name} of {self.place(path())} returned by {self.title}"
        return check_nans(x, what, last_line(self.rule))

    def _value(self, x: ArrayLike, aval: Aval, path: Callable[[], KeyPath]) -> PyTree:
        number = self.strict and type(x) in PYTHON_KEYS and is_inexact(aval.dtype)
        try:
            if not (number and aval.shape):
                return own_value(x, str)
        except (errors.ArgumentError, errors.DtypeError):
            pass
        return self.fail(
            self.kind.value,
            f"returned {str(x)[:60]!r} of type {type(x).__name__} as the {self.kind.name} of {self.place(path())}, an "
            f"array of shape {aval.shape}. Return an array of that shape, or None for zero",
        )

    def _check_integer(self, x: Value, aval: Aval, path: Callable[[], KeyPath]) -> None:
        """Refuse a derivative in an integer; gradients are ignored: rules for floats are also called with integers."""
        nonzero = _is_nonzero(x)
        refused = (
            nonzero
            if self.strict
            else self.kind is not GRADIENT and (nonzero or is_inexact(aval_of(x).dtype))
        )
        if not (refused or (self.strict and nonzero is None)):
            return
        text = (
            f"returned a {self.kind.name} {'' if refused and not nonzero else 'that is not zero '}for "
            f"{self.place(path())}, which is of dtype {aval.dtype} and has no derivative: return None there"
        )
        if refused:
            self.fail(self.kind.value, text)
        zero = eq_p.bind(x, aval_of(x).dtype.type(0))  # known when the program runs
        ok = reduce_and_p.bind(zero, axes=tuple(range(len(aval_of(x).shape))))
        error = _Refused(self.kind.value, f"{self.title} {text}", last_line(self.rule))
        check_p.bind(ok, check=Failure("user", text, exception=error), debug=False)

    def _refuse_leaf(self, aspect: str, own: Aval, aval: Aval, path: KeyPath) -> NoReturn:
        place = self.place(path)
        if aspect == "dtype":
            self.fail(
                self.kind.dtype,
                f"returned a complex {self.kind.name} for {place}, which is real (of dtype {aval.dtype}): take .real",
            )
        if self.kind is not GRADIENT:
            self.fail(
                self.kind.shape,
                f"returned a {self.kind.name} of shape {own.shape} for {place}, which has shape {aval.shape}; they "
                "must be equal",
            )
        broadcast = ", or one that it broadcasts to" if self.sums else ""
        self.fail(
            self.kind.shape,
            f"returned an invalid gradient at index {path[0].idx} - got {list(own.shape)} but expected shape "
            f"compatible with {list(aval.shape)}: that of {place}{broadcast}",
        )


@dataclass(frozen=True)
class _Refused:
    """Makes the error of a derivative that turned out to be none when the program ran."""

    kind: type[errors.FunctionError]
    message: str
    source: Source | None

    def __call__(self, values: Sequence[Any]) -> BaseException:
        return self.kind(self.message, self.source)


def _is_nonzero(x: Value) -> bool | None:
    """Whether there is a number in it that is not zero; None if that is not known."""
    numbers = concrete(x)
    return None if numbers is None else bool(np.any(numbers))


def output_place(path: KeyPath) -> str:
    """How messages call a leaf of a function's result."""
    return f"output {keystr(path)}" if path else "the output"


# --- of a `Function` ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _PartsCheck(DerivativeCheck):
    """The check of what one call of a `Function`'s rule returned: something for each argument, or for each output.

    Key paths begin with the number of the argument or output.

    Attributes
    ----------
    layout : Layout
    static : Static
    avals : sequence of Aval
        The types of the arrays.
    used : sequence of bool
        Which of these have a derivative.
    """

    layout: Layout
    static: Static
    avals: Sequence[Aval]
    used: Sequence[bool]
    strict = True
    #: What each element of the returned tuple belongs to.
    of: ClassVar[str]

    def checked(self, returned: Any) -> list[Tangent]:
        """For each array what was returned, as a value of its type or `Zero`."""
        parts = self.layout.parts
        if type(returned) is list and not (len(parts) == 1 and parts[0].tree.node_data()):
            self.fail(
                errors.FunctionDefinitionError,
                f"returned a list; return a tuple of {self.kind.name}s, one for each {self.of}",
            )
        if type(returned) is not tuple:
            returned = (returned,)
        self._check_count(returned, len(parts))
        values: list[Any] = []
        for i, (part, x) in enumerate(zip(parts, returned)):
            key = SequenceKey(i)
            if x is None:
                values += map(Zero, self.avals[part.first : part.last])
            elif part.is_static:
                self._check_static(x, part, (key,), part.leaves)
            else:
                leaves = self._leaves(x, part.tree, (key,))
                for k, (array, leaf) in enumerate(zip(part.arrays, leaves)):
                    path = partial(_path, key, part, k)
                    if array is not None:
                        values.append(self._array(leaf, array, path))
                    elif leaf is not None:
                        at = part.leaves.start + k
                        self._check_static(leaf, part, path(), slice(at, at + 1))
        return values

    def _array(self, x: Any, array: int, path: Callable[[], KeyPath]) -> Any:
        return self._leaf(x, self.avals[array], path)

    def _check_count(self, returned: tuple[Any, ...], count: int) -> None:
        raise NotImplementedError

    def _check_static(self, x: Any, part: Part, path: KeyPath, leaves: slice) -> None:
        raise NotImplementedError


def _path(key: SequenceKey, part: Part, leaf: int) -> KeyPath:
    return key, *leaf_path(part.tree, leaf)


class Gradients(_PartsCheck):
    """The check of one call of ``backward`` or ``transpose``."""

    of = "argument"
    sums = True

    def _check_count(self, returned: tuple[Value, ...], count: int) -> None:
        if len(returned) < count or any(g is not None for g in returned[count:]):
            self.fail(
                errors.GradientCountError,
                f"returned an incorrect number of gradients (expected {count}, got {len(returned)}). Return a tuple "
                "with one for each argument of forward, None where there is no gradient",
            )

    def _check_static(self, gradient: Value, part: Part, path: KeyPath, leaves: slice) -> None:
        """Refuse a gradient of what is not an array; those of numbers are dropped."""
        static = self.static.leaves[leaves]
        is_number = static and NUMBERS.issuperset(map(type, static))
        if not is_number and any(x is not None for x in tree_leaves(gradient)):
            self.fail(
                errors.BackwardError,
                f"returned a gradient different than None at position {path[0].idx}{keystr(path[1:])}, but "
                f"the corresponding forward input was not a Variable: {self.place(path)} is not an array. Return None",
            )

    def _array(self, x: ArrayLike, array: int, path: Callable[[], KeyPath]) -> Tangent | None:
        aval = self.avals[array]
        if not self.used[array] and is_array(x) and is_inexact(aval.dtype):
            return Zero(aval)
        gradient = self._leaf(x, aval, path)
        return gradient if type(gradient) is Zero else turned(gradient)


class Tangents(_PartsCheck):
    """The check of one call of ``jvp``."""

    of = "output"

    def _check_count(self, returned: tuple[Value, ...], count: int) -> None:
        if len(returned) != count:
            self.fail(
                errors.TangentCountError,
                f"returned an invalid number of forward gradients (expected {count} but got {len(returned)}). Return "
                "one for each output of forward, None where it is zero",
            )

    def _check_static(self, x: Any, part: Part, path: KeyPath, leaves: slice) -> None:
        if any(leaf is not None for leaf in tree_leaves(x)):
            self._refuse(path, "it is not an array")

    def _refuse(self, path: KeyPath, why: str) -> NoReturn:
        self.fail(
            errors.TangentError,
            f"returned a tangent for {self.place(path)}, but {why}. You should return None at that position",
        )

    def _array(self, x: ArrayLike, array: int, path: Callable[[], KeyPath]) -> PyTree:
        aval = self.avals[array]
        if x is not None and not self.used[array]:
            integer = not is_inexact(aval.dtype)
            self._refuse(
                path(), f"it has dtype {aval.dtype}" if integer else "it is marked non-differentiable"
            )
        return self._leaf(x, aval, path)
