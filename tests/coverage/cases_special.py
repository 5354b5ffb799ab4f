"""SciPy's special functions."""

from coverage_table import Call, Entry, R

TABLES = {
    "functrans.scipy.special": [
        Entry("erf erfc expit gammaln digamma entr", Call(R(2, 3)), Call(R(3, low=1.2, high=4.0))),
        Entry("logit", Call(R(2, 3))),
        Entry("polygamma", Call(2, R(2, 3)), skip={"float32": "SciPy computes it in double precision"}),
        Entry("xlogy xlog1py", Call(R(2, 3), R(3))),
        Entry(
            "logsumexp",
            Call(R(2, 3)),
            Call(R(2, 3), axis=1, b=R(2, 3), keepdims=True),
            skip={"empty": "SciPy fails on it by accident"},
        ),
        Entry("softmax log_softmax", Call(R(2, 3)), Call(R(2, 3), axis=1)),
    ]
}
