"""What users' rules returned, checked and brought to the shapes and dtypes of what it is the derivative of.

`Gradients` and `Tangents` check a `Function` as PyTorch does; `Returned` is the strict way of JAX's front ends: the
structure of the arguments and their shapes, dtypes converted, None for zeros of any part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import numpy as np

from ..arrays.array import Array, unwrap
from ..core.aval import Aval, Zero, aval_of
from ..core.config import config
from ..core.debug_nans import debug_nans_active
from ..core.dtypes import is_complex, is_float0, is_inexact
from ..core.errors import (
    ArgumentError,
    BackwardError,
    DtypeError,
    FunctionDefinitionError,
    FunctionError,
    GradientCountError,
    GradientDtypeError,
    GradientShapeError,
    GradientStructureError,
    PytreeError,
    TangentCountError,
    TangentDtypeError,
    TangentError,
    TangentShapeError,
)
from ..core.source import Source, last_line
from ..core.trace import PYTHON_KEYS, concrete
from ..frontend.arguments import given, value_of
from ..frontend.pytree import (
    PyTree,
    PyTreeDef,
    first_difference,
    tree_flatten,
    tree_flatten_with_path,
    tree_leaves,
    tree_structure,
    tree_unflatten,
)
from ..frontend.pytree.nodes import KeyPath, keystr, kind_of
from ..primitives.elementwise.complexes import conj_p
from ..primitives.elementwise.identities import check_nans
from ..primitives.operands import strong
from ..primitives.structure.linear import instantiate, unbroadcast
from .partition import NUMBERS, Arguments, Layout, Outputs, Part, is_array, own_value

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
    return given(conj_p.bind(ct) if ct.dtype.kind == "c" else ct)


def exact(leaves: Sequence[Any], avals: Sequence[Aval], kinds: str) -> list[Any] | None:
    """The values of arrays (or None) that need neither check nor conversion: the short way. None: go the other."""
    if len(leaves) != len(avals) or debug_nans_active():
        return None
    found: list[Any] = []
    for x, aval in zip(leaves, avals):
        if x is not None:
            if type(x) is not Array or x.dtype != aval.dtype or x.shape != aval.shape:
                return None
            if x.dtype.kind not in kinds:
                return None
            x = unwrap(x)
        found.append(x)
    return found


class _Checked:
    """The check of what one call of a `Function`'s rule returned: something for each argument, or for each output."""

    _noun: str

    def __init__(
        self,
        name: str,
        fun: Callable[..., Any],
        layout: Layout,
        avals: Sequence[Aval],
        wanted: Sequence[bool],
    ):
        self._name = name
        self._fun = fun
        self._layout = layout
        self._avals = avals
        self._wanted = wanted

    @property
    def _source(self) -> Source | None:
        return last_line(self._fun)

    def checked(self, returned: Any) -> list[Any]:
        """For each array what was returned, brought to its type; what stands for zero where that is None."""
        found: list[Any] = []
        for i, (part, x) in enumerate(zip(self._layout.parts, self._counted(returned))):
            if part.is_array:
                found.append(self._array(x, i, part.first, ""))
            elif x is None:
                found += [self._array(None, i, k, "") for k in range(part.first, part.last)]
            elif part.is_static:
                self._refuse_static(x, i, part)
            else:
                found += self._tree(x, i, part)
        return found

    def _tree(self, tree: Any, i: int, part: Part) -> list[Any]:
        problem, leaves = "", []
        try:
            leaves = part.tree.flatten_up_to(tree, f"{self._noun} {i}")
        except PytreeError as error:
            problem = error.message
        if problem:
            self._refuse_structure(i, problem)
        found = []
        for k, (array, x) in enumerate(zip(part.arrays, leaves)):
            if array is not None:
                found.append(self._array(x, i, array, part.place(k)))
            elif x is not None:
                self._refuse_leaf(i, part, k)
        return found

    def _counted(self, returned: Any) -> Sequence[Any]:
        raise NotImplementedError

    def _array(self, x: Any, i: int, array: int, path: str) -> Any:
        raise NotImplementedError

    def _refuse_static(self, x: Any, i: int, part: Part) -> None:
        raise NotImplementedError

    def _refuse_leaf(self, i: int, part: Part, leaf: int) -> None:
        raise NotImplementedError

    def _refuse_structure(self, i: int, problem: str) -> NoReturn:
        raise NotImplementedError


