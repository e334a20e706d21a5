// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-transpose-convolutions{filters=fhwc})' \
// RUN:   --prepass-remarks=all 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// Idempotence.
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-transpose-convolutions{filters=fhwc})' > %t.once
// RUN: prepass-opt %s --split-input-file \
// RUN:   --pass-pipeline='builtin.module(prepass-transpose-convolutions{filters=fhwc},prepass-transpose-convolutions{filters=fhwc})' > %t.twice
// RUN: diff %t.once %t.twice

// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-transpose-convolutions{filters=hwcf})' \
// RUN:   | FileCheck %s --check-prefix=HWCF

// No target is known, or one that is not in the table.
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-transpose-convolutions)' \
// RUN:   --prepass-remarks=all 2>&1 | FileCheck %s --check-prefix=NOTARGET
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=vulkan --compile-to=preprocessing --prepass-remarks=all \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-transpose-convolutions)' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=VULKAN
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=hip --iree-rocm-target=gfx942 \
// RUN:   --compile-to=preprocessing --prepass-remarks=all \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-transpose-convolutions)' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=GFX942
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=local --iree-llvmcpu-target-cpu=generic \
// RUN:   --iree-hal-local-target-device-backends=llvm-cpu --compile-to=preprocessing --prepass-remarks=all \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-transpose-convolutions)' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=CPU

// NOTARGET: missed: no target is known [linalg.conv_2d_nchw_fchw]
// NOTARGET: linalg.conv_2d_nchw_fchw
// VULKAN: missed: no other layout is known to be faster on {{.+}} [linalg.conv_2d_nchw_fchw]

// The pad, the bias and the cast follow; the edges of the function are transposed.

// CHECK-LABEL: func.func @padded
// CHECK-SAME: %[[X:.+]]: tensor<2x16x8x8xf16>, %[[W:.+]]: tensor<32x16x3x3xf16>, %[[B:.+]]: tensor<32xf32>
// CHECK: %[[XT:.+]] = linalg.generic {{.*}} ins(%[[X]] : tensor<2x16x8x8xf16>) outs(%{{.+}} : tensor<2x8x8x16xf16>)
// CHECK: %[[PAD:.+]] = tensor.pad %[[XT]] low[0, 1, 1, 0] high[0, 1, 1, 0]
// CHECK: %[[BIAS:.+]] = linalg.generic {{.*}} ins(%[[B]] : tensor<32xf32>) outs(%{{.+}} : tensor<2x8x8x32xf32>)
// CHECK: %[[WT:.+]] = linalg.generic {{.*}} ins(%[[W]] : tensor<32x16x3x3xf16>) outs(%{{.+}} : tensor<32x3x3x16xf16>)
// CHECK: %[[KEPT:.+]] = iree_tensor_ext.compute_barrier.start %[[WT]]
// CHECK: %[[CONV:.+]] = linalg.conv_2d_nhwc_fhwc {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
// CHECK-SAME: ins(%[[PAD]], %[[KEPT]] : {{.*}}) outs(%[[BIAS]] : tensor<2x8x8x32xf32>)
// CHECK: %[[HALF:.+]] = linalg.generic {{.*}} ins(%[[CONV]] : {{.*}}) outs(%{{.+}} : tensor<2x8x8x32xf16>)
// CHECK: %[[R:.+]] = linalg.generic {{.*}} ins(%[[HALF]] : {{.*}}) outs(%{{.+}} : tensor<2x32x8x8xf16>)
// CHECK: return %[[R]]
// HWCF-LABEL: func.func @padded
// HWCF: linalg.conv_2d_nhwc_hwcf {{.*}} ins(%{{.+}}, %{{.+}} : tensor<2x10x10x16xf16>, tensor<3x3x16x32xf16>)
// GFX942-DAG: = linalg.conv_2d_nhwc_fhwc
// CPU-DAG: = linalg.conv_2d_nhwc_hwcf
// REMARK: :[[@LINE+12]]:8: remark: prepass-transpose-convolutions: applied: channels-last [linalg.conv_2d_nchw_fchw]
// REMARK: missed: an argument is transposed: it is the edge of the function [func.func]
// REMARK: missed: it reads a transposed copy: it is the edge of the function [func.return]
#all = affine_map<(a, b, c, d) -> (a, b, c, d)>
func.func @padded(%x: tensor<2x16x8x8xf16>, %w: tensor<32x16x3x3xf16>, %bias: tensor<32xf32>) -> tensor<2x32x8x8xf16> {
  %zero = arith.constant 0.0 : f16
  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f16
  } : tensor<2x16x8x8xf16> to tensor<2x16x10x10xf16>
  %e = tensor.empty() : tensor<2x32x8x8xf32>
  %init = linalg.broadcast ins(%bias : tensor<32xf32>) outs(%e : tensor<2x32x8x8xf32>) dimensions = [0, 2, 3]
  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%p, %w : tensor<2x16x10x10xf16>, tensor<32x16x3x3xf16>) outs(%init : tensor<2x32x8x8xf32>) -> tensor<2x32x8x8xf32>
  %h = tensor.empty() : tensor<2x32x8x8xf16>
  %r = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%c : tensor<2x32x8x8xf32>) outs(%h : tensor<2x32x8x8xf16>) {
  ^bb0(%in: f32, %o: f16):
    %t = arith.truncf %in : f32 to f16
    linalg.yield %t : f16
  } -> tensor<2x32x8x8xf16>
  return %r : tensor<2x32x8x8xf16>
}

