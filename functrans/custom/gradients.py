"""What ``backward`` returned: checked, and brought to the shapes and dtypes of the arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from ..core.array import Array, unwrap
from ..core.aval import Aval, Zero, aval_of
from ..core.config import config
from ..core.errors import (
    BackwardError,
    FunctionDefinitionError,
    GradientCountError,
    GradientDtypeError,
    GradientShapeError,
    GradientStructureError,
    PytreeError,
)
from ..core.pytree import tree_leaves
from ..core.source import Source, last_line
from ..core.trace import PYTHON_KEYS, concrete
from ..core.tree_nodes import kind_of
from ..primitives.complexes import conj_p
from ..primitives.identities import check_nans
from ..primitives.linear import instantiate, unbroadcast
from ..primitives.operands import strong
from ..transforms.values import given
from .layout import Layout, Part, is_array, own_value

#: How messages call an argument by its position: ``argument 1 ('w')``.
Names = Callable[[int], str]


def sum_to_shape(x: Any, aval: Aval) -> Any:
    """`x` summed over the axes along which a value of type `aval` broadcasts to it; None where it does not."""
    shape, wanted = x.shape, aval.shape
    if shape == wanted:
        return x
    trailing = shape[len(shape) - len(wanted) :]
    if len(shape) < len(wanted) or any(n != m and m != 1 for n, m in zip(trailing, wanted)):
        return None
    return unbroadcast(x, aval)


def turned(x: Any) -> Any:
    """The complex conjugate: gradients of a `Function` are those of PyTorch, inside they are those of JAX."""
    return conj_p.bind(x) if x.dtype.kind == "c" else x


def gradient_given(ct: Any, materialize: bool = True) -> Any:
    """A cotangent as users' rules get it; without `materialize` None for a symbolic zero."""
    if type(ct) is Zero:
        return given(instantiate(ct)) if materialize else None
    return given(turned(ct))


def exact(returned: Any, layout: Layout, avals: Sequence[Aval], wanted: Sequence[bool]) -> list[Any] | None:
    """The gradients of real arrays where nothing is to be checked or converted: the short way. None: go the other."""
    if not layout.plain or config.debug_nans:
        return None
    if type(returned) is not tuple:
        returned = (returned,)
    if len(returned) != layout.count:
        return None
    found: list[Any] = []
    for x, aval, want in zip(returned, avals, wanted):
        if x is None or (not want and aval.dtype.kind == "f" and is_array(x)):
            found.append(None)
            continue
        kind = type(x)
        if kind is Array:
            x = unwrap(x)
        else:
            return None
        if x.dtype != aval.dtype or x.shape != aval.shape or x.dtype.kind != "f":
            return None
        found.append(x)
    return found


