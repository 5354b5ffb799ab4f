"""What is known of the processor."""

import pytest

from functrans.errors import ConfigError
from functrans.lowering import processor


class Features(dict):
    """As llvmlite returns them."""

    def flatten(self):
        return ",".join(("+" if there else "-") + name for name, there in self.items())


@pytest.fixture
def machine(monkeypatch):
    """Pretends that LLVM and the system describe another machine."""

    detected = processor.host.__wrapped__

    def pretend(name, architecture, features):
        monkeypatch.setattr(processor.llvm, "get_host_cpu_name", lambda: name)
        monkeypatch.setattr(processor.llvm, "get_host_cpu_features", lambda: Features(features))
        monkeypatch.setattr(processor.platform, "machine", lambda: architecture)
        monkeypatch.setattr(processor, "LEVELS", processor.levels_of(architecture))
        monkeypatch.setattr(processor, "host", detected)
        for variable in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"):
            monkeypatch.delenv(variable, raising=False)
        return processor.processor.__wrapped__()

    return pretend


@pytest.mark.parametrize("architecture", ["arm64", "aarch64"])
def test_arm_has_fused_multiply_add_where_no_features_are_reported(machine, architecture):
    """The architecture's base set has both: Arm ARM, A1.5 and ID_AA64PFR0_EL1."""
    m1 = machine("apple-m1", architecture, {})
    assert m1.fma
    assert m1.half
    assert m1.flags == ""
    assert m1.vector_bits == 0
    assert m1.features >= processor.LEVELS["apple-m1"]
    assert not processor.LEVELS["apple-m1"] <= machine("neoverse-n1", architecture, {"neon": True}).features


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


def test_each_architecture_has_its_levels(machine):
    """LLVM's own sets: ARM's from its table of architectures, x86-64's from the psABI."""
    machine("cortex-a72", "aarch64", {"neon": True, "fp-armv8": True})
    assert list(processor.LEVELS) == ["armv8.0", "armv8.2", "apple-m1"]
    graviton = processor.processor.__wrapped__("armv8.2")
    assert (graviton.name, graviton.flags) == ("generic", "+v8.2a")
    assert graviton.fma
    assert processor.processor.__wrapped__("apple-m1").name == "apple-m1"
    machine("haswell", "AMD64", {})
    assert list(processor.LEVELS) == ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"]
    assert processor.levels_of("riscv64") == {}


#: Of each architecture the instruction that adds doubles.
ADDS_DOUBLES = {"x86_64": "addsd", "aarch64": "fadd"}


@pytest.mark.parametrize("level", processor.ALL_LEVELS)
def test_llvm_knows_the_levels(level):
    """Each level compiles a sum of doubles to instructions, and no call: an unknown processor has no floating point."""
    binding = processor.llvm
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    architecture = next(a for a in ADDS_DOUBLES if level in processor.levels_of(a))
    name, flags = processor._AS_FLAGS.get(level, (level, ""))
    machine = binding.Target.from_triple(f"{architecture}-unknown-linux-gnu").create_target_machine(
        name, flags, opt=3
    )
    text = "define double @f(double %x) { %y = fadd double %x, %x ret double %y }"
    assembly = machine.emit_assembly(binding.parse_assembly(text))
    assert ADDS_DOUBLES[architecture] in assembly
    assert "__adddf3" not in assembly


def test_a_foreign_processor_is_refused_by_name(machine, monkeypatch):
    machine("haswell", processor.platform.machine(), {"avx2": True, "fma": True})
    foreign = "apple-m1" if "x86-64" in processor.LEVELS else "x86-64-v3"
    for name in (foreign, "pentium-17"):
        monkeypatch.setenv("NUMBA_CPU_NAME", name)
        with pytest.raises(ConfigError, match=f"NUMBA_CPU_NAME.*{name}.*{next(iter(processor.LEVELS))}"):
            processor.processor.__wrapped__()
    monkeypatch.setenv("NUMBA_CPU_NAME", "skylake" if "x86-64" in processor.LEVELS else "cortex-a76")
    assert processor.processor.__wrapped__().fma
