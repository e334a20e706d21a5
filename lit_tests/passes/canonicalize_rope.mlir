// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-canonicalize-rope,canonicalize)' \
// RUN:   --prepass-remarks=all 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// Idempotence.
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-canonicalize-rope)' > %t.once
// RUN: prepass-opt %s --split-input-file \
// RUN:   --pass-pipeline='builtin.module(prepass-canonicalize-rope,prepass-canonicalize-rope)' > %t.twice
// RUN: diff %t.once %t.twice

// Halves, with the transpose behind them. A thread reads the row of its table, and both channels of its pair.

// CHECK-DAG: #[[$X:.+]] = affine_map<(d0, d1, d2, d3) -> (d1, d0, d3)>
// CHECK-DAG: #[[$TABLE:.+]] = affine_map<(d0, d1, d2, d3) -> (d1, d2, d3)>
// CHECK-LABEL: func.func @halves
// CHECK-SAME: %[[X_IN:.+]]: tensor<8x2x32xf32>, %[[COS_IN:.+]]: tensor<8x32xf32>, %[[SIN_IN:.+]]: tensor<8x32xf32>
// CHECK-DAG: %[[X0:.+]] = tensor.extract_slice %[[X_IN]][0, 0, 0] [8, 2, 16]
// CHECK-DAG: %[[X1:.+]] = tensor.extract_slice %[[X_IN]][0, 0, 16] [8, 2, 16]
// CHECK-DAG: %[[COS:.+]] = tensor.expand_shape %[[COS_IN]] {{\[\[}}0], [1, 2]] output_shape [8, 2, 16]
// CHECK-DAG: %[[SIN:.+]] = tensor.expand_shape %[[SIN_IN]] {{\[\[}}0], [1, 2]] output_shape [8, 2, 16]
// CHECK: %[[Y:.+]] = linalg.generic {indexing_maps = [#[[$X]], #[[$X]], #[[$TABLE]], #[[$TABLE]], #{{.+}}],
// CHECK-SAME: ins(%[[X0]], %[[X1]], %[[COS]], %[[SIN]] : {{.*}}) outs(%{{.+}} : tensor<2x8x2x16xf32>)
// CHECK: linalg.index 2
// CHECK: tensor.collapse_shape %[[Y]] {{\[\[}}0], [1], [2, 3]] : tensor<2x8x2x16xf32> into tensor<2x8x32xf32>
// REMARK: applied: rotation of halves vectorized [linalg.transpose]
func.func @halves(%x: tensor<8x2x32xf32>, %cos: tensor<8x32xf32>, %sin: tensor<8x32xf32>) -> tensor<2x8x32xf32> {
  %e = tensor.empty() : tensor<8x2x32xf32>
  %h = tensor.empty() : tensor<8x2x16xf32>
  %out = tensor.empty() : tensor<2x8x32xf32>
  %c = linalg.broadcast ins(%cos : tensor<8x32xf32>) outs(%e : tensor<8x2x32xf32>) dimensions = [1]
  %s = linalg.broadcast ins(%sin : tensor<8x32xf32>) outs(%e : tensor<8x2x32xf32>) dimensions = [1]
  %x0 = tensor.extract_slice %x[0, 0, 0] [8, 2, 16] [1, 1, 1] : tensor<8x2x32xf32> to tensor<8x2x16xf32>
  %x1 = tensor.extract_slice %x[0, 0, 16] [8, 2, 16] [1, 1, 1] : tensor<8x2x32xf32> to tensor<8x2x16xf32>
  %n = linalg.elementwise <negf> ins(%x1 : tensor<8x2x16xf32>) outs(%h : tensor<8x2x16xf32>) -> tensor<8x2x16xf32>
  %r = tensor.concat dim(2) %n, %x0 : (tensor<8x2x16xf32>, tensor<8x2x16xf32>) -> tensor<8x2x32xf32>
  %a = linalg.elementwise <mul> ins(%x, %c : tensor<8x2x32xf32>, tensor<8x2x32xf32>) outs(%e : tensor<8x2x32xf32>) -> tensor<8x2x32xf32>
  %b = linalg.elementwise <mul> ins(%r, %s : tensor<8x2x32xf32>, tensor<8x2x32xf32>) outs(%e : tensor<8x2x32xf32>) -> tensor<8x2x32xf32>
  %y = linalg.elementwise <add> ins(%a, %b : tensor<8x2x32xf32>, tensor<8x2x32xf32>) outs(%e : tensor<8x2x32xf32>) -> tensor<8x2x32xf32>
  %t = linalg.transpose ins(%y : tensor<8x2x32xf32>) outs(%out : tensor<2x8x32xf32>) permutation = [1, 0, 2]
  return %t : tensor<2x8x32xf32>
}

