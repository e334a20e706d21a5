// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-split-gated-projections)' \
// RUN:   --prepass-remarks=all 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// Idempotence.
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-split-gated-projections)' > %t.once
// RUN: prepass-opt %s --split-input-file \
// RUN:   --pass-pipeline='builtin.module(prepass-split-gated-projections,prepass-split-gated-projections)' > %t.twice
// RUN: diff %t.once %t.twice

// The weight is cut as it is stored, before it is transposed; the bias is cut too. Unequal cuts.

// CHECK-LABEL: func.func @gated
// CHECK-SAME: %[[X:.+]]: tensor<4x64xf16>, %[[W:.+]]: tensor<96x64xf16>, %[[B:.+]]: tensor<96xf16>
// CHECK: %[[W0:.+]] = tensor.extract_slice %[[W]][0, 0] [32, 64] [1, 1]
// CHECK: %[[P0:.+]] = linalg.generic {indexing_maps = [{{.*}}], iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK-SAME: ins(%[[X]], %[[W0]] : tensor<4x64xf16>, tensor<32x64xf16>) outs(%{{.+}} : tensor<4x32xf32>)
// CHECK: %[[B0:.+]] = tensor.extract_slice %[[B]][0] [32] [1]
// CHECK: %[[VALUE:.+]] = linalg.generic {{.*}} ins(%[[P0]], %[[B0]] :
// CHECK: tensor.extract_slice %[[W]][64, 0] [32, 64] [1, 1]
// CHECK: tensor.extract_slice %[[B]][64] [32] [1]
// CHECK: %[[GATE:.+]] = linalg.generic
// CHECK: linalg.generic {{.*}} ins(%[[VALUE]], %[[GATE]] :
// REMARK: applied: split in 2 [linalg.matmul]
#all = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @gated(%x: tensor<4x64xf16>, %w: tensor<96x64xf16>, %b: tensor<96xf16>) -> tensor<4x32xf16> {
  %zero = arith.constant 0.0 : f32
  %ew = tensor.empty() : tensor<64x96xf16>
  %e = tensor.empty() : tensor<4x96xf32>
  %half = tensor.empty() : tensor<4x96xf16>
  %out = tensor.empty() : tensor<4x32xf16>
  %wt = linalg.transpose ins(%w : tensor<96x64xf16>) outs(%ew : tensor<64x96xf16>) permutation = [1, 0]
  %fill = linalg.fill ins(%zero : f32) outs(%e : tensor<4x96xf32>) -> tensor<4x96xf32>
  %p = linalg.matmul ins(%x, %wt : tensor<4x64xf16>, tensor<64x96xf16>) outs(%fill : tensor<4x96xf32>) -> tensor<4x96xf32>
  %biased = linalg.generic {indexing_maps = [#all, #column, #all], iterator_types = ["parallel", "parallel"]} ins(%p, %b : tensor<4x96xf32>, tensor<96xf16>) outs(%half : tensor<4x96xf16>) {
  ^bb0(%in: f32, %bias: f16, %o: f16):
    %t = arith.truncf %in : f32 to f16
    %s = arith.addf %t, %bias : f16
    linalg.yield %s : f16
  } -> tensor<4x96xf16>
  %value = tensor.extract_slice %biased[0, 0] [4, 32] [1, 1] : tensor<4x96xf16> to tensor<4x32xf16>
  %gate = tensor.extract_slice %biased[0, 64] [4, 32] [1, 1] : tensor<4x96xf16> to tensor<4x32xf16>
  %gated = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%value, %gate : tensor<4x32xf16>, tensor<4x32xf16>) outs(%out : tensor<4x32xf16>) {
  ^bb0(%v: f16, %g: f16, %o: f16):
    %s = arith.mulf %v, %g : f16
    linalg.yield %s : f16
  } -> tensor<4x32xf16>
  return %gated : tensor<4x32xf16>
}

// -----

