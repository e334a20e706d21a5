// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-raise-attention)' | FileCheck %s
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-raise-attention)' \
// RUN:   --prepass-remarks=all -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-raise-attention{fill-limit=-1e9})' \
// RUN:   --prepass-remarks=missed -o /dev/null 2>&1 | FileCheck %s --check-prefix=STRICT
// The pass has nothing left to raise in its own output.
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-raise-attention)' -o %t.mlir
// RUN: prepass-opt %t.mlir --split-input-file --pass-pipeline='builtin.module(prepass-raise-attention)' \
// RUN:   --prepass-remarks=all -o /dev/null 2>&1 | FileCheck %s --check-prefix=AGAIN

// AGAIN-NOT: applied:

// What a target computes wrongly, or not at all, stays decomposed.
// RUN: prepass-opt %S/Inputs/attention_of_target.mlir --pass-pipeline='builtin.module(prepass-raise-attention)' \
// RUN:   --prepass-remarks=missed -o /dev/null 2>&1 | FileCheck %s --check-prefix=NOTARGET
// RUN: prepass-compile %S/Inputs/attention_of_target.mlir --iree-hal-target-device=hip --iree-rocm-target=gfx942 \
// RUN:   --compile-to=preprocessing --iree-preprocessing-pass-pipeline='builtin.module(prepass-raise-attention)' \
// RUN:   --prepass-remarks=missed -o %t.gfx942 2>&1 | FileCheck %s --check-prefix=GFX942

// NOTARGET: mlir:10:8: {{.*}} missed: no target is known, and llvm-cpu needs a lowering config for such a head dim
// NOTARGET-NOT: missed
// GFX942: mlir:23:8: {{.*}} missed: a single key crashes the compiler for gfx942
// GFX942-NOT: missed

// Batch and heads are collapsed and expanded in between; K comes transposed.
// CHECK-DAG: #[[$Q:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>
// CHECK-DAG: #[[$K:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d4)>
// CHECK-DAG: #[[$V:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2)>
// CHECK-DAG: #[[$S:.+]] = affine_map<(d0, d1, d2, d3, d4) -> ()>
// CHECK-DAG: #[[$O:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>
// REMARK: remark: prepass-raise-attention: applied: raised to iree_linalg_ext.attention [linalg.batch_matmul]
// CHECK-LABEL: func.func @sdxl
// CHECK-SAME: %[[Q:.+]]: tensor<4x16x8xf16>, %[[K:.+]]: tensor<4x8x16xf16>, %[[V:.+]]: tensor<2x2x16x8xf16>
// CHECK-NOT: linalg.
// CHECK: %[[VC:.+]] = tensor.collapse_shape %[[V]] {{\[\[}}0, 1], [2], [3]]
// CHECK: %[[ONE:.+]] = arith.constant 1.000000e+00 : f32
// CHECK: iree_linalg_ext.attention
// CHECK-SAME: indexing_maps = [#[[$Q]], #[[$K]], #[[$V]], #[[$S]], #[[$O]]]
// CHECK-SAME: ins(%[[Q]], %[[K]], %[[VC]], %[[ONE]] :
// CHECK-NOT: linalg.
// CHECK: return
func.func @sdxl(%q: tensor<4x16x8xf16>, %kt: tensor<4x8x16xf16>, %v: tensor<2x2x16x8xf16>) -> tensor<4x16x8xf16> {
  %zero = arith.constant 0.0 : f16
  %e0 = tensor.empty() : tensor<4x16x16xf16>
  %f0 = linalg.fill ins(%zero : f16) outs(%e0 : tensor<4x16x16xf16>) -> tensor<4x16x16xf16>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<4x16x8xf16>, tensor<4x8x16xf16>) outs(%f0 : tensor<4x16x16xf16>) -> tensor<4x16x16xf16>
  %x = tensor.expand_shape %s [[0, 1], [2], [3]] output_shape [2, 2, 16, 16] : tensor<4x16x16xf16> into tensor<2x2x16x16xf16>
  %e1 = tensor.empty() : tensor<2x2x16x16xf16>
  %p = linalg.softmax dimension(3) ins(%x : tensor<2x2x16x16xf16>) outs(%e1 : tensor<2x2x16x16xf16>) -> tensor<2x2x16x16xf16>
  %pc = tensor.collapse_shape %p [[0, 1], [2], [3]] : tensor<2x2x16x16xf16> into tensor<4x16x16xf16>
  %vc = tensor.collapse_shape %v [[0, 1], [2], [3]] : tensor<2x2x16x8xf16> into tensor<4x16x8xf16>
  %e2 = tensor.empty() : tensor<4x16x8xf16>
  %f2 = linalg.fill ins(%zero : f16) outs(%e2 : tensor<4x16x8xf16>) -> tensor<4x16x8xf16>
  %o = linalg.batch_matmul ins(%pc, %vc : tensor<4x16x16xf16>, tensor<4x16x8xf16>) outs(%f2 : tensor<4x16x8xf16>) -> tensor<4x16x8xf16>
  return %o : tensor<4x16x8xf16>
}

