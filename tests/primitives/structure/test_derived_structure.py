"""The domain entries of the primitives with axes; their tests follow from the records."""

import numpy as np
import pytest

from functrans.primitives.indexing import gather_scatter as index
from functrans.primitives.indexing import item, scatter_folds
from functrans.primitives.indexing import scatter_folds as repeated
from functrans.primitives.linalg import cholesky as linalg
from functrans.primitives.products import dot
from functrans.primitives.reductions import reduce
from functrans.primitives.structure import dynamic, linear, shape
from functrans.primitives.structure import shape as create
from functrans.testing import (
    Case,
    Distinct,
    Domain,
    Indices,
    Interval,
    Numbers,
    PositiveDefinite,
    Triangular,
    check_primitive,
)

NUMBERS = "biufc"
N = Numbers


def _one(*cases, **options):
    """Of one operand: pairs of a shape and parameters."""
    made = tuple(Case((N(s),), params) for s, params in cases)
    return Domain(cases=made, **{"kinds": NUMBERS, "linear": ((0,),), **options})


def _reduction(kinds, operand=Numbers, **options):
    shapes = [
        ((3, 4), (0,)),
        ((3, 4), (1,)),
        ((3, 4), (0, 1)),
        ((2, 3, 4), (0, 2)),
        ((2, 1, 3), (1,)),
        ((3, 0), (0,)),
    ]
    cases = [Case((operand(s),), {"axes": a}) for s, a in shapes]
    return Domain(cases=tuple(cases), kinds=kinds, **options)


def _with_identity(kinds, operand=Numbers, **options):
    found = _reduction(kinds, operand, **options)
    more = (Case((operand((0, 2)),), {"axes": (0,)}), Case((operand(()),), {"axes": ()}))
    return Domain(**{**vars(found), "cases": found.cases + more})


def _arg_reduction():
    cases = [((5,), 0), ((3, 4), 0), ((3, 4), 1), ((2, 3, 2), 1), ((1,), 0), ((0, 3), 1)]
    return Domain(cases=tuple(Case((Distinct(s),), {"axes": (d,)}) for s, d in cases), kinds=NUMBERS)


LINEAR = {
    linear.reshape_p: _one(
        ((3, 4), {"shape": (2, 6)}),
        ((), {"shape": (1, 1)}),
        ((1,), {"shape": ()}),
        ((0, 3), {"shape": (3, 0, 2)}),
        ((2, 3, 4), {"shape": (6, 4)}),
    ),
    linear.transpose_p: _one(
        ((2, 3, 4), {"permutation": (2, 0, 1)}),
        ((3, 4), {"permutation": (1, 0)}),
        ((), {"permutation": ()}),
        ((0, 3), {"permutation": (1, 0)}),
    ),
    linear.broadcast_in_dim_p: _one(
        ((3,), {"shape": (2, 3), "broadcast_dimensions": (1,)}),
        ((3,), {"shape": (3, 2), "broadcast_dimensions": (0,)}),
        ((), {"shape": (2, 2), "broadcast_dimensions": ()}),
        ((1, 4), {"shape": (3, 2, 4), "broadcast_dimensions": (1, 2)}),
        ((1,), {"shape": (0,), "broadcast_dimensions": (0,)}),
        ((0,), {"shape": (3, 0), "broadcast_dimensions": (1,)}),
    ),
    linear.reduce_sum_p: _with_identity("iufc", linear=((0,),), rtol=1e-13, atol=1e-13, signed_zeros=""),
}

PADDINGS = (
    ((1, 2, 0), (0, 0, 0)),
    ((-1, 1, 0), (2, -2, 1)),
    ((0, 3, 2), (-1, -1, 0)),
    ((0, 0, 0), (0, 0, 0)),
)


def _slice(start, limit, strides):
    return {"start_indices": start, "limit_indices": limit, "strides": strides}


def _joined(shapes, dimension):
    return Case(tuple(map(N, shapes)), {"dimension": dimension})


