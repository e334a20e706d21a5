// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu \
// RUN:   --iree-llvmcpu-target-cpu=generic --compile-to=preprocessing --prepass-remarks=all \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-decompose-attention)' 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// Idempotence.
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu \
// RUN:   --iree-llvmcpu-target-cpu=generic --compile-to=preprocessing \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-decompose-attention)' > %t.once
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu \
// RUN:   --iree-llvmcpu-target-cpu=generic --compile-to=preprocessing \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-decompose-attention,prepass-decompose-attention)' > %t.twice
// RUN: diff %t.once %t.twice

// RUN: prepass-opt %s --split-input-file --prepass-remarks=all \
// RUN:   --pass-pipeline='builtin.module(prepass-decompose-attention)' 2>&1 | FileCheck %s --check-prefix=NOTARGET
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=hip --iree-rocm-target=gfx942 \
// RUN:   --compile-to=preprocessing --prepass-remarks=all \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-decompose-attention)' 2>&1 | FileCheck %s --check-prefix=GPU

// Everywhere.
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-decompose-attention{when=always})' \
// RUN:   --prepass-remarks=all 2>&1 | FileCheck %s --check-prefix=ALWAYS

// ALWAYS-COUNT-3: applied: decomposed into two contractions and a softmax
// ALWAYS: missed: a size is dynamic
// ALWAYS: missed: the region changes the scores

// NOTARGET: missed: no target is known
// GPU: missed: gfx942 computes this attention as fast in one kernel

// REMARK-COUNT-2: remark: prepass-decompose-attention: applied: decomposed into two contractions and a softmax
// REMARK: missed: llvm-cpu computes this attention as fast in one kernel
// REMARK: missed: llvm-cpu computes this attention as fast in one kernel
// REMARK: missed: the region changes the scores
// REMARK: missed: the mask is of numbers that are neither floats nor bits
// REMARK: missed: the loops are not those of attention, or not in its order

// CHECK-LABEL: @unmasked
// CHECK-NOT: iree_linalg_ext.attention
// CHECK: %[[ZEROS:.+]] = linalg.fill
// CHECK: %[[S:.+]] = linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel", "reduction", "parallel"]
// CHECK-SAME: outs(%[[ZEROS]] : tensor<4x128x128xf32>)
// CHECK: %[[T:.+]] = linalg.generic
// CHECK-SAME: ins(%[[S]] : tensor<4x128x128xf32>)
// CHECK: %[[P:.+]] = linalg.softmax dimension(2) ins(%[[T]] : tensor<4x128x128xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[P]], %{{.+}} : tensor<4x128x128xf32>, tensor<4x128x64xf32>)
#q = affine_map<(b, m, n, k1, k2) -> (b, m, k1)>
#k = affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>
#v = affine_map<(b, m, n, k1, k2) -> (b, k2, n)>
#s = affine_map<(b, m, n, k1, k2) -> ()>
#o = affine_map<(b, m, n, k1, k2) -> (b, m, n)>
func.func @unmasked(%q: tensor<4x128x64xf32>, %k: tensor<4x128x64xf32>, %v: tensor<4x128x64xf32>) -> tensor<4x128x64xf32> {
  %scale = arith.constant 0.125 : f32
  %init = tensor.empty() : tensor<4x128x64xf32>
  %out = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]>
      ins(%q, %k, %v, %scale : tensor<4x128x64xf32>, tensor<4x128x64xf32>, tensor<4x128x64xf32>, f32)
      outs(%init : tensor<4x128x64xf32>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  } -> tensor<4x128x64xf32>
  return %out : tensor<4x128x64xf32>
}

// -----

// A mask of bits over the keys selects -inf; heads share K and V.

// CHECK-LABEL: @shared_heads
// CHECK: %[[INF:.+]] = arith.constant 0xFF800000 : f32
// CHECK: arith.select %{{.+}}, %{{.+}}, %[[INF]] : f32
// CHECK: linalg.softmax dimension(3) ins(%{{.+}} : tensor<2x4x128x128xf32>)
#q = affine_map<(b, h, m, n, k1, k2) -> (b, h, m, k1)>
#k = affine_map<(b, h, m, n, k1, k2) -> (b, k2, k1)>
#v = affine_map<(b, h, m, n, k1, k2) -> (b, k2, n)>
#s = affine_map<(b, h, m, n, k1, k2) -> ()>
#x = affine_map<(b, h, m, n, k1, k2) -> (k2)>
#o = affine_map<(b, h, m, n, k1, k2) -> (b, h, m, n)>
func.func @shared_heads(%q: tensor<2x4x128x64xf32>, %k: tensor<2x128x64xf32>, %v: tensor<2x128x64xf32>, %mask: tensor<128xi1>) -> tensor<2x4x128x64xf32> {
  %scale = arith.constant 0.125 : f32
  %init = tensor.empty() : tensor<2x4x128x64xf32>
  %out = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #x, #o]>
      ins(%q, %k, %v, %scale, %mask : tensor<2x4x128x64xf32>, tensor<2x128x64xf32>, tensor<2x128x64xf32>, f32, tensor<128xi1>)
      outs(%init : tensor<2x4x128x64xf32>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  } -> tensor<2x4x128x64xf32>
  return %out : tensor<2x4x128x64xf32>
}

