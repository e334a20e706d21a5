// RUN: prepass-opt %s --split-input-file --prepass-remarks=all \
// RUN:   --pass-pipeline='builtin.module(prepass-fold-contraction-layouts{when=always})' 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
// RUN: prepass-opt %s --split-input-file --prepass-remarks=missed \
// RUN:   --pass-pipeline='builtin.module(prepass-fold-contraction-layouts)' 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=local --iree-llvmcpu-target-cpu=generic \
// RUN:   --iree-hal-local-target-device-backends=llvm-cpu --compile-to=preprocessing --prepass-remarks=missed \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-fold-contraction-layouts)' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=CPU
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=hip --iree-rocm-target=gfx1100 \
// RUN:   --compile-to=preprocessing --prepass-remarks=missed \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-fold-contraction-layouts)' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OTHER
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=hip --iree-rocm-target=gfx942 \
// RUN:   --compile-to=preprocessing --prepass-remarks=all \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-fold-contraction-layouts)' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=GFX942

// Idempotence.
// RUN: prepass-opt %s --split-input-file \
// RUN:   --pass-pipeline='builtin.module(prepass-fold-contraction-layouts{when=always})' > %t.once
// RUN: prepass-opt %t.once --split-input-file --prepass-remarks=applied -o /dev/null \
// RUN:   --pass-pipeline='builtin.module(prepass-fold-contraction-layouts{when=always})' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=AGAIN --allow-empty
// AGAIN-NOT: applied:

// NONE: missed: no target is known to gain from it [linalg.batch_matmul]
// CPU: missed: llvm-cpu multiplies plain matrices faster [linalg.batch_matmul]
// OTHER: missed: nothing is known of it on gfx1100 [linalg.batch_matmul]
// GFX942: applied: writes its result as it is read, and reads its weight as it is stored [linalg.batch_matmul]
// GFX942: missed: gfx942 computes few rows without matrix instructions, and the layout does not matter [linalg.matmul]
// REMARK-DAG: missed: it accumulates onto a tensor [linalg.matmul]
// REMARK-DAG: missed: its products are rounded before they are added [linalg.generic]
// REMARK-DAG: missed: both operands have a batch dim [linalg.batch_matmul]

// A copy of the weight for each batch, a bias, heads.

// CHECK-LABEL: @heads
// CHECK-SAME: %[[X:.+]]: tensor<2x64x32xf16>
// CHECK: %[[W:.+]] = util.global.load @w
// CHECK: %[[WH:.+]] = tensor.expand_shape %[[W]] {{.+}} into tensor<4x16x32xf16>
// CHECK: %[[P:.+]] = linalg.generic {{.+}} ins(%[[X]], %[[WH]] : {{.+}}) outs(%{{.+}} : tensor<2x4x64x16xf32>)
// CHECK: %[[B:.+]] = linalg.generic {{.+}} ins(%[[P]], %{{.+}} : {{.+}}) outs(%{{.+}} : tensor<2x4x64x16xf16>)
// CHECK: return %[[B]]
util.global private @w = #flow.parameter.named<"m"::"w"> : tensor<64x32xf16>
util.global private @b = #flow.parameter.named<"m"::"b"> : tensor<64xf16>
util.func public @heads(%x: tensor<2x64x32xf16>) -> tensor<2x4x64x16xf16> {
  %zero = arith.constant 0.0 : f32
  %w = util.global.load @w : tensor<64x32xf16>
  %b = util.global.load @b : tensor<64xf16>
  %et = tensor.empty() : tensor<32x64xf16>
  %t = linalg.transpose ins(%w : tensor<64x32xf16>) outs(%et : tensor<32x64xf16>) permutation = [1, 0]
  %ew = tensor.empty() : tensor<2x32x64xf16>
  %wb = linalg.broadcast ins(%t : tensor<32x64xf16>) outs(%ew : tensor<2x32x64xf16>) dimensions = [0]
  %e = tensor.empty() : tensor<2x64x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %0 = linalg.batch_matmul ins(%x, %wb : tensor<2x64x32xf16>, tensor<2x32x64xf16>) outs(%f : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %e16 = tensor.empty() : tensor<2x64x64xf16>
  %1 = linalg.generic {indexing_maps = [affine_map<(b, m, n) -> (b, m, n)>, affine_map<(b, m, n) -> (n)>, affine_map<(b, m, n) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%0, %b : tensor<2x64x64xf32>, tensor<64xf16>) outs(%e16 : tensor<2x64x64xf16>) {
  ^bb0(%in: f32, %add: f16, %out: f16):
    %c = arith.truncf %in : f32 to f16
    %s = arith.addf %c, %add : f16
    linalg.yield %s : f16
  } -> tensor<2x64x64xf16>
  %2 = tensor.expand_shape %1 [[0], [1], [2, 3]] output_shape [2, 64, 4, 16] : tensor<2x64x64xf16> into tensor<2x64x4x16xf16>
  %eh = tensor.empty() : tensor<2x4x64x16xf16>
  %3 = linalg.transpose ins(%2 : tensor<2x64x4x16xf16>) outs(%eh : tensor<2x4x64x16xf16>) permutation = [0, 2, 1, 3]
  util.return %3 : tensor<2x4x64x16xf16>
}

// -----

// Any number of rows.

// CHECK-LABEL: @dynamic
// CHECK: linalg.generic {{.+}} outs(%{{.+}} : tensor<48x?xf32>)
// CHECK-NOT: linalg.transpose
// CHECK: return
util.global private @w = #flow.parameter.named<"m"::"w"> : tensor<32x48xf32>
util.func public @dynamic(%x: tensor<?x32xf32>, %e: tensor<?x48xf32>, %et: tensor<48x?xf32>) -> tensor<48x?xf32> {
  %zero = arith.constant 0.0 : f32
  %w = util.global.load @w : tensor<32x48xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x48xf32>) -> tensor<?x48xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<?x32xf32>, tensor<32x48xf32>) outs(%f : tensor<?x48xf32>) -> tensor<?x48xf32>
  %1 = linalg.transpose ins(%0 : tensor<?x48xf32>) outs(%et : tensor<48x?xf32>) permutation = [1, 0]
  util.return %1 : tensor<48x?xf32>
}

