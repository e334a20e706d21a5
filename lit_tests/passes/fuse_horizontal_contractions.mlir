// RUN: prepass-opt %s --split-input-file --prepass-remarks=all \
// RUN:   --pass-pipeline='builtin.module(prepass-fuse-horizontal-contractions{form=results})' 2> %t.results \
// RUN:   | FileCheck %s --check-prefixes=CHECK,RESULTS
// RUN: FileCheck %s --check-prefix=SAID < %t.results
// RUN: prepass-opt %s --split-input-file --prepass-remarks=all \
// RUN:   --pass-pipeline='builtin.module(prepass-fuse-horizontal-contractions{form=packed})' 2> %t.packed \
// RUN:   | FileCheck %s --check-prefixes=CHECK,PACKED
// RUN: FileCheck %s --check-prefix=PSAID < %t.packed

// Idempotence.
// RUN: prepass-opt %s --split-input-file \
// RUN:   --pass-pipeline='builtin.module(prepass-fuse-horizontal-contractions{form=results})' > %t.once
// RUN: prepass-opt %t.once --split-input-file --prepass-remarks=applied -o /dev/null \
// RUN:   --pass-pipeline='builtin.module(prepass-fuse-horizontal-contractions{form=results})' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=AGAIN --allow-empty
// RUN: prepass-opt %s --split-input-file \
// RUN:   --pass-pipeline='builtin.module(prepass-fuse-horizontal-contractions{form=packed})' > %t.once
// RUN: prepass-opt %t.once --split-input-file --prepass-remarks=applied -o /dev/null \
// RUN:   --pass-pipeline='builtin.module(prepass-fuse-horizontal-contractions{form=packed})' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=AGAIN --allow-empty
// AGAIN-NOT: applied:

// What the targets decide.
// RUN: prepass-opt %s --split-input-file --prepass-remarks=missed \
// RUN:   --pass-pipeline='builtin.module(prepass-fuse-horizontal-contractions)' 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: prepass-compile %S/Inputs/projections.mlir --iree-hal-target-device=local --compile-to=preprocessing \
// RUN:   --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-target-cpu=generic --prepass-remarks=missed \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-fuse-horizontal-contractions)' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=CPU
// RUN: prepass-compile %S/Inputs/projections.mlir --iree-hal-target-device=hip --iree-rocm-target=gfx1100 \
// RUN:   --compile-to=preprocessing --prepass-remarks=missed \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-fuse-horizontal-contractions)' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OTHER
// RUN: prepass-compile %S/Inputs/projections.mlir --iree-hal-target-device=hip --iree-rocm-target=gfx942 \
// RUN:   --compile-to=preprocessing --prepass-remarks=all \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-fuse-horizontal-contractions)' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=GFX942

// NONE: missed: no target is known to gain from it
// CPU: missed: llvm-cpu computes them faster one by one [linalg.matmul]
// OTHER: missed: nothing is known of it on gfx1100 [linalg.matmul]
// GFX942-DAG: projections.mlir:7:8: remark: {{.*}} applied: one of 2 that are computed at once, with a result for each
// GFX942-DAG: projections.mlir:22:8: remark: {{.*}} missed: a slice would have to be copied for what reads it
// GFX942-DAG: projections.mlir:37:8: remark: {{.*}} missed: with so few rows the time goes into reading the weights
// GFX942-DAG: projections.mlir:50:8: remark: {{.*}} missed: the number of rows is dynamic
// GFX942-DAG: projections.mlir:62:8: remark: {{.*}} missed: they accumulate in f16

// SAID-DAG: applied: one of 3 that are computed at once, with a result for each [linalg.matmul]
// SAID-DAG: missed: they have different numbers of columns [linalg.matmul]
// SAID-DAG: missed: its weight is computed after the first contraction of the shared operand
// SAID-DAG: missed: it accumulates onto a tensor [linalg.matmul]
// SAID-DAG: missed: its products are rounded before they are added [linalg.generic]
// SAID-DAG: missed: both operands have a batch dim [linalg.batch_matmul]
// SAID-DAG: missed: a result is transposed in several places
// SAID-DAG: missed: their results are cut in different ways [linalg.matmul]
// SAID-DAG: applied: reads the heads of K and V that several heads of Q share as they are [iree_linalg_ext.attention]
// SAID-DAG: missed: a dim is summed over one operand only [linalg.generic]
// SAID-DAG: missed: the dims of the result are not those of the operands [linalg.generic]
// SAID-DAG: missed: a weight has a dynamic shape [linalg.matmul]
// PSAID-DAG: applied: one of 3 that are computed at once, by packed weights [linalg.matmul]
// PSAID-DAG: missed: packing weights that are no constants or parameters would copy them [linalg.matmul]
// PSAID-DAG: missed: packing a bias that is no constant or parameter would copy it [linalg.matmul]
// PSAID-DAG: missed: a weight has a dynamic shape [linalg.matmul]
// PSAID-DAG: missed: the weights are of several types [linalg.matmul]
// PSAID-DAG: missed: the results are of several types [linalg.matmul]
// PSAID-DAG: missed: a bias is the same for several parts [linalg.matmul]
// PSAID-DAG: missed: biases vary along different dims [linalg.matmul]
// PSAID-DAG: missed: its weight is read elsewhere too, and packing would copy it [linalg.matmul]
// PSAID-DAG: missed: their results are computed in different ways [linalg.matmul]
// PSAID-DAG: missed: an elementwise op reads several of them, and fuses with a contraction but not with slices [linalg.matmul]
// PSAID-DAG: missed: a slice would have to be copied for what reads it [linalg.matmul]

// Self attention: biases for two, heads, and V with the keys innermost where each result has a layout of its own.

