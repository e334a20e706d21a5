// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-simplify-casts)' \
// RUN:   --prepass-remarks=all 2> %t.exact.remarks | FileCheck %s --check-prefixes=CHECK,EXACT
// RUN: FileCheck %s --check-prefix=REMARK < %t.exact.remarks
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-simplify-casts{mode=fast})' \
// RUN:   --prepass-remarks=all 2> %t.fast.remarks | FileCheck %s --check-prefixes=CHECK,FAST
// RUN: FileCheck %s --check-prefix=MISSED < %t.fast.remarks

// Idempotence.
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-simplify-casts)' > %t.once
// RUN: prepass-opt %s --split-input-file \
// RUN:   --pass-pipeline='builtin.module(prepass-simplify-casts,prepass-simplify-casts)' > %t.twice
// RUN: diff %t.once %t.twice
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-simplify-casts{mode=fast})' > %t.once
// RUN: prepass-opt %s --split-input-file \
// RUN:   --pass-pipeline='builtin.module(prepass-simplify-casts{mode=fast},prepass-simplify-casts{mode=fast})' > %t.twice
// RUN: diff %t.once %t.twice

// Constants, and a cast of a cast that does not round.

// CHECK-LABEL: func.func @scalars
// CHECK-SAME: %[[X:.+]]: f16
// CHECK-DAG: %[[ROOT:.+]] = arith.constant 1.414060e+00 : f16
// CHECK-DAG: %[[CAST:.+]] = arith.constant 3.535160e-01 : f16
// CHECK-DAG: %[[WIDE:.+]] = arith.extf %[[X]] : f16 to f64
// EXACT: math.rsqrt
// FAST-NOT: math.rsqrt
// EXACT: arith.truncf %{{.+}} : f32 to bf16
// FAST-NOT: arith.truncf
// CHECK: return %[[ROOT]], %[[CAST]], %[[WIDE]], %[[X]], %{{.+}} : f16
// REMARK: applied: simplified [math.sqrt]
// REMARK: missed: how a target rounds math.rsqrt is not known [math.rsqrt]
// REMARK: missed: whether a target rounds to bf16 in between is not known [arith.truncf]
func.func @scalars(%x: f16) -> (f16, f16, f64, f16, f32, bf16) {
  %two = arith.constant 2.0 : f16
  %scale = arith.constant 0.353553385 : f32
  %three = arith.constant 3.0 : f32
  %root = math.sqrt %two : f16
  %cast = arith.truncf %scale : f32 to f16
  %wide = arith.extf %x : f16 to f32
  %wider = arith.extf %wide : f32 to f64
  %same = arith.truncf %wide : f32 to f16
  %r = math.rsqrt %three : f32
  %b = arith.truncf %scale : f32 to bf16
  return %root, %cast, %wider, %same, %r, %b : f16, f16, f64, f16, f32, bf16
}

// -----

// CHECK-LABEL: func.func @rounds
// CHECK-SAME: %[[X:.+]]: f32
// EXACT: arith.truncf
// EXACT: arith.extf
// FAST: return %[[X]]
// REMARK: missed: it would drop a rounding, which mode=exact keeps [arith.extf]
func.func @rounds(%x: f32) -> f32 {
  %half = arith.truncf %x : f32 to f16
  %wide = arith.extf %half : f16 to f32
  return %wide : f32
}

// -----

// 1 / 40960 has seven bits less than the others in f16.

// CHECK-LABEL: func.func @divisions
// CHECK-DAG: %[[QUARTER:.+]] = arith.constant 2.500000e-01 : f16
// CHECK: arith.mulf %{{.+}}, %[[QUARTER]] : f16
// EXACT: arith.divf
// FAST: arith.mulf
// CHECK: arith.divf
// REMARK: applied: simplified [arith.divf]
// REMARK: missed: the divisor is no power of two [arith.divf]
// MISSED: missed: the reciprocal of the divisor is too small to have all its digits [arith.divf]
func.func @divisions(%x: f16) -> (f16, f16, f16) {
  %four = arith.constant 4.0 : f16
  %ten = arith.constant 10.0 : f16
  %many = arith.constant 40960.0 : f16
  %a = arith.divf %x, %four : f16
  %b = arith.divf %x, %ten : f16
  %c = arith.divf %x, %many : f16
  return %a, %b, %c : f16, f16, f16
}

