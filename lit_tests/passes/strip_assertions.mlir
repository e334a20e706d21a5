// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-strip-assertions)' --prepass-remarks=all \
// RUN:   2> %t.strip | FileCheck %s --check-prefix=STRIP
// RUN: FileCheck %s --check-prefix=REMARK < %t.strip
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-strip-assertions{mode=assume})' \
// RUN:   --prepass-remarks=missed 2> %t.assume | FileCheck %s
// RUN: FileCheck %s --check-prefix=MISSED < %t.assume
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-strip-assertions{mode=keep})' \
// RUN:   --prepass-remarks=missed 2>&1 | FileCheck %s --check-prefix=KEEP
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-strip-assertions{scope=linalg})' \
// RUN:   --prepass-remarks=missed 2>&1 | FileCheck %s --check-prefix=LINALG
// RUN: prepass-opt %s --split-input-file --prepass-remarks=missed \
// RUN:   --pass-pipeline='builtin.module(prepass-strip-assertions{message="^index must" keep=smaller})' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SOME
// RUN: not prepass-opt %s --pass-pipeline='builtin.module(prepass-strip-assertions{message="a("})' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=ERROR
// A warning needs no flag. The pass has nothing left to do in its own output, apart from warning again.
// RUN: prepass-opt %s --split-input-file --pass-pipeline='builtin.module(prepass-strip-assertions{mode=assume})' -o %t.mlir 2>&1 \
// RUN:   | FileCheck %s --check-prefix=WARNING
// RUN: prepass-opt %t.mlir --split-input-file --pass-pipeline='builtin.module(prepass-strip-assertions{mode=assume})' \
// RUN:   --prepass-remarks=all -o %t.again.mlir 2>&1 | FileCheck %s --check-prefix=AGAIN
// RUN: diff %t.mlir %t.again.mlir

// ERROR: prepass-strip-assertions: option 'message' is no regular expression: missing ), unterminated subpattern at position 1
// AGAIN-NOT: applied:

// What torch makes of an embedding: one bound on the index, the other on the integer it is cast from.
// REMARK: applied: 1 with the message "index must be smaller than dim size": removed [cf.assert]
// REMARK: applied: 1 with the message "index must be larger or equal to 0": removed [cf.assert]
// STRIP-LABEL: @embedding
// STRIP-NOT: arith.cmpi
// STRIP-NOT: cf.assert
// STRIP: %[[ROW:.+]] = arith.index_cast %{{.+}} : i64 to index
// STRIP-NOT: arith.cmpi
// STRIP-NOT: cf.assert
// STRIP: tensor.extract %{{.+}}[%[[ROW]], %{{.+}}]
// CHECK-LABEL: @embedding
// CHECK: %[[ROW:.+]] = arith.index_cast %{{.+}} : i64 to index
// CHECK-NOT: cf.assert
// CHECK: %[[KNOWN:.+]] = util.assume.int %[[ROW]]<umin = 0, umax = 76> : index
// CHECK-NOT: cf.assert
// CHECK: tensor.extract %{{.+}}[%[[KNOWN]], %{{.+}}]
// KEEP: missed: 1 with the message "index must be smaller than dim size": kept, as the mode says [cf.assert]
// KEEP-LABEL: @embedding
// KEEP: cf.assert
// KEEP: cf.assert
// LINALG: missed: 7 with the message "user": kept, being outside of linalg ops [cf.assert]
// LINALG-LABEL: @embedding
// LINALG-NOT: cf.assert
// SOME: missed: 1 with the message "index must be smaller than dim size": kept, as the options say [cf.assert]
// SOME: missed: 7 with the message "user": kept, as the options say [cf.assert]
// SOME-LABEL: @embedding
// SOME: cf.assert %{{.+}}, "index must be smaller than dim size"
// SOME-NOT: "index must be larger
func.func @embedding(%table: tensor<77x8xf16>, %ids: tensor<?xi64>, %init: tensor<?x8xf16>) -> tensor<?x8xf16> {
  %c77 = arith.constant 77 : index
  %c0_i64 = arith.constant 0 : i64
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<?xi64>) outs(%init : tensor<?x8xf16>) {
  ^bb0(%in: i64, %out: f16):
    %row = arith.index_cast %in : i64 to index
    %column = linalg.index 1 : index
    %less = arith.cmpi slt, %row, %c77 : index
    cf.assert %less, "index must be smaller than dim size"
    %positive = arith.cmpi sge, %in, %c0_i64 : i64
    cf.assert %positive, "index must be larger or equal to 0"
    %element = tensor.extract %table[%row, %column] : tensor<77x8xf16>
    linalg.yield %element : f16
  } -> tensor<?x8xf16>
  return %0 : tensor<?x8xf16>
}

