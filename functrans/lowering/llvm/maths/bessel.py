"""The modified Bessel functions of the first kind, of orders 0 and 1, without branches.

Up to 8 their power series (DLMF 10.25.2) times ``exp(-x)``: its terms are positive, so nothing cancels. Beyond, as in
10.40.1, ``p(8 / x) / sqrt(x)`` with a polynomial that is nearly the best of degree 21, with a relative error of 7e-17:
the interpolation at Chebyshev's points of what 40 digits give.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .expr import Expr, FunctionText
from .inline_maths import LOG2E, exp
from .powers import exp2_of_float

#: Where the series ends.
_FAR = 8.0
#: The coefficients of the series in ``(x / 2)**2``, and those of the polynomials, by order.
_SERIES = [[1 / (math.factorial(k) * math.factorial(k + order)) for k in range(25)] for order in (0, 1)]
_BEYOND = (
    (
        0.39894228040143265, 0.006233473131311347, 0.00043829107331938447, 5.706954354358577e-05, 1.091035510433332e-05,
        3.0284347007375567e-06, -2.65951555024545e-06, 3.351703343638681e-05, -0.00022715593354009317,
        0.001164758706016088, -0.004546955536125012, 0.013687353872247402, -0.03198166341186084, 0.05812456887034502,
        -0.08196007600915674, 0.08900123146552953, -0.07343427457328273, 0.045045350516519034, -0.019834539931928682,
        0.005907294782965031, -0.0010621964079249083, 8.673548749257794e-05,
    ),
    (
        0.3989422804014327, -0.01870041939385673, -0.0007304851262510486, -7.989720989592358e-05,
        -1.4031133348629739e-05, -3.646545101701912e-06, 2.5470491742934632e-06, -3.3961779947252666e-05,
        0.0002295224953389696, -0.0011750579426583261, 0.004578099464874096, -0.013748712120801363, 0.03203470313264851,
        -0.05802474270158143, 0.08148744966136964, -0.08805404686799716, 0.0722197128926868, -0.04397746847437293,
        0.019190382159646555, -0.005651412947851315, 0.0010017370726867186, -8.028547604307266e-05,
    ),
)  # fmt: skip
#: For floats: so many terms of the series, and polynomials with relative errors of 1e-9 and 2e-9 (minimax).
_TERMS_OF_FLOATS = 15
_BEYOND_OF_FLOATS = (
    (
        0.3989422809047068, 0.006233427071845498, 0.000438983946088349, 5.3216191595527814e-05, 2.0796236659667925e-05,
        -9.337781786253915e-06, 6.975285176954802e-06,
    ),
    (
        0.3989422796463027, -0.0187003613483886, -0.0007313184414834153, -7.537211624797134e-05,
        -2.5464951722048276e-05, 1.0476468298152639e-05, -7.972102525545183e-06,
    ),
)  # fmt: skip


def _of(order: int, scaled: bool, floats: bool) -> Callable[[FunctionText, Expr], Expr]:
    """I(x), times ``exp(-abs(x))`` if `scaled`; of order 1 it is odd. Of `floats`, it has their digits."""
    series = _SERIES[order][: _TERMS_OF_FLOATS if floats else None]
    beyond = (_BEYOND_OF_FLOATS if floats else _BEYOND)[order]

    def function(f: FunctionText, x: Expr) -> Expr:
        y = f.intrinsic("fabs", x)
        half = y * 0.5
        near = f.polynomial(half * half, series)
        near = near * half if order else near
        far = f.polynomial(_FAR / y, beyond) / f.intrinsic("sqrt", y)
        sign = -y if scaled else y
        e = exp2_of_float(f, sign * LOG2E) if floats else exp(f, sign)
        if floats and not scaled:
            e = f.select(y.eq(math.inf), y, e)  # of infinity the result is NaN, as in SciPy
        result = f.select(y <= _FAR, near * e, far) if scaled else f.select(y <= _FAR, near, far * e)
        # No zero is negative, as in SciPy.
        return f.intrinsic("copysign", result, x) + 0.0 if order else result

    return function


#: The functions by their names in the kernel vocabulary: of doubles, and those that have the digits of float32 only.
FUNCTIONS, OF_FLOATS = (
    {f"i{order}{'e' * scaled}": _of(order, scaled, floats) for order in (0, 1) for scaled in (False, True)}
    for floats in (False, True)
)
