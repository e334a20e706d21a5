// RUN: prepass-opt %s --split-input-file --prepass-remarks=all --pass-pipeline='builtin.module(prepass-fold-unit-dims)' \
// RUN:   2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// Idempotence.
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-fold-unit-dims)' > %t.once
// RUN: prepass-opt %s --split-input-file \
// RUN:   --pass-pipeline='builtin.module(prepass-fold-unit-dims,prepass-fold-unit-dims)' > %t.twice
// RUN: diff %t.once %t.twice

// llvm-cpu keeps a batch of one matrix, unless it is told not to.
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=local --iree-llvmcpu-target-cpu=generic \
// RUN:   --iree-hal-local-target-device-backends=llvm-cpu --compile-to=preprocessing --prepass-remarks=missed \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-fold-unit-dims)' 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=local --iree-llvmcpu-target-cpu=generic \
// RUN:   --iree-hal-local-target-device-backends=llvm-cpu --compile-to=preprocessing \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-fold-unit-dims{matrices=always})' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=ALWAYS
// CPU: missed: llvm-cpu multiplies a batch of one matrix faster than the matrix [linalg.batch_matmul]
// CPU: linalg.batch_matmul
// ALWAYS: linalg.matmul

// REMARK-DAG: remark: prepass-fold-unit-dims: applied: unit dims dropped [linalg.batch_matmul]
// REMARK-DAG: missed: it reads windows of its operands [linalg.conv_2d_nchw_fchw]
// REMARK-DAG: applied: its bias is added behind it [linalg.conv_2d_nchw_fchw]
// REMARK-DAG: missed: it is in a dispatch already [linalg.generic]
// REMARK-DAG: missed: it is in a dispatch already [tensor.extract_slice]
// REMARK-DAG: missed: it is in a dispatch already [tensor.concat]
// REMARK-DAG: missed: its lowering config names the loops that it has [linalg.generic]
// REMARK-DAG: missed: a tensor has an encoding [linalg.generic]
// REMARK-DAG: missed: the slice has fewer dims than what it is cut from [tensor.extract_slice]
// REMARK-DAG: missed: where the slice is cut from a dim of size 1 is not known [tensor.extract_slice]

// A linear layer of batch 1 and what follows it. The copy of the weight is gone.