// -----

// Predicates, operand orders, joined and negated conditions.
// CHECK-LABEL: @predicates
// CHECK-SAME: %[[A:.+]]: i32, %[[B:.+]]: i64, %[[C:.+]]: index, %[[D:.+]]: i32, %[[E:.+]]: i64, %[[F:.+]]: i32, %[[G:.+]]: i8
// CHECK-DAG: %[[A1:.+]] = util.assume.int %[[A]]<umin = 0, umax = 9> : i32
// CHECK-DAG: %[[B1:.+]] = util.assume.int %[[B]]<umin = 1, umax = 10> : i64
// CHECK-DAG: %[[C1:.+]] = util.assume.int %[[C]]<umin = 0, umax = 9> : index
// CHECK-DAG: %[[D1:.+]] = util.assume.int %[[D]]<umin = 10, umax = 4294967295> : i32
// CHECK-DAG: %[[E1:.+]] = util.assume.int %[[E]]<umin = 10, umax = 10> : i64
// CHECK-DAG: %[[F1:.+]] = util.assume.int %[[F]]<umin = 1, umax = 4294967295> : i32
// CHECK-DAG: %[[G1:.+]] = util.assume.int %[[G]]<umin = 128, umax = 251> : i8
// CHECK: call @use(%[[A1]], %[[B1]], %[[C1]], %[[D1]], %[[E1]], %[[F1]], %[[G1]])
// LINALG-LABEL: @predicates
// LINALG: cf.assert
// SOME-LABEL: @predicates
// SOME-COUNT-7: cf.assert
func.func private @use(i32, i64, index, i32, i64, i32, i8)
func.func @predicates(%a: i32, %b: i64, %c: index, %d: i32, %e: i64, %f: i32, %g: i8) {
  %true = arith.constant true
  %a0 = arith.constant 0 : i32
  %a10 = arith.constant 10 : i32
  %b0 = arith.constant 0 : i64
  %b10 = arith.constant 10 : i64
  %c10 = arith.constant 10 : index
  %gm4 = arith.constant -4 : i8
  %1 = arith.cmpi sle, %a0, %a : i32
  %2 = arith.cmpi sgt, %a10, %a : i32
  %3 = arith.andi %1, %2 : i1
  cf.assert %3, "user"
  %4 = arith.cmpi sgt, %b, %b0 : i64
  %5 = arith.cmpi sgt, %b, %b10 : i64
  %6 = arith.xori %5, %true : i1
  %7 = arith.andi %4, %6 : i1
  cf.assert %7, "user"
  %8 = arith.cmpi ult, %c, %c10 : index
  cf.assert %8, "user"
  %9 = arith.cmpi ule, %a10, %d : i32
  cf.assert %9, "user"
  %10 = arith.cmpi eq, %b10, %e : i64
  cf.assert %10, "user"
  %11 = arith.cmpi ne, %f, %a0 : i32
  cf.assert %11, "user"
  %12 = arith.cmpi slt, %g, %gm4 : i8
  cf.assert %12, "user"
  call @use(%a, %b, %c, %d, %e, %f, %g) : (i32, i64, index, i32, i64, i32, i8) -> ()
  return
}

// -----

// A use between two assertions knows the first only; one before them nothing; one in a later region both.
// CHECK-LABEL: @positions
// CHECK-SAME: %[[X:.+]]: index
// CHECK: call @use(%[[X]])
// CHECK-NEXT: %[[ONE:.+]] = util.assume.int %[[X]]<umin = 0, umax = 99> : index
// CHECK-NEXT: call @use(%[[ONE]])
// CHECK-NEXT: %[[BOTH:.+]] = util.assume.int %[[X]]<umin = 0, umax = 9> : index
// CHECK-NEXT: scf.if
// CHECK-NEXT: call @use(%[[BOTH]])
func.func private @use(index)
func.func @positions(%x: index, %if: i1) {
  %c10 = arith.constant 10 : index
  %c100 = arith.constant 100 : index
  func.call @use(%x) : (index) -> ()
  %0 = arith.cmpi ult, %x, %c100 : index
  %1 = arith.cmpi ult, %x, %c10 : index
  cf.assert %0, "first"
  func.call @use(%x) : (index) -> ()
  cf.assert %1, "second"
  scf.if %if {
    func.call @use(%x) : (index) -> ()
  }
  return
}

