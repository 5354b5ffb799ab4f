"""Write the pictures of programs in the manual, with `functrans.ir.draw`: docs/program_*.svg."""

import tempfile
from pathlib import Path

import numpy as np

import functrans as ft
import functrans.numpy as fnp
from functrans import ir, lax

HERE = Path(__file__).parents[1]


def rnn(w, xs):
    """A loop, with what may raise and a host call after it."""

    def cell(h, x):
        h = fnp.tanh(w @ h + x)
        return h, fnp.sum(h)

    h, sums = lax.scan(cell, np.zeros(3), xs)
    ft.debug.print("last {}", h)
    return fnp.linalg.solve(w, h), fnp.mean(sums)


def frequencies(x):
    """Two kernels, and a host call between them."""
    spectrum = fnp.fft.fft(fnp.exp(-x) * x)
    return fnp.sum(fnp.abs(spectrum) ** 2)


def layers(x, w, v):
    """A small network, whose forward and backward programs are drawn."""
    return fnp.exp(fnp.tanh(x @ w)) @ v


def pair(path):
    """The two programs of `layers`."""
    ft.aot.trace_pair(layers, np.ones((8, 4)), np.ones((4, 5)), np.ones(5)).draw(path)


PICTURES = {
    "program_loop.svg": lambda path: ir.draw(ir.trace(rnn, np.ones((3, 3)), np.ones((9, 3))), path),
    "program_kernels.svg": lambda path: ir.draw(ft.jit(frequencies).lower(np.ones(1000)), path),
    "program_pair.svg": pair,
}


def text_of(name):
    """The text of a picture."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        PICTURES[name](path)
        return path.read_text(encoding="utf-8")


if __name__ == "__main__":
    for name in PICTURES:
        (HERE / name).write_text(text_of(name), encoding="utf-8")
