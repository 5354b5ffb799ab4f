# ruff: noqa: F401
"""Random numbers from keys: `key`, `split`, and a function for each distribution, with JAX's names and numbers."""

from ..runtime.module_getattr import module_attributes as _module_attributes
from ..runtime.module_getattr import on_demand as _on_demand

# The order is that of the page of functions: see docs/scripts/generate_coverage.py.
# isort: off
# fmt: off
with _on_demand(globals()) as _later:
    from .keys import PRNGKey, clone, fold_in, key, key_data, key_dtype, key_impl, split, wrap_key_data
    from .uniforms import bernoulli, bits, rademacher, randint, uniform
    from .normals import (
        double_sided_maxwell, lognormal, maxwell, multivariate_normal, normal, orthogonal,
        truncated_normal,
    )
    from .inversion import (
        cauchy, exponential, geometric, gumbel, laplace, logistic, pareto, rayleigh, triangular,
        weibull_min,
    )
    from .choices import categorical, choice, permutation
    from .gammas import ball, beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, t, wald
    from .counts import binomial, multinomial, poisson
# isort: on
# fmt: on

__all__ = list(_later.homes)
__getattr__, __dir__ = _module_attributes("functrans.random", globals(), later=_later)