// CHECK-LABEL: @self_attention
// RESULTS: %[[P:.+]]:3 = linalg.generic
// RESULTS-SAME: ins(%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} : tensor<2x64x32xf16>, tensor<4x16x32xf16>, tensor<4x16x32xf16>, tensor<4x16x32xf16>)
// RESULTS-SAME: outs({{.+}} : tensor<2x4x64x16xf32>, tensor<2x4x64x16xf32>, tensor<2x4x16x64xf32>)
// RESULTS: %[[B:.+]]:3 = linalg.generic
// RESULTS-SAME: ins(%[[P]]#0, %[[P]]#1, %[[P]]#2, %{{.+}}, %{{.+}} : {{.+}}, tensor<4x16xf16>, tensor<4x16xf16>)
// RESULTS-SAME: outs({{.+}} : tensor<2x4x64x16xf16>, tensor<2x4x64x16xf16>, tensor<2x4x16x64xf16>)
// RESULTS-DAG: %[[Q:.+]] = tensor.collapse_shape %[[B]]#0
// RESULTS-DAG: %[[K:.+]] = tensor.collapse_shape %[[B]]#1
// RESULTS-DAG: %[[V:.+]] = tensor.collapse_shape %[[B]]#2 {{.+}} into tensor<8x16x64xf16>
// RESULTS: iree_linalg_ext.attention {{.+}} ins(%[[Q]], %[[K]], %[[V]], %{{.+}} : tensor<8x64x16xf16>, tensor<8x64x16xf16>, tensor<8x16x64xf16>, f32)
// PACKED: %[[W:.+]] = tensor.concat dim(0)
// PACKED-SAME: -> tensor<3x4x16x32xf16>
// PACKED: %[[P:.+]] = linalg.generic
// PACKED-SAME: ins(%{{.+}}, %[[W]] : tensor<2x64x32xf16>, tensor<3x4x16x32xf16>) outs({{.+}} : tensor<3x2x4x64x16xf32>)
// The bias that Q lacks is -0.
// PACKED: %[[ZERO:.+]] = arith.constant dense<-0.000000e+00> : tensor<1x4x16xf16>
// PACKED: %[[BIAS:.+]] = tensor.concat dim(0) %[[ZERO]], %{{.+}}, %{{.+}} -> tensor<3x4x16xf16>
// PACKED: %[[B:.+]] = linalg.generic {{.+}} ins(%[[P]], %[[BIAS]] :
// PACKED: tensor.extract_slice %[[B]][0, 0, 0, 0, 0] [1, 2, 4, 64, 16] [1, 1, 1, 1, 1]
// PACKED: tensor.extract_slice %[[B]][1, 0, 0, 0, 0] [1, 2, 4, 64, 16] [1, 1, 1, 1, 1]
// PACKED: tensor.extract_slice %[[B]][2, 0, 0, 0, 0] [1, 2, 4, 64, 16] [1, 1, 1, 1, 1]
// PACKED-NOT: linalg.transpose
// PACKED: iree_linalg_ext.attention
util.global private @wq = #flow.parameter.named<"m"::"wq"> : tensor<64x32xf16>
util.global private @wk = #flow.parameter.named<"m"::"wk"> : tensor<64x32xf16>
util.global private @wv = #flow.parameter.named<"m"::"wv"> : tensor<64x32xf16>
util.global private @bk = #flow.parameter.named<"m"::"bk"> : tensor<64xf16>
util.global private @bv = #flow.parameter.named<"m"::"bv"> : tensor<64xf16>
util.func public @self_attention(%x: tensor<2x64x32xf16>) -> tensor<8x64x16xf16> {
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.25 : f32
  %e = tensor.empty() : tensor<128x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x64xf32>) -> tensor<128x64xf32>
  %e16 = tensor.empty() : tensor<128x64xf16>
  %eh = tensor.empty() : tensor<2x4x64x16xf16>
  %rows = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x64x32xf16> into tensor<128x32xf16>
  %wq = util.global.load @wq : tensor<64x32xf16>
  %q0 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%rows, %wq : tensor<128x32xf16>, tensor<64x32xf16>) outs(%f : tensor<128x64xf32>) -> tensor<128x64xf32>
  %q1 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%q0 : tensor<128x64xf32>) outs(%e16 : tensor<128x64xf16>) {
  ^bb0(%in: f32, %out: f16):
    %t = arith.truncf %in : f32 to f16
    linalg.yield %t : f16
  } -> tensor<128x64xf16>
  %q2 = tensor.expand_shape %q1 [[0, 1], [2, 3]] output_shape [2, 64, 4, 16] : tensor<128x64xf16> into tensor<2x64x4x16xf16>
  %q3 = linalg.transpose ins(%q2 : tensor<2x64x4x16xf16>) outs(%eh : tensor<2x4x64x16xf16>) permutation = [0, 2, 1, 3]
  %q4 = tensor.collapse_shape %q3 [[0, 1], [2], [3]] : tensor<2x4x64x16xf16> into tensor<8x64x16xf16>
  %wk = util.global.load @wk : tensor<64x32xf16>
  %bk = util.global.load @bk : tensor<64xf16>
  %k0 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%rows, %wk : tensor<128x32xf16>, tensor<64x32xf16>) outs(%f : tensor<128x64xf32>) -> tensor<128x64xf32>
  %k1 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%k0, %bk : tensor<128x64xf32>, tensor<64xf16>) outs(%e16 : tensor<128x64xf16>) {
  ^bb0(%in: f32, %b: f16, %out: f16):
    %t = arith.truncf %in : f32 to f16
    %s = arith.addf %t, %b : f16
    linalg.yield %s : f16
  } -> tensor<128x64xf16>
  %k2 = tensor.expand_shape %k1 [[0, 1], [2, 3]] output_shape [2, 64, 4, 16] : tensor<128x64xf16> into tensor<2x64x4x16xf16>
  %k3 = linalg.transpose ins(%k2 : tensor<2x64x4x16xf16>) outs(%eh : tensor<2x4x64x16xf16>) permutation = [0, 2, 1, 3]
  %k4 = tensor.collapse_shape %k3 [[0, 1], [2], [3]] : tensor<2x4x64x16xf16> into tensor<8x64x16xf16>
  %wv = util.global.load @wv : tensor<64x32xf16>
  %bv = util.global.load @bv : tensor<64xf16>
  %v0 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%rows, %wv : tensor<128x32xf16>, tensor<64x32xf16>) outs(%f : tensor<128x64xf32>) -> tensor<128x64xf32>
  %v1 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%v0, %bv : tensor<128x64xf32>, tensor<64xf16>) outs(%e16 : tensor<128x64xf16>) {
  ^bb0(%in: f32, %b: f16, %out: f16):
    %t = arith.truncf %in : f32 to f16
    %s = arith.addf %t, %b : f16
    linalg.yield %s : f16
  } -> tensor<128x64xf16>
  %v2 = tensor.expand_shape %v1 [[0, 1], [2, 3]] output_shape [2, 64, 4, 16] : tensor<128x64xf16> into tensor<2x64x4x16xf16>
  %v3 = linalg.transpose ins(%v2 : tensor<2x64x4x16xf16>) outs(%eh : tensor<2x4x64x16xf16>) permutation = [0, 2, 1, 3]
  %v4 = tensor.collapse_shape %v3 [[0, 1], [2], [3]] : tensor<2x4x64x16xf16> into tensor<8x64x16xf16>
  %ea = tensor.empty() : tensor<8x64x16xf16>
  %a = iree_linalg_ext.attention <{indexing_maps = [
      affine_map<(b, m, n, k1, k2) -> (b, m, k1)>, affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>,
      affine_map<(b, m, n, k1, k2) -> (b, k2, n)>, affine_map<(b, m, n, k1, k2) -> ()>, affine_map<(b, m, n, k1, k2) -> (b, m, n)>]}>
      ins(%q4, %k4, %v4, %scale : tensor<8x64x16xf16>, tensor<8x64x16xf16>, tensor<8x64x16xf16>, f32) outs(%ea : tensor<8x64x16xf16>) {
  ^bb0(%s: f32):
    iree_linalg_ext.yield %s : f32
  } -> tensor<8x64x16xf16>
  util.return %a : tensor<8x64x16xf16>
}