// CHECK-LABEL: @linear
// CHECK-SAME: (%[[X:.+]]: tensor<1x64x32xf16>, %[[W:.+]]: tensor<48x32xf16>, %[[BIAS:.+]]: tensor<48xf16>)
// CHECK: %[[T:.+]] = linalg.transpose ins(%[[W]] : tensor<48x32xf16>)
// CHECK: %[[X2:.+]] = tensor.collapse_shape %[[X]] {{\[}}[0, 1], [2]] : tensor<1x64x32xf16> into tensor<64x32xf16>
// CHECK: %[[P:.+]] = linalg.matmul ins(%[[X2]], %[[T]] : {{.+}}) outs(%{{.+}} : tensor<64x48xf32>)
// CHECK: %[[SUM:.+]] = linalg.generic {{.+}} ins(%[[P]], %[[BIAS]] : tensor<64x48xf32>, tensor<48xf16>)
// CHECK-SAME: outs(%{{.+}} : tensor<64x48xf16>)
// CHECK: %[[RESULT:.+]] = tensor.expand_shape %[[SUM]] {{\[}}[0, 1], [2]] output_shape [1, 64, 48]
// CHECK: return %[[RESULT]]
#all = affine_map<(a, b, c) -> (a, b, c)>
#last = affine_map<(a, b, c) -> (c)>
#lasts = affine_map<(a, b, c) -> (b, c)>
func.func @linear(%x: tensor<1x64x32xf16>, %w: tensor<48x32xf16>, %bias: tensor<48xf16>) -> tensor<1x64x48xf16> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<32x48xf16>
  %t = linalg.transpose ins(%w : tensor<48x32xf16>) outs(%0 : tensor<32x48xf16>) permutation = [1, 0]
  %1 = tensor.empty() : tensor<1x32x48xf16>
  %wide = linalg.generic {indexing_maps = [#lasts, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%t : tensor<32x48xf16>) outs(%1 : tensor<1x32x48xf16>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
  } -> tensor<1x32x48xf16>
  %2 = tensor.empty() : tensor<1x64x48xf32>
  %3 = linalg.fill ins(%zero : f32) outs(%2 : tensor<1x64x48xf32>) -> tensor<1x64x48xf32>
  %4 = linalg.batch_matmul ins(%x, %wide : tensor<1x64x32xf16>, tensor<1x32x48xf16>) outs(%3 : tensor<1x64x48xf32>)
      -> tensor<1x64x48xf32>
  %5 = tensor.empty() : tensor<1x64x48xf16>
  %6 = linalg.generic {indexing_maps = [#all, #last, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%4, %bias : tensor<1x64x48xf32>, tensor<48xf16>) outs(%5 : tensor<1x64x48xf16>) {
    ^bb0(%in: f32, %b: f16, %out: f16):
      %7 = arith.truncf %in : f32 to f16
      %8 = arith.addf %7, %b : f16
      linalg.yield %8 : f16
  } -> tensor<1x64x48xf16>
  return %6 : tensor<1x64x48xf16>
}

// -----

// Heads are split from the tokens; the reshapes on the way from the projection to attention become one.

// CHECK-LABEL: @heads
// CHECK: %[[X2:.+]] = tensor.collapse_shape %arg0
// CHECK: %[[E:.+]] = linalg.generic {{.+}} ins(%[[X2]] : tensor<64x32xf16>)
// CHECK: %[[SPLIT:.+]] = tensor.expand_shape %[[E]] {{\[}}[0], [1, 2]] output_shape [64, 4, 8]
// CHECK: %[[Q:.+]] = linalg.transpose ins(%[[SPLIT]] : tensor<64x4x8xf16>) outs(%{{.+}} : tensor<4x64x8xf16>) permutation = [1, 0, 2]
// CHECK: iree_linalg_ext.attention
// CHECK-SAME: ins(%[[Q]], %[[Q]], %[[Q]], %{{.+}} : tensor<4x64x8xf16>, tensor<4x64x8xf16>, tensor<4x64x8xf16>, f32)
// CHECK-SAME: outs(%{{.+}} : tensor<4x64x8xf16>)
#all = affine_map<(a, b, c) -> (a, b, c)>
#q = affine_map<(b, h, m, n, k1, k2) -> (b, h, m, k1)>
#k = affine_map<(b, h, m, n, k1, k2) -> (b, h, k2, k1)>
#v = affine_map<(b, h, m, n, k1, k2) -> (b, h, k2, n)>
#s = affine_map<(b, h, m, n, k1, k2) -> ()>
#o = affine_map<(b, h, m, n, k1, k2) -> (b, h, m, n)>
func.func @heads(%x: tensor<1x64x32xf16>) -> tensor<1x4x64x8xf16> {
  %scale = arith.constant 0.125 : f32
  %0 = tensor.empty() : tensor<1x64x32xf16>
  %e = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<1x64x32xf16>) outs(%0 : tensor<1x64x32xf16>) {
    ^bb0(%in: f16, %out: f16):
      %7 = math.exp %in : f16
      linalg.yield %7 : f16
  } -> tensor<1x64x32xf16>
  %split = tensor.expand_shape %e [[0], [1], [2, 3]] output_shape [1, 64, 4, 8] : tensor<1x64x32xf16> into tensor<1x64x4x8xf16>
  %1 = tensor.empty() : tensor<1x4x64x8xf16>
  %t = linalg.transpose ins(%split : tensor<1x64x4x8xf16>) outs(%1 : tensor<1x4x64x8xf16>) permutation = [0, 2, 1, 3]
  %out = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]>
      ins(%t, %t, %t, %scale : tensor<1x4x64x8xf16>, tensor<1x4x64x8xf16>, tensor<1x4x64x8xf16>, f32)
      outs(%1 : tensor<1x4x64x8xf16>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  } -> tensor<1x4x64x8xf16>
  return %out : tensor<1x4x64x8xf16>
}