class Gradients(_Checked):
    """The check of one call of ``backward``.

    Parameters
    ----------
    name : str
        Of the backward, ``MyOpBackward``.
    fun : callable
        The user's function, whose last line messages show.
    arguments : Arguments
    avals : sequence of Aval
        The types of the arrays in them.
    wanted : sequence of bool
        Which of these need a gradient.
    names : callable
    """

    _noun = "gradient"

    def __init__(
        self,
        name: str,
        fun: Callable[..., Any],
        arguments: Arguments,
        avals: Sequence[Aval],
        wanted: Sequence[bool],
        names: Names,
    ):
        super().__init__(name, fun, arguments.layout, avals, wanted)
        self._static = arguments.static
        self._names = names

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

    def _refuse_static(self, gradient: Any, i: int, part: Part) -> None:
        """Raise where something that has no derivative got a gradient; those of numbers are dropped."""
        static = self._static.leaves[part.leaves]
        if (static and NUMBERS.issuperset(map(type, static))) or all(
            x is None for x in tree_leaves(gradient)
        ):
            return
        raise BackwardError(
            f"function {self._name} returned a gradient different than None at position {i}, but the corresponding "
            f"forward input was not a Variable: {self._names(i)} holds no array. Return None there",
            self._source,
        )

    def _refuse_structure(self, i: int, problem: str) -> NoReturn:
        raise GradientStructureError(
            f"function {self._name} returned a gradient of another structure than {self._names(i)}: {problem}. Return "
            "a tree like the argument with None for what has no gradient, or None for all of it",
            self._source,
        )

    def _refuse_leaf(self, i: int, part: Part, leaf: int) -> None:
        if type(self._static.leaves[part.leaves][leaf]) not in NUMBERS:
            path = part.place(leaf)
            raise BackwardError(
                f"function {self._name} returned a gradient different than None at position {i}{path}, but "
                f"{self._names(i)}{path} is no array. Return None there",
                self._source,
            )

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


class Tangents(_Checked):
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

    _noun = "tangent"

    def __init__(
        self,
        name: str,
        fun: Callable[..., Any],
        outputs: Outputs,
        avals: Sequence[Aval],
        moving: Sequence[bool],
    ):
        super().__init__(name, fun, outputs.layout, avals, moving)
        self._outputs = outputs

    def _counted(self, returned: Any) -> Sequence[Any]:
        parts = self._layout.parts
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

    def _refuse_structure(self, i: int, problem: str) -> NoReturn:
        raise TangentError(
            f"the jvp of {self._name} returned a tangent of another structure than {self._outputs.place(i)}: "
            f"{problem}. Return a tree like the output, with None for what is zero",
            self._source,
        )

    def _refuse_static(self, x: Any, i: int, part: Part) -> None:
        if any(leaf is not None for leaf in tree_leaves(x)):
            self._not_wanted(i, "", "it is no array")

    def _refuse_leaf(self, i: int, part: Part, leaf: int) -> None:
        self._not_wanted(i, part.place(leaf), "it is no array")

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
        if not self._wanted[array]:
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


@dataclass(frozen=True)
class Kind:
    """How messages call a derivative, and which errors they are."""

    name: str
    structure: type[FunctionError]
    shape: type[FunctionError]
    dtype: type[FunctionError]
    value: type[FunctionError]


GRADIENT = Kind("gradient", GradientStructureError, GradientShapeError, GradientDtypeError, BackwardError)
TANGENT = Kind("tangent", TangentError, TangentShapeError, TangentDtypeError, TangentError)


