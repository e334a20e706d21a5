# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention configs: right on llvm-cpu against numpy, and for gfx942 what the assembly shows."""

import re
from dataclasses import dataclass, replace

import numpy as np
import pytest
from iree.compiler import ir

import prepass
from prepass.amdgpu.inputs import compile_to_assembly
from prepass.ir.targets import Target, find_target
from prepass.ir.targets.attention import attention_attributes, padded_keys
from prepass.ir.targets.attention_shape import AttentionShape, NoConfig

from .conftest import ADD, GFX942, LLVM_CPU
from .graphs import DTYPES

CPU = Target("llvm-cpu", vector_bytes=64)
GPU = Target("rocm", "gfx942")
TOLERANCES = {"f32": 1e-5, "f16": 2e-3, "bf16": 1.5e-2}
BATCH_LOOPS = ("b", "g")
# What dynamic loops have when a program runs.
DYNAMIC_EXTENTS = {"b": 3, "m": 19, "t": 35}


@dataclass(frozen=True)
class Case:
    """One attention op.

    Attributes:
      shape: Its extents.
      key_batch: The batch loops that K and V have.
      mask: The loops that an f32 mask varies along; "" for none.
    """

    shape: AttentionShape
    key_batch: str = "bg"
    mask: str = ""

    def __str__(self) -> str:
        s, mask = self.shape, f"-mask-{self.mask}" if self.mask else ""
        layout = "-vt" * s.value_transposed + "-kt" * s.key_transposed
        return f"{s.batch}-m{s.m}-n{s.n}-k1_{s.k1}-k2_{s.k2}-{s.element_type}{layout}{mask}"

    @property
    def loops(self) -> dict[str, int | None]:
        """The extent of each loop, in order; the names are one letter each."""
        s = self.shape
        return dict(zip(BATCH_LOOPS, s.batch, strict=False)) | {"m": s.m, "n": s.n, "k": s.k1, "t": s.k2}

    @property
    def operands(self) -> list[str]:
        """The loops of Q, K, V, the mask and the result."""
        batch = "".join(BATCH_LOOPS[: len(self.shape.batch)])
        keys = "".join(loop for loop in batch if loop in self.key_batch)
        key = keys + ("kt" if self.shape.key_transposed else "tk")
        value = keys + ("nt" if self.shape.value_transposed else "tn")
        return [batch + "mk", key, value, *([self.mask] if self.mask else []), batch + "mn"]

    def type(self, loops: str, element: str) -> str:
        sizes = ["?" if self.loops[loop] is None else str(self.loops[loop]) for loop in loops]
        return f"tensor<{'x'.join([*sizes, element])}>"

    def module(self, attributes: dict[str, ir.Attribute]) -> ir.Module:
        """A function `main` that is the op, with these attributes."""
        element = self.shape.element_type
        *inputs, result = self.operands
        types = [self.type(loops, "f32" if loops == self.mask else element) for loops in inputs]
        maps = [f"affine_map<({', '.join(self.loops)}) -> ({', '.join(loops)})>" for loops in self.operands]
        maps.insert(3, f"affine_map<({', '.join(self.loops)}) -> ()>")
        values = [f"%{position}" for position in range(len(types))]
        arguments = ", ".join(f"{value}: {type_}" for value, type_ in zip(values, types, strict=True))
        sizes, dims = [], []
        for loop in (loop for loop in result if self.loops[loop] is None):
            operand = next(position for position, loops in enumerate(inputs) if loop in loops)
            sizes.append(f"%size_{loop}")
            dims.append(f"%at_{loop} = arith.constant {inputs[operand].index(loop)} : index")
            dims.append(f"%size_{loop} = tensor.dim {values[operand]}, %at_{loop} : {types[operand]}")
        values.insert(3, "%scale")
        types.insert(3, element)
        type_ = self.type(result, element)
        lines = "\n".join(dims)
        module = ir.Module.parse(f"""
            func.func @main({arguments}) -> {type_} {{
              {lines}
              %scale = arith.constant 0.125 : {element}
              %empty = tensor.empty({", ".join(sizes)}) : {type_}
              %o = iree_linalg_ext.attention <{{indexing_maps = [{", ".join(maps)}]}}>
                  ins({", ".join(values)} : {", ".join(types)}) outs(%empty : {type_}) {{
              ^bb0(%score: f32):
                iree_linalg_ext.yield %score : f32
              }} -> {type_}
              return %o : {type_}
            }}""")
        op = next(op for op in module.body.operations[0].regions[0].blocks[0] if "attention" in op.operation.name)
        for name, attribute in attributes.items():
            op.attributes[name] = attribute
        return module

    def inputs(self) -> list[np.ndarray]:
        rng = np.random.default_rng(0)
        extents = {loop: extent or DYNAMIC_EXTENTS[loop] for loop, extent in self.loops.items()}
        arrays = []
        for loops in self.operands[:-1]:
            element = "f32" if loops == self.mask else self.shape.element_type
            arrays.append(rng.standard_normal([extents[loop] for loop in loops]).astype(DTYPES[element]))
        if self.mask:
            arrays[3] = np.where(rng.random(arrays[3].shape) < 0.3, -np.inf, arrays[3])
            arrays[3][..., 0] = 0.0
        return arrays

    def reference(self, inputs: list[np.ndarray]) -> np.ndarray:
        q, k, v, *mask = (array.astype(np.float64) for array in inputs)
        queries, keys, values, *_, result = self.operands
        scores = result[:-1] + "t"
        s = np.einsum(f"{queries},{keys}->{scores}", q, k) * 0.125
        if mask:
            s += np.einsum(f"{self.mask},{scores}->{scores}", mask[0], np.ones_like(s))
        p = np.exp(s - s.max(-1, keepdims=True))
        return np.einsum(f"{scores},{values}->{result}", p / p.sum(-1, keepdims=True), v)


