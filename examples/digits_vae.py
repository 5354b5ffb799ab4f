"""A variational autoencoder
=========================

Handwritten digits on a plane: an autoencoder puts an image at a place, and draws the image of any place.

The encoder gives a normal distribution of the place z (2,) of an image, the decoder the probabilities of its pixels.
Both are trained to maximise the evidence lower bound (Kingma and Welling 2014), by gradients through a sample of z. The
bound is compared with a tighter one, by importance sampling (Burda and others 2016), and the images with those of
principal components, which are the best that two linear numbers can do.

    python examples/digits_vae.py
"""

from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import lax, nn, random
from functrans.example_libraries import optimizers, stax

DIGITS = Path(__file__).parent / "data" / "digits.csv.gz"
HELD_OUT, EPOCHS, BATCH = 360, 300, 64

init_encoder, encode = stax.serial(stax.Dense(128), stax.Tanh, stax.Dense(4))
init_decoder, decode = stax.serial(stax.Dense(128), stax.Tanh, stax.Dense(64))


def place(params, image):
    """Mean and standard deviation of z, (2,) each, for an image (64,)."""
    out = encode(params["encoder"], image)
    return out[:2], fnp.exp(out[2:])


def log_likelihood(params, z, image):
    """Of an image whose pixels, from 0 to 1, are taken as probabilities of ink."""
    logits = decode(params["decoder"], z)
    return fnp.sum(image * nn.log_sigmoid(logits) + (1.0 - image) * nn.log_sigmoid(-logits))


# %%
# Both bounds are written for one image; `vmap` extends them to many.


def elbo(params, key, image):
    """The evidence lower bound: the likelihood of a sample, less the divergence from the prior normal(0, 1)."""
    mean, spread = place(params, image)
    z = mean + spread * random.normal(key, (2,))
    divergence = 0.5 * fnp.sum(mean**2 + spread**2 - 1.0) - fnp.sum(fnp.log(spread))
    return log_likelihood(params, z, image) - divergence


def tighter_bound(params, key, image, samples=200):
    """The logarithm of a mean of importance weights."""
    mean, spread = place(params, image)
    noise = random.normal(key, (samples, 2))
    z = mean + spread * noise
    weights = 0.5 * fnp.sum(noise**2 - z**2, axis=1) + fnp.sum(fnp.log(spread))
    likelihood = ft.vmap(log_likelihood, (None, 0, None))(params, z, image)
    return nn.logsumexp(likelihood + weights) - np.log(samples)


@partial(ft.jit, static_argnums=0)
def mean_of(bound, params, key, images):
    """The mean of a bound over images (n, 64)."""
    return fnp.mean(ft.vmap(bound, (None, 0, 0))(params, random.split(key, len(images)), images))


# %%
# An epoch is a loop over batches, in a kernel.

init_adam, update, current = optimizers.adam(2e-3)


@ft.jit
def epoch(state, count, key, images):
    """The state of Adam after a pass through the images, in a new order."""
    order = random.permutation(key, len(images))[: len(images) // BATCH * BATCH].reshape(-1, BATCH)

    def step(state, batch):
        i, some = batch
        loss = lambda p: -mean_of(elbo, p, random.fold_in(key, i), images[some])
        return update(count * len(order) + i, ft.grad(loss)(current(state)), state), None

    return lax.scan(step, state, (fnp.arange(len(order)), order))[0]


def main():
    table = np.loadtxt(DIGITS, delimiter=",", dtype=np.int64)
    images, labels = table[:, :-1] / 16.0, table[:, -1]
    seen, unseen = images[:-HELD_OUT], images[-HELD_OUT:]
    keys = random.split(random.key(0), 3)
    params = {"encoder": init_encoder(keys[0], (64,))[1], "decoder": init_decoder(keys[1], (2,))[1]}
    state = init_adam(params)
    for i in range(EPOCHS):
        state = epoch(state, i, random.fold_in(keys[2], i), seen)
    params = current(state)
    lower, tight = (mean_of(bound, params, keys[2], unseen) for bound in (elbo, tighter_bound))
    print(f"bound of the log likelihood of an unseen image: {lower:.2f}; by importance sampling {tight:.2f}")
    means = np.asarray(ft.vmap(lambda x: place(params, x)[0])(unseen))
    drawn = np.asarray(nn.sigmoid(decode(params["decoder"], means)))
    centre = seen.mean(axis=0)
    axes = np.linalg.svd(seen - centre, full_matrices=False)[2][:2]
    linear = centre + (unseen - centre) @ axes.T @ axes
    errors = [np.sqrt(np.mean((x - unseen) ** 2)) for x in (drawn, linear)]
    print(
        f"error of a pixel, from two numbers an image: {errors[0]:.3f}; principal components {errors[1]:.3f}"
    )
    return params, means, labels[-HELD_OUT:]


# %%
# Left: where unseen images are put; their labels, the colours, took no part in training. Right: the images of the
# plane, at equal steps of probability under the prior.


def draw(params, means, labels):
    import matplotlib.pyplot as plt

    left, right = plt.subplots(1, 2, figsize=(7.6, 4.0), width_ratios=(1.1, 1))[1]
    for digit in range(10):
        left.plot(*means[labels == digit].T, ".", color=plt.get_cmap("tab10")(digit))
        left.text(*np.median(means[labels == digit], axis=0), str(digit), fontsize=15, weight="bold")
    left.set(xlabel="$z_1$", ylabel="$z_2$", title="unseen images")
    at = ft.scipy.stats.norm.ppf(np.linspace(0.03, 0.97, 13))
    z = np.stack(np.meshgrid(at, at[::-1]), axis=-1)
    tiles = np.asarray(nn.sigmoid(decode(params["decoder"], z))).reshape(13, 13, 8, 8)
    tiles = np.pad(tiles, [(0, 0), (0, 0), (1, 1), (1, 1)])
    right.imshow(tiles.transpose(0, 2, 1, 3).reshape(130, 130), cmap="gray_r")
    right.set(xticks=[], yticks=[], title="images of the plane")
    plt.show()


if __name__ == "__main__":
    trained = main()
    with suppress(ImportError):  # Matplotlib is optional
        draw(*trained)
