"""NumPy's ufuncs and other functions of single elements."""

import numpy as np
from coverage_table import Call, Entry, I, R, Z

TWO = (Call(R(2, 3), R(3)), Call(Z(2, 3), R(2, 3)))
REAL = (Call(R(2, 3), R(3)),)
SIGNED = R(2, 3, low=-1.7, high=1.8)

TABLES = {
    "functrans.numpy": [
        Entry(
            "sqrt square reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh "
            "tanh arcsinh arctanh negative positive absolute conjugate",
            Call(R(2, 3)),
            Call(Z(3)),
        ),
        Entry("arccosh", Call(R(2, 3, low=1.1, high=2.0)), Call(Z(3))),
        Entry("fabs cbrt degrees radians deg2rad rad2deg", Call(R(2, 3))),
        Entry("floor ceil trunc rint fix", Call(R(2, 3, low=-3.9, high=3.8)), differentiable=False),
        Entry("spacing", Call(R(2, 3)), differentiable=False),
        Entry("sign", Call(SIGNED), differentiable=False),
        Entry("isfinite isinf isnan", Call(R(2, 3)), Call(Z(3)), differentiable=False),
        Entry("signbit isneginf isposinf", Call(SIGNED), differentiable=False),
        Entry("iscomplex isreal", Call(R(2, 3)), Call(Z(3)), differentiable=False),
        Entry("real imag angle nan_to_num", Call(R(2, 3)), Call(Z(3))),
        Entry("add subtract multiply divide", *TWO, Call(R(2), 2.0), Call(2, R(2))),
        Entry("power", *TWO, Call(R(2, 3), 3), Call(R(2), -1), Call(2.0, R(3)), Call(I(3, low=1), 2)),
        Entry("float_power", *TWO),
        Entry("arctan2 hypot logaddexp logaddexp2 maximum minimum fmax fmin copysign", *REAL),
        Entry("fmod remainder", Call(R(2, 3, low=-5.0, high=5.0), R(3))),
        Entry("floor_divide", Call(R(2, 3, low=-5.0, high=5.0), R(3)), differentiable=False),
        Entry("divmod", Call(R(2, 3, low=-5.0, high=5.0), R(3))),
        Entry("modf", Call(R(2, 3, low=-3.9, high=3.8))),
        Entry("heaviside", Call(SIGNED, R(3)), differentiable=False),
        Entry("nextafter", *REAL),
        Entry("ldexp", Call(R(2, 3), I(3))),
        Entry("equal not_equal less less_equal greater greater_equal", *TWO, differentiable=False),
        Entry("logical_and logical_or logical_xor", *TWO, differentiable=False),
        Entry("logical_not", Call(R(2, 3)), differentiable=False),
        Entry("bitwise_and bitwise_or bitwise_xor", Call(I(2, 3), I(3)), differentiable=False),
        Entry("left_shift right_shift gcd lcm", Call(I(2, 3), I(3)), differentiable=False),
        Entry("invert", Call(I(2, 3)), differentiable=False),
        Entry("around", Call(R(2, 3, low=-3.9, high=3.8), 1), differentiable=False),
        Entry("round", Call(R(2, 3, low=-3.9, high=3.8)), differentiable=False),
        Entry("clip", Call(R(2, 3), 0.5, R(3, low=0.6)), Call(R(4), None, 0.7)),
        Entry("where", Call(np.array([True, False, True]), R(2, 3), R(3)), Call(I(3, high=2), R(3), 1.0)),
        Entry(
            "select", Call([np.array([True, False, False]), np.array([True, True, False])], [R(3), R(3)], R())
        ),
        Entry("isclose", Call(R(2, 3), R(3)), differentiable=False),
        Entry("allclose array_equal array_equiv", Call(R(2, 3), R(2, 3)), differentiable=False),
    ]
}
