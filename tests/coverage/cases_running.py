"""Running sums, sliding windows, convolutions, slopes and interpolation."""

from collections import namedtuple

import numpy as np
from coverage_table import Call, Entry, R, Z

from functrans import lax

XP, FP = np.array([0.0, 0.35, 0.6, 1.0]), np.array([1.0, -1.0, 4.0, 2.0])
STRICT = {"int": "the accumulator is NumPy's wide one", "0-d": "functrans.lax wants an axis"}
SHAPES = dict.fromkeys(("0-d", "empty"), "an axis of a given extent")
ONE_DTYPE = {**SHAPES, "float32": "operands are not promoted", "int": "operands are not promoted"}


def running(ufunc):
    def oracle(x, axis=0, reverse=False):
        out = ufunc.accumulate(np.flip(x, axis) if reverse else x, axis)
        return np.flip(out, axis) if reverse else out

    return oracle


def correlated(x, w, strides, padding, *more, **options):
    """Products of shifted arrays, one for each tap of the window; in one spatial axis, without padding."""
    places = (x.shape[2] - w.shape[2]) // strides[0] + 1
    taps = [x[:, :, k : k + (places - 1) * strides[0] + 1 : strides[0]] for k in range(w.shape[2])]
    return sum(np.einsum("nip,oi->nop", tap, w[:, :, k]) for k, tap in enumerate(taps))


def spread_out(x, w, strides, padding):
    """The transposed convolution in the channels-last layout, ``VALID``."""
    (n, length, _), (window, _, channels), (step,) = x.shape, w.shape, strides
    out = np.zeros((n, length * step + max(window - step, 0), channels), x.dtype)
    for i in range(length):
        for k in range(window):
            out[:, i * step + window - 1 - k] += x[:, i] @ w[k]
    return out


def pooled(x, init, computation, window):
    views = np.lib.stride_tricks.sliding_window_view(x, window)
    return getattr(np, {"add": "sum", "max": "max", "mul": "prod"}[computation.__name__])(
        views, axis=(-2, -1)
    )


def folded(x, init, computation, axes):
    return computation.reduce(x, axis=axes)


Layout = namedtuple("Layout", "lhs_spec rhs_spec out_spec")
IMAGES = Call(R(2, 2, 7), R(3, 2, 3), (1,), "VALID")

TABLES = {
    "functrans.numpy": [
        Entry("cumsum cumprod", Call(R(3, 4)), Call(R(3, 4), axis=0), Call(Z(3), axis=-1)),
        Entry("nancumsum nancumprod", Call(R(3, 4)), Call(R(3, 4), axis=1)),
        Entry("convolve", Call(R(6), R(3)), Call(R(2), R(5), "same"), Call(Z(4), Z(4), "valid")),
        Entry("correlate", Call(R(6), R(3)), Call(R(2), R(5), "same"), Call(R(4), R(4), "full")),
        Entry("interp", Call(R(5), XP, FP), Call(0.5, R(4), R(4), period=3.0)),
        Entry("unwrap", Call(R(3, 4)), Call(R(5, low=-9.0, high=9.0), period=5.0)),
        Entry("gradient", Call(R(3, 4)), Call(R(5), 0.3, edge_order=2), Call(R(4), XP)),
        Entry("ediff1d", Call(R(3, 4)), Call(R(3), to_end=R(2))),
    ],
    "functrans.lax": [
        Entry("cumsum", Call(R(3, 4)), Call(R(3, 4), 1, True), oracle=running(np.add), skip=STRICT),
        Entry("cumprod", Call(R(3, 4)), Call(R(3, 4), 1, True), oracle=running(np.multiply), skip=STRICT),
        Entry("cummax", Call(R(3, 4)), Call(R(3, 4), 1, True), oracle=running(np.maximum), skip=STRICT),
        Entry("cummin", Call(R(3, 4)), Call(R(3, 4), 1, True), oracle=running(np.minimum), skip=STRICT),
        Entry("cumlogsumexp", Call(R(3, 4)), Call(R(4), 0, True), oracle=running(np.logaddexp), skip=STRICT),
        Entry("conv conv_general_dilated", IMAGES, oracle=correlated, skip=ONE_DTYPE),
        Entry(
            "conv_with_general_padding",
            Call(R(1, 2, 7), R(3, 2, 3), (2,), ((0, 0),), None, None),
            oracle=correlated,
            skip=ONE_DTYPE,
        ),
        Entry(
            "conv_transpose",
            Call(R(2, 4, 2), R(3, 2, 2), (2,), "VALID"),
            oracle=spread_out,
            skip=ONE_DTYPE,
        ),
        Entry(
            "reduce_window",
            Call(R(3, 4), -np.inf, lax.max, (2, 3)),
            Call(R(3, 4), 0.0, lax.add, (2, 2)),
            Call(R(3, 3), 1.0, lax.mul, (2, 2)),
            oracle=pooled,
            skip={**SHAPES, "int": "no integer is infinite"},
        ),
        Entry(
            "reduce",
            Call(R(3, 4), 0.0, np.add, (1,)),
            Call(R(3, 4), 1.0, np.multiply, (0, 1)),
            Call(R(5), 0.0, np.hypot, (0,)),
            oracle=folded,
            skip={"0-d": "axis 1 is asked for", "int": "the accumulator is NumPy's wide one"},
        ),
        Entry(
            "padtype_to_pads",
            Call((10, 7), (3, 2), (2, 3), "SAME"),
            oracle=lambda *args: [(0, 1), (0, 1)],
            differentiable=False,
        ),
        Entry(
            "conv_dimension_numbers",
            Call((1, 8, 8, 3), (3, 3, 3, 16), ("NHWC", "HWIO", "NHWC")),
            oracle=lambda *args: Layout((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2)),
            differentiable=False,
        ),
    ],
}
TABLES["functrans.scipy.signal"] = [
    Entry("convolve correlate", Call(R(5, 4), R(2, 3)), Call(R(6), R(3), "same"), skip=SHAPES),
    Entry("convolve2d correlate2d", Call(R(4, 3), R(2, 2)), Call(R(4, 3), R(2, 3), "valid"), skip=SHAPES),
]


def running(ufunc):
    """NumPy's `cumulative_sum` or `cumulative_prod`, for releases before 2.1."""

    def oracle(x, axis=0, include_initial=False):
        if np.ndim(x) != 1 and axis is None:
            raise ValueError("an axis is needed")
        if include_initial:
            x = np.insert(x, 0, ufunc.identity, axis)
        return ufunc.accumulate(x, axis)

    return oracle


TABLES["functrans.numpy"] += [
    Entry(
        name,
        Call(R(3, 4), axis=0),
        Call(R(4), include_initial=True),
        oracle=getattr(np, name, running(ufunc)),
    )
    for name, ufunc in (("cumulative_sum", np.add), ("cumulative_prod", np.multiply))
]
