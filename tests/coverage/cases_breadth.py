"""NaN-aware reductions, positions, edited copies, functions of functions, polynomials, windows, the standard's rest."""

import numpy as np
from coverage_table import Call, Eager, Entry, I, M, R, Z

STEPS = {"differentiable": False}
NAN = np.array([[1.0, np.nan, 3.0], [2.0, 0.5, np.nan]])
MASK = np.array([[True, False, True], [False, False, True]])
PLACES = np.array([[2, 0, 1]])
NOT_ASKED = {"numpy": "NumPy does not ask its arguments what they are"}


def written(name):
    """What NumPy's function leaves in a copy of its first argument."""

    def oracle(x, *args, inplace):
        out = np.array(x)
        getattr(np, name)(out, *args)
        return out

    return oracle


def changing(name, *args, **options):
    skip = {"numpy": "NumPy's writes, and takes no inplace=", **options.pop("skip", {})}
    return Entry(name, Call(*args, inplace=False), oracle=written(name), skip=skip, **options)


NO_AXES = {"0-d": "NumPy's error is one of its code, not of its own"}


def with_nan(name, **options):
    """The drawn array is multiplied by ones and NaN before it is reduced."""
    return Entry(name, Call(R(2, 3)), Call(R(2, 3), axis=1), Call(NAN, axis=0), **options)


def ramp(vector):
    return vector[:2] * vector[-1]


def sum_of_squares(x, axis):
    return (x * x).sum(axis, keepdims=True)


def _complex_roots(p):
    """NumPy's are real if all are."""
    found = np.roots(p)
    return found.astype(np.result_type(found, np.complex64))


TABLES = {
    "functrans.numpy": [
        *[
            with_nan(name)
            for name in ("nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd")
        ],
        *[with_nan(name, **STEPS) for name in ("nanargmax", "nanargmin")],
        # --- positions
        Entry("tril_indices triu_indices", Call(3), Call(3, 1, 4), **STEPS),
        Entry("tril_indices_from triu_indices_from", Call(R(2, 3)), **STEPS),
        Entry("diag_indices", Call(3), **STEPS),
        Entry(
            "diag_indices_from", Call(R(3, 3)), skip={"empty": "NumPy compares no axes of extent 0"}, **STEPS
        ),
        Entry("mask_indices", Call(3, np.triu), **STEPS),
        Entry("ix_", Call(I(3), I(2)), skip={"int": "are integers"}, **STEPS),
        Entry(
            "unravel_index", Call(I(2, 3, high=24), (4, 6)), Call(I(2, high=24), (4, 6), order="F"), **STEPS
        ),
        Entry("ravel_multi_index", Call((I(3, high=4), I(3, high=6)), (4, 6)), **STEPS),
        # --- edited copies
        changing("place", R(2, 3), MASK, R(2)),
        changing("put", R(2, 3), np.array([0, 4]), R(2), skip={"empty": "of no values NumPy puts none"}),
        changing("putmask", R(2, 3), MASK, R(2)),
        changing("put_along_axis", R(2, 3), np.array([[0], [2]]), R(2, 1), 1),
        changing("fill_diagonal", R(3, 3), R()),
        Entry("delete", Call(R(2, 3), [0, 2], 1), Call(R(5), 1)),
        Entry("insert", Call(R(2, 3), [0, 2], R(2, 2), 1), Call(R(5), 1, R())),
        Entry("resize", Call(R(2, 3), (3, 4))),
        Entry("trim_zeros", Eager(R(3)), Eager(np.array([0.0, 1.0, 0.0]))),
        # --- functions of functions
        Entry(
            "vectorize",
            Call(R(2, 3), R(3)),
            through=lambda vectorize, x, y: vectorize(lambda a, b: a * b + b**3)(x, y),
            skip={"numpy": "a function of a function", "empty": "NumPy wants otypes"},
        ),
        Entry("apply_along_axis", Call(ramp, 1, R(2, 3))),
        Entry("apply_over_axes", Call(sum_of_squares, R(2, 3), (0, 1))),
        Entry("piecewise", Call(R(2, 3), [MASK, ~MASK], [np.sin, np.exp])),
        Entry("choose", Call(np.array([1, 0, 1]), [R(3), R(3)]), Call(I(3, high=2), [R(3), R()])),
        Entry("fromfunction", Call(lambda i, j: i + 2 * j, (2, 3)), **STEPS),
        # --- covariance, windows
        Entry("cov corrcoef", Call(R(3, 5)), Call(R(5), R(5)), rtol=1e-6),
        Entry("sinc i0", Call(R(2, 3))),
        Entry("bartlett blackman hamming hanning", Call(5), **STEPS),
        Entry("kaiser", Call(5, R(low=3.0, high=4.0)), skip=NOT_ASKED),
        # --- polynomials
        Entry("polyadd polysub polymul", Call(R(3), R(2))),
        Entry("polydiv", Call(R(4), R(2)), skip={"empty": "NumPy fails with another error"}),
        Entry("polyval", Call(R(3), R(2, 2)), skip=NO_AXES),
        Entry("polyder polyint", Call(R(4)), Call(R(4), 2), skip=NO_AXES),
        Entry("poly", Call(R(3)), Eager(M(3, 3)), order=1, skip=NO_AXES),
        Entry("roots", Eager(Z(4)), Eager(Z(3)), oracle=_complex_roots, order=1, rtol=1e-8, skip=NO_AXES),
        Entry("vander", Call(R(3)), Call(R(3), 2, increasing=True)),
        Entry("polyfit", Call(R(5), R(5), 2), Call(R(4), R(4, 2), 1), rtol=1e-6, order=1),
        # --- bits, blocks
        Entry("packbits", Call(I(3, 5)), Call(I(3, 5), axis=1), **STEPS),
        Entry("unpackbits", Call(np.array([[3, 200]], np.uint8)), **STEPS),
        Entry("bitwise_count", Call(I(2, 3, low=-9, high=99)), **STEPS),
        Entry("frexp", Call(R(2, 3)), Call(R(3, low=5.0, high=99.0))),
        Entry("block", Call([[R(2, 2), R(2, 1)], [R(1, 3)]])),
        # --- the rest of the standard's names
        Entry("asanyarray ascontiguousarray", Call(R(2, 3)), skip=NOT_ASKED),
        Entry("common_type min_scalar_type", Call(np.ones(2, np.float32)), **STEPS),
        Entry("real_if_close", Call(R(3)), Eager(np.array([1 + 1e-17j]))),
        Entry("shares_memory may_share_memory", Call(np.ones(2), np.ones(2)), **STEPS),
        Entry(
            "array_repr array_str",
            Call(2.0),
            oracle=lambda x: 0,
            **STEPS,
            skip={"value": "text; see tests/numpy/test_standard.py", "jit": "text"},
        ),
        Entry("from_dlpack", Call(np.arange(3.0)), **STEPS),
        Entry("frombuffer", Call(b"12345678"), **STEPS),
        Entry("fromiter", Call([1.0, 2.0], float), **STEPS),
        Entry("fromstring", Call("1 2 3", sep=" "), **STEPS),
    ]
}
