"""Complex numbers: real and imaginary parts, conjugation, and the absolute value (also of real numbers).

Cotangents of complex values follow JAX: a transpose is that of the complex-linear map, without conjugation,
and real numbers pair with the real part.
"""

from __future__ import annotations

import numpy as np

from ...core import Primitive, complex_dtype, real_dtype
from ...core.values import Value
from ..axes import broadcast_shapes
from ..families import elementwise, literal
from ..series import of_jointly_linear
from ..structure.linear import dtype_of
from .arithmetic import convert, div_p, eq_p, mul_p, neg_p, select_p
from .rounding import sign_p


def _zero_part(ct: Value) -> Value:
    return literal(0.0, ct)


real_p: Primitive = elementwise(
    "real",
    np.real,
    linear=True,
    transposes=(lambda ct, z: complex_p.bind(ct, _zero_part(ct)),),
    kernel=lambda k, z: k.call("real", z),
    kinds="c",
    out=real_dtype,
    moves_data=True,
)

imag_p: Primitive = elementwise(
    "imag",
    np.imag,
    linear=True,
    # imag(z) is the real part of -i z.
    transposes=(lambda ct, z: complex_p.bind(_zero_part(ct), neg_p.bind(ct)),),
    kernel=lambda k, z: k.call("imag", z),
    kinds="c",
    out=real_dtype,
    moves_data=True,
)

conj_p: Primitive = elementwise(
    "conj",
    np.conjugate,
    linear=True,
    transposes=(lambda ct, z: conj_p.bind(ct),),
    kernel=lambda k, z: k.call("conj", z),
    kinds="c",
    moves_data=True,
)


def _complex(x: Value, y: Value) -> Value:
    dtype = complex_dtype(np.result_type(x, y))
    out = np.empty(broadcast_shapes("complex", np.shape(x), np.shape(y)), dtype)
    out.real = x
    out.imag = y
    return out[()]


def _complex_term_x(t: Value, ans: Value, x: Value, y: Value) -> Value:
    return complex_p.bind(t, _zero_part(t))


complex_p: Primitive = elementwise(
    "complex",
    _complex,
    terms=(_complex_term_x, lambda t, ans, x, y: complex_p.bind(_zero_part(t), t)),
    transposes=(lambda ct, x, y: real_p.bind(ct), lambda ct, x, y: neg_p.bind(imag_p.bind(ct))),
    taylor=of_jointly_linear,
    kernel=lambda k, x, y: k.call("complex", x, y),
    kinds="f",
    out=complex_dtype,
    moves_data=True,
)


def _abs_term(t: Value, ans: Value, x: Value) -> Value:
    """Return ``t sign(x)``, or for complex numbers the real part of ``t conj(x) / |x|``; zero at 0."""
    dtype = dtype_of(x)
    if dtype.kind != "c":
        return mul_p.bind(t, sign_p.bind(x))
    size = convert(select_p.bind(eq_p.bind(ans, literal(0.0, ans)), literal(1.0, ans), ans), dtype)
    return real_p.bind(mul_p.bind(t, div_p.bind(conj_p.bind(x), size)))


abs_p: Primitive = elementwise(
    "abs",
    np.absolute,
    terms=(_abs_term,),
    kernel=lambda k, x: x if x.dtype.kind == "b" else k.call("abs", x),
    out=real_dtype,
)
