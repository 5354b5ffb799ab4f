"""Bootstrap on all cores
======================

A bootstrap on all cores: a thousand fits, divided among processes, each by compiled Newton steps.

Of 432 men released from prison, 114 were arrested again within a year. How sure is a logistic regression on financial
aid, age and earlier convictions of its coefficients? The bootstrap draws as many men again, with replacement, fits, and
looks at how the coefficients scatter. A sample is a vector of counts, one a man, so all fits share one compiled step.

    python examples/bootstrap_map.py                                                  on one process
    python -m functrans.distributed.run -n 4 examples/bootstrap_map.py --samples 4000      on four
"""

import argparse
import csv
from contextlib import suppress
from pathlib import Path

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import distributed

ROSSI = Path(__file__).parent / "data" / "rossi.csv"
NAMES = ("constant", "fin", "age", "prio")


def read():
    """Covariates (men, 4), and whether each man was arrested (men,)."""
    with open(ROSSI, encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    columns = [np.ones(len(rows)), *(np.array([float(row[name]) for row in rows]) for name in NAMES[1:])]
    return np.stack(columns, axis=1), np.array([float(row["arrest"]) for row in rows])


# %%
# A fit of a sample, by Newton's method: gradient and Hessian are in one compiled step.


def negative_log_likelihood(beta, counts, covariates, arrested):
    """Each man counts `counts` times."""
    score = covariates @ beta
    return fnp.sum(counts * (fnp.logaddexp(0.0, score) - arrested * score))


@ft.jit
def newton_step(beta, counts, covariates, arrested):
    """A step, and the Hessian where it began."""
    gradient = ft.grad(negative_log_likelihood)(beta, counts, covariates, arrested)
    hessian = ft.hessian(negative_log_likelihood)(beta, counts, covariates, arrested)
    return beta - fnp.linalg.solve(hessian, gradient), hessian


def fit(counts, covariates, arrested):
    """The coefficients, and the Hessian of the last step."""
    beta = np.zeros(covariates.shape[1])
    for _ in range(8):
        beta, hessian = newton_step(beta, counts, covariates, arrested)
    return beta, hessian


# %%
# `map` divides the samples among the processes; each draws its own.


def main():
    """Fit, print the estimates with both errors; the samples, on the first process."""
    parser = argparse.ArgumentParser(description="Bootstrap on all cores")
    parser.add_argument("--samples", type=int, default=1000)
    options = parser.parse_args()
    covariates, arrested = read()
    men = len(arrested)

    def resampled(seed):  # from the seed alone: the result does not depend on the number of processes
        drawn = np.random.default_rng(seed).integers(0, men, men)
        return np.asarray(fit(np.bincount(drawn, minlength=men).astype(float), covariates, arrested)[0])

    with distributed.make_mesh(ft.process_count(), "ranks") as mesh:
        betas = np.stack(distributed.map(resampled, range(options.samples), mesh, desc="bootstrap"))
        if mesh.rank:
            return None
    beta, hessian = fit(np.ones(men), covariates, arrested)
    by_curvature = np.sqrt(np.diag(np.linalg.inv(hessian)))
    by_bootstrap = betas.std(axis=0, ddof=1)
    print(f"{'':10}{'estimate':>10}{'by curvature':>14}{'by bootstrap':>14}{'95% of samples':>20}")
    for i, name in enumerate(NAMES):
        low, high = np.quantile(betas[:, i], [0.025, 0.975])
        print(
            f"{name:10}{beta[i]:10.4f}{by_curvature[i]:14.4f}{by_bootstrap[i]:14.4f}{low:11.3f} to{high:6.3f}"
        )
    agree = np.abs(by_bootstrap / by_curvature - 1).max() < 0.25
    if not agree:
        raise SystemExit("The two errors differ by more than a quarter.")
    print("The two errors agree.")
    return betas, beta, by_curvature


# %%
# How the coefficients scatter over the samples, and the normal distributions that the curvature predicts.


def draw(betas, beta, errors):
    import matplotlib.pyplot as plt

    for i, axes in enumerate(plt.subplots(1, 3, figsize=(7.6, 2.9))[1], start=1):
        x = np.linspace(beta[i] - 4 * errors[i], beta[i] + 4 * errors[i], 200)
        axes.hist(betas[:, i], 40, density=True, histtype="stepfilled", alpha=0.5, label="bootstrap")
        axes.plot(
            x,
            np.exp(-0.5 * ((x - beta[i]) / errors[i]) ** 2) / errors[i] / np.sqrt(2 * np.pi),
            label="curvature",
        )
        axes.axvline(0.0, color="gray", linewidth=0.8)
        axes.set(
            title={"fin": "financial aid", "age": "age (per year)", "prio": "each earlier conviction"}[
                NAMES[i]
            ]
        )
        axes.set(yticks=[], xlabel="coefficient")
    axes.legend(fontsize=8)
    plt.show()


if __name__ == "__main__":
    if results := main():
        with suppress(ImportError):  # Matplotlib is optional
            draw(*results)
