// RUN: prepass-opt %s --pass-pipeline='builtin.module(prepass-merge-constants)' --prepass-remarks=all 2> %t.remarks \
// RUN:   | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
// RUN: prepass-opt %s --pass-pipeline='builtin.module(prepass-merge-constants,func.func(cse))' | FileCheck %s --check-prefix=CSE
// The pass has nothing left to do in its own output.
// RUN: prepass-opt %s --pass-pipeline='builtin.module(prepass-merge-constants)' -o %t.mlir
// RUN: prepass-opt %t.mlir --pass-pipeline='builtin.module(prepass-merge-constants)' --prepass-remarks=all -o %t.again.mlir 2>&1 \
// RUN:   | FileCheck %s --check-prefix=AGAIN
// RUN: diff %t.mlir %t.again.mlir

// AGAIN-NOT: applied:

// REMARK: merge_constants.mlir:[[#@LINE+10]]:1: remark: prepass-merge-constants: applied: made one with an equal constant of 32 bytes [util.global]
// REMARK: applied: made one with an equal constant of 32 bytes [arith.constant]
// REMARK: applied: made one with an equal constant of 32 bytes [arith.constant]
// REMARK: missed: the contents of the resource are not in the module [arith.constant]
// REMARK-NOT: applied

// Globals keep their names and storage: only what they are initialized with is shared.
// CHECK: util.global private @first = dense_resource<ids> : tensor<4xi64>
// CHECK: util.global private mutable @second = dense_resource<ids> : tensor<4xi64>
util.global private @first = dense_resource<ids> : tensor<4xi64>
util.global private mutable @second = dense_resource<ids_1> : tensor<4xi64>

// CHECK-LABEL: @constants
// CHECK-DAG: %[[A:.+]] = arith.constant dense_resource<ids> : tensor<4xi64>
// CHECK-DAG: %[[B:.+]] = arith.constant dense_resource<ids> : tensor<4xi64>
// CHECK-DAG: %[[C:.+]] = arith.constant dense_resource<ids> : tensor<4xi64>
// CHECK: call @use(%[[A]], %[[B]], %[[C]])
// CSE-LABEL: @constants
// CSE: %[[A:.+]] = arith.constant dense_resource<ids> : tensor<4xi64>
// CSE: call @use(%[[A]], %[[A]], %[[A]])
func.func private @use(tensor<4xi64>, tensor<4xi64>, tensor<4xi64>)
func.func @constants() {
  %a = arith.constant dense_resource<ids> : tensor<4xi64>
  %b = arith.constant dense_resource<ids_2> : tensor<4xi64>
  // An inline constant is one of the equal ones, too.
  %c = arith.constant dense<[0, 1, 2, 3]> : tensor<4xi64>
  call @use(%a, %b, %c) : (tensor<4xi64>, tensor<4xi64>, tensor<4xi64>) -> ()
  return
}

// Other contents, another shape, another element type; and constants that are not resources are left to CSE.
// CHECK-LABEL: @different
// CHECK: dense_resource<other> : tensor<4xi64>
// CHECK: dense_resource<shape> : tensor<2x2xi64>
// CHECK: dense_resource<type> : tensor<4xf64>
// CHECK: dense<[0, 1]> : tensor<2xi64>
// CHECK: dense<[0, 2]> : tensor<2xi64>
func.func @different() -> (tensor<4xi64>, tensor<2x2xi64>, tensor<4xf64>, tensor<2xi64>, tensor<2xi64>) {
  %0 = arith.constant dense_resource<other> : tensor<4xi64>
  %1 = arith.constant dense_resource<shape> : tensor<2x2xi64>
  %2 = arith.constant dense_resource<type> : tensor<4xf64>
  %3 = arith.constant dense<[0, 1]> : tensor<2xi64>
  %4 = arith.constant dense<[0, 2]> : tensor<2xi64>
  return %0, %1, %2, %3, %4 : tensor<4xi64>, tensor<2x2xi64>, tensor<4xf64>, tensor<2xi64>, tensor<2xi64>
}

// CHECK-LABEL: @elided
// CHECK: dense_resource<elided>
func.func @elided() -> tensor<4xi64> {
  %0 = arith.constant dense_resource<elided> : tensor<4xi64>
  return %0 : tensor<4xi64>
}

{-#
  dialect_resources: {
    builtin: {
      ids: "0x080000000000000000000000010000000000000002000000000000000300000000000000",
      ids_1: "0x080000000000000000000000010000000000000002000000000000000300000000000000",
      ids_2: "0x400000000000000000000000010000000000000002000000000000000300000000000000",
      other: "0x080000000000000000000000010000000000000002000000000000000400000000000000",
      shape: "0x080000000000000000000000010000000000000002000000000000000300000000000000",
      type: "0x080000000000000000000000010000000000000002000000000000000300000000000000"
    }
  }
#-}
