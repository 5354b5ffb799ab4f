# ruff: noqa: F401
"""Functions of `scipy.special` for arrays and traced values.

SciPy's own ufuncs work on traced values too: ``scipy.special.erf(t)`` calls the function defined here.
"""

from ...runtime.module_getattr import module_attributes as _module_attributes
from ...runtime.module_getattr import on_demand as _on_demand

# isort: off
# fmt: off
with _on_demand(globals()) as _later:
    from .bessel import (
        bessel_jn, ellipe, ellipk, hyp0f1, hyp1f1, hyp2f1, hyperu, i0, i0e, i1, i1e, iv, ive, j0,
        j1, jn, jv, k0, k0e, k1, k1e, kn, kv, kve, sph_harm_y, y0, y1, yn, yv,
    )
    from .error_functions import (
        dawsn, erf, erfc, erfcinv, erfcx, erfi, erfinv, fresnel, log_ndtr, ndtr, ndtri, ndtri_exp,
        owens_t, wofz,
    )
    from .gammas import (
        bernoulli, beta, betainc, betaincc, betainccinv, betaincinv, betaln, binom, comb, digamma,
        factorial, gamma, gammainc, gammaincc, gammainccinv, gammaincinv, gammaln, gammasgn,
        loggamma, multigammaln, poch, polygamma, psi, rgamma, zeta,
    )
    from .integrals import (
        boxcox, boxcox1p, cosm1, entr, exp1, exp10, expi, expit, expn, exprel, huber, inv_boxcox,
        inv_boxcox1p, kl_div, log_expit, logit, pseudo_huber, rel_entr, shichi, sici, spence,
        wrightomega, xlog1py, xlogy,
    )
    from .reductions import log_softmax, logsumexp, softmax
# isort: on
# fmt: on

__all__ = list(_later.homes)
#: SciPy's names for functions that are in functrans.numpy.
_IN_NUMPY = ("cbrt", "deg2rad", "exp2", "expm1", "log1p", "logaddexp", "rad2deg", "sinc", "sign")
__getattr__, __dir__ = _module_attributes(
    "functrans.scipy.special",
    globals(),
    {name: f"Write functrans.numpy.{name}" for name in _IN_NUMPY},
    later=_later,
)
