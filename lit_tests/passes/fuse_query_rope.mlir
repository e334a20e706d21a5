// RUN: prepass-opt %s --split-input-file \
// RUN:   --pass-pipeline='builtin.module(prepass-fuse-query-rope{fuse=always},canonicalize)' \
// RUN:   --prepass-remarks=all 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// Idempotence.
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-fuse-query-rope{fuse=always})' > %t.once
// RUN: prepass-opt %s --split-input-file \
// RUN:   --pass-pipeline='builtin.module(prepass-fuse-query-rope{fuse=always},prepass-fuse-query-rope{fuse=always})' \
// RUN:   > %t.twice
// RUN: diff %t.once %t.twice

// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-fuse-query-rope{fuse=never})' \
// RUN:   --prepass-remarks=missed 2>&1 | FileCheck %s --check-prefix=NEVER
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-fuse-query-rope)' \
// RUN:   --prepass-remarks=missed 2>&1 | FileCheck %s --check-prefix=AUTO

// What the targets decide.
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=hip --iree-rocm-target=gfx942 \
// RUN:   --compile-to=preprocessing --prepass-remarks=missed \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-fuse-query-rope)' 2>&1 | FileCheck %s --check-prefix=GFX942
// RUN: prepass-compile %s --split-input-file --iree-hal-target-device=local --iree-llvmcpu-target-cpu=generic \
// RUN:   --iree-hal-local-target-device-backends=llvm-cpu --compile-to=preprocessing --prepass-remarks=missed \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-fuse-query-rope)' 2>&1 | FileCheck %s --check-prefix=CPU

// Halves in a query whose heads stand inside of the tokens, and a result that is transposed: both become maps.

// NEVER: missed: the rotation stays outside: fuse=never [iree_linalg_ext.attention]
// AUTO: missed: no target is known [iree_linalg_ext.attention]
// GFX942-DAG: missed: fewer than 256 queries are rotated in no time, wherever that is [iree_linalg_ext.attention]
// GFX942-DAG: missed: the query is rotated in blocks of channels that are no multiple of 16 [iree_linalg_ext.attention]
// GFX942-DAG: missed: the number of queries is dynamic, which with a rotation takes more registers than there are
// CPU: missed: a rotation in the attention gains nothing on llvm-cpu [iree_linalg_ext.attention]

