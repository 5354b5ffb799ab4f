"""What functrans uses of libraries beyond their public interfaces: one file for each library, and nowhere else.

`python_names` has what it uses of the standard library.

`numba_names`, `llvmlite_names` and `numpy_names` check each thing when it is first needed (`checks`). If a release has
moved it, there is another way, or an error that names the library, its version, the thing, and versions that have it.
(`runtime.context` has the locks of Numba and llvmlite: a fork must not import anything. `lowering.llvm.c.native_call`
and `arrays.donation` check where CPython and NumPy keep the parts of objects.)
"""