// -----

// The groups of a GroupNorm, split off the channels; tokens, which are channels-last as they are; a concatenation and a
// gather. Between the two convolutions nothing is transposed.

// CHECK-LABEL: func.func @between
// CHECK: %[[FIRST:.+]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} {{.*}} outs(%{{.+}} : tensor<2x4x4x8xf32>)
// CHECK: %[[ROWS:.+]] = tensor.collapse_shape %[[FIRST]] {{\[\[}}0], [1, 2], [3]] : tensor<2x4x4x8xf32> into tensor<2x16x8xf32>
// CHECK: %[[GROUPS:.+]] = tensor.expand_shape %[[ROWS]] {{\[\[}}0], [1], [2, 3]] output_shape [2, 16, 2, 4]
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%[[GROUPS]] : tensor<2x16x2x4xf32>) outs(%{{.+}} : tensor<2x2x1xf32>)
// CHECK: linalg.generic {{.*}} outs(%{{.+}} : tensor<2x16x2x4xf32>)
// CHECK: linalg.batch_matmul ins(%[[TOKENS:.+]], %{{.+}} : tensor<2x16x8xf32>, tensor<2x8x8xf32>)
// CHECK: %[[HALF:.+]] = tensor.insert_slice %{{.+}} into %{{.+}}[0, 0, 0, 0] [2, 4, 4, 8] [1, 1, 1, 1] : tensor<2x4x4x8xf32> into tensor<2x4x4x16xf32>
// CHECK: tensor.insert_slice %[[FIRST]] into %[[HALF]][0, 0, 0, 8] [2, 4, 4, 8] [1, 1, 1, 1]
// CHECK: %[[I:.+]] = linalg.index 0 : index
// CHECK-NEXT: %[[C:.+]] = linalg.index 3 : index
// CHECK-NEXT: %[[K:.+]] = linalg.index 1 : index
// CHECK-NEXT: %[[L:.+]] = linalg.index 2 : index
// CHECK: tensor.extract %{{.+}}[%[[I]], %{{.+}}, %[[L]], %[[C]]] : tensor<2x4x4x16xf32>
// CHECK: linalg.conv_2d_nhwc_fhwc {{.*}} tensor<2x8x4x16xf32>, tensor<4x2x2x16xf32>
// REMARK-COUNT-2: applied: channels-last
// REMARK: an argument is transposed
// REMARK: it reads a transposed copy: it is the edge of the function [func.return]
// REMARK-NEXT: applied
func.func @between(%x: tensor<2x8x4x4xf32>, %w: tensor<8x8x1x1xf32>, %linear: tensor<2x8x8xf32>, %w2: tensor<4x16x2x2xf32>) -> tensor<2x4x7x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x8x4x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32>
  %first = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<2x8x4x4xf32>, tensor<8x8x1x1xf32>) outs(%init : tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32>
  %flat = tensor.collapse_shape %first [[0], [1, 2, 3]] : tensor<2x8x4x4xf32> into tensor<2x128xf32>
  %groups = tensor.expand_shape %flat [[0], [1, 2]] output_shape [2, 2, 64] : tensor<2x128xf32> into tensor<2x2x64xf32>
  %es = tensor.empty() : tensor<2x2x1xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<2x2x1xf32>) -> tensor<2x2x1xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, 0)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%groups : tensor<2x2x64xf32>) outs(%fs : tensor<2x2x1xf32>) {
  ^bb0(%in: f32, %o: f32):
    %s = arith.addf %in, %o : f32
    linalg.yield %s : f32
  } -> tensor<2x2x1xf32>
  %ec = tensor.empty() : tensor<2x2x64xf32>
  %centred = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, 0)>, affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%groups, %sum : tensor<2x2x64xf32>, tensor<2x2x1xf32>) outs(%ec : tensor<2x2x64xf32>) {
  ^bb0(%in: f32, %s: f32, %o: f32):
    %d = arith.subf %in, %s : f32
    linalg.yield %d : f32
  } -> tensor<2x2x64xf32>
  %flat2 = tensor.collapse_shape %centred [[0], [1, 2]] : tensor<2x2x64xf32> into tensor<2x128xf32>
  %image = tensor.expand_shape %flat2 [[0], [1, 2, 3]] output_shape [2, 8, 4, 4] : tensor<2x128xf32> into tensor<2x8x4x4xf32>
  %et = tensor.empty() : tensor<2x4x4x8xf32>
  %last = linalg.transpose ins(%image : tensor<2x8x4x4xf32>) outs(%et : tensor<2x4x4x8xf32>) permutation = [0, 2, 3, 1]
  %tokens = tensor.collapse_shape %last [[0], [1, 2], [3]] : tensor<2x4x4x8xf32> into tensor<2x16x8xf32>
  %em = tensor.empty() : tensor<2x16x8xf32>
  %fm = linalg.fill ins(%zero : f32) outs(%em : tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
  %m = linalg.batch_matmul ins(%tokens, %linear : tensor<2x16x8xf32>, tensor<2x8x8xf32>) outs(%fm : tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
  %back = tensor.expand_shape %m [[0], [1, 2], [3]] output_shape [2, 4, 4, 8] : tensor<2x16x8xf32> into tensor<2x4x4x8xf32>
  %channels_first = linalg.transpose ins(%back : tensor<2x4x4x8xf32>) outs(%e : tensor<2x8x4x4xf32>) permutation = [0, 3, 1, 2]
  %both = tensor.concat dim(1) %channels_first, %first : (tensor<2x8x4x4xf32>, tensor<2x8x4x4xf32>) -> tensor<2x16x4x4xf32>
  %eu = tensor.empty() : tensor<2x16x8x4xf32>
  %up = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%eu : tensor<2x16x8x4xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = linalg.index 2 : index
    %l = linalg.index 3 : index
    %two = arith.constant 2 : index
    %h = arith.divui %k, %two : index
    %v = tensor.extract %both[%i, %j, %h, %l] : tensor<2x16x4x4xf32>
    linalg.yield %v : f32
  } -> tensor<2x16x8x4xf32>
  %eo = tensor.empty() : tensor<2x4x7x3xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x7x3xf32>) -> tensor<2x4x7x3xf32>
  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%up, %w2 : tensor<2x16x8x4xf32>, tensor<4x16x2x2xf32>) outs(%fo : tensor<2x4x7x3xf32>) -> tensor<2x4x7x3xf32>
  return %c : tensor<2x4x7x3xf32>
}