// -----

// A gather in bf16, with cosines and sines inside: pairs as integers, one dispatch makes the tables.

// CHECK-LABEL: func.func @gather
// CHECK-SAME: %[[X_IN:.+]]: tensor<2x8x32xbf16>, %[[ANGLES:.+]]: tensor<32x8xf32>
// CHECK: %[[TABLES:.+]]:4 = flow.dispatch.region
// CHECK: linalg.generic {{.*}} ins(%{{.+}}, %{{.+}} : tensor<16x8xf32>, tensor<16x8xf32>)
// CHECK-COUNT-2: math.cos
// CHECK-NOT: math.cos
// CHECK: %[[PAIRS:.+]] = iree_tensor_ext.bitcast %[[X_IN]] : tensor<2x8x32xbf16> -> tensor<2x8x16xi32>
// CHECK: %[[Y:.+]] = linalg.generic {{.*}} ins(%[[PAIRS]], %[[TABLES]]#0, %[[TABLES]]#1, %[[TABLES]]#2, %[[TABLES]]#3 :
// CHECK-NOT: tensor.extract
// CHECK: iree_tensor_ext.bitcast %[[Y]] : tensor<2x8x16xi32> -> tensor<2x8x32xbf16>
// REMARK: applied: rotation of pairs of neighbours vectorized [linalg.generic]
#angles = affine_map<(h, t, d) -> (d, t)>
#all = affine_map<(h, t, d) -> (h, t, d)>
func.func @gather(%x: tensor<2x8x32xbf16>, %angles: tensor<32x8xf32>) -> tensor<2x8x32xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %e = tensor.empty() : tensor<2x8x32xbf16>
  %y = linalg.generic {indexing_maps = [#angles, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%angles : tensor<32x8xf32>) outs(%e : tensor<2x8x32xbf16>) {
  ^bb0(%angle: f32, %o: bf16):
    %h = linalg.index 0 : index
    %t = linalg.index 1 : index
    %d = linalg.index 2 : index
    %i = arith.divui %d, %c2 : index
    %c = arith.remui %d, %c2 : index
    %even = arith.muli %i, %c2 : index
    %odd = arith.addi %even, %c1 : index
    %x0 = tensor.extract %x[%h, %t, %even] : tensor<2x8x32xbf16>
    %x1 = tensor.extract %x[%h, %t, %odd] : tensor<2x8x32xbf16>
    %w0 = arith.extf %x0 : bf16 to f32
    %w1 = arith.extf %x1 : bf16 to f32
    %cos = math.cos %angle : f32
    %sin = math.sin %angle : f32
    %p0 = arith.mulf %w0, %cos : f32
    %p1 = arith.mulf %w1, %sin : f32
    %y0 = arith.subf %p0, %p1 : f32
    %p2 = arith.mulf %w1, %cos : f32
    %p3 = arith.mulf %w0, %sin : f32
    %y1 = arith.addf %p2, %p3 : f32
    %is_first = arith.cmpi eq, %c, %c0 : index
    %picked = arith.select %is_first, %y0, %y1 : f32
    %result = arith.truncf %picked : f32 to bf16
    linalg.yield %result : bf16
  } -> tensor<2x8x32xbf16>
  return %y : tensor<2x8x32xbf16>
}

// -----

// Complex numbers, dynamic numbers of tokens.