def case(m=16, n=64, k1=64, k2=16, batch=(2,), element="f32", vt=False, kt=False, mask="", key_batch="bg"):
    return Case(AttentionShape(batch, m, n, k1, k2, element, vt, bool(mask), kt), key_batch, mask)


NUMERIC_CASES = [
    case(),
    case(k1=160, n=160, element="f16"),
    case(k1=256, n=256, k2=77, mask="bmt"),
    case(k1=33, n=40, m=13, k2=77, element="bf16"),
    case(m=1, k1=256, n=256, k2=197),
    case(m=77, k2=131, vt=True, mask="mt"),
    case(m=24, k2=48, kt=True, batch=(1,), element="f16"),
    case(batch=(), k1=72, n=72),
    case(batch=(2, 3), key_batch="b", mask="mt", m=9, k2=12),
    case(batch=(1, 1), m=1, k2=1, k1=160),
    case(batch=(None,), m=None, k2=None),
]


@pytest.fixture(autouse=True)
def in_context(context):
    with context, ir.Location.unknown():
        yield


@pytest.fixture(scope="module")
def host():
    """The CPU the tests run on."""
    found = []
    prepass.compile(ADD, flags=LLVM_CPU, hooks={"preprocessing": lambda module: found.append(find_target(module))})
    assert found[0].vector_bytes
    return found[0]


@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize("case", NUMERIC_CASES, ids=str)
def test_llvm_cpu_configs_are_right(case, level, host):
    module = case.module(attention_attributes(host, case.shape))
    program = prepass.compile(module, flags=(*LLVM_CPU, f"--iree-opt-level={level}"))
    inputs = case.inputs()
    (result,) = prepass.run(program, *inputs)
    assert np.abs(result.astype(np.float64) - case.reference(inputs)).max() < TOLERANCES[case.shape.element_type]


