"""Accelerated failure times
=========================

How covariates stretch the time until an event, for three distributions of that time.

432 men released from prison were followed for a year. The week of the next arrest is known for 114; for the others only
that it is later than the 52nd. In the model, log(week) = intercept + x @ beta + scale * W, with a distribution of W to
be chosen: Gumbel's (so that weeks have Weibull's distribution), the logistic or the normal one. An arrest adds the
logarithm of its density to the likelihood, any other man the logarithm of the probability of a later arrest. These are
`logpdf` and `logsf` in functrans.scipy.stats; functrans derives the gradient and the Hessian, and compiles them.

    python examples/survival_regression.py
"""

import argparse
import csv
import json
from contextlib import suppress
from pathlib import Path

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans.flatten_util import ravel_pytree
from functrans.scipy import stats
from functrans.scipy.optimize import minimize

ROSSI = Path(__file__).parent / "data" / "rossi.csv"
FAMILIES = {"Weibull": stats.gumbel_l, "log-logistic": stats.logistic, "log-normal": stats.norm}
# Estimates and standard errors of the Weibull model, as the library lifelines gives them for these data.
PUBLISHED = {"intercept": (3.990, 0.419), "fin": (0.272, 0.138), "age": (0.041, 0.016), "race": (-0.225, 0.220),
             "wexp": (0.107, 0.152), "mar": (0.311, 0.273), "paro": (0.059, 0.140),
             "prio": (-0.066, 0.021)}  # fmt: skip


# %%
# The likelihood, for any distribution that has `logpdf` and `logsf`.


def log_likelihood(model, family, covariates, log_week, arrested):
    """Shapes: covariates (men, 7), log_week (men,), arrested (men,) of booleans."""
    location = model["intercept"] + covariates @ model["beta"]
    scale = fnp.exp(model["log_scale"])
    density = family.logpdf(log_week, location, scale)
    later = family.logsf(log_week, location, scale)
    return fnp.sum(fnp.where(arrested, density, later))


def read(path):
    """Covariates, logarithm of the week, and who was arrested, from a file with the columns of rossi.csv."""
    rows = list(csv.DictReader(path.read_text().splitlines()))
    covariates = np.array([[float(row[name]) for name in list(PUBLISHED)[1:]] for row in rows])
    return (
        covariates,
        np.log([float(row["week"]) for row in rows]),
        np.array([row["arrest"] == "1" for row in rows]),
    )


# %%
# Newton's method in a region of trust, and errors from the Hessian.


def fit(family, data):
    """Estimates and standard errors, as trees like the model, and the logarithm of the likelihood."""
    guess = {"intercept": np.mean(data[1]), "beta": np.zeros(len(PUBLISHED) - 1), "log_scale": 0.0}
    flat, unflatten = ravel_pytree(guess)

    def objective(x):
        return -log_likelihood(unflatten(x), family, *data)

    found = minimize(objective, flat, method="trust-exact")  # Newton's steps, within a region of trust
    errors = np.sqrt(np.diag(np.linalg.inv(ft.jit(ft.hessian(objective))(found.x))))
    return unflatten(found.x), unflatten(errors), -float(found.fun)


def main():
    parser = argparse.ArgumentParser(description="Accelerated failure times")
    parser.add_argument("--json", action="store_true", help="print only the estimates, as JSON")
    data, results = read(ROSSI), {}
    options = parser.parse_args()
    for name, family in FAMILIES.items():
        model, errors, likelihood = fit(family, data)
        coefficients, spread = ([float(m["intercept"]), *m["beta"].tolist()] for m in (model, errors))
        results[name] = {
            "coef": dict(zip(PUBLISHED, coefficients)),
            "se": dict(zip(PUBLISHED, spread)),
            "scale": float(np.exp(model["log_scale"])),
            "log_likelihood": likelihood,
        }
    if options.json:
        print(json.dumps(results))
        return data, results
    print(" " * 10 + "".join(f"{name:>19}" for name in FAMILIES) + f"{'published Weibull':>19}")
    for name, known in PUBLISHED.items():
        pairs = [(r["coef"][name], r["se"][name]) for r in results.values()]
        print(f"{name:10}" + "".join("{:10.3f} ({:5.3f}) ".format(*pair) for pair in [*pairs, known]))
    for name in ("scale", "log_likelihood"):
        print(f"{name.replace('_', ' '):14}" + "".join(f"{r[name]:15.3f}    " for r in results.values()))
    longer = 100 * (np.exp(results["Weibull"]["coef"]["fin"]) - 1)
    print(f"\nFinancial aid lengthens the time until the next arrest by {longer:.0f}% (Weibull).")
    return data, results


# %%
# How many have been arrested by a week: as counted (Kaplan and Meier 1958), and by the three models.


def draw(data, results):
    import matplotlib.pyplot as plt

    x, log_week, arrested = data
    weeks, axes = np.arange(1, 53), plt.subplots()[1]
    free = [1 - np.sum(arrested & (log_week == np.log(w))) / np.sum(log_week >= np.log(w)) for w in weeks]
    axes.step(weeks, 100 - 100 * np.cumprod(free), "k", where="post", linewidth=1, label="counted")
    for (name, fitted), style in zip(results.items(), ("-", "--", ":")):
        intercept, *beta = fitted["coef"].values()
        later = FAMILIES[name].sf(np.log(weeks)[:, None], intercept + x @ np.array(beta), fitted["scale"])
        axes.plot(weeks, 100 - 100 * np.mean(later, axis=1), style, label=name)
    axes.set(xlabel="week after release", ylabel="arrested by then (%)", xlim=(0, 52), ylim=(0, None))
    axes.legend()
    plt.show()


if __name__ == "__main__":
    results = main()
    with suppress(ImportError):  # Matplotlib is optional
        draw(*results)
