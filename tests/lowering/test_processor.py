"""What is known of the processor."""

import pytest

from functrans.lowering import processor


class Features(dict):
    """As llvmlite returns them."""

    def flatten(self):
        return ",".join(("+" if there else "-") + name for name, there in self.items())


@pytest.fixture
def machine(monkeypatch):
    """Pretends that LLVM and the system describe another machine."""

    def pretend(name, architecture, features):
        monkeypatch.setattr(processor.llvm, "get_host_cpu_name", lambda: name)
        monkeypatch.setattr(processor.llvm, "get_host_cpu_features", lambda: Features(features))
        monkeypatch.setattr(processor.platform, "machine", lambda: architecture)
        return processor.host.__wrapped__()

    return pretend


@pytest.mark.parametrize("architecture", ["arm64", "aarch64"])
def test_arm_has_fused_multiply_add_where_no_features_are_reported(machine, architecture):
    """The architecture's base set has both: Arm ARM, A1.5 and ID_AA64PFR0_EL1."""
    m1 = machine("apple-m1", architecture, {})
    assert m1.fma
    assert m1.half
    assert m1.flags == ""
    assert m1.vector_bits == 0


def test_x86_has_what_is_reported(machine):
    haswell = machine("haswell", "x86_64", {"avx2": True, "fma": True, "f16c": True, "avx512f": False})
    assert haswell.fma
    assert haswell.half
    assert haswell.vector_bits == 0
    assert haswell.flags == "+avx2,+fma,+f16c,-avx512f"
    old = machine("nehalem", "x86_64", {"sse4.2": True, "fma": False})
    assert not old.fma
    assert not old.half


def test_features_that_numba_is_told(machine, monkeypatch):
    machine("haswell", "x86_64", {"avx2": True, "fma": True})
    monkeypatch.setenv("NUMBA_CPU_FEATURES", "+avx2,-fma,+f16c")
    monkeypatch.setenv("NUMBA_CPU_NAME", "x86-64-v4")
    told = processor.processor.__wrapped__()
    assert (told.name, told.flags) == ("x86-64-v4", "+avx2,-fma,+f16c")
    assert told.features == {"avx2", "f16c"}
    monkeypatch.delenv("NUMBA_CPU_FEATURES")
    assert processor.processor.__wrapped__() == processor.processor("x86-64-v4")
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    generic = processor.processor.__wrapped__()
    assert (generic.name, generic.flags, generic.features) == ("generic", "", frozenset())
