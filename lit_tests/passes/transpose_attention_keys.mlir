// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu \
// RUN:   --iree-llvmcpu-target-cpu=generic --compile-to=preprocessing --prepass-remarks=all \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-transpose-attention-keys)' 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// Idempotence.
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu \
// RUN:   --iree-llvmcpu-target-cpu=generic --compile-to=preprocessing \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-transpose-attention-keys)' > %t.once
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu \
// RUN:   --iree-llvmcpu-target-cpu=generic --compile-to=preprocessing \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-transpose-attention-keys,prepass-transpose-attention-keys)' > %t.twice
// RUN: diff %t.once %t.twice

// RUN: prepass-opt %s --split-input-file --prepass-remarks=all \
// RUN:   --pass-pipeline='builtin.module(prepass-transpose-attention-keys)' 2>&1 | FileCheck %s --check-prefix=NOTARGET
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=hip --iree-rocm-target=gfx942 \
// RUN:   --compile-to=preprocessing --prepass-remarks=all \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-transpose-attention-keys)' 2>&1 | FileCheck %s --check-prefix=GPU

// NOTARGET: missed: no target is known
// GPU: missed: gfx942 does not ask for another layout of K

// REMARK-COUNT-2: remark: prepass-transpose-attention-keys: applied: K laid out with the keys innermost
// REMARK-COUNT-3: missed: llvm-cpu does not ask for another layout of K
// REMARK: missed: the loops are not those of attention, or not in its order

// CHECK-LABEL: @channels_innermost
// CHECK: %[[T:.+]] = linalg.generic {{.*}} outs(%{{.+}} : tensor<4x64x96xf32>)
// CHECK: %[[P:.+]] = tensor.pad %[[T]] low[0, 0, 0] high[0, 0, 16]
// CHECK: %[[KEPT:.+]] = iree_tensor_ext.compute_barrier.start %[[P]] : tensor<4x64x112xf32> -> tensor<4x64x112xf32>
// CHECK: %[[KT:.+]] = tensor.extract_slice %[[KEPT]][0, 0, 0] [4, 64, 96] [1, 1, 1]
// CHECK: iree_linalg_ext.attention
// CHECK-SAME: affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d4)>
// CHECK-SAME: ins(%{{.+}}, %[[KT]], %{{.+}}, %{{.+}} : tensor<4x128x64xf32>, tensor<4x64x96xf32>, tensor<4x96x64xf32>, f32)
#q = affine_map<(b, m, n, k1, k2) -> (b, m, k1)>
#k = affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>
#v = affine_map<(b, m, n, k1, k2) -> (b, k2, n)>
#s = affine_map<(b, m, n, k1, k2) -> ()>
#o = affine_map<(b, m, n, k1, k2) -> (b, m, n)>
func.func @channels_innermost(%q: tensor<4x128x64xf32>, %k: tensor<4x96x64xf32>, %v: tensor<4x96x64xf32>) -> tensor<4x128x64xf32> {
  %scale = arith.constant 0.125 : f32
  %init = tensor.empty() : tensor<4x128x64xf32>
  %out = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]>
      ins(%q, %k, %v, %scale : tensor<4x128x64xf32>, tensor<4x96x64xf32>, tensor<4x96x64xf32>, f32)
      outs(%init : tensor<4x128x64xf32>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  } -> tensor<4x128x64xf32>
  return %out : tensor<4x128x64xf32>
}

// -----

// A dynamic number of keys.

// CHECK-LABEL: @dynamic_keys
// CHECK: %[[T:.+]] = linalg.generic {{.*}} outs(%{{.+}} : tensor<4x64x?xf32>)
// CHECK: iree_tensor_ext.compute_barrier.start %[[T]] : tensor<4x64x?xf32>{%{{.+}}}
#q = affine_map<(b, m, n, k1, k2) -> (b, m, k1)>
#k = affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>
#v = affine_map<(b, m, n, k1, k2) -> (b, k2, n)>
#s = affine_map<(b, m, n, k1, k2) -> ()>
#o = affine_map<(b, m, n, k1, k2) -> (b, m, n)>
func.func @dynamic_keys(%q: tensor<4x128x64xf32>, %k: tensor<4x?x64xf32>, %v: tensor<4x?x64xf32>) -> tensor<4x128x64xf32> {
  %scale = arith.constant 0.125 : f32
  %init = tensor.empty() : tensor<4x128x64xf32>
  %out = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]>
      ins(%q, %k, %v, %scale : tensor<4x128x64xf32>, tensor<4x?x64xf32>, tensor<4x?x64xf32>, f32)
      outs(%init : tensor<4x128x64xf32>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  } -> tensor<4x128x64xf32>
  return %out : tensor<4x128x64xf32>
}

