// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-promote-accumulators)' \
// RUN:   --prepass-remarks=all 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-promote-accumulators{carry=none})' \
// RUN:   | FileCheck %s --check-prefix=NONE
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-promote-accumulators{carry=statistics})' \
// RUN:   | FileCheck %s --check-prefix=STATISTICS
// RUN: prepass-opt %s --split-input-file --prepass-remarks=missed -o /dev/null \
// RUN:   --pass-pipeline='builtin.module(prepass-promote-accumulators{kinds=convolution types=f16,bf16})' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=KINDS
// RUN: not prepass-opt %s --pass-pipeline='builtin.module(prepass-promote-accumulators{types=f32})' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TYPE

// Idempotence.
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-promote-accumulators)' > %t.once
// RUN: prepass-opt %s --split-input-file \
// RUN:   --pass-pipeline='builtin.module(prepass-promote-accumulators,prepass-promote-accumulators)' > %t.twice
// RUN: diff %t.once %t.twice

// TYPE: error: {{.*}}option 'types' takes {{.*}}f16, bf16, i8

// A named op stays named, a fill is made wide, and dynamic sizes are those of the init.

// CHECK-LABEL: func.func @matmul
// CHECK-SAME: %[[A:.+]]: tensor<?x64xf16>, %[[B:.+]]: tensor<64x128xf16>, %[[M:.+]]: index
// CHECK: %[[EMPTY:.+]] = tensor.empty(%[[M]]) : tensor<?x128xf32>
// CHECK: %[[FILL:.+]] = linalg.fill ins(%{{.+}} : f32) outs(%[[EMPTY]] : tensor<?x128xf32>)
// CHECK: %[[WIDE:.+]] = linalg.matmul ins(%[[A]], %[[B]] : tensor<?x64xf16>, tensor<64x128xf16>) outs(%[[FILL]] : tensor<?x128xf32>)
// CHECK: %[[OUT:.+]] = linalg.generic
// CHECK-SAME: ins(%[[WIDE]] : tensor<?x128xf32>)
// CHECK: arith.truncf %{{.+}} : f32 to f16
// CHECK: return %[[OUT]]
// REMARK: applied: accumulates in f32 [linalg.matmul]
// KINDS: missed: it is a contraction, which are not to be promoted [linalg.matmul]
func.func @matmul(%a: tensor<?x64xf16>, %b: tensor<64x128xf16>, %m: index) -> tensor<?x128xf16> {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty(%m) : tensor<?x128xf16>
  %fill = linalg.fill ins(%zero : f16) outs(%empty : tensor<?x128xf16>) -> tensor<?x128xf16>
  %0 = linalg.matmul ins(%a, %b : tensor<?x64xf16>, tensor<64x128xf16>) outs(%fill : tensor<?x128xf16>) -> tensor<?x128xf16>
  return %0 : tensor<?x128xf16>
}

// -----

// What is accumulated onto is extended; a convolution in bf16.

// CHECK-LABEL: func.func @conv_onto
// CHECK-SAME: %[[C:[a-z0-9]+]]: tensor<1x4x4x16xbf16>)
// CHECK: %[[INIT:.+]] = linalg.generic {{.*}} ins(%[[C]] : tensor<1x4x4x16xbf16>)
// CHECK: arith.extf
// CHECK: linalg.conv_2d_nhwc_hwcf
// CHECK-SAME: outs(%[[INIT]] : tensor<1x4x4x16xf32>)
// REMARK: applied: accumulates in f32 [linalg.conv_2d_nhwc_hwcf]
func.func @conv_onto(%a: tensor<1x6x6x8xbf16>, %b: tensor<3x3x8x16xbf16>, %c: tensor<1x4x4x16xbf16>) -> tensor<1x4x4x16xbf16> {
  %0 = linalg.conv_2d_nhwc_hwcf ins(%a, %b : tensor<1x6x6x8xbf16>, tensor<3x3x8x16xbf16>) outs(%c : tensor<1x4x4x16xbf16>) -> tensor<1x4x4x16xbf16>
  return %0 : tensor<1x4x4x16xbf16>
}

