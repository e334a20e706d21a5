// RUN: prepass-opt %s --pass-pipeline='builtin.module(prepass-configure-contractions)' --prepass-remarks=all 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NOTARGET
// RUN: prepass-compile %s --iree-hal-target-device=hip --iree-rocm-target=gfx942 --compile-to=executable-sources \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-configure-contractions)' --prepass-remarks=all 2>&1 \
// RUN:   | FileCheck %s --check-prefix=GFX942
// RUN: prepass-compile %s --iree-hal-target-device=hip --iree-rocm-target=gfx1100 --compile-to=executable-sources \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-configure-contractions)' --prepass-remarks=all 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OTHER

// Idempotence: the second time the op has its config.
// RUN: prepass-compile %s --iree-hal-target-device=hip --iree-rocm-target=gfx942 --compile-to=executable-sources \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-configure-contractions)' \
// RUN:   | prepass-opt --pass-pipeline='builtin.module(prepass-configure-contractions)' --prepass-remarks=all 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TWICE

// NOTARGET: missed: no target is known for the op [linalg.generic]
// NOTARGET-NOT: compilation_info
// OTHER: missed: IREE's default for gfx1100 is kept [linalg.generic]
// OTHER-NOT: compilation_info
// TWICE: missed: the op has a lowering config already [linalg.generic]

// GFX942-DAG: applied: configured for gfx942 [linalg.generic]
// GFX942-DAG: missed: no tile divides its loops; IREE's default is kept [linalg.generic]
// GFX942-DAG: missed: its loops are not those of a contraction of one operand with several [linalg.generic]
// GFX942: compilation_info = #iree_codegen.compilation_info<lowering_config = #iree_gpu.lowering_config<{mma_kind = #iree_gpu.mma_layout<MFMA_F32_16x16x16_F16>
// GFX942-SAME: reduction = [0, 0, 32], subgroup_basis = {{\[\[}}2, 2, 1], [0, 1, 2]], workgroup = [128, 128, 0]
// GFX942-SAME: prefetch_num_stages = 2

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (n, k)>
#o = affine_map<(m, n, k) -> (m, n)>
func.func @two(%x: tensor<256x128xf16>, %a: tensor<256x128xf16>, %b: tensor<256x128xf16>) -> (tensor<256x256xf32>, tensor<256x256xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %0:2 = linalg.generic {indexing_maps = [#x, #w, #w, #o, #o], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %a, %b : tensor<256x128xf16>, tensor<256x128xf16>, tensor<256x128xf16>)
      outs(%f, %f : tensor<256x256xf32>, tensor<256x256xf32>) {
  ^bb0(%in: f16, %wa: f16, %wb: f16, %sa: f32, %sb: f32):
    %1 = arith.extf %in : f16 to f32
    %2 = arith.extf %wa : f16 to f32
    %3 = arith.mulf %1, %2 : f32
    %4 = arith.addf %sa, %3 : f32
    %5 = arith.extf %wb : f16 to f32
    %6 = arith.mulf %1, %5 : f32
    %7 = arith.addf %sb, %6 : f32
    linalg.yield %4, %7 : f32, f32
  } -> (tensor<256x256xf32>, tensor<256x256xf32>)
  return %0#0, %0#1 : tensor<256x256xf32>, tensor<256x256xf32>
}

// Rows that no tile divides, and any number of them.
func.func @odd(%x: tensor<?x128xf16>, %a: tensor<256x128xf16>, %b: tensor<256x128xf16>, %f: tensor<?x256xf32>) -> (tensor<?x256xf32>, tensor<?x256xf32>) {
  %0:2 = linalg.generic {indexing_maps = [#x, #w, #w, #o, #o], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %a, %b : tensor<?x128xf16>, tensor<256x128xf16>, tensor<256x128xf16>)
      outs(%f, %f : tensor<?x256xf32>, tensor<?x256xf32>) {
  ^bb0(%in: f16, %wa: f16, %wb: f16, %sa: f32, %sb: f32):
    %1 = arith.extf %in : f16 to f32
    %2 = arith.extf %wa : f16 to f32
    %3 = arith.mulf %1, %2 : f32
    %4 = arith.addf %sa, %3 : f32
    %5 = arith.extf %wb : f16 to f32
    %6 = arith.mulf %1, %5 : f32
    %7 = arith.addf %sb, %6 : f32
    linalg.yield %4, %7 : f32, f32
  } -> (tensor<?x256xf32>, tensor<?x256xf32>)
  return %0#0, %0#1 : tensor<?x256xf32>, tensor<?x256xf32>
}

// Two sums of one tensor.
func.func @sums(%x: tensor<256x128xf32>) -> (tensor<256xf32>, tensor<256xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %0:2 = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m)>, affine_map<(m, k) -> (m)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<256x128xf32>) outs(%f, %f : tensor<256xf32>, tensor<256xf32>) {
  ^bb0(%in: f32, %sa: f32, %sb: f32):
    %1 = arith.addf %sa, %in : f32
    %2 = arith.mulf %in, %in : f32
    %3 = arith.addf %sb, %2 : f32
    linalg.yield %1, %3 : f32, f32
  } -> (tensor<256xf32>, tensor<256xf32>)
  return %0#0, %0#1 : tensor<256xf32>, tensor<256xf32>
}
