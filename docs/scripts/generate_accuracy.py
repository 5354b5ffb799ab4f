"""Write docs/accuracy.md from the comparison in tests/accuracy: some minutes."""

import math
import re
import sys
import warnings
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parents[1] / "accuracy.md"
sys.path.insert(0, str(PAGE.parents[1] / "tests" / "accuracy"))

from functions import ENTRIES  # noqa: E402
from sweep import RUNS, measured, points_of  # noqa: E402

DTYPES = (np.float64, np.float32)
HEAD = """# Accuracy of functions and their derivatives

For those who want to know how many digits are right. Functions and all their partial derivatives, up to third order,
are compared with symbolic derivatives that mpmath evaluates with up to 900 digits. The tests repeat the comparison.

Next: [functions](coverage.md) lists which exist; [testing derivatives](testing.md) compares your own.

The points are zeros, ones, infinities, the ends of the domain, the numbers next to these, 1e30 and 1e-30 (in all
combinations for several arguments), and ordinary numbers. Each derivative is computed in forward mode, in reverse
mode and in mixed mode; eagerly, compiled, and compiled with `config.patch(strict=True)`.

The table gives the largest error, in units in the last place (ulp), of the value and of the derivatives by order.
The ulp of a derivative is that of the result, or the change in the result when an argument changes by one ulp,
whichever is larger. The same applies to values marked \\*, which NumPy or SciPy compute in two steps. Infinite
results are infinite here too, and no NaN or infinity replaces a finite number.

Derivatives of functions marked † are computed from the function's result, and their ulp is that of 1, the largest
slope. So the derivative of `tanh`, 1 - tanh(x)**2, has an absolute error of about 1e-16 instead of a small
relative error: beyond |x| = 19 (9 in float32) it is 0, as in JAX and PyTorch. Computed from the argument, every
digit would be right, but gradients of networks would store both argument and result of each layer, which doubles
the memory and takes longer (an LSTM 1.2 times, a sum of `tanh` 1.6 times). Where the tails matter, write `tanh(x)`
as `2 * expit(2 * x) - 1`:

```python
>>> import functrans as ft, functrans.numpy as fnp
>>> from functrans.scipy.special import expit
>>> float(ft.grad(fnp.tanh)(20.0)), round(1e17 * float(ft.grad(lambda x: 2 * expit(2 * x) - 1)(20.0)), 6)
(0.0, 1.699342)

```

The table leaves out points where a derivative does not exist or depends on the direction, and, in float32, higher
derivatives of functions of several arguments whose squares overflow. It also leaves out sums of terms, as in
`logsumexp` and `softmax`: their error is some ulp of the largest term.

## Derivatives at kinks

Where a function is not differentiable, functrans returns these values.

| where | derivative |
|---|---|
| `absolute(0)`, `hypot(0, 0)` | 0 |
| `sqrt(0)`, `cbrt(0)`, `arcsin(1)`, `log(0)`, where the tangent is vertical | infinite |
| `maximum`, `minimum` of equal numbers | one half for each |
| `power(0, 0)` | 0 in both arguments |
| `xlogy(0, 0)` in the second argument | 0 |
| `floor`, `sign`, `rint` and other steps | 0 |
| `logaddexp` of two equal infinities | one half for each |
| `arctan2(0, 0)` | NaN |

```python
>>> import functrans as ft, functrans.numpy as fnp
>>> from functrans.scipy.special import xlogy
>>> [float(ft.grad(f)(0.0)) for f in (fnp.absolute, fnp.sqrt, fnp.cbrt, fnp.log, fnp.floor, fnp.sign)]
[0.0, inf, inf, inf, 0.0, 0.0]
>>> both = (0, 1)
>>> [tuple(map(float, ft.grad(f, both)(0.0, 0.0))) for f in (fnp.hypot, fnp.maximum, fnp.power, fnp.arctan2)]
[(0.0, 0.0), (0.5, 0.5), (0.0, 0.0), (nan, nan)]
>>> [float(x) for x in ft.grad(xlogy, both)(0.0, 0.0)]
[-inf, 0.0]
>>> float(ft.grad(fnp.logaddexp)(float("inf"), float("inf")))
0.5

```

## Without libmvec

On Linux loops of elementary functions call glibc's libmvec, whose functions have errors of up to 4 ulp. Where it does
not exist (macOS, Windows, musl, ARM with glibc before 2.38) loops have our own code; `tanh` of float64 is ours with
libmvec, too, on processors with fused multiply-add. It was compared with extended precision on special values, random
bit patterns and numbers of ordinary size, two million per function, with and without fused multiply-add; the tests
repeat a tenth of that. The largest errors of float64, in ulp:

| function | with fma | without | function | with fma | without |
|---|---:|---:|---|---:|---:|
| `arccos` | 1.2 | 1.2 | `exp2` | 1.2 | 1.1 |
| `arccosh` | 2.5 | 2.6 | `expm1` | 2.2 | 2.3 |
| `arcsin` | 2.1 | 2.1 | `log` | 0.9 | 0.9 |
| `arcsinh` | 1.7 | 1.7 | `log10` | 1.8 | 1.8 |
| `arctan` | 2.2 | 1.9 | `log1p` | 0.8 | 0.9 |
| `arctan2` | 2.2 | 2.2 | `log2` | 1.7 | 1.7 |
| `arctanh` | 1.6 | 1.5 | `power` | 1.1 | 1.0 |
| `cbrt` | 0.8 | 1.0 | `sin` | 2.2 | 2.2 |
| `cos` | 2.2 | 2.3 | `sinh` | 2.6 | 2.4 |
| `cosh` | 1.5 | 1.5 | `tan` | 3.6 | 3.6 |
| `erf` | 3.0 | 3.0 | `tanh` | 1.5 | 1.5 |
| `exp` | 1.1 | 1.1 | | | |

In float32 all of these are computed with doubles and rounded: 0.51 ulp at most. Zeros and their signs, infinities,
NaN, denormal numbers and the cases of `power` (0, negative bases, integer exponents, overflow) give what NumPy gives.
`power`, `exp2`, `log2` and `log10` are exact where the result is an integer below 2**53 or a power of 2. `sin`, `cos`
and `tan` from 2**20 on are the C library's, for all finite numbers. So are numbers outside of loops, and those that
wait for the iteration before. `config.patch(strict=True)` uses the C library's functions for everything.

"""