// -----

// CHECK-LABEL: @keys_innermost
// CHECK-NOT: linalg.generic
#q = affine_map<(b, m, n, k1, k2) -> (b, m, k1)>
#k = affine_map<(b, m, n, k1, k2) -> (b, k1, k2)>
#v = affine_map<(b, m, n, k1, k2) -> (b, k2, n)>
#s = affine_map<(b, m, n, k1, k2) -> ()>
#o = affine_map<(b, m, n, k1, k2) -> (b, m, n)>
func.func @keys_innermost(%q: tensor<4x128x64xf32>, %k: tensor<4x64x96xf32>, %v: tensor<4x96x64xf32>) -> tensor<4x128x64xf32> {
  %scale = arith.constant 0.125 : f32
  %init = tensor.empty() : tensor<4x128x64xf32>
  %out = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]>
      ins(%q, %k, %v, %scale : tensor<4x128x64xf32>, tensor<4x64x96xf32>, tensor<4x96x64xf32>, f32)
      outs(%init : tensor<4x128x64xf32>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  } -> tensor<4x128x64xf32>
  return %out : tensor<4x128x64xf32>
}

// -----

// CHECK-LABEL: @few_queries
// CHECK-NOT: linalg.generic
#q = affine_map<(b, m, n, k1, k2) -> (b, m, k1)>
#k = affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>
#v = affine_map<(b, m, n, k1, k2) -> (b, k2, n)>
#s = affine_map<(b, m, n, k1, k2) -> ()>
#o = affine_map<(b, m, n, k1, k2) -> (b, m, n)>
func.func @few_queries(%q: tensor<4x8x64xf32>, %k: tensor<4x96x64xf32>, %v: tensor<4x96x64xf32>) -> tensor<4x8x64xf32> {
  %scale = arith.constant 0.125 : f32
  %init = tensor.empty() : tensor<4x8x64xf32>
  %out = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]>
      ins(%q, %k, %v, %scale : tensor<4x8x64xf32>, tensor<4x96x64xf32>, tensor<4x96x64xf32>, f32)
      outs(%init : tensor<4x8x64xf32>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  } -> tensor<4x8x64xf32>
  return %out : tensor<4x8x64xf32>
}

// -----

// CHECK-LABEL: @dynamic_queries
// CHECK-NOT: linalg.generic
#q = affine_map<(b, m, n, k1, k2) -> (b, m, k1)>
#k = affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>
#v = affine_map<(b, m, n, k1, k2) -> (b, k2, n)>
#s = affine_map<(b, m, n, k1, k2) -> ()>
#o = affine_map<(b, m, n, k1, k2) -> (b, m, n)>
func.func @dynamic_queries(%q: tensor<4x?x64xf32>, %k: tensor<4x96x64xf32>, %v: tensor<4x96x64xf32>, %init: tensor<4x?x64xf32>) -> tensor<4x?x64xf32> {
  %scale = arith.constant 0.125 : f32
  %out = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]>
      ins(%q, %k, %v, %scale : tensor<4x?x64xf32>, tensor<4x96x64xf32>, tensor<4x96x64xf32>, f32)
      outs(%init : tensor<4x?x64xf32>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  } -> tensor<4x?x64xf32>
  return %out : tensor<4x?x64xf32>
}

// -----

// CHECK-LABEL: @queries_after_channels
// CHECK-NOT: linalg.generic
#q = affine_map<(b, n, m, k1, k2) -> (b, m, k1)>
#k = affine_map<(b, n, m, k1, k2) -> (b, k2, k1)>
#v = affine_map<(b, n, m, k1, k2) -> (b, k2, n)>
#s = affine_map<(b, n, m, k1, k2) -> ()>
#o = affine_map<(b, n, m, k1, k2) -> (b, m, n)>
func.func @queries_after_channels(%q: tensor<4x128x64xf32>, %k: tensor<4x96x64xf32>, %v: tensor<4x96x64xf32>) -> tensor<4x128x64xf32> {
  %scale = arith.constant 0.125 : f32
  %init = tensor.empty() : tensor<4x128x64xf32>
  %out = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]>
      ins(%q, %k, %v, %scale : tensor<4x128x64xf32>, tensor<4x96x64xf32>, tensor<4x96x64xf32>, f32)
      outs(%init : tensor<4x128x64xf32>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  } -> tensor<4x128x64xf32>
  return %out : tensor<4x128x64xf32>
}