// CHECK-LABEL: func.func @complex
// CHECK-SAME: %[[X_IN:.+]]: tensor<?x2x16x2xf32>, %[[TURN:.+]]: tensor<?x16xcomplex<f32>>
// CHECK: %[[TABLES:.+]]:2 = linalg.generic {{.*}} ins(%[[TURN]] :
// CHECK: complex.re
// CHECK: complex.im
// CHECK: %[[PAIRS:.+]] = iree_tensor_ext.bitcast %[[X_IN]] : tensor<?x2x16x2xf32>{{.*}} -> tensor<?x2x16xi64>
// CHECK: %[[Y:.+]] = linalg.generic {{.*}} ins(%[[PAIRS]], %[[TABLES]]#0, %[[TABLES]]#1 :
// CHECK: iree_tensor_ext.bitcast %[[Y]] : tensor<?x2x16xi64>{{.*}} -> tensor<?x2x32xf32>
// CHECK-NOT: complex.mul
// REMARK: applied: rotation of pairs of neighbours vectorized [tensor.collapse_shape]
#x = affine_map<(t, h, i) -> (t, h, i)>
#row = affine_map<(t, h, i) -> (t, i)>
func.func @complex(%x: tensor<?x2x16x2xf32>, %turn: tensor<?x16xcomplex<f32>>) -> tensor<?x2x32xf32> {
  %c0 = arith.constant 0 : index
  %t = tensor.dim %x, %c0 : tensor<?x2x16x2xf32>
  %e = tensor.empty(%t) : tensor<?x2x16xcomplex<f32>>
  %z = iree_tensor_ext.bitcast %x : tensor<?x2x16x2xf32>{%t} -> tensor<?x2x16xcomplex<f32>>{%t}
  %m = linalg.generic {indexing_maps = [#x, #row, #x], iterator_types = ["parallel", "parallel", "parallel"]} ins(%z, %turn : tensor<?x2x16xcomplex<f32>>, tensor<?x16xcomplex<f32>>) outs(%e : tensor<?x2x16xcomplex<f32>>) {
  ^bb0(%a: complex<f32>, %b: complex<f32>, %o: complex<f32>):
    %p = complex.mul %a, %b : complex<f32>
    linalg.yield %p : complex<f32>
  } -> tensor<?x2x16xcomplex<f32>>
  %f = iree_tensor_ext.bitcast %m : tensor<?x2x16xcomplex<f32>>{%t} -> tensor<?x2x16x2xf32>{%t}
  %y = tensor.collapse_shape %f [[0], [1], [2, 3]] : tensor<?x2x16x2xf32> into tensor<?x2x32xf32>
  return %y : tensor<?x2x32xf32>
}

// -----

// Tables of two coordinates. Frequencies that are computed of where they stand are computed in the tables too; those that
// are an argument are read there.

// CHECK-LABEL: func.func @coordinates
// CHECK-SAME: %{{.+}}: tensor<8x32xf32>, %[[P:.+]]: tensor<8xf32>, %[[F:.+]]: tensor<8xf32>)
// CHECK-NOT: linalg.generic
// CHECK: flow.dispatch.region
// CHECK: linalg.generic {{.*}} ins(%[[P]] : tensor<8xf32>)
// CHECK-NOT: tensor.extract
// CHECK: arith.index_cast
// CHECK: math.cos
// CHECK: tensor.extract %[[F]][
// CHECK-NOT: tensor.extract
// CHECK: arith.index_cast
// CHECK: math.sin
// CHECK: tensor.extract %[[F]][
// CHECK: flow.return
// REMARK: applied: rotation of halves vectorized [tensor.concat]
#outer0 = affine_map<(t, i) -> (t)>
#outer1 = affine_map<(t, i) -> (i)>
#table = affine_map<(t, i) -> (t, i)>
func.func @coordinates(%x: tensor<8x32xf32>, %p: tensor<8xf32>, %read: tensor<8xf32>) -> tensor<8x32xf32> {
  %v = tensor.empty() : tensor<8xf32>
  %counted = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%v : tensor<8xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %f = arith.sitofp %n : i64 to f32
    linalg.yield %f : f32
  } -> tensor<8xf32>
  %q = tensor.empty() : tensor<8x8xf32>
  %angles0 = linalg.generic {indexing_maps = [#outer0, #outer1, #table], iterator_types = ["parallel", "parallel"]} ins(%p, %read : tensor<8xf32>, tensor<8xf32>) outs(%q : tensor<8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<8x8xf32>
  %angles1 = linalg.generic {indexing_maps = [#outer0, #outer1, #table], iterator_types = ["parallel", "parallel"]} ins(%p, %counted : tensor<8xf32>, tensor<8xf32>) outs(%q : tensor<8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<8x8xf32>
  %cos0 = linalg.generic {indexing_maps = [#table, #table], iterator_types = ["parallel", "parallel"]} ins(%angles0 : tensor<8x8xf32>) outs(%q : tensor<8x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = math.cos %a : f32
    linalg.yield %m : f32
  } -> tensor<8x8xf32>
  %cos1 = linalg.generic {indexing_maps = [#table, #table], iterator_types = ["parallel", "parallel"]} ins(%angles1 : tensor<8x8xf32>) outs(%q : tensor<8x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = math.cos %a : f32
    linalg.yield %m : f32
  } -> tensor<8x8xf32>
  %cos = tensor.concat dim(1) %cos0, %cos1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x16xf32>
  %sin0 = linalg.generic {indexing_maps = [#table, #table], iterator_types = ["parallel", "parallel"]} ins(%angles0 : tensor<8x8xf32>) outs(%q : tensor<8x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = math.sin %a : f32
    linalg.yield %m : f32
  } -> tensor<8x8xf32>
  %sin1 = linalg.generic {indexing_maps = [#table, #table], iterator_types = ["parallel", "parallel"]} ins(%angles1 : tensor<8x8xf32>) outs(%q : tensor<8x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = math.sin %a : f32
    linalg.yield %m : f32
  } -> tensor<8x8xf32>
  %sin = tensor.concat dim(1) %sin0, %sin1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x16xf32>
  %h = tensor.empty() : tensor<8x16xf32>
  %x0 = tensor.extract_slice %x[0, 0] [8, 16] [1, 1] : tensor<8x32xf32> to tensor<8x16xf32>
  %x1 = tensor.extract_slice %x[0, 16] [8, 16] [1, 1] : tensor<8x32xf32> to tensor<8x16xf32>
  %a = linalg.elementwise <mul> ins(%x0, %cos : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %b = linalg.elementwise <mul> ins(%x1, %sin : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %c = linalg.elementwise <mul> ins(%x1, %cos : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %d = linalg.elementwise <mul> ins(%x0, %sin : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y0 = linalg.elementwise <sub> ins(%a, %b : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y1 = linalg.elementwise <add> ins(%c, %d : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = tensor.concat dim(1) %y0, %y1 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

// -----

// CHECK-LABEL: func.func @swapped_sign
// CHECK-NOT: linalg.index
// REMARK: missed: the signs are not those of a rotation [linalg.elementwise]
func.func @swapped_sign(%x: tensor<8x32xf32>, %cos: tensor<8x16xf32>, %sin: tensor<8x16xf32>) -> tensor<8x32xf32> {
  %h = tensor.empty() : tensor<8x16xf32>
  %x0 = tensor.extract_slice %x[0, 0] [8, 16] [1, 1] : tensor<8x32xf32> to tensor<8x16xf32>
  %x1 = tensor.extract_slice %x[0, 16] [8, 16] [1, 1] : tensor<8x32xf32> to tensor<8x16xf32>
  %a = linalg.elementwise <mul> ins(%x0, %cos : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %b = linalg.elementwise <mul> ins(%x1, %sin : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %c = linalg.elementwise <mul> ins(%x1, %cos : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %d = linalg.elementwise <mul> ins(%x0, %sin : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y0 = linalg.elementwise <add> ins(%a, %b : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y1 = linalg.elementwise <add> ins(%c, %d : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = tensor.concat dim(1) %y0, %y1 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

// -----

// CHECK-LABEL: func.func @wrong_stride
// CHECK-NOT: linalg.index
// REMARK: missed: the partner of a channel has another partner [linalg.elementwise]
func.func @wrong_stride(%x: tensor<8x32xf32>, %cos: tensor<8x32xf32>, %sin: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %e = tensor.empty() : tensor<8x32xf32>
  %h = tensor.empty() : tensor<8x16xf32>
  %x0 = tensor.extract_slice %x[0, 8] [8, 16] [1, 1] : tensor<8x32xf32> to tensor<8x16xf32>
  %x1 = tensor.extract_slice %x[0, 16] [8, 16] [1, 1] : tensor<8x32xf32> to tensor<8x16xf32>
  %n = linalg.elementwise <negf> ins(%x1 : tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %r = tensor.concat dim(1) %n, %x0 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x32xf32>
  %a = linalg.elementwise <mul> ins(%x, %cos : tensor<8x32xf32>, tensor<8x32xf32>) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
  %b = linalg.elementwise <mul> ins(%r, %sin : tensor<8x32xf32>, tensor<8x32xf32>) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
  %y = linalg.elementwise <add> ins(%a, %b : tensor<8x32xf32>, tensor<8x32xf32>) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

// -----

// CHECK-LABEL: func.func @other_tables
// CHECK-NOT: linalg.index
// REMARK: missed: the two channels of a pair have different tables [linalg.elementwise]
func.func @other_tables(%x: tensor<8x32xf32>, %cos: tensor<8x16xf32>, %other: tensor<8x16xf32>, %sin: tensor<8x16xf32>) -> tensor<8x32xf32> {
  %h = tensor.empty() : tensor<8x16xf32>
  %x0 = tensor.extract_slice %x[0, 0] [8, 16] [1, 1] : tensor<8x32xf32> to tensor<8x16xf32>
  %x1 = tensor.extract_slice %x[0, 16] [8, 16] [1, 1] : tensor<8x32xf32> to tensor<8x16xf32>
  %a = linalg.elementwise <mul> ins(%x0, %cos : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %b = linalg.elementwise <mul> ins(%x1, %sin : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %c = linalg.elementwise <mul> ins(%x1, %other : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %d = linalg.elementwise <mul> ins(%x0, %sin : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y0 = linalg.elementwise <sub> ins(%a, %b : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y1 = linalg.elementwise <add> ins(%c, %d : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = tensor.concat dim(1) %y0, %y1 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

// -----

// CHECK-LABEL: func.func @channels_apart
// CHECK-NOT: linalg.index
// REMARK: missed: the channels of a row are not next to each other [linalg.elementwise]
func.func @channels_apart(%xt: tensor<32x8xf32>, %cos: tensor<8x16xf32>, %sin: tensor<8x16xf32>) -> tensor<8x32xf32> {
  %e = tensor.empty() : tensor<8x32xf32>
  %h = tensor.empty() : tensor<8x16xf32>
  %x = linalg.transpose ins(%xt : tensor<32x8xf32>) outs(%e : tensor<8x32xf32>) permutation = [1, 0]
  %x0 = tensor.extract_slice %x[0, 0] [8, 16] [1, 1] : tensor<8x32xf32> to tensor<8x16xf32>
  %x1 = tensor.extract_slice %x[0, 16] [8, 16] [1, 1] : tensor<8x32xf32> to tensor<8x16xf32>
  %a = linalg.elementwise <mul> ins(%x0, %cos : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %b = linalg.elementwise <mul> ins(%x1, %sin : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %c = linalg.elementwise <mul> ins(%x1, %cos : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %d = linalg.elementwise <mul> ins(%x0, %sin : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y0 = linalg.elementwise <sub> ins(%a, %b : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y1 = linalg.elementwise <add> ins(%c, %d : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = tensor.concat dim(1) %y0, %y1 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

// -----

// The first half is returned too.

// CHECK-LABEL: func.func @another_use
// CHECK-NOT: linalg.index
// REMARK: missed: the rotated channels have another use [linalg.elementwise]
func.func @another_use(%x: tensor<8x32xf32>, %cos: tensor<8x16xf32>, %sin: tensor<8x16xf32>) -> (tensor<8x32xf32>, tensor<8x16xf32>) {
  %h = tensor.empty() : tensor<8x16xf32>
  %x0 = tensor.extract_slice %x[0, 0] [8, 16] [1, 1] : tensor<8x32xf32> to tensor<8x16xf32>
  %x1 = tensor.extract_slice %x[0, 16] [8, 16] [1, 1] : tensor<8x32xf32> to tensor<8x16xf32>
  %a = linalg.elementwise <mul> ins(%x0, %cos : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %b = linalg.elementwise <mul> ins(%x1, %sin : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %c = linalg.elementwise <mul> ins(%x1, %cos : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %d = linalg.elementwise <mul> ins(%x0, %sin : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y0 = linalg.elementwise <sub> ins(%a, %b : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y1 = linalg.elementwise <add> ins(%c, %d : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = tensor.concat dim(1) %y0, %y1 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x32xf32>
  return %y, %y0 : tensor<8x32xf32>, tensor<8x16xf32>
}

// -----

// The entry of a table depends on the sum of token and pair.

// CHECK-LABEL: func.func @skewed_table
// CHECK-NOT: linalg.index
// REMARK: missed: an entry of a table is read from a place that is no dim of a tensor [linalg.elementwise]
#skewed = affine_map<(t, i) -> (t + i)>
#plain = affine_map<(t, i) -> (t, i)>
func.func @skewed_table(%x: tensor<8x32xf32>, %cosines: tensor<23xf32>, %sin: tensor<8x16xf32>) -> tensor<8x32xf32> {
  %h = tensor.empty() : tensor<8x16xf32>
  %cos = linalg.generic {indexing_maps = [#skewed, #plain], iterator_types = ["parallel", "parallel"]} ins(%cosines : tensor<23xf32>) outs(%h : tensor<8x16xf32>) {
  ^bb0(%in: f32, %o: f32):
    linalg.yield %in : f32
  } -> tensor<8x16xf32>
  %x0 = tensor.extract_slice %x[0, 0] [8, 16] [1, 1] : tensor<8x32xf32> to tensor<8x16xf32>
  %x1 = tensor.extract_slice %x[0, 16] [8, 16] [1, 1] : tensor<8x32xf32> to tensor<8x16xf32>
  %a = linalg.elementwise <mul> ins(%x0, %cos : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %b = linalg.elementwise <mul> ins(%x1, %sin : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %c = linalg.elementwise <mul> ins(%x1, %cos : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %d = linalg.elementwise <mul> ins(%x0, %sin : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y0 = linalg.elementwise <sub> ins(%a, %b : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y1 = linalg.elementwise <add> ins(%c, %d : tensor<8x16xf32>, tensor<8x16xf32>) outs(%h : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = tensor.concat dim(1) %y0, %y1 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

// -----

// The first 8 of 32 channels: blocks of 4, of which the first two are rotated.

// CHECK-DAG: #[[$TURN:.+]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[$ROW:.+]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-LABEL: func.func @first_channels
// CHECK-SAME: %[[X_IN:.+]]: tensor<?x32xf32>
// CHECK-DAG: %[[X0:.+]] = tensor.extract_slice %[[X_IN]][0, 0] [%{{.+}}, 4]
// CHECK-DAG: %[[X1:.+]] = tensor.extract_slice %[[X_IN]][0, 4] [%{{.+}}, 4]
// CHECK-DAG: %[[X:.+]] = tensor.expand_shape %[[X_IN]] {{\[\[}}0], [1, 2]] output_shape [%{{.+}}, 8, 4]
// CHECK: %[[Y:.+]] = linalg.generic {indexing_maps = [#[[$TURN]], {{.*}}#[[$ROW]], #[[$ROW]]],
// CHECK-SAME: ins(%[[X0]], {{.*}}%[[X]] : {{.*}}) outs(%{{.+}} : tensor<?x8x4xf32>)
// CHECK: %[[BLOCK:.+]] = linalg.index 1
// CHECK-DAG: arith.cmpi eq, %[[BLOCK]], %c0
// CHECK-DAG: arith.cmpi eq, %[[BLOCK]], %c1
// CHECK: %[[CHANNELS:.+]] = tensor.collapse_shape %[[Y]] {{\[\[}}0], [1, 2]] : tensor<?x8x4xf32> into tensor<?x32xf32>
// CHECK: return %[[CHANNELS]]
// REMARK: applied: rotation of halves vectorized [tensor.concat]
func.func @first_channels(%x: tensor<?x32xf32>, %cos: tensor<?x4xf32>, %sin: tensor<?x4xf32>) -> tensor<?x32xf32> {
  %c0 = arith.constant 0 : index
  %t = tensor.dim %x, %c0 : tensor<?x32xf32>
  %h = tensor.empty(%t) : tensor<?x4xf32>
  %x0 = tensor.extract_slice %x[0, 0] [%t, 4] [1, 1] : tensor<?x32xf32> to tensor<?x4xf32>
  %x1 = tensor.extract_slice %x[0, 4] [%t, 4] [1, 1] : tensor<?x32xf32> to tensor<?x4xf32>
  %rest = tensor.extract_slice %x[0, 8] [%t, 24] [1, 1] : tensor<?x32xf32> to tensor<?x24xf32>
  %a = linalg.elementwise <mul> ins(%x0, %cos : tensor<?x4xf32>, tensor<?x4xf32>) outs(%h : tensor<?x4xf32>) -> tensor<?x4xf32>
  %b = linalg.elementwise <mul> ins(%x1, %sin : tensor<?x4xf32>, tensor<?x4xf32>) outs(%h : tensor<?x4xf32>) -> tensor<?x4xf32>
  %c = linalg.elementwise <mul> ins(%x1, %cos : tensor<?x4xf32>, tensor<?x4xf32>) outs(%h : tensor<?x4xf32>) -> tensor<?x4xf32>
  %d = linalg.elementwise <mul> ins(%x0, %sin : tensor<?x4xf32>, tensor<?x4xf32>) outs(%h : tensor<?x4xf32>) -> tensor<?x4xf32>
  %y0 = linalg.elementwise <sub> ins(%a, %b : tensor<?x4xf32>, tensor<?x4xf32>) outs(%h : tensor<?x4xf32>) -> tensor<?x4xf32>
  %y1 = linalg.elementwise <add> ins(%c, %d : tensor<?x4xf32>, tensor<?x4xf32>) outs(%h : tensor<?x4xf32>) -> tensor<?x4xf32>
  %y = tensor.concat dim(1) %y0, %y1, %rest : (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x24xf32>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

// CHECK-LABEL: func.func @rows_of_another
// CHECK: linalg.index
// CHECK: tensor.concat
// REMARK: missed: the channels that are not rotated are not those of the same rows [tensor.concat]
// REMARK: applied: rotation of halves vectorized [tensor.concat]
func.func @rows_of_another(%x: tensor<8x32xf32>, %other: tensor<8x32xf32>, %cos: tensor<8x4xf32>, %sin: tensor<8x4xf32>) -> tensor<8x32xf32> {
  %h = tensor.empty() : tensor<8x4xf32>
  %x0 = tensor.extract_slice %x[0, 0] [8, 4] [1, 1] : tensor<8x32xf32> to tensor<8x4xf32>
  %x1 = tensor.extract_slice %x[0, 4] [8, 4] [1, 1] : tensor<8x32xf32> to tensor<8x4xf32>
  %rest = tensor.extract_slice %other[0, 8] [8, 24] [1, 1] : tensor<8x32xf32> to tensor<8x24xf32>
  %a = linalg.elementwise <mul> ins(%x0, %cos : tensor<8x4xf32>, tensor<8x4xf32>) outs(%h : tensor<8x4xf32>) -> tensor<8x4xf32>
  %b = linalg.elementwise <mul> ins(%x1, %sin : tensor<8x4xf32>, tensor<8x4xf32>) outs(%h : tensor<8x4xf32>) -> tensor<8x4xf32>
  %c = linalg.elementwise <mul> ins(%x1, %cos : tensor<8x4xf32>, tensor<8x4xf32>) outs(%h : tensor<8x4xf32>) -> tensor<8x4xf32>
  %d = linalg.elementwise <mul> ins(%x0, %sin : tensor<8x4xf32>, tensor<8x4xf32>) outs(%h : tensor<8x4xf32>) -> tensor<8x4xf32>
  %y0 = linalg.elementwise <sub> ins(%a, %b : tensor<8x4xf32>, tensor<8x4xf32>) outs(%h : tensor<8x4xf32>) -> tensor<8x4xf32>
  %y1 = linalg.elementwise <add> ins(%c, %d : tensor<8x4xf32>, tensor<8x4xf32>) outs(%h : tensor<8x4xf32>) -> tensor<8x4xf32>
  %part = tensor.concat dim(1) %y0, %y1 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  %y = tensor.concat dim(1) %part, %rest : (tensor<8x8xf32>, tensor<8x24xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

// -----

// 18 of 32 channels: blocks of one channel, nine of a half.

// CHECK-LABEL: func.func @many_blocks
// CHECK: linalg.index
// CHECK: tensor.concat
// REMARK: missed: the row does not split into few blocks of which the rotated ones are whole [tensor.concat]
// REMARK: applied: rotation of halves vectorized [tensor.concat]
func.func @many_blocks(%x: tensor<8x32xf32>, %cos: tensor<8x9xf32>, %sin: tensor<8x9xf32>) -> tensor<8x32xf32> {
  %h = tensor.empty() : tensor<8x9xf32>
  %x0 = tensor.extract_slice %x[0, 0] [8, 9] [1, 1] : tensor<8x32xf32> to tensor<8x9xf32>
  %x1 = tensor.extract_slice %x[0, 9] [8, 9] [1, 1] : tensor<8x32xf32> to tensor<8x9xf32>
  %rest = tensor.extract_slice %x[0, 18] [8, 14] [1, 1] : tensor<8x32xf32> to tensor<8x14xf32>
  %a = linalg.elementwise <mul> ins(%x0, %cos : tensor<8x9xf32>, tensor<8x9xf32>) outs(%h : tensor<8x9xf32>) -> tensor<8x9xf32>
  %b = linalg.elementwise <mul> ins(%x1, %sin : tensor<8x9xf32>, tensor<8x9xf32>) outs(%h : tensor<8x9xf32>) -> tensor<8x9xf32>
  %c = linalg.elementwise <mul> ins(%x1, %cos : tensor<8x9xf32>, tensor<8x9xf32>) outs(%h : tensor<8x9xf32>) -> tensor<8x9xf32>
  %d = linalg.elementwise <mul> ins(%x0, %sin : tensor<8x9xf32>, tensor<8x9xf32>) outs(%h : tensor<8x9xf32>) -> tensor<8x9xf32>
  %y0 = linalg.elementwise <sub> ins(%a, %b : tensor<8x9xf32>, tensor<8x9xf32>) outs(%h : tensor<8x9xf32>) -> tensor<8x9xf32>
  %y1 = linalg.elementwise <add> ins(%c, %d : tensor<8x9xf32>, tensor<8x9xf32>) outs(%h : tensor<8x9xf32>) -> tensor<8x9xf32>
  %part = tensor.concat dim(1) %y0, %y1 : (tensor<8x9xf32>, tensor<8x9xf32>) -> tensor<8x18xf32>
  %y = tensor.concat dim(1) %part, %rest : (tensor<8x18xf32>, tensor<8x14xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

// -----

// An op without a body has no layout to look through.

// CHECK-LABEL: func.func @softmax
// CHECK: linalg.softmax
func.func @softmax(%x: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %empty = tensor.empty() : tensor<8x32xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<8x32xf32>) outs(%empty : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}