def rounded(ulps):
    """Rounded up, to a readable number of digits."""
    if ulps == 0:
        return "0"
    digits = max(0, 1 - math.floor(math.log10(max(ulps, 0.1))))
    return f"{math.ceil(ulps * 10**digits) / 10**digits:g}" if ulps < 1000 else f"{ulps:.1g}"


def row(entry):
    """The line of one function."""
    points = points_of(entry)
    errors = measured(entry, points, DTYPES, RUNS)
    for dtype, part in errors.items():
        assert not part.wrong, (entry.name, dtype, part.wrong[:5])
    cells = [rounded(e) for part in errors.values() for e in part.worst]
    compared = sum(part.compared for part in errors.values())
    name = f"`{entry.name}`" + (" \\*" if entry.conditioned else "") + (" †" if entry.slope else "")
    return "| " + " | ".join([name, str(len(points)), str(compared), *cells]) + " |"


def table():
    """The largest errors of all functions."""
    orders = "1st | 2nd | 3rd"
    names = f"| function | points | comparisons | float64 value | {orders} | float32 value | {orders} |"
    lines = [names, "|---|" + "---:|" * 10]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for entry in ENTRIES:
            lines.append(row(entry))
            print(lines[-1], flush=True)
    return "\n".join(lines)


def stated():
    """The errors on the page: by function and dtype, the largest of each order."""
    statements = {}
    for line in PAGE.read_text().splitlines() if PAGE.exists() else ():
        match = re.match(r"\| `(.*?)`(?: (?:\\\*|†))* \| \d+ \| \d+ \| (.*) \|$", line)
        if match:
            numbers = [float(x) for x in match[2].split(" | ")]
            statements[match[1]] = {"float64": numbers[:4], "float32": numbers[4:]}
    return statements


if __name__ == "__main__":
    PAGE.write_text(f"{HEAD}## Errors\n\n{table()}\n")
