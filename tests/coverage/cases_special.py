"""SciPy's special functions, and those of functrans.lax of the same kind."""

import numpy as np
import scipy.special as sp
from coverage_table import Call, Entry, I, R, Z

PARAMETER = np.array([0.7, 1.6, 2.5])
STRICT = {
    "int": "operands of functrans.lax are not promoted",
    "float32": "the parameter is double",
    "empty": "shapes",
}

SHAPES = R(3, low=0.6, high=2.5)


def _slope_in_shape(a, x):
    """By central differences of SciPy's function."""
    h = 1e-5
    return (sp.gammainc(a + h, x) - sp.gammainc(a - h, x)) / (2 * h)


def _sample_slope(a, x):
    """By central differences of the quantile."""
    h, p = 1e-5, sp.gammainc(a, x)
    return (sp.gammaincinv(a + h, p) - sp.gammaincinv(a - h, p)) / (2 * h)


TABLES = {
    "functrans.scipy.special": [
        Entry("erf erfc expit gammaln digamma entr", Call(R(2, 3)), Call(R(3, low=1.2, high=4.0))),
        Entry("logit erfinv ndtri", Call(R(2, 3))),
        Entry("i0e i1e i0 i1", Call(R(2, 3, low=-2.0, high=1.9))),
        Entry("ndtr", Call(R(2, 3, low=-2.0, high=1.9)), Call(Z(3))),
        Entry("polygamma", Call(2, R(2, 3)), skip={"float32": "SciPy computes it in double precision"}),
        Entry("xlogy xlog1py", Call(R(2, 3), R(3)), Call(Z(2, 3), Z(3))),
        Entry("betaln", Call(R(2, 3), R(3))),
        Entry("gammainc gammaincc", Call(R(3, high=2.5), R(2, 3, high=4.0))),
        Entry("gammaincinv gammainccinv", Call(R(3, high=2.5), R(2, 3, high=0.9))),
        Entry(
            "betainc betaincc betaincinv betainccinv",
            Call(R(3, high=2.5), R(3, high=2.5), R(2, 3, high=0.9)),
            order=1,
            skip={"float32": "SciPy's own are off by 100 ulp in single precision"},
        ),
        Entry("zeta", Call(1 + PARAMETER, R(2, 3)), Call(2.5, R(3, low=1.1, high=5.0))),
        Entry(
            "logsumexp",
            Call(R(2, 3)),
            Call(R(2, 3), axis=1, b=R(2, 3), keepdims=True),
            skip={"empty": "SciPy fails"},
        ),
        Entry(
            "softmax log_softmax", Call(R(2, 3)), Call(R(2, 3), axis=1), skip={"empty": "SciPy refuses them"}
        ),
    ],
    "functrans.lax": [
        Entry("erf_inv", Call(R(2, 3)), oracle=sp.erfinv, skip={"int": STRICT["int"]}),
        Entry("bessel_i0e", Call(R(2, 3)), oracle=sp.i0e, skip={"int": STRICT["int"]}),
        Entry("bessel_i1e", Call(R(2, 3)), oracle=sp.i1e, skip={"int": STRICT["int"]}),
        Entry("igamma", Call(R(3, high=2.5), R(3, high=4.0)), oracle=sp.gammainc, skip=STRICT),
        Entry("igammac", Call(R(3, high=2.5), R(3, high=4.0)), oracle=sp.gammaincc, skip=STRICT),
        Entry(
            "igamma_grad_a",
            Call(SHAPES, R(3, high=4.0)),
            oracle=_slope_in_shape,
            rtol=1e-7,
            order=1,
            skip=STRICT,
        ),
        Entry(
            "random_gamma_grad",
            Call(SHAPES, R(3, high=4.0)),
            oracle=_sample_slope,
            rtol=1e-7,
            order=1,
            skip=STRICT,
        ),
        Entry("betainc", Call(R(3, high=2.5), SHAPES, R(3)), oracle=sp.betainc, order=1, skip=STRICT),
        Entry("zeta", Call(1 + PARAMETER, R(3)), oracle=sp.zeta, skip=STRICT),
        Entry("polygamma", Call(2, R(3)), Call(1.0, R(3)), oracle=sp.polygamma, skip=STRICT),
    ],
}

