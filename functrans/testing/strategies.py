"""Hypothesis strategies for property tests of your own functions. Hypothesis is imported on first use."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arrays.array import unwrap
from ..core import is_inexact
from ..core.values import DTypeLike, PyTree
from ..errors import ArgumentError, ArgumentValueError
from ..frontend.checked import checked
from ..frontend.pytree import tree_flatten, tree_unflatten
from . import laws
from .domain import Interval
from .domains import AnyDomain, Shaped
from .report import LawViolation

Shapes = int | Sequence[tuple[int, ...]]
Domains = AnyDomain | Sequence[AnyDomain | None] | None
_UNIT = Interval(-1.0, 1.0, avoid=(), complex_range=(-1.0, 1.0))


def needed(module: str) -> Any:
    """A module of Hypothesis, or an `ImportError` that says how to install it."""
    try:
        return importlib.import_module(f"hypothesis.{module}" if module else "hypothesis")
    except ImportError as error:
        raise ImportError(
            "functrans.testing strategies need Hypothesis: pip install functrans[test]"
        ) from error


@checked
def arrays(
    shape: tuple[int, ...] | Any = (3,),
    *,
    domain: AnyDomain | None = None,
    dtype: DTypeLike = np.float64,
) -> Any:
    """A strategy for arrays of numbers of a domain, without subnormals and away from the points to avoid.

    Parameters
    ----------
    shape : tuple of int, or a strategy for one
    domain : Interval, or one of `functrans.testing.domains`, optional
        By default numbers from -2 to 2 other than 0.
    dtype : dtype
        float or complex.

    Returns
    -------
    hypothesis.strategies.SearchStrategy

    Raises
    ------
    ImportError
        If Hypothesis is not installed.
    ShapeError
        If arrays of the domain cannot have the shape.

    Examples
    --------
    >>> from functrans.testing import arrays, domains
    >>> from hypothesis import given, settings
    >>> @settings(max_examples=5, database=None)
    ... @given(arrays((2, 3), domain=domains.simplex()))
    ... def test_sum(p):
    ...     assert abs(p.sum(-1) - 1).max() < 1e-12
    >>> test_sum()
    """
    st, extra = needed("strategies"), needed("extra.numpy")
    dtype = np.dtype(dtype)
    if not isinstance(shape, tuple):
        return shape.flatmap(lambda s: arrays(s, domain=domain, dtype=dtype))
    if isinstance(domain, Shaped):
        domain.check(shape, dtype)
        return arrays(shape, domain=domain.free, dtype=dtype).map(domain.make)
    elements = _elements(st, Interval() if domain is None else domain, dtype)
    return extra.arrays(dtype, shape, elements=elements, fill=st.nothing())


def _elements(st: Any, domain: Interval, dtype: np.dtype) -> Any:
    low, high = domain.complex_range if dtype.kind == "c" else (domain.low, domain.high)
    default = dtype.kind == "c" and domain.complex_range == Interval.complex_range
    avoid = (-1.0, 0.0, 1.0) if default else domain.avoid
    bits = 8 * dtype.itemsize // (2 if dtype.kind == "c" else 1)
    spans = _spans(low, high, avoid, domain.margin, np.dtype(f"f{bits // 8}").type)
    parts = st.one_of([st.floats(a, b, width=bits, allow_subnormal=False) for a, b in spans])
    return st.builds(complex, parts, parts) if dtype.kind == "c" else parts


def _spans(
    low: float, high: float, avoid: Sequence[float], margin: float, real: type[np.floating]
) -> list[tuple[float, float]]:
    """What a margin around some points leaves of an interval, in numbers of a type; positive numbers first.

    (Draws that are discarded would be many: Hypothesis likes to try the constants that a program contains.)
    """
    ends = [low, *[e for p in sorted(avoid) for e in (p - margin, p + margin)], high]
    spans = [
        (
            float(np.nextafter(real(max(a, low)), real(high))),
            float(np.nextafter(real(min(b, high)), real(low))),
        )
        for a, b in zip(ends[::2], ends[1::2])
    ]
    found = [span for span in spans if span[0] <= span[1]]
    if not found:
        raise ArgumentValueError(
            f"domain: nothing is left of the interval from {low} to {high} beside margins of {margin} around {avoid}"
        )
    return sorted(found, key=lambda span: (span[0] < 0.0, abs(span[0])))


@checked
def broadcastable(
    count: int = 2,
    *,
    domain: Domains = None,
    dtype: DTypeLike = np.float64,
    max_dims: int = 3,
    min_side: int = 1,
    max_side: int = 4,
) -> Any:
    """A strategy for tuples of arrays whose shapes broadcast together, also 0-d and of size 1.

    Parameters
    ----------
    count : int
        How many.
    domain : domain, or sequence of one for each array, optional
        As for `arrays`. Vectors and matrices of a domain (`domains.simplex`, `domains.spd`) have the same n; the axes
        before these broadcast.
    dtype : dtype
        float or complex; arrays of `domains.permutation` have integers.
    max_dims, min_side, max_side : int
        The largest number of axes that broadcast, and the least and the greatest length of one; with ``min_side=0``
        arrays can be empty.

    Returns
    -------
    hypothesis.strategies.SearchStrategy

    Examples
    --------
    >>> import numpy as np
    >>> from functrans.testing import broadcastable
    >>> from hypothesis import given, settings
    >>> @settings(max_examples=5, database=None)
    ... @given(broadcastable(2))
    ... def test_shapes(xs):
    ...     assert (xs[0] + xs[1]).shape == np.broadcast_shapes(xs[0].shape, xs[1].shape)
    >>> test_shapes()
    """
    st, extra = needed("strategies"), needed("extra.numpy")
    if count < 1:
        raise ArgumentError(
            f"broadcastable: count={count}: expected a number of arrays, at least 1, or shapes"
        )
    each = _domain_of_each(domain, count)
    shapes = extra.mutually_broadcastable_shapes(
        num_shapes=count, max_dims=max_dims, min_side=min_side, max_side=max_side
    )
    core = [len(d.axes) if isinstance(d, Shaped) else 0 for d in each]
    lengths = st.integers(1, max_side) if any(core) else st.just(1)
    return st.tuples(shapes, lengths).flatmap(
        lambda drawn: st.tuples(
            *[
                arrays((*shape, *[drawn[1]] * axes), domain=d, dtype=dtype)
                for shape, axes, d in zip(drawn[0].input_shapes, core, each)
            ]
        )
    )


def _domain_of_each(domain: Domains, count: int) -> list[AnyDomain | None]:
    if domain is None or isinstance(domain, Interval | Shaped):
        return [domain] * count
    if len(domain) != count:
        raise ArgumentError(f"domain has {len(domain)} entries for {count} arrays; give one, or one for each")
    return list(domain)


@checked
def operands(shapes: Shapes = 1, *, domain: Domains = None, dtype: DTypeLike = np.float64) -> Any:
    """A strategy for tuples of arrays.

    Parameters
    ----------
    shapes : int or sequence of tuple of int
        The number of arrays, which broadcast together, or their shapes.
    domain, dtype
        As for `broadcastable`.
    """
    if isinstance(shapes, int):
        return broadcastable(shapes, domain=domain, dtype=dtype)
    each = _domain_of_each(domain, len(shapes))
    return needed("strategies").tuples(
        *[arrays(tuple(s), domain=d, dtype=dtype) for s, d in zip(shapes, each)]
    )


@checked
def pytrees(leaves: Any = None, *, max_leaves: int = 5) -> Any:
    """A strategy for pytrees: dicts, lists and tuples in each other, sometimes empty, or a leaf alone.

    Parameters
    ----------
    leaves : strategy, optional
        By default arrays of up to two axes of length three.
    max_leaves : int
        About how many leaves.

    Returns
    -------
    hypothesis.strategies.SearchStrategy

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans.testing import pytrees
    >>> from hypothesis import given, settings
    >>> @settings(max_examples=5, deadline=None, database=None)
    ... @given(pytrees())
    ... def test_gradient(tree):
    ...     g = ft.grad(lambda t: sum([fnp.sum(x * x) for x in ft.tree_util.tree_leaves(t)], fnp.zeros(())))(tree)
    ...     assert ft.tree_util.tree_structure(g) == ft.tree_util.tree_structure(tree)
    >>> test_gradient()
    """
    st, extra = needed("strategies"), needed("extra.numpy")
    if leaves is None:
        leaves = arrays(extra.array_shapes(min_dims=0, max_dims=2, max_side=3))
    return st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.tuples(inner, inner)
            | st.dictionaries(st.sampled_from(["a", "b", "w"]), inner, max_size=3)
        ),
        max_leaves=max_leaves,
    )


@checked
def tangents_like(tree: PyTree) -> Any:
    """A strategy for tangents, or cotangents, of a pytree.

    Parameters
    ----------
    tree : pytree of arrays and numbers

    Returns
    -------
    hypothesis.strategies.SearchStrategy
        Of pytrees of the same structure: for float and complex leaves arrays of the same shape and dtype with elements
        from -1 to 1, for others None, which counts as zero.

    Examples
    --------
    >>> import functrans as ft, functrans.numpy as fnp
    >>> from functrans.testing import arrays, tangents_like
    >>> from hypothesis import given, settings, strategies as st
    >>> @settings(max_examples=5, deadline=None, database=None)
    ... @given(arrays((3,)).flatmap(lambda x: st.tuples(st.just(x), tangents_like(x))))
    ... def test_linear(pair):
    ...     x, t = pair
    ...     assert (ft.jvp(fnp.negative, (x,), (t,))[1] == -t).all()
    >>> test_linear()
    """
    st = needed("strategies")
    leaves, structure = tree_flatten(tree)
    plain = [np.asarray(unwrap(x)) for x in leaves]
    each = [arrays(x.shape, domain=_UNIT, dtype=x.dtype) if is_inexact(x.dtype) else st.none() for x in plain]
    return st.tuples(*each).map(lambda found: tree_unflatten(structure, list(found)))


@checked
def in_axes_for(*args: PyTree, max_size: int = 3) -> Any:
    """A strategy for ways to map over arguments: the ``in_axes`` of `vmap`, with arguments that have these axes.

    Parameters
    ----------
    *args : pytree of arrays
        The arguments of one example.
    max_size : int
        The greatest number of examples; 0 is the least.

    Returns
    -------
    hypothesis.strategies.SearchStrategy
        Of pairs ``(in_axes, batch)``. `in_axes` is a tuple with one entry for each argument: a pytree of axes, first,
        last or any, also counted from the end, and of None for what is not mapped; one leaf at least is mapped.
        `batch` has the arguments: those of the examples differ by up to 2% where they are not integers.

    Examples
    --------
    >>> import numpy as np, functrans as ft, functrans.numpy as fnp
    >>> from functrans.testing import in_axes_for
    >>> from hypothesis import given, settings
    >>> @settings(max_examples=5, deadline=None, database=None)
    ... @given(in_axes_for(np.ones((2, 3)), np.ones(3)))
    ... def test_product(drawn):
    ...     in_axes, batch = drawn
    ...     assert ft.vmap(fnp.matmul, in_axes)(*batch).shape[1:] == (2,)
    >>> test_product()
    """
    st = needed("strategies")
    leaves, structure = tree_flatten(args)
    plain = [np.asarray(unwrap(x)) for x in leaves]
    if not plain:
        raise ArgumentError("in_axes_for: there is no array in the arguments to map over")
    axes = [st.sampled_from([0, x.ndim, None, *range(-1 - x.ndim, x.ndim)]) for x in plain]
    mixes = st.tuples(*axes).filter(lambda mix: any(a is not None for a in mix))

    def batched(drawn: tuple[tuple[int | None, ...], int, int]) -> tuple[Any, Any]:
        mix, size, seed = drawn
        random = np.random.default_rng(seed)
        batch = [x if a is None else _lanes(x, a, size, random) for x, a in zip(plain, mix)]
        return tree_unflatten(structure, list(mix)), tree_unflatten(structure, batch)

    return st.tuples(mixes, st.integers(0, max_size), st.integers(0, 99)).map(batched)


def _lanes(x: np.ndarray, axis: int, size: int, random: np.random.Generator) -> np.ndarray:
    """Copies of an array along a new axis, each a little different."""
    axis %= x.ndim + 1
    many = np.repeat(np.expand_dims(x, axis), size, axis)
    return (many * random.uniform(0.98, 1.02, many.shape)).astype(x.dtype) if is_inexact(x.dtype) else many


@checked
def given_op(
    f: Callable[..., Any],
    *,
    shapes: Shapes = 1,
    domain: Domains = None,
    dtype: DTypeLike = np.float64,
    max_examples: int = 30,
) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Decorator: run a test on many points at which `f` has a derivative.

    Parameters
    ----------
    f : callable
        Points at its kinks are skipped.
    shapes, domain, dtype
        As for `operands`.
    max_examples : int

    Returns
    -------
    callable
        A decorator for tests, which receive the operands as positional arguments.

    Examples
    --------
    >>> import functrans.numpy as fnp
    >>> from functrans.testing import domains, given_op, jvp_is_slope
    >>> @given_op(fnp.hypot, shapes=2, max_examples=5)
    ... def test_hypot(x, y):
    ...     jvp_is_slope(fnp.hypot, x, y)
    >>> test_hypot()
    >>> f = lambda a, b: fnp.linalg.solve(a, b[..., None])
    >>> @given_op(f, shapes=2, domain=[domains.spd(), domains.simplex()], max_examples=5)
    ... def test_solve(a, b):
    ...     jvp_is_slope(f, a, b)
    >>> test_solve()
    """
    hypothesis = needed("")

    def decorate(test: Callable[..., None]) -> Callable[[], None]:
        def run(args: tuple[np.ndarray, ...]) -> None:
            hypothesis.assume(_is_smooth(f, args))
            test(*args)

        # Keeps only the test's name: pytest would treat its signature as fixtures.
        run.__name__, run.__qualname__, run.__doc__ = test.__name__, test.__qualname__, test.__doc__
        run.__module__ = test.__module__
        ready = hypothesis.given(operands(shapes, domain=domain, dtype=dtype))(run)
        slow = [hypothesis.HealthCheck.too_slow]  # the first draws of a process, on a busy machine
        return hypothesis.settings(deadline=None, max_examples=max_examples, suppress_health_check=slow)(
            ready
        )

    return decorate


def _is_smooth(f: Callable[..., Any], args: tuple[np.ndarray, ...]) -> bool:
    try:
        laws.is_smooth(f, *args)
    except LawViolation as violation:
        if violation.__cause__ is not None:
            raise
        return False
    return True
