// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=hip --iree-rocm-target=gfx942 \
// RUN:   --compile-to=preprocessing --prepass-remarks=all \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-pad-attention-keys{min-queries=64},cse)' 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// Idempotence.
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=hip --iree-rocm-target=gfx942 \
// RUN:   --compile-to=preprocessing --iree-preprocessing-pass-pipeline='builtin.module(prepass-pad-attention-keys{min-queries=64})' > %t.once
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=hip --iree-rocm-target=gfx942 \
// RUN:   --compile-to=preprocessing \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-pad-attention-keys{min-queries=64},prepass-pad-attention-keys{min-queries=64})' > %t.twice
// RUN: diff %t.once %t.twice

// RUN: prepass-opt %s --split-input-file --prepass-remarks=all \
// RUN:   --pass-pipeline='builtin.module(prepass-pad-attention-keys{min-queries=64})' 2>&1 | FileCheck %s --check-prefix=NOTARGET
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=local --iree-llvmcpu-target-cpu=generic \
// RUN:   --iree-hal-local-target-device-backends=llvm-cpu --compile-to=preprocessing --prepass-remarks=all \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-pad-attention-keys{min-queries=64})' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=CPU

// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=hip --iree-rocm-target=gfx942 \
// RUN:   --compile-to=preprocessing --prepass-remarks=all \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-pad-attention-keys)' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=FEW

// NOTARGET: missed: no target is known
// FEW: missed: 128 queries are too few to pay for copies of K and V
// CPU: missed: llvm-cpu does not ask for more keys

// REMARK-DAG: remark: prepass-pad-attention-keys: applied: keys padded from 77 to 80
// REMARK-DAG: missed: gfx942 does not ask for more keys
// REMARK-DAG: missed: the mask is not of floats and does not vary along the keys

// CHECK-LABEL: @unmasked
// CHECK-DAG: %[[MASK:.+]] = arith.constant dense<[0.000000e+00, {{.*}}0xFF800000, 0xFF800000, 0xFF800000]> : tensor<80xf32>
// CHECK-DAG: %[[K:.+]] = tensor.pad %{{.+}} low[0, 0, 0] high[0, 3, 0]
// CHECK-DAG: %[[V:.+]] = tensor.pad %{{.+}} low[0, 0, 0] high[0, 0, 3]
// CHECK: = iree_linalg_ext.attention
// CHECK-SAME: ins(%{{.+}}, %[[K]], %[[V]], %{{.+}}, %[[MASK]] : tensor<4x128x64xf16>, tensor<4x80x64xf16>, tensor<4x64x80xf16>, f32, tensor<80xf32>)
#q = affine_map<(b, m, n, k1, k2) -> (b, m, k1)>
#k = affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>
#v = affine_map<(b, m, n, k1, k2) -> (b, n, k2)>
#s = affine_map<(b, m, n, k1, k2) -> ()>
#o = affine_map<(b, m, n, k1, k2) -> (b, m, n)>
func.func @unmasked(%q: tensor<4x128x64xf16>, %k: tensor<4x77x64xf16>, %v: tensor<4x64x77xf16>) -> tensor<4x128x64xf16> {
  %scale = arith.constant 0.125 : f32
  %init = tensor.empty() : tensor<4x128x64xf16>
  %out = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]>
      ins(%q, %k, %v, %scale : tensor<4x128x64xf16>, tensor<4x77x64xf16>, tensor<4x64x77xf16>, f32)
      outs(%init : tensor<4x128x64xf16>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  } -> tensor<4x128x64xf16>
  return %out : tensor<4x128x64xf16>
}

// -----

// A mask along the keys is padded with -inf.

// CHECK-LABEL: @masked
// CHECK: %[[INF:.+]] = arith.constant 0xFF800000 : f32
// CHECK: %[[MASK:.+]] = tensor.pad %{{.+}} low[0, 0] high[0, 3]
// CHECK: tensor.yield %[[INF]] : f32
// CHECK: = iree_linalg_ext.attention
// CHECK-SAME: %[[MASK]] : tensor<4x128x64xf16>, tensor<4x80x64xf16>, tensor<4x64x80xf16>, f32, tensor<128x80xf32>)
#q = affine_map<(b, m, n, k1, k2) -> (b, m, k1)>
#k = affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>
#v = affine_map<(b, m, n, k1, k2) -> (b, n, k2)>
#s = affine_map<(b, m, n, k1, k2) -> ()>
#x = affine_map<(b, m, n, k1, k2) -> (m, k2)>
#o = affine_map<(b, m, n, k1, k2) -> (b, m, n)>
func.func @masked(%q: tensor<4x128x64xf16>, %k: tensor<4x77x64xf16>, %v: tensor<4x64x77xf16>, %mask: tensor<128x77xf32>) -> tensor<4x128x64xf16> {
  %scale = arith.constant 0.125 : f32
  %init = tensor.empty() : tensor<4x128x64xf16>
  %out = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #x, #o]>
      ins(%q, %k, %v, %scale, %mask : tensor<4x128x64xf16>, tensor<4x77x64xf16>, tensor<4x64x77xf16>, f32, tensor<128x77xf32>)
      outs(%init : tensor<4x128x64xf16>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  } -> tensor<4x128x64xf16>
  return %out : tensor<4x128x64xf16>
}

