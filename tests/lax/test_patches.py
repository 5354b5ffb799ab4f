"""Patches and local convolutions against NumPy's windows; shapes against those of results."""

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.testing import check

RNG = np.random.default_rng(0)
LAYOUTS = [None, ("NCHW", "OIHW", "CNHW"), ("NHWC", "WHIO", "NHWC")]
OPTIONS = [
    {"window_strides": (1, 2), "padding": "SAME"},
    {"window_strides": (2, 1), "padding": "VALID", "rhs_dilation": (1, 2)},
    {"window_strides": (2, 1), "padding": [(1, 2), (0, 1)], "lhs_dilation": (2, 1)},
]


@pytest.mark.parametrize("options", OPTIONS, ids=["same", "dilated", "padded"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_convolution_is_a_product_with_patches(layout, options):
    canonical = layout if layout is not None else ("NCHW", "OIHW", "NCHW")
    x = RNG.standard_normal([{"N": 2, "C": 3, "H": 7, "W": 8}[c] for c in canonical[0]])
    size = {"O": 4, "I": 3, "H": 2, "W": 3}
    w = RNG.standard_normal([size[c] for c in canonical[1]])
    window = [size[c] for c in canonical[1] if c in "HW"]
    expected = lax.conv_general_dilated(x, w, dimension_numbers=layout, **options)
    patches = lax.conv_general_dilated_patches(x, window, dimension_numbers=layout, **options)
    spatial = [canonical[1].index(c) for c in canonical[1] if c in "HW"]
    rows = w.transpose(canonical[1].index("O"), canonical[1].index("I"), *spatial).reshape(4, -1)
    place = canonical[2].index("C")
    product = np.moveaxis(np.tensordot(rows, patches, (1, place)), 0, place)
    np.testing.assert_allclose(product, expected, atol=1e-12)
    # One window for all positions is a local convolution with copies of it.
    positions = [expected.shape[canonical[2].index(c)] for c in canonical[1] if c in "HW"]
    shape = [rows.shape[0] if c == "O" else rows.shape[1] if c == "I" else None for c in canonical[1]]
    shape = [n if n is not None else positions.pop(0) for n in shape]
    order = (canonical[1].index("O"), canonical[1].index("I"))
    spread = rows[(...,) + (None,) * 2]
    spread = np.moveaxis(spread, (0, 1), order) if order != (0, 1) else spread
    strides = {k: v for k, v in options.items() if k not in ("window_strides", "padding")}
    local = lax.conv_general_dilated_local(
        x, np.broadcast_to(spread, shape).copy(), options["window_strides"], options["padding"], window,
        dimension_numbers=layout, **strides,
    )  # fmt: skip
    np.testing.assert_allclose(local, expected, atol=1e-12)


def test_derivatives():
    x, w = RNG.standard_normal((1, 2, 5)), RNG.standard_normal((2, 4, 4))
    local = lambda x, w: lax.conv_general_dilated_local(x, w, (1,), "VALID", (2,))
    check(local, x, w, order=1, laws=["jvp_is_slope", "vjp_is_adjoint"])


def test_shapes_are_those_of_results():
    layout = ("NHC", "HIO", "NHC")
    x, w = np.ones((1, 10, 3)), np.ones((3, 3, 4))
    for padding in ("SAME", "VALID", [(1, 2)]):
        for strides in ((1,), (2,)):
            args = (x.shape, w.shape, strides, padding, layout)
            out = lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=layout)
            assert lax.conv_general_shape_tuple(*args) == out.shape
    y = np.ones((4, 3, 9))
    assert lax.conv_shape_tuple(y.shape, (6, 3, 2), (2,), "SAME", 2) == (2, 6, 5)
    out = lax.reduce_window(np.ones((9, 4)), 0.0, lax.add, (3, 2), (2, 1), [(1, 1), (0, 0)])
    assert lax.reduce_window_shape_tuple((9, 4), (3, 2), (2, 1), [(1, 1), (0, 0)]) == out.shape


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lax.broadcast_like(np.ones(3), np.ones(2)), ft.errors.ShapeError, "broadcast"),
        (lambda: lax.broadcast_like(np.ones((2, 2)), np.ones(2)), ft.errors.ShapeError, "does not broadcast"),
        (lambda: lax.dtype([1.0]), ft.errors.ArgumentError, "x must be"),
        (lambda: lax.Tolerance(), ft.errors.ArgumentValueError, "positive"),
        (
            lambda: lax.conv_shape_tuple((1, 1, 3), (1, 1), (1,), "SAME"),
            ft.errors.ShapeError,
            "number of axes",
        ),
        (lambda: lax.conv_general_permutations(("NC", "OI")), ft.errors.ArgumentError, "three strings"),
        (
            lambda: lax.conv_general_dilated_local(
                np.ones((1, 1, 3)), np.ones((1, 3, 2)), (1,), "VALID", (2,)
            ),
            ft.errors.ShapeError,
            "2 channels in",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
