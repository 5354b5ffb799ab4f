"""Cox's proportional hazards model: a real likelihood, fitted by Newton's method with compiled derivatives.

432 men released from prison were followed for a year. Did financial aid prevent another arrest? In Cox's model a man
with covariates x is arrested at the rate base(t) * exp(x @ beta), with an unknown base(t). Given that one of the men
who are free is arrested, the probability that it is this man depends only on beta. The product of these probabilities
is the partial likelihood. We write it below by hand; functrans derives its derivatives and kernels.

    python examples/cox_regression.py --show    the estimates, then the traced program and its kernel
"""

import argparse
import csv
import json
import sys
import timeit
from pathlib import Path

import numpy as np

import functrans as ft
import functrans.numpy as fnp

ROSSI = Path(__file__).parent / "data" / "rossi.csv"
# Coefficient and standard error as published for these data, with Efron's treatment of ties.
PUBLISHED = {"fin": (-0.379, 0.191), "age": (-0.057, 0.022), "race": (0.314, 0.308), "wexp": (-0.150, 0.212),
             "mar": (-0.434, 0.382), "paro": (-0.085, 0.196), "prio": (0.091, 0.029)}  # fmt: skip


def negative_log_likelihood(beta, covariates, arrested, weights):
    """Shapes: beta (7,), covariates (men, 7), arrested (men,) of 0 and 1, weights (arrests, men)."""
    score = covariates @ beta
    return fnp.sum(fnp.log(weights @ fnp.exp(score))) - arrested @ score


def efron_weights(week, arrested):
    """The weight of each man among those still free at each arrest: (arrests, men), men sorted by week.

    1 while he is free, 0 afterwards. The order of the d arrests of one week is unknown (Efron 1977): at the first, each
    of the d men counts 1, at the second 1 - 1/d, since one is already gone, and so on.
    """
    at = week[arrested == 1]
    gone = np.arange(len(at)) - np.searchsorted(at, at)
    among_tied = (week == at[:, None]) * arrested
    return (week >= at[:, None]) - among_tied * (gone / among_tied.sum(axis=1))[:, None]


def newton(objective, hessian, x):
    """Minimise a convex function by Newton steps, each halved until the function does not increase."""
    for _ in range(50):
        value, gradient = objective(x)
        step = np.linalg.solve(hessian(x), gradient)
        if gradient @ step < 1e-8:
            return x - step
        while not objective(x - step)[0] <= value:
            step = step / 2
        x = x - step
    return fail("no convergence in 50 steps: some covariate predicts the arrests exactly")


def fail(message):
    print(f"cox_regression: {message}", file=sys.stderr)
    raise SystemExit(2)


def read(path):
    """Covariates (centred), arrested and weights of the men in a CSV file with the columns of rossi.csv."""
    try:
        rows = list(csv.DictReader(path.read_text("utf-8-sig").splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        fail(f"cannot read {path}: {error}")
    names = ["week", "arrest", *PUBLISHED]
    if missing := [name for name in names if not rows or name not in rows[0]]:
        fail(f"{path} has no rows with the columns {', '.join(missing)}")
    table = np.empty((len(rows), len(names)))
    for i, j in np.ndindex(table.shape):
        try:
            table[i, j] = float(cell := rows[i][names[j]])
        except (TypeError, ValueError):
            fail(f"{path}, row {i + 1}, column {names[j]}: {cell!r} is not a number")
    week, arrested, covariates = np.split(table[np.argsort(table[:, 0], kind="stable")], [1, 2], axis=1)
    if not np.isfinite(table).all() or not np.isin(arrested, (0, 1)).all() or not arrested.any():
        fail(f"{path}: cells must be finite, and the column arrest must hold 0 and 1, at least one 1")
    covariates = covariates - covariates.mean(axis=0)
    if np.linalg.matrix_rank(covariates) < len(PUBLISHED):
        fail(f"{path}: a covariate is constant or a combination of others, so it has no coefficient")
    return covariates, arrested[:, 0], efron_weights(week[:, 0], arrested[:, 0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROSSI, help="a CSV file with the columns of rossi.csv")
    parser.add_argument("--json", action="store_true", help="print only the estimates, as JSON")
    parser.add_argument("--show", action="store_true", help="also print the traced program and its kernel")
    options = parser.parse_args()
    data, zero = read(options.data), np.zeros(len(PUBLISHED))
    eager = ft.value_and_grad(negative_log_likelihood)
    compiled, hessian = ft.jit(eager), ft.jit(ft.hessian(negative_log_likelihood))
    first = timeit.timeit(lambda: compiled(zero, *data), number=1)
    beta = newton(lambda b: compiled(b, *data), lambda b: hessian(b, *data), zero)
    error = np.sqrt(np.diag(np.linalg.inv(hessian(beta, *data))))
    coef, se = (dict(zip(PUBLISHED, values.tolist())) for values in (beta, error))
    if options.json:
        print(json.dumps({"coef": coef, "se": se}))
        return
    shipped = options.data == ROSSI
    print(f"{'computed':>20}" + f"{'published':>21}" * shipped)
    for name, known in PUBLISHED.items():
        print(f"{name:6}{coef[name]:12.6f}  ({se[name]:.6f})" + "{:10.3f}  ({:.3f})".format(*known) * shipped)
    numpy = np.median(timeit.repeat(lambda: eager(beta, *data), number=1, repeat=50))
    later = np.median(timeit.repeat(lambda: compiled(beta, *data), number=1, repeat=500))
    print(f"\nvalue and gradient by NumPy {1e3 * numpy:.3f} ms, first compiled call {1e3 * first:.0f} ms,")
    print(f"later calls {1e3 * later:.3f} ms; {compiled.cache_info()}")
    if options.show:
        lowered = compiled.lower(beta, *data)
        print("", lowered.jaxpr, lowered.as_text("python"), sep="\n")


if __name__ == "__main__":
    main()
