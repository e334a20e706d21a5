// RUN: prepass-opt %s --split-input-file --verify-diagnostics --prepass-load=%S/../../tests/passes_for_tests.py \
// RUN:   --pass-pipeline='builtin.module(test-report-adds)'
// RUN: not prepass-opt %S/Inputs/wrong_expectations.mlir --verify-diagnostics \
// RUN:   --prepass-load=%S/../../tests/passes_for_tests.py --pass-pipeline='builtin.module(test-report-adds)' 2>&1 \
// RUN:   | FileCheck %s

// CHECK: wrong_expectations.mlir:4:8: error: unexpected remark: test-report-adds: missed: seen for no target
// CHECK: wrong_expectations.mlir:2: error: expected remark "not said" was not produced
// CHECK: wrong_expectations.mlir:6: error: expected error "not there" was not produced

func.func @remarks(%a: f32) -> f32 {
  // expected-remark @below {{test-report-adds: missed: seen for no target}}
  %0 = arith.addf %a, %a : f32
  %1 = arith.addf %a, %0 : f32 // expected-remark {{seen}}
  // expected-remark-re @+1 {{se{{[a-z]+}} for}}
  %2 = arith.addf %a, %1 : f32
  return %2 : f32
}

// -----

func.func @errors() -> f32 {
  // expected-error @+1 {{use of undeclared SSA value name}}
  return %0 : f32
}

// -----

func.func @notes() -> f32 {
  // expected-error @+2 {{op has 0 operands}}
  // expected-note @+1 {{see current operation}}
  return
}