// -----

// Two heads of Q for each head of K and V, which are copied for them. Each part is a slice of heads.

// CHECK-LABEL: @shared_heads
// RESULTS: linalg.matmul
// RESULTS: linalg.generic {{.+}} outs({{.+}} : tensor<2x2x64x16xf16>, tensor<2x2x16x64xf16>)
// PACKED: %[[P:.+]] = linalg.generic
// PACKED-SAME: outs({{.+}} : tensor<8x128x16xf16>)
// PACKED-DAG: tensor.extract_slice %[[P]][0, 0, 0] [4, 128, 16] [1, 1, 1]
// PACKED-DAG: tensor.extract_slice %[[P]][4, 0, 0] [2, 128, 16] [1, 1, 1]
// PACKED-DAG: tensor.extract_slice %[[P]][6, 0, 0] [2, 128, 16] [1, 1, 1]
// PACKED-NOT: linalg.transpose
// PACKED: iree_linalg_ext.attention
// PACKED-SAME: tensor<2x2x2x64x16xf16>, tensor<2x2x64x16xf16>, tensor<2x2x64x16xf16>, f32)
util.global private @wq = #flow.parameter.named<"m"::"wq"> : tensor<64x32xf16>
util.global private @wk = #flow.parameter.named<"m"::"wk"> : tensor<32x32xf16>
util.global private @wv = #flow.parameter.named<"m"::"wv"> : tensor<32x32xf16>
util.func public @shared_heads(%x: tensor<128x32xf16>) -> tensor<8x64x16xf16> {
  %zero = arith.constant 0.0 : f16
  %scale = arith.constant 0.25 : f32
  %e = tensor.empty() : tensor<128x64xf16>
  %f = linalg.fill ins(%zero : f16) outs(%e : tensor<128x64xf16>) -> tensor<128x64xf16>
  %ekv = tensor.empty() : tensor<128x32xf16>
  %fkv = linalg.fill ins(%zero : f16) outs(%ekv : tensor<128x32xf16>) -> tensor<128x32xf16>
  %eh = tensor.empty() : tensor<2x4x64x16xf16>
  %ehkv = tensor.empty() : tensor<2x2x64x16xf16>
  %ex = tensor.empty() : tensor<2x2x2x64x16xf16>
  %wq = util.global.load @wq : tensor<64x32xf16>
  %wk = util.global.load @wk : tensor<32x32xf16>
  %wv = util.global.load @wv : tensor<32x32xf16>
  %q0 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %wq : tensor<128x32xf16>, tensor<64x32xf16>) outs(%f : tensor<128x64xf16>) -> tensor<128x64xf16>
  %k0 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %wk : tensor<128x32xf16>, tensor<32x32xf16>) outs(%fkv : tensor<128x32xf16>) -> tensor<128x32xf16>
  %v0 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %wv : tensor<128x32xf16>, tensor<32x32xf16>) outs(%fkv : tensor<128x32xf16>) -> tensor<128x32xf16>
  %q2 = tensor.expand_shape %q0 [[0, 1], [2, 3]] output_shape [2, 64, 4, 16] : tensor<128x64xf16> into tensor<2x64x4x16xf16>
  %q3 = linalg.transpose ins(%q2 : tensor<2x64x4x16xf16>) outs(%eh : tensor<2x4x64x16xf16>) permutation = [0, 2, 1, 3]
  %q4 = tensor.collapse_shape %q3 [[0, 1], [2], [3]] : tensor<2x4x64x16xf16> into tensor<8x64x16xf16>
  %k2 = tensor.expand_shape %k0 [[0, 1], [2, 3]] output_shape [2, 64, 2, 16] : tensor<128x32xf16> into tensor<2x64x2x16xf16>
  %k3 = linalg.transpose ins(%k2 : tensor<2x64x2x16xf16>) outs(%ehkv : tensor<2x2x64x16xf16>) permutation = [0, 2, 1, 3]
  %k4 = linalg.generic {indexing_maps = [affine_map<(b, g, r, t, d) -> (b, g, t, d)>, affine_map<(b, g, r, t, d) -> (b, g, r, t, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%k3 : tensor<2x2x64x16xf16>) outs(%ex : tensor<2x2x2x64x16xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  } -> tensor<2x2x2x64x16xf16>
  %k5 = tensor.collapse_shape %k4 [[0, 1, 2], [3], [4]] : tensor<2x2x2x64x16xf16> into tensor<8x64x16xf16>
  %v2 = tensor.expand_shape %v0 [[0, 1], [2, 3]] output_shape [2, 64, 2, 16] : tensor<128x32xf16> into tensor<2x64x2x16xf16>
  %v3 = linalg.transpose ins(%v2 : tensor<2x64x2x16xf16>) outs(%ehkv : tensor<2x2x64x16xf16>) permutation = [0, 2, 1, 3]
  %v4 = linalg.generic {indexing_maps = [affine_map<(b, g, r, t, d) -> (b, g, t, d)>, affine_map<(b, g, r, t, d) -> (b, g, r, t, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%v3 : tensor<2x2x64x16xf16>) outs(%ex : tensor<2x2x2x64x16xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  } -> tensor<2x2x2x64x16xf16>
  %v5 = tensor.collapse_shape %v4 [[0, 1, 2], [3], [4]] : tensor<2x2x2x64x16xf16> into tensor<8x64x16xf16>
  %ea = tensor.empty() : tensor<8x64x16xf16>
  %a = iree_linalg_ext.attention <{indexing_maps = [
      affine_map<(b, m, n, k1, k2) -> (b, m, k1)>, affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>,
      affine_map<(b, m, n, k1, k2) -> (b, k2, n)>, affine_map<(b, m, n, k1, k2) -> ()>, affine_map<(b, m, n, k1, k2) -> (b, m, n)>]}>
      ins(%q4, %k5, %v5, %scale : tensor<8x64x16xf16>, tensor<8x64x16xf16>, tensor<8x64x16xf16>, f32) outs(%ea : tensor<8x64x16xf16>) {
  ^bb0(%s: f32):
    iree_linalg_ext.yield %s : f32
  } -> tensor<8x64x16xf16>
  util.return %a : tensor<8x64x16xf16>
}

// -----

// A gate and what it gates: one op has both sums, and the next one its only result.

// CHECK-LABEL: @gate
// RESULTS: %[[P:.+]]:2 = linalg.generic
// RESULTS: %[[G:.+]] = linalg.generic {{.+}} ins(%[[P]]#0, %[[P]]#1 : tensor<64x48xf32>, tensor<64x48xf32>) outs(%{{.+}} : tensor<64x48xf32>)
// RESULTS: return %[[G]]
// Slices would leave the gate to a dispatch of its own.
// PACKED-COUNT-2: linalg.matmul
// PACKED: math.exp
util.global private @wg = #flow.parameter.named<"m"::"wg"> : tensor<32x48xf32>
util.global private @wu = #flow.parameter.named<"m"::"wu"> : tensor<32x48xf32>
util.func public @gate(%x: tensor<64x32xf32>) -> tensor<64x48xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %wg = util.global.load @wg : tensor<32x48xf32>
  %wu = util.global.load @wu : tensor<32x48xf32>
  %e = tensor.empty() : tensor<64x48xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x48xf32>) -> tensor<64x48xf32>
  %g = linalg.matmul ins(%x, %wg : tensor<64x32xf32>, tensor<32x48xf32>) outs(%f : tensor<64x48xf32>) -> tensor<64x48xf32>
  %u = linalg.matmul ins(%x, %wu : tensor<64x32xf32>, tensor<32x48xf32>) outs(%f : tensor<64x48xf32>) -> tensor<64x48xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%g, %u : tensor<64x48xf32>, tensor<64x48xf32>) outs(%e : tensor<64x48xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %n = arith.negf %a : f32
    %x1 = math.exp %n : f32
    %d = arith.addf %x1, %one : f32
    %s = arith.divf %a, %d : f32
    %p = arith.mulf %s, %b : f32
    linalg.yield %p : f32
  } -> tensor<64x48xf32>
  util.return %r : tensor<64x48xf32>
}