// -----

// One query stays a loop of attention; several loops over queries lose those of one iteration.

// CHECK-LABEL: @decode
// CHECK: iree_linalg_ext.attention
// CHECK-SAME: ins(%{{.+}} : tensor<4x1x8xf16>, tensor<4x64x8xf16>, tensor<4x64x8xf16>, f32) outs(%{{.+}} : tensor<4x1x8xf16>)
#q = affine_map<(b, h, g, m, n, k1, k2) -> (b, h, g, m, k1)>
#k = affine_map<(b, h, g, m, n, k1, k2) -> (b, h, k2, k1)>
#v = affine_map<(b, h, g, m, n, k1, k2) -> (b, h, k2, n)>
#s = affine_map<(b, h, g, m, n, k1, k2) -> ()>
#o = affine_map<(b, h, g, m, n, k1, k2) -> (b, h, g, m, n)>
func.func @decode(%q: tensor<1x4x1x1x8xf16>, %k: tensor<1x4x64x8xf16>) -> tensor<1x4x1x1x8xf16> {
  %scale = arith.constant 0.125 : f32
  %1 = tensor.empty() : tensor<1x4x1x1x8xf16>
  %out = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]>
      ins(%q, %k, %k, %scale : tensor<1x4x1x1x8xf16>, tensor<1x4x64x8xf16>, tensor<1x4x64x8xf16>, f32)
      outs(%1 : tensor<1x4x1x1x8xf16>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  } -> tensor<1x4x1x1x8xf16>
  return %out : tensor<1x4x1x1x8xf16>
}

// -----

// A product of a vector and a matrix is a generic; a transposed weight is read as it is stored.

// CHECK-LABEL: @row
// CHECK: linalg.generic {{.+}} ins(%{{.+}}, %{{.+}} : tensor<32xf32>, tensor<32x48xf32>)
func.func @row(%x: tensor<1x1x32xf32>, %w: tensor<1x32x48xf32>, %acc: tensor<1x1x48xf32>) -> tensor<1x1x48xf32> {
  %0 = linalg.batch_matmul ins(%x, %w : tensor<1x1x32xf32>, tensor<1x32x48xf32>) outs(%acc : tensor<1x1x48xf32>)
      -> tensor<1x1x48xf32>
  return %0 : tensor<1x1x48xf32>
}

// CHECK-LABEL: @transposed
// CHECK: linalg.matmul indexing_maps = [{{.+}}] ins(%{{.+}}, %{{.+}} : tensor<64x32xf32>, tensor<48x32xf32>)
#lhs = affine_map<(b, m, n, k) -> (b, m, k)>
#rhs = affine_map<(b, m, n, k) -> (b, n, k)>
#res = affine_map<(b, m, n, k) -> (b, m, n)>
func.func @transposed(%x: tensor<1x64x32xf32>, %w: tensor<1x48x32xf32>, %acc: tensor<1x64x48xf32>) -> tensor<1x64x48xf32> {
  %0 = linalg.batch_matmul indexing_maps = [#lhs, #rhs, #res] ins(%x, %w : tensor<1x64x32xf32>, tensor<1x48x32xf32>)
      outs(%acc : tensor<1x64x48xf32>) -> tensor<1x64x48xf32>
  return %0 : tensor<1x64x48xf32>
}

// -----

// A dynamic number of tokens.

// CHECK-LABEL: @dynamic
// CHECK: %[[X2:.+]] = tensor.collapse_shape %arg0 {{\[}}[0, 1], [2]] : tensor<1x?x32xf32> into tensor<?x32xf32>
// CHECK: %[[P:.+]] = linalg.matmul ins(%[[X2]], %{{.+}} : tensor<?x32xf32>, tensor<32x48xf32>) outs(%{{.+}} : tensor<?x48xf32>)
// CHECK: tensor.expand_shape %[[P]] {{\[}}[0, 1], [2]] output_shape [1, %{{.+}}, 48] : tensor<?x48xf32> into tensor<1x?x48xf32>
func.func @dynamic(%x: tensor<1x?x32xf32>, %w: tensor<1x32x48xf32>) -> tensor<1x?x48xf32> {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %size = tensor.dim %x, %c1 : tensor<1x?x32xf32>
  %0 = tensor.empty(%size) : tensor<1x?x48xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<1x?x48xf32>) -> tensor<1x?x48xf32>
  %2 = linalg.batch_matmul ins(%x, %w : tensor<1x?x32xf32>, tensor<1x32x48xf32>) outs(%1 : tensor<1x?x48xf32>)
      -> tensor<1x?x48xf32>
  return %2 : tensor<1x?x48xf32>
}

