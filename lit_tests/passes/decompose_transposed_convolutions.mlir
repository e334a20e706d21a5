// RUN: prepass-opt %s --split-input-file --prepass-remarks=all \
// RUN:   --pass-pipeline='builtin.module(prepass-decompose-transposed-convolutions)' 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// Idempotence.
// RUN: prepass-opt %s --split-input-file \
// RUN:   --pass-pipeline='builtin.module(prepass-decompose-transposed-convolutions)' > %t.once
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-decompose-transposed-convolutions,prepass-decompose-transposed-convolutions)' > %t.twice
// RUN: diff %t.once %t.twice

// gfx942 takes filters with the channels out first.
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=hip --iree-rocm-target=gfx942 \
// RUN:   --compile-to=preprocessing --iree-preprocessing-pass-pipeline='builtin.module(prepass-decompose-transposed-convolutions)' \
// RUN:   | FileCheck %s --check-prefix=GFX

// GFX: linalg.conv_2d_nhwc_fhwc

// The stride divides the kernel; the batch is dynamic; a bias and a truncation are part of the interleaving.

// REMARK: applied: computed as the 4 phases of its result
// CHECK-LABEL: @kernel_4
// CHECK-DAG: %[[X:.+]] = tensor.pad %{{.+}} low[0, 1, 1, 0] high[0, 1, 1, 0]
// CHECK-DAG: tensor.extract %arg1[%{{.+}}] : tensor<24x16x4x4xf16>
// CHECK: %[[W:.+]] = tensor.collapse_shape %{{.+}} {{\[\[}}0], [1], [2], [3, 4, 5]] : tensor<2x2x16x2x2x24xf16> into tensor<2x2x16x96xf16>
// CHECK: %[[C:.+]] = linalg.conv_2d_nhwc_hwcf {{.*}}ins(%[[X]], %[[W]] : tensor<?x11x11x16xf16>, tensor<2x2x16x96xf16>)
// CHECK: tensor.expand_shape %[[C]] {{.*}}, 10, 10, 2, 2, 24]
// CHECK: ins(%{{.+}}, %arg2 : tensor<?x10x2x10x2x24xf32>, tensor<24xf32>)
// CHECK: arith.truncf
// CHECK: tensor.collapse_shape %{{.+}} into tensor<?x20x20x24xf16>
// CHECK: tensor.extract_slice %{{.+}}[0, 1, 1, 0] [%{{.+}}, 18, 18, 24]
// CHECK: return %{{.+}} : tensor<?x24x18x18xf16>
#id = affine_map<(n, f, h, w) -> (n, f, h, w)>
#channel = affine_map<(n, f, h, w) -> (f)>
func.func @kernel_4(%x: tensor<?x16x9x9xf16>, %w: tensor<24x16x4x4xf16>, %bias: tensor<24xf32>) -> tensor<?x24x18x18xf16> {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x16x9x9xf16>
  %e = tensor.empty(%n) : tensor<?x16x21x21xf16>
  %f = linalg.fill ins(%zero : f16) outs(%e : tensor<?x16x21x21xf16>) -> tensor<?x16x21x21xf16>
  %spread = tensor.insert_slice %x into %f[0, 0, 2, 2] [%n, 16, 9, 9] [1, 1, 2, 2] : tensor<?x16x9x9xf16> into tensor<?x16x21x21xf16>
  %o = tensor.empty(%n) : tensor<?x24x18x18xf32>
  %init = linalg.generic {indexing_maps = [#channel, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%bias : tensor<24xf32>) outs(%o : tensor<?x24x18x18xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<?x24x18x18xf32>
  %conv = linalg.conv_2d_nchw_fchw ins(%spread, %w : tensor<?x16x21x21xf16>, tensor<24x16x4x4xf16>) outs(%init : tensor<?x24x18x18xf32>) -> tensor<?x24x18x18xf32>
  %h = tensor.empty(%n) : tensor<?x24x18x18xf16>
  %narrow = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%conv : tensor<?x24x18x18xf32>) outs(%h : tensor<?x24x18x18xf16>) {
  ^bb0(%in: f32, %out: f16):
    %t = arith.truncf %in : f32 to f16
    linalg.yield %t : f16
  } -> tensor<?x24x18x18xf16>
  return %narrow : tensor<?x24x18x18xf16>
}

// -----

// The kernel is padded to twice the stride; zeros around the spread input are a pad of their own; channels are last.

// REMARK: applied: computed as the 2 phases of its result
// CHECK-LABEL: @kernel_3_of_one_dim
// CHECK: tensor.pad %arg1 low[0, 0, 0] high[1, 0, 0]
// CHECK: linalg.conv_1d_nwc_wcf {{.*}} tensor<2x4x12xf32>)
// CHECK-NOT: tensor.extract_slice
// CHECK: return
func.func @kernel_3_of_one_dim(%x: tensor<2x7x4xf32>, %w: tensor<3x4x6xf32>) -> tensor<2x14x6xf32> {
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<2x13x4xf32>
  %spread = tensor.insert_slice %x into %zeros[0, 0, 0] [2, 7, 4] [1, 2, 1] : tensor<2x7x4xf32> into tensor<2x13x4xf32>
  %padded = tensor.pad %spread low[0, 1, 0] high[0, 2, 0] {
  ^bb0(%a: index, %b: index, %c: index):
    tensor.yield %zero : f32
  } : tensor<2x13x4xf32> to tensor<2x16x4xf32>
  %o = tensor.empty() : tensor<2x14x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%o : tensor<2x14x6xf32>) -> tensor<2x14x6xf32>
  %conv = linalg.conv_1d_nwc_wcf ins(%padded, %w : tensor<2x16x4xf32>, tensor<3x4x6xf32>) outs(%init : tensor<2x14x6xf32>) -> tensor<2x14x6xf32>
  return %conv : tensor<2x14x6xf32>
}