// -----

// Kinds: strided 1x1, grouped, 1-D, 3-D, quantized, pooling; named where there is such an op.

// CHECK-LABEL: func.func @strided_pixels
// CHECK: %[[EVERY:.+]] = tensor.extract_slice %{{.+}}[0, 0, 0, 0] [2, 2, 2, 8] [1, 2, 2, 1] : tensor<2x4x4x8xf32> to tensor<2x2x2x8xf32>
// CHECK: linalg.generic {{.*}} ins(%[[EVERY]], %{{.+}} : tensor<2x2x2x8xf32>, tensor<6x8xf32>)
// CPU-DAG: missed: it gains less from channels-last than transposes would cost [linalg.conv_2d_nchw_fchw]
// HWCF-LABEL: func.func @strided_pixels
// HWCF: linalg.generic {{.*}} ins(%{{.+}}, %{{.+}} : tensor<2x2x2x8xf32>, tensor<8x6xf32>)
func.func @strided_pixels(%x: tensor<2x8x4x4xf32>, %w: tensor<6x8x1x1xf32>, %o: tensor<2x6x2x2xf32>) -> tensor<2x6x2x2xf32> {
  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%x, %w : tensor<2x8x4x4xf32>, tensor<6x8x1x1xf32>) outs(%o : tensor<2x6x2x2xf32>) -> tensor<2x6x2x2xf32>
  return %c : tensor<2x6x2x2xf32>
}
// CHECK-LABEL: func.func @grouped
// CHECK: tensor.expand_shape {{.*}} : tensor<2x4x4x8xf32> into tensor<2x4x4x2x4xf32>
// CHECK: linalg.conv_2d_nhwgc_gfhwc {{.*}} ins(%{{.+}}, %{{.+}} : tensor<2x4x4x2x4xf32>, tensor<2x3x3x3x4xf32>)
// CHECK: tensor.collapse_shape {{.*}} : tensor<2x2x2x2x3xf32> into tensor<2x2x2x6xf32>
func.func @grouped(%x: tensor<2x8x4x4xf32>, %w: tensor<2x3x4x3x3xf32>, %o: tensor<2x2x3x2x2xf32>) -> tensor<2x6x2x2xf32> {
  %g = tensor.expand_shape %x [[0], [1, 2], [3], [4]] output_shape [2, 2, 4, 4, 4] : tensor<2x8x4x4xf32> into tensor<2x2x4x4x4xf32>
  %c = linalg.conv_2d_ngchw_gfchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%g, %w : tensor<2x2x4x4x4xf32>, tensor<2x3x4x3x3xf32>) outs(%o : tensor<2x2x3x2x2xf32>) -> tensor<2x2x3x2x2xf32>
  %r = tensor.collapse_shape %c [[0], [1, 2], [3], [4]] : tensor<2x2x3x2x2xf32> into tensor<2x6x2x2xf32>
  return %r : tensor<2x6x2x2xf32>
}
// CHECK-LABEL: func.func @rows
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%{{.+}}, %{{.+}} : tensor<2x9x8xf32>, tensor<6x3x8xf32>)
// HWCF-LABEL: func.func @rows
// HWCF: linalg.conv_1d_nwc_wcf {{.*}} ins(%{{.+}}, %{{.+}} : tensor<2x9x8xf32>, tensor<3x8x6xf32>)
func.func @rows(%x: tensor<2x8x9xf32>, %w: tensor<6x8x3xf32>, %o: tensor<2x6x7xf32>) -> tensor<2x6x7xf32> {
  %c = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%x, %w : tensor<2x8x9xf32>, tensor<6x8x3xf32>) outs(%o : tensor<2x6x7xf32>) -> tensor<2x6x7xf32>
  return %c : tensor<2x6x7xf32>
}
// CHECK-LABEL: func.func @volumes
// CHECK: linalg.generic {{.*}} ins(%{{.+}}, %{{.+}} : tensor<2x4x4x4x8xf32>, tensor<6x3x3x3x8xf32>)
// HWCF-LABEL: func.func @volumes
// HWCF: linalg.conv_3d_ndhwc_dhwcf {{.*}} ins(%{{.+}}, %{{.+}} : tensor<2x4x4x4x8xf32>, tensor<3x3x3x8x6xf32>)
func.func @volumes(%x: tensor<2x8x4x4x4xf32>, %w: tensor<6x8x3x3x3xf32>, %o: tensor<2x6x2x2x2xf32>) -> tensor<2x6x2x2x2xf32> {
  %c = linalg.conv_3d_ncdhw_fcdhw {dilations = dense<1> : vector<3xi64>, strides = dense<1> : vector<3xi64>} ins(%x, %w : tensor<2x8x4x4x4xf32>, tensor<6x8x3x3x3xf32>) outs(%o : tensor<2x6x2x2x2xf32>) -> tensor<2x6x2x2x2xf32>
  return %c : tensor<2x6x2x2x2xf32>
}
// CHECK-LABEL: func.func @quantized
// CHECK: linalg.conv_2d_nhwc_fhwc_q {{.*}} ins(%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} : tensor<2x4x4x8xi8>, tensor<6x3x3x8xi8>, i32, i32)
// HWCF-LABEL: func.func @quantized
// HWCF: linalg.conv_2d_nhwc_hwcf_q
func.func @quantized(%x: tensor<2x8x4x4xi8>, %w: tensor<6x8x3x3xi8>, %xz: i32, %wz: i32, %o: tensor<2x6x2x2xi32>) -> tensor<2x6x2x2xi32> {
  %c = linalg.conv_2d_nchw_fchw_q {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w, %xz, %wz : tensor<2x8x4x4xi8>, tensor<6x8x3x3xi8>, i32, i32) outs(%o : tensor<2x6x2x2xi32>) -> tensor<2x6x2x2xi32>
  return %c : tensor<2x6x2x2xi32>
}
// CHECK-LABEL: func.func @pooled
// CHECK: linalg.conv_2d_nhwc_fhwc
// CHECK: linalg.pooling_nhwc_max {{.*}} ins(%{{.+}}, %{{.+}} : tensor<2x4x4x6xf32>, tensor<2x2xf32>) outs(%{{.+}} : tensor<2x3x3x6xf32>)
func.func @pooled(%x: tensor<2x8x6x6xf32>, %w: tensor<6x8x3x3xf32>, %o: tensor<2x6x4x4xf32>) -> tensor<2x6x3x3xf32> {
  %low = arith.constant -1.0 : f32
  %e = tensor.empty() : tensor<2x6x3x3xf32>
  %p = linalg.fill ins(%low : f32) outs(%e : tensor<2x6x3x3xf32>) -> tensor<2x6x3x3xf32>
  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<2x8x6x6xf32>, tensor<6x8x3x3xf32>) outs(%o : tensor<2x6x4x4xf32>) -> tensor<2x6x4x4xf32>
  %window = tensor.empty() : tensor<2x2xf32>
  %r = linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%c, %window : tensor<2x6x4x4xf32>, tensor<2x2xf32>) outs(%p : tensor<2x6x3x3xf32>) -> tensor<2x6x3x3xf32>
  return %r : tensor<2x6x3x3xf32>
}
// A fill of what is no empty tensor.
// CHECK-LABEL: func.func @filled
// CHECK: linalg.conv_2d_nhwgc_gfhwc
func.func @filled(%x: tensor<2x8x4x4xf32>, %w: tensor<2x3x4x3x3xf32>) -> tensor<2x2x3x2x2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x6x2x2xf32>
  %eg = tensor.expand_shape %e [[0], [1, 2], [3], [4]] output_shape [2, 2, 3, 2, 2] : tensor<2x6x2x2xf32> into tensor<2x2x3x2x2xf32>
  %o = linalg.fill ins(%zero : f32) outs(%eg : tensor<2x2x3x2x2xf32>) -> tensor<2x2x3x2x2xf32>
  %g = tensor.expand_shape %x [[0], [1, 2], [3], [4]] output_shape [2, 2, 4, 4, 4] : tensor<2x8x4x4xf32> into tensor<2x2x4x4x4xf32>
  %c = linalg.conv_2d_ngchw_gfchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%g, %w : tensor<2x2x4x4x4xf32>, tensor<2x3x4x3x3xf32>) outs(%o : tensor<2x2x3x2x2xf32>) -> tensor<2x2x3x2x2xf32>
  return %c : tensor<2x2x3x2x2xf32>
}
// CHECK-LABEL: func.func @generic
// CHECK: linalg.generic {{.*}} ins(%{{.+}}, %{{.+}} : tensor<2x4x4x8xf32>, tensor<6x3x3x8xf32>) outs(%{{.+}} : tensor<2x2x2x6xf32>)
func.func @generic(%x: tensor<2x8x4x4xf32>, %w: tensor<6x8x3x3xf32>, %o: tensor<2x6x2x2xf32>) -> tensor<2x6x2x2xf32> {
  %c = linalg.generic {indexing_maps = [affine_map<(n, f, h, w, c, i, j) -> (n, c, h + i, w + j)>, affine_map<(n, f, h, w, c, i, j) -> (f, c, i, j)>, affine_map<(n, f, h, w, c, i, j) -> (n, f, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<2x8x4x4xf32>, tensor<6x8x3x3xf32>) outs(%o : tensor<2x6x2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %m : f32
    linalg.yield %s : f32
  } -> tensor<2x6x2x2xf32>
  return %c : tensor<2x6x2x2xf32>
}

// Strides and dilations may be left out; a part of one channel is brought into place by reshapes.
// CHECK-LABEL: func.func @masked
// CHECK: %[[MASK:.+]] = tensor.expand_shape %{{.+}} {{.*}} : tensor<2x6x6xf32> into tensor<2x6x6x1xf32>
// CHECK: tensor.insert_slice %[[MASK]] into %{{.+}}[0, 0, 0, 4] [2, 6, 6, 1] [1, 1, 1, 1]
// CHECK: linalg.conv_2d_nhwc_fhwc ins(
func.func @masked(%x: tensor<2x4x6x6xf32>, %m: tensor<2x1x6x6xf32>, %w: tensor<6x5x3x3xf32>, %o: tensor<2x6x4x4xf32>) -> tensor<2x6x4x4xf32> {
  %i = tensor.concat dim(1) %x, %m : (tensor<2x4x6x6xf32>, tensor<2x1x6x6xf32>) -> tensor<2x5x6x6xf32>
  %c = linalg.conv_2d_nchw_fchw ins(%i, %w : tensor<2x5x6x6xf32>, tensor<6x5x3x3xf32>) outs(%o : tensor<2x6x4x4xf32>) -> tensor<2x6x4x4xf32>
  return %c : tensor<2x6x4x4xf32>
}
// In a loop, what it carries keeps its layout.
// CHECK-LABEL: func.func @carried
// CHECK: scf.for
// CHECK: linalg.conv_2d_nhwc_fhwc
// CHECK: %[[BACK:.+]] = linalg.generic {{.*}} outs(%{{.+}} : tensor<2x6x6x5xf32>)
// CHECK: scf.yield %[[BACK]]
func.func @carried(%x: tensor<2x6x6x5xf32>, %w: tensor<6x6x3x1xf32>, %n: index) -> tensor<2x6x6x5xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<2x6x6x5xf32> {
    %p = tensor.pad %a low[0, 0, 1, 0] high[0, 0, 1, 0] {
    ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
      tensor.yield %zero : f32
    } : tensor<2x6x6x5xf32> to tensor<2x6x8x5xf32>
    %c = linalg.conv_2d_nchw_fchw ins(%p, %w : tensor<2x6x8x5xf32>, tensor<6x6x3x1xf32>) outs(%x : tensor<2x6x6x5xf32>) -> tensor<2x6x6x5xf32>
    scf.yield %c : tensor<2x6x6x5xf32>
  }
  return %r : tensor<2x6x6x5xf32>
}

// -----

// Dynamic batch, height and width; the size of a result is asked for.

// CHECK-LABEL: func.func @dynamic
// CHECK: tensor.pad %{{.+}} low[0, 1, 1, 0] high[0, 1, 1, 0]
// CHECK: linalg.conv_2d_nhwc_fhwc {{.*}} ins(%{{.+}}, %{{.+}} : tensor<?x?x?x8xf32>, tensor<6x3x3x8xf32>)
// CHECK: %[[R:.+]] = linalg.generic {{.*}} outs(%{{.+}} : tensor<?x?x?x6xf32>)
// CHECK: %[[T:.+]] = linalg.generic {{.*}} ins(%[[R]] : tensor<?x?x?x6xf32>) outs(%{{.+}} : tensor<?x6x?x?xf32>)
// CHECK: %[[SIZE:.+]] = tensor.dim %[[R]], %{{.+}} : tensor<?x?x?x6xf32>
// CHECK-NEXT: return %[[T]], %[[SIZE]]
func.func @dynamic(%x: tensor<?x8x?x?xf32>, %w: tensor<6x8x3x3xf32>, %b: index, %h: index, %v: index) -> (tensor<?x6x?x?xf32>, index) {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
    tensor.yield %zero : f32
  } : tensor<?x8x?x?xf32> to tensor<?x8x?x?xf32>
  %e = tensor.empty(%b, %h, %v) : tensor<?x6x?x?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x6x?x?xf32>) -> tensor<?x6x?x?xf32>
  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%p, %w : tensor<?x8x?x?xf32>, tensor<6x8x3x3xf32>) outs(%init : tensor<?x6x?x?xf32>) -> tensor<?x6x?x?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%c : tensor<?x6x?x?xf32>) outs(%e : tensor<?x6x?x?xf32>) {
  ^bb0(%in: f32, %o: f32):
    %t = math.tanh %in : f32
    linalg.yield %t : f32
  } -> tensor<?x6x?x?xf32>
  %two = arith.constant 2 : index
  %size = tensor.dim %r, %two : tensor<?x6x?x?xf32>
  return %r, %size : tensor<?x6x?x?xf32>, index
}