// CHECK-DAG: #[[$Q:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d1, d0, d3, d4)>
// CHECK-DAG: #[[$K:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d5, d3, d4)>
// CHECK-DAG: #[[$O:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d1, d0, d2)>
// CHECK-LABEL: func.func @halves
// CHECK-SAME: %{{.+}}: tensor<8x2x32xf16>, %[[K_IN:.+]]: tensor<2x8x32xf16>, %[[V_IN:.+]]: tensor<2x32x8xf16>
// CHECK: %[[KEYS:.+]] = tensor.expand_shape %[[K_IN]] {{\[\[}}0], [1], [2, 3]] output_shape [2, 8, 2, 16]
// CHECK: %[[R:.+]] = flow.dispatch.region -> (tensor<8x2x32xf16>) {
// CHECK: %[[QUERY:.+]] = linalg.generic {{.*}} outs(%{{.+}} : tensor<8x2x2x16xf16>)
// CHECK: %[[A:.+]] = iree_linalg_ext.attention <indexing_maps = [#[[$Q]], #[[$K]], #{{.+}}, #{{.+}}, #[[$O]]]>
// CHECK-SAME: ins(%[[QUERY]], %[[KEYS]], %[[V_IN]], %{{.+}} :
// CHECK: flow.return %[[A]]
// CHECK: return %[[R]]
// REMARK: applied: the query is rotated in the attention [iree_linalg_ext.attention]
#x = affine_map<(t, h, d) -> (t, h, d)>
#row = affine_map<(t, h, d) -> (t, d)>
#low = affine_map<(t, h, i) -> (t, h, i)>
#q = affine_map<(b, m, n, k, l) -> (m, b, k)>
#k = affine_map<(b, m, n, k, l) -> (b, l, k)>
#v = affine_map<(b, m, n, k, l) -> (b, n, l)>
#s = affine_map<(b, m, n, k, l) -> ()>
#o = affine_map<(b, m, n, k, l) -> (b, m, n)>
func.func @halves(%x: tensor<8x2x32xf16>, %k: tensor<2x8x32xf16>, %v: tensor<2x32x8xf16>, %cos: tensor<8x32xf16>, %sin: tensor<8x32xf16>) -> tensor<8x2x32xf16> {
  %scale = arith.constant 0.5 : f32
  %e = tensor.empty() : tensor<8x2x32xf16>
  %h = tensor.empty() : tensor<8x2x16xf16>
  %out = tensor.empty() : tensor<2x8x32xf16>
  %x0 = tensor.extract_slice %x[0, 0, 0] [8, 2, 16] [1, 1, 1] : tensor<8x2x32xf16> to tensor<8x2x16xf16>
  %x1 = tensor.extract_slice %x[0, 0, 16] [8, 2, 16] [1, 1, 1] : tensor<8x2x32xf16> to tensor<8x2x16xf16>
  %n = linalg.generic {indexing_maps = [#low, #low], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x1 : tensor<8x2x16xf16>) outs(%h : tensor<8x2x16xf16>) {
  ^bb0(%in: f16, %u: f16):
    %y = arith.negf %in : f16
    linalg.yield %y : f16
  } -> tensor<8x2x16xf16>
  %r = tensor.concat dim(2) %n, %x0 : (tensor<8x2x16xf16>, tensor<8x2x16xf16>) -> tensor<8x2x32xf16>
  %y = linalg.generic {indexing_maps = [#x, #x, #row, #row, #x], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %r, %cos, %sin : tensor<8x2x32xf16>, tensor<8x2x32xf16>, tensor<8x32xf16>, tensor<8x32xf16>) outs(%e : tensor<8x2x32xf16>) {
  ^bb0(%a: f16, %b: f16, %c: f16, %d: f16, %u: f16):
    %0 = arith.mulf %a, %c : f16
    %1 = arith.mulf %b, %d : f16
    %2 = arith.addf %0, %1 : f16
    linalg.yield %2 : f16
  } -> tensor<8x2x32xf16>
  %a = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]> ins(%y, %k, %v, %scale : tensor<8x2x32xf16>, tensor<2x8x32xf16>, tensor<2x32x8xf16>, f32) outs(%out : tensor<2x8x32xf16>) {
  ^bb0(%score: f32):
    iree_linalg_ext.yield %score : f32
  } -> tensor<2x8x32xf16>
  %t = linalg.transpose ins(%a : tensor<2x8x32xf16>) outs(%e : tensor<8x2x32xf16>) permutation = [1, 0, 2]
  return %t : tensor<8x2x32xf16>
}

// -----

// Complex numbers.

// CHECK-LABEL: func.func @key_not_rotated
// CHECK-NOT: flow.dispatch.region
// REMARK: missed: the query is rotated in pairs of neighbours and the key is not [iree_linalg_ext.attention]
// CHECK-LABEL: func.func @not_rotated
// CHECK-NOT: flow.dispatch.region
// REMARK: missed: the query is not a rotary embedding [iree_linalg_ext.attention]
// CHECK-LABEL: func.func @another_use
// CHECK-NOT: flow.dispatch.region
// REMARK: missed: the rotated query has another use [iree_linalg_ext.attention]
// CHECK-LABEL: func.func @another_use_of_the_key
// CHECK-NOT: flow.dispatch.region
// REMARK: missed: the rotated key has another use [iree_linalg_ext.attention]
// CHECK-LABEL: func.func @other_channels
// CHECK-NOT: flow.dispatch.region
// REMARK: missed: other channels are rotated in the query than in the key [iree_linalg_ext.attention]
// CHECK-LABEL: func.func @other_loops
// CHECK-NOT: flow.dispatch.region
// REMARK: missed: the loops are not those of attention [iree_linalg_ext.attention]
#pairs = affine_map<(b, t, i) -> (b, t, i)>
#row = affine_map<(b, t, i) -> (t, i)>
#q = affine_map<(b, m, n, k, l) -> (b, m, k)>
#k = affine_map<(b, m, n, k, l) -> (b, l, k)>
#v = affine_map<(b, m, n, k, l) -> (b, n, l)>
#s = affine_map<(b, m, n, k, l) -> ()>
#o = affine_map<(b, m, n, k, l) -> (b, m, n)>
func.func @key_not_rotated(%x: tensor<2x8x16x2xf32>, %turn: tensor<8x16xcomplex<f32>>, %k: tensor<2x8x32xf32>, %v: tensor<2x32x8xf32>) -> tensor<2x8x32xf32> {
  %scale = arith.constant 0.5 : f32
  %out = tensor.empty() : tensor<2x8x32xf32>
  %c = tensor.empty() : tensor<2x8x16xcomplex<f32>>
  %z = iree_tensor_ext.bitcast %x : tensor<2x8x16x2xf32> -> tensor<2x8x16xcomplex<f32>>
  %m = linalg.generic {indexing_maps = [#pairs, #row, #pairs], iterator_types = ["parallel", "parallel", "parallel"]} ins(%z, %turn : tensor<2x8x16xcomplex<f32>>, tensor<8x16xcomplex<f32>>) outs(%c : tensor<2x8x16xcomplex<f32>>) {
  ^bb0(%a: complex<f32>, %b: complex<f32>, %u: complex<f32>):
    %p = complex.mul %a, %b : complex<f32>
    linalg.yield %p : complex<f32>
  } -> tensor<2x8x16xcomplex<f32>>
  %f = iree_tensor_ext.bitcast %m : tensor<2x8x16xcomplex<f32>> -> tensor<2x8x16x2xf32>
  %y = tensor.collapse_shape %f [[0], [1], [2, 3]] : tensor<2x8x16x2xf32> into tensor<2x8x32xf32>
  %a = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]> ins(%y, %k, %v, %scale : tensor<2x8x32xf32>, tensor<2x8x32xf32>, tensor<2x32x8xf32>, f32) outs(%out : tensor<2x8x32xf32>) {
  ^bb0(%score: f32):
    iree_linalg_ext.yield %score : f32
  } -> tensor<2x8x32xf32>
  return %a : tensor<2x8x32xf32>
}

func.func @not_rotated(%x: tensor<2x8x32xf32>, %k: tensor<2x8x32xf32>, %v: tensor<2x32x8xf32>) -> tensor<2x8x32xf32> {
  %scale = arith.constant 0.5 : f32
  %out = tensor.empty() : tensor<2x8x32xf32>
  %a = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]> ins(%x, %k, %v, %scale : tensor<2x8x32xf32>, tensor<2x8x32xf32>, tensor<2x32x8xf32>, f32) outs(%out : tensor<2x8x32xf32>) {
  ^bb0(%score: f32):
    iree_linalg_ext.yield %score : f32
  } -> tensor<2x8x32xf32>
  return %a : tensor<2x8x32xf32>
}

