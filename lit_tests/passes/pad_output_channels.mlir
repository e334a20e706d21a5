// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=hip --iree-rocm-target=gfx942 \
// RUN:   --compile-to=preprocessing --prepass-remarks=all \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-pad-output-channels)' 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// Idempotence.
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=hip --iree-rocm-target=gfx942 \
// RUN:   --compile-to=preprocessing --iree-preprocessing-pass-pipeline='builtin.module(prepass-pad-output-channels)' > %t.once
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=hip --iree-rocm-target=gfx942 --compile-to=preprocessing \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-pad-output-channels,prepass-pad-output-channels)' > %t.twice
// RUN: diff %t.once %t.twice

// RUN: prepass-opt %s --split-input-file --prepass-remarks=all \
// RUN:   --pass-pipeline='builtin.module(prepass-pad-output-channels)' 2>&1 | FileCheck %s --check-prefix=NOTARGET

// NOTARGET: missed: no target is known

// Of one channel. The batch and the image are dynamic; the convolution adds to a tensor.

// REMARK: applied: computes 8 output channels, for matrix instructions
// CHECK-LABEL: util.func public @last(
// CHECK: %[[W:.+]] = tensor.pad %{{.+}} low[0, 0, 0, 0] high[7, 0, 0, 0]
// CHECK: %[[C:.+]] = linalg.conv_2d_nhwc_fhwc ins(%{{.+}}, %[[W]] : tensor<?x?x66x320xf16>, tensor<8x3x3x320xf16>) outs(%{{.+}} : tensor<?x?x64x8xf32>)
// CHECK: tensor.extract_slice %[[C]][0, 0, 0, 0] [%{{.+}}, %{{.+}}, 64, 1]
// CHECK: linalg.generic
// CHECK: arith.addf
func.func @last(%x: tensor<?x?x66x320xf16>, %w: tensor<1x3x3x320xf16>, %init: tensor<?x?x64x1xf32>) -> tensor<?x?x64x1xf32> {
  %conv = linalg.conv_2d_nhwc_fhwc ins(%x, %w : tensor<?x?x66x320xf16>, tensor<1x3x3x320xf16>) outs(%init : tensor<?x?x64x1xf32>) -> tensor<?x?x64x1xf32>
  return %conv : tensor<?x?x64x1xf32>
}

// -----

// Three channels of single pixels.

// REMARK: applied: computes 8 output channels, for matrix instructions
// CHECK-LABEL: util.func public @first(
// CHECK: tensor.pad %{{.+}} low[0, 0, 0, 0] high[5, 0, 0, 0]
// CHECK: linalg.conv_2d_nchw_fchw {{.*}} tensor<2x8x32x32xf32>
// CHECK: tensor.extract_slice {{.*}} [2, 3, 32, 32]
func.func @first(%x: tensor<2x128x63x63xf16>, %w: tensor<3x128x1x1xf16>) -> tensor<2x3x32x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3x32x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2x3x32x32xf32>) -> tensor<2x3x32x32xf32>
  %conv = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%x, %w : tensor<2x128x63x63xf16>, tensor<3x128x1x1xf16>) outs(%init : tensor<2x3x32x32xf32>) -> tensor<2x3x32x32xf32>
  return %conv : tensor<2x3x32x32xf32>
}

// -----

// REMARK: missed: the 3 output channels are padded within the kernel
// CHECK-LABEL: util.func public @windows(
// CHECK-NOT: tensor.pad
func.func @windows(%x: tensor<2x66x128xf16>, %w: tensor<3x128x3xf16>, %init: tensor<2x64x3xf32>) -> tensor<2x64x3xf32> {
  %conv = linalg.conv_1d_nwc_wcf ins(%x, %w : tensor<2x66x128xf16>, tensor<3x128x3xf16>) outs(%init : tensor<2x64x3xf32>) -> tensor<2x64x3xf32>
  return %conv : tensor<2x64x3xf32>
}

// -----

// REMARK: missed: gfx942 does not ask for more than 5 output channels
// CHECK-LABEL: util.func public @enough(
// CHECK-NOT: tensor.pad
func.func @enough(%x: tensor<2x66x320xf16>, %w: tensor<3x320x5xf16>, %init: tensor<2x64x5xf32>) -> tensor<2x64x5xf32> {
  %conv = linalg.conv_1d_nwc_wcf ins(%x, %w : tensor<2x66x320xf16>, tensor<3x320x5xf16>) outs(%init : tensor<2x64x5xf32>) -> tensor<2x64x5xf32>
  return %conv : tensor<2x64x5xf32>
}

// -----

// REMARK: missed: few products are summed up for each result
// CHECK-LABEL: util.func public @few(
// CHECK-NOT: tensor.pad
func.func @few(%x: tensor<2x66x4xf16>, %w: tensor<3x4x1xf16>, %init: tensor<2x64x1xf32>) -> tensor<2x64x1xf32> {
  %conv = linalg.conv_1d_nwc_wcf ins(%x, %w : tensor<2x66x4xf16>, tensor<3x4x1xf16>) outs(%init : tensor<2x64x1xf32>) -> tensor<2x64x1xf32>
  return %conv : tensor<2x64x1xf32>
}

// -----

// REMARK: missed: a size of the filter is dynamic
// CHECK-LABEL: util.func public @dynamic(
// CHECK-NOT: tensor.pad
func.func @dynamic(%x: tensor<2x66x320xf16>, %w: tensor<3x320x?xf16>, %init: tensor<2x64x?xf32>) -> tensor<2x64x?xf32> {
  %conv = linalg.conv_1d_nwc_wcf ins(%x, %w : tensor<2x66x320xf16>, tensor<3x320x?xf16>) outs(%init : tensor<2x64x?xf32>) -> tensor<2x64x?xf32>
  return %conv : tensor<2x64x?xf32>
}
