"""The domain entry of convolution; its tests follow from the record."""

from functrans.primitives.windows.conv import conv_p
from functrans.testing import Case, Domain, Numbers, check_primitive


def _conv(x, w, strides=None, padding=None, base=None, dilation=None):
    rank = len(x) - 3
    params = {
        "window_strides": strides or (1,) * rank,
        "padding": padding or ((0, 0),) * rank,
        "lhs_dilation": base or (1,) * rank,
        "rhs_dilation": dilation or (1,) * rank,
    }
    return Case((Numbers(x), Numbers(w)), params)


DOMAINS = {
    conv_p: Domain(
        cases=(
            _conv((2, 1, 2, 6), (1, 3, 2, 3)),
            _conv((1, 2, 1, 7), (2, 1, 1, 2), (2,), ((1, 2),)),
            _conv((1, 1, 1, 5), (1, 2, 1, 3), (1,), ((2, 1),), (2,), (2,)),
            _conv((1, 1, 2, 6), (1, 1, 2, 2), (3,), ((-1, -2),)),
            _conv((1, 1, 1, 3), (1, 1, 1, 4), (1,), ((3, 3),), (3,)),
            _conv((2, 1, 2, 4, 5), (1, 2, 2, 3, 2), (1, 2), ((1, 1), (0, 1))),
            _conv((1, 2, 1, 2, 3, 3), (2, 1, 1, 2, 1, 2)),
            _conv((2, 1, 3), (1, 2, 3)),
            _conv((1, 1, 1, 2), (1, 1, 1, 4)),
            _conv((0, 1, 1, 3), (1, 1, 1, 2)),
            _conv((1, 1, 0, 3), (1, 1, 0, 2)),
            _conv((1, 1, 1, 1), (1, 1, 1, 1)),
            _conv((1, 1, 1, 50), (1, 1, 1, 35), (1,), ((1, 30),)),  # some taps at a time
            _conv((1, 1, 1, 6, 9), (1, 1, 1, 5, 7), (1, 1), ((3, 2), (5, 6))),  # a row of taps at a time
            _conv((2, 1, 2, 40), (1, 2, 2, 35), (1,), ((1, 0),)),  # windows as rows of a matrix
            _conv((1, 1, 20, 4, 4), (1, 26, 20, 2, 3), (2, 1), ((0, 1), (1, 0))),  # windows as columns
        ),
        kinds="iufc",
        linear=((0,), (1,)),
        rtol=1e-12,
        atol=1e-12,
        signed_zeros="",
        special=False,
    )
}


def test_rules(cases_of):
    check_primitive(conv_p, cases_of(DOMAINS[conv_p]))
