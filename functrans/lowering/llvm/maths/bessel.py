"""The modified Bessel functions of the first kind, of orders 0 and 1, without branches.

Up to 8 their power series (DLMF 10.25.2) times ``exp(-x)``: its terms are positive, so nothing cancels. Beyond, as in
10.40.1, ``p(8 / x) / sqrt(x)`` with a polynomial that is nearly the best of degree 21, with a relative error of 7e-17:
the interpolation at Chebyshev's points of what 40 digits give.
"""

from __future__ import annotations

import math

from .expr import Expr, FunctionText
from .inline_maths import exp

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


def i0e(f: FunctionText, x: Expr) -> Expr:
    """I0(x) exp(-abs(x))."""
    return _scaled(f, f.intrinsic("fabs", x), 0)


def i1e(f: FunctionText, x: Expr) -> Expr:
    """I1(x) exp(-abs(x)), which is odd."""
    return _odd(f, _scaled(f, f.intrinsic("fabs", x), 1), x)


def i0(f: FunctionText, x: Expr) -> Expr:
    """I0(x)."""
    return _plain(f, f.intrinsic("fabs", x), 0)


def i1(f: FunctionText, x: Expr) -> Expr:
    """I1(x), which is odd."""
    return _odd(f, _plain(f, f.intrinsic("fabs", x), 1), x)


def _odd(f: FunctionText, result: Expr, x: Expr) -> Expr:
    return f.intrinsic("copysign", result, x) + 0.0  # no zero is negative, as in SciPy


def _near(f: FunctionText, y: Expr, order: int) -> Expr:
    half = y * 0.5
    series = f.polynomial(half * half, _SERIES[order])
    return series * half if order else series


def _beyond(f: FunctionText, y: Expr, order: int) -> Expr:
    return f.polynomial(_FAR / y, _BEYOND[order]) / f.intrinsic("sqrt", y)


def _scaled(f: FunctionText, y: Expr, order: int) -> Expr:
    return f.select(y <= _FAR, _near(f, y, order) * exp(f, -y), _beyond(f, y, order))


def _plain(f: FunctionText, y: Expr, order: int) -> Expr:
    return f.select(y <= _FAR, _near(f, y, order), _beyond(f, y, order) * exp(f, y))


#: The functions by their names in the kernel vocabulary.
FUNCTIONS = {"i0": i0, "i0e": i0e, "i1": i1, "i1e": i1e}