// -----

// Scale factors on Q, on the scores, and from a tensor of rank 0.
// CHECK-LABEL: func.func @scale
// CHECK-DAG: %[[KNOWN:.+]] = arith.constant 2.500000e-01 : f32
// CHECK-DAG: %[[RUNTIME:.+]] = tensor.extract
// CHECK: %[[SCALE:.+]] = arith.mulf %[[KNOWN]], %[[RUNTIME]]
// CHECK: iree_linalg_ext.attention
// CHECK-SAME: ins(%{{.+}}, %{{.+}}, %{{.+}}, %[[SCALE]] :
func.func @scale(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>, %t: tensor<f32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %half = arith.constant 0.5 : f32
  %two = arith.constant 2.0 : f32
  %qs = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%q : tensor<2x4x8xf32>) outs(%eo : tensor<2x4x8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %y = arith.mulf %a, %half : f32
    linalg.yield %y : f32
  } -> tensor<2x4x8xf32>
  %s = linalg.batch_matmul ins(%qs, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %s1 = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> ()>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %t : tensor<2x4x6xf32>, tensor<f32>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %out: f32):
    %x = arith.divf %a0, %two : f32
    %y = arith.mulf %x, %a1 : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s1 : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// An additive mask keeps its broadcast; numbers that mean "masked" become one that log2(e) does not overflow.