// -----

// Both operands are extended: one through a reshape. The truncation comes to stand next to the contraction.

// CHECK-LABEL: func.func @contraction
// CHECK-SAME: %[[A:.+]]: tensor<?xf16>, %[[B:.+]]: tensor<16x8xf16>
// CHECK: %[[A2:.+]] = tensor.expand_shape %[[A]] {{.*}} : tensor<?xf16> into tensor<?x16xf16>
// CHECK: %[[P:.+]] = linalg.matmul ins(%[[A2]], %[[B]] : tensor<?x16xf16>, tensor<16x8xf16>) outs(%{{.+}} : tensor<?x8xf32>)
// CHECK: %[[T:.+]] = linalg.generic {{.*}} ins(%[[P]] : tensor<?x8xf32>) outs(%{{.+}} : tensor<?x8xf16>)
// CHECK: arith.truncf
// CHECK: %[[OUT:.+]] = tensor.expand_shape %[[T]] {{.*}} : tensor<?x8xf16> into tensor<?x4x2xf16>
// CHECK: return %[[OUT]]
// REMARK: applied: truncates before the tensor is reshaped or transposed [linalg.generic]
// REMARK: applied: moves the narrow tensor, which is extended after it [tensor.expand_shape]
// REMARK: applied: reads narrow operands [linalg.matmul]
#i = affine_map<(i) -> (i)>
#ij = affine_map<(i, j) -> (i, j)>
#ijk = affine_map<(i, j, k) -> (i, j, k)>
func.func @contraction(%a: tensor<?xf16>, %b: tensor<16x8xf16>, %n: index, %m: index, %init: tensor<?x8xf32>) -> tensor<?x4x2xf16> {
  %ea = tensor.empty(%n) : tensor<?xf32>
  %eb = tensor.empty() : tensor<16x8xf32>
  %wa = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%a : tensor<?xf16>) outs(%ea : tensor<?xf32>) {
  ^bb0(%in: f16, %out: f32):
    %w = arith.extf %in : f16 to f32
    linalg.yield %w : f32
  } -> tensor<?xf32>
  %wb = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<16x8xf16>) outs(%eb : tensor<16x8xf32>) {
  ^bb0(%in: f16, %out: f32):
    %w = arith.extf %in : f16 to f32
    linalg.yield %w : f32
  } -> tensor<16x8xf32>
  %wa2 = tensor.expand_shape %wa [[0, 1]] output_shape [%m, 16] : tensor<?xf32> into tensor<?x16xf32>
  %p = linalg.matmul ins(%wa2, %wb : tensor<?x16xf32>, tensor<16x8xf32>) outs(%init : tensor<?x8xf32>) -> tensor<?x8xf32>
  %r = tensor.expand_shape %p [[0], [1, 2]] output_shape [%m, 4, 2] : tensor<?x8xf32> into tensor<?x4x2xf32>
  %e = tensor.empty(%m) : tensor<?x4x2xf16>
  %t = linalg.generic {indexing_maps = [#ijk, #ijk], iterator_types = ["parallel", "parallel", "parallel"]} ins(%r : tensor<?x4x2xf32>) outs(%e : tensor<?x4x2xf16>) {
  ^bb0(%in: f32, %out: f16):
    %h = arith.truncf %in : f32 to f16
    linalg.yield %h : f16
  } -> tensor<?x4x2xf16>
  return %t : tensor<?x4x2xf16>
}

// -----

