"""Order, search, sets, counting, quantiles."""

import numpy as np
from coverage_table import Call, Eager, Entry, I, R, Sized, Z

STEPS = {"differentiable": False}
SORTED = np.array([0.4, 0.5, 0.7])


def _sort(operand, num_keys=1):
    order = np.lexsort(operand[num_keys - 1 :: -1])
    return tuple(np.take_along_axis(x, order, -1) for x in operand)


def _top_k(operand, k):
    order = np.argsort(-operand, axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(operand, order, -1), order.astype(np.int32)


def _bottom_k(operand, k):
    values, places = _top_k(-operand, k)
    return -values, places


TABLES = {
    "functrans.numpy": [
        Entry("sort", Call(R(3, 4)), Call(R(3, 4), axis=0), Call(R(5), axis=None), Call(Z(4))),
        Entry("argsort", Call(R(3, 4)), Call(R(3, 4), axis=0), **STEPS),
        Entry("lexsort", Call((I(6, high=2), R(6))), **STEPS),
        Entry(
            "partition",
            Call(R(4), 2),
            oracle=lambda a, k: np.sort(a),
            skip={"empty": "NumPy checks no bounds"},
        ),
        Entry(
            "argpartition",
            Call(R(4), 2),
            oracle=lambda a, k: np.argsort(a, kind="stable"),
            skip={"0-d": "has no third element", "empty": "has none either"},
            **STEPS,
        ),
        Entry("sort_complex", Call(Z(4)), Call(R(4))),
        Entry("searchsorted", Call(SORTED, R(2, 2)), Call(SORTED, R(3), side="right"), **STEPS),
        Entry("digitize", Call(R(4), SORTED), Call(R(4), SORTED[::-1], right=True), **STEPS),
        Entry(
            "nonzero",
            Eager(I(2, 3, high=2)),
            Sized(R(2, 2), size=4),
            needs={"0-d": ("numpy>=2.1", "an array of one number")},
            **STEPS,
        ),
        Entry("argwhere flatnonzero", Eager(I(2, 3, high=2)), Sized(R(2, 2), size=4), **STEPS),
        Entry(
            "extract",
            Eager(np.array([True, False, True]), R(3)),
            Sized(np.array([True, False, True]), R(3), size=2),
        ),
        Entry("compress", Call([True, False], R(2, 3), axis=0), Call([True, False, True], R(2, 3))),
        Entry("unique", Eager(R(5)), Eager(I(5, high=3), True, True, True), Sized(R(5), size=5)),
        Entry(
            "unique_values", Eager(R(5)), Sized(R(5), size=5), oracle=lambda x: np.sort(np.unique_values(x))
        ),
        Entry("unique_counts unique_inverse unique_all", Eager(R(5)), Sized(R(5), size=5)),
        Entry("isin", Call(I(2, 3), [1, 3]), Call(I(4), I(3), invert=True), **STEPS),
        Entry(
            "union1d setxor1d", Eager(R(4), np.array([0.5, 3.0])), Sized(R(4), np.array([2.0, 3.0]), size=6)
        ),
        Entry(
            "intersect1d",
            Eager(R(4), np.array([0.5, 3.0])),
            Sized(I(4, low=2, high=3), np.array([2, 3]), size=1),
        ),
        Entry("setdiff1d", Eager(R(4), np.array([0.5, 3.0])), Sized(R(4), np.array([2.0, 3.0]), size=4)),
        Entry(
            "bincount",
            Call(np.array([1, 0, 1]), weights=R(3)),
            Eager(I(5)),
            Sized(I(5), minlength=7, length=7),
            skip={"int": "weights become float64"},
        ),
        Entry("histogram", Call(R(5), [0.3, 0.5, 0.9]), Call(R(5), 3, (0.0, 1.0)), **STEPS),
        Entry("histogram_bin_edges", Call(R(5), 4), order=1),
        Entry("histogram2d", Call(R(5), R(5), [3, 2], [[0, 1], [0, 1]]), **STEPS),
        Entry("histogramdd", Call([R(5), R(5)], [3, 2], [[0, 1], [0, 1]]), **STEPS),
        Entry("median", Call(R(3, 4)), Call(R(3, 4), axis=0), Call(R(3, 4), axis=(0, 1), keepdims=True)),
        Entry("nanmedian", Call(R(3, 4)), Call(R(3, 4), axis=1)),
        Entry("quantile nanquantile", Call(R(3, 4), 0.3), Call(R(3, 4), [0.1, 0.5], axis=0, method="hazen")),
        Entry("percentile nanpercentile", Call(R(3, 4), 30.0), Call(R(3, 4), [10, 50], axis=1)),
    ],
    "functrans.lax": [
        Entry("sort", Call((R(4), R(4))), oracle=_sort),
        Entry("sort_key_val", Call(R(4), R(4)), oracle=lambda x, y: _sort((x, y))),
        Entry("top_k", Call(R(2, 4), 2), oracle=_top_k),
        Entry("approx_max_k", Call(R(2, 4), 2), oracle=_top_k, skip={"int": "JAX takes floats alone"}),
        Entry("approx_min_k", Call(R(2, 4), 2), oracle=_bottom_k, skip={"int": "JAX takes floats alone"}),
    ],
}