// -----

// Weights that are arguments, and a dynamic number of rows.

// CHECK-LABEL: @arguments
// RESULTS: linalg.generic {{.+}} ins(%{{.+}}, %{{.+}}, %{{.+}} : tensor<?x32xf32>, tensor<32x48xf32>, tensor<32x48xf32>) outs(%{{.+}}, %{{.+}} : tensor<?x48xf32>, tensor<?x48xf32>)
// PACKED-COUNT-2: linalg.matmul
util.func public @arguments(%x: tensor<?x32xf32>, %a: tensor<32x48xf32>, %b: tensor<32x48xf32>, %f: tensor<?x48xf32>) -> (tensor<?x48xf32>, tensor<?x48xf32>) {
  %zero = arith.constant 0.0 : f32
  %z = linalg.fill ins(%zero : f32) outs(%f : tensor<?x48xf32>) -> tensor<?x48xf32>
  %0 = linalg.matmul ins(%x, %a : tensor<?x32xf32>, tensor<32x48xf32>) outs(%z : tensor<?x48xf32>) -> tensor<?x48xf32>
  %1 = linalg.matmul ins(%x, %b : tensor<?x32xf32>, tensor<32x48xf32>) outs(%z : tensor<?x48xf32>) -> tensor<?x48xf32>
  util.return %0, %1 : tensor<?x48xf32>, tensor<?x48xf32>
}

// -----

// A bias that is an argument is packed no more than such a weight. Columns of different number stay apart.

// CHECK-LABEL: @bias_argument
// RESULTS: linalg.generic {{.+}} outs({{.+}} : tensor<64x16xf32>, tensor<64x16xf32>)
// RESULTS: linalg.matmul {{.+}} -> tensor<64x8xf32>
// PACKED-COUNT-3: linalg.matmul
util.global private @wa = #flow.parameter.named<"m"::"wa"> : tensor<32x16xf32>
util.global private @wb = #flow.parameter.named<"m"::"wb"> : tensor<32x16xf32>
util.global private @wc = #flow.parameter.named<"m"::"wc"> : tensor<32x8xf32>
util.func public @bias_argument(%x: tensor<64x32xf32>, %bias: tensor<16xf32>) -> (tensor<64x16xf32>, tensor<64x16xf32>, tensor<64x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  %ec = tensor.empty() : tensor<64x8xf32>
  %fc = linalg.fill ins(%zero : f32) outs(%ec : tensor<64x8xf32>) -> tensor<64x8xf32>
  %wa = util.global.load @wa : tensor<32x16xf32>
  %wb = util.global.load @wb : tensor<32x16xf32>
  %wc = util.global.load @wc : tensor<32x8xf32>
  %a = linalg.matmul ins(%x, %wa : tensor<64x32xf32>, tensor<32x16xf32>) outs(%f : tensor<64x16xf32>) -> tensor<64x16xf32>
  %b = linalg.matmul ins(%x, %wb : tensor<64x32xf32>, tensor<32x16xf32>) outs(%f : tensor<64x16xf32>) -> tensor<64x16xf32>
  %c = linalg.matmul ins(%x, %wc : tensor<64x32xf32>, tensor<32x8xf32>) outs(%fc : tensor<64x8xf32>) -> tensor<64x8xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%a, %bias : tensor<64x16xf32>, tensor<16xf32>) outs(%e : tensor<64x16xf32>) {
  ^bb0(%in: f32, %add: f32, %out: f32):
    %r = arith.addf %in, %add : f32
    linalg.yield %r : f32
  } -> tensor<64x16xf32>
  util.return %s, %b, %c : tensor<64x16xf32>, tensor<64x16xf32>, tensor<64x8xf32>
}