// -----

// An assertion in an scf.if says nothing outside of it; what is known outside counts inside.
// CHECK-LABEL: @branches
// CHECK-SAME: %[[X:.+]]: i64
// CHECK: %[[OUTER:.+]] = util.assume.int %[[X]]<umin = 0, umax = 9223372036854775807> : i64
// CHECK: scf.if
// CHECK-NEXT: %[[INNER:.+]] = util.assume.int %[[OUTER]]<umin = 0, umax = 9> : i64
// CHECK-NEXT: call @use(%[[INNER]])
// CHECK-NEXT: } else {
// CHECK-NEXT: call @use(%[[OUTER]])
// CHECK-NEXT: }
// CHECK-NEXT: call @use(%[[OUTER]])
func.func private @use(i64)
func.func @branches(%x: i64, %if: i1) {
  %c0 = arith.constant 0 : i64
  %c10 = arith.constant 10 : i64
  %positive = arith.cmpi sge, %x, %c0 : i64
  cf.assert %positive, "outer"
  scf.if %if {
    %less = arith.cmpi slt, %x, %c10 : i64
    cf.assert %less, "inner"
    func.call @use(%x) : (i64) -> ()
  } else {
    func.call @use(%x) : (i64) -> ()
  }
  func.call @use(%x) : (i64) -> ()
  return
}

// -----

// Casts: what holds for a sign-extended value holds for the narrow one, and for its other casts.
// CHECK-LABEL: @casts
// CHECK-SAME: %[[X:.+]]: i32, %[[Y:.+]]: i8
// CHECK: %[[WIDE:.+]] = arith.extsi %[[X]] : i32 to i64
// CHECK: %[[ROW:.+]] = arith.index_cast %[[WIDE]] : i64 to index
// CHECK: %[[UNSIGNED:.+]] = arith.index_castui %[[Y]] : i8 to index
// CHECK-DAG: %[[ROW1:.+]] = util.assume.int %[[ROW]]<umin = 0, umax = 76> : index
// CHECK-DAG: %[[X1:.+]] = util.assume.int %[[X]]<umin = 0, umax = 76> : i32
// CHECK-DAG: %[[UNSIGNED1:.+]] = util.assume.int %[[UNSIGNED]]<umin = 3, umax = 255> : index
// CHECK-DAG: %[[Y1:.+]] = util.assume.int %[[Y]]<umin = 3, umax = 255> : i8
// CHECK: call @use(%[[ROW1]], %[[X1]], %[[UNSIGNED1]], %[[Y1]])
func.func private @use(index, i32, index, i8)
func.func @casts(%x: i32, %y: i8) {
  %c0 = arith.constant 0 : i64
  %c77 = arith.constant 77 : index
  %c2 = arith.constant 2 : index
  %wide = arith.extsi %x : i32 to i64
  %row = arith.index_cast %wide : i64 to index
  %unsigned = arith.index_castui %y : i8 to index
  %0 = arith.cmpi slt, %row, %c77 : index
  cf.assert %0, "row"
  %1 = arith.cmpi sge, %wide, %c0 : i64
  cf.assert %1, "row"
  %2 = arith.cmpi ugt, %unsigned, %c2 : index
  cf.assert %2, "unsigned"
  call @use(%row, %x, %unsigned, %y) : (index, i32, index, i8) -> ()
  return
}

// -----

// A dynamic size is no constant, but it is not negative and no larger than an index.
// CHECK-LABEL: @dynamic_size
// CHECK-SAME: %[[X:.+]]: index
// CHECK: util.assume.int %[[X]]<umin = 0, umax = 9223372036854775806> : index
func.func @dynamic_size(%x: index, %t: tensor<?xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %size = tensor.dim %t, %c0 : tensor<?xf32>
  %0 = arith.cmpi slt, %x, %size : index
  cf.assert %0, "index must be smaller than dim size"
  %1 = arith.cmpi sge, %x, %c0 : index
  cf.assert %1, "index must be larger or equal to 0"
  %element = tensor.extract %t[%x] : tensor<?xf32>
  return %element : f32
}

