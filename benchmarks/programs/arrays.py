"""Searching, Fourier transforms, scattering, images, interpolation."""

from __future__ import annotations

import numpy

from .program import Program, value_and_grad


def search(edges, x, *, np):
    return np.searchsorted(edges, x)


def _edges(rng):
    return numpy.sort(rng.normal(size=10_000)), rng.normal(size=1_000_000)


def spectra(x, *, np):
    return np.abs(np.fft.rfft(x)) ** 2


def deconvolution(image, kernel, observed, *, np):
    """Squared error of an image convolved by Fourier transforms, with a smoothness penalty."""
    blurred = np.fft.irfft2(np.fft.rfft2(image) * np.fft.rfft2(kernel), s=image.shape)
    rough = np.sum((image[1:] - image[:-1]) ** 2) + np.sum((image[:, 1:] - image[:, :-1]) ** 2)
    return np.sum((blurred - observed) ** 2) + 0.1 * rough


def _images(rng):
    n = numpy.minimum(numpy.arange(128), 128 - numpy.arange(128))
    kernel = numpy.exp(-0.5 * (n[:, None] ** 2 + n**2) / 4)
    return rng.uniform(size=(128, 128)), kernel / kernel.sum(), rng.uniform(size=(128, 128))


def scatter(rows, index, *, np):
    return np.zeros((2000, rows.shape[1])).at[index].add(rows)


def total_variation(image, noisy, *, np):
    """Rudin, Osher and Fatemi's denoising objective."""
    dx, dy = image[1:, :-1] - image[:-1, :-1], image[:-1, 1:] - image[:-1, :-1]
    return np.sum(np.sqrt(dx * dx + dy * dy + 1e-6)) + 2 * np.sum((image - noisy) ** 2)


def warp(shift, image, target, *, np):
    """Registration of two images by bilinear interpolation at displaced points."""
    rows, columns = image.shape
    r = np.clip(np.arange(rows)[:, None] + shift[0], 0, rows - 1.001)
    c = np.clip(np.arange(columns)[None, :] + shift[1], 0, columns - 1.001)
    i, j = np.floor(r).astype(int), np.floor(c).astype(int)
    u, v = r - i, c - j
    moved = (1 - u) * ((1 - v) * image[i, j] + v * image[i, j + 1]) + u * (
        (1 - v) * image[i + 1, j] + v * image[i + 1, j + 1]
    )
    return np.mean((moved - target) ** 2)


def curve(knots, x, y, *, np):
    """Squared error of a piecewise linear curve."""
    return np.mean((np.interp(x, np.linspace(0.0, 1.0, knots.shape[0]), knots) - y) ** 2)


def ranks(scores, relevance, *, np):
    """A ranking loss on sorted scores."""
    order = np.argsort(-scores, axis=1)
    ordered = np.take_along_axis(relevance, order, axis=1)
    gain = ordered / np.log2(np.arange(scores.shape[1]) + 2.0)
    return -np.mean(np.sum(gain, axis=1)) + np.mean(np.sort(scores, axis=1)[:, -10:])


def clusters(centres, points, *, np):
    """A round of k-means."""
    distance = np.sum((points[:, None] - centres) ** 2, axis=-1)
    onehot = (np.argmin(distance, axis=1)[:, None] == np.arange(centres.shape[0])).astype(float)
    return (onehot.T @ points) / np.maximum(np.sum(onehot, axis=0), 1)[:, None]


ARRAYS = [
    Program("searchsorted, 1e6 in 1e4", search, _edges),
    Program("rfft, 1000 of 256", spectra, lambda rng: (rng.normal(size=(1000, 256)),)),
    Program("deconvolution by FFT, 128x128, gradient", value_and_grad(deconvolution), _images),
    Program(
        "scatter-add of 16000 rows of 32",
        scatter,
        lambda rng: (rng.normal(size=(16000, 32)), rng.integers(0, 2000, 16000)),
    ),
    Program(
        "total variation, 256x256, gradient",
        value_and_grad(total_variation),
        lambda rng: tuple(rng.uniform(size=(2, 256, 256))),
    ),
    Program(
        "image registration, 128x128, gradient",
        value_and_grad(warp),
        lambda rng: (numpy.array([1.3, -0.7]), *rng.uniform(size=(2, 128, 128))),
    ),
    Program(
        "piecewise linear fit, 20000 points, gradient",
        value_and_grad(curve),
        lambda rng: (rng.normal(size=50), *rng.uniform(size=(2, 20000))),
    ),
    Program(
        "ranking loss, 200x100, gradient",
        value_and_grad(ranks),
        lambda rng: (rng.normal(size=(200, 100)), rng.integers(0, 5, (200, 100)).astype(float)),
    ),
    Program(
        "k-means, 5000x8, 16 centres",
        clusters,
        lambda rng: (rng.normal(size=(16, 8)), rng.normal(size=(5000, 8))),
    ),
]