// -----

// A mask that does not vary along the keys comes to do so; dynamic queries are no obstacle.

// CHECK-LABEL: @broadcast_mask
// CHECK: linalg.generic
// CHECK: = iree_linalg_ext.attention
// CHECK-SAME: f32, tensor<?x80xf32>)
#q = affine_map<(b, m, n, k1, k2) -> (b, m, k1)>
#k = affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>
#v = affine_map<(b, m, n, k1, k2) -> (b, n, k2)>
#s = affine_map<(b, m, n, k1, k2) -> ()>
#x = affine_map<(b, m, n, k1, k2) -> (m)>
#o = affine_map<(b, m, n, k1, k2) -> (b, m, n)>
func.func @broadcast_mask(%q: tensor<4x?x64xf16>, %k: tensor<4x77x64xf16>, %v: tensor<4x64x77xf16>, %mask: tensor<?xf32>, %init: tensor<4x?x64xf16>) -> tensor<4x?x64xf16> {
  %scale = arith.constant 0.125 : f32
  %out = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #x, #o]>
      ins(%q, %k, %v, %scale, %mask : tensor<4x?x64xf16>, tensor<4x77x64xf16>, tensor<4x64x77xf16>, f32, tensor<?xf32>)
      outs(%init : tensor<4x?x64xf16>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  } -> tensor<4x?x64xf16>
  return %out : tensor<4x?x64xf16>
}

// -----

// CHECK-LABEL: @boolean_row_mask
// CHECK-NOT: tensor.pad
#q = affine_map<(b, m, n, k1, k2) -> (b, m, k1)>
#k = affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>
#v = affine_map<(b, m, n, k1, k2) -> (b, n, k2)>
#s = affine_map<(b, m, n, k1, k2) -> ()>
#x = affine_map<(b, m, n, k1, k2) -> (m)>
#o = affine_map<(b, m, n, k1, k2) -> (b, m, n)>
func.func @boolean_row_mask(%q: tensor<4x128x64xf16>, %k: tensor<4x77x64xf16>, %v: tensor<4x64x77xf16>, %mask: tensor<128xi1>) -> tensor<4x128x64xf16> {
  %scale = arith.constant 0.125 : f32
  %init = tensor.empty() : tensor<4x128x64xf16>
  %out = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #x, #o]>
      ins(%q, %k, %v, %scale, %mask : tensor<4x128x64xf16>, tensor<4x77x64xf16>, tensor<4x64x77xf16>, f32, tensor<128xi1>)
      outs(%init : tensor<4x128x64xf16>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  } -> tensor<4x128x64xf16>
  return %out : tensor<4x128x64xf16>
}

// -----

// CHECK-LABEL: @eighty_keys
// CHECK-NOT: tensor.pad
#q = affine_map<(b, m, n, k1, k2) -> (b, m, k1)>
#k = affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>
#v = affine_map<(b, m, n, k1, k2) -> (b, n, k2)>
#s = affine_map<(b, m, n, k1, k2) -> ()>
#o = affine_map<(b, m, n, k1, k2) -> (b, m, n)>
func.func @eighty_keys(%q: tensor<4x128x64xf16>, %k: tensor<4x80x64xf16>, %v: tensor<4x64x80xf16>) -> tensor<4x128x64xf16> {
  %scale = arith.constant 0.125 : f32
  %init = tensor.empty() : tensor<4x128x64xf16>
  %out = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]>
      ins(%q, %k, %v, %scale : tensor<4x128x64xf16>, tensor<4x80x64xf16>, tensor<4x64x80xf16>, f32)
      outs(%init : tensor<4x128x64xf16>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  } -> tensor<4x128x64xf16>
  return %out : tensor<4x128x64xf16>
}

// -----

// Keys and values are a projection: what that reads is padded, and the projection has more rows.