class Gradients:
    """The check of one call of ``backward``.

    Parameters
    ----------
    name : str
        Of the backward, ``MyOpBackward``.
    fun : callable
        The user's function, whose last line messages show.
    layout : Layout
        Of the arguments.
    avals : sequence of Aval
        The types of the arrays in them.
    wanted : sequence of bool
        Which of these need a gradient.
    names : callable
    """

    def __init__(
        self,
        name: str,
        fun: Callable[..., Any],
        layout: Layout,
        avals: Sequence[Aval],
        wanted: Sequence[bool],
        names: Names,
    ):
        self._name = name
        self._fun = fun
        self._layout = layout
        self._avals = avals
        self._wanted = wanted
        self._names = names

    @property
    def _source(self) -> Source | None:
        return last_line(self._fun)

    def checked(self, returned: Any) -> list[Any]:
        """For each array in the arguments its gradient, or None."""
        found: list[Any] = []
        for i, (part, gradient) in enumerate(zip(self._layout.parts, self._counted(returned))):
            if part.is_array:
                found.append(self._array(gradient, i, part.first, ""))
            elif part.is_static:
                self._static(gradient, i)
            elif gradient is None:
                found += [None] * (part.last - part.first)
            else:
                found += self._tree(gradient, i, part)
        return found

    def _counted(self, returned: Any) -> Sequence[Any]:
        parts = self._layout.parts
        count = len(parts)
        if type(returned) is not tuple:
            alone = count == 1
            if type(returned) is list and not (alone and parts[0].tree.node_data()):
                raise FunctionDefinitionError(
                    f"function {self._name} returned a list; return a tuple of gradients, one for each argument",
                    self._source,
                )
            if alone:
                return (returned,)
            self._miscounted(count, 1)
        if len(returned) < count or any(g is not None for g in returned[count:]):
            self._miscounted(count, len(returned))
        return returned[:count]

    def _miscounted(self, wanted: int, met: int) -> NoReturn:
        raise GradientCountError(
            f"function {self._name} returned an incorrect number of gradients (expected {wanted}, got {met}). Return a "
            "tuple with one for each argument of forward, None where there is no gradient",
            self._source,
        )

    def _static(self, gradient: Any, i: int) -> None:
        if any(x is not None for x in tree_leaves(gradient)):
            raise BackwardError(
                f"function {self._name} returned a gradient different than None at position {i}, but the corresponding "
                f"forward input was not a Variable: {self._names(i)} holds no array. Return None there",
                self._source,
            )

    def _tree(self, gradient: Any, i: int, part: Part) -> list[Any]:
        try:
            leaves = part.tree.flatten_up_to(gradient, f"gradient {i}")
        except PytreeError as error:
            raise GradientStructureError(
                f"function {self._name} returned a gradient of another structure than {self._names(i)}: "
                f"{error.message}. Return a tree like the argument with None for what has no gradient, or None for all "
                "of it",
                self._source,
            ) from None
        found = []
        for k, (array, x) in enumerate(zip(part.arrays, leaves)):
            if array is not None:
                found.append(self._array(x, i, array, part.place(k)))
            elif x is not None:
                raise BackwardError(
                    f"function {self._name} returned a gradient different than None at position {i}{part.place(k)}, "
                    f"but {self._names(i)}{part.place(k)} is no array. Return None there",
                    self._source,
                )
        return found

    # --- one array ------------------------------------------------------------------------------------------

    def _array(self, x: Any, i: int, array: int, path: str) -> Any:
        if x is None:
            return None
        aval = self._avals[array]
        if not is_array(x):
            x = self._number(x, aval, i, path)
        elif aval.dtype.kind in "fc" and self._wanted[array]:
            x = self._fitted(own_value(x, lambda: f"gradient {i} of {self._name}"), aval, i, path)
        if aval.dtype.kind not in "fc":
            self._of_integer(x, i, path)
            return None
        if not self._wanted[array]:
            return None
        if config.debug_nans:
            what = self._names(i).removeprefix("argument ")
            x = check_nans(x, f"gradient {what}{path} returned by {self._name}", self._source)
        return turned(x)

    def _number(self, x: Any, aval: Aval, i: int, path: str) -> Any:
        place = f"{self._names(i)}{path}"
        if kind_of(x) is not None:
            raise GradientStructureError(
                f"function {self._name} returned a {type(x).__name__} as the gradient of {place}, which is an array. "
                "Return an array or None",
                self._source,
            )
        if type(x) not in PYTHON_KEYS or (aval.shape and aval.dtype.kind in "fc"):
            raise BackwardError(
                f"function {self._name}: expected Variable or None (got {type(x).__name__}) as the gradient of "
                f"{place}, an array of shape {aval.shape}. Return an array of that shape",
                self._source,
            )
        if aval.dtype.kind not in "fc":
            return np.asarray(x)
        self._check_real(np.dtype(type(x)), aval, i, path)
        return strong(x, aval.dtype)

    def _fitted(self, x: Any, aval: Aval, i: int, path: str) -> Any:
        own = aval_of(x)
        if own.shape != aval.shape:
            summed = sum_to_shape(x, aval)
            if summed is None:
                raise GradientShapeError(
                    f"function {self._name} returned an invalid gradient at index {i}{path} - got {list(own.shape)} "
                    f"but expected shape compatible with {list(aval.shape)}: that of {self._names(i)}{path}, or one "
                    "that it broadcasts to",
                    self._source,
                )
            x = summed
        if own.dtype == aval.dtype and not own.weak:
            return x
        self._check_real(own.dtype, aval, i, path)
        return strong(x, aval.dtype)

    def _check_real(self, dtype: np.dtype, aval: Aval, i: int, path: str) -> None:
        if dtype.kind == "c" and aval.dtype.kind != "c":
            raise GradientDtypeError(
                f"function {self._name} returned a complex gradient for {self._names(i)}{path}, which is real (of "
                f"dtype {aval.dtype}): take .real",
                self._source,
            )

    def _of_integer(self, x: Any, i: int, path: str) -> None:
        numbers = concrete(x)
        if numbers is not None and np.any(numbers):
            raise BackwardError(
                f"function {self._name} returned a gradient that is not zero for {self._names(i)}{path}, an array of "
                "integers or booleans, in which there is no derivative. Return None there",
                self._source,
            )