// -----

// A generic contraction extends its operands, not its products; integers wrap around as before.

// CHECK-LABEL: func.func @generic
// CHECK: ^bb0(%[[X:.+]]: i8, %[[Y:.+]]: i8, %[[ACC:.+]]: i32):
// CHECK-NEXT: %[[WX:.+]] = arith.extsi %[[X]] : i8 to i32
// CHECK-NEXT: %[[WY:.+]] = arith.extsi %[[Y]] : i8 to i32
// CHECK-NEXT: %[[P:.+]] = arith.muli %[[WX]], %[[WY]] : i32
// CHECK-NEXT: arith.addi %[[P]], %[[ACC]] : i32
// CHECK: arith.trunci %{{.+}} : i32 to i8
// REMARK: applied: accumulates in i32 [linalg.generic]
// KINDS: missed: it accumulates in i8, which is not to be promoted [linalg.generic]
func.func @generic(%a: tensor<4x8xi8>, %b: tensor<16x8xi8>, %init: tensor<4x16xi8>) -> tensor<4x16xi8> {
  %0 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<4x8xi8>, tensor<16x8xi8>) outs(%init : tensor<4x16xi8>) {
  ^bb0(%x: i8, %y: i8, %acc: i8):
    %p = arith.muli %x, %y : i8
    %s = arith.addi %p, %acc : i8
    linalg.yield %s : i8
  } -> tensor<4x16xi8>
  return %0 : tensor<4x16xi8>
}

// -----

// A mean of 2^18 numbers. The number of terms is infinite in f16; the mean divides by it in f32.

// CHECK-LABEL: func.func @mean
// CHECK: %[[SUM:.+]] = linalg.generic {{.*}}"reduction"{{.*}} outs(%{{.+}} : tensor<f32>)
// CHECK: %[[MEAN:.+]] = linalg.generic {{.*}} ins(%[[SUM]] : tensor<f32>)
// CHECK: %[[COUNT:.+]] = arith.constant 2.621440e+05 : f32
// CHECK-NEXT: arith.divf %{{.+}}, %[[COUNT]] : f32
// CHECK: ins(%[[MEAN]] : tensor<f32>)
// CHECK: arith.truncf
// NONE-LABEL: func.func @mean
// NONE: arith.truncf
// NONE: arith.divf {{.*}} : f16
// REMARK: applied: accumulates in f32 [linalg.generic]
// REMARK: applied: computes in f32, as the sum that it reads does [linalg.generic]
func.func @mean(%x: tensor<64x4096xf16>) -> tensor<f16> {
  %zero = arith.constant 0.0 : f16
  %n = arith.constant 0x7C00 : f16
  %empty = tensor.empty() : tensor<f16>
  %fill = linalg.fill ins(%zero : f16) outs(%empty : tensor<f16>) -> tensor<f16>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>], iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<64x4096xf16>) outs(%fill : tensor<f16>) {
  ^bb0(%in: f16, %acc: f16):
    %s = arith.addf %in, %acc : f16
    linalg.yield %s : f16
  } -> tensor<f16>
  %mean = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%sum : tensor<f16>) outs(%empty : tensor<f16>) {
  ^bb0(%in: f16, %out: f16):
    %m = arith.divf %in, %n : f16
    linalg.yield %m : f16
  } -> tensor<f16>
  return %mean : tensor<f16>
}

// -----

// An RMS norm: the squares are wide, and the result is truncated once, after the weights. The residual after it is not
// part of the norm.