// -----

// The scores of 20 heads of 1024 tokens fit no cache.

// CHECK-LABEL: @many_scores
// CHECK: iree_linalg_ext.attention
#q = affine_map<(b, m, n, k1, k2) -> (b, m, k1)>
#k = affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>
#v = affine_map<(b, m, n, k1, k2) -> (b, k2, n)>
#s = affine_map<(b, m, n, k1, k2) -> ()>
#o = affine_map<(b, m, n, k1, k2) -> (b, m, n)>
func.func @many_scores(%q: tensor<20x1024x64xf32>, %k: tensor<20x1024x64xf32>, %v: tensor<20x1024x64xf32>) -> tensor<20x1024x64xf32> {
  %scale = arith.constant 0.125 : f32
  %init = tensor.empty() : tensor<20x1024x64xf32>
  %out = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]>
      ins(%q, %k, %v, %scale : tensor<20x1024x64xf32>, tensor<20x1024x64xf32>, tensor<20x1024x64xf32>, f32)
      outs(%init : tensor<20x1024x64xf32>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  } -> tensor<20x1024x64xf32>
  return %out : tensor<20x1024x64xf32>
}

// -----

// CHECK-LABEL: @dynamic_keys
// CHECK: iree_linalg_ext.attention
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

// CHECK-LABEL: @capped_scores
// CHECK: iree_linalg_ext.attention
#q = affine_map<(b, m, n, k1, k2) -> (b, m, k1)>
#k = affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>
#v = affine_map<(b, m, n, k1, k2) -> (b, k2, n)>
#s = affine_map<(b, m, n, k1, k2) -> ()>
#o = affine_map<(b, m, n, k1, k2) -> (b, m, n)>
func.func @capped_scores(%q: tensor<4x128x64xf32>, %k: tensor<4x128x64xf32>, %v: tensor<4x128x64xf32>) -> tensor<4x128x64xf32> {
  %scale = arith.constant 0.125 : f32
  %init = tensor.empty() : tensor<4x128x64xf32>
  %out = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]>
      ins(%q, %k, %v, %scale : tensor<4x128x64xf32>, tensor<4x128x64xf32>, tensor<4x128x64xf32>, f32)
      outs(%init : tensor<4x128x64xf32>) {
    ^bb0(%score: f32):
      %capped = math.tanh %score : f32
      iree_linalg_ext.yield %capped : f32
  } -> tensor<4x128x64xf32>
  return %out : tensor<4x128x64xf32>
}

// -----

// CHECK-LABEL: @mask_of_bytes
// CHECK: iree_linalg_ext.attention
#q = affine_map<(b, m, n, k1, k2) -> (b, m, k1)>
#k = affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>
#v = affine_map<(b, m, n, k1, k2) -> (b, k2, n)>
#s = affine_map<(b, m, n, k1, k2) -> ()>
#x = affine_map<(b, m, n, k1, k2) -> (m, k2)>
#o = affine_map<(b, m, n, k1, k2) -> (b, m, n)>
func.func @mask_of_bytes(%q: tensor<4x128x64xf32>, %k: tensor<4x128x64xf32>, %v: tensor<4x128x64xf32>, %mask: tensor<128x128xi8>) -> tensor<4x128x64xf32> {
  %scale = arith.constant 0.125 : f32
  %init = tensor.empty() : tensor<4x128x64xf32>
  %out = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #x, #o]>
      ins(%q, %k, %v, %scale, %mask : tensor<4x128x64xf32>, tensor<4x128x64xf32>, tensor<4x128x64xf32>, f32, tensor<128x128xi8>)
      outs(%init : tensor<4x128x64xf32>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  } -> tensor<4x128x64xf32>
  return %out : tensor<4x128x64xf32>
}

// -----

// CHECK-LABEL: @queries_after_channels
// CHECK: iree_linalg_ext.attention
#q = affine_map<(b, n, m, k1, k2) -> (b, m, k1)>
#k = affine_map<(b, n, m, k1, k2) -> (b, k2, k1)>
#v = affine_map<(b, n, m, k1, k2) -> (b, k2, n)>
#s = affine_map<(b, n, m, k1, k2) -> ()>
#o = affine_map<(b, n, m, k1, k2) -> (b, m, n)>
func.func @queries_after_channels(%q: tensor<4x128x64xf32>, %k: tensor<4x128x64xf32>, %v: tensor<4x128x64xf32>) -> tensor<4x128x64xf32> {
  %scale = arith.constant 0.125 : f32
  %init = tensor.empty() : tensor<4x128x64xf32>
  %out = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]>
      ins(%q, %k, %v, %scale : tensor<4x128x64xf32>, tensor<4x128x64xf32>, tensor<4x128x64xf32>, f32)
      outs(%init : tensor<4x128x64xf32>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  } -> tensor<4x128x64xf32>
  return %out : tensor<4x128x64xf32>
}
