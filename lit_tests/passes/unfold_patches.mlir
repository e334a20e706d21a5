// RUN: prepass-opt %s --split-input-file --prepass-remarks=all --pass-pipeline='builtin.module(prepass-unfold-patches)' \
// RUN:   2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// Idempotence.
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-unfold-patches)' > %t.once
// RUN: prepass-opt %s --split-input-file \
// RUN:   --pass-pipeline='builtin.module(prepass-unfold-patches,prepass-unfold-patches)' > %t.twice
// RUN: diff %t.once %t.twice

// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=hip --iree-rocm-target=gfx942 \
// RUN:   --compile-to=preprocessing --iree-preprocessing-pass-pipeline='builtin.module(prepass-unfold-patches)' \
// RUN:   | FileCheck %s --check-prefix=GFX

// The batch is dynamic, and the convolution adds to a tensor.

// REMARK: applied: its patches are rows of a contraction
// CHECK-LABEL: @first
// CHECK: %[[X:.+]] = tensor.expand_shape %arg0 {{.*}}, 3, 14, 16, 10, 16]
// CHECK: linalg.generic {{.*}} ins(%[[X]]
// CHECK: %[[A:.+]] = tensor.collapse_shape %{{.+}} {{\[\[}}0, 1, 2], [3, 4, 5]] : tensor<?x14x10x3x16x16xf16> into tensor<?x768xf16>
// CHECK: %[[B:.+]] = tensor.collapse_shape %arg1 {{.*}} into tensor<8x768xf16>
// CHECK: linalg.matmul {{.*}} ins(%[[A]], %[[B]] : tensor<?x768xf16>, tensor<8x768xf16>)
// CHECK: arith.addf
// GFX: %[[X:.+]] = tensor.expand_shape %{{.+}}, 3, 14, 16, 10, 16]
// GFX: linalg.generic {{.*}} ins(%[[X]], %{{.+}} : tensor<?x3x14x16x10x16xf16>, tensor<8x3x16x16xf16>) outs(%{{.+}} : tensor<?x8x14x10xf32>)
func.func @first(%x: tensor<?x3x224x160xf16>, %w: tensor<8x3x16x16xf16>, %init: tensor<?x8x14x10xf32>) -> tensor<?x8x14x10xf32> {
  %conv = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<16> : vector<2xi64>} ins(%x, %w : tensor<?x3x224x160xf16>, tensor<8x3x16x16xf16>) outs(%init : tensor<?x8x14x10xf32>) -> tensor<?x8x14x10xf32>
  return %conv : tensor<?x8x14x10xf32>
}

// -----

// REMARK: applied: its patches are rows of a contraction
// CHECK-LABEL: @last
// CHECK: %[[B:.+]] = tensor.collapse_shape %arg1 {{.*}} into tensor<8x6xf32>
// CHECK: linalg.matmul ins(%{{.+}}, %[[B]] : tensor<10x8xf32>, tensor<8x6xf32>)
func.func @last(%x: tensor<2x10x4xf32>, %w: tensor<2x4x6xf32>) -> tensor<2x5x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  %conv = linalg.conv_1d_nwc_wcf {dilations = dense<1> : vector<1xi64>, strides = dense<2> : vector<1xi64>} ins(%x, %w : tensor<2x10x4xf32>, tensor<2x4x6xf32>) outs(%init : tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  return %conv : tensor<2x5x6xf32>
}

// -----

// REMARK: missed: the filter is dilated
// CHECK-LABEL: @dilated
// CHECK: linalg.conv_1d_nwc_wcf
func.func @dilated(%x: tensor<2x11x4xf32>, %w: tensor<2x4x6xf32>, %init: tensor<2x5x6xf32>) -> tensor<2x5x6xf32> {
  %conv = linalg.conv_1d_nwc_wcf {dilations = dense<2> : vector<1xi64>, strides = dense<2> : vector<1xi64>} ins(%x, %w : tensor<2x11x4xf32>, tensor<2x4x6xf32>) outs(%init : tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  return %conv : tensor<2x5x6xf32>
}

// -----

// REMARK: missed: rows or columns at the edge belong to no patch
// CHECK-LABEL: @edge
// CHECK: linalg.conv_1d_nwc_wcf
func.func @edge(%x: tensor<2x11x4xf32>, %w: tensor<2x4x6xf32>, %init: tensor<2x5x6xf32>) -> tensor<2x5x6xf32> {
  %conv = linalg.conv_1d_nwc_wcf {dilations = dense<1> : vector<1xi64>, strides = dense<2> : vector<1xi64>} ins(%x, %w : tensor<2x11x4xf32>, tensor<2x4x6xf32>) outs(%init : tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  return %conv : tensor<2x5x6xf32>
}

// -----

// REMARK: missed: a size other than that of the batch is dynamic
// CHECK-LABEL: @dynamic
// CHECK: linalg.conv_1d_nwc_wcf
func.func @dynamic(%x: tensor<2x?x4xf32>, %w: tensor<2x4x6xf32>, %init: tensor<2x?x6xf32>) -> tensor<2x?x6xf32> {
  %conv = linalg.conv_1d_nwc_wcf {dilations = dense<1> : vector<1xi64>, strides = dense<2> : vector<1xi64>} ins(%x, %w : tensor<2x?x4xf32>, tensor<2x4x6xf32>) outs(%init : tensor<2x?x6xf32>) -> tensor<2x?x6xf32>
  return %conv : tensor<2x?x6xf32>
}

// -----

// Overlapping patches, and single pixels: convolutions like any other.

// REMARK-NOT: remark
// CHECK-LABEL: @others
// CHECK-COUNT-2: linalg.conv_1d_nwc_wcf
func.func @others(%x: tensor<2x10x4xf32>, %w: tensor<2x4x6xf32>, %v: tensor<1x4x6xf32>, %a: tensor<2x9x6xf32>, %b: tensor<2x10x6xf32>) -> (tensor<2x9x6xf32>, tensor<2x10x6xf32>) {
  %0 = linalg.conv_1d_nwc_wcf ins(%x, %w : tensor<2x10x4xf32>, tensor<2x4x6xf32>) outs(%a : tensor<2x9x6xf32>) -> tensor<2x9x6xf32>
  %1 = linalg.conv_1d_nwc_wcf ins(%x, %v : tensor<2x10x4xf32>, tensor<1x4x6xf32>) outs(%b : tensor<2x10x6xf32>) -> tensor<2x10x6xf32>
  return %0, %1 : tensor<2x9x6xf32>, tensor<2x10x6xf32>
}