// -----

// A weight that is read elsewhere too stays as it is; results that are computed in different ways have none in common.

// CHECK-LABEL: @weight_in_use
// RESULTS: linalg.generic {{.+}} outs({{.+}} : tensor<64x16xf32>, tensor<64x16xf32>)
// PACKED-COUNT-2: linalg.matmul
// PACKED-COUNT-2: linalg.matmul
util.global private @wa = #flow.parameter.named<"m"::"wa"> : tensor<32x16xf32>
util.global private @wb = #flow.parameter.named<"m"::"wb"> : tensor<32x16xf32>
util.func public @weight_in_use(%x: tensor<64x32xf32>, %y: tensor<64x32xf32>) -> (tensor<64x16xf32>, tensor<64x16xf32>, tensor<32x16xf32>, tensor<64x16xf32>, tensor<64x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  %wa = util.global.load @wa : tensor<32x16xf32>
  %wb = util.global.load @wb : tensor<32x16xf32>
  %wc = arith.constant dense<[[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0], [9.0], [10.0], [11.0], [12.0], [13.0], [14.0], [15.0], [16.0]]> : tensor<16x1xf32>
  %wd = arith.constant dense<[[2.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0], [9.0], [10.0], [11.0], [12.0], [13.0], [14.0], [15.0], [16.0]]> : tensor<16x1xf32>
  %a = linalg.matmul ins(%x, %wa : tensor<64x32xf32>, tensor<32x16xf32>) outs(%f : tensor<64x16xf32>) -> tensor<64x16xf32>
  %b = linalg.matmul ins(%x, %wb : tensor<64x32xf32>, tensor<32x16xf32>) outs(%f : tensor<64x16xf32>) -> tensor<64x16xf32>
  %column = tensor.extract_slice %y[0, 0] [64, 1] [1, 1] : tensor<64x32xf32> to tensor<64x1xf32>
  %c = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%column, %wc : tensor<64x1xf32>, tensor<16x1xf32>) outs(%f : tensor<64x16xf32>) -> tensor<64x16xf32>
  %d = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%column, %wd : tensor<64x1xf32>, tensor<16x1xf32>) outs(%f : tensor<64x16xf32>) -> tensor<64x16xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%c : tensor<64x16xf32>) outs(%e : tensor<64x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = math.exp %in : f32
    linalg.yield %r : f32
  } -> tensor<64x16xf32>
  util.return %a, %b, %wa, %s, %d : tensor<64x16xf32>, tensor<64x16xf32>, tensor<32x16xf32>, tensor<64x16xf32>, tensor<64x16xf32>
}

// -----

// Near-misses: a weight made of an earlier result, a start that is not 0, another depth, products that are rounded.

// CHECK-LABEL: @near_misses
// CHECK-COUNT-4: linalg.matmul
// CHECK: arith.truncf
util.func public @near_misses(%x: tensor<32x32xf32>, %y: tensor<32x32xf32>, %w: tensor<32x32xf32>, %s: tensor<32x32xf32>, %n: tensor<16x32xf32>) -> (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf16>) {
  %zero = arith.constant 0.0 : f32
  %zero16 = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<32x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<32x32xf32>) -> tensor<32x32xf32>
  %a = linalg.matmul ins(%x, %w : tensor<32x32xf32>, tensor<32x32xf32>) outs(%f : tensor<32x32xf32>) -> tensor<32x32xf32>
  %b = linalg.matmul ins(%x, %a : tensor<32x32xf32>, tensor<32x32xf32>) outs(%f : tensor<32x32xf32>) -> tensor<32x32xf32>
  %c = linalg.matmul ins(%x, %w : tensor<32x32xf32>, tensor<32x32xf32>) outs(%s : tensor<32x32xf32>) -> tensor<32x32xf32>
  %part = tensor.extract_slice %x[0, 0] [32, 16] [1, 1] : tensor<32x32xf32> to tensor<32x16xf32>
  %d = linalg.matmul ins(%part, %n : tensor<32x16xf32>, tensor<16x32xf32>) outs(%f : tensor<32x32xf32>) -> tensor<32x32xf32>
  %e16 = tensor.empty() : tensor<32x32xf16>
  %f16 = linalg.fill ins(%zero16 : f16) outs(%e16 : tensor<32x32xf16>) -> tensor<32x32xf16>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%y, %w : tensor<32x32xf32>, tensor<32x32xf32>) outs(%f16 : tensor<32x32xf16>) {
  ^bb0(%p: f32, %q: f32, %out: f16):
    %m = arith.mulf %p, %q : f32
    %t = arith.truncf %m : f32 to f16
    %sum = arith.addf %out, %t : f16
    linalg.yield %sum : f16
  } -> tensor<32x32xf16>
  %r2 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%y, %x : tensor<32x32xf32>, tensor<32x32xf32>) outs(%r : tensor<32x32xf16>) {
  ^bb0(%p: f32, %q: f32, %out: f16):
    %m = arith.mulf %p, %q : f32
    %t = arith.truncf %m : f32 to f16
    %sum = arith.addf %out, %t : f16
    linalg.yield %sum : f16
  } -> tensor<32x32xf16>
  util.return %a, %b, %c, %d, %r2 : tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf16>
}

// -----

// Products of two batches, and heads of different sizes.

// CHECK-LABEL: @batches
// CHECK-COUNT-2: linalg.batch_matmul
util.func public @batches(%q: tensor<2x32x32xf32>, %k: tensor<2x32x32xf32>, %v: tensor<2x32x32xf32>) -> (tensor<2x32x32xf32>, tensor<2x32x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x32x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x32x32xf32>) -> tensor<2x32x32xf32>
  %a = linalg.batch_matmul ins(%q, %k : tensor<2x32x32xf32>, tensor<2x32x32xf32>) outs(%f : tensor<2x32x32xf32>) -> tensor<2x32x32xf32>
  %b = linalg.batch_matmul ins(%q, %v : tensor<2x32x32xf32>, tensor<2x32x32xf32>) outs(%f : tensor<2x32x32xf32>) -> tensor<2x32x32xf32>
  util.return %a, %b : tensor<2x32x32xf32>, tensor<2x32x32xf32>
}

// -----

