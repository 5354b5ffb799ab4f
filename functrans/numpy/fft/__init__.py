"""``functrans.numpy.fft``: NumPy's discrete Fourier transforms, in all their forms, with derivatives.

Single precision stays single, as in NumPy 2. Transforms have no kernels: SciPy's functions run between kernels.

Examples
--------
>>> import functrans as ft, functrans.numpy as fnp
>>> fnp.fft.rfft([1.0, 0.0, 0.0, 0.0])
Array([1.+0.j, 1.+0.j, 1.+0.j])
>>> ft.grad(lambda x: fnp.sum(fnp.abs(fnp.fft.rfft(x)) ** 2))(fnp.asarray([1.0, 2.0, 3.0]))
Array([ 9., 12., 15.])
"""

from ...runtime.module_getattr import module_attributes as _module_attributes
from .steps import fftfreq, fftshift, ifftshift, rfftfreq
from .transforms import (
    fft,
    fft2,
    fftn,
    hfft,
    ifft,
    ifft2,
    ifftn,
    ihfft,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftn,
)

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft",
    "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

__getattr__, __dir__ = _module_attributes("functrans.numpy.fft", globals())