def tiles(attributes, level="distribution"):
    return [int(n) for n in re.search(rf"{level} = \[([^\]]*)\]", str(attributes["compilation_info"]))[1].split(",")]


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize("channels", [8, 33, 64, 128, 160, 256, 512])
def test_llvm_cpu_leaves_the_head_dim_whole(channels, vector_bytes):
    attributes = attention_attributes(Target("llvm-cpu", vector_bytes=vector_bytes), case(k1=channels).shape)
    levels = ("distribution", "vector_common_parallel", "vector_reduction")
    assert [tiles(attributes, level)[3] for level in levels] == [0, 0, 0]


@pytest.mark.parametrize(
    ("shape", "loops"),
    [(case(), 5), (case(m=1), 4), (case(k2=1), 4), (case(batch=(1, 3)), 5), (case(batch=(1,), m=1), 3)],
    ids=str,
)
def test_unit_loops_have_no_tile(shape, loops):
    assert len(tiles(attention_attributes(CPU, shape.shape))) == loops


def test_keys_are_divided_where_possible():
    assert tiles(attention_attributes(CPU, case(k2=77).shape), "vector_reduction")[-1] == 7
    assert tiles(attention_attributes(CPU, case(k2=131).shape), "vector_reduction")[-1] == 8


@pytest.mark.parametrize(
    ("target", "shape", "reason", "breaks"),
    [
        (CPU, case(k1=None), "the head dim is dynamic", True),
        (CPU, case(k1=16384), "16384 channels are more", True),
        (GPU, case(k1=None, element="f16"), "dynamic head dim crashes", True),
        (GPU, case(k2=1, element="f16"), "single key crashes", True),
        (GPU, case(m=None, k2=None, element="f16"), "number of keys is dynamic", False),
    ],
    ids=str,
)
def test_shapes_without_a_config(target, shape, reason, breaks):
    with pytest.raises(NoConfig, match=reason) as caught:
        attention_attributes(target, shape.shape)
    assert caught.value.breaks == breaks


@pytest.mark.parametrize(
    ("target", "shape"),
    [
        (Target("vulkan-spirv"), case()),
        (Target("rocm", "gfx1100"), case(element="f16")),
        (GPU, case()),
        (GPU, case(m=1, element="f16")),
        (GPU, case(k2=77, element="f16", vt=True)),
        (GPU, case(k1=33, n=33, element="f16")),
        (GPU, case(m=None, k2=None, mask="mt", element="f16")),
    ],
    ids=str,
)
def test_shapes_left_to_the_default(target, shape):
    assert attention_attributes(target, shape.shape) == {}


@pytest.mark.parametrize(("keys", "padded"), [(77, 80), (80, None), (197, 208), (1500, 1536), (1504, None), (1, None)])
def test_padded_keys(keys, padded):
    shape = case(m=128, k2=keys, element="f16", vt=True).shape
    assert padded_keys(GPU, shape) == padded
    assert padded_keys(CPU, shape) is None
    assert padded_keys(GPU, replace(shape, m=1)) is None


def gpu_case(channels, element="f16", m=4096, k2=4096, mask="", vt=True, batch=(20,)):
    return case(m, channels, channels, k2, batch, element, vt, mask=mask)


GPU_CASES = [
    *(gpu_case(channels, element) for channels in (64, 80, 128) for element in ("f16", "bf16")),
    *(gpu_case(channels) for channels in (40, 72, 96, 160, 256)),
    gpu_case(64, m=77, k2=80, mask="t"),
    gpu_case(64, k2=80, mask="t"),
    gpu_case(96, "bf16", mask="bmt"),
    gpu_case(128, m=1000, mask="mt"),
    gpu_case(64, m=None),
    gpu_case(64, k2=None),
    gpu_case(64, batch=(1,), m=77),
]


@pytest.mark.parametrize("case", GPU_CASES, ids=str)
def test_gfx942_assembly(case):
    (kernel,) = compile_to_assembly(case.module(attention_attributes(GPU, case.shape)), flags=GFX942)
    assert kernel.counts.mfmas > 0
    assert kernel.counts.accesses_of("load", "lds", width=2) == 0
    assert kernel.spills == 0
    assert kernel.metadata.private_bytes == 0