// CHECK-LABEL: @cuts
// CHECK-COUNT-2: linalg.matmul
util.func public @cuts(%x: tensor<64x32xf32>, %a: tensor<32x48xf32>, %b: tensor<32x48xf32>) -> (tensor<64x3x16xf32>, tensor<64x16x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x48xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x48xf32>) -> tensor<64x48xf32>
  %0 = linalg.matmul ins(%x, %a : tensor<64x32xf32>, tensor<32x48xf32>) outs(%f : tensor<64x48xf32>) -> tensor<64x48xf32>
  %1 = linalg.matmul ins(%x, %b : tensor<64x32xf32>, tensor<32x48xf32>) outs(%f : tensor<64x48xf32>) -> tensor<64x48xf32>
  %2 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [64, 3, 16] : tensor<64x48xf32> into tensor<64x3x16xf32>
  %3 = tensor.expand_shape %1 [[0], [1, 2]] output_shape [64, 16, 3] : tensor<64x48xf32> into tensor<64x16x3xf32>
  util.return %2, %3 : tensor<64x3x16xf32>, tensor<64x16x3xf32>
}

// -----

// IREE does not fold a transpose into an op with several results, and breaks where it is the last reader.

// CHECK-LABEL: @transposed_twice
// RESULTS-COUNT-2: linalg.matmul
util.func public @transposed_twice(%x: tensor<64x32xf32>, %a: tensor<32x48xf32>, %b: tensor<32x48xf32>) -> (tensor<48x64xf32>, tensor<64x48xf32>, tensor<64x48xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x48xf32>
  %et = tensor.empty() : tensor<48x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x48xf32>) -> tensor<64x48xf32>
  %0 = linalg.matmul ins(%x, %a : tensor<64x32xf32>, tensor<32x48xf32>) outs(%f : tensor<64x48xf32>) -> tensor<64x48xf32>
  %1 = linalg.matmul ins(%x, %b : tensor<64x32xf32>, tensor<32x48xf32>) outs(%f : tensor<64x48xf32>) -> tensor<64x48xf32>
  %2 = linalg.transpose ins(%0 : tensor<64x48xf32>) outs(%et : tensor<48x64xf32>) permutation = [1, 0]
  util.return %2, %0, %1 : tensor<48x64xf32>, tensor<64x48xf32>, tensor<64x48xf32>
}

// -----

// Parts of different widths are slices of whole rows only where these are few, and what is returned is no slice.

// CHECK-LABEL: @widths
// CHECK-COUNT-2: linalg.matmul
util.global private @wa = #flow.parameter.named<"m"::"wa"> : tensor<32x16xf32>
util.global private @wb = #flow.parameter.named<"m"::"wb"> : tensor<32x8xf32>
util.func public @widths(%x: tensor<64x32xf32>) -> (tensor<64x16xf32>, tensor<64x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  %eb = tensor.empty() : tensor<64x8xf32>
  %fb = linalg.fill ins(%zero : f32) outs(%eb : tensor<64x8xf32>) -> tensor<64x8xf32>
  %wa = util.global.load @wa : tensor<32x16xf32>
  %wb = util.global.load @wb : tensor<32x8xf32>
  %a = linalg.matmul ins(%x, %wa : tensor<64x32xf32>, tensor<32x16xf32>) outs(%f : tensor<64x16xf32>) -> tensor<64x16xf32>
  %b = linalg.matmul ins(%x, %wb : tensor<64x32xf32>, tensor<32x8xf32>) outs(%fb : tensor<64x8xf32>) -> tensor<64x8xf32>
  util.return %a, %b : tensor<64x16xf32>, tensor<64x8xf32>
}

// -----

// Time embeddings: one row, cut where each is wanted.

// CHECK-LABEL: @time_embeddings
// RESULTS-COUNT-2: linalg.matmul
// PACKED: linalg.generic {{.+}} outs({{.+}} : tensor<24xf32>)
// PACKED: tensor.extract_slice %{{.+}}[0] [16] [1]
// PACKED: tensor.extract_slice %{{.+}}[16] [8] [1]
util.global private @wa = #flow.parameter.named<"m"::"wa"> : tensor<32x16xf32>
util.global private @wb = #flow.parameter.named<"m"::"wb"> : tensor<32x8xf32>
util.func public @time_embeddings(%x: tensor<1x32xf32>, %p: tensor<16x4xf32>, %q: tensor<8x4xf32>) -> (tensor<16x4xf32>, tensor<8x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x16xf32>) -> tensor<1x16xf32>
  %eb = tensor.empty() : tensor<1x8xf32>
  %fb = linalg.fill ins(%zero : f32) outs(%eb : tensor<1x8xf32>) -> tensor<1x8xf32>
  %wa = util.global.load @wa : tensor<32x16xf32>
  %wb = util.global.load @wb : tensor<32x8xf32>
  %a = linalg.matmul ins(%x, %wa : tensor<1x32xf32>, tensor<32x16xf32>) outs(%f : tensor<1x16xf32>) -> tensor<1x16xf32>
  %b = linalg.matmul ins(%x, %wb : tensor<1x32xf32>, tensor<32x8xf32>) outs(%fb : tensor<1x8xf32>) -> tensor<1x8xf32>
  %a1 = tensor.collapse_shape %a [[0, 1]] : tensor<1x16xf32> into tensor<16xf32>
  %b1 = tensor.collapse_shape %b [[0, 1]] : tensor<1x8xf32> into tensor<8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, i) -> (c)>, affine_map<(c, i) -> (c, i)>], iterator_types = ["parallel", "parallel"]}
      ins(%a1 : tensor<16xf32>) outs(%p : tensor<16x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %out : f32
    linalg.yield %sum : f32
  } -> tensor<16x4xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(c, i) -> (c)>, affine_map<(c, i) -> (c, i)>], iterator_types = ["parallel", "parallel"]}
      ins(%b1 : tensor<8xf32>) outs(%q : tensor<8x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %out : f32
    linalg.yield %sum : f32
  } -> tensor<8x4xf32>
  util.return %r, %s : tensor<16x4xf32>, tensor<8x4xf32>
}

// -----

// What a call stores to is no weight, and is loaded where it was.