#: Orders of functions without a derivative in them.
ORDERS = np.array([0.0, 1.5, 3.0])
MULTI = {
    "float32": "SciPy computes it in double precision",
    "int": "SciPy raises outside the domain: here NaN",
}
DOUBLE = {"float32": "the parameter is double"}
TABLES["functrans.scipy.special"] += [
    Entry("gamma loggamma erfcx dawsn erfi exp1 expi exprel erfcinv", Call(R(2, 3))),
    Entry("spence", Call(R(2, 3)), Call(Z(3))),
    Entry("rgamma", Call(R(2, 3, low=-3.0))),
    Entry("cosm1 exp10 log_expit wrightomega", Call(R(2, 3, low=-2.0))),
    Entry("log_ndtr", Call(R(2, 3, low=-2.0)), Call(Z(3))),
    Entry("ndtri_exp", Call(R(2, 3, low=-3.0, high=-0.1))),
    Entry("gammasgn", Call(R(2, 3, low=-3.0)), differentiable=False),
    Entry(
        "wofz", Call(Z(2, 3)), order=1, skip={"jit": "the same in the host", "int": "SciPy gives complex64"}
    ),
    Entry("beta poch binom owens_t kl_div rel_entr boxcox boxcox1p", Call(R(2, 3), R(3))),
    Entry("inv_boxcox inv_boxcox1p huber pseudo_huber", Call(R(2, 3), R(3))),
    Entry("sici shichi fresnel", Call(R(2, 3))),
    Entry("j0 j1 y0 y1 k0 k1 k0e k1e", Call(R(2, 3))),
    Entry("jv jn yv iv kv ive kve", Call(ORDERS, R(2, 3)), skip=DOUBLE),
    Entry("yn kn expn", Call(2, R(2, 3)), skip={"float32": "SciPy has a loop for integer and double only"}),
    Entry("hyp0f1", Call(1.0 + ORDERS, R(2, 3)), skip=DOUBLE),
    Entry("hyp1f1 hyperu", Call(ORDERS, 1.7, R(2, 3)), skip=DOUBLE),
    Entry("hyp2f1", Call(ORDERS, 0.5, 1.7, R(2, 3, high=0.8)), skip=DOUBLE),
    Entry(
        "sph_harm_y",
        Call(3, np.array([0, 1, -2]), R(2, 3), R(3)),
        # Before SciPy 1.15 it has another name, and another order.
        oracle=getattr(sp, "sph_harm_y", lambda n, m, theta, phi: sp.sph_harm(m, n, phi, theta)),
        skip={"float32": "the degree is double"},
    ),
    Entry("ellipk ellipe", Call(R(2, 3, low=-1.0, high=0.9))),
    Entry("multigammaln", Call(R(2, 3, low=1.2, high=4.0), 3), skip=MULTI),
    Entry("factorial", Call(R(2, 3)), skip={"float32": "SciPy computes it in double precision"}),
    Entry("comb", Call(R(2, 3, low=3.0, high=6.0), R(3, high=2.5))),
    Entry("bernoulli", Call(6), differentiable=False),
    Entry("bessel_jn", Call(R(2, 3), v=2), oracle=lambda z, v: np.stack([sp.jv(n, z) for n in range(v + 1)])),
]
TABLES["functrans.lax"] += [
    Entry(
        "mulhi",
        Call(I(3, high=9), I(3, high=9)),
        oracle=lambda x, y: x * y >> 63,
        differentiable=False,
        skip={"int": "the oracle has 64 bits", "float32": "no floats"},
    ),
]