// CHECK-LABEL: func.func @additive_mask
// CHECK: %[[MASK:.+]] = linalg.generic
// CHECK: arith.cmpf ole
// CHECK: arith.select
// CHECK: } -> tensor<4x6xf32>
// CHECK: iree_linalg_ext.attention
// CHECK-SAME: ins(%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %[[MASK]] :
func.func @additive_mask(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>, %mask: tensor<4x6xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %s1 = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (m, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %mask : tensor<2x4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %out: f32):
    %y = arith.addf %a0, %a1 : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s1 : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// Two masks become one operand.
// CHECK-LABEL: func.func @two_masks
// CHECK: %[[MASK:.+]] = linalg.generic
// CHECK: arith.addf
// CHECK: } -> tensor<2x4x6xf32>
// CHECK: iree_linalg_ext.attention
// CHECK-SAME: ins(%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %[[MASK]] :
func.func @two_masks(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>, %bias: tensor<4x6xf32>, %pad: tensor<2x6xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %s1 = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (m, k)>, affine_map<(b, m, k) -> (b, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %bias, %pad : tensor<2x4x6xf32>, tensor<4x6xf32>, tensor<2x6xf32>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %a2: f32, %out: f32):
    %x = arith.addf %a0, %a1 : f32
    %y = arith.addf %x, %a2 : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s1 : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// A mask that is zero everywhere is none.
// CHECK-LABEL: func.func @zero_mask
// CHECK-NOT: linalg.generic
// CHECK: iree_linalg_ext.attention
// CHECK-SAME: ins(%{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}} :
func.func @zero_mask(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %s1 = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %fs : tensor<2x4x6xf32>, tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %out: f32):
    %y = arith.addf %a0, %a1 : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s1 : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// CHECK-LABEL: func.func @select_infinity
// CHECK: arith.constant 0xFF800000 : f32
// CHECK: arith.select
// CHECK: iree_linalg_ext.attention
func.func @select_infinity(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>, %ok: tensor<4x6xi1>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %fill = arith.constant 0xFF800000 : f32
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %s1 = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (m, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %ok : tensor<2x4x6xf32>, tensor<4x6xi1>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %a1: i1, %out: f32):
    %y = arith.select %a1, %fill, %a0 : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s1 : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// A finite fill masks with a number that leaves a row without keys uniform.
// STRICT: remark: prepass-raise-attention: missed: masked scores are replaced by -10000, which does not mask them out
// CHECK-LABEL: func.func @select_finite
// CHECK: arith.constant -9.99999993E+36 : f32
// CHECK: arith.select
// CHECK: iree_linalg_ext.attention
func.func @select_finite(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>, %ok: tensor<4x6xi1>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %fill = arith.constant -1.0e4 : f32
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %s1 = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (m, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %ok : tensor<2x4x6xf32>, tensor<4x6xi1>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %a1: i1, %out: f32):
    %y = arith.select %a1, %a0, %fill : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s1 : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// The region works on scores times log2(e).
// CHECK-LABEL: func.func @softcap
// CHECK: iree_linalg_ext.attention
// CHECK: ^bb0(%[[X:.+]]: f32):
// CHECK: %[[LN2:.+]] = arith.constant 0.693147182 : f32
// CHECK: %[[S:.+]] = arith.mulf %[[X]], %[[LN2]] : f32
// CHECK: %[[T:.+]] = math.tanh %[[S]] : f32
// CHECK: %[[C:.+]] = arith.mulf %[[T]], %{{.+}} : f32
// CHECK: %[[Y:.+]] = arith.mulf %[[C]], %{{.+}} : f32
// CHECK: iree_linalg_ext.yield %[[Y]] : f32
func.func @softcap(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %cap = arith.constant 30.0 : f32
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %s1 = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %out: f32):
    %x = arith.divf %a0, %cap : f32
    %t = math.tanh %x : f32
    %y = arith.mulf %t, %cap : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s1 : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// Rows the mask leaves without a key are zero, as in torch's _safe_softmax.
// CHECK-LABEL: func.func @safe_softmax
// CHECK: iree_linalg_ext.attention
// CHECK: linalg.generic
// CHECK: arith.maximumf
// CHECK: linalg.generic
// CHECK: arith.cmpf oeq
// CHECK: arith.select
// CHECK-NOT: linalg.softmax
func.func @safe_softmax(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>, %mask: tensor<4x6xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %inf = arith.constant 0xFF800000 : f32
  %true = arith.constant true
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %s1 = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (m, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %mask : tensor<2x4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %out: f32):
    %y = arith.addf %a0, %a1 : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s1 : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %er = tensor.empty() : tensor<2x4xi1>
  %fr = linalg.fill ins(%true : i1) outs(%er : tensor<2x4xi1>) -> tensor<2x4xi1>
  %all = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s1 : tensor<2x4x6xf32>) outs(%fr : tensor<2x4xi1>) {
  ^bb0(%a: f32, %out: i1):
    %c = arith.cmpf oeq, %a, %inf : f32
    %y = arith.andi %c, %out : i1
    linalg.yield %y : i1
  } -> tensor<2x4xi1>
  %ps = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m)>, affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%all, %p : tensor<2x4xi1>, tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: i1, %a1: f32, %out: f32):
    %y = arith.select %a0, %zero, %a1 : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%ps, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// torch's softmax: the maximum is an argmax whose index is not read.
// CHECK-LABEL: func.func @decomposed_softmax
// CHECK-NOT: linalg.
// CHECK: iree_linalg_ext.attention
func.func @decomposed_softmax(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %lowest = arith.constant 0xFF800000 : f32
  %i0 = arith.constant 0 : i64
  %er = tensor.empty() : tensor<2x4xf32>
  %ei = tensor.empty() : tensor<2x4xi64>
  %fm = linalg.fill ins(%lowest : f32) outs(%er : tensor<2x4xf32>) -> tensor<2x4xf32>
  %fi = linalg.fill ins(%i0 : i64) outs(%ei : tensor<2x4xi64>) -> tensor<2x4xi64>
  %max:2 = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m)>, affine_map<(b, m, k) -> (b, m)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s : tensor<2x4x6xf32>) outs(%fm, %fi : tensor<2x4xf32>, tensor<2x4xi64>) {
  ^bb0(%a: f32, %out: f32, %index: i64):
    %k = linalg.index 2 : index
    %k64 = arith.index_cast %k : index to i64
    %y = arith.maximumf %a, %out : f32
    %c = arith.cmpf ogt, %a, %out : f32
    %j = arith.select %c, %k64, %index : i64
    linalg.yield %y, %j : f32, i64
  } -> (tensor<2x4xf32>, tensor<2x4xi64>)
  %m1 = tensor.expand_shape %max#0 [[0], [1, 2]] output_shape [2, 4, 1] : tensor<2x4xf32> into tensor<2x4x1xf32>
  %ex = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m, 0)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %m1 : tensor<2x4x6xf32>, tensor<2x4x1xf32>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %out: f32):
    %x = arith.subf %a0, %a1 : f32
    %y = math.exp %x : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %fz = linalg.fill ins(%zero : f32) outs(%er : tensor<2x4xf32>) -> tensor<2x4xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%ex : tensor<2x4x6xf32>) outs(%fz : tensor<2x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %y = arith.addf %a, %out : f32
    linalg.yield %y : f32
  } -> tensor<2x4xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%ex, %sum : tensor<2x4x6xf32>, tensor<2x4xf32>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %out: f32):
    %y = arith.divf %a0, %a1 : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// Two query heads share one head of K and V, which is not expanded; without a mask they are rows of one loop.