func.func @another_use(%x: tensor<2x8x16x2xf32>, %turn: tensor<8x16xcomplex<f32>>, %k: tensor<2x8x32xf32>, %v: tensor<2x32x8xf32>) -> (tensor<2x8x32xf32>, tensor<2x8x32xf32>) {
  %scale = arith.constant 0.5 : f32
  %out = tensor.empty() : tensor<2x8x32xf32>
  %c = tensor.empty() : tensor<2x8x16xcomplex<f32>>
  %z = iree_tensor_ext.bitcast %x : tensor<2x8x16x2xf32> -> tensor<2x8x16xcomplex<f32>>
  %m = linalg.generic {indexing_maps = [#pairs, #row, #pairs], iterator_types = ["parallel", "parallel", "parallel"]} ins(%z, %turn : tensor<2x8x16xcomplex<f32>>, tensor<8x16xcomplex<f32>>) outs(%c : tensor<2x8x16xcomplex<f32>>) {
  ^bb0(%a: complex<f32>, %b: complex<f32>, %u: complex<f32>):
    %p = complex.mul %a, %b : complex<f32>
    linalg.yield %p : complex<f32>
  } -> tensor<2x8x16xcomplex<f32>>
  %f = iree_tensor_ext.bitcast %m : tensor<2x8x16xcomplex<f32>> -> tensor<2x8x16x2xf32>
  %y = tensor.collapse_shape %f [[0], [1], [2, 3]] : tensor<2x8x16x2xf32> into tensor<2x8x32xf32>
  %a = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]> ins(%y, %k, %v, %scale : tensor<2x8x32xf32>, tensor<2x8x32xf32>, tensor<2x32x8xf32>, f32) outs(%out : tensor<2x8x32xf32>) {
  ^bb0(%score: f32):
    iree_linalg_ext.yield %score : f32
  } -> tensor<2x8x32xf32>
  return %a, %y : tensor<2x8x32xf32>, tensor<2x8x32xf32>
}

