// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-vectorize-lookups{form=gather})' \
// RUN:   --prepass-remarks=all 2> %t.gather | FileCheck %s --check-prefixes=CHECK,GATHER
// RUN: FileCheck %s --check-prefix=MISSED < %t.gather
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-vectorize-lookups{form=scalar})' \
// RUN:   | FileCheck %s --check-prefixes=CHECK,SCALAR
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-vectorize-lookups)' --prepass-remarks=missed 2>&1 \
// RUN:   | FileCheck %s --check-prefix=AUTO
// The pass has nothing left to do in its own output.
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-vectorize-lookups{form=gather})' -o %t.gather.mlir
// RUN: prepass-opt %t.gather.mlir --split-input-file --pass-pipeline='builtin.module(prepass-vectorize-lookups{form=gather})' \
// RUN:   --prepass-remarks=applied -o /dev/null 2>&1 | FileCheck %s --check-prefix=AGAIN --allow-empty
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-vectorize-lookups{form=scalar})' -o %t.scalar.mlir
// RUN: prepass-opt %t.scalar.mlir --split-input-file --pass-pipeline='builtin.module(prepass-vectorize-lookups{form=scalar})' \
// RUN:   --prepass-remarks=applied -o /dev/null 2>&1 | FileCheck %s --check-prefix=AGAIN --allow-empty

// AGAIN-NOT: applied:

