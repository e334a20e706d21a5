# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The attributes that make IREE put a kernel in the place of an op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iree.compiler import ir
from iree.compiler.dialects import iree_codegen, iree_gpu

from prepass.ir.targets.attention_shape import load_dialects

UKERNEL = "iree_codegen.ukernel"
COMPILATION_INFO = "compilation_info"
# Attributes that say how an op is lowered; an op with one of them is left as it is.
CONFIGS = (COMPILATION_INFO, "lowering_config", UKERNEL)

_SUBGROUP_SIZE = 64


def descriptor(function: str) -> ir.Attribute:
    """The annotation of an op: the function to put in its place once it is tiled."""
    load_dialects("iree_codegen")
    # It has no Python builder.
    return ir.Attribute.parse(f'#iree_codegen.ukernel_descriptor<"{function}", tensor>')


def compilation_info(
    workgroup: Sequence[int],
    workgroup_size: int,
    *,
    lowering: Mapping[str, ir.Attribute] | None = None,
    translation: Mapping[str, ir.Attribute] | None = None,
) -> ir.Attribute:
    """A config that tiles an op to workgroups and no further: the kernel does the rest.

    Args:
      workgroup: The tile of a workgroup, by loop of the op; 0 leaves a loop whole, which reductions must be.
      workgroup_size: Work items of a workgroup, in x.
      lowering: More of the lowering config.
      translation: More of the translation info: `llvm_func_attrs`, a denormal mode.
    """
    load_dialects("iree_codegen", "iree_gpu")
    tiles = {"workgroup": _integers(workgroup), **(lowering or {})}
    # VectorDistribute would ignore the annotation.
    pipeline = iree_gpu.PipelineAttr.get(iree_gpu.LoweringPipeline.TileAndFuse)
    # The kernel lays out its LDS itself.
    options = iree_gpu.PipelineOptionsAttr.get(no_reduce_shared_memory_bank_conflicts=True)
    configuration = ir.DictAttr.get({"gpu_pipeline_options": options, **(translation or {})})
    return iree_codegen.CompilationInfoAttr.get(
        iree_gpu.LoweringConfigAttr.get(ir.DictAttr.get(tiles)),
        iree_codegen.TranslationInfoAttr.get(pipeline, None, [workgroup_size, 1, 1], _SUBGROUP_SIZE, configuration),
    )


def bitcode(name: str, contents: bytes) -> ir.Attribute:
    """LLVM bitcode to link into an executable. `name` is what diagnostics call it.

    Functions in it must not name a CPU and its features, else they are not inlined.
    """
    data = f'dense<"0x{contents.hex()}"> : vector<{len(contents)}xi8>'
    # The HAL dialect has no Python builder for it.
    return ir.Attribute.parse(f'#hal.executable.object<{{path = "{name}", data = {data}}}>')


def _integers(values: Sequence[int]) -> ir.ArrayAttr:
    integer = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get([ir.IntegerAttr.get(integer, value) for value in values])
