"""Distribution functions and their inverses that SciPy exports.

The inverses for counts are real numbers, next to which the quantiles are looked for. Quantiles are integers, and so the
derivative is zero.
"""

from __future__ import annotations

from ...core import Primitive
from ..families import elementwise
from .from_scipy import in_double, refused


def _of_counts(name: str) -> Primitive:
    return elementwise(name, in_double(name), kernel=lambda k, *operands: k.call(name, *operands), kinds="f")


#: ``bdtrik(q, n, p)``: the binomial distribution with `n` trials of probability `p`.
bdtrik_p = _of_counts("bdtrik")
#: ``nbdtrik(q, n, p)``: the negative binomial distribution until success number `n`.
nbdtrik_p = _of_counts("nbdtrik")
#: ``pdtrik(q, mu)``: the Poisson distribution with mean `mu`.
pdtrik_p = _of_counts("pdtrik")


def _students(name: str) -> Primitive:
    # Their callers have a rule for derivatives, see functrans.scipy.stats.
    factors = (refused(f"the derivative of {name} in its parameter df"), refused(f"the derivative of {name}"))
    return elementwise(
        name,
        in_double(name),
        factors=factors,
        kernel=lambda k, df, x: k.call(name, df, x),
        kinds="f",
    )


#: ``stdtr(df, x)``: the distribution function of Student's t, and ``stdtrit(df, q)``, its inverse.
stdtr_p, stdtrit_p = _students("stdtr"), _students("stdtrit")