// AUTO: missed: no form is known for an unknown target [linalg.generic]
// AUTO-LABEL: @embedding
// AUTO-NOT: iree_linalg_ext.gather
// AUTO-NOT: util.assume.int
// CHECK-LABEL: @embedding
// CHECK-SAME: %[[TABLE:.+]]: tensor<77x8xf16>, %[[IDS:.+]]: tensor<2x?xi32>, %[[INIT:.+]]: tensor<2x?x8xf16>
// GATHER-NEXT: %[[ROWS:.+]] = iree_linalg_ext.gather dimension_map = [0] ins(%[[TABLE]], %[[IDS]] : tensor<77x8xf16>, tensor<2x?xi32>) outs(%[[INIT]] : tensor<2x?x8xf16>)
// GATHER-NEXT: return %[[ROWS]]
// SCALAR: %[[ROW:.+]] = arith.index_cast
// SCALAR: %[[KNOWN:.+]] = util.assume.int %[[ROW]]<udiv = 1> : index
// SCALAR: tensor.extract %[[TABLE]][%[[KNOWN]], %{{.+}}]
#ids = affine_map<(b, i, j) -> (b, i)>
#all = affine_map<(b, i, j) -> (b, i, j)>
func.func @embedding(%table: tensor<77x8xf16>, %ids: tensor<2x?xi32>, %init: tensor<2x?x8xf16>) -> tensor<2x?x8xf16> {
  %0 = linalg.generic {indexing_maps = [#ids, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%ids : tensor<2x?xi32>) outs(%init : tensor<2x?x8xf16>) {
  ^bb0(%in: i32, %out: f16):
    %row = arith.index_cast %in : i32 to index
    %column = linalg.index 2 : index
    %element = tensor.extract %table[%row, %column] : tensor<77x8xf16>
    linalg.yield %element : f16
  } -> tensor<2x?x8xf16>
  return %0 : tensor<2x?x8xf16>
}

// -----

// An assumption does for the scalar form, and is not needed in a gather. Rows may have several dims.
// AUTO-LABEL: @assumed
// CHECK-LABEL: @assumed
// GATHER-NEXT: iree_linalg_ext.gather dimension_map = [0]
// GATHER-NEXT: return
// SCALAR: util.assume.int %{{.+}}<umin = 0, umax = 76>
// SCALAR-NOT: util.assume.int
#ids = affine_map<(i, j, k) -> (i)>
#all = affine_map<(i, j, k) -> (i, j, k)>
func.func @assumed(%table: tensor<77x4x8xf32>, %ids: tensor<6xi64>, %init: tensor<6x4x8xf32>) -> tensor<6x4x8xf32> {
  %0 = linalg.generic {indexing_maps = [#ids, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%ids : tensor<6xi64>) outs(%init : tensor<6x4x8xf32>) {
  ^bb0(%in: i64, %out: f32):
    %known = util.assume.int %in<umin = 0, umax = 76> : i64
    %row = arith.index_cast %known : i64 to index
    %j = linalg.index 1 : index
    %k = linalg.index 2 : index
    %element = tensor.extract %table[%row, %j, %k] : tensor<77x4x8xf32>
    linalg.yield %element : f32
  } -> tensor<6x4x8xf32>
  return %0 : tensor<6x4x8xf32>
}

// -----

// A gather reads its indices as signed: i8 reaches the rows of the first table, not all of the second's.
// CHECK-LABEL: @unsigned
// GATHER-NEXT: iree_linalg_ext.gather
// GATHER-NEXT: linalg.generic
// MISSED: missed: the row is computed in the body [linalg.generic]
#ids = affine_map<(i, j) -> (i)>
#all = affine_map<(i, j) -> (i, j)>
func.func @unsigned(%small: tensor<128x8xf16>, %large: tensor<129x8xf16>, %ids: tensor<6xi8>, %init: tensor<6x8xf16>) -> (tensor<6x8xf16>, tensor<6x8xf16>) {
  %0 = linalg.generic {indexing_maps = [#ids, #all], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<6xi8>) outs(%init : tensor<6x8xf16>) {
  ^bb0(%in: i8, %out: f16):
    %row = arith.index_castui %in : i8 to index
    %column = linalg.index 1 : index
    %element = tensor.extract %small[%row, %column] : tensor<128x8xf16>
    linalg.yield %element : f16
  } -> tensor<6x8xf16>
  %1 = linalg.generic {indexing_maps = [#ids, #all], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<6xi8>) outs(%init : tensor<6x8xf16>) {
  ^bb0(%in: i8, %out: f16):
    %row = arith.index_castui %in : i8 to index
    %column = linalg.index 1 : index
    %element = tensor.extract %large[%row, %column] : tensor<129x8xf16>
    linalg.yield %element : f16
  } -> tensor<6x8xf16>
  return %0, %1 : tensor<6x8xf16>, tensor<6x8xf16>
}

// -----

// Only a scalar body computes the row. Where that form is not wanted, the assumption goes.
// MISSED: missed: the row is computed in the body [linalg.generic]
// MISSED: applied: assumptions dropped: they keep the body from being vectorized [linalg.generic]
// CHECK-LABEL: @computed_row
// GATHER-NOT: util.assume.int
// GATHER: %[[FIXED:.+]] = arith.select
// GATHER: tensor.extract %{{.+}}[%[[FIXED]],
// SCALAR: util.assume.int
#ids = affine_map<(i, j) -> (i)>
#all = affine_map<(i, j) -> (i, j)>
func.func @computed_row(%table: tensor<77x8xf16>, %ids: tensor<6xindex>, %init: tensor<6x8xf16>) -> tensor<6x8xf16> {
  %c0 = arith.constant 0 : index
  %c77 = arith.constant 77 : index
  %0 = linalg.generic {indexing_maps = [#ids, #all], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<6xindex>) outs(%init : tensor<6x8xf16>) {
  ^bb0(%in: index, %out: f16):
    %known = util.assume.int %in<umax = 76> : index
    %negative = arith.cmpi slt, %in, %c0 : index
    %sum = arith.addi %known, %c77 : index
    %row = arith.select %negative, %sum, %known : index
    %column = linalg.index 1 : index
    %element = tensor.extract %table[%row, %column] : tensor<77x8xf16>
    linalg.yield %element : f16
  } -> tensor<6x8xf16>
  return %0 : tensor<6x8xf16>
}

// -----

// MISSED: missed: only one row is read [linalg.generic]
// MISSED: missed: the indices are broadcast or transposed [linalg.generic]
// MISSED: missed: the rows may be longer than what is read of them [linalg.generic]
// MISSED: missed: the rows may be longer than what is read of them [linalg.generic]
// CHECK-LABEL: @no_gather
// GATHER-NOT: iree_linalg_ext.gather
#none = affine_map<(j) -> ()>
#row = affine_map<(j) -> (j)>
#ids = affine_map<(i, j) -> (i)>
#all = affine_map<(i, j) -> (i, j)>
#inner = affine_map<(b, i, j) -> (i)>
#three = affine_map<(b, i, j) -> (b, i, j)>
func.func @no_gather(%table: tensor<77x8xf16>, %dynamic: tensor<77x?xf16>, %id: tensor<i64>, %ids: tensor<6xi64>, %i1: tensor<8xf16>, %i2: tensor<6x4xf16>, %i3: tensor<2x6x8xf16>)
    -> (tensor<8xf16>, tensor<2x6x8xf16>, tensor<6x4xf16>, tensor<6x4xf16>) {
  %0 = linalg.generic {indexing_maps = [#none, #row], iterator_types = ["parallel"]} ins(%id : tensor<i64>) outs(%i1 : tensor<8xf16>) {
  ^bb0(%in: i64, %out: f16):
    %row = arith.index_cast %in : i64 to index
    %column = linalg.index 0 : index
    %element = tensor.extract %table[%row, %column] : tensor<77x8xf16>
    linalg.yield %element : f16
  } -> tensor<8xf16>
  %1 = linalg.generic {indexing_maps = [#inner, #three], iterator_types = ["parallel", "parallel", "parallel"]} ins(%ids : tensor<6xi64>) outs(%i3 : tensor<2x6x8xf16>) {
  ^bb0(%in: i64, %out: f16):
    %row = arith.index_cast %in : i64 to index
    %column = linalg.index 2 : index
    %element = tensor.extract %table[%row, %column] : tensor<77x8xf16>
    linalg.yield %element : f16
  } -> tensor<2x6x8xf16>
  %2 = linalg.generic {indexing_maps = [#ids, #all], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<6xi64>) outs(%i2 : tensor<6x4xf16>) {
  ^bb0(%in: i64, %out: f16):
    %row = arith.index_cast %in : i64 to index
    %column = linalg.index 1 : index
    %element = tensor.extract %table[%row, %column] : tensor<77x8xf16>
    linalg.yield %element : f16
  } -> tensor<6x4xf16>
  %3 = linalg.generic {indexing_maps = [#ids, #all], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<6xi64>) outs(%i2 : tensor<6x4xf16>) {
  ^bb0(%in: i64, %out: f16):
    %row = arith.index_cast %in : i64 to index
    %column = linalg.index 1 : index
    %element = tensor.extract %dynamic[%row, %column] : tensor<77x?xf16>
    linalg.yield %element : f16
  } -> tensor<6x4xf16>
  return %0, %1, %2, %3 : tensor<8xf16>, tensor<2x6x8xf16>, tensor<6x4xf16>, tensor<6x4xf16>
}

// -----

// A dispatch more would be needed for the indices.
// MISSED: missed: an elementwise op computes the indices, with which a gather is not fused [linalg.generic]
// CHECK-LABEL: @computed_indices
// GATHER-NOT: iree_linalg_ext.gather
// SCALAR: util.assume.int
#ids = affine_map<(i, j) -> (i)>
#all = affine_map<(i, j) -> (i, j)>
func.func @computed_indices(%table: tensor<77x8xf16>, %ids: tensor<2x3xi64>, %init: tensor<6x8xf16>) -> tensor<6x8xf16> {
  %e = tensor.empty() : tensor<2x3xi64>
  %doubled = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<2x3xi64>) outs(%e : tensor<2x3xi64>) {
  ^bb0(%in: i64, %out: i64):
    %sum = arith.addi %in, %in : i64
    linalg.yield %sum : i64
  } -> tensor<2x3xi64>
  %flat = tensor.collapse_shape %doubled [[0, 1]] : tensor<2x3xi64> into tensor<6xi64>
  %0 = linalg.generic {indexing_maps = [#ids, #all], iterator_types = ["parallel", "parallel"]} ins(%flat : tensor<6xi64>) outs(%init : tensor<6x8xf16>) {
  ^bb0(%in: i64, %out: f16):
    %row = arith.index_cast %in : i64 to index
    %column = linalg.index 1 : index
    %element = tensor.extract %table[%row, %column] : tensor<77x8xf16>
    linalg.yield %element : f16
  } -> tensor<6x8xf16>
  return %0 : tensor<6x8xf16>
}

// -----

// MISSED: missed: there are assertions in the body [linalg.generic]
// MISSED: missed: the body does more than one lookup does [linalg.generic]
// MISSED: missed: no whole rows are read: the last indices are not the last loops [linalg.generic]
// MISSED: missed: no whole rows are read: the row is another for each column [linalg.generic]
// MISSED: missed: the result is written transposed or reduced [linalg.generic]
// CHECK-LABEL: @no_lookup
// CHECK-NOT: iree_linalg_ext.gather
// CHECK-NOT: util.assume.int
#ids = affine_map<(i, j) -> (i)>
#all = affine_map<(i, j) -> (i, j)>
#swapped = affine_map<(i, j) -> (j, i)>
func.func @no_lookup(%table: tensor<8x8xf16>, %ids: tensor<8xi64>, %more: tensor<8x8xi64>, %init: tensor<8x8xf16>)
    -> (tensor<8x8xf16>, tensor<8x8xf16>, tensor<8x8xf16>, tensor<8x8xf16>, tensor<8x8xf16>, tensor<8x8xf16>) {
  %c8 = arith.constant 8 : index
  %0 = linalg.generic {indexing_maps = [#ids, #all], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<8xi64>) outs(%init : tensor<8x8xf16>) {
  ^bb0(%in: i64, %out: f16):
    %row = arith.index_cast %in : i64 to index
    %less = arith.cmpi ult, %row, %c8 : index
    cf.assert %less, "index"
    %column = linalg.index 1 : index
    %element = tensor.extract %table[%row, %column] : tensor<8x8xf16>
    linalg.yield %element : f16
  } -> tensor<8x8xf16>
  %1 = linalg.generic {indexing_maps = [#ids, #all], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<8xi64>) outs(%init : tensor<8x8xf16>) {
  ^bb0(%in: i64, %out: f16):
    %row = arith.index_cast %in : i64 to index
    %column = linalg.index 1 : index
    %element = tensor.extract %table[%row, %column] : tensor<8x8xf16>
    %sum = arith.addf %element, %out : f16
    linalg.yield %sum : f16
  } -> tensor<8x8xf16>
  %2 = linalg.generic {indexing_maps = [#ids, #all], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<8xi64>) outs(%init : tensor<8x8xf16>) {
  ^bb0(%in: i64, %out: f16):
    %row = arith.index_cast %in : i64 to index
    %column = linalg.index 1 : index
    %element = tensor.extract %table[%column, %row] : tensor<8x8xf16>
    linalg.yield %element : f16
  } -> tensor<8x8xf16>
  %3 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%more : tensor<8x8xi64>) outs(%init : tensor<8x8xf16>) {
  ^bb0(%in: i64, %out: f16):
    %row = arith.index_cast %in : i64 to index
    %column = linalg.index 1 : index
    %element = tensor.extract %table[%row, %column] : tensor<8x8xf16>
    linalg.yield %element : f16
  } -> tensor<8x8xf16>
  %4 = linalg.generic {indexing_maps = [#ids, #swapped], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<8xi64>) outs(%init : tensor<8x8xf16>) {
  ^bb0(%in: i64, %out: f16):
    %row = arith.index_cast %in : i64 to index
    %column = linalg.index 1 : index
    %element = tensor.extract %table[%row, %column] : tensor<8x8xf16>
    linalg.yield %element : f16
  } -> tensor<8x8xf16>
  // The position in the loops is no lookup, and no miss.
  %5 = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel"]} outs(%init : tensor<8x8xf16>) {
  ^bb0(%out: f16):
    %row = linalg.index 0 : index
    %column = linalg.index 1 : index
    %element = tensor.extract %table[%row, %column] : tensor<8x8xf16>
    linalg.yield %element : f16
  } -> tensor<8x8xf16>
  return %0, %1, %2, %3, %4, %5 : tensor<8x8xf16>, tensor<8x8xf16>, tensor<8x8xf16>, tensor<8x8xf16>, tensor<8x8xf16>, tensor<8x8xf16>
}