// -----

// A depthwise convolution goes where the others go, and nowhere by itself.

// CHECK-LABEL: func.func @after
// CHECK: linalg.conv_2d_nhwc_fhwc
// CHECK: linalg.depthwise_conv_2d_nhwc_hwc
// GFX942-DAG: = linalg.depthwise_conv_2d_nchw_chw
// GFX942-DAG: missed: it gains less from channels-last than transposes would cost [linalg.depthwise_conv_2d_nchw_chw]
func.func @after(%x: tensor<2x8x6x6xf32>, %w: tensor<6x8x3x3xf32>, %o: tensor<2x6x4x4xf32>, %dw: tensor<6x3x3xf32>, %p: tensor<2x6x2x2xf32>) -> tensor<2x6x2x2xf32> {
  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<2x8x6x6xf32>, tensor<6x8x3x3xf32>) outs(%o : tensor<2x6x4x4xf32>) -> tensor<2x6x4x4xf32>
  %d = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%c, %dw : tensor<2x6x4x4xf32>, tensor<6x3x3xf32>) outs(%p : tensor<2x6x2x2xf32>) -> tensor<2x6x2x2xf32>
  return %d : tensor<2x6x2x2xf32>
}
func.func @alone(%x: tensor<2x6x4x4xf32>, %dw: tensor<6x3x3xf32>, %p: tensor<2x6x2x2xf32>) -> tensor<2x6x2x2xf32> {
  %d = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %dw : tensor<2x6x4x4xf32>, tensor<6x3x3xf32>) outs(%p : tensor<2x6x2x2xf32>) -> tensor<2x6x2x2xf32>
  return %d : tensor<2x6x2x2xf32>
}

