// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=hip --iree-rocm-target=gfx942 \
// RUN:   --compile-to=preprocessing --prepass-remarks=all \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-pad-input-channels)' 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// Idempotence.
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=hip --iree-rocm-target=gfx942 \
// RUN:   --compile-to=preprocessing --iree-preprocessing-pass-pipeline='builtin.module(prepass-pad-input-channels)' > %t.once
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=hip --iree-rocm-target=gfx942 --compile-to=preprocessing \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-pad-input-channels,prepass-pad-input-channels)' > %t.twice
// RUN: diff %t.once %t.twice

// RUN: prepass-opt %s --split-input-file --prepass-remarks=all \
// RUN:   --pass-pipeline='builtin.module(prepass-pad-input-channels)' 2>&1 | FileCheck %s --check-prefix=NOTARGET

// NOTARGET: missed: no target is known

// The transpose becomes part of the copy; the batch is dynamic.

// REMARK: applied: reads 4 channels, for wide loads [linalg.conv_2d_nhwc_fhwc]
// CHECK-LABEL: util.func public @stem(
// CHECK: %[[X:.+]] = hal.tensor.import
// CHECK: %[[M:.+]] = linalg.generic {{.*}} outs(%{{.+}} : tensor<?x8x8x4xf16>)
// CHECK: %[[N:.+]] = linalg.index 0
// CHECK: %[[H:.+]] = linalg.index 1
// CHECK: %[[W:.+]] = linalg.index 2
// CHECK: %[[C:.+]] = linalg.index 3
// CHECK: %[[L:.+]] = arith.minui %[[C]], %c2
// CHECK: %[[E:.+]] = tensor.extract %[[X]][%[[N]], %[[L]], %[[H]], %[[W]]] : tensor<?x3x8x8xf16>
// CHECK: %[[T:.+]] = arith.cmpi ult, %[[C]], %c3
// CHECK: arith.select %[[T]], %[[E]], %cst
// CHECK: %[[B:.+]] = iree_tensor_ext.compute_barrier.start %[[M]]
// CHECK: %[[P:.+]] = tensor.pad %[[B]] low[0, 1, 1, 0] high[0, 1, 1, 0]
// CHECK: %[[F:.+]] = tensor.pad %{{.+}} low[0, 0, 0, 0] high[0, 0, 0, 1]
// CHECK: linalg.conv_2d_nhwc_fhwc {{.*}}ins(%[[P]], %[[F]] : tensor<?x10x10x4xf16>, tensor<16x3x3x4xf16>)
func.func @stem(%x: tensor<?x3x8x8xf16>, %init: tensor<?x8x8x16xf32>) -> tensor<?x8x8x16xf32> {
  %w = arith.constant dense<[[[[0.5, 1.0, 2.0]]]]> : tensor<1x1x1x3xf16>
  %we = tensor.empty() : tensor<16x3x3x3xf16>
  %filter = linalg.generic {indexing_maps = [affine_map<(f, h, w, c) -> (0, 0, 0, c)>, affine_map<(f, h, w, c) -> (f, h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%w : tensor<1x1x1x3xf16>) outs(%we : tensor<16x3x3x3xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  } -> tensor<16x3x3x3xf16>
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x3x8x8xf16>
  %e = tensor.empty(%n) : tensor<?x8x8x3xf16>
  %t = linalg.generic {indexing_maps = [affine_map<(n, h, w, c) -> (n, c, h, w)>, affine_map<(n, h, w, c) -> (n, h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<?x3x8x8xf16>) outs(%e : tensor<?x8x8x3xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  } -> tensor<?x8x8x3xf16>
  %p = tensor.pad %t low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f16
  } : tensor<?x8x8x3xf16> to tensor<?x10x10x3xf16>
  %conv = linalg.conv_2d_nhwc_fhwc ins(%p, %filter : tensor<?x10x10x3xf16>, tensor<16x3x3x3xf16>) outs(%init : tensor<?x8x8x16xf32>) -> tensor<?x8x8x16xf32>
  return %conv : tensor<?x8x8x16xf32>
}

// -----

// Nothing is transposed or padded, and the taps come first.

// REMARK: applied: reads 8 channels, for wide loads [linalg.conv_1d_nwc_wcf]
// CHECK-LABEL: util.func public @as_it_is(
// CHECK: linalg.generic {{.*}} outs(%{{.+}} : tensor<2x10x8xbf16>)
// CHECK: tensor.pad %{{.+}} low[0, 0, 0] high[0, 3, 0]
// CHECK: linalg.conv_1d_nwc_wcf {{.*}}: tensor<2x10x8xbf16>, tensor<3x8x16xbf16>)
func.func @as_it_is(%x: tensor<2x10x5xbf16>, %init: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
  %filter = arith.constant dense<0.5> : tensor<3x5x16xbf16>
  %conv = linalg.conv_1d_nwc_wcf ins(%x, %filter : tensor<2x10x5xbf16>, tensor<3x5x16xbf16>) outs(%init : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %conv : tensor<2x8x16xf32>
}

// -----

// REMARK: missed: gfx942 does not ask for more than 4 input channels
// CHECK-LABEL: util.func public @enough(
// CHECK-NOT: tensor.extract
func.func @enough(%x: tensor<2x10x4xf16>, %init: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
  %filter = arith.constant dense<0.5> : tensor<3x4x16xf16>
  %conv = linalg.conv_1d_nwc_wcf ins(%x, %filter : tensor<2x10x4xf16>, tensor<3x4x16xf16>) outs(%init : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %conv : tensor<2x8x16xf32>
}

// -----

// REMARK: missed: the number of input channels is dynamic
// CHECK-LABEL: util.func public @dynamic(
// CHECK-NOT: tensor.extract
func.func @dynamic(%x: tensor<2x10x?xf16>, %filter: tensor<3x?x16xf16>, %init: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
  %conv = linalg.conv_1d_nwc_wcf ins(%x, %filter : tensor<2x10x?xf16>, tensor<3x?x16xf16>) outs(%init : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %conv : tensor<2x8x16xf32>
}

// -----

// REMARK: missed: its filter is not constant, and would be copied each time
// CHECK-LABEL: util.func public @argument(
// CHECK-NOT: tensor.extract
func.func @argument(%x: tensor<2x10x3xf16>, %filter: tensor<3x3x16xf16>, %init: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
  %conv = linalg.conv_1d_nwc_wcf ins(%x, %filter : tensor<2x10x3xf16>, tensor<3x3x16xf16>) outs(%init : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %conv : tensor<2x8x16xf32>
}

// -----

// REMARK: missed: the channels are padded
// CHECK-LABEL: util.func public @padded_channels(
// CHECK-NOT: tensor.extract
func.func @padded_channels(%x: tensor<2x10x2xf16>, %init: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
  %zero = arith.constant 0.0 : f16
  %filter = arith.constant dense<0.5> : tensor<3x3x16xf16>
  %p = tensor.pad %x low[0, 0, 0] high[0, 0, 1] {
  ^bb0(%a: index, %b: index, %c: index):
    tensor.yield %zero : f16
  } : tensor<2x10x2xf16> to tensor<2x10x3xf16>
  %conv = linalg.conv_1d_nwc_wcf ins(%p, %filter : tensor<2x10x3xf16>, tensor<3x3x16xf16>) outs(%init : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %conv : tensor<2x8x16xf32>
}

// -----

// REMARK: missed: the padding is not zeros
// CHECK-LABEL: util.func public @ones(
// CHECK-NOT: tensor.extract
func.func @ones(%x: tensor<2x8x3xf16>, %init: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
  %one = arith.constant 1.0 : f16
  %filter = arith.constant dense<0.5> : tensor<3x3x16xf16>
  %p = tensor.pad %x low[0, 1, 0] high[0, 1, 0] {
  ^bb0(%a: index, %b: index, %c: index):
    tensor.yield %one : f16
  } : tensor<2x8x3xf16> to tensor<2x10x3xf16>
  %conv = linalg.conv_1d_nwc_wcf ins(%p, %filter : tensor<2x10x3xf16>, tensor<3x3x16xf16>) outs(%init : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %conv : tensor<2x8x16xf32>
}

// -----

// REMARK: missed: the padding is dynamic
// CHECK-LABEL: util.func public @moved(
// CHECK-NOT: tensor.extract
func.func @moved(%x: tensor<2x8x3xf16>, %low: index, %high: index, %init: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
  %zero = arith.constant 0.0 : f16
  %filter = arith.constant dense<0.5> : tensor<3x3x16xf16>
  %p = tensor.pad %x low[0, %low, 0] high[0, %high, 0] {
  ^bb0(%a: index, %b: index, %c: index):
    tensor.yield %zero : f16
  } : tensor<2x8x3xf16> to tensor<2x10x3xf16>
  %conv = linalg.conv_1d_nwc_wcf ins(%p, %filter : tensor<2x10x3xf16>, tensor<3x3x16xf16>) outs(%init : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %conv : tensor<2x8x16xf32>
}
