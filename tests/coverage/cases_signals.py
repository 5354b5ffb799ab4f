"""functrans.scipy.fft, and what research code calls for signals, grids and images."""

from coverage_table import Call, Entry, R, Z

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
}