// CHECK-LABEL: @mutable
// CHECK: util.global.store
// CHECK: util.global.load @state
// CHECK: linalg.matmul
util.global private mutable @state : tensor<32x16xf32>
util.global private @wa = #flow.parameter.named<"m"::"wa"> : tensor<32x16xf32>
util.func public @mutable(%x: tensor<64x32xf32>, %new: tensor<32x16xf32>) -> (tensor<64x16xf32>, tensor<64x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  %wa = util.global.load @wa : tensor<32x16xf32>
  %a = linalg.matmul ins(%x, %wa : tensor<64x32xf32>, tensor<32x16xf32>) outs(%f : tensor<64x16xf32>) -> tensor<64x16xf32>
  util.global.store %new, @state : tensor<32x16xf32>
  %wb = util.global.load @state : tensor<32x16xf32>
  %b = linalg.matmul ins(%x, %wb : tensor<64x32xf32>, tensor<32x16xf32>) outs(%f : tensor<64x16xf32>) -> tensor<64x16xf32>
  util.return %a, %b : tensor<64x16xf32>, tensor<64x16xf32>
}

// -----

// The shared operand has a dim that the weights have not, and which is summed.

// CHECK-LABEL: @summed
// CHECK-COUNT-2: linalg.generic
#x = affine_map<(m, n, k, j) -> (m, k, j)>
#w = affine_map<(m, n, k, j) -> (k, n)>
#o = affine_map<(m, n, k, j) -> (m, n)>
func.func @summed(%x: tensor<64x32x4xf32>, %a: tensor<32x16xf32>, %b: tensor<32x16xf32>) -> (tensor<64x16xf32>, tensor<64x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #o], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%x, %a : tensor<64x32x4xf32>, tensor<32x16xf32>) outs(%f : tensor<64x16xf32>) {
  ^bb0(%in: f32, %w0: f32, %acc: f32):
    %1 = arith.mulf %in, %w0 : f32
    %2 = arith.addf %acc, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<64x16xf32>
  %q = linalg.generic {indexing_maps = [#x, #w, #o], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%x, %b : tensor<64x32x4xf32>, tensor<32x16xf32>) outs(%f : tensor<64x16xf32>) {
  ^bb0(%in: f32, %w0: f32, %acc: f32):
    %1 = arith.mulf %in, %w0 : f32
    %2 = arith.addf %acc, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<64x16xf32>
  return %p, %q : tensor<64x16xf32>, tensor<64x16xf32>
}

// -----

// A dim of the result is that of no operand.

// CHECK-LABEL: @repeated
// CHECK-COUNT-2: linalg.generic
#x = affine_map<(m, b, n, k) -> (m, k)>
#w = affine_map<(m, b, n, k) -> (k, n)>
#o = affine_map<(m, b, n, k) -> (m, b, n)>
func.func @repeated(%x: tensor<64x32xf32>, %a: tensor<32x16xf32>, %b: tensor<32x16xf32>) -> (tensor<64x3x16xf32>, tensor<64x3x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x3x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x3x16xf32>) -> tensor<64x3x16xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %a : tensor<64x32xf32>, tensor<32x16xf32>) outs(%f : tensor<64x3x16xf32>) {
  ^bb0(%in: f32, %w0: f32, %acc: f32):
    %1 = arith.mulf %in, %w0 : f32
    %2 = arith.addf %acc, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<64x3x16xf32>
  %q = linalg.generic {indexing_maps = [#x, #w, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %b : tensor<64x32xf32>, tensor<32x16xf32>) outs(%f : tensor<64x3x16xf32>) {
  ^bb0(%in: f32, %w0: f32, %acc: f32):
    %1 = arith.mulf %in, %w0 : f32
    %2 = arith.addf %acc, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<64x3x16xf32>
  return %p, %q : tensor<64x3x16xf32>, tensor<64x3x16xf32>
}

// -----

// Nothing says that the weights have equally many columns.

// CHECK-LABEL: @dynamic_weights
// CHECK-COUNT-2: linalg.matmul
util.global private @a = #util.uninitialized : tensor<?x32xf32>
util.global private @b = #util.uninitialized : tensor<?x32xf32>
func.func @dynamic_weights(%x: tensor<64x32xf32>, %n: index) -> (tensor<64x?xf32>, tensor<64x?xf32>) {
  %zero = arith.constant 0.0 : f32
  %a = util.global.load immutable @a : tensor<?x32xf32>
  %b = util.global.load immutable @b : tensor<?x32xf32>
  %e = tensor.empty(%n) : tensor<64x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x?xf32>) -> tensor<64x?xf32>
  %p = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%x, %a : tensor<64x32xf32>, tensor<?x32xf32>) outs(%f : tensor<64x?xf32>) -> tensor<64x?xf32>
  %q = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%x, %b : tensor<64x32xf32>, tensor<?x32xf32>) outs(%f : tensor<64x?xf32>) -> tensor<64x?xf32>
  return %p, %q : tensor<64x?xf32>, tensor<64x?xf32>
}

// -----

// Packed weights are of one type; with a result for each they may differ.

// CHECK-LABEL: @weight_types
// RESULTS: linalg.generic {{.+}} ins(%{{.+}}, %{{.+}}, %{{.+}} : tensor<64x32xf16>, tensor<32x16xf16>, tensor<32x16xf32>)
// PACKED-COUNT-2: linalg.matmul
func.func @weight_types(%x: tensor<64x32xf16>) -> (tensor<64x16xf32>, tensor<64x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %ca = arith.constant dense<1.0> : tensor<32x16xf16>
  %cb = arith.constant dense<2.0> : tensor<32x16xf32>
  %e = tensor.empty() : tensor<64x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  %p = linalg.matmul ins(%x, %ca : tensor<64x32xf16>, tensor<32x16xf16>) outs(%f : tensor<64x16xf32>) -> tensor<64x16xf32>
  %q = linalg.matmul ins(%x, %cb : tensor<64x32xf16>, tensor<32x16xf32>) outs(%f : tensor<64x16xf32>) -> tensor<64x16xf32>
  return %p, %q : tensor<64x16xf32>, tensor<64x16xf32>
}

// -----

// So are packed results.

// CHECK-LABEL: @result_types
// PACKED-COUNT-2: linalg.matmul
func.func @result_types(%x: tensor<64x32xf16>) -> (tensor<64x16xf16>, tensor<64x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %ca = arith.constant dense<1.0> : tensor<32x16xf16>
  %cb = arith.constant dense<2.0> : tensor<32x16xf16>
  %e = tensor.empty() : tensor<64x16xf32>
  %h = tensor.empty() : tensor<64x16xf16>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  %p = linalg.matmul ins(%x, %ca : tensor<64x32xf16>, tensor<32x16xf16>) outs(%f : tensor<64x16xf32>) -> tensor<64x16xf32>
  %q = linalg.matmul ins(%x, %cb : tensor<64x32xf16>, tensor<32x16xf16>) outs(%f : tensor<64x16xf32>) -> tensor<64x16xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<64x16xf32>) outs(%h : tensor<64x16xf16>) {
  ^bb0(%in: f32, %out: f16):
    %0 = arith.truncf %in : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<64x16xf16>
  return %t, %q : tensor<64x16xf16>, tensor<64x16xf32>
}

