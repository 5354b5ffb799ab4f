"""Refs: the functions that `functrans.ref` and `functrans` publish, and refs as arguments of transformed functions.

A transformed function gets the values of refs, its arguments and those from outside that it uses, and returns their
last values.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..arrays.array import unwrap, wrap
from ..arrays.ref import Ref, own_value, refs_among, refused
from ..core import Aval, aval_of, canonical
from ..core.values import PyTree
from ..errors import ArgumentError, RefError
from ..frontend.arguments import argument_place, name_of
from ..frontend.checked import checked
from ..frontend.pytree import tree_flatten, tree_flatten_with_path, tree_leaves, tree_unflatten
from ..frontend.structs import ShapeDtypeStruct
from ..primitives.operands import operand, strong
from ..primitives.structure.linear import zeros
from ..transforms.stage import Uses

#: From a function of values, and a key for what it makes of a function, to the transformed function.
Transform = Callable[[Callable[..., Any], tuple[Any, ...]], Callable[..., Any]]


def put_back(uses: Uses, outs: Sequence[PyTree]) -> list[Any]:
    """Store the last values of the refs that a function writes, the last of its results; return the others."""
    outs = list(outs)
    written = [ref for ref, w in zip(uses.refs, uses.written, strict=True) if w]
    for ref in reversed(written):
        ref.put(outs.pop())
    return outs


def has_refs(tree: PyTree) -> bool:
    """Whether a pytree of arguments contains a ref."""
    return any(type(leaf) is Ref for leaf in tree_leaves(tree))


def with_values(
    what: str,
    fun: Callable[..., PyTree],
    transform: Transform,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    shared: Sequence[int] = (),
    donate: bool = False,
) -> Any:
    """Call a transformed function whose arguments contain refs.

    Those at `shared` leaves are captured values. With `donate`, the function may write into the memory of the others.
    """
    leaves, tree = tree_flatten((args, kwargs))
    places = refs_among(leaves)
    _check_distinct(what, fun, args, kwargs, leaves, places)
    passed = [i for i in places if i not in shared]
    refs = [leaves[i] for i in passed]
    captured = {i: leaves[i] for i in places if i in shared}

    @functools.wraps(fun, assigned=("__name__", "__qualname__"), updated=())
    def of_values(*args: PyTree, **kwargs: PyTree) -> tuple[Any, list[Any]]:
        inner, tree = tree_flatten((args, kwargs))
        first = [unwrap(inner[i]) for i in passed]
        made = [Ref(x) for x in first]
        for i, ref in [*zip(passed, made), *captured.items()]:
            inner[i] = ref
        given, named = tree_unflatten(tree, inner)
        out = fun(*given, **named)
        for leaf in tree_leaves(out):
            if type(leaf) is Ref:
                raise refused(leaf, f"the result of {name_of(fun)}")
        kept = [not donate and ref.is_unchanged(x) for ref, x in zip(made, first)]
        return out, [None if k else ref.end("an argument") for ref, k in zip(made, kept)]

    with_refs = transform(of_values, ("refs", tuple(passed), tree, donate))
    for i in captured:
        leaves[i] = 0.0
    lent = [ref.lend(donate) for ref in refs]
    try:
        for i, value in zip(passed, lent):
            leaves[i] = value
        given, named = tree_unflatten(tree, leaves)
        out, last = with_refs(*given, **named)
    except BaseException:
        for ref, value in zip(refs, lent):
            ref.return_loan(value)
        raise
    for ref, value, new in zip(refs, lent, last):
        ref.return_loan(value if new is None else new)
        if new is not None:
            ref.put(unwrap(new))
    return out


def _check_distinct(
    what: str,
    fun: Callable[..., PyTree],
    args: Any,
    kwargs: Any,
    leaves: Sequence[Any],
    places: Sequence[int],
) -> None:
    first: dict[int, int] = {}
    for i in places:
        if id(leaves[i]) in first:
            paths = [path for path, _ in tree_flatten_with_path((args, kwargs))[0]]
            one, other = [argument_place(fun, paths[k]) for k in (first[id(leaves[i])], i)]
            raise RefError(f"{what} of {name_of(fun)}: {one} and {other} are the same Ref; pass it once")
        first[id(leaves[i])] = i


# --- what users call ----------------------------------------------------------------------------------------


@checked
def new_ref(init_val: PyTree, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """Make a mutable reference.

    Parameters
    ----------
    init_val : array_like
        The first value, which is copied. It fixes shape and dtype.
    memory_space, kind
        As in JAX; without effect.

    Returns
    -------
    Ref
        Read it by ``r[...]`` or ``r[i]``, write it by ``r[i] = v``. In traced code, refs work in and around loops
        and branches, and as arguments of jitted and mapped functions, which may write them.

    Raises
    ------
    RefError
        When used: it is returned from a transformed function, passed to one twice, or written a value that is
        differentiated or mapped inside a function while the ref is from outside.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> r = ft.new_ref(fnp.arange(3.0))
    >>> @ft.jit
    ... def double(r):
    ...     r[...] = 2.0 * r[...]
    >>> double(r)
    >>> r
    Ref([0., 2., 4.])
    """
    if isinstance(init_val, Ref):
        raise refused(init_val, "new_ref: init_val")
    value = operand(init_val, "new_ref")
    return Ref(own_value(strong(value, aval_of(value).dtype)))


@checked
def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """Make a mutable reference of a type, whose first value is meant to be overwritten: zeros.

    Parameters
    ----------
    ty : ShapeDtypeStruct, or array
        Its shape and dtype.

    Examples
    --------
    >>> import functrans as ft
    >>> r = ft.empty_ref(ft.ShapeDtypeStruct((2,), "int64"))
    >>> r[0] = 7
    >>> r
    Ref([7, 0])
    """
    if not (isinstance(ty, ShapeDtypeStruct) or (hasattr(ty, "shape") and hasattr(ty, "dtype"))):
        raise ArgumentError(
            f"empty_ref: ty must be a ShapeDtypeStruct or an array, got {ty!r} of type {type(ty).__name__}"
        )
    return Ref(own_value(zeros(Aval(tuple(ty.shape), canonical(ty.dtype, "empty_ref: ty.dtype")))))


def _ref(function: str, ref: Any) -> Ref:
    if type(ref) is not Ref:
        raise ArgumentError(f"{function}: ref must be a Ref, got one of type {type(ref).__name__}")
    return ref


@checked
def freeze(ref: Any) -> PyTree:
    """The last value of a ref, which cannot be used any more.

    Examples
    --------
    >>> import functrans as ft
    >>> r = ft.new_ref([1.0, 2.0])
    >>> r[0] = 5.0
    >>> ft.freeze(r)
    Array([5., 2.])
    """
    return wrap(_ref("freeze", ref).end("frozen"))


@checked
def free_ref(ref: Any) -> None:
    """End a ref without reading it.

    Examples
    --------
    >>> import functrans as ft
    >>> r = ft.new_ref([1.0, 2.0])
    >>> ft.free_ref(r)
    """
    _ref("free_ref", ref).end("freed")


@checked
def get(ref: Any, idx: Any = None) -> PyTree:
    """Read elements: ``ref[idx]``; the whole array without an index.

    Examples
    --------
    >>> import functrans as ft
    >>> ft.ref.get(ft.new_ref([1.0, 2.0]), 1)
    Array(2.)
    """
    return _ref("get", ref).get(idx)


@checked
def set(ref: Any, idx: Any, value: Any) -> None:
    """Write elements: ``ref[idx] = value``.

    Examples
    --------
    >>> import functrans as ft
    >>> r = ft.new_ref([1.0, 2.0])
    >>> ft.ref.set(r, 1, 7.0)
    >>> r
    Ref([1., 7.])
    """
    _ref("set", ref).set(value, idx)


@checked
def swap(ref: Any, idx: Any, value: Any) -> PyTree:
    """Write elements, and return what they were before.

    Examples
    --------
    >>> import functrans as ft
    >>> r = ft.new_ref([1.0, 2.0])
    >>> ft.ref.swap(r, 1, 7.0), r
    (Array(2.), Ref([1., 7.]))
    """
    return _ref("swap", ref).swap(value, idx)


@checked
def addupdate(ref: Any, idx: Any, x: Any) -> None:
    """Add to elements; an index that occurs several times adds as often.

    Examples
    --------
    >>> import functrans as ft
    >>> r = ft.new_ref([1.0, 2.0])
    >>> ft.ref.addupdate(r, [0, 0, 1], 10.0)
    >>> r
    Ref([21., 12.])
    """
    _ref("addupdate", ref).addupdate(x, idx)