// CHECK-LABEL: func.func @grouped_queries
// CHECK-SAME: %[[Q:.+]]: tensor<4x5x8xf32>, %[[K:.+]]: tensor<2x6x8xf32>, %[[V:.+]]: tensor<2x6x8xf32>
// CHECK: iree_linalg_ext.attention
// CHECK-SAME: ins(%{{.+}}, %[[K]], %[[V]], %{{.+}} : tensor<2x10x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, f32)
func.func @grouped_queries(%q: tensor<4x5x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>) -> tensor<4x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %ek = tensor.empty() : tensor<2x2x6x8xf32>
  %kb = linalg.broadcast ins(%k : tensor<2x6x8xf32>) outs(%ek : tensor<2x2x6x8xf32>) dimensions = [1]
  %kr = tensor.collapse_shape %kb [[0, 1], [2], [3]] : tensor<2x2x6x8xf32> into tensor<4x6x8xf32>
  %et = tensor.empty() : tensor<4x8x6xf32>
  %kt = linalg.transpose ins(%kr : tensor<4x6x8xf32>) outs(%et : tensor<4x8x6xf32>) permutation = [0, 2, 1]
  %vb = linalg.broadcast ins(%v : tensor<2x6x8xf32>) outs(%ek : tensor<2x2x6x8xf32>) dimensions = [1]
  %vr = tensor.collapse_shape %vb [[0, 1], [2], [3]] : tensor<2x2x6x8xf32> into tensor<4x6x8xf32>
  %es = tensor.empty() : tensor<4x5x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<4x5x6xf32>) -> tensor<4x5x6xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<4x5x8xf32>, tensor<4x8x6xf32>) outs(%fs : tensor<4x5x6xf32>) -> tensor<4x5x6xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<4x5x6xf32>) outs(%es : tensor<4x5x6xf32>) -> tensor<4x5x6xf32>
  %eo = tensor.empty() : tensor<4x5x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<4x5x8xf32>) -> tensor<4x5x8xf32>
  %o = linalg.batch_matmul ins(%p, %vr : tensor<4x5x6xf32>, tensor<4x6x8xf32>) outs(%fo : tensor<4x5x8xf32>) -> tensor<4x5x8xf32>
  return %o : tensor<4x5x8xf32>
}

// -----

