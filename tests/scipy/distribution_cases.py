"""Shape parameters of the distributions under test: valid ones, and invalid ones."""

import math

INF, NAN = math.inf, math.nan

#: The first of each is where derivatives are checked.
SHAPES = {
    "bernoulli": [(0.3,), (0.0,), (1.0,), (0.9,)],
    "betabinom": [(10, 1.3, 2.1), (4, 3.0, 5.0), (0, 1.0, 1.0), (200, 0.5, 8.0)],
    "cauchy": [()],
    "expon": [()],
    "geom": [(0.2,), (0.9,), (1.0,), (1e-4,)],
    "gumbel_l": [()],
    "gumbel_r": [()],
    "laplace": [()],
    "logistic": [()],
    "norm": [()],
    "pareto": [(1.5,), (0.2,), (12.0,)],
    "poisson": [(2.5,), (0.0,), (60.0,), (1e4,)],
    "rayleigh": [()],
    "uniform": [()],
    "vonmises": [(1.7,), (0.01,), (40.0,)],
    "weibull_min": [(1.5,), (0.4,), (1,), (9.0,)],
    "wrapcauchy": [(0.4,), (0.01,), (0.95,)],
}
#: Invalid shape parameters.
INVALID = {
    "bernoulli": [(-0.1,), (1.1,), (NAN,)],
    "betabinom": [(-1, 1.0, 1.0), (2.5, 1.0, 1.0), (3, 0.0, 1.0), (3, 1.0, NAN)],
    "geom": [(0.0,), (1.1,), (NAN,)],
    "pareto": [(0.0,), (-1.0,), (NAN,)],
    "poisson": [(-0.1,), (NAN,)],
    "vonmises": [(-0.1,), (NAN,)],
    "weibull_min": [(0.0,), (-1.0,), (NAN,)],
    "wrapcauchy": [(0.0,), (1.0,), (-0.5,), (NAN,)],
}
