"""Probability distributions and statistics, as in `scipy.stats`.

A distribution is a namespace of functions: ``stats.norm.logpdf(x, loc, scale)``. Its functions and their arguments are
SciPy's. They can be differentiated in all arguments, shape parameters included.
"""

from ...core.module_getattr import module_attributes as _module_attributes
from .circular import vonmises, wrapcauchy
from .counts import bernoulli, betabinom, geom, poisson
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
from .kde import gaussian_kde
from .multivariate import dirichlet, multinomial, multivariate_normal
from .normals import norm
from .summary import kurtosis, mode, rankdata, sem, skew, zscore

__all__ = [
    "bernoulli",
    "betabinom",
    "cauchy",
    "dirichlet",
    "expon",
    "gaussian_kde",
    "geom",
    "gumbel_l",
    "gumbel_r",
    "kurtosis",
    "laplace",
    "logistic",
    "mode",
    "multinomial",
    "multivariate_normal",
    "norm",
    "pareto",
    "poisson",
    "rankdata",
    "rayleigh",
    "sem",
    "skew",
    "uniform",
    "vonmises",
    "weibull_min",
    "wrapcauchy",
    "zscore",
]
__getattr__, __dir__ = _module_attributes("functrans.scipy.stats", globals())