// -----

// Few rows.

// CHECK-LABEL: @few_rows
// CHECK: linalg.generic
// CHECK-NOT: linalg.transpose
util.global private @w = #flow.parameter.named<"m"::"w"> : tensor<48x32xf32>
util.func public @few_rows(%x: tensor<2x32xf32>) -> tensor<2x48xf32> {
  %zero = arith.constant 0.0 : f32
  %w = util.global.load @w : tensor<48x32xf32>
  %et = tensor.empty() : tensor<32x48xf32>
  %t = linalg.transpose ins(%w : tensor<48x32xf32>) outs(%et : tensor<32x48xf32>) permutation = [1, 0]
  %e = tensor.empty() : tensor<2x48xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x48xf32>) -> tensor<2x48xf32>
  %0 = linalg.matmul ins(%x, %t : tensor<2x32xf32>, tensor<32x48xf32>) outs(%f : tensor<2x48xf32>) -> tensor<2x48xf32>
  util.return %0 : tensor<2x48xf32>
}

// -----

// What is left alone: nothing to fold, a start that is not 0, rounded products, two batches, a weight of every call.

// CHECK-LABEL: @left_alone
// CHECK-COUNT-2: linalg.matmul
// CHECK: arith.truncf
// CHECK: linalg.batch_matmul
// CHECK: linalg.matmul
// CHECK: linalg.transpose
util.global private @w = #flow.parameter.named<"m"::"w"> : tensor<32x32xf32>
util.global private @c = #flow.parameter.named<"m"::"c"> : tensor<2x32x32xf32>
util.func public @left_alone(%x: tensor<32x32xf32>, %y: tensor<32x32xf32>, %z: tensor<2x32x32xf32>) -> (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf16>, tensor<2x32x32xf32>, tensor<32x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %zero16 = arith.constant 0.0 : f16
  %w = util.global.load @w : tensor<32x32xf32>
  %c = util.global.load @c : tensor<2x32x32xf32>
  %e = tensor.empty() : tensor<32x32xf32>
  %e16 = tensor.empty() : tensor<32x32xf16>
  %eb = tensor.empty() : tensor<2x32x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<32x32xf32>) -> tensor<32x32xf32>
  %f16 = linalg.fill ins(%zero16 : f16) outs(%e16 : tensor<32x32xf16>) -> tensor<32x32xf16>
  %fb = linalg.fill ins(%zero : f32) outs(%eb : tensor<2x32x32xf32>) -> tensor<2x32x32xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<32x32xf32>, tensor<32x32xf32>) outs(%f : tensor<32x32xf32>) -> tensor<32x32xf32>
  %1 = linalg.matmul ins(%x, %w : tensor<32x32xf32>, tensor<32x32xf32>) outs(%y : tensor<32x32xf32>) -> tensor<32x32xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<32x32xf32>, tensor<32x32xf32>) outs(%f16 : tensor<32x32xf16>) {
  ^bb0(%p: f32, %q: f32, %out: f16):
    %m = arith.mulf %p, %q : f32
    %t = arith.truncf %m : f32 to f16
    %sum = arith.addf %out, %t : f16
    linalg.yield %sum : f16
  } -> tensor<32x32xf16>
  %3 = linalg.batch_matmul ins(%z, %c : tensor<2x32x32xf32>, tensor<2x32x32xf32>) outs(%fb : tensor<2x32x32xf32>) -> tensor<2x32x32xf32>
  %4 = linalg.matmul ins(%x, %y : tensor<32x32xf32>, tensor<32x32xf32>) outs(%f : tensor<32x32xf32>) -> tensor<32x32xf32>
  %5 = linalg.transpose ins(%4 : tensor<32x32xf32>) outs(%e : tensor<32x32xf32>) permutation = [1, 0]
  util.return %0, %1, %2, %3, %5 : tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf16>, tensor<2x32x32xf32>, tensor<32x32xf32>
}
