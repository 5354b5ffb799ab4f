"""What ``jvp`` returned: checked, and brought to the dtypes of the outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from ..core.aval import Aval, Zero, aval_of
from ..core.errors import (
    FunctionDefinitionError,
    PytreeError,
    TangentCountError,
    TangentDtypeError,
    TangentError,
    TangentShapeError,
)
from ..core.pytree import tree_leaves
from ..core.source import Source, last_line
from ..core.trace import PYTHON_KEYS
from ..primitives.operands import strong
from .layout import Part, is_array, own_value
from .outputs import Outputs


class Tangents:
    """The check of one call of ``jvp``.

    Parameters
    ----------
    name : str
        Of the function.
    fun : callable
        The user's function, whose last line messages show.
    outputs : Outputs
    avals : sequence of Aval
        The types of the arrays in them.
    moving : sequence of bool
        Which of these have a derivative.
    """

    def __init__(
        self,
        name: str,
        fun: Callable[..., Any],
        outputs: Outputs,
        avals: Sequence[Aval],
        moving: Sequence[bool],
    ):
        self._name = name
        self._fun = fun
        self._outputs = outputs
        self._avals = avals
        self._moving = moving

    @property
    def _source(self) -> Source | None:
        return last_line(self._fun)

    def checked(self, returned: Any) -> list[Any]:
        """For each array in the outputs its tangent, a value or `Zero`."""
        found: list[Any] = []
        for i, (part, t) in enumerate(zip(self._outputs.layout.parts, self._counted(returned))):
            if part.is_array:
                found.append(self._array(t, i, part.first, ""))
            elif t is None:
                found += [Zero(a) for a in self._avals[part.first : part.last]]
            elif part.is_static:
                if any(x is not None for x in tree_leaves(t)):
                    self._not_wanted(i, "", "it is no array")
            else:
                found += self._tree(t, i, part)
        return found

    def _counted(self, returned: Any) -> Sequence[Any]:
        parts = self._outputs.layout.parts
        count = len(parts)
        if type(returned) is not tuple:
            if type(returned) is list and not (count == 1 and parts[0].tree.node_data()):
                raise FunctionDefinitionError(
                    f"the jvp of {self._name} returned a list; return a tuple of tangents, one for each output",
                    self._source,
                )
            returned = (returned,)
        if len(returned) != count:
            raise TangentCountError(
                f"the jvp of {self._name} returned an invalid number of forward gradients (expected {count} but got "
                f"{len(returned)}). Return one for each output of forward, None where it is zero",
                self._source,
            )
        return returned

    def _tree(self, tangent: Any, i: int, part: Part) -> list[Any]:
        try:
            leaves = part.tree.flatten_up_to(tangent, f"tangent {i}")
        except PytreeError as error:
            raise TangentError(
                f"the jvp of {self._name} returned a tangent of another structure than {self._outputs.place(i)}: "
                f"{error.message}. Return a tree like the output, with None for what is zero",
                self._source,
            ) from None
        found = []
        for k, (array, t) in enumerate(zip(part.arrays, leaves)):
            if array is not None:
                found.append(self._array(t, i, array, part.place(k)))
            elif t is not None:
                self._not_wanted(i, part.place(k), "it is no array")
        return found

    def _not_wanted(self, i: int, path: str, why: str) -> NoReturn:
        raise TangentError(
            f"the jvp of {self._name} returned a tangent for {self._outputs.place(i)}{path}, but {why}. You should "
            "return None at that position",
            self._source,
        )

    def _array(self, t: Any, i: int, array: int, path: str) -> Any:
        aval = self._avals[array]
        if t is None:
            return Zero(aval)
        if not self._moving[array]:
            integer = aval.dtype.kind not in "fc"
            self._not_wanted(
                i, path, f"it has dtype {aval.dtype}" if integer else "it is marked non-differentiable"
            )
        place = f"{self._outputs.place(i)}{path}"
        if type(t) in PYTHON_KEYS and not aval.shape:
            self._check_real(np.dtype(type(t)), aval, place)
            return strong(t, aval.dtype)
        if not is_array(t):
            raise TangentError(
                f"the jvp of {self._name} returned a {type(t).__name__} as the tangent of {place}, an array of shape "
                f"{aval.shape}. Return an array of that shape, or return None where it is zero",
                self._source,
            )
        t = own_value(t, lambda: f"tangent {i} of {self._name}")
        own = aval_of(t)
        if own.shape != aval.shape:
            raise TangentShapeError(
                f"the jvp of {self._name} returned a tangent of shape {own.shape} for {place} of shape {aval.shape}; "
                "they must be equal",
                self._source,
            )
        self._check_real(own.dtype, aval, place)
        return t if own.dtype == aval.dtype and not own.weak else strong(t, aval.dtype)

    def _check_real(self, dtype: np.dtype, aval: Aval, place: str) -> None:
        if dtype.kind == "c" and aval.dtype.kind != "c":
            raise TangentDtypeError(
                f"the jvp of {self._name} returned a complex tangent for {place}, which is real (of dtype "
                f"{aval.dtype}): take .real",
                self._source,
            )