// -----

// What keeps its layout: a softmax, a reshape that takes channels for pixels. Channels that are the pixels of another
// convolution change places.

// CHECK-LABEL: func.func @mixed
// CHECK: linalg.conv_2d_nhwc_fhwc
// CHECK: linalg.softmax dimension(1) {{.*}} -> tensor<1x6x2x2xf32>
// CHECK: tensor.collapse_shape {{.*}} : tensor<1x6x2x2xf32> into tensor<1x24xf32>
// CHECK: tensor.expand_shape {{.*}} : tensor<1x24xf32> into tensor<1x4x6xf32>
// REMARK: missed: it reads a transposed copy: linalg.softmax keeps the layout that the program gives it
func.func @mixed(%x: tensor<1x8x4x4xf32>, %w: tensor<6x8x3x3xf32>, %o: tensor<1x6x2x2xf32>) -> (tensor<1x4x6xf32>, tensor<1x6x2x2xf32>) {
  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x8x4x4xf32>, tensor<6x8x3x3xf32>) outs(%o : tensor<1x6x2x2xf32>) -> tensor<1x6x2x2xf32>
  %e = tensor.empty() : tensor<1x6x2x2xf32>
  %s = linalg.softmax dimension(1) ins(%c : tensor<1x6x2x2xf32>) outs(%e : tensor<1x6x2x2xf32>) -> tensor<1x6x2x2xf32>
  %flat = tensor.collapse_shape %s [[0], [1, 2, 3]] : tensor<1x6x2x2xf32> into tensor<1x24xf32>
  %r = tensor.expand_shape %flat [[0], [1, 2]] output_shape [1, 4, 6] : tensor<1x24xf32> into tensor<1x4x6xf32>
  return %r, %s : tensor<1x4x6xf32>, tensor<1x6x2x2xf32>
}
// CHECK-LABEL: func.func @turned
// CHECK: %[[FIRST:.+]] = linalg.conv_2d_nhwc_fhwc {{.*}} -> tensor<1x2x2x6xf32>
// CHECK: linalg.generic {{.*}} outs(%{{.+}} : tensor<2x6x2xf32>)
// CHECK: linalg.conv_2d_nhwc_fhwc {{.*}} ins(%{{.+}}, %{{.+}} : tensor<1x2x6x2xf32>, tensor<3x1x3x2xf32>)
// REMARK: missed: what it makes is transposed: linalg.conv_2d_nhwc_fhwc keeps the layout that the program gives it
func.func @turned(%x: tensor<1x8x4x4xf32>, %w: tensor<6x8x3x3xf32>, %o: tensor<1x6x2x2xf32>, %w2: tensor<3x2x1x3xf32>, %p: tensor<1x3x2x4xf32>) -> tensor<1x3x2x4xf32> {
  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x8x4x4xf32>, tensor<6x8x3x3xf32>) outs(%o : tensor<1x6x2x2xf32>) -> tensor<1x6x2x2xf32>
  %e = tensor.empty() : tensor<1x2x2x6xf32>
  %t = linalg.transpose ins(%c : tensor<1x6x2x2xf32>) outs(%e : tensor<1x2x2x6xf32>) permutation = [0, 2, 3, 1]
  %d = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%t, %w2 : tensor<1x2x2x6xf32>, tensor<3x2x1x3xf32>) outs(%p : tensor<1x3x2x4xf32>) -> tensor<1x3x2x4xf32>
  return %d : tensor<1x3x2x4xf32>
}
// CHECK-LABEL: func.func @jumbled
// CHECK: linalg.conv_2d_nhwc_fhwc
// CHECK: tensor.expand_shape {{.*}} : tensor<54xf32> into tensor<27x2xf32>
// REMARK: missed: it reads a transposed copy: its sizes cannot be factored alike [tensor.expand_shape]
func.func @jumbled(%x: tensor<1x8x5x5xf32>, %w: tensor<6x8x3x3xf32>, %o: tensor<1x6x3x3xf32>) -> tensor<27x2xf32> {
  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x8x5x5xf32>, tensor<6x8x3x3xf32>) outs(%o : tensor<1x6x3x3xf32>) -> tensor<1x6x3x3xf32>
  %flat = tensor.collapse_shape %c [[0, 1, 2, 3]] : tensor<1x6x3x3xf32> into tensor<54xf32>
  %r = tensor.expand_shape %flat [[0, 1]] output_shape [27, 2] : tensor<54xf32> into tensor<27x2xf32>
  return %r : tensor<27x2xf32>
}

