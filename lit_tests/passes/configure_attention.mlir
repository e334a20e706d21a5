// RUN: prepass-opt %s --pass-pipeline='builtin.module(prepass-configure-attention)' --prepass-remarks=all 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NOTARGET
// RUN: prepass-compile %s --iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu \
// RUN:   --iree-llvmcpu-target-cpu=x86-64-v3 --compile-to=executable-sources --prepass-remarks=all \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-configure-attention)' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=CPU
// RUN: prepass-compile %s --iree-hal-target-device=hip --iree-rocm-target=gfx942 --compile-to=executable-sources \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-configure-attention)' --prepass-remarks=all 2>&1 \
// RUN:   | FileCheck %s --check-prefix=GFX942
// RUN: prepass-compile %s --iree-hal-target-device=hip --iree-rocm-target=gfx1100 --compile-to=executable-sources \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-configure-attention)' --prepass-remarks=all 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OTHER

// Idempotence: the second time the op has its config.
// RUN: prepass-compile %s --iree-hal-target-device=hip --iree-rocm-target=gfx942 --compile-to=executable-sources \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-configure-attention)' \
// RUN:   | prepass-opt --pass-pipeline='builtin.module(prepass-configure-attention)' --prepass-remarks=all 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TWICE

// What the target computes wrongly is an error, not a wrong result.
// RUN: not prepass-compile %S/Inputs/attention_dynamic_head.mlir --iree-hal-target-device=local \
// RUN:   --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-target-cpu=x86-64-v3 \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-configure-attention)' -o %t.vmfb 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REFUSED

// What a tuning table says comes first.
// RUN: %python %S/Inputs/attention_table.py > %t.json
// RUN: prepass-compile %s --iree-hal-target-device=hip --iree-rocm-target=gfx942 --compile-to=executable-sources \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-configure-attention{table=%t.json})' \
// RUN:   --prepass-remarks=all 2>&1 | FileCheck %s --check-prefix=TABLE
// RUN: prepass-compile %s --iree-hal-target-device=hip --iree-rocm-target=gfx942 --compile-to=executable-sources \
// RUN:   --prepass-tuning-table=%t.json --prepass-remarks=all 2>&1 | FileCheck %s --check-prefix=TABLE
// RUN: %python %S/Inputs/attention_table.py default > %t.json
// RUN: prepass-compile %s --iree-hal-target-device=hip --iree-rocm-target=gfx942 --compile-to=executable-sources \
// RUN:   --prepass-tuning-table=%t.json --prepass-remarks=all 2>&1 | FileCheck %s --check-prefix=DEFAULT
// RUN: not prepass-compile %s --iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu \
// RUN:   --iree-llvmcpu-target-cpu=x86-64-v3 --prepass-tuning-table=%t.json -o %t.vmfb 2>&1 \
// RUN:   | FileCheck %s --check-prefix=CPUTABLE

// NOTARGET: configure_attention.mlir:[[#@LINE+36]]:10: remark: prepass-configure-attention: missed: no target is known for the op [iree_linalg_ext.attention]
// NOTARGET-NOT: compilation_info

// The head dim is whole in every level.
// CPU: remark: prepass-configure-attention: applied: configured for llvm-cpu
// CPU: = iree_linalg_ext.attention
// CPU-SAME: compilation_info = #iree_codegen.compilation_info<lowering_config = #iree_cpu.lowering_config<distribution = [1, {{[0-9]+}}, 64, 0, 0], vector_common_parallel = [1, {{[0-9]+}}, 64, 0, 0], vector_reduction = [0, 0, 0, 0, {{[0-9]+}}]>

// GFX942: remark: prepass-configure-attention: applied: configured for gfx942
// GFX942: = iree_linalg_ext.attention
// GFX942-SAME: decomposition_config = {pv_attrs = {{.*}}qk_attrs =
// GFX942-SAME: #iree_gpu.pipeline<VectorDistribute>

// OTHER: missed: IREE's default for gfx1100 is kept
// OTHER-NOT: compilation_info

// TWICE: missed: the op has a lowering config already

// REFUSED: error: {{.*}}llvm-cpu cannot compute this attention: the head dim is dynamic

// TABLE: applied: configured for gfx942 as the tuning table says
// TABLE: workgroup_size = [128, 1, 1]

// DEFAULT: missed: the tuning table says that IREE's default is best
// DEFAULT-NOT: compilation_info

// CPUTABLE: error: tuning table '{{.*}}.json' is for gfx942, the program for llvm-cpu

#q = affine_map<(b, m, n, k1, k2) -> (b, m, k1)>
#k = affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>
#v = affine_map<(b, m, n, k1, k2) -> (b, n, k2)>
#s = affine_map<(b, m, n, k1, k2) -> ()>
#o = affine_map<(b, m, n, k1, k2) -> (b, m, n)>
func.func @main(%q: tensor<4x1024x64xf16>, %k: tensor<4x1024x64xf16>, %v: tensor<4x64x1024xf16>) -> tensor<4x1024x64xf16> {
  %scale = arith.constant 0.125 : f32
  %init = tensor.empty() : tensor<4x1024x64xf16>
  %out = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]>
      ins(%q, %k, %v, %scale : tensor<4x1024x64xf16>, tensor<4x1024x64xf16>, tensor<4x64x1024xf16>, f32)
      outs(%init : tensor<4x1024x64xf16>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  } -> tensor<4x1024x64xf16>
  return %out : tensor<4x1024x64xf16>
}