// -----

// A bias of a head, for all heads.

// CHECK-LABEL: @shared_bias
// CHECK-COUNT-2: linalg.matmul
#all = affine_map<(m, h, d) -> (m, h, d)>
#d = affine_map<(m, h, d) -> (d)>
#h = affine_map<(m, h, d) -> (h)>
func.func @shared_bias(%x: tensor<64x32xf32>) -> (tensor<4x64x16xf32>, tensor<2x64x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %ca = arith.constant dense<1.0> : tensor<32x64xf32>
  %cb = arith.constant dense<2.0> : tensor<32x32xf32>
  %bias = util.global.load immutable @bias : tensor<16xf32>
  %ea = tensor.empty() : tensor<64x64xf32>
  %eb = tensor.empty() : tensor<64x32xf32>
  %ha = tensor.empty() : tensor<64x4x16xf32>
  %hb = tensor.empty() : tensor<64x2x16xf32>
  %fa = linalg.fill ins(%zero : f32) outs(%ea : tensor<64x64xf32>) -> tensor<64x64xf32>
  %fb = linalg.fill ins(%zero : f32) outs(%eb : tensor<64x32xf32>) -> tensor<64x32xf32>
  %p = linalg.matmul ins(%x, %ca : tensor<64x32xf32>, tensor<32x64xf32>) outs(%fa : tensor<64x64xf32>) -> tensor<64x64xf32>
  %q = linalg.matmul ins(%x, %cb : tensor<64x32xf32>, tensor<32x32xf32>) outs(%fb : tensor<64x32xf32>) -> tensor<64x32xf32>
  %pe = tensor.expand_shape %p [[0], [1, 2]] output_shape [64, 4, 16] : tensor<64x64xf32> into tensor<64x4x16xf32>
  %qe = tensor.expand_shape %q [[0], [1, 2]] output_shape [64, 2, 16] : tensor<64x32xf32> into tensor<64x2x16xf32>
  %pb = linalg.generic {indexing_maps = [#all, #d, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%pe, %bias : tensor<64x4x16xf32>, tensor<16xf32>) outs(%ha : tensor<64x4x16xf32>) {
  ^bb0(%in: f32, %b: f32, %out: f32):
    %0 = arith.addf %in, %b : f32
    linalg.yield %0 : f32
  } -> tensor<64x4x16xf32>
  %qb = linalg.generic {indexing_maps = [#all, #d, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%qe, %bias : tensor<64x2x16xf32>, tensor<16xf32>) outs(%hb : tensor<64x2x16xf32>) {
  ^bb0(%in: f32, %b: f32, %out: f32):
    %0 = arith.addf %in, %b : f32
    linalg.yield %0 : f32
  } -> tensor<64x2x16xf32>
  %ta = tensor.empty() : tensor<4x64x16xf32>
  %tb = tensor.empty() : tensor<2x64x16xf32>
  %pt = linalg.transpose ins(%pb : tensor<64x4x16xf32>) outs(%ta : tensor<4x64x16xf32>) permutation = [1, 0, 2]
  %qt = linalg.transpose ins(%qb : tensor<64x2x16xf32>) outs(%tb : tensor<2x64x16xf32>) permutation = [1, 0, 2]
  return %pt, %qt : tensor<4x64x16xf32>, tensor<2x64x16xf32>
}
util.global private @bias = #util.uninitialized : tensor<16xf32>

// -----

// A bias along the channels of a head, and one along the heads.

// CHECK-LABEL: @other_biases
// PACKED-COUNT-2: linalg.matmul
#all = affine_map<(m, h, d) -> (m, h, d)>
#d = affine_map<(m, h, d) -> (d)>
#h = affine_map<(m, h, d) -> (h)>
util.global private @bias = #util.uninitialized : tensor<16xf32>
util.global private @heads = #util.uninitialized : tensor<4xf32>
func.func @other_biases(%x: tensor<64x32xf32>) -> (tensor<64x4x16xf32>, tensor<64x4x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %ca = arith.constant dense<1.0> : tensor<32x64xf32>
  %cb = arith.constant dense<2.0> : tensor<32x64xf32>
  %bias = util.global.load immutable @bias : tensor<16xf32>
  %heads = util.global.load immutable @heads : tensor<4xf32>
  %ea = tensor.empty() : tensor<64x64xf32>
  %ha = tensor.empty() : tensor<64x4x16xf32>
  %fa = linalg.fill ins(%zero : f32) outs(%ea : tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = linalg.matmul ins(%x, %ca : tensor<64x32xf32>, tensor<32x64xf32>) outs(%fa : tensor<64x64xf32>) -> tensor<64x64xf32>
  %q = linalg.matmul ins(%x, %cb : tensor<64x32xf32>, tensor<32x64xf32>) outs(%fa : tensor<64x64xf32>) -> tensor<64x64xf32>
  %pe = tensor.expand_shape %p [[0], [1, 2]] output_shape [64, 4, 16] : tensor<64x64xf32> into tensor<64x4x16xf32>
  %qe = tensor.expand_shape %q [[0], [1, 2]] output_shape [64, 4, 16] : tensor<64x64xf32> into tensor<64x4x16xf32>
  %pb = linalg.generic {indexing_maps = [#all, #d, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%pe, %bias : tensor<64x4x16xf32>, tensor<16xf32>) outs(%ha : tensor<64x4x16xf32>) {
  ^bb0(%in: f32, %b: f32, %out: f32):
    %0 = arith.addf %in, %b : f32
    linalg.yield %0 : f32
  } -> tensor<64x4x16xf32>
  %qb = linalg.generic {indexing_maps = [#all, #h, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%qe, %heads : tensor<64x4x16xf32>, tensor<4xf32>) outs(%ha : tensor<64x4x16xf32>) {
  ^bb0(%in: f32, %b: f32, %out: f32):
    %0 = arith.addf %in, %b : f32
    linalg.yield %0 : f32
  } -> tensor<64x4x16xf32>
  return %pb, %qb : tensor<64x4x16xf32>, tensor<64x4x16xf32>
}
