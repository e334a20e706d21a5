// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=hip --iree-rocm-target=gfx942 \
// RUN:   --compile-to=preprocessing --prepass-remarks=all \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-guard-padding)' 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// Idempotence.
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=hip --iree-rocm-target=gfx942 \
// RUN:   --compile-to=preprocessing --iree-preprocessing-pass-pipeline='builtin.module(prepass-guard-padding)' > %t.once
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=hip --iree-rocm-target=gfx942 --compile-to=preprocessing \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-guard-padding,prepass-guard-padding)' > %t.twice
// RUN: diff %t.once %t.twice

// RUN: prepass-opt %s --split-input-file --prepass-remarks=all \
// RUN:   --pass-pipeline='builtin.module(prepass-guard-padding)' 2>&1 | FileCheck %s --check-prefix=NOTARGET

// NOTARGET: missed: padding is fused into convolutions for ROCm alone

// The batch is dynamic.

// REMARK: applied: no reshape will come between it and its convolution
// CHECK-LABEL: util.func public @padded(
// CHECK: %[[M:.+]] = tensor.collapse_shape
// CHECK: %[[B:.+]] = iree_tensor_ext.compute_barrier.start %[[M]] : tensor<?x8x8x8xf16>{%{{.+}}} -> tensor<?x8x8x8xf16>
// CHECK: %[[P:.+]] = tensor.pad %[[B]]
// CHECK: linalg.conv_2d_nhwc_fhwc ins(%[[P]],
func.func @padded(%x: tensor<?x8x8x2x4xf16>, %w: tensor<8x3x3x8xf16>, %init: tensor<?x8x8x8xf32>) -> tensor<?x8x8x8xf32> {
  %zero = arith.constant 0.0 : f16
  %merged = tensor.collapse_shape %x [[0], [1], [2], [3, 4]] : tensor<?x8x8x2x4xf16> into tensor<?x8x8x8xf16>
  %p = tensor.pad %merged low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f16
  } : tensor<?x8x8x8xf16> to tensor<?x10x10x8xf16>
  %conv = linalg.conv_2d_nhwc_fhwc ins(%p, %w : tensor<?x10x10x8xf16>, tensor<8x3x3x8xf16>) outs(%init : tensor<?x8x8x8xf32>) -> tensor<?x8x8x8xf32>
  return %conv : tensor<?x8x8x8xf32>
}

// -----

// REMARK: missed: no convolution reads it
// CHECK-LABEL: util.func public @alone(
// CHECK-NOT: compute_barrier
func.func @alone(%x: tensor<4xf16>) -> tensor<6xf16> {
  %zero = arith.constant 0.0 : f16
  %p = tensor.pad %x low[1] high[1] {
  ^bb0(%a: index):
    tensor.yield %zero : f16
  } : tensor<4xf16> to tensor<6xf16>
  return %p : tensor<6xf16>
}

// -----

// REMARK: applied: its padding stays apart, for vector loads
// CHECK-LABEL: util.func public @depthwise(
// CHECK: %[[P:.+]] = tensor.pad
// CHECK: %[[B:.+]] = iree_tensor_ext.compute_barrier.start %[[P]]
// CHECK: linalg.depthwise_conv_1d_ncw_cw ins(%[[B]],
func.func @depthwise(%x: tensor<2x8x10xf16>, %w: tensor<8x3xf16>, %init: tensor<2x8x10xf32>) -> tensor<2x8x10xf32> {
  %zero = arith.constant 0.0 : f16
  %p = tensor.pad %x low[0, 0, 1] high[0, 0, 1] {
  ^bb0(%a: index, %b: index, %c: index):
    tensor.yield %zero : f16
  } : tensor<2x8x10xf16> to tensor<2x8x12xf16>
  %conv = linalg.depthwise_conv_1d_ncw_cw ins(%p, %w : tensor<2x8x12xf16>, tensor<8x3xf16>) outs(%init : tensor<2x8x10xf32>) -> tensor<2x8x10xf32>
  return %conv : tensor<2x8x10xf32>
}
