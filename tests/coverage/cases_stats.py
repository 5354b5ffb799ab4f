"""The distributions and statistics of scipy.stats.

The functions of a distribution share their code: tests/scipy/test_distributions.py tests them together, so the entries
of each are slow.
"""

import numpy as np
import scipy.stats
from coverage_table import DISTRIBUTIONS, PD, Call, Entry, I, R

from functrans.scipy import stats

DOUBLE = {"float32": "SciPy computes in double precision"}
#: Arguments of continuous distributions besides those that `X` is for.
SHAPES = {
    "beta": (R(3, low=1.2, high=1.8), R(low=2.2, high=2.6)),
    "chi2": (R(3, low=2.2, high=2.8),),
    "f": (R(3, low=3.2, high=3.8), R(low=4.2, high=4.8)),
    "gamma": (R(3, low=1.2, high=1.8),),
    "gennorm": (R(3, low=1.3, high=1.8),),
    "invgamma": (R(3, low=1.2, high=1.8),),
    "lognorm": (R(3),),
    "pareto": (R(3, low=1.2, high=1.8),),
    "t": (R(3, low=3.2, high=3.8),),
    "truncnorm": (R(3, low=-2.0, high=-1.0), R(low=2.0, high=3.0)),
    "vonmises": (R(3, low=1.2, high=1.8),),
    "weibull_min": (R(3, low=1.2, high=1.8),),
    "wrapcauchy": (R(3),),
}
P = R(3, low=0.2, high=0.8)
COUNTS = {
    "bernoulli": (I(2, 3, low=1, high=2), P),
    "betabinom": (I(2, 3, low=1, high=6), 7, R(3, low=1.2, high=1.8), R(low=2.2, high=2.6)),
    "binom": (I(2, 3, low=1, high=6), 7, P),
    "geom": (I(2, 3, low=2, high=6), P),
    "nbinom": (I(2, 3, low=1, high=6), R(low=3.2, high=3.6), P),
    "poisson": (I(2, 3, low=1, high=6), R(3, low=2.2, high=3.6)),
}
OF_BETAINC = {"beta", "f", "nbinom", "t"}
SCIPY_FAILS = {"empty": "SciPy fails", "int": "SciPy has NaN for p = 1"}
LOC, SCALE = R(low=-0.2, high=-0.1), R(low=1.9, high=2.2)
OF_ARRAYS = {"multivariate_normal", "dirichlet", "multinomial"}


def entries(name):
    """An entry for each kind of function of a distribution."""
    functions = getattr(stats, name).__all__
    q, x = (
        R(2, 3, low=0.1, high=0.9),
        R(2, 3, low=1.1 + LOC_SHIFT.get(name, 0.0), high=1.7 + LOC_SHIFT.get(name, 0.0)),
    )
    discrete = name in COUNTS
    first, *shapes = COUNTS.get(name, (x, *SHAPES.get(name, ())))
    places = (1,) if discrete else (LOC, SCALE)
    for function in functions:
        of_q = function in ("ppf", "isf")
        arguments = () if function == "entropy" else (q,) if of_q else (first,)
        of_betainc = name in OF_BETAINC and "pdf" not in function and "pmf" not in function
        yield Entry(
            function,
            Call(*arguments, *shapes, *places),
            differentiable=not (discrete and of_q),
            order=1 if of_betainc else 2,  # betainc has no second derivative in its parameters
            slow=True,
            skip={**DOUBLE, **(SCIPY_FAILS if discrete and function == "entropy" else {})},
            rtol=1e-10,
        )


COUNT = np.array([1, 2, 3])
ONE_SHAPE = {"0-d": "shapes", "empty": "shapes", "int": "not probabilities", **DOUBLE}


def log_multinomial(x, n, p):
    """SciPy's, which replaces the last probability by what is missing to 1, with the given one."""
    rest = 0.1 * p[:-1]
    value = scipy.stats.multinomial.logpmf(x, n, [*rest, 1 - rest.sum()])
    return value + x[:-1].sum() * np.log(10) + x[-1] * np.log(p[-1] / (1 - rest.sum()))


def multinomial(x, n, p):
    return np.exp(log_multinomial(x, n, p))


#: Where the densities are smooth, and within the support.
LOC_SHIFT = {"pareto": 1.5, "beta": -0.7, "uniform": -0.7}

TABLES = {
    "functrans.scipy.stats": [
        Entry(
            "rankdata",
            Call(R(2, 3)),
            Call(I(3, 4), "min", axis=1),
            differentiable=False,
            needs=dict.fromkeys(("value", "float32"), ("scipy<1.18", "other dtypes")),
        ),
        Entry("mode", Call(R(2, 3)), Call(I(3, 4), axis=1), skip={"empty": "SciPy counts 0.0, not 0"}),
        Entry(
            "sem",
            Call(R(4, 3)),
            Call(R(2, 3), axis=None, ddof=0),
            needs={"float32": ("scipy>=1.14", "float64")},
        ),
        Entry(
            "skew kurtosis",
            Call(R(4, 3)),
            Call(R(2, 5), axis=1, bias=False),
            needs={"float32": ("scipy!=1.14.*,!=1.15.*", "the skewness is a float64")},
        ),
        Entry("zscore", Call(R(4, 3)), Call(R(2, 3), axis=1, ddof=1)),
    ],
    "functrans.scipy.stats.multivariate_normal": [
        Entry("logpdf", Call(R(4, 2), R(2), PD(2, 2)), skip=DOUBLE),
        Entry("pdf", Call(R(4, 2), R(2), PD(2, 2)), slow=True, skip=DOUBLE),
        Entry("entropy", Call(R(2), PD(2, 2)), slow=True, skip=DOUBLE | {"empty": "SciPy fails"}),
    ],
    "functrans.scipy.stats.dirichlet": [
        Entry("logpdf", Call(np.array([0.2, 0.3, 0.5]), R(3, low=1.2, high=2.5)), skip=DOUBLE),
        Entry("pdf", Call(np.array([0.2, 0.3, 0.5]), R(3, low=1.2, high=2.5)), slow=True, skip=DOUBLE),
        Entry("entropy", Call(R(3, low=1.2, high=2.5)), slow=True, skip=DOUBLE | ONE_SHAPE),
    ],
    "functrans.scipy.stats.multinomial": [
        Entry("logpmf", Call(COUNT, 6, R(3)), oracle=log_multinomial, skip=ONE_SHAPE),
        Entry("pmf", Call(COUNT, 6, R(3)), oracle=multinomial, skip=ONE_SHAPE, slow=True),
    ],
    **{
        f"functrans.scipy.stats.{name}": list(entries(name))
        for name in DISTRIBUTIONS
        if name not in OF_ARRAYS
    },
}