// -----

// REMARK: missed: it has dilations of its own
// CHECK-LABEL: @dilated
// CHECK: tensor.insert_slice
func.func @dilated(%x: tensor<2x4x7xf32>, %w: tensor<6x4x3xf32>, %init: tensor<2x6x11xf32>) -> tensor<2x6x11xf32> {
  %zeros = arith.constant dense<0.0> : tensor<2x4x15xf32>
  %spread = tensor.insert_slice %x into %zeros[0, 0, 1] [2, 4, 7] [1, 1, 2] : tensor<2x4x7xf32> into tensor<2x4x15xf32>
  %conv = linalg.conv_1d_ncw_fcw {dilations = dense<2> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%spread, %w : tensor<2x4x15xf32>, tensor<6x4x3xf32>) outs(%init : tensor<2x6x11xf32>) -> tensor<2x6x11xf32>
  return %conv : tensor<2x6x11xf32>
}

// -----

// REMARK: missed: it adds to a tensor that is neither zeros nor a bias
// CHECK-LABEL: @adds
// CHECK: tensor.insert_slice
func.func @adds(%x: tensor<2x4x7xf32>, %w: tensor<6x4x3xf32>, %init: tensor<2x6x13xf32>) -> tensor<2x6x13xf32> {
  %zeros = arith.constant dense<0.0> : tensor<2x4x15xf32>
  %spread = tensor.insert_slice %x into %zeros[0, 0, 1] [2, 4, 7] [1, 1, 2] : tensor<2x4x7xf32> into tensor<2x4x15xf32>
  %conv = linalg.conv_1d_ncw_fcw ins(%spread, %w : tensor<2x4x15xf32>, tensor<6x4x3xf32>) outs(%init : tensor<2x6x13xf32>) -> tensor<2x6x13xf32>
  return %conv : tensor<2x6x13xf32>
}

// -----

// REMARK: missed: where the spread elements go is not known at compile time
func.func @somewhere(%x: tensor<2x4x7xf32>, %w: tensor<6x4x3xf32>, %init: tensor<2x6x13xf32>, %at: index) -> tensor<2x6x13xf32> {
  %zeros = arith.constant dense<0.0> : tensor<2x4x15xf32>
  %spread = tensor.insert_slice %x into %zeros[0, 0, %at] [2, 4, 7] [1, 1, 2] : tensor<2x4x7xf32> into tensor<2x4x15xf32>
  %conv = linalg.conv_1d_ncw_fcw ins(%spread, %w : tensor<2x4x15xf32>, tensor<6x4x3xf32>) outs(%init : tensor<2x6x13xf32>) -> tensor<2x6x13xf32>
  return %conv : tensor<2x6x13xf32>
}

// -----

// REMARK: missed: a size other than that of the batch is dynamic
func.func @dynamic(%x: tensor<2x4x?xf32>, %w: tensor<6x4x3xf32>, %init: tensor<2x6x?xf32>, %n: index, %m: index) -> tensor<2x6x?xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%m) : tensor<2x4x?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x?xf32>) -> tensor<2x4x?xf32>
  %spread = tensor.insert_slice %x into %zeros[0, 0, 1] [2, 4, %n] [1, 1, 2] : tensor<2x4x?xf32> into tensor<2x4x?xf32>
  %conv = linalg.conv_1d_ncw_fcw ins(%spread, %w : tensor<2x4x?xf32>, tensor<6x4x3xf32>) outs(%init : tensor<2x6x?xf32>) -> tensor<2x6x?xf32>
  return %conv : tensor<2x6x?xf32>
}

// -----

// REMARK: missed: channels or batch are spread
func.func @channels(%x: tensor<2x2x7xf32>, %w: tensor<6x4x3xf32>, %init: tensor<2x6x13xf32>) -> tensor<2x6x13xf32> {
  %zeros = arith.constant dense<0.0> : tensor<2x4x15xf32>
  %spread = tensor.insert_slice %x into %zeros[0, 0, 1] [2, 2, 7] [1, 2, 2] : tensor<2x2x7xf32> into tensor<2x4x15xf32>
  %conv = linalg.conv_1d_ncw_fcw ins(%spread, %w : tensor<2x4x15xf32>, tensor<6x4x3xf32>) outs(%init : tensor<2x6x13xf32>) -> tensor<2x6x13xf32>
  return %conv : tensor<2x6x13xf32>
}

// -----

// Elements spread into ones: a convolution like any other.

// REMARK-NOT: remark
// CHECK-LABEL: @ones
// CHECK: tensor.insert_slice
func.func @ones(%x: tensor<2x4x7xf32>, %w: tensor<6x4x3xf32>, %init: tensor<2x6x13xf32>) -> tensor<2x6x13xf32> {
  %ones = arith.constant dense<1.0> : tensor<2x4x15xf32>
  %spread = tensor.insert_slice %x into %ones[0, 0, 1] [2, 4, 7] [1, 1, 2] : tensor<2x4x7xf32> into tensor<2x4x15xf32>
  %conv = linalg.conv_1d_ncw_fcw ins(%spread, %w : tensor<2x4x15xf32>, tensor<6x4x3xf32>) outs(%init : tensor<2x6x13xf32>) -> tensor<2x6x13xf32>
  return %conv : tensor<2x6x13xf32>
}