// CHECK-LABEL: func.func @one_operand
// CHECK: linalg.matmul {{.*}} tensor<4x16xf32>, tensor<16x8xf32>
// REMARK: missed: its operands are not all extended from one of f16 and bf16 [linalg.matmul]
// CHECK-LABEL: func.func @f64
// CHECK: linalg.matmul {{.*}} tensor<4x16xf64>
// REMARK: missed: it accumulates in f64 [linalg.matmul]
#ij = affine_map<(i, j) -> (i, j)>
func.func @one_operand(%a: tensor<4x16xf16>, %b: tensor<16x8xf32>, %init: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %ea = tensor.empty() : tensor<4x16xf32>
  %wa = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<4x16xf16>) outs(%ea : tensor<4x16xf32>) {
  ^bb0(%in: f16, %out: f32):
    %w = arith.extf %in : f16 to f32
    linalg.yield %w : f32
  } -> tensor<4x16xf32>
  %p = linalg.matmul ins(%wa, %b : tensor<4x16xf32>, tensor<16x8xf32>) outs(%init : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %p : tensor<4x8xf32>
}
func.func @f64(%a: tensor<4x16xf16>, %b: tensor<16x8xf64>, %init: tensor<4x8xf64>) -> tensor<4x8xf64> {
  %ea = tensor.empty() : tensor<4x16xf64>
  %wa = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<4x16xf16>) outs(%ea : tensor<4x16xf64>) {
  ^bb0(%in: f16, %out: f64):
    %w = arith.extf %in : f16 to f64
    linalg.yield %w : f64
  } -> tensor<4x16xf64>
  %p = linalg.matmul ins(%wa, %b : tensor<4x16xf64>, tensor<16x8xf64>) outs(%init : tensor<4x8xf64>) -> tensor<4x8xf64>
  return %p : tensor<4x8xf64>
}

// -----

// CHECK-LABEL: func.func @gathering_sum
// CHECK: linalg.generic
// CHECK-SAME: ins(%{{.+}} : tensor<4x16xf32>)
// REMARK: missed: its body is not scalar arithmetic [linalg.generic]
#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
func.func @gathering_sum(%a: tensor<4x16xf16>, %init: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %ea = tensor.empty() : tensor<4x16xf32>
  %wa = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<4x16xf16>) outs(%ea : tensor<4x16xf32>) {
  ^bb0(%in: f16, %out: f32):
    %w = arith.extf %in : f16 to f32
    linalg.yield %w : f32
  } -> tensor<4x16xf32>
  %s = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]} ins(%wa : tensor<4x16xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %term = scf.if %c -> f32 {
      scf.yield %in : f32
    } else {
      %n = arith.negf %in : f32
      scf.yield %n : f32
    }
    %t = arith.addf %term, %acc : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  return %s : tensor<4xf32>
}

// -----

// An extension at the end of an elementwise op goes to a contraction that so reads both operands narrow: the tensor
// between them is stored narrow. In the second function the other operand is wide, and all stays.