SHAPES = {
    shape.slice_p: _one(
        ((3, 4), _slice((1, 0), (3, 4), (1, 2))),
        ((7,), _slice((1,), (6,), (3,))),
        ((3, 4), _slice((2, 2), (2, 4), (1, 1))),
        ((), _slice((), (), ())),
        ((0, 3), _slice((0, 0), (0, 2), (1, 1))),
    ),
    shape.rev_p: _one(
        ((3, 4), {"dimensions": (0,)}),
        ((3, 4), {"dimensions": (0, 1)}),
        ((), {"dimensions": ()}),
        ((2, 3, 2), {"dimensions": (1, 2)}),
        ((0, 3), {"dimensions": (1,)}),
    ),
    shape.pad_p: Domain(
        cases=(
            *(Case((N((3, 4)), N(())), {"padding_config": p}) for p in PADDINGS),
            Case((N(()), N(())), {"padding_config": ()}),
            Case((N((0,)), N(())), {"padding_config": ((1, 2, 1),)}),
            Case((N((1,)), N(())), {"padding_config": ((0, 0, 3),)}),
            Case((N((3,)), N(())), {"padding_config": ((-2, -1, 0),)}),
        ),
        kinds=NUMBERS,
        linear=((0,), (1,), (0, 1)),
    ),
    shape.concatenate_p: Domain(
        cases=(
            _joined([(3, 2), (3, 1)], 1),
            _joined([(2, 3), (1, 3)], 0),
            _joined([(0, 3), (2, 3)], 0),
            _joined([(1,), (1,)], 0),
        ),
        kinds=NUMBERS,
        linear=((0,), (1,), (0, 1)),
    ),
}

REDUCTIONS = {
    reduce.reduce_prod_p: _with_identity("iufc", rtol=1e-13),
    reduce.others_p: Domain(
        cases=tuple(
            Case((N(s),), {"axis": axis})
            for s, axis in (((5,), 0), ((4, 3), 0), ((1, 2), 0), ((3, 2, 2), 1), ((2, 12), 1), ((12, 3), 0))
        ),
        kinds="iufc",
        rtol=1e-12,
        complex_special="finite",  # the order of the factors decides whether a complex infinity becomes NaN,
        signed_zeros="f",  # and the signs of complex zeros
    ),
    reduce.reduce_max_p: _reduction(NUMBERS, Distinct),
    reduce.reduce_min_p: _reduction(NUMBERS, Distinct),
    reduce.reduce_and_p: _with_identity("b"),
    reduce.reduce_or_p: _with_identity("b"),
    reduce.argmax_p: _arg_reduction(),
    reduce.argmin_p: _arg_reduction(),
}


def _indexed(axes, mode, common, x=(4, 5), outside=0, dtype="int64", **more):
    indices = tuple(
        Indices(
            common, -x[d] - outside if mode != "promise_in_bounds" else 0, x[d] + outside, np.dtype(dtype)
        )
        for d in axes
    )
    return N(x), indices, {"axes": axes, "mode": mode, **more}


PLACES = (
    _indexed((0,), "raise", (3,)),
    _indexed((1,), "clip", (2, 3), outside=3),
    _indexed((0, 1), "wrap", (3,), outside=7),
    _indexed((1, 0), "fill", (4,), outside=2),
    _indexed((0,), "drop", (), outside=2, dtype="int32"),
    _indexed((1,), "promise_in_bounds", (3,)),
    _indexed((0,), "raise", (0,)),
    _indexed((0,), "raise", (5,), x=(1,)),
    _indexed((1,), "fill", (2,), x=(3, 0), outside=2),
    _indexed((2, 0), "raise", (2,), x=(3, 2, 4)),
)
GATHERS = (
    *tuple(Case((x, *indices), p, smooth=p["mode"] not in ("fill", "drop")) for x, indices, p in PLACES),
    Case(
        (N((4, 5)), Indices((3,), -7, 7), Indices((3,), -7, 7)),
        {"axes": (1, 0), "mode": "drop", "fill_value": 2},
    ),
    Case((N((4,)), Indices((5,), -6, 7)), {"axes": (0,), "mode": "fill", "fill_value": 1}),
    Case((N((4,)), Indices((5,), 0, 3, np.dtype(np.uint8))), {"axes": (0,), "mode": "raise"}),
)