// CHECK-LABEL: func.func @rms_norm
// CHECK: linalg.generic
// CHECK: arith.mulf {{.*}} : f32
// CHECK: linalg.generic {{.*}}"reduction"
// CHECK: math.rsqrt {{.*}} : f32
// CHECK: linalg.generic
// CHECK-COUNT-2: arith.mulf {{.*}} : f32
// CHECK-NOT: arith.mulf
// CHECK: arith.truncf
// CHECK: arith.addf {{.*}} : f16
// STATISTICS-LABEL: func.func @rms_norm
// STATISTICS: math.rsqrt {{.*}} : f32
// STATISTICS: arith.truncf
// STATISTICS: arith.mulf {{.*}} : f16
// NONE-LABEL: func.func @rms_norm
// NONE: arith.mulf {{.*}} : f16
// NONE: arith.addf {{.*}} : f32
// NONE: math.rsqrt {{.*}} : f16
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i, 0)>
#column = affine_map<(i, j) -> (j)>
func.func @rms_norm(%x: tensor<4x64xf16>, %w: tensor<64xf16>) -> tensor<4x64xf16> {
  %zero = arith.constant 0.0 : f16
  %n = arith.constant 64.0 : f16
  %wide = tensor.empty() : tensor<4x64xf16>
  %thin = tensor.empty() : tensor<4x1xf16>
  %fill = linalg.fill ins(%zero : f16) outs(%thin : tensor<4x1xf16>) -> tensor<4x1xf16>
  %square = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %x : tensor<4x64xf16>, tensor<4x64xf16>) outs(%wide : tensor<4x64xf16>) {
  ^bb0(%a: f16, %b: f16, %out: f16):
    %p = arith.mulf %a, %b : f16
    linalg.yield %p : f16
  } -> tensor<4x64xf16>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%square : tensor<4x64xf16>) outs(%fill : tensor<4x1xf16>) {
  ^bb0(%in: f16, %acc: f16):
    %s = arith.addf %in, %acc : f16
    linalg.yield %s : f16
  } -> tensor<4x1xf16>
  %rms = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%sum : tensor<4x1xf16>) outs(%thin : tensor<4x1xf16>) {
  ^bb0(%in: f16, %out: f16):
    %m = arith.divf %in, %n : f16
    %r = math.rsqrt %m : f16
    linalg.yield %r : f16
  } -> tensor<4x1xf16>
  %normalized = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %rms : tensor<4x64xf16>, tensor<4x1xf16>) outs(%wide : tensor<4x64xf16>) {
  ^bb0(%a: f16, %b: f16, %out: f16):
    %p = arith.mulf %a, %b : f16
    linalg.yield %p : f16
  } -> tensor<4x64xf16>
  %scaled = linalg.generic {indexing_maps = [#all, #column, #all], iterator_types = ["parallel", "parallel"]} ins(%normalized, %w : tensor<4x64xf16>, tensor<64xf16>) outs(%wide : tensor<4x64xf16>) {
  ^bb0(%a: f16, %b: f16, %out: f16):
    %p = arith.mulf %a, %b : f16
    linalg.yield %p : f16
  } -> tensor<4x64xf16>
  %residual = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%scaled, %x : tensor<4x64xf16>, tensor<4x64xf16>) outs(%wide : tensor<4x64xf16>) {
  ^bb0(%a: f16, %b: f16, %out: f16):
    %p = arith.addf %a, %b : f16
    linalg.yield %p : f16
  } -> tensor<4x64xf16>
  return %residual : tensor<4x64xf16>
}

// -----

// A statistic that is wide already and truncated too early; its reshape, and who extends it again.

// CHECK-LABEL: func.func @early
// CHECK-NOT: arith.truncf
// CHECK: math.rsqrt {{.*}} : f32
// CHECK-NOT: arith.extf
// CHECK: return
// REMARK: missed: it accumulates in f32, which is not to be promoted [linalg.generic]
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i, 0)>
#i = affine_map<(i) -> (i)>
func.func @early(%x: tensor<4x64xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %thin = tensor.empty() : tensor<4x1xf32>
  %half = tensor.empty() : tensor<4x1xf16>
  %flat = tensor.empty() : tensor<4xf32>
  %flat_half = tensor.empty() : tensor<4xf16>
  %fill = linalg.fill ins(%zero : f32) outs(%thin : tensor<4x1xf32>) -> tensor<4x1xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x64xf32>) outs(%fill : tensor<4x1xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %s = arith.addf %in, %acc : f32
    linalg.yield %s : f32
  } -> tensor<4x1xf32>
  %early = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%sum : tensor<4x1xf32>) outs(%half : tensor<4x1xf16>) {
  ^bb0(%in: f32, %out: f16):
    %t = arith.truncf %in : f32 to f16
    linalg.yield %t : f16
  } -> tensor<4x1xf16>
  %reshaped = tensor.collapse_shape %early [[0, 1]] : tensor<4x1xf16> into tensor<4xf16>
  %root = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%reshaped : tensor<4xf16>) outs(%flat_half : tensor<4xf16>) {
  ^bb0(%in: f16, %out: f16):
    %r = math.rsqrt %in : f16
    linalg.yield %r : f16
  } -> tensor<4xf16>
  %again = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%root : tensor<4xf16>) outs(%flat : tensor<4xf32>) {
  ^bb0(%in: f16, %out: f32):
    %e = arith.extf %in : f16 to f32
    linalg.yield %e : f32
  } -> tensor<4xf32>
  return %again : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @maximum