// CHECK-LABEL: func.func @trailing
// CHECK: %[[N:.+]] = linalg.generic
// CHECK: arith.mulf {{.*}} : f16
// CHECK-NEXT: linalg.yield {{.*}} : f16
// CHECK: linalg.matmul ins(%[[N]], %{{.+}} : tensor<4x16xf16>, tensor<16x8xf16>)
// REMARK: applied: yields a narrow tensor, which its readers extend [linalg.generic]
// CHECK-LABEL: func.func @trailing_to_wide
// CHECK: linalg.yield {{.*}} : f32
// CHECK: tensor.expand_shape {{.*}} into tensor<4x16xf32>
#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i) -> (i)>
func.func @trailing(%a: tensor<4x16xf16>, %b: tensor<16x8xf16>, %init: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %ea = tensor.empty() : tensor<4x16xf32>
  %eb = tensor.empty() : tensor<16x8xf32>
  %wa = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<4x16xf16>) outs(%ea : tensor<4x16xf32>) {
  ^bb0(%in: f16, %out: f32):
    %s = arith.mulf %in, %in : f16
    %w = arith.extf %s : f16 to f32
    linalg.yield %w : f32
  } -> tensor<4x16xf32>
  %wb = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<16x8xf16>) outs(%eb : tensor<16x8xf32>) {
  ^bb0(%in: f16, %out: f32):
    %w = arith.extf %in : f16 to f32
    linalg.yield %w : f32
  } -> tensor<16x8xf32>
  %p = linalg.matmul ins(%wa, %wb : tensor<4x16xf32>, tensor<16x8xf32>) outs(%init : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %p : tensor<4x8xf32>
}
func.func @trailing_to_wide(%a: tensor<64xf16>, %b: tensor<16x8xf32>, %init: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %ea = tensor.empty() : tensor<64xf32>
  %wa = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%a : tensor<64xf16>) outs(%ea : tensor<64xf32>) {
  ^bb0(%in: f16, %out: f32):
    %w = arith.extf %in : f16 to f32
    linalg.yield %w : f32
  } -> tensor<64xf32>
  %r = tensor.expand_shape %wa [[0, 1]] output_shape [4, 16] : tensor<64xf32> into tensor<4x16xf32>
  %p = linalg.matmul ins(%r, %b : tensor<4x16xf32>, tensor<16x8xf32>) outs(%init : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %p : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @read_wide
// CHECK: tensor.expand_shape {{.*}} into tensor<4x2x4xf32>
// REMARK: missed: others read the tensor in its wide type [linalg.generic]
#ij = affine_map<(i, j) -> (i, j)>
#ijk = affine_map<(i, j, k) -> (i, j, k)>
func.func @read_wide(%a: tensor<4x16xf16>, %b: tensor<16x8xf16>, %init: tensor<4x8xf32>) -> (tensor<4x2x4xf32>, tensor<4x2x4xf16>) {
  %p = linalg.matmul ins(%a, %b : tensor<4x16xf16>, tensor<16x8xf16>) outs(%init : tensor<4x8xf32>) -> tensor<4x8xf32>
  %r = tensor.expand_shape %p [[0], [1, 2]] output_shape [4, 2, 4] : tensor<4x8xf32> into tensor<4x2x4xf32>
  %e = tensor.empty() : tensor<4x2x4xf16>
  %t = linalg.generic {indexing_maps = [#ijk, #ijk], iterator_types = ["parallel", "parallel", "parallel"]} ins(%r : tensor<4x2x4xf32>) outs(%e : tensor<4x2x4xf16>) {
  ^bb0(%in: f32, %out: f16):
    %h = arith.truncf %in : f32 to f16
    linalg.yield %h : f16
  } -> tensor<4x2x4xf16>
  return %r, %t : tensor<4x2x4xf32>, tensor<4x2x4xf16>
}

// -----

// Truncated by the producer and extended by every reader; the second function has a reader that computes in f16.

// CHECK-LABEL: func.func @round_trip
// EXACT: arith.truncf
// FAST-NOT: arith.truncf
// FAST-NOT: arith.extf
// CHECK: return
// REMARK: missed: it would drop a rounding, which mode=exact keeps [linalg.generic]
// CHECK-LABEL: func.func @read_narrow
// CHECK: arith.truncf
// CHECK: return
// MISSED: missed: others read the truncated tensor [linalg.generic]
#i = affine_map<(i) -> (i)>
func.func @round_trip(%a: tensor<?xf32>, %half: tensor<?xf16>, %wide: tensor<?xf32>) -> tensor<?xf32> {
  %0 = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%a : tensor<?xf32>) outs(%half : tensor<?xf16>) {
  ^bb0(%in: f32, %out: f16):
    %s = arith.mulf %in, %in : f32
    %h = arith.truncf %s : f32 to f16
    linalg.yield %h : f16
  } -> tensor<?xf16>
  %1 = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%0 : tensor<?xf16>) outs(%wide : tensor<?xf32>) {
  ^bb0(%in: f16, %out: f32):
    %w = arith.extf %in : f16 to f32
    %s = arith.addf %w, %w : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %1 : tensor<?xf32>
}
func.func @read_narrow(%a: tensor<?xf32>, %half: tensor<?xf16>, %wide: tensor<?xf32>) -> (tensor<?xf16>, tensor<?xf32>) {
  %0 = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%a : tensor<?xf32>) outs(%half : tensor<?xf16>) {
  ^bb0(%in: f32, %out: f16):
    %h = arith.truncf %in : f32 to f16
    linalg.yield %h : f16
  } -> tensor<?xf16>
  %1 = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%0 : tensor<?xf16>) outs(%wide : tensor<?xf32>) {
  ^bb0(%in: f16, %out: f32):
    %w = arith.extf %in : f16 to f32
    linalg.yield %w : f32
  } -> tensor<?xf32>
  return %0, %1 : tensor<?xf16>, tensor<?xf32>
}
