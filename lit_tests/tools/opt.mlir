// Native and Python passes in one pipeline, in the order they are written.

// RUN: prepass-opt %s --pass-pipeline='builtin.module(func.func(cse),test-report-adds)' \
// RUN:   --prepass-load=%S/../../tests/passes_for_tests.py --prepass-remarks=all 2>&1 | FileCheck %s --check-prefix=AFTER
// RUN: prepass-opt %s --pass-pipeline='builtin.module(test-report-adds,func.func(cse))' \
// RUN:   --prepass-load=%S/../../tests/passes_for_tests.py --prepass-remarks=all 2>&1 | FileCheck %s --check-prefix=BEFORE
// RUN: prepass-opt %s --split-input-file | FileCheck %s --check-prefix=SPLIT
// RUN: prepass-opt - < %s | FileCheck %s --check-prefix=WHOLE
// RUN: prepass-opt %s --emit-bytecode | prepass-opt | FileCheck %s --check-prefix=WHOLE
// RUN: not prepass-opt %s --pass-pipeline='builtin.module(func.func(csee))' 2>&1 | FileCheck %s --check-prefix=ERROR

// AFTER-COUNT-1: remark: test-report-adds: missed: seen for no target [arith.addf]
// AFTER-NOT: remark
// BEFORE: opt.mlir:[[#@LINE+12]]:8: remark: test-report-adds: missed
// BEFORE: opt.mlir:[[#@LINE+12]]:8: remark: test-report-adds: missed
// BEFORE: {{= arith.addf}}
// BEFORE-NOT: {{= arith.addf}}
// SPLIT: @first
// SPLIT: // -----
// SPLIT: @second
// WHOLE: @first
// WHOLE-NOT: // -----
// WHOLE: @second
// ERROR: prepass-opt: error: pass pipeline, column 26: unknown pass 'csee'; did you mean 'cse'?
func.func @first(%a: f32, %b: f32) -> f32 {
  %0 = arith.addf %a, %b : f32
  %1 = arith.addf %a, %b : f32
  %2 = arith.mulf %0, %1 : f32
  return %2 : f32
}

// -----

func.func @second() {
  return
}