@dataclass(frozen=True)
class Returned:
    """What a rule returns: the leaves of a gradient or tangent.

    Attributes
    ----------
    kind : Kind
    title : callable
        Gives the rule in words, at the beginning of messages.
    rule : callable
        The user's function; its last line is the place of the error.
    place : callable
        From the key path of a leaf to how messages call it.
    """

    kind: Kind
    title: Callable[[], str]
    rule: Callable[..., Any]
    place: Callable[[KeyPath], str]

    def fitted(self, tree: PyTree, treedef: PyTreeDef, avals: Sequence[Aval]) -> list[Any]:
        """The leaves, each a value of its aval, or `Zero`.

        Parameters
        ----------
        tree : pytree
        treedef, avals
            Structure and leaves of what it is the derivative of.
        """
        leaves, found = tree_flatten(tree)
        if found is not treedef and found != treedef:
            leaves = self._completed(tree, treedef)
        out = []
        for i, (x, aval) in enumerate(zip(leaves, avals)):
            if x is None or type(x) is Zero or is_float0(x):
                out.append(Zero(aval))
                continue
            x = self._fit(x, aval, partial(leaf_path, treedef, i))
            if config.debug_nans and type(x) is not Zero:
                what = (
                    f"the {self.kind.name} of {self.place(leaf_path(treedef, i))} returned by {self.title()}"
                )
                x = check_nans(x, what, last_line(self.rule))
            out.append(x)
        return out

    def _completed(self, tree: PyTree, treedef: PyTreeDef) -> list[Any]:
        """The leaves, with None for each leaf of a part that is None."""
        given, found = tree_flatten(tree, is_leaf=lambda x: x is None)
        try:
            parts = found.flatten_up_to(tree_unflatten(treedef, range(treedef.num_leaves)))
        except PytreeError:
            self._wrong_structure(tree, treedef)
        leaves: list[Any] = []
        for x, part in zip(given, parts):
            if x is None:
                leaves += [None] * len(tree_leaves(part))
            elif type(part) is int:
                leaves.append(x)
            else:
                self._wrong_structure(tree, treedef)
        return leaves

    def _wrong_structure(self, tree: PyTree, treedef: PyTreeDef) -> NoReturn:
        found = tree_structure(tree)
        path, wanted, met = first_difference(treedef, found) or ((), str(treedef), str(found))
        raise self.kind.structure(
            f"{self.title()} returned a {self.kind.name} of another structure for {self.place(path)}: expected "
            f"{wanted}, got {met}. None stands for a zero {self.kind.name} of any part\n"
            f"  expected: {treedef}\n"
            f"  returned: {found}",
            last_line(self.rule),
        )

    def _fit(self, x: Any, aval: Aval, path: Callable[[], KeyPath]) -> Any:
        try:
            x = value_of(x, str)
        except (ArgumentError, DtypeError):
            self._fail(
                self.kind.value,
                f"returned {str(x)[:60]!r} of type {type(x).__name__} as the {self.kind.name} of {self.place(path())}. "
                "Return an array, or None for zero",
            )
        own = aval_of(x)
        if not is_inexact(aval.dtype):
            return self._no_derivative(x, own, aval, path)
        if own.shape != aval.shape:
            index = f" at index {path()[0].idx}" if self.kind is GRADIENT else ""
            self._fail(
                self.kind.shape,
                f"returned an invalid {self.kind.name}{index} - got {list(own.shape)} but expected shape compatible "
                f"with {list(aval.shape)}: that of {self.place(path())}",
            )
        if own.dtype == aval.dtype and not own.weak:
            return x
        if is_complex(own.dtype) and not is_complex(aval.dtype):
            self._fail(
                self.kind.dtype,
                f"returned a complex {self.kind.name} for {self.place(path())}, which is of dtype {aval.dtype}: "
                "take .real",
            )
        return strong(x, aval.dtype)

    def _no_derivative(self, x: Any, own: Aval, aval: Aval, path: Callable[[], KeyPath]) -> Zero:
        """Zero for an integer; a gradient is ignored, since rules meant for floats are called with ``f(x, 2)``, too."""
        if self.kind is GRADIENT:
            return Zero(aval)
        known = concrete(x)
        nonzero = known is not None and bool(np.any(known))
        if nonzero or (self.kind is TANGENT and is_inexact(own.dtype)):
            self._fail(
                self.kind.value,
                f"returned a {self.kind.name} {'that is not zero ' if nonzero else ''}for {self.place(path())}, "
                f"which is of dtype {aval.dtype} and has no derivative: return None there",
            )
        return Zero(aval)

    def _fail(self, error: type[FunctionError], text: str) -> NoReturn:
        raise error(f"{self.title()} {text}", last_line(self.rule))


def leaf_path(treedef: PyTreeDef, i: int) -> KeyPath:
    """The key path of a leaf."""
    return tree_flatten_with_path(tree_unflatten(treedef, range(treedef.num_leaves)))[0][i][0]


def output_place(path: KeyPath) -> str:
    """How messages call a leaf of a function's result."""
    return f"output {keystr(path)}" if path else "the output"
