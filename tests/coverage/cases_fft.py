"""functrans.numpy.fft, and functrans.lax.fft."""

import numpy as np
from coverage_table import Call, Entry, R, Z


def lax_fft(x, fft_type, fft_lengths):
    axes = tuple(range(-len(fft_lengths), 0))
    return getattr(np.fft, f"{fft_type.lower()}n")(x, fft_lengths, axes)


CONSTANT = {
    "differentiable": False,
    "skip": {"numpy": "NumPy has no dispatch for it: its arguments are numbers"},
}

TABLES = {
    "functrans.numpy.fft": [
        Entry("fft ifft", Call(R(3, 4)), Call(Z(5)), Call(R(4, 3), 6, 0, "ortho"), Call(Z(2, 5), 3)),
        Entry("rfft ihfft", Call(R(3, 4)), Call(R(5)), Call(R(4, 3), 6, 0, "ortho"), Call(R(2, 5), 3)),
        Entry("irfft hfft", Call(Z(3, 4)), Call(R(5), 9), Call(Z(4, 3), 6, 0, "ortho"), Call(Z(2, 5), 3)),
        Entry("fftn ifftn", Call(R(3, 4)), Call(Z(2, 3, 2), axes=(0, 2)), Call(R(3, 4), (2, 6), (1, 0))),
        Entry(
            "rfftn", Call(R(3, 4)), Call(R(2, 3, 3), axes=(0, 2)), Call(R(3, 4), (2, 6), (1, 0), "forward")
        ),
        Entry(
            "irfftn", Call(Z(3, 4)), Call(Z(2, 3, 2), axes=(0, 2)), Call(Z(3, 4), (2, 5), (1, 0), "forward")
        ),
        Entry("fft2 ifft2", Call(R(3, 4)), Call(Z(2, 3, 2)), Call(R(3, 4), (2, 6), (1, 0))),
        Entry("rfft2", Call(R(3, 4)), Call(R(2, 3, 3))),
        Entry("irfft2", Call(Z(3, 4)), Call(Z(2, 3, 2), (3, 3))),
        Entry("fftfreq rfftfreq", Call(5), Call(6, 0.1), **CONSTANT),
        Entry(
            "fftshift ifftshift",
            Call(R(3, 4)),
            Call(Z(5)),
            Call(R(3, 4), 1),
            skip={"0-d": "NumPy fails with an error of its own"},
        ),
    ],
    "functrans.lax": [
        Entry(
            "fft",
            Call(R(3, 4), "FFT", (4,)),
            Call(Z(3, 4), "IFFT", (3, 4)),
            Call(R(3, 5), "RFFT", (3, 5)),
            Call(Z(3, 3), "IRFFT", (5,)),
            oracle=lax_fft,
            skip={
                "int": "operands of functrans.lax are not promoted",
                "strides": "lengths are constants",
                "0-d": "lengths are constants",
                "empty": "lengths are constants",
                "numpy": "NumPy has no function of this name",
            },
        ),
    ],
}
