"""functrans.scipy.fft, and what research code calls for signals, grids and images."""

import tempfile
from pathlib import Path

import numpy as np
import scipy.ndimage
from coverage_table import Call, Entry, I, R, Z


def map_coordinates(x, coordinates, order, mode="constant", **options):
    """SciPy's, with the modes that JAX means."""
    mode = {"constant": "grid-constant", "wrap": "grid-wrap"}.get(mode, mode)
    return scipy.ndimage.map_coordinates(x, coordinates, order=order, mode=mode, **options)


INDEX = "SciPy fails with an IndexError"


def recorded(*args, **kwargs):
    """There is none."""
    raise NotImplementedError


def always(*shape):
    """A known result, by hand."""
    return lambda *args: shape


FILES = {name: str(Path(tempfile.mkdtemp()) / f"numbers.{name}") for name in ("raw", "npy")}
np.arange(3.0).tofile(FILES["raw"])
np.save(FILES["npy"], np.arange(3))
READ = {"differentiable": False, "skip": {"numpy": "it reads a file"}}
BROADCAST = "arguments of Python's own function"

#: Of images.
IMAGES = {
    "value": "tests/image compares with values recorded from JAX",
    **dict.fromkeys(("0-d", "empty", "strides", "float32", "int"), "shapes are constants; see tests/image"),
}

