"""Perceptrons, convolutions, attention, recurrent and graph networks."""

from __future__ import annotations

import itertools
import math

import numpy

from .program import Program, value_and_grad


def dense(rng, sizes, dtype=numpy.float64):
    """Weights and biases of a perceptron."""
    pairs = itertools.pairwise(sizes)
    return [((rng.normal(size=(m, n)) / math.sqrt(m)).astype(dtype), numpy.zeros(n, dtype)) for m, n in pairs]


def perceptron(layers, x, *, np):
    for weights, bias in layers[:-1]:
        x = np.tanh(x @ weights + bias)
    weights, bias = layers[-1]
    return x @ weights + bias


def log_softmax(x, np):
    shifted = x - np.max(x, axis=-1, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))


def cross_entropy(logits, onehot, np):
    return -np.mean(np.sum(onehot * log_softmax(logits, np), axis=-1))


def convolve(x, w, lax, stride=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME")


def convolution(w, x, *, np, lax):
    return np.mean(convolve(x, w, lax) ** 2)


def _images(batch, channels, size, filters):
    def data(rng):
        w = rng.normal(size=(filters, channels, 3, 3)) / math.sqrt(9 * channels)
        return w.astype(numpy.float32), rng.normal(size=(batch, channels, size, size)).astype(numpy.float32)

    return data


def cnn(parameters, x, onehot, *, np, lax):
    """Three convolutions, the last two with stride 2, a mean over the image, a linear layer."""
    *filters, (weights, bias) = parameters
    for n, w in enumerate(filters):
        x = np.maximum(convolve(x, w, lax, 1 if n == 0 else 2), 0)
    return cross_entropy(np.mean(x, axis=(2, 3)) @ weights + bias, onehot, np)


def _cnn_data(rng):
    channels = (3, 16, 32, 32)
    filters = [
        (rng.normal(size=(n, m, 3, 3)) / math.sqrt(9 * m)).astype(numpy.float32)
        for m, n in itertools.pairwise(channels)
    ]
    onehot = numpy.eye(10, dtype=numpy.float32)[rng.integers(0, 10, 16)]
    return (
        [*filters, *dense(rng, (32, 10), numpy.float32)],
        rng.normal(size=(16, 3, 32, 32)).astype(numpy.float32),
        onehot,
    )


def graph_network(parameters, nodes, senders, receivers, *, np):
    """Two rounds of messages along edges, summed at their receivers."""
    for (w, b), (u, c) in parameters:
        messages = np.tanh(nodes[senders] @ w + b)
        gathered = np.zeros_like(nodes).at[receivers].add(messages)
        nodes = np.tanh(np.concatenate([nodes, gathered], axis=1) @ u + c)
    return np.mean(nodes**2)


def _graph(rng):
    n, edges, width = 2000, 16000, 32
    rounds = [tuple(dense(rng, (width, width)) + dense(rng, (2 * width, width))) for _ in range(2)]
    return rounds, rng.normal(size=(n, width)), rng.integers(0, n, edges), rng.integers(0, n, edges)


def attention(parameters, x, *, np):
    """A transformer block: four heads, a perceptron, layer norms before each."""
    (query, key, value, out), (w1, b1), (w2, b2) = parameters

    def normalized(x):
        centred = x - np.mean(x, axis=-1, keepdims=True)
        return centred / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + 1e-5)

    def heads(w):
        return np.transpose(np.reshape(normalized(x) @ w, (*x.shape[:2], 4, x.shape[2] // 4)), (0, 2, 1, 3))

    scores = np.matmul(heads(query), np.swapaxes(heads(key), -1, -2)) / math.sqrt(x.shape[2] // 4)
    mixed = np.matmul(np.exp(log_softmax(scores, np)), heads(value))
    x = x + np.reshape(np.transpose(mixed, (0, 2, 1, 3)), x.shape) @ out
    return np.mean((x + np.tanh(normalized(x) @ w1 + b1) @ w2 + b2) ** 2)


def _sequence(rng):
    width = 64
    square = tuple(rng.normal(size=(width, width)) / 8 for _ in range(4))
    return (square, *dense(rng, (width, 4 * width)), *dense(rng, (4 * width, width))), rng.normal(
        size=(8, 48, width)
    )


def lstm(parameters, xs, *, np, lax):
    """The sum of the last state of a long short-term memory over a sequence."""
    w, u, b = parameters

    def sigmoid(x):
        return 0.5 * (np.tanh(0.5 * x) + 1)

    def step(state, x):
        h, c = state
        i, f, g, o = np.split(x @ w + h @ u + b, 4, axis=-1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return (sigmoid(o) * np.tanh(c), c), None

    zero = np.zeros((xs.shape[1], u.shape[0]))
    (h, _), _ = lax.scan(step, (zero, zero), xs)
    return np.sum(h**2)


def _recurrent(rng):
    w, u = rng.normal(size=(8, 128)) / 3, rng.normal(size=(32, 128)) / 6
    return (w, u, numpy.zeros(128)), rng.normal(size=(60, 16, 8))


def autoencoder(parameters, x, noise, *, np):
    """A variational autoencoder's loss, the noise given."""
    encoder, decoder = parameters
    code = perceptron(encoder, x, np=np)
    mean, logvar = np.split(code, 2, axis=-1)
    logits = perceptron(decoder, mean + np.exp(0.5 * logvar) * noise, np=np)
    reconstruction = np.sum(np.logaddexp(0.0, logits) - x * logits, axis=-1)
    divergence = 0.5 * np.sum(mean**2 + np.exp(logvar) - 1 - logvar, axis=-1)
    return np.mean(reconstruction + divergence)


def _pixels(rng):
    coder = dense(rng, (196, 64, 16)), dense(rng, (8, 64, 196))
    return coder, rng.uniform(size=(64, 196)), rng.normal(size=(64, 8))


def contrastive(layers, x, y, *, np):
    """InfoNCE: which row of `y` belongs to which of `x`."""

    def embedded(x):
        z = perceptron(layers, x, np=np)
        return z / np.sqrt(np.sum(z * z, axis=1, keepdims=True))

    scores = embedded(x) @ embedded(y).T / 0.1
    return -np.mean(np.diagonal(log_softmax(scores, np)))


def _pairs(rng):
    x = rng.normal(size=(128, 20))
    return dense(rng, (20, 64, 16)), x, x + 0.1 * rng.normal(size=x.shape)


def equilibrium(parameters, x, *, np, lax):
    """A deep equilibrium layer: 30 rounds of a fixed-point iteration."""
    w, u = parameters
    z = lax.fori_loop(0, 30, lambda _, z: np.tanh(z @ w + x @ u), np.zeros((x.shape[0], w.shape[0])))
    return np.mean(z**2)


def _equilibrium_data(rng):
    return (0.4 * rng.normal(size=(32, 32)) / math.sqrt(32), rng.normal(size=(8, 32))), rng.normal(
        size=(64, 8)
    )


def adam(state, gradient, *, np, api):
    """One step of Adam on a tree of parameters."""
    parameters, first, second, count = state
    count = count + 1
    tree = api.tree
    first = tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradient)

    def moved(p, m, v):
        return p - 1e-3 * (m / (1 - 0.9**count)) / (np.sqrt(v / (1 - 0.999**count)) + 1e-8)

    return tree.map(moved, parameters, first, second), first, second, count


def _leaves(count):
    def data(rng):
        tree = {f"layer{n:04}": rng.normal(size=(8 + n % 5, 4)) for n in range(count)}
        zeros = {name: numpy.zeros_like(x) for name, x in tree.items()}
        return (tree, zeros, {name: x.copy() for name, x in zeros.items()}, numpy.array(1.0)), tree

    return data


def weight_decay(tree, *, np, api):
    """The sum of squares of all arrays of a tree."""
    return sum(np.sum(x * x) for x in api.tree.leaves(tree))


NETWORKS = [
    Program(
        "convolution 64 to 64 channels, float32, gradient",
        value_and_grad(convolution),
        _images(8, 64, 16, 64),
        1e-4,
    ),
    Program(
        "convolution 3 to 16 channels, float32, gradient",
        value_and_grad(convolution),
        _images(16, 3, 32, 16),
        1e-4,
    ),
    Program("CNN, 3 layers, float32, gradient", value_and_grad(cnn), _cnn_data, 1e-3),
    Program("graph network, 16000 edges, gradient", value_and_grad(graph_network), _graph),
    Program("transformer block, gradient", value_and_grad(attention), _sequence),
    Program("LSTM, 60 steps, gradient", value_and_grad(lstm), _recurrent, rows=(1,)),
    Program("variational autoencoder, gradient", value_and_grad(autoencoder), _pixels),
    Program("contrastive loss, gradient", value_and_grad(contrastive), _pairs),
    Program("deep equilibrium, 30 rounds, gradient", value_and_grad(equilibrium), _equilibrium_data),
    Program("Adam, a tree of 150 arrays", adam, _leaves(150)),
    Program("Adam, a tree of 1000 arrays", adam, _leaves(1000)),
    Program(
        "weight decay, a tree of 3000 arrays, gradient",
        value_and_grad(weight_decay),
        lambda rng: _leaves(3000)(rng)[1:],
    ),
]