// -----

// A transpose at the edge does not fold into the convolution that reads it.

// CHECK-LABEL: func.func @unpadded
// CHECK-SAME: %[[X:.+]]: tensor<2x16x8x8xf16>
// CHECK: %[[XT:.+]] = linalg.generic {{.*}} ins(%[[X]] : tensor<2x16x8x8xf16>) outs(%{{.+}} : tensor<2x8x8x16xf16>)
// CHECK: %[[KEPT:.+]] = iree_tensor_ext.compute_barrier.start %[[XT]] : tensor<2x8x8x16xf16> -> tensor<2x8x8x16xf16>
// CHECK: linalg.conv_2d_nhwc_fhwc {{.*}} ins(%[[KEPT]], %{{.+}} : {{.*}})
func.func @unpadded(%x: tensor<2x16x8x8xf16>, %w: tensor<32x16x3x3xf16>) -> tensor<2x32x6x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x32x6x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2x32x6x6xf32>) -> tensor<2x32x6x6xf32>
  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<2x16x8x8xf16>, tensor<32x16x3x3xf16>) outs(%init : tensor<2x32x6x6xf32>) -> tensor<2x32x6x6xf32>
  return %c : tensor<2x32x6x6xf32>
}

// -----

// Ops that cannot follow, one for each reason; the convolution before them does.

