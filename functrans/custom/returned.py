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
from ..core.source import last_line
from ..core.trace import PYTHON_KEYS, concrete
from ..frontend.arguments import given, value_of
from ..frontend.pytree import (
    PyTree,
    PyTreeDef,
    first_difference,
    leaf_path,
    tree_flatten,
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


@dataclass(frozen=True)
class Kind:
    """How messages call a derivative and what it belongs to, and which errors they are."""

    name: str
    of: str
    structure: type[FunctionError]
    shape: type[FunctionError]
    dtype: type[FunctionError]
    value: type[FunctionError]


GRADIENT = Kind(
    "gradient", "argument", GradientStructureError, GradientShapeError, GradientDtypeError, BackwardError
)
TANGENT = Kind("tangent", "output", TangentError, TangentShapeError, TangentDtypeError, TangentError)


class _Check:
    """What the checks of all derivatives share: the words in front of each message, and the last conversion."""

    kind: Kind
    rule: Callable[..., Any]
    title: Callable[[], str]

    def fail(self, error: type[FunctionError], text: str) -> NoReturn:
        """Raise an error at the last line of the user's rule."""
        raise error(f"{self.title()} {text}", last_line(self.rule))

    def converted(self, x: Any, own: Aval, aval: Aval, place: Callable[[], str]) -> Any:
        """A value of type `own`, and of the right shape, in the dtype of `aval`; complex is refused for real."""
        if own.dtype == aval.dtype and not own.weak:
            return x
        if is_complex(own.dtype) and not is_complex(aval.dtype):
            self.fail(
                self.kind.dtype,
                f"returned a complex {self.kind.name} for {place()}, which is real (of dtype {aval.dtype}): take .real",
            )
        return strong(x, aval.dtype)


def _is_nonzero(x: Any) -> bool:
    """Whether there is a number in it that is known not to be zero."""
    numbers = concrete(x)
    return numbers is not None and bool(np.any(numbers))


class _Checked(_Check):
    """The check of what one call of a `Function`'s rule returned: something for each argument, or for each output."""

    def __init__(
        self,
        kind: Kind,
        title: Callable[[], str],
        rule: Callable[..., Any],
        layout: Layout,
        avals: Sequence[Aval],
        wanted: Sequence[bool],
    ):
        self.kind = kind
        self.title = title
        self.rule = rule
        self._layout = layout
        self._avals = avals
        self._wanted = wanted

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
            leaves = part.tree.flatten_up_to(tree, f"{self.kind.name} {i}")
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

    def _is_alone(self, returned: Any) -> bool:
        """Whether something other than a tuple stands for the one element that there is; a list is refused."""
        parts = self._layout.parts
        if type(returned) is list and not (len(parts) == 1 and parts[0].tree.node_data()):
            self.fail(
                FunctionDefinitionError,
                f"returned a list; return a tuple of {self.kind.name}s, one for each {self.kind.of}",
            )
        return type(returned) is not tuple

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
    rule : callable
        The user's function, whose last line messages show.
    arguments : Arguments
    avals : sequence of Aval
        The types of the arrays in them.
    wanted : sequence of bool
        Which of these need a gradient.
    names : callable
    """

    def __init__(
        self,
        name: str,
        rule: Callable[..., Any],
        arguments: Arguments,
        avals: Sequence[Aval],
        wanted: Sequence[bool],
        names: Names,
    ):
        super().__init__(GRADIENT, lambda: f"function {name}", rule, arguments.layout, avals, wanted)
        self._name = name
        self._static = arguments.static
        self._names = names

    def _counted(self, returned: Any) -> Sequence[Any]:
        count = len(self._layout.parts)
        if self._is_alone(returned):
            returned = (returned,)
        if len(returned) < count or any(g is not None for g in returned[count:]):
            self.fail(
                GradientCountError,
                f"returned an incorrect number of gradients (expected {count}, got {len(returned)}). Return a tuple "
                "with one for each argument of forward, None where there is no gradient",
            )
        return returned[:count]

    def _refuse_static(self, gradient: Any, i: int, part: Part) -> None:
        """Raise where something that has no derivative got a gradient; those of numbers are dropped."""
        static = self._static.leaves[part.leaves]
        if (static and NUMBERS.issuperset(map(type, static))) or all(
            x is None for x in tree_leaves(gradient)
        ):
            return
        self.fail(
            BackwardError,
            f"returned a gradient different than None at position {i}, but the corresponding "
            f"forward input was not a Variable: {self._names(i)} holds no array. Return None there",
        )

    def _refuse_structure(self, i: int, problem: str) -> NoReturn:
        self.fail(
            GradientStructureError,
            f"returned a gradient of another structure than {self._names(i)}: {problem}. Return "
            "a tree like the argument with None for what has no gradient, or None for all of it",
        )

    def _refuse_leaf(self, i: int, part: Part, leaf: int) -> None:
        if type(self._static.leaves[part.leaves][leaf]) not in NUMBERS:
            path = part.place(leaf)
            self.fail(
                BackwardError,
                f"returned a gradient different than None at position {i}{path}, but "
                f"{self._names(i)}{path} is no array. Return None there",
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
            x = check_nans(x, f"gradient {what}{path} returned by {self._name}", last_line(self.rule))
        return turned(x)

    def _number(self, x: Any, aval: Aval, i: int, path: str) -> Any:
        place = f"{self._names(i)}{path}"
        if kind_of(x) is not None:
            self.fail(
                GradientStructureError,
                f"returned a {type(x).__name__} as the gradient of {place}, which is an array. "
                "Return an array or None",
            )
        if type(x) not in PYTHON_KEYS or (aval.shape and aval.dtype.kind in "fc"):
            raise BackwardError(
                f"{self.title()}: expected Variable or None (got {type(x).__name__}) as the gradient of {place}, an "
                f"array of shape {aval.shape}. Return an array of that shape",
                last_line(self.rule),
            )
        if aval.dtype.kind not in "fc":
            return np.asarray(x)
        return self.converted(x, aval_of(x), aval, lambda: place)

    def _fitted(self, x: Any, aval: Aval, i: int, path: str) -> Any:
        own = aval_of(x)
        if own.shape != aval.shape:
            summed = sum_to_shape(x, aval)
            if summed is None:
                self.fail(
                    GradientShapeError,
                    f"returned an invalid gradient at index {i}{path} - got {list(own.shape)} "
                    f"but expected shape compatible with {list(aval.shape)}: that of {self._names(i)}{path}, or one "
                    "that it broadcasts to",
                )
            x = summed
        return self.converted(x, own, aval, lambda: f"{self._names(i)}{path}")

    def _of_integer(self, x: Any, i: int, path: str) -> None:
        if _is_nonzero(x):
            self.fail(
                BackwardError,
                f"returned a gradient that is not zero for {self._names(i)}{path}, an array of "
                "integers or booleans, in which there is no derivative. Return None there",
            )


class Tangents(_Checked):
    """The check of one call of ``jvp``.

    Parameters
    ----------
    name : str
        Of the function.
    rule : callable
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
        rule: Callable[..., Any],
        outputs: Outputs,
        avals: Sequence[Aval],
        moving: Sequence[bool],
    ):
        super().__init__(TANGENT, lambda: f"the jvp of {name}", rule, outputs.layout, avals, moving)
        self._name = name
        self._outputs = outputs

    def _counted(self, returned: Any) -> Sequence[Any]:
        count = len(self._layout.parts)
        if self._is_alone(returned):
            returned = (returned,)
        if len(returned) != count:
            self.fail(
                TangentCountError,
                f"returned an invalid number of forward gradients (expected {count} but got {len(returned)}). Return "
                "one for each output of forward, None where it is zero",
            )
        return returned

    def _refuse_structure(self, i: int, problem: str) -> NoReturn:
        self.fail(
            TangentError,
            f"returned a tangent of another structure than {self._outputs.place(i)}: "
            f"{problem}. Return a tree like the output, with None for what is zero",
        )

    def _refuse_static(self, x: Any, i: int, part: Part) -> None:
        if any(leaf is not None for leaf in tree_leaves(x)):
            self._not_wanted(i, "", "it is no array")

    def _refuse_leaf(self, i: int, part: Part, leaf: int) -> None:
        self._not_wanted(i, part.place(leaf), "it is no array")

    def _not_wanted(self, i: int, path: str, why: str) -> NoReturn:
        self.fail(
            TangentError,
            f"returned a tangent for {self._outputs.place(i)}{path}, but {why}. You should "
            "return None at that position",
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
            return self.converted(t, aval_of(t), aval, lambda: place)
        if not is_array(t):
            self.fail(
                TangentError,
                f"returned a {type(t).__name__} as the tangent of {place}, an array of shape "
                f"{aval.shape}. Return an array of that shape, or return None where it is zero",
            )
        t = own_value(t, lambda: f"tangent {i} of {self._name}")
        own = aval_of(t)
        if own.shape != aval.shape:
            self.fail(
                TangentShapeError,
                f"returned a tangent of shape {own.shape} for {place} of shape {aval.shape}; "
                "they must be equal",
            )
        return self.converted(t, own, aval, lambda: place)


@dataclass(frozen=True)
class Returned(_Check):
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
        self.fail(
            self.kind.structure,
            f"returned a {self.kind.name} of another structure for {self.place(path)}: expected {wanted}, got {met}. "
            f"None stands for a zero {self.kind.name} of any part\n"
            f"  expected: {treedef}\n"
            f"  returned: {found}",
        )

    def _fit(self, x: Any, aval: Aval, path: Callable[[], KeyPath]) -> Any:
        try:
            x = value_of(x, str)
        except (ArgumentError, DtypeError):
            self.fail(
                self.kind.value,
                f"returned {str(x)[:60]!r} of type {type(x).__name__} as the {self.kind.name} of {self.place(path())}. "
                "Return an array, or None for zero",
            )
        own = aval_of(x)
        if not is_inexact(aval.dtype):
            return self._no_derivative(x, own, aval, path)
        if own.shape != aval.shape:
            index = f" at index {path()[0].idx}" if self.kind is GRADIENT else ""
            self.fail(
                self.kind.shape,
                f"returned an invalid {self.kind.name}{index} - got {list(own.shape)} but expected shape compatible "
                f"with {list(aval.shape)}: that of {self.place(path())}",
            )
        return self.converted(x, own, aval, lambda: self.place(path()))

    def _no_derivative(self, x: Any, own: Aval, aval: Aval, path: Callable[[], KeyPath]) -> Zero:
        """Zero for an integer; a gradient is ignored, since rules meant for floats are called with ``f(x, 2)``, too."""
        if self.kind is GRADIENT:
            return Zero(aval)
        nonzero = _is_nonzero(x)
        if nonzero or (self.kind is TANGENT and is_inexact(own.dtype)):
            self.fail(
                self.kind.value,
                f"returned a {self.kind.name} {'that is not zero ' if nonzero else ''}for {self.place(path())}, "
                f"which is of dtype {aval.dtype} and has no derivative: return None there",
            )
        return Zero(aval)


def output_place(path: KeyPath) -> str:
    """How messages call a leaf of a function's result."""
    return f"output {keystr(path)}" if path else "the output"