TABLES = {
    "functrans.scipy.fft": [
        Entry(
            "dct",
            Call(R(3, 4)),
            Call(Z(5), 3),
            Call(R(4, 3), 1, 6, 0, "ortho"),
            Call(R(2, 5), 4, 3, norm="forward"),
            order=1,
        ),
        Entry("idct dst idst", Call(R(3, 4)), Call(R(5), 1), Call(R(3), 3, 4, norm="ortho"), order=1),
        Entry("dctn", Call(R(3, 4)), Call(Z(2, 3), 3, (4, 2)), Call(R(2, 3, 4), 1, axes=(2, 0)), order=1),
        Entry("idctn dstn idstn", Call(R(3, 4)), Call(R(2, 3, 4), 3, axes=(2, 0), norm="ortho"), order=1),
        Entry("next_fast_len", Call(13), Call(17, True), differentiable=False),
    ],
    "functrans.scipy.signal": [
        Entry(
            "fftconvolve",
            Call(R(2, 5), R(2, 3), axes=1),
            Call(Z(4), R(3), "valid"),
            Call(R(3, 4), R(2, 2), "same"),
            order=1,
            skip={
                "0-d": "axes are constants",
                "empty": "axes are constants",
                "strides": "the arguments differ",
            },
        ),
        Entry(
            "detrend",
            Call(R(7)),
            Call(Z(3, 4), 0, "constant"),
            Call(R(2, 7), bp=[2, 5]),
            order=1,
            skip={"0-d": INDEX, "empty": "SciPy fails with an error of its own"},
        ),
        Entry(
            "lfilter",
            Call(R(2), R(3), R(2, 6)),
            Call(R(3), R(1), R(5, 2), 0),
            Call(R(2), R(2), Z(4), zi=R(1)),
            order=1,
            skip={
                "0-d": INDEX,
                "empty": "SciPy reads memory that it has not written",
                "int": "SciPy refuses integers",
            },
        ),
        Entry(
            "welch",
            Call(R(11), nperseg=4),
            Call(R(2, 11), 2.0, R(5), detrend="linear", average="median", nfft=7),
            Call(Z(9), nperseg=4, noverlap=1, scaling="spectrum"),
            order=1,
            skip={"0-d": INDEX},
        ),
        Entry("periodogram", Call(R(6)), Call(R(7, 2), 3.0, "hann", 5, axis=0), order=1, skip={"0-d": INDEX}),
        Entry(
            "csd",
            Call(R(2, 11), R(2, 9), nperseg=4),
            Call(R(9), Z(9), return_onesided=False),
            order=1,
            skip={"0-d": INDEX, "strides": "the arguments differ"},
        ),
        Entry(
            "stft",
            Call(R(9), nperseg=4),
            Call(Z(11, 2), 2.0, R(4), 4, 1, 8, axis=0, padded=False),
            Call(R(9), nperseg=5, boundary="odd", detrend="constant", scaling="psd"),
            order=1,
            skip={"0-d": INDEX},
        ),
        Entry(
            "istft",
            Call(Z(3, 5)),
            Call(
                Z(5, 4),
                2.0,
                R(5),
                5,
                3,
                input_onesided=False,
                boundary=False,
                time_axis=0,
                freq_axis=1,
                nfft=8,
            ),
            order=1,
        ),
    ],
    "functrans.scipy.integrate": [
        Entry(
            "cumulative_trapezoid",
            Call(R(2, 5), R(5)),
            Call(R(4, 2), dx=0.5, axis=0),
            order=1,
            skip={
                "0-d": INDEX,
                "empty": "x and y differ",
                "strides": "x and y differ",
            },
        ),
        Entry(
            "simpson",
            Call(R(2, 5), I(5)),
            Call(R(6), R(6)),
            Call(R(4, 2), dx=0.5, axis=0),
            Call(R(2)),
            order=1,
            skip={"0-d": INDEX, "empty": "x and y differ", "strides": "x and y differ"},
        ),
    ],
    "functrans.scipy.ndimage": [
        Entry(
            "map_coordinates",
            Call(R(3, 4), R(2, 5, low=-1.7, high=3.6), 1),
            Call(R(4), R(1, 6, low=-6, high=9), 3, "mirror"),
            Call(R(3, 4), (R(5, low=-4, high=7), R(5, low=-4, high=7)), 1, "reflect"),
            Call(Z(4), R(1, 6, low=-6, high=9), 1, "wrap"),
            Call(R(3, 4), R(2, 5, low=-1.7, high=3.6), 2, "nearest", prefilter=False),
            oracle=map_coordinates,
            order=1,
            skip=dict.fromkeys(("0-d", "empty", "strides", "int"), "input and coordinates differ"),
        ),
    ],
    "functrans.scipy.cluster.vq": [
        Entry(
            "vq",
            Call(R(6, 3), R(2, 3)),
            Call(R(5), R(3)),
            skip={"0-d": INDEX, "empty": "there are no codes", "int": "SciPy counts in int64 there"},
        ),
    ],
    "functrans.image": [
        Entry("resize", Call(R(4, 6), (2, 9), "linear"), oracle=recorded, order=1, skip=IMAGES),
        Entry(
            "scale_and_translate",
            Call(R(4, 3), (5, 3), (0,), R(1, low=0.6, high=0.7), R(1, low=0.1, high=0.2), "cubic"),
            oracle=recorded,
            order=1,
            skip=IMAGES,
        ),
    ],
    "functrans.numpy": [
        Entry(
            "frompyfunc",
            Call(lambda x, y: x * y + x, 2, 1, R(2, 3), R(3)),
            through=lambda frompyfunc, f, nin, nout, *args: frompyfunc(f, nin, nout)(*args),
            oracle=lambda f, nin, nout: f,
            skip={
                "numpy": "it has no dispatch",
                **dict.fromkeys(("0-d", "empty", "strides", "int"), BROADCAST),
            },
        ),
        Entry("fromfile", Call(FILES["raw"]), **READ),
        Entry("load", Call(FILES["npy"]), **READ),
    ],
    "functrans.lax": [
        Entry(
            "broadcast_like",
            Call(R(3), np.zeros((2, 3))),
            oracle=lambda x, y: np.broadcast_to(x, np.shape(y)),
            skip=dict.fromkeys(("0-d", "empty", "strides"), "the other shape is a constant"),
        ),
        Entry(
            "conv_general_dilated_patches",
            Call(R(1, 2, 5), (2,), (1,), "VALID"),
            oracle=lambda x, *rest: np.stack([x[:, c // 2, c % 2 : c % 2 + 4] for c in range(4)], 1),
            order=1,
            skip={
                **dict.fromkeys(("0-d", "empty", "strides"), "shapes are constants"),
                "int": "moved, not computed",
            },
        ),
        Entry(
            "conv_general_dilated_local",
            Call(R(1, 1, 3), R(1, 2, 2), (1,), "VALID", (2,)),
            oracle=lambda x, w, *rest: x[..., :2] * w[:, 0] + x[..., 1:] * w[:, 1],
            order=1,
            skip=dict.fromkeys(("0-d", "empty", "strides", "int"), "shapes are constants"),
        ),
        Entry("dtype", Call(1.5), oracle=lambda x: np.dtype(float), differentiable=False),
        Entry("shape_as_value", Call((2, 3)), oracle=np.asarray, differentiable=False),
        Entry(
            "conv_shape_tuple",
            Call((1, 3, 9), (4, 3, 3), (2,), "SAME"),
            oracle=always(1, 4, 5),
            differentiable=False,
        ),
        Entry(
            "conv_general_shape_tuple",
            Call((1, 10, 3), (3, 3, 4), (2,), "VALID", ("NHC", "HIO", "NHC")),
            oracle=always(1, 4, 4),
            differentiable=False,
        ),
        Entry(
            "conv_transpose_shape_tuple",
            Call((1, 10, 3), (3, 3, 4), (2,), "SAME", ("NHC", "HIO", "NHC")),
            oracle=always(1, 20, 4),
            differentiable=False,
        ),
        Entry(
            "conv_general_permutations",
            Call(("NHC", "HIO", "NHC")),
            oracle=always((0, 2, 1), (2, 1, 0), (0, 2, 1)),
            differentiable=False,
        ),
        Entry(
            "reduce_window_shape_tuple",
            Call((10, 4), (3, 2), (2, 1), [(1, 1), (0, 0)], (2, 1), (1, 2)),
            oracle=always(10, 2),
            differentiable=False,
        ),
    ],
}