// CHECK-LABEL: func.func @drops_rank
// CHECK: linalg.conv_2d_nhwc_fhwc
// REMARK: missed: it reads a transposed copy: it changes the rank [tensor.extract_slice]
func.func @drops_rank(%x: tensor<1x8x5x5xf32>, %w: tensor<6x8x3x3xf32>, %o: tensor<1x6x3x3xf32>) -> tensor<1x6x3xf32> {
  %c = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x5x5xf32>, tensor<6x8x3x3xf32>) outs(%o : tensor<1x6x3x3xf32>) -> tensor<1x6x3x3xf32>
  %r = tensor.extract_slice %c[0, 0, 0, 0] [1, 6, 3, 1] [1, 1, 1, 1] : tensor<1x6x3x3xf32> to tensor<1x6x3xf32>
  return %r : tensor<1x6x3xf32>
}
// CHECK-LABEL: func.func @joined_rows
// CHECK: linalg.conv_2d_nhwc_fhwc
// REMARK: missed: it reads a transposed copy: it cuts a dim that is split [tensor.concat]
func.func @joined_rows(%x: tensor<1x8x5x5xf32>, %w: tensor<6x8x3x3xf32>, %o: tensor<1x6x3x3xf32>) -> tensor<2x54xf32> {
  %c = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x5x5xf32>, tensor<6x8x3x3xf32>) outs(%o : tensor<1x6x3x3xf32>) -> tensor<1x6x3x3xf32>
  %f = tensor.collapse_shape %c [[0], [1, 2, 3]] : tensor<1x6x3x3xf32> into tensor<1x54xf32>
  %r = tensor.concat dim(0) %f, %f : (tensor<1x54xf32>, tensor<1x54xf32>) -> tensor<2x54xf32>
  return %r : tensor<2x54xf32>
}
// CHECK-LABEL: func.func @padded_by_position
// CHECK: linalg.conv_2d_nhwc_fhwc
// REMARK: missed: it reads a transposed copy: its padding depends on where it is [tensor.pad]
func.func @padded_by_position(%x: tensor<1x8x5x5xf32>, %w: tensor<6x8x3x3xf32>, %o: tensor<1x6x3x3xf32>) -> tensor<1x6x5x5xf32> {
  %c = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x5x5xf32>, tensor<6x8x3x3xf32>) outs(%o : tensor<1x6x3x3xf32>) -> tensor<1x6x3x3xf32>
  %p = tensor.pad %c low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    %n = arith.index_cast %k : index to i32
    %v = arith.sitofp %n : i32 to f32
    tensor.yield %v : f32
  } : tensor<1x6x3x3xf32> to tensor<1x6x5x5xf32>
  return %p : tensor<1x6x5x5xf32>
}
// CHECK-LABEL: func.func @window_over_both
// CHECK: linalg.conv_2d_nhwc_fhwc
// REMARK: missed: it reads a transposed copy: a window moves along a dim that is split [linalg.generic]
func.func @window_over_both(%x: tensor<1x8x5x5xf32>, %w: tensor<6x8x3x3xf32>, %o: tensor<1x6x3x3xf32>, %e: tensor<52xf32>) -> tensor<52xf32> {
  %c = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x5x5xf32>, tensor<6x8x3x3xf32>) outs(%o : tensor<1x6x3x3xf32>) -> tensor<1x6x3x3xf32>
  %f = tensor.collapse_shape %c [[0, 1, 2, 3]] : tensor<1x6x3x3xf32> into tensor<54xf32>
  %k = tensor.empty() : tensor<3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i + j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%f, %k : tensor<54xf32>, tensor<3xf32>) outs(%e : tensor<52xf32>) {
  ^bb0(%a: f32, %u: f32, %s: f32):
    %t = arith.addf %a, %s : f32
    linalg.yield %t : f32
  } -> tensor<52xf32>
  return %r : tensor<52xf32>
}
// CHECK-LABEL: func.func @branches
// CHECK: linalg.conv_2d_nhwc_fhwc
// REMARK: missed: it reads a transposed copy: its body has ops with regions [linalg.generic]
func.func @branches(%x: tensor<1x8x5x5xf32>, %w: tensor<6x8x3x3xf32>, %o: tensor<1x6x3x3xf32>, %b: i1) -> tensor<1x6x3x3xf32> {
  %c = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x5x5xf32>, tensor<6x8x3x3xf32>) outs(%o : tensor<1x6x3x3xf32>) -> tensor<1x6x3x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%c : tensor<1x6x3x3xf32>) outs(%o : tensor<1x6x3x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %t = scf.if %b -> f32 {
      scf.yield %in : f32
    } else {
      scf.yield %out : f32
    }
    linalg.yield %t : f32
  } -> tensor<1x6x3x3xf32>
  return %r : tensor<1x6x3x3xf32>
}
// CHECK-LABEL: func.func @counts
// CHECK: linalg.conv_2d_nhwc_fhwc
// REMARK: missed: it reads a transposed copy: its body counts along a dynamic dim that is split [linalg.generic]
func.func @counts(%x: tensor<1x8x?x?xf32>, %w: tensor<6x8x3x3xf32>, %o: tensor<1x6x?x?xf32>, %e: tensor<1x?xindex>) -> tensor<1x?xindex> {
  %c = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x?x?xf32>, tensor<6x8x3x3xf32>) outs(%o : tensor<1x6x?x?xf32>) -> tensor<1x6x?x?xf32>
  %f = tensor.collapse_shape %c [[0], [1, 2, 3]] : tensor<1x6x?x?xf32> into tensor<1x?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]} ins(%f : tensor<1x?xf32>) outs(%e : tensor<1x?xindex>) {
  ^bb0(%in: f32, %out: index):
    %i = linalg.index 1 : index
    linalg.yield %i : index
  } -> tensor<1x?xindex>
  return %r : tensor<1x?xindex>
}
// CHECK-LABEL: func.func @gathers
// CHECK: linalg.conv_2d_nhwc_fhwc
// REMARK: missed: it reads a transposed copy: its body reads from a dim that is split [linalg.generic]
func.func @gathers(%x: tensor<1x8x5x5xf32>, %w: tensor<6x8x3x3xf32>, %o: tensor<1x6x3x3xf32>, %e: tensor<54xf32>) -> tensor<54xf32> {
  %c = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x5x5xf32>, tensor<6x8x3x3xf32>) outs(%o : tensor<1x6x3x3xf32>) -> tensor<1x6x3x3xf32>
  %f = tensor.collapse_shape %c [[0, 1, 2, 3]] : tensor<1x6x3x3xf32> into tensor<54xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<54xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %v = tensor.extract %f[%i] : tensor<54xf32>
    linalg.yield %v : f32
  } -> tensor<54xf32>
  return %r : tensor<54xf32>
}
// CHECK-LABEL: func.func @asks_for_size
// CHECK: linalg.conv_2d_nhwc_fhwc
// REMARK: missed: it reads a transposed copy: its body has tensor.dim on a tensor [linalg.generic]
func.func @asks_for_size(%x: tensor<1x8x5x?xf32>, %w: tensor<6x8x3x3xf32>, %o: tensor<1x6x3x?xf32>) -> tensor<1x6x3x?xf32> {
  %c3 = arith.constant 3 : index
  %c = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x5x?xf32>, tensor<6x8x3x3xf32>) outs(%o : tensor<1x6x3x?xf32>) -> tensor<1x6x3x?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%c : tensor<1x6x3x?xf32>) outs(%o : tensor<1x6x3x?xf32>) {
  ^bb0(%in: f32, %out: f32):
    %n = tensor.dim %c, %c3 : tensor<1x6x3x?xf32>
    %m = arith.index_cast %n : index to i32
    %v = arith.sitofp %m : i32 to f32
    %t = arith.mulf %in, %v : f32
    linalg.yield %t : f32
  } -> tensor<1x6x3x?xf32>
  return %r : tensor<1x6x3x?xf32>
}