// Heads next to channels, as a linear layer leaves them: no transpose is needed.
// CHECK-DAG: #[[$BTHD:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d2, d1, d4)>
// CHECK-LABEL: func.func @heads_inside
// CHECK-SAME: %[[Q:.+]]: tensor<2x5x3x8xf32>, %[[K:.+]]: tensor<2x3x5x8xf32>, %[[V:.+]]: tensor<2x3x5x8xf32>
// CHECK-NOT: linalg.transpose
// CHECK: iree_linalg_ext.attention
// CHECK-SAME: indexing_maps = [#[[$BTHD]],
// CHECK-SAME: ins(%[[Q]], %[[K]], %[[V]],
func.func @heads_inside(%q: tensor<2x5x3x8xf32>, %k: tensor<2x3x5x8xf32>, %v: tensor<2x3x5x8xf32>) -> tensor<6x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3x5x8xf32>
  %qt = linalg.transpose ins(%q : tensor<2x5x3x8xf32>) outs(%e : tensor<2x3x5x8xf32>) permutation = [0, 2, 1, 3]
  %et = tensor.empty() : tensor<2x3x8x5xf32>
  %kt = linalg.transpose ins(%k : tensor<2x3x5x8xf32>) outs(%et : tensor<2x3x8x5xf32>) permutation = [0, 1, 3, 2]
  %qc = tensor.collapse_shape %qt [[0, 1], [2], [3]] : tensor<2x3x5x8xf32> into tensor<6x5x8xf32>
  %kc = tensor.collapse_shape %kt [[0, 1], [2], [3]] : tensor<2x3x8x5xf32> into tensor<6x8x5xf32>
  %vc = tensor.collapse_shape %v [[0, 1], [2], [3]] : tensor<2x3x5x8xf32> into tensor<6x5x8xf32>
  %es = tensor.empty() : tensor<6x5x5xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<6x5x5xf32>) -> tensor<6x5x5xf32>
  %s = linalg.batch_matmul ins(%qc, %kc : tensor<6x5x8xf32>, tensor<6x8x5xf32>) outs(%fs : tensor<6x5x5xf32>) -> tensor<6x5x5xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<6x5x5xf32>) outs(%es : tensor<6x5x5xf32>) -> tensor<6x5x5xf32>
  %eo = tensor.empty() : tensor<6x5x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<6x5x8xf32>) -> tensor<6x5x8xf32>
  %o = linalg.batch_matmul ins(%p, %vc : tensor<6x5x5xf32>, tensor<6x5x8xf32>) outs(%fo : tensor<6x5x8xf32>) -> tensor<6x5x8xf32>
  return %o : tensor<6x5x8xf32>
}

// -----

// Dynamic batch, queries and keys.
// CHECK-LABEL: func.func @dynamic
// CHECK: iree_linalg_ext.attention
// CHECK-SAME: ins(%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} : tensor<?x?x8xf32>, tensor<?x8x?xf32>, tensor<?x?x8xf32>, f32) outs(%{{.+}} : tensor<?x?x8xf32>)
func.func @dynamic(%q: tensor<?x?x8xf32>, %kt: tensor<?x8x?xf32>, %v: tensor<?x?x8xf32>, %b: index, %m: index, %k: index) -> tensor<?x?x8xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty(%b, %m, %k) : tensor<?x?x?xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<?x?x8xf32>, tensor<?x8x?xf32>) outs(%fs : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<?x?x?xf32>) outs(%es : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %eo = tensor.empty(%b, %m) : tensor<?x?x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<?x?x?xf32>, tensor<?x?x8xf32>) outs(%fo : tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  return %o : tensor<?x?x8xf32>
}

// -----

// A mask by batch and head, both dynamic, where Q, K and V have one dim for the two: how many there are of each is not known.
// REMARK: remark: prepass-raise-attention: missed: a dynamic size cannot be computed from Q, K and V [linalg.batch_matmul]
// CHECK-LABEL: func.func @dynamic_heads
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: return
func.func @dynamic_heads(%q: tensor<?x4x8xf32>, %kt: tensor<?x8x6xf32>, %v: tensor<?x6x8xf32>, %mask: tensor<?x6xf32>, %b: index, %h: index, %bh: index) -> tensor<?x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty(%bh) : tensor<?x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<?x4x6xf32>) -> tensor<?x4x6xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<?x4x8xf32>, tensor<?x8x6xf32>) outs(%fs : tensor<?x4x6xf32>) -> tensor<?x4x6xf32>
  %split = tensor.expand_shape %s [[0, 1], [2], [3]] output_shape [%b, %h, 4, 6] : tensor<?x4x6xf32> into tensor<?x?x4x6xf32>
  %em = tensor.empty(%b, %h) : tensor<?x?x4x6xf32>
  %masked = linalg.generic {indexing_maps = [affine_map<(b, h, m, k) -> (b, h, m, k)>, affine_map<(b, h, m, k) -> (b, k)>, affine_map<(b, h, m, k) -> (b, h, m, k)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%split, %mask : tensor<?x?x4x6xf32>, tensor<?x6xf32>) outs(%em : tensor<?x?x4x6xf32>) {
  ^bb0(%a: f32, %x: f32, %out: f32):
    %y = arith.addf %a, %x : f32
    linalg.yield %y : f32
  } -> tensor<?x?x4x6xf32>
  %joined = tensor.collapse_shape %masked [[0, 1], [2], [3]] : tensor<?x?x4x6xf32> into tensor<?x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%joined : tensor<?x4x6xf32>) outs(%es : tensor<?x4x6xf32>) -> tensor<?x4x6xf32>
  %eo = tensor.empty(%bh) : tensor<?x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<?x4x8xf32>) -> tensor<?x4x8xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<?x4x6xf32>, tensor<?x6x8xf32>) outs(%fo : tensor<?x4x8xf32>) -> tensor<?x4x8xf32>
  return %o : tensor<?x4x8xf32>
}