UPDATES = Interval(0.3, 1.9)


def _scatters():
    cases = []
    for x, indices, params in PLACES:
        rest = tuple(n for d, n in enumerate(x.shape) if d not in params["axes"])
        cases.append(Case((N(x.shape), N(indices[0].shape + rest, UPDATES), *indices), params))
    return tuple(cases)


def _scatter(**options):
    return Domain(cases=_scatters(), **{"kinds": NUMBERS, **options})


INDEXING = {
    index.gather_p: Domain(cases=GATHERS, kinds=NUMBERS, linear=((0,),)),
    index.scatter_p: _scatter(linear=((0,), (1,), (0, 1))),
    index.scatter_add_p: _scatter(linear=((0,), (1,), (0, 1)), rtol=1e-13),
    scatter_folds.scatter_mul_p: _scatter(linear=((0,),), rtol=1e-13, signed_zeros="f"),
    scatter_folds.scatter_div_p: _scatter(kinds="fc", linear=((0,),), rtol=1e-13, signed_zeros="f"),
    repeated.others_at_p: Domain(
        cases=tuple(
            Case((N((n, *rest)), Indices((n,), 0, 3)), {"size": 3})
            for n, rest in ((6, ()), (5, (2,)), (1, (3,)), (9, (1, 2)))
        ),
        kinds="iufc",
        rtol=1e-12,
        atol=1e-300,  # products of numbers that are next to zero
    ),
    scatter_folds.scatter_min_p: _scatter(),
    scatter_folds.scatter_max_p: _scatter(),
    dynamic.dynamic_slice_p: Domain(
        cases=(
            Case((N((4, 5)), Indices((), -1, 6), Indices((), -2, 3)), {"slice_sizes": (2, 3)}),
            Case((N((4, 5)), Indices((), -1, 6), Indices((), -2, 3)), {"slice_sizes": (4, 1)}),
            Case((N((3, 2)), Indices((), 0, 2), Indices((), 0, 2)), {"slice_sizes": (3, 2)}),
            Case((N((3,)), Indices((), 0, 2, np.dtype(np.uint8))), {"slice_sizes": (0,)}),
            Case((N(()),), {"slice_sizes": ()}),
        ),
        kinds=NUMBERS,
        linear=((0,),),
    ),
    dynamic.dynamic_update_slice_p: Domain(
        cases=(
            Case((N((4, 5)), N((2, 3)), Indices((), -1, 6), Indices((), -2, 3))),
            Case((N((4, 3)), N((1, 3)), Indices((), -1, 6, np.dtype(np.int32)), Indices((), -2, 3))),
            Case((N((3, 2)), N((3, 2)), Indices((), 0, 2), Indices((), 0, 2))),
            Case((N((3,)), N((0,)), Indices((), 0, 2))),
            Case((N(()), N(()))),
        ),
        kinds=NUMBERS,
        linear=((0,), (1,), (0, 1)),
    ),
}

EXPRESSIONS = (  # shape of the array, index, shape of the item
    ((4, 5), (1, (0, 5, 1)), (5,)),
    ((4, 5), ((3, -1, -1), (0, 5, 2)), (4, 3)),
    ((4, 5), (None, (1, 3, 1), 4), (1, 2)),
    ((3,), (2,), ()),
    ((), (None,), (1,)),
    ((3, 0), (1, (0, 0, 1)), (0,)),
    ((4,), ((3, 0, -2), None), (2, 1)),
    ((4,), ((2, 2, 1),), (0,)),
    ((1, 2), ((0, 1, 1), (1, -1, -1)), (1, 2)),
)
ITEMS = {
    item.getitem_p: _one(*((x, {"index": i, "shape": y}) for x, i, y in EXPRESSIONS)),
    item.putitem_p: _one(*((y, {"index": i, "shape": x}) for x, i, y in EXPRESSIONS)),
}