// CHECK-LABEL: @projected
// CHECK: %[[X:.+]] = tensor.pad %{{.+}} low[0, 0, 0] high[0, 3, 0]
// CHECK: tensor<2x77x96xf16> to tensor<2x80x96xf16>
// CHECK-NOT: tensor.pad
// CHECK: %[[ROWS:.+]] = tensor.collapse_shape %[[X]] {{.+}} into tensor<160x96xf16>
// CHECK: linalg.matmul ins(%[[ROWS]], %{{.+}} : tensor<160x96xf16>, tensor<96x64xf16>) outs(%{{.+}} : tensor<160x64xf32>)
// CHECK: linalg.generic {{.+}} outs(%{{.+}} : tensor<160x64xf16>)
// CHECK: %[[K:.+]] = tensor.expand_shape %{{.+}} output_shape [2, 80, 64]
// CHECK: iree_linalg_ext.attention
// CHECK-SAME: ins(%{{.+}}, %[[K]], %[[K]], %{{.+}}, %{{.+}} : tensor<2x128x64xf16>, tensor<2x80x64xf16>, tensor<2x80x64xf16>, f32, tensor<80xf32>)
#q = affine_map<(b, m, n, k1, k2) -> (b, m, k1)>
#k = affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>
#v = affine_map<(b, m, n, k1, k2) -> (b, k2, n)>
#s = affine_map<(b, m, n, k1, k2) -> ()>
#o = affine_map<(b, m, n, k1, k2) -> (b, m, n)>
#all = affine_map<(r, c) -> (r, c)>
#channel = affine_map<(r, c) -> (c)>
func.func @projected(%q: tensor<2x128x64xf16>, %x: tensor<2x77x96xf16>, %w: tensor<96x64xf16>, %bias: tensor<64xf16>) -> tensor<2x128x64xf16> {
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.125 : f32
  %rows = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x77x96xf16> into tensor<154x96xf16>
  %0 = tensor.empty() : tensor<154x64xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<154x64xf32>) -> tensor<154x64xf32>
  %2 = linalg.matmul ins(%rows, %w : tensor<154x96xf16>, tensor<96x64xf16>) outs(%1 : tensor<154x64xf32>) -> tensor<154x64xf32>
  %3 = tensor.empty() : tensor<154x64xf16>
  %4 = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel"]}
      ins(%2, %bias : tensor<154x64xf32>, tensor<64xf16>) outs(%3 : tensor<154x64xf16>) {
    ^bb0(%in: f32, %b: f16, %out: f16):
      %5 = arith.truncf %in : f32 to f16
      %6 = arith.addf %5, %b : f16
      linalg.yield %6 : f16
  } -> tensor<154x64xf16>
  %k = tensor.expand_shape %4 [[0, 1], [2]] output_shape [2, 77, 64] : tensor<154x64xf16> into tensor<2x77x64xf16>
  %init = tensor.empty() : tensor<2x128x64xf16>
  %out = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]>
      ins(%q, %k, %k, %scale : tensor<2x128x64xf16>, tensor<2x77x64xf16>, tensor<2x77x64xf16>, f32)
      outs(%init : tensor<2x128x64xf16>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  } -> tensor<2x128x64xf16>
  return %out : tensor<2x128x64xf16>
}

// -----

// What another op reads too is padded where it is, and so is what padding could make infinite.

// CHECK-LABEL: @padded_late
// CHECK: %[[EXP:.+]] = linalg.generic
// CHECK: math.exp
// CHECK: %[[SUM:.+]] = linalg.generic
// CHECK: arith.addf
// CHECK-DAG: tensor.pad %[[EXP]] low[0, 0, 0] high[0, 3, 0]
// CHECK-DAG: tensor.pad %[[SUM]] low[0, 0, 0] high[0, 3, 0]
#q = affine_map<(b, m, n, k1, k2) -> (b, m, k1)>
#k = affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>
#v = affine_map<(b, m, n, k1, k2) -> (b, k2, n)>
#s = affine_map<(b, m, n, k1, k2) -> ()>
#o = affine_map<(b, m, n, k1, k2) -> (b, m, n)>
#all = affine_map<(b, r, c) -> (b, r, c)>
func.func @padded_late(%q: tensor<2x128x64xf16>, %x: tensor<2x77x64xf16>) -> (tensor<2x128x64xf16>, tensor<2x77x64xf16>) {
  %one = arith.constant 1.0 : f16
  %scale = arith.constant 0.125 : f32
  %0 = tensor.empty() : tensor<2x77x64xf16>
  %k = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x77x64xf16>) outs(%0 : tensor<2x77x64xf16>) {
    ^bb0(%in: f16, %out: f16):
      %1 = math.exp %in : f16
      linalg.yield %1 : f16
  } -> tensor<2x77x64xf16>
  %v = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x77x64xf16>) outs(%0 : tensor<2x77x64xf16>) {
    ^bb0(%in: f16, %out: f16):
      %1 = arith.addf %in, %one : f16
      linalg.yield %1 : f16
  } -> tensor<2x77x64xf16>
  %init = tensor.empty() : tensor<2x128x64xf16>
  %out = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]>
      ins(%q, %k, %v, %scale : tensor<2x128x64xf16>, tensor<2x77x64xf16>, tensor<2x77x64xf16>, f32)
      outs(%init : tensor<2x128x64xf16>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  } -> tensor<2x128x64xf16>
  return %out, %v : tensor<2x128x64xf16>, tensor<2x77x64xf16>
}