// -----

// Initializers too. Only sign-extending or unsigned bounds say something of unsigned numbers.
// MISSED: missed: 1 with the message "upper": nothing is assumed: the assertions do not bound the value as unsigned number
// MISSED: missed: 1 with the message "other": nothing is assumed: the condition says nothing new of an integer
// CHECK-LABEL: util.initializer
// CHECK-NOT: cf.assert
// CHECK-NOT: util.assume.int
// CHECK: util.return
// STRIP-LABEL: util.initializer
// STRIP-NOT: cf.assert
// STRIP: util.return
util.global private mutable @g : i32
util.initializer {
  %x = util.global.load @g : i32
  %c5 = arith.constant 5 : i32
  %0 = arith.cmpi slt, %x, %c5 : i32
  cf.assert %0, "upper"
  %one = arith.constant 1.0 : f32
  %float = arith.sitofp %x : i32 to f32
  %1 = arith.cmpf olt, %float, %one : f32
  cf.assert %1, "other"
  util.global.store %x, @g : i32
  util.return
}

// -----

// An assumption on a value from outside of a loop could be hoisted to where the loop does not run.
// MISSED: missed: 1 with the message "invariant": nothing is assumed: the value does not change in the loop, so that an assumption could be hoisted
// MISSED-NOT: "variant"
// CHECK-LABEL: @loop
// CHECK-SAME: %[[X:[a-z0-9]+]]: index
// CHECK: scf.for %[[I:.+]] =
// CHECK-NEXT: scf.if
// CHECK-NEXT: %[[SUM:.+]] = arith.addi %[[I]], %[[X]]
// CHECK-NEXT: %[[KNOWN:.+]] = util.assume.int %[[I]]<umin = 0, umax = 9>
// CHECK-NEXT: call @use(%[[X]], %[[KNOWN]], %[[SUM]])
func.func private @use(index, index, index)
func.func @loop(%x: index, %n: index, %if: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.if %if {
      %sum = arith.addi %i, %x : index
      %0 = arith.cmpi ult, %x, %c10 : index
      cf.assert %0, "invariant"
      %1 = arith.cmpi ult, %i, %c10 : index
      cf.assert %1, "variant"
      func.call @use(%x, %i, %sum) : (index, index, index) -> ()
    }
  }
  return
}

// -----

// What always fails stays, with a warning.
// REMARK: missed: kept, because it always fails: the condition is constant false [cf.assert]
// REMARK: missed: kept, because it always fails: what the assertions say of a value contradicts itself [cf.assert]
// WARNING: strip_assertions.mlir:[[#@LINE+16]]:3: warning: prepass-strip-assertions: the assertion "false" always fails: the condition is constant false
// WARNING: strip_assertions.mlir:[[#@LINE+19]]:3: warning: prepass-strip-assertions: the assertion "low" always fails: what the assertions say of a value contradicts itself
// WARNING: strip_assertions.mlir:[[#@LINE+20]]:3: warning: prepass-strip-assertions: the assertion "high" always fails
// CHECK-LABEL: @failing
// CHECK: cf.assert %{{.+}}, "false"
// CHECK: cf.assert %{{.+}}, "low"
// CHECK: cf.assert %{{.+}}, "high"
// CHECK-NOT: cf.assert
// STRIP-LABEL: @failing
// STRIP: cf.assert %{{.+}}, "false"
// STRIP: cf.assert %{{.+}}, "low"
// STRIP: cf.assert %{{.+}}, "high"
// STRIP-NOT: cf.assert
func.func @failing(%x: i32) -> i32 {
  %false = arith.constant false
  %true = arith.constant true
  cf.assert %false, "false"
  cf.assert %true, "true"
  %c5 = arith.constant 5 : i32
  %0 = arith.cmpi slt, %x, %c5 : i32
  cf.assert %0, "low"
  %1 = arith.cmpi sgt, %x, %c5 : i32
  cf.assert %1, "high"
  return %x : i32
}
