"""What the libraries of systems export to kernels.

`test_exports.py` looks for the names of macOS and Windows in lists that were made from these systems. Those of Linux
are in libc, libm and libmvec of glibc 2.41 for aarch64, as ``readelf --dyn-syms`` shows them. Python's functions: those
of this Python. BLAS and LAPACK: SciPy's wheels export the same names on all systems.
"""

import ctypes


def _names(text):
    return text.split()


_REAL = _names("""
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs floor fma fmax fmin
    fmod frexp hypot ldexp lgamma log log10 log1p log2 logb modf nearbyint nextafter pow remainder rint round scalbn
    sin sinh sqrt tan tanh tgamma trunc
""")
_COMPLEX = _names(
    "cacos cacosh casin casinh catan catanh ccos ccosh cexp clog cpow csin csinh csqrt ctan ctanh"
)
#: Windows has these, in float32, in C's headers only.
_NOT_ON_WINDOWS = ("frexpf", "hypotf", "ldexpf")
_C = [*_REAL, *[f"{name}f" for name in _REAL], *_COMPLEX]
_C += _names("abort calloc free malloc memcmp memcpy memmove memset realloc")
_POSIX = _names("""
    clock_gettime getpid pthread_cond_broadcast pthread_cond_init pthread_cond_signal pthread_cond_timedwait
    pthread_cond_wait pthread_create pthread_detach pthread_getspecific pthread_key_create pthread_mutex_init
    pthread_mutex_lock pthread_mutex_unlock pthread_setspecific pthread_sigmask sigfillset
""")
#: The compiler's own functions, of floating-point numbers of 16 bits and integers of 128 bits.
_COMPILER = _names("__extendhfsf2 __truncdfhf2 __truncsfhf2 __divti3 __modti3 __udivti3 __umodti3 __multi3")
_BY_SYSTEM = {
    "apple-darwin": [
        *_POSIX,
        *_COMPILER,
        "__bzero",
        "bzero",
        "__sincos_stret",
        "__sincosf_stret",
        "memset_pattern16",
    ],
    "windows-msvc": ["GetTickCount64", "__chkstk", "_fltused", "_hypotf"],
    "linux-gnu": [*_POSIX, "bcmp", "exp10", "exp10f", "sincos", "sincosf"],
}
_MVEC = _names("""
    acos acosh asin asinh atan atanh cbrt cos cosh erf erfc exp exp10 exp2 expm1 log log10 log1p log2 sin sinh tan tanh
""")
_MVEC_OF_TWO = _names("atan2 hypot pow")


def has_libmvec(triple):
    """Whether the system has glibc's vectors of mathematical functions."""
    return triple.endswith("linux-gnu")


def of(triple):
    """The names that a system exports, but for those of Python and BLAS."""
    names = {*_C, *next(more for system, more in _BY_SYSTEM.items() if triple.endswith(system))}
    if triple.endswith("windows-msvc"):
        names -= {*_NOT_ON_WINDOWS}
    if has_libmvec(triple):
        for letters, functions in (("v", _MVEC), ("vv", _MVEC_OF_TWO)):
            names |= {
                f"_ZGVnN{n}{letters}_{f}{suffix}" for n, suffix in ((2, ""), (4, "f")) for f in functions
            }
    return names


def lacks(triple, names):
    """Those of some symbols that nothing exports there."""
    from functrans.lowering import blas
    from functrans.lowering.llvm.c.pool import ROLE, RUN
    from functrans.lowering.llvm.maths import own_maths
    from functrans.lowering.llvm.symbols import WINDOWS

    exported = of(triple)

    def is_there(name):
        if name.startswith("Py"):
            return hasattr(ctypes.pythonapi, name)
        if name in (RUN, ROLE, blas.GET_THREADS, blas.SET_THREADS):
            return True
        if name.startswith(blas.C_PREFIX):
            return name.removeprefix(blas.C_PREFIX) in exported
        if name.startswith(blas.MATHS_PREFIX):
            return (
                name.removeprefix(blas.MATHS_PREFIX).split(".")[0] in own_maths.FUNCTIONS | own_maths.FORMULAS
            )
        if name.startswith(blas.PREFIX):
            return bool(blas.address(name.removeprefix(blas.PREFIX).removesuffix(blas.NOT_OWN)))
        return (WINDOWS.get(name, name) if triple.endswith("windows-msvc") else name) in exported

    return sorted(name for name in names if not is_there(name))