// -----

// A batch that may be 1 is no unit dim.

// CHECK-LABEL: @dynamic_batch
// CHECK: linalg.batch_matmul
func.func @dynamic_batch(%x: tensor<?x64x32xf32>, %w: tensor<1x32x48xf32>, %acc: tensor<?x64x48xf32>) -> tensor<?x64x48xf32> {
  %0 = linalg.batch_matmul ins(%x, %w : tensor<?x64x32xf32>, tensor<1x32x48xf32>) outs(%acc : tensor<?x64x48xf32>)
      -> tensor<?x64x48xf32>
  return %0 : tensor<?x64x48xf32>
}

// -----

// A reduction over one element adds it to the init: the loop stays, other loops go.

// CHECK-LABEL: @reduction
// CHECK: %[[SUM:.+]] = linalg.generic {{.+}}iterator_types = ["parallel", "reduction"]{{.+}} ins(%{{.+}} : tensor<8x1xf32>) outs(%{{.+}} : tensor<8xf32>)
#in = affine_map<(a, b, c) -> (a, b, c)>
#kept = affine_map<(a, b, c) -> (a, b)>
func.func @reduction(%x: tensor<1x8x1xf32>, %init: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %0 = linalg.generic {indexing_maps = [#in, #kept], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<1x8x1xf32>) outs(%init : tensor<1x8xf32>) {
    ^bb0(%in: f32, %acc: f32):
      %1 = arith.addf %in, %acc : f32
      linalg.yield %1 : f32
  } -> tensor<1x8xf32>
  return %0 : tensor<1x8xf32>
}

// -----

// Positions, a dim that is read at 0, and two results.

// CHECK-LABEL: @positions
// CHECK: %[[R:.+]]:2 = linalg.generic {{.+}} ins(%{{.+}} : tensor<8xf32>) outs(%{{.+}}, %{{.+}} : tensor<8x4xf32>, tensor<8x4xindex>)
// CHECK-DAG: linalg.index 0
// CHECK-DAG: linalg.index 1
// CHECK-DAG: arith.constant 0 : index
// CHECK: tensor.expand_shape %[[R]]#0 {{\[}}[0], [1, 2]] output_shape [8, 1, 4]
// CHECK: tensor.expand_shape %[[R]]#1 {{\[}}[0], [1, 2]] output_shape [8, 1, 4]
#zero = affine_map<(a, b, c) -> (a, 0)>
#all = affine_map<(a, b, c) -> (a, b, c)>
func.func @positions(%x: tensor<8x1xf32>) -> (tensor<8x1x4xf32>, tensor<8x1x4xindex>) {
  %0 = tensor.empty() : tensor<8x1x4xf32>
  %1 = tensor.empty() : tensor<8x1x4xindex>
  %2:2 = linalg.generic {indexing_maps = [#zero, #all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<8x1xf32>) outs(%0, %1 : tensor<8x1x4xf32>, tensor<8x1x4xindex>) {
    ^bb0(%in: f32, %out: f32, %place: index):
      %a = linalg.index 0 : index
      %b = linalg.index 1 : index
      %c = linalg.index 2 : index
      %3 = arith.addi %a, %b : index
      %4 = arith.addi %3, %c : index
      linalg.yield %in, %4 : f32, index
  } -> (tensor<8x1x4xf32>, tensor<8x1x4xindex>)
  return %2#0, %2#1 : tensor<8x1x4xf32>, tensor<8x1x4xindex>
}

// -----

// Slices and concatenations.

// CHECK-LABEL: @slices
// CHECK: %[[X2:.+]] = tensor.collapse_shape %arg0
// CHECK: %[[A:.+]] = tensor.extract_slice %[[X2]][%{{.+}}] [8] [1] : tensor<32xf32> to tensor<8xf32>
// CHECK: %[[B:.+]] = tensor.extract_slice %{{.+}}[16] [8] [1] : tensor<32xf32> to tensor<8xf32>
// CHECK: tensor.concat dim(0) %[[A]], %[[B]] : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
func.func @slices(%x: tensor<1x32xf32>, %at: index) -> tensor<1x16xf32> {
  %0 = tensor.extract_slice %x[0, %at] [1, 8] [1, 1] : tensor<1x32xf32> to tensor<1x8xf32>
  %1 = tensor.extract_slice %x[0, 16] [1, 8] [1, 1] : tensor<1x32xf32> to tensor<1x8xf32>
  %2 = tensor.concat dim(1) %0, %1 : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x16xf32>
  return %2 : tensor<1x16xf32>
}

// CHECK-LABEL: @concat_along_it
// CHECK: tensor.concat dim(0) %{{.+}} : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<2x8xf32>
func.func @concat_along_it(%x: tensor<1x8xf32>) -> tensor<2x8xf32> {
  %0 = tensor.concat dim(0) %x, %x : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// CHECK-LABEL: @slices_that_stay
// CHECK: tensor.extract_slice %{{.+}}[0, 0] [1, 8] [1, 1] : tensor<1x32xf32> to tensor<8xf32>
// CHECK: tensor.extract_slice %{{.+}}[%{{.+}}, 0] [1, 8] [1, 1] : tensor<1x32xf32> to tensor<1x8xf32>
func.func @slices_that_stay(%x: tensor<1x32xf32>, %at: index) -> (tensor<8xf32>, tensor<1x8xf32>) {
  %0 = tensor.extract_slice %x[0, 0] [1, 8] [1, 1] : tensor<1x32xf32> to tensor<8xf32>
  %1 = tensor.extract_slice %x[%at, 0] [1, 8] [1, 1] : tensor<1x32xf32> to tensor<1x8xf32>
  return %0, %1 : tensor<8xf32>, tensor<1x8xf32>
}

// -----

// A named elementwise op.

// CHECK-LABEL: @map
// CHECK: linalg.generic {{.+}} ins(%{{.+}} : tensor<8xf32>) outs(%{{.+}} : tensor<8xf32>)
func.func @map(%x: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %0 = tensor.empty() : tensor<1x8xf32>
  %1 = linalg.map { math.exp } ins(%x : tensor<1x8xf32>) outs(%0 : tensor<1x8xf32>)
  return %1 : tensor<1x8xf32>
}

// -----

// CHECK-LABEL: @onto_a_bias
// CHECK: %[[BIAS:.+]] = linalg.generic {{.*}} outs(%{{.+}} : tensor<4x6x6xf32>)
// CHECK: %[[ZERO:.+]] = linalg.fill ins(%cst : f32) outs(%{{.+}} : tensor<1x4x6x6xf32>)
// CHECK: %[[CONV:.+]] = linalg.conv_2d_nchw_fchw {{.*}} outs(%[[ZERO]] : tensor<1x4x6x6xf32>)
// CHECK: %[[FLAT:.+]] = tensor.collapse_shape %[[CONV]]
// CHECK: linalg.generic {{.*}} ins(%[[FLAT]], %[[BIAS]] : tensor<4x6x6xf32>, tensor<4x6x6xf32>)
func.func @onto_a_bias(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x3x3xf32>, %bias: tensor<4xf32>) -> tensor<1x4x6x6xf32> {
  %empty = tensor.empty() : tensor<1x4x6x6xf32>
  %init = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (b)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%bias : tensor<4xf32>) outs(%empty : tensor<1x4x6x6xf32>) {
  ^bb0(%in: f32, %out: f32):
    %twice = arith.addf %in, %in : f32
    linalg.yield %twice : f32
  } -> tensor<1x4x6x6xf32>
  %0 = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>)
      outs(%init : tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  return %0 : tensor<1x4x6x6xf32>
}

// -----

// CHECK-LABEL: @convolution
// CHECK: linalg.conv_2d_nchw_fchw
func.func @convolution(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x3x3xf32>, %acc: tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32> {
  %0 = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) outs(%acc : tensor<1x4x6x6xf32>)
      -> tensor<1x4x6x6xf32>
  return %0 : tensor<1x4x6x6xf32>
}

// -----

// CHECK-LABEL: @configured
// CHECK: linalg.generic {{.+}} ins(%{{.+}} : tensor<1x8xf32>)
#all = affine_map<(a, b) -> (a, b)>
func.func @configured(%x: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %0 = tensor.empty() : tensor<1x8xf32>
  %1 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<1x8xf32>) outs(%0 : tensor<1x8xf32>) attrs = {
        lowering_config = #iree_gpu.lowering_config<{workgroup = [1, 8]}>} {
    ^bb0(%in: f32, %out: f32):
      %2 = math.exp %in : f32
      linalg.yield %2 : f32
  } -> tensor<1x8xf32>
  return %1 : tensor<1x8xf32>
}

// -----

// CHECK-LABEL: @encoded
// CHECK: linalg.generic {{.+}} ins(%{{.+}} : tensor<1x8xf32, #{{.+}}>)
#all = affine_map<(a, b) -> (a, b)>
func.func @encoded(%x: tensor<1x8xf32, #iree_encoding.testing<>>) -> tensor<1x8xf32, #iree_encoding.testing<>> {
  %0 = tensor.empty() : tensor<1x8xf32, #iree_encoding.testing<>>
  %1 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<1x8xf32, #iree_encoding.testing<>>) outs(%0 : tensor<1x8xf32, #iree_encoding.testing<>>) {
    ^bb0(%in: f32, %out: f32):
      %2 = math.exp %in : f32
      linalg.yield %2 : f32
  } -> tensor<1x8xf32, #iree_encoding.testing<>>
  return %1 : tensor<1x8xf32, #iree_encoding.testing<>>
}

// -----

// CHECK-LABEL: @dispatch
// CHECK: linalg.generic {{.+}} ins(%{{.+}} : tensor<1x8xf32>)
// CHECK: tensor.extract_slice %{{.+}}[0, 4] [1, 4] [1, 1] : tensor<1x8xf32> to tensor<1x4xf32>
// CHECK: tensor.concat dim(1) %{{.+}} : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x8xf32>
#all = affine_map<(a, b) -> (a, b)>
func.func @dispatch(%x: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %0 = flow.dispatch.region -> (tensor<1x8xf32>) {
    %1 = tensor.empty() : tensor<1x8xf32>
    %2 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
        ins(%x : tensor<1x8xf32>) outs(%1 : tensor<1x8xf32>) {
      ^bb0(%in: f32, %out: f32):
        %3 = math.exp %in : f32
        linalg.yield %3 : f32
    } -> tensor<1x8xf32>
    %4 = tensor.extract_slice %2[0, 4] [1, 4] [1, 1] : tensor<1x8xf32> to tensor<1x4xf32>
    %5 = tensor.concat dim(1) %4, %4 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x8xf32>
    flow.return %5 : tensor<1x8xf32>
  }
  return %0 : tensor<1x8xf32>
}
