"""Whole derivatives: `jacfwd`, `jacrev`, `hessian`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..core import ArgumentError, Aval, GradientError, Zero, aval_of, is_complex, is_inexact
from ..core.primitive import Linear
from ..core.values import ArrayLike, Value
from ..frontend.arguments import Flat, check_function, name_of, results
from ..frontend.checked import checked
from ..frontend.pytree import PyTree, PyTreeDef, tree_unflatten
from ..primitives.products.dot import dot_general_p
from ..primitives.structure.linear import batched_first, instantiate, move_axis, reshape_p
from ..primitives.structure.shape import eye
from ..transforms.batch import batch
from ..transforms.linearize import Entry, Linearized, linearize, replay
from ..transforms.transpose import backward
from .compiled.jit import jit
from .derivatives import VJP, vjp
from .grad import Argnums, Differentiated, checked_argnums, derivative_in, select


@checked
def jacfwd(
    fun: Callable[..., PyTree], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., PyTree]:
    """The Jacobian, one column per input element: best for few inputs.

    Parameters
    ----------
    fun : callable
        Returns an array or a pytree of arrays.
    argnums, has_aux, holomorphic
        As for `grad`. Without `holomorphic`, a function of real arguments may return complex arrays.

    Returns
    -------
    callable
        Takes the same arguments. Returns the output's pytree whose leaves are replaced by the argument's pytree, with
        leaves of shape ``output.shape + input.shape``; with `has_aux`, a pair of that and the auxiliary data.

    Notes
    -----
    Linearizes the function once, and applies its linear program to all basis directions in one batch.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> ft.jacfwd(lambda x: x ** 2)(fnp.asarray([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]])
    """
    return _Jacobian("jacfwd", fun, argnums, has_aux, holomorphic)


@checked
def jacrev(
    fun: Callable[..., PyTree],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., PyTree]:
    """The Jacobian, one row per output element: best for few outputs.

    Parameters
    ----------
    fun : callable
        Returns an array or a pytree of arrays.
    argnums, has_aux, holomorphic, allow_int
        As for `grad`.

    Returns
    -------
    callable
        As for `jacfwd`: leaves of shape ``output.shape + input.shape``.

    Notes
    -----
    Linearizes the function once, and applies the transpose of its linear program to all basis covectors in one batch.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> ft.jacrev(lambda x: x[0] * x)(fnp.asarray([1.0, 2.0]))
    Array([[2., 0.],
           [2., 1.]])
    """
    return _Jacobian("jacrev", fun, argnums, has_aux, holomorphic, allow_int)


#: JAX's name for the Jacobian in reverse mode.
jacobian = jacrev


@checked
def hessian(
    fun: Callable[..., PyTree], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., PyTree]:
    """The matrix of second derivatives: ``jacfwd(jacrev(fun))``.

    Parameters
    ----------
    fun : callable
        Usually returns a scalar.
    argnums, has_aux, holomorphic
        As for `grad`.

    Returns
    -------
    callable
        For a scalar function of an array of shape ``s``, returns an array of shape ``s + s``; in general, the output's
        pytree of the argument's pytree of the argument's pytree.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> ft.hessian(lambda x: x[0] * x[1] ** 2)(fnp.asarray([3.0, 2.0]))
    Array([[0., 4.],
           [4., 6.]])
    """
    inner = jacrev(fun, argnums, has_aux, holomorphic)
    return jacfwd(inner, argnums, has_aux, holomorphic)


class _Jacobian(Differentiated):
    def __call__(self, *args: ArrayLike, **kwargs: PyTree) -> PyTree:
        """The Jacobian, and auxiliary data."""
        return self._differentiate(args, kwargs)

    @staticmethod
    def _rule(
        what: str,
        fun: Callable[..., PyTree],
        argnums: Argnums,
        has_aux: bool,
        holomorphic: bool,
        allow_int: bool,
        args: tuple[Value, ...],
        kwargs: dict[str, Any],
    ) -> PyTree:
        chosen = select(what, fun, argnums, args, kwargs, holomorphic, allow_int)
        flat = Flat(fun, chosen.tree, chosen.call, has_aux)
        linear = linearize(
            flat, chosen.leaves, [is_inexact(aval_of(x).dtype) for x in chosen.leaves]
        ).pruned()
        outs, aux = flat.separate(linear.outs, {id(x) for x in chosen.leaves})
        _check_outputs(what, fun, outs, holomorphic)
        blocks_of = _columns if what == "jacfwd" else _rows
        blocks = blocks_of(linear, [aval_of(x) for x in chosen.leaves], [aval_of(x) for x in outs])
        typed = [
            [derivative_in(x, aval_of(leaf), aval_of(out).shape) for x, leaf in zip(row, chosen.leaves)]
            for row, out in zip(blocks, outs)
        ]
        jacobian = _assembled(flat.out_tree, chosen.tree, typed, isinstance(argnums, int))
        return (jacobian, aux) if has_aux else jacobian


def _check_outputs(what: str, fun: Callable[..., PyTree], outs: Sequence[Value], holomorphic: bool) -> None:
    for x in outs:
        dtype = aval_of(x).dtype
        wrong = not is_complex(dtype) if holomorphic else is_complex(dtype) and what != "jacfwd"
        if is_inexact(dtype) and wrong:
            raise GradientError(
                f"{what} of {name_of(fun)}: it returned an array of dtype {dtype} with holomorphic={holomorphic}; "
                "return complex arrays with holomorphic=True, and real ones without"
            )


def _basis(aval: Aval) -> Value:
    """The unit arrays of a type, along a new first axis."""
    return reshape_p.bind(eye(aval.size, aval.size, 0, aval.dtype), shape=(aval.size, *aval.shape))


def _columns(linear: Linearized, ins: Sequence[Aval], outs: Sequence[Aval]) -> list[list[Any]]:
    """``blocks[output][input]`` of shape ``output.shape + input.shape``, by pushing basis vectors forward."""
    blocks: list[list[Any]] = [[] for _ in outs]
    for i, a in enumerate(ins):
        rest, images, axes = _without_products(linear, i)

        def push(direction: Value, *images: Value, i: int = i, rest: Linearized = rest) -> list[Value]:
            tangents = [direction if j == i else instantiate(Zero(b)) for j, b in enumerate(ins)]
            return [instantiate(t) for t in replay(rest, [*tangents, *images])[: len(outs)]]

        columns, dims = batch(push, a.size, [_basis(a), *images], [0, *axes])
        for row, x, d, out in zip(blocks, columns, dims, outs):
            last = move_axis(batched_first(a.size, x, d), 0, out.ndim)
            row.append(reshape_p.bind(last, shape=out.shape + a.shape))
    return blocks


# The product of a matrix with all unit vectors is the matrix, which costs nothing, and has no `0 * inf`.


def _without_products(linear: Linearized, i: int) -> tuple[Linearized, list[Value], list[int]]:
    """The program with the products of matrices and its input `i`, a vector, as further inputs.

    The other two results are the values of these for all unit vectors, and the axes along which the unit vectors are.
    """
    tape: list[Entry] = []
    outs: list[Linear] = []
    images: list[Value] = []
    axes: list[int] = []
    for e in linear.tape:
        place = _matrix_times(e, linear.inputs[i])
        if place is None:
            tape.append(e)
        else:
            outs += e.outs
            images.append(e.args[place])
            axes += e.params["dimension_numbers"][0][place]
    return linear._replace(inputs=[*linear.inputs, *outs], tape=tape), images, axes


def _without_last_product(linear: Linearized, j: int, out: Aval) -> tuple[Linearized, Value, int]:
    """The program without the product of a matrix and a vector that is its output `j`, if it is one.

    The other two results are the covectors to pull back, rows of the matrix or of the identity, and their axis.
    """
    tangents, end = list(linear.tangents), linear.tangents[j]
    last = [e for e in linear.tape if end in e.outs]
    if last and len([t for t in tangents if t is end]) + len([e for e in linear.tape if _reads(e, end)]) == 1:
        (e,) = last
        tangents[j] = next(a for a in e.args if type(a) is Linear)
        place = _matrix_times(e, tangents[j])
        if place is not None and aval_of(e.args[place]).ndim == 2:
            (axis,) = e.params["dimension_numbers"][0][place]
            tape = [other for other in linear.tape if other is not e]
            return linear._replace(tangents=tangents, tape=tape), e.args[place], 1 - axis
    return linear, _basis(out), 0


def _matrix_times(e: Entry, vector: Linear | None) -> int | None:
    """The place of the other operand of a product with a vector; None if an entry is something else."""
    if e.primitive is not dot_general_p or vector is None or vector.aval.ndim != 1 or not _reads(e, vector):
        return None
    (contracted, _), _ = e.params["dimension_numbers"]
    place = int(e.args[0] is vector)
    same = aval_of(e.args[place]).dtype == e.outs[0].aval.dtype
    return place if len(contracted) == 1 and same else None


def _reads(e: Entry, v: Linear) -> bool:
    return any(a is v for a in e.args)


def _rows(linear: Linearized, ins: Sequence[Aval], outs: Sequence[Aval]) -> list[list[Any]]:
    """The same blocks, by pulling basis covectors back."""
    blocks: list[list[Any]] = []
    for j, out in enumerate(outs):
        rest, covectors, axis = _without_last_product(linear, j, out)

        def pull(direction: Value, j: int = j, rest: Linearized = rest) -> list[Value]:
            cts = [direction if k == j else Zero(o) for k, o in enumerate(outs)]
            arg_cts = backward(rest.tape, rest.tangents[: len(outs)], cts, rest.inputs)
            return [instantiate(ct) for ct, a in zip(arg_cts, ins) if is_inexact(a.dtype)]

        rows = zip(*batch(pull, out.size, [covectors], [axis]))
        blocks.append(
            [
                reshape_p.bind(batched_first(out.size, *next(rows)), shape=out.shape + a.shape)
                if is_inexact(a.dtype)
                else Zero(a)
                for a in ins
            ]
        )
    return blocks


def _assembled(out_tree: PyTreeDef, in_tree: PyTreeDef, blocks: list[list[Any]], single: bool) -> PyTree:
    parts = [results(in_tree, row) for row in blocks]
    return tree_unflatten(out_tree, [p[0] for p in parts] if single else parts)


@checked
def fwd_and_bwd(
    fun: Callable[..., PyTree], argnums: Argnums, has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The forward and the backward pass of a function, as two functions that compile once each.

    Parameters
    ----------
    fun : callable
    argnums : int or tuple of int
        The positional arguments to differentiate.
    has_aux : bool
        Whether `fun` returns a pair whose second part is not differentiated.
    jitted : bool
        Whether both are jitted.

    Returns
    -------
    fwd : callable
        ``fwd(*args)`` returns ``(out, residuals)``, or ``(out, residuals, aux)``.
    bwd : callable
        ``bwd(residuals, cotangent)`` returns the cotangent of the argument, or a tuple of them for several `argnums`.

    Notes
    -----
    As with `vjp`, whose pullback is `residuals`. But each call of a jitted `vjp` inside a loop in Python returns a new
    pullback, and `bwd` compiles that program only once.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> fwd, bwd = ft.fwd_and_bwd(lambda x, w: fnp.sum(fnp.sin(x) * w), argnums=(0, 1))
    >>> out, residuals = fwd(0.0, 2.0)
    >>> bwd(residuals, 1.0)
    (Array(2.), Array(0.))
    """
    check_function("fwd_and_bwd", fun)
    several = not isinstance(argnums, int)

    def fwd(*args: PyTree, **kwargs: PyTree) -> tuple[Any, ...]:
        numbers = checked_argnums("fwd_and_bwd", fun, argnums, len(args))

        @functools.wraps(fun, assigned=("__name__", "__qualname__"), updated=())
        def of(*parts: Any) -> PyTree:
            full = list(args)
            for i, part in zip(numbers, parts):
                full[i] = part
            return fun(*full, **kwargs)

        return vjp(of, *[args[i] for i in numbers], has_aux=has_aux)

    def bwd(residuals: PyTree, cotangent: ArrayLike) -> PyTree:
        if not isinstance(residuals, VJP):
            raise ArgumentError(
                "bwd: residuals must be what fwd returned after the output, got a value of type "
                f"{type(residuals).__name__}"
            )
        cotangents = residuals(cotangent)
        return cotangents if several else cotangents[0]

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
