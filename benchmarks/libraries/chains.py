"""Whether two chains of samples are of one distribution, where rounding has parted their paths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

#: Samples of a chain depend on their neighbours, means of batches hardly do.
BATCHES = 10
#: By chance, one pair of chains in 3,000 differs more in a column (t of 18 degrees of freedom).
LIMIT = 4.3


def columns(leaves: Sequence[Sequence[float]], draws: int) -> np.ndarray:
    """The samples as rows, from arrays whose first axis counts them."""
    return np.concatenate([np.reshape(leaf, (draws, -1)) for leaf in leaves], axis=1)


def deviation(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference of the means and of the squares of two chains, in standard errors.

    An error is estimated from means of batches, so the steps of a chain may depend on each other. Squares are of the
    distances from the mean of both chains.
    """
    centre = (ours.mean(axis=0) + theirs.mean(axis=0)) / 2
    found = [_moved(ours, theirs), _moved((ours - centre) ** 2, (theirs - centre) ** 2)]
    return float(np.max(found))


def _moved(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    means = [np.array([part.mean(axis=0) for part in np.array_split(x, BATCHES)]) for x in (a, b)]
    error = np.sqrt(sum(m.var(axis=0, ddof=1) for m in means) / BATCHES)
    return np.abs(means[0].mean(axis=0) - means[1].mean(axis=0)) / np.maximum(error, 1e-300)