// Half of what is channels and pixels: they are one dim, and the channels cannot go last.

// CHECK-LABEL: func.func @channels_and_pixels
// CHECK: linalg.conv_2d_nchw_fchw
// REMARK: missed: what is a channel to it is a pixel to another convolution [linalg.conv_2d_nchw_fchw]
func.func @channels_and_pixels(%x: tensor<1x8x5x5xf32>, %w: tensor<6x8x3x3xf32>, %o: tensor<1x6x3x3xf32>) -> tensor<1x27xf32> {
  %c = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x5x5xf32>, tensor<6x8x3x3xf32>) outs(%o : tensor<1x6x3x3xf32>) -> tensor<1x6x3x3xf32>
  %f = tensor.collapse_shape %c [[0], [1, 2, 3]] : tensor<1x6x3x3xf32> into tensor<1x54xf32>
  %r = tensor.extract_slice %f[0, 0] [1, 27] [1, 1] : tensor<1x54xf32> to tensor<1x27xf32>
  return %r : tensor<1x27xf32>
}

// Nothing slides along rows: the image has as many as the filter.

// CHECK-LABEL: func.func @one_row
// CHECK: linalg.conv_2d_nchw_fchw
// REMARK: missed: there is one window along a dim [linalg.conv_2d_nchw_fchw]
func.func @one_row(%x: tensor<1x8x3x5xf32>, %w: tensor<6x8x3x3xf32>, %o: tensor<1x6x1x3xf32>) -> tensor<1x6x1x3xf32> {
  %c = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x3x5xf32>, tensor<6x8x3x3xf32>) outs(%o : tensor<1x6x1x3xf32>) -> tensor<1x6x1x3xf32>
  return %c : tensor<1x6x1x3xf32>
}