def _dot(x, y, contract, batch=((), ())):
    return Case((N(x), N(y)), {"dimension_numbers": (contract, batch)})


def _solve(a, b, **options):
    params = {
        "left_side": True,
        "lower": True,
        "transpose_a": False,
        "conjugate_a": False,
        "unit_diagonal": False,
        "check": False,
    }
    return Case((Triangular(a), N(b)), {**params, **options})


ALGEBRA = {
    dot.dot_general_p: Domain(
        cases=(
            _dot((3, 4), (4, 5), ((1,), (0,))),
            _dot((4,), (4,), ((0,), (0,))),
            _dot((3, 4), (4,), ((1,), (0,))),
            _dot((4, 3), (5, 4), ((0,), (1,))),
            _dot((2, 3, 4), (2, 4, 3), ((2,), (1,)), ((0,), (0,))),
            _dot((2,), (3,), ((), ())),
            _dot((), (3,), ((), ())),
            _dot((3, 0), (0, 2), ((1,), (0,))),
            _dot((2, 3, 4), (4, 3), ((1, 2), (1, 0))),
            _dot((3, 2), (2, 3), ((), ()), ((0, 1), (1, 0))),
            _dot((0, 3), (3, 2), ((1,), (0,))),
            _dot((1, 1), (1, 1), ((1,), (0,))),
            _dot((20, 24), (24, 18), ((1,), (0,))),
        ),
        kinds=NUMBERS,
        linear=((0,), (1,)),
        rtol=1e-12,
        atol=1e-13,
        signed_zeros="",
        special=False,
    ),
    linalg.cholesky_p: Domain(
        cases=tuple(
            Case((PositiveDefinite(s),), {"on_error": e})
            for s, e in (
                ((3, 3), "raise"),
                ((2, 3, 3), "nan"),
                ((1, 1), "raise"),
                ((0, 0), "raise"),
                ((0, 2, 2), "nan"),
            )
        ),
        rtol=1e-12,
        atol=1e-13,
        special=False,
    ),
    linalg.triangular_solve_p: Domain(
        cases=(
            _solve((3, 3), (3, 2)),
            _solve((3, 3), (2, 3), left_side=False, lower=False),
            _solve((3, 3), (3, 2), transpose_a=True, conjugate_a=True),
            _solve((3, 3), (3, 2), conjugate_a=True, lower=False),
            _solve((2, 3, 3), (2, 3, 1), unit_diagonal=True, transpose_a=True),
            _solve((3, 3), (3, 2), check=True),
            _solve((2, 3, 3), (2, 2, 3), left_side=False, transpose_a=True, conjugate_a=True),
            _solve((0, 0), (0, 2)),
            _solve((2, 2), (2, 0)),
            _solve((1, 1), (1, 1)),
        ),
        linear=((1,),),
        rtol=1e-12,
        atol=1e-13,
        special=False,
    ),
}

CREATED = [
    {"dtype": np.dtype(name), "shape": s, "dimension": d}
    for name, s, d in (
        ("int64", (3,), 0),
        ("float32", (2, 3), 1),
        ("float64", (0, 2), 0),
        ("complex128", (4, 1), 0),
        ("uint8", (300,), 0),
    )
]
CREATION = {create.iota_p: Domain(cases=tuple(Case((), params) for params in CREATED), kinds="")}

DOMAINS = {**LINEAR, **SHAPES, **REDUCTIONS, **INDEXING, **ITEMS, **ALGEBRA, **CREATION}


@pytest.mark.wide(2)
@pytest.mark.parametrize("prim", DOMAINS, ids=str)
def test_rules(prim, cases_of):
    check_primitive(prim, cases_of(DOMAINS[prim]))