func.func @another_use_of_the_key(%x: tensor<2x8x16x2xf32>, %turn: tensor<8x16xcomplex<f32>>, %xk: tensor<2x8x16x2xf32>, %v: tensor<2x32x8xf32>) -> (tensor<2x8x32xf32>, tensor<2x8x32xf32>) {
  %scale = arith.constant 0.5 : f32
  %out = tensor.empty() : tensor<2x8x32xf32>
  %c = tensor.empty() : tensor<2x8x16xcomplex<f32>>
  %z = iree_tensor_ext.bitcast %x : tensor<2x8x16x2xf32> -> tensor<2x8x16xcomplex<f32>>
  %m = linalg.generic {indexing_maps = [#pairs, #row, #pairs], iterator_types = ["parallel", "parallel", "parallel"]} ins(%z, %turn : tensor<2x8x16xcomplex<f32>>, tensor<8x16xcomplex<f32>>) outs(%c : tensor<2x8x16xcomplex<f32>>) {
  ^bb0(%a: complex<f32>, %b: complex<f32>, %u: complex<f32>):
    %p = complex.mul %a, %b : complex<f32>
    linalg.yield %p : complex<f32>
  } -> tensor<2x8x16xcomplex<f32>>
  %f = iree_tensor_ext.bitcast %m : tensor<2x8x16xcomplex<f32>> -> tensor<2x8x16x2xf32>
  %y = tensor.collapse_shape %f [[0], [1], [2, 3]] : tensor<2x8x16x2xf32> into tensor<2x8x32xf32>
  %c2 = tensor.empty() : tensor<2x8x16xcomplex<f32>>
  %z2 = iree_tensor_ext.bitcast %xk : tensor<2x8x16x2xf32> -> tensor<2x8x16xcomplex<f32>>
  %m2 = linalg.generic {indexing_maps = [#pairs, #row, #pairs], iterator_types = ["parallel", "parallel", "parallel"]} ins(%z2, %turn : tensor<2x8x16xcomplex<f32>>, tensor<8x16xcomplex<f32>>) outs(%c2 : tensor<2x8x16xcomplex<f32>>) {
  ^bb0(%a: complex<f32>, %b: complex<f32>, %u: complex<f32>):
    %p = complex.mul %a, %b : complex<f32>
    linalg.yield %p : complex<f32>
  } -> tensor<2x8x16xcomplex<f32>>
  %f2 = iree_tensor_ext.bitcast %m2 : tensor<2x8x16xcomplex<f32>> -> tensor<2x8x16x2xf32>
  %y2 = tensor.collapse_shape %f2 [[0], [1], [2, 3]] : tensor<2x8x16x2xf32> into tensor<2x8x32xf32>
  %a = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]> ins(%y, %y2, %v, %scale : tensor<2x8x32xf32>, tensor<2x8x32xf32>, tensor<2x32x8xf32>, f32) outs(%out : tensor<2x8x32xf32>) {
  ^bb0(%score: f32):
    iree_linalg_ext.yield %score : f32
  } -> tensor<2x8x32xf32>
  return %a, %y2 : tensor<2x8x32xf32>, tensor<2x8x32xf32>
}

func.func @other_channels(%x: tensor<2x8x32xf32>, %turn: tensor<8x16xcomplex<f32>>, %turn8: tensor<8x8xcomplex<f32>>, %xk: tensor<2x8x16x2xf32>, %v: tensor<2x32x8xf32>) -> tensor<2x8x32xf32> {
  %scale = arith.constant 0.5 : f32
  %out = tensor.empty() : tensor<2x8x32xf32>
  %c = tensor.empty() : tensor<2x8x8xcomplex<f32>>
  %part = tensor.extract_slice %x[0, 0, 0] [2, 8, 16] [1, 1, 1] : tensor<2x8x32xf32> to tensor<2x8x16xf32>
  %rest = tensor.extract_slice %x[0, 0, 16] [2, 8, 16] [1, 1, 1] : tensor<2x8x32xf32> to tensor<2x8x16xf32>
  %pairs = tensor.expand_shape %part [[0], [1], [2, 3]] output_shape [2, 8, 8, 2] : tensor<2x8x16xf32> into tensor<2x8x8x2xf32>
  %z = iree_tensor_ext.bitcast %pairs : tensor<2x8x8x2xf32> -> tensor<2x8x8xcomplex<f32>>
  %m = linalg.generic {indexing_maps = [#pairs, #row, #pairs], iterator_types = ["parallel", "parallel", "parallel"]} ins(%z, %turn8 : tensor<2x8x8xcomplex<f32>>, tensor<8x8xcomplex<f32>>) outs(%c : tensor<2x8x8xcomplex<f32>>) {
  ^bb0(%a: complex<f32>, %b: complex<f32>, %u: complex<f32>):
    %p = complex.mul %a, %b : complex<f32>
    linalg.yield %p : complex<f32>
  } -> tensor<2x8x8xcomplex<f32>>
  %f = iree_tensor_ext.bitcast %m : tensor<2x8x8xcomplex<f32>> -> tensor<2x8x8x2xf32>
  %rotated = tensor.collapse_shape %f [[0], [1], [2, 3]] : tensor<2x8x8x2xf32> into tensor<2x8x16xf32>
  %y = tensor.concat dim(2) %rotated, %rest : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<2x8x32xf32>
  %c2 = tensor.empty() : tensor<2x8x16xcomplex<f32>>
  %z2 = iree_tensor_ext.bitcast %xk : tensor<2x8x16x2xf32> -> tensor<2x8x16xcomplex<f32>>
  %m2 = linalg.generic {indexing_maps = [#pairs, #row, #pairs], iterator_types = ["parallel", "parallel", "parallel"]} ins(%z2, %turn : tensor<2x8x16xcomplex<f32>>, tensor<8x16xcomplex<f32>>) outs(%c2 : tensor<2x8x16xcomplex<f32>>) {
  ^bb0(%a: complex<f32>, %b: complex<f32>, %u: complex<f32>):
    %p = complex.mul %a, %b : complex<f32>
    linalg.yield %p : complex<f32>
  } -> tensor<2x8x16xcomplex<f32>>
  %f2 = iree_tensor_ext.bitcast %m2 : tensor<2x8x16xcomplex<f32>> -> tensor<2x8x16x2xf32>
  %y2 = tensor.collapse_shape %f2 [[0], [1], [2, 3]] : tensor<2x8x16x2xf32> into tensor<2x8x32xf32>
  %a = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]> ins(%y, %y2, %v, %scale : tensor<2x8x32xf32>, tensor<2x8x32xf32>, tensor<2x32x8xf32>, f32) outs(%out : tensor<2x8x32xf32>) {
  ^bb0(%score: f32):
    iree_linalg_ext.yield %score : f32
  } -> tensor<2x8x32xf32>
  return %a : tensor<2x8x32xf32>
}

func.func @other_loops(%x: tensor<2x8x32xf32>, %k: tensor<2x8x32xf32>, %v: tensor<2x32x8xf32>) -> tensor<2x8x32xf32> {
  %scale = arith.constant 0.5 : f32
  %out = tensor.empty() : tensor<2x8x32xf32>
  %a = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #q]> ins(%x, %k, %v, %scale : tensor<2x8x32xf32>, tensor<2x8x32xf32>, tensor<2x32x8xf32>, f32) outs(%out : tensor<2x8x32xf32>) {
  ^bb0(%score: f32):
    iree_linalg_ext.yield %score : f32
  } -> tensor<2x8x32xf32>
  return %a : tensor<2x8x32xf32>
}

// -----

// The first 16 of 32 channels, as blocks of 8: the channels are two loops, of 4 and of 8.

// CHECK-DAG: #[[$Q:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d3, d4)>
// CHECK-LABEL: func.func @first_channels
// CHECK-SAME: %[[X_IN:.+]]: tensor<2x512x32xf16>, %{{.+}}: {{.+}}, %{{.+}}: {{.+}}, %[[K_IN:.+]]: tensor<2x512x32xf16>
// CHECK: %[[KEYS:.+]] = tensor.expand_shape %[[K_IN]] {{\[\[}}0], [1], [2, 3]] output_shape [2, 512, 4, 8]
// CHECK: flow.dispatch.region
// CHECK: %[[QUERY:.+]] = linalg.generic {{.*}} outs(%{{.+}} : tensor<2x512x4x8xf16>)
// CHECK: iree_linalg_ext.attention <indexing_maps = [#[[$Q]],
// CHECK-SAME: ins(%[[QUERY]], %[[KEYS]],
// CHECK-LABEL: func.func @any_number
// CHECK: flow.dispatch.region -> (tensor<2x?x32xf16>{%{{.+}}}) {
#low = affine_map<(b, t, i) -> (b, t, i)>
#row = affine_map<(b, t, i) -> (t, i)>
#q = affine_map<(b, m, n, k, l) -> (b, m, k)>
#k = affine_map<(b, m, n, k, l) -> (b, l, k)>
#v = affine_map<(b, m, n, k, l) -> (b, n, l)>
#s = affine_map<(b, m, n, k, l) -> ()>
#o = affine_map<(b, m, n, k, l) -> (b, m, n)>
func.func @first_channels(%x: tensor<2x512x32xf16>, %cos: tensor<512x8xf16>, %sin: tensor<512x8xf16>, %k: tensor<2x512x32xf16>, %v: tensor<2x32x512xf16>) -> tensor<2x512x32xf16> {
  %scale = arith.constant 0.5 : f32
  %out = tensor.empty() : tensor<2x512x32xf16>
  %h = tensor.empty() : tensor<2x512x8xf16>
  %x0 = tensor.extract_slice %x[0, 0, 0] [2, 512, 8] [1, 1, 1] : tensor<2x512x32xf16> to tensor<2x512x8xf16>
  %x1 = tensor.extract_slice %x[0, 0, 8] [2, 512, 8] [1, 1, 1] : tensor<2x512x32xf16> to tensor<2x512x8xf16>
  %rest = tensor.extract_slice %x[0, 0, 16] [2, 512, 16] [1, 1, 1] : tensor<2x512x32xf16> to tensor<2x512x16xf16>
  %a = linalg.generic {indexing_maps = [#low, #row, #low], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x0, %cos : tensor<2x512x8xf16>, tensor<512x8xf16>) outs(%h : tensor<2x512x8xf16>) {
  ^bb0(%p: f16, %q: f16, %u: f16):
    %y = arith.mulf %p, %q : f16
    linalg.yield %y : f16
  } -> tensor<2x512x8xf16>
  %b = linalg.generic {indexing_maps = [#low, #row, #low], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x1, %sin : tensor<2x512x8xf16>, tensor<512x8xf16>) outs(%h : tensor<2x512x8xf16>) {
  ^bb0(%p: f16, %q: f16, %u: f16):
    %y = arith.mulf %p, %q : f16
    linalg.yield %y : f16
  } -> tensor<2x512x8xf16>
  %c = linalg.generic {indexing_maps = [#low, #row, #low], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x1, %cos : tensor<2x512x8xf16>, tensor<512x8xf16>) outs(%h : tensor<2x512x8xf16>) {
  ^bb0(%p: f16, %q: f16, %u: f16):
    %y = arith.mulf %p, %q : f16
    linalg.yield %y : f16
  } -> tensor<2x512x8xf16>
  %d = linalg.generic {indexing_maps = [#low, #row, #low], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x0, %sin : tensor<2x512x8xf16>, tensor<512x8xf16>) outs(%h : tensor<2x512x8xf16>) {
  ^bb0(%p: f16, %q: f16, %u: f16):
    %y = arith.mulf %p, %q : f16
    linalg.yield %y : f16
  } -> tensor<2x512x8xf16>
  %y0 = linalg.generic {indexing_maps = [#low, #low, #low], iterator_types = ["parallel", "parallel", "parallel"]} ins(%a, %b : tensor<2x512x8xf16>, tensor<2x512x8xf16>) outs(%h : tensor<2x512x8xf16>) {
  ^bb0(%p: f16, %q: f16, %u: f16):
    %y = arith.subf %p, %q : f16
    linalg.yield %y : f16
  } -> tensor<2x512x8xf16>
  %y1 = linalg.generic {indexing_maps = [#low, #low, #low], iterator_types = ["parallel", "parallel", "parallel"]} ins(%c, %d : tensor<2x512x8xf16>, tensor<2x512x8xf16>) outs(%h : tensor<2x512x8xf16>) {
  ^bb0(%p: f16, %q: f16, %u: f16):
    %y = arith.addf %p, %q : f16
    linalg.yield %y : f16
  } -> tensor<2x512x8xf16>
  %r = tensor.concat dim(2) %y0, %y1, %rest : (tensor<2x512x8xf16>, tensor<2x512x8xf16>, tensor<2x512x16xf16>) -> tensor<2x512x32xf16>
  %o = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]> ins(%r, %k, %v, %scale : tensor<2x512x32xf16>, tensor<2x512x32xf16>, tensor<2x32x512xf16>, f32) outs(%out : tensor<2x512x32xf16>) {
  ^bb0(%score: f32):
    iree_linalg_ext.yield %score : f32
  } -> tensor<2x512x32xf16>
  return %o : tensor<2x512x32xf16>
}

// Any number of queries.
func.func @any_number(%x: tensor<2x?x32xf16>, %cos: tensor<?x8xf16>, %sin: tensor<?x8xf16>, %k: tensor<2x512x32xf16>, %v: tensor<2x32x512xf16>) -> tensor<2x?x32xf16> {
  %scale = arith.constant 0.5 : f32
  %c1 = arith.constant 1 : index
  %t = tensor.dim %x, %c1 : tensor<2x?x32xf16>
  %out = tensor.empty(%t) : tensor<2x?x32xf16>
  %h = tensor.empty(%t) : tensor<2x?x8xf16>
  %x0 = tensor.extract_slice %x[0, 0, 0] [2, %t, 8] [1, 1, 1] : tensor<2x?x32xf16> to tensor<2x?x8xf16>
  %x1 = tensor.extract_slice %x[0, 0, 8] [2, %t, 8] [1, 1, 1] : tensor<2x?x32xf16> to tensor<2x?x8xf16>
  %rest = tensor.extract_slice %x[0, 0, 16] [2, %t, 16] [1, 1, 1] : tensor<2x?x32xf16> to tensor<2x?x16xf16>
  %a = linalg.generic {indexing_maps = [#low, #row, #low], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x0, %cos : tensor<2x?x8xf16>, tensor<?x8xf16>) outs(%h : tensor<2x?x8xf16>) {
  ^bb0(%p: f16, %q: f16, %u: f16):
    %y = arith.mulf %p, %q : f16
    linalg.yield %y : f16
  } -> tensor<2x?x8xf16>
  %b = linalg.generic {indexing_maps = [#low, #row, #low], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x1, %sin : tensor<2x?x8xf16>, tensor<?x8xf16>) outs(%h : tensor<2x?x8xf16>) {
  ^bb0(%p: f16, %q: f16, %u: f16):
    %y = arith.mulf %p, %q : f16
    linalg.yield %y : f16
  } -> tensor<2x?x8xf16>
  %c = linalg.generic {indexing_maps = [#low, #row, #low], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x1, %cos : tensor<2x?x8xf16>, tensor<?x8xf16>) outs(%h : tensor<2x?x8xf16>) {
  ^bb0(%p: f16, %q: f16, %u: f16):
    %y = arith.mulf %p, %q : f16
    linalg.yield %y : f16
  } -> tensor<2x?x8xf16>
  %d = linalg.generic {indexing_maps = [#low, #row, #low], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x0, %sin : tensor<2x?x8xf16>, tensor<?x8xf16>) outs(%h : tensor<2x?x8xf16>) {
  ^bb0(%p: f16, %q: f16, %u: f16):
    %y = arith.mulf %p, %q : f16
    linalg.yield %y : f16
  } -> tensor<2x?x8xf16>
  %y0 = linalg.generic {indexing_maps = [#low, #low, #low], iterator_types = ["parallel", "parallel", "parallel"]} ins(%a, %b : tensor<2x?x8xf16>, tensor<2x?x8xf16>) outs(%h : tensor<2x?x8xf16>) {
  ^bb0(%p: f16, %q: f16, %u: f16):
    %y = arith.subf %p, %q : f16
    linalg.yield %y : f16
  } -> tensor<2x?x8xf16>
  %y1 = linalg.generic {indexing_maps = [#low, #low, #low], iterator_types = ["parallel", "parallel", "parallel"]} ins(%c, %d : tensor<2x?x8xf16>, tensor<2x?x8xf16>) outs(%h : tensor<2x?x8xf16>) {
  ^bb0(%p: f16, %q: f16, %u: f16):
    %y = arith.addf %p, %q : f16
    linalg.yield %y : f16
  } -> tensor<2x?x8xf16>
  %r = tensor.concat dim(2) %y0, %y1, %rest : (tensor<2x?x8xf16>, tensor<2x?x8xf16>, tensor<2x?x16xf16>) -> tensor<2x?x32xf16>
  %o = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]> ins(%r, %k, %v, %scale : tensor<2x?x32xf16>, tensor<2x512x32xf16>, tensor<2x32x512xf16>, f32) outs(%out : tensor<2x?x32xf16>) {
  ^bb0(%score: f32):
    iree_linalg_ext.yield %score : f32
  } -> tensor<2x?x32xf16>
  return %o : tensor<2x?x32xf16>
}
