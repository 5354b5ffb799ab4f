"""The docstring example of each elementwise function of `functrans.lax`: the arguments and the printed result.

Those of ufuncs stand in `primitives.ufunc_examples`.
"""

import re

from ..arrays.autocast_rules import ALIASES
from ..primitives.ufunc_examples import EXAMPLES as OF_UFUNCS

EXAMPLES = {
    "bessel_i0e": ("np.array([0.0, 2.0])", "Array([1.        , 0.30850832])"),
    "bessel_i1e": ("np.array([0.0, 2.0])", "Array([0.        , 0.21526929])"),
    "betainc": ("2.0, 3.0, np.array([0.25, 0.5])", "Array([0.26171875, 0.6875    ])"),
    "bitwise_not": ("np.array([0, 5])", "Array([-1, -6])"),
    "complex": ("np.array([1.0]), np.array([2.0])", "Array([1.+2.j])"),
    "digamma": ("np.array([1.0, 5.0])", "Array([-0.57721566,  1.50611767])"),
    "eq": ("np.array([1.0, 3.0]), 3.0", "Array([False,  True])"),
    "erfc": ("np.array([0.0, 6.0])", "Array([1.00000000e+00, 2.15197367e-17])"),
    "ge": ("np.array([3.0, 5.0]), 4.0", "Array([False,  True])"),
    "gt": ("np.array([3.0, 5.0]), 3.0", "Array([False,  True])"),
    "igamma": ("np.array([1.0, 2.0]), np.array([1.0, 2.0])", "Array([0.63212056, 0.59399415])"),
    "igammac": ("np.array([1.0, 2.0]), np.array([1.0, 2.0])", "Array([0.36787944, 0.40600585])"),
    "imag": ("np.array([1.0 + 2.0j])", "Array([2.])"),
    "is_finite": ("np.array([1.0, np.inf])", "Array([ True, False])"),
    "le": ("np.array([1.0, 3.0]), 3.0", "Array([ True,  True])"),
    "lgamma": ("np.array([1.0, 5.0])", "Array([0.        , 3.17805383])"),
    "logistic": ("np.array([0.0, 2.0])", "Array([0.5       , 0.88079708])"),
    "lt": ("np.array([1.0, 3.0]), 3.0", "Array([ True, False])"),
    "max": ("np.array([1.0, 5.0]), 3.0", "Array([3., 5.])"),
    "min": ("np.array([1.0, 5.0]), 3.0", "Array([1., 3.])"),
    "ne": ("np.array([1.0, 3.0]), 3.0", "Array([ True, False])"),
    "random_gamma_grad": ("np.array([1.0, 2.0]), np.array([0.5, 2.0])", "Array([0.80697912, 1.08620858])"),
    "real": ("np.array([1.0 + 2.0j])", "Array([1.])"),
    "rem": ("np.array([7, -7]), 3", "Array([ 1, -1])"),
    "shift_left": ("np.array([1, 2]), 3", "Array([ 8, 16])"),
    "zeta": ("2.0, np.array([1.0, 2.0])", "Array([1.64493407, 0.64493407])"),
}


def example_of(name: str) -> tuple[str, str]:
    """The arguments, and what a Python session prints: the ufunc's, of arrays for its lists, if there is no other."""
    if name in EXAMPLES:
        return EXAMPLES[name]
    arguments, printed = OF_UFUNCS[ALIASES.get(name, name)]
    return re.sub(r"\[.*?\]", r"np.array(\g<0>)", arguments), printed