// -----

// REMARK: remark: prepass-raise-attention: missed: the softmax is not over the dim the contraction sums [linalg.softmax]
// CHECK-LABEL: func.func @other_dim
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: return
func.func @other_dim(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(1) ins(%s : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// REMARK: remark: prepass-raise-attention: missed: the divisor is not the sum of the exponentials it divides [linalg.generic]
// CHECK-LABEL: func.func @other_sum
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: return
func.func @other_sum(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %lowest = arith.constant 0xFF800000 : f32
  %i0 = arith.constant 0 : i64
  %er = tensor.empty() : tensor<2x4xf32>
  %ei = tensor.empty() : tensor<2x4xi64>
  %fm = linalg.fill ins(%lowest : f32) outs(%er : tensor<2x4xf32>) -> tensor<2x4xf32>
  %fi = linalg.fill ins(%i0 : i64) outs(%ei : tensor<2x4xi64>) -> tensor<2x4xi64>
  %max:2 = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m)>, affine_map<(b, m, k) -> (b, m)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s : tensor<2x4x6xf32>) outs(%fm, %fi : tensor<2x4xf32>, tensor<2x4xi64>) {
  ^bb0(%a: f32, %out: f32, %index: i64):
    %k = linalg.index 2 : index
    %k64 = arith.index_cast %k : index to i64
    %y = arith.maximumf %a, %out : f32
    %c = arith.cmpf ogt, %a, %out : f32
    %j = arith.select %c, %k64, %index : i64
    linalg.yield %y, %j : f32, i64
  } -> (tensor<2x4xf32>, tensor<2x4xi64>)
  %m1 = tensor.expand_shape %max#0 [[0], [1, 2]] output_shape [2, 4, 1] : tensor<2x4xf32> into tensor<2x4x1xf32>
  %ex = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m, 0)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %m1 : tensor<2x4x6xf32>, tensor<2x4x1xf32>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %out: f32):
    %x = arith.subf %a0, %a1 : f32
    %y = math.exp %x : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %fz = linalg.fill ins(%zero : f32) outs(%er : tensor<2x4xf32>) -> tensor<2x4xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s : tensor<2x4x6xf32>) outs(%fz : tensor<2x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %y = arith.addf %a, %out : f32
    linalg.yield %y : f32
  } -> tensor<2x4xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%ex, %sum : tensor<2x4x6xf32>, tensor<2x4xf32>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %out: f32):
    %y = arith.divf %a0, %a1 : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// REMARK: remark: prepass-raise-attention: missed: the probabilities are multiplied before they weigh values, as live dropout does [linalg.generic]
// CHECK-LABEL: func.func @dropout
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: return
func.func @dropout(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>, %keep: tensor<2x4x6xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %pd = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p, %keep : tensor<2x4x6xf32>, tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %out: f32):
    %y = arith.mulf %a0, %a1 : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%pd, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// torch divides by the rate it keeps.
// REMARK: remark: prepass-raise-attention: missed: the probabilities are multiplied before they weigh values, as live dropout does [linalg.generic]
// CHECK-LABEL: func.func @scaled_dropout
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: return
func.func @scaled_dropout(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>, %keep: tensor<2x4x6xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %keep_rate = arith.constant 0.9 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %pd = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p, %keep : tensor<2x4x6xf32>, tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %out: f32):
    %y = arith.mulf %a0, %a1 : f32
    %scaled = arith.divf %y, %keep_rate : f32
    linalg.yield %scaled : f32
  } -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%pd, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// REMARK: remark: prepass-raise-attention: missed: a select replaces probabilities on a condition that is not understood [linalg.generic]
