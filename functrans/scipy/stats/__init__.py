"""Probability distributions and statistics, as in `scipy.stats`.

A distribution is a namespace of functions: ``stats.norm.logpdf(x, loc, scale)``, or with fixed parameters
``stats.norm(loc, scale).logpdf(x)``. Its functions and their arguments are SciPy's. They can be differentiated in all
arguments, shape parameters included.
"""

from ...runtime.module_getattr import module_attributes as _module_attributes
from .betas import beta, f, t
from .circular import vonmises, wrapcauchy
from .counts import bernoulli, betabinom, binom, geom, nbinom, poisson
from .exponentials import (
    cauchy,
    expon,
    gumbel_l,
    gumbel_r,
    laplace,
    logistic,
    pareto,
    rayleigh,
    uniform,
    weibull_min,
)
from .gammas import chi2, gamma, gennorm, invgamma, maxwell
from .kde import gaussian_kde
from .multivariate import dirichlet, multinomial, multivariate_normal
from .normals import halfnorm, lognorm, norm, truncnorm
from .summary import kurtosis, mode, rankdata, sem, skew, zscore

__all__ = [
    "bernoulli",
    "beta",
    "betabinom",
    "binom",
    "cauchy",
    "chi2",
    "dirichlet",
    "expon",
    "f",
    "gamma",
    "gaussian_kde",
    "gennorm",
    "geom",
    "gumbel_l",
    "gumbel_r",
    "halfnorm",
    "invgamma",
    "kurtosis",
    "laplace",
    "logistic",
    "lognorm",
    "maxwell",
    "mode",
    "multinomial",
    "multivariate_normal",
    "nbinom",
    "norm",
    "pareto",
    "poisson",
    "rankdata",
    "rayleigh",
    "sem",
    "skew",
    "t",
    "truncnorm",
    "uniform",
    "vonmises",
    "weibull_min",
    "wrapcauchy",
    "zscore",
]
__getattr__, __dir__ = _module_attributes("functrans.scipy.stats", globals())