// CHECK-LABEL: func.func @apart
// CHECK: linalg.matmul {{.*}} tensor<64x96xf16>
// REMARK: missed: the slices do not meet in an elementwise op [linalg.matmul]
// CHECK-LABEL: func.func @read_whole
// CHECK: linalg.matmul {{.*}} tensor<64x96xf16>
// REMARK: missed: its result is read otherwise than in slices too [linalg.matmul]
// CHECK-LABEL: func.func @onto
// CHECK: linalg.matmul {{.*}} tensor<64x96xf16>
// REMARK: missed: it accumulates onto a tensor [linalg.matmul]
// CHECK-LABEL: func.func @strided
// CHECK: linalg.matmul {{.*}} tensor<64x96xf16>
// REMARK: missed: the slices are not static cuts along one dim [tensor.extract_slice]
// CHECK-LABEL: func.func @dynamic_weight
// CHECK: linalg.matmul {{.*}} tensor<?x96xf16>
// REMARK: missed: a weight that is to be cut has a dynamic shape [linalg.matmul]
func.func @apart(%x: tensor<4x64xf16>, %w: tensor<64x96xf16>) -> (tensor<4x48xf16>, tensor<4x48xf16>) {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<4x96xf16>
  %fill = linalg.fill ins(%zero : f16) outs(%e : tensor<4x96xf16>) -> tensor<4x96xf16>
  %p = linalg.matmul ins(%x, %w : tensor<4x64xf16>, tensor<64x96xf16>) outs(%fill : tensor<4x96xf16>) -> tensor<4x96xf16>
  %q = tensor.extract_slice %p[0, 0] [4, 48] [1, 1] : tensor<4x96xf16> to tensor<4x48xf16>
  %k = tensor.extract_slice %p[0, 48] [4, 48] [1, 1] : tensor<4x96xf16> to tensor<4x48xf16>
  return %q, %k : tensor<4x48xf16>, tensor<4x48xf16>
}
func.func @read_whole(%x: tensor<4x64xf16>, %w: tensor<64x96xf16>) -> (tensor<4x48xf16>, tensor<4x96xf16>) {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<4x96xf16>
  %fill = linalg.fill ins(%zero : f16) outs(%e : tensor<4x96xf16>) -> tensor<4x96xf16>
  %p = linalg.matmul ins(%x, %w : tensor<4x64xf16>, tensor<64x96xf16>) outs(%fill : tensor<4x96xf16>) -> tensor<4x96xf16>
  %q = tensor.extract_slice %p[0, 0] [4, 48] [1, 1] : tensor<4x96xf16> to tensor<4x48xf16>
  return %q, %p : tensor<4x48xf16>, tensor<4x96xf16>
}
func.func @onto(%x: tensor<4x64xf16>, %w: tensor<64x96xf16>, %init: tensor<4x96xf16>, %out: tensor<4x48xf16>) -> tensor<4x48xf16> {
  %p = linalg.matmul ins(%x, %w : tensor<4x64xf16>, tensor<64x96xf16>) outs(%init : tensor<4x96xf16>) -> tensor<4x96xf16>
  %q = tensor.extract_slice %p[0, 0] [4, 48] [1, 1] : tensor<4x96xf16> to tensor<4x48xf16>
  %k = tensor.extract_slice %p[0, 48] [4, 48] [1, 1] : tensor<4x96xf16> to tensor<4x48xf16>
  %0 = linalg.map { arith.mulf } ins(%q, %k : tensor<4x48xf16>, tensor<4x48xf16>) outs(%out : tensor<4x48xf16>)
  return %0 : tensor<4x48xf16>
}
func.func @strided(%x: tensor<4x64xf16>, %w: tensor<64x96xf16>, %init: tensor<4x96xf16>, %out: tensor<4x48xf16>) -> tensor<4x48xf16> {
  %p = linalg.matmul ins(%x, %w : tensor<4x64xf16>, tensor<64x96xf16>) outs(%init : tensor<4x96xf16>) -> tensor<4x96xf16>
  %q = tensor.extract_slice %p[0, 0] [4, 48] [1, 2] : tensor<4x96xf16> to tensor<4x48xf16>
  %k = tensor.extract_slice %p[0, 1] [4, 48] [1, 2] : tensor<4x96xf16> to tensor<4x48xf16>
  %0 = linalg.map { arith.mulf } ins(%q, %k : tensor<4x48xf16>, tensor<4x48xf16>) outs(%out : tensor<4x48xf16>)
  return %0 : tensor<4x48xf16>
}
func.func @dynamic_weight(%x: tensor<4x?xf16>, %w: tensor<?x96xf16>, %out: tensor<4x48xf16>) -> tensor<4x48xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<4x96xf16>
  %fill = linalg.fill ins(%zero : f16) outs(%e : tensor<4x96xf16>) -> tensor<4x96xf16>
  %p = linalg.matmul ins(%x, %w : tensor<4x?xf16>, tensor<?x96xf16>) outs(%fill : tensor<4x96xf16>) -> tensor<4x96xf16>
  %q = tensor.extract_slice %p[0, 0] [4, 48] [1, 1] : tensor<4x96xf16> to tensor<4x48xf16>
  %k = tensor.extract_slice %p[0, 48] [4, 48] [1, 1] : tensor<4x96xf16> to tensor<4x48xf16>
  %0 = linalg.map { arith.mulf } ins(%q, %k : tensor<4x48xf16>, tensor<4x48xf16>) outs(%out : tensor<4x48xf16>)
  return %0 : tensor<4x48xf16>
}