// CHECK-NOT: f32
// REMARK: missed: arith.maximumf is no sum [linalg.generic]
// CHECK-LABEL: func.func @argmax
// CHECK-NOT: f32
// REMARK: missed: it has several results [linalg.generic]
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @maximum(%x: tensor<4x64xf16>, %init: tensor<4xf16>) -> tensor<4xf16> {
  %0 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x64xf16>) outs(%init : tensor<4xf16>) {
  ^bb0(%in: f16, %acc: f16):
    %s = arith.maximumf %in, %acc : f16
    linalg.yield %s : f16
  } -> tensor<4xf16>
  return %0 : tensor<4xf16>
}
func.func @argmax(%x: tensor<4x64xf16>, %init: tensor<4xf16>, %index: tensor<4xi64>) -> (tensor<4xf16>, tensor<4xi64>) {
  %0:2 = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x64xf16>) outs(%init, %index : tensor<4xf16>, tensor<4xi64>) {
  ^bb0(%in: f16, %acc: f16, %at: i64):
    %s = arith.maximumf %in, %acc : f16
    linalg.yield %s, %at : f16, i64
  } -> (tensor<4xf16>, tensor<4xi64>)
  return %0#0, %0#1 : tensor<4xf16>, tensor<4xi64>
}

// -----

// CHECK-LABEL: func.func @last
// CHECK-NOT: f32
// REMARK: missed: it adds nothing to its result [linalg.generic]
// CHECK-LABEL: func.func @decayed
// CHECK-NOT: f32
// REMARK: missed: the running sum is used for more than adding to it [linalg.generic]
// CHECK-LABEL: func.func @bits
// CHECK-NOT: f32
// REMARK: missed: arith.bitcast in the body is not known to compute the same in a wider type [linalg.generic]
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @last(%x: tensor<4x64xf16>, %init: tensor<4xf16>) -> tensor<4xf16> {
  %0 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x64xf16>) outs(%init : tensor<4xf16>) {
  ^bb0(%in: f16, %acc: f16):
    linalg.yield %in : f16
  } -> tensor<4xf16>
  return %0 : tensor<4xf16>
}
func.func @decayed(%x: tensor<4x64xf16>, %init: tensor<4xf16>) -> tensor<4xf16> {
  %0 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x64xf16>) outs(%init : tensor<4xf16>) {
  ^bb0(%in: f16, %acc: f16):
    %p = arith.mulf %in, %acc : f16
    %s = arith.addf %p, %acc : f16
    linalg.yield %s : f16
  } -> tensor<4xf16>
  return %0 : tensor<4xf16>
}
func.func @bits(%x: tensor<4x64xf16>, %init: tensor<4xf16>) -> tensor<4xf16> {
  %sign = arith.constant 32767 : i16
  %0 = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x64xf16>) outs(%init : tensor<4xf16>) {
  ^bb0(%in: f16, %acc: f16):
    %b = arith.bitcast %in : f16 to i16
    %c = arith.andi %b, %sign : i16
    %d = arith.bitcast %c : i16 to f16
    %s = arith.addf %d, %acc : f16
    linalg.yield %s : f16
  } -> tensor<4xf16>
  return %0 : tensor<4xf16>
}