// CHECK-LABEL: func.func @other_guard
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: return
func.func @other_guard(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>, %ok: tensor<4x6xi1>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %pd = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (m, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p, %ok : tensor<2x4x6xf32>, tensor<4x6xi1>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %a1: i1, %out: f32):
    %y = arith.select %a1, %zero, %a0 : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%pd, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// REMARK: remark: prepass-raise-attention: missed: an activation (math.exp), not a softmax, feeds the contraction [linalg.batch_matmul]
// CHECK-LABEL: func.func @silu
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: return
func.func @silu(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %one = arith.constant 1.0 : f32
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %out: f32):
    %n = arith.negf %a0 : f32
    %x = math.exp %n : f32
    %d = arith.addf %x, %one : f32
    %y = arith.divf %a0, %d : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// REMARK: remark: prepass-raise-attention: missed: an activation (math.erf), not a softmax, feeds the contraction [linalg.batch_matmul]
// CHECK-LABEL: func.func @gelu
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: return
func.func @gelu(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %one = arith.constant 1.0 : f32
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %out: f32):
    %x = math.erf %a0 : f32
    %d = arith.addf %x, %one : f32
    %y = arith.mulf %a0, %d : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// REMARK: remark: prepass-raise-attention: missed: no contraction over the softmax dim reads the probabilities [linalg.softmax]
// CHECK-LABEL: func.func @router
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: return
func.func @router(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  return %p : tensor<2x4x6xf32>
}

// -----

// REMARK: remark: prepass-raise-attention: missed: the probabilities have another use [linalg.softmax]
// CHECK-LABEL: func.func @returns_probabilities
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: return
func.func @returns_probabilities(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o, %p : tensor<2x4x8xf32>, tensor<2x4x6xf32>
}

// -----

// REMARK: remark: prepass-raise-attention: missed: the scores have another use [linalg.batch_matmul]
// CHECK-LABEL: func.func @returns_scores
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: return
func.func @returns_scores(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o, %s : tensor<2x4x8xf32>, tensor<2x4x6xf32>
}

// -----

// REMARK: remark: prepass-raise-attention: missed: the softmax is not over scores: no contraction of Q and K leads to it [linalg.softmax]
// CHECK-LABEL: func.func @no_scores
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: return
func.func @no_scores(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>, %x: tensor<2x4x6xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %p = linalg.softmax dimension(2) ins(%x : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// REMARK: remark: prepass-raise-attention: missed: math.sin is not understood as part of attention scores [linalg.generic]
// CHECK-LABEL: func.func @sine
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: return
func.func @sine(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %s1 = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %out: f32):
    %y = math.sin %a0 : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s1 : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// REMARK: remark: prepass-raise-attention: missed: the scores are scaled by a tensor, not by one number [linalg.generic]
// CHECK-LABEL: func.func @scaled_by_tensor
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: return
func.func @scaled_by_tensor(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>, %t: tensor<4x6xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %s1 = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (m, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %t : tensor<2x4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %out: f32):
    %y = arith.mulf %a0, %a1 : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s1 : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// REMARK: remark: prepass-raise-attention: missed: the scores are clamped [linalg.generic]
// CHECK-LABEL: func.func @clamped
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: return
func.func @clamped(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %s1 = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %out: f32):
    %y = arith.maximumf %a0, %zero : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s1 : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// REMARK: remark: prepass-raise-attention: missed: masked scores are scaled by a number that is not known, or not of the order of 1 [linalg.generic]
// CHECK-LABEL: func.func @scaled_mask
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: return
func.func @scaled_mask(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>, %mask: tensor<4x6xf32>, %t: f32) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %s1 = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (m, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %mask : tensor<2x4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %out: f32):
    %x = arith.addf %a0, %a1 : f32
    %y = arith.mulf %x, %t : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s1 : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// REMARK: remark: prepass-raise-attention: missed: math.tanh is applied to masked scores [linalg.generic]
// CHECK-LABEL: func.func @tanh_of_mask
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: return
func.func @tanh_of_mask(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>, %mask: tensor<4x6xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %s1 = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (m, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %mask : tensor<2x4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %out: f32):
    %x = arith.addf %a0, %a1 : f32
    %y = math.tanh %x : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s1 : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// REMARK: remark: prepass-raise-attention: missed: the function applied to the scores depends on a runtime value [linalg.generic]
// CHECK-LABEL: func.func @runtime_softcap
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: return
func.func @runtime_softcap(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>, %t: f32) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %s1 = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %out: f32):
    %x = math.tanh %a0 : f32
    %y = arith.mulf %x, %t : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s1 : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// REMARK: remark: prepass-raise-attention: missed: masked scores are replaced by values that are not one constant [linalg.generic]
// CHECK-LABEL: func.func @tensor_fill
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: return
func.func @tensor_fill(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>, %ok: tensor<4x6xi1>, %t: f32) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %s1 = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (m, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %ok : tensor<2x4x6xf32>, tensor<4x6xi1>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %a1: i1, %out: f32):
    %y = arith.select %a1, %a0, %t : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s1 : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// REMARK: remark: prepass-raise-attention: missed: masked scores are replaced by -5, which does not mask them out [linalg.generic]
// CHECK-LABEL: func.func @small_fill
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: return
func.func @small_fill(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>, %ok: tensor<4x6xi1>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %fill = arith.constant -5.0 : f32
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %s1 = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (m, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %ok : tensor<2x4x6xf32>, tensor<4x6xi1>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %a1: i1, %out: f32):
    %y = arith.select %a1, %a0, %fill : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s1 : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// REMARK: remark: prepass-raise-attention: missed: the mask is one number for all scores [linalg.softmax]
// CHECK-LABEL: func.func @uniform_mask
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: return
func.func @uniform_mask(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>, %t: f32) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %s1 = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %out: f32):
    %y = arith.addf %a0, %t : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s1 : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// REMARK: remark: prepass-raise-attention: missed: the contraction with the values accumulates onto a tensor [linalg.batch_matmul]
// CHECK-LABEL: func.func @accumulates
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: return
func.func @accumulates(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>, %acc: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%acc : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// REMARK: remark: prepass-raise-attention: missed: the dims of Q, K, V and the result do not line up as attention [linalg.batch_matmul]
// CHECK-LABEL: func.func @mask_makes_batch
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: return
func.func @mask_makes_batch(%q: tensor<4x8xf32>, %kt: tensor<8x6xf32>, %v: tensor<2x6x8xf32>, %mask: tensor<2x4x6xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %e2 = tensor.empty() : tensor<4x6xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %s = linalg.matmul ins(%q, %kt : tensor<4x8xf32>, tensor<8x6xf32>) outs(%f2 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %s1 = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (m, k)>, affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %mask : tensor<4x6xf32>, tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) {
  ^bb0(%a0: f32, %a1: f32, %out: f32):
    %y = arith.addf %a0, %a1 : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s1 : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// REMARK: remark: prepass-raise-attention: missed: attention does not compute in f64 [linalg.batch_matmul]
// CHECK-LABEL: func.func @double
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: return
func.func @double(%q: tensor<2x4x8xf64>, %kt: tensor<2x8x6xf64>, %v: tensor<2x6x8xf64>) -> tensor<2x4x8xf64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<2x4x6xf64>
  %fs = linalg.fill ins(%zero : f64) outs(%e : tensor<2x4x6xf64>) -> tensor<2x4x6xf64>
  %eo = tensor.empty() : tensor<2x4x8xf64>
  %fo = linalg.fill ins(%zero : f64) outs(%eo : tensor<2x4x8xf64>) -> tensor<2x4x8xf64>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf64>, tensor<2x8x6xf64>) outs(%fs : tensor<2x4x6xf64>) -> tensor<2x4x6xf64>
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x4x6xf64>) outs(%e : tensor<2x4x6xf64>) -> tensor<2x4x6xf64>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf64>, tensor<2x6x8xf64>) outs(%fo : tensor<2x4x8xf64>) -> tensor<2x4x8xf64>
  return %o : tensor<2x4x8xf64>
}

// -----

// REMARK: remark: prepass-raise-attention: missed: Q, K or V is computed inside the contraction [linalg.generic]
// CHECK-LABEL: func.func @fused_value
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: return
func.func @fused_value(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x4x6xf32>) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) {
  ^bb0(%a: f32, %x: f32, %out: f32):
    %w = math.sin %x : f32
    %y = arith.mulf %a, %w : f32
    %z = arith.addf %out, %y : f32
    linalg.yield %z : f32
  } -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}

// -----

// A contraction with no softmax near it is no miss.
// REMARK-NOT: remark:
// CHECK-LABEL: func.func @plain
func.func @plain(%q: tensor<2x4x8xf32>, %kt: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %eo = tensor.empty() : tensor<2x4x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%fs : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o = linalg.batch_matmul ins(%s, %v : tensor<2x4x6xf32>, tensor<2x6x8xf32>) outs(%fo : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}
