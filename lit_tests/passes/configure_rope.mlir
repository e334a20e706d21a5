// RUN: prepass-opt %s --pass-pipeline='builtin.module(prepass-configure-rope)' --prepass-remarks=all 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NOTARGET
// RUN: prepass-compile %s --iree-hal-target-device=hip --iree-rocm-target=gfx942 --compile-to=executable-sources \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-configure-rope)' --prepass-remarks=all 2>&1 \
// RUN:   | FileCheck %s --check-prefix=GFX942
// RUN: prepass-compile %s --iree-hal-target-device=hip --iree-rocm-target=gfx1100 --compile-to=executable-sources \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-configure-rope)' --prepass-remarks=all 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OTHER

// Idempotence: the second time the op has its config.
// RUN: prepass-compile %s --iree-hal-target-device=hip --iree-rocm-target=gfx942 --compile-to=executable-sources \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-configure-rope)' \
// RUN:   | prepass-opt --pass-pipeline='builtin.module(prepass-configure-rope)' --prepass-remarks=all 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TWICE

// NOTARGET-DAG: missed: no target is known for the op [linalg.generic]
// NOTARGET-DAG: missed: the rotation is not alone in its dispatch [linalg.generic]
// NOTARGET-NOT: compilation_info
// OTHER: missed: IREE's default for gfx1100 is kept [linalg.generic]
// OTHER-NOT: compilation_info
// TWICE: missed: the op has a lowering config already [linalg.generic]

// GFX942-DAG: applied: configured for gfx942 [linalg.generic]
// GFX942-DAG: missed: its rows do not fill waves that load 16 bytes a lane; IREE's default is kept [linalg.generic]
// GFX942-DAG: missed: its loads are 16 bytes wide without a config [linalg.generic]
// GFX942: func.func @halves_dispatch
// GFX942: compilation_info = #iree_codegen.compilation_info<lowering_config = #iree_gpu.lowering_config<{thread = [1, 1, 2, 8], workgroup = [1, 8, 2, 64]}>
// GFX942-SAME: workgroup_size = [64, 1, 1]
// GFX942: func.func @dynamic_dispatch
// GFX942: thread = [1, 1, 2, 8], workgroup = [1, 8, 2, 64]
// GFX942: func.func @few_heads_dispatch
// A wave has three rows at most, and two of them leave more lanes idle: four waves have seven.
// GFX942: thread = [1, 1, 2, 8], workgroup = [7, 3, 2, 64]
// GFX942-SAME: workgroup_size = [192, 1, 1]
// GFX942-NOT: compilation_info

#x = affine_map<(t, h, c, i) -> (t, h, i)>
#row = affine_map<(t, h, c, i) -> (t, c, i)>
#all = affine_map<(t, h, c, i) -> (t, h, c, i)>
func.func @halves(%x0: tensor<4608x24x64xf16>, %x1: tensor<4608x24x64xf16>, %cos: tensor<4608x2x64xf16>, %sin: tensor<4608x2x64xf16>) -> tensor<4608x24x2x64xf16> {
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<4608x24x2x64xf16>
  %y = linalg.generic {indexing_maps = [#x, #x, #row, #row, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x0, %x1, %cos, %sin : tensor<4608x24x64xf16>, tensor<4608x24x64xf16>, tensor<4608x2x64xf16>, tensor<4608x2x64xf16>) outs(%e : tensor<4608x24x2x64xf16>) {
  ^bb0(%a: f16, %b: f16, %c: f16, %s: f16, %o: f16):
    %which = linalg.index 2 : index
    %low = arith.cmpi eq, %which, %c0 : index
    %own = arith.select %low, %a, %b : f16
    %n = arith.negf %b : f16
    %other = arith.select %low, %n, %a : f16
    %p = arith.mulf %own, %c : f16
    %q = arith.mulf %other, %s : f16
    %r = arith.addf %p, %q : f16
    linalg.yield %r : f16
  } -> tensor<4608x24x2x64xf16>
  return %y : tensor<4608x24x2x64xf16>
}

func.func @dynamic(%x0: tensor<?x24x64xf16>, %x1: tensor<?x24x64xf16>, %cos: tensor<?x2x64xf16>, %sin: tensor<?x2x64xf16>, %e: tensor<?x24x2x64xf16>) -> tensor<?x24x2x64xf16> {
  %c0 = arith.constant 0 : index
  %y = linalg.generic {indexing_maps = [#x, #x, #row, #row, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x0, %x1, %cos, %sin : tensor<?x24x64xf16>, tensor<?x24x64xf16>, tensor<?x2x64xf16>, tensor<?x2x64xf16>) outs(%e : tensor<?x24x2x64xf16>) {
  ^bb0(%a: f16, %b: f16, %c: f16, %s: f16, %o: f16):
    %which = linalg.index 2 : index
    %low = arith.cmpi eq, %which, %c0 : index
    %own = arith.select %low, %a, %b : f16
    %n = arith.negf %b : f16
    %other = arith.select %low, %n, %a : f16
    %p = arith.mulf %own, %c : f16
    %q = arith.mulf %other, %s : f16
    %r = arith.addf %p, %q : f16
    linalg.yield %r : f16
  } -> tensor<?x24x2x64xf16>
  return %y : tensor<?x24x2x64xf16>
}

// Rows that leave some lanes of a wave idle.
func.func @few_heads(%x0: tensor<77x3x64xf16>, %x1: tensor<77x3x64xf16>, %cos: tensor<77x2x64xf16>, %sin: tensor<77x2x64xf16>) -> tensor<77x3x2x64xf16> {
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<77x3x2x64xf16>
  %y = linalg.generic {indexing_maps = [#x, #x, #row, #row, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x0, %x1, %cos, %sin : tensor<77x3x64xf16>, tensor<77x3x64xf16>, tensor<77x2x64xf16>, tensor<77x2x64xf16>) outs(%e : tensor<77x3x2x64xf16>) {
  ^bb0(%a: f16, %b: f16, %c: f16, %s: f16, %o: f16):
    %which = linalg.index 2 : index
    %low = arith.cmpi eq, %which, %c0 : index
    %own = arith.select %low, %a, %b : f16
    %n = arith.negf %b : f16
    %other = arith.select %low, %n, %a : f16
    %p = arith.mulf %own, %c : f16
    %q = arith.mulf %other, %s : f16
    %r = arith.addf %p, %q : f16
    linalg.yield %r : f16
  } -> tensor<77x3x2x64xf16>
  return %y : tensor<77x3x2x64xf16>
}

// Rows of 10 pairs are no vectors of 8.
func.func @odd(%x0: tensor<4608x24x10xf16>, %x1: tensor<4608x24x10xf16>, %cos: tensor<4608x2x10xf16>, %sin: tensor<4608x2x10xf16>) -> tensor<4608x24x2x10xf16> {
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<4608x24x2x10xf16>
  %y = linalg.generic {indexing_maps = [#x, #x, #row, #row, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x0, %x1, %cos, %sin : tensor<4608x24x10xf16>, tensor<4608x24x10xf16>, tensor<4608x2x10xf16>, tensor<4608x2x10xf16>) outs(%e : tensor<4608x24x2x10xf16>) {
  ^bb0(%a: f16, %b: f16, %c: f16, %s: f16, %o: f16):
    %which = linalg.index 2 : index
    %low = arith.cmpi eq, %which, %c0 : index
    %own = arith.select %low, %a, %b : f16
    %n = arith.negf %b : f16
    %other = arith.select %low, %n, %a : f16
    %p = arith.mulf %own, %c : f16
    %q = arith.mulf %other, %s : f16
    %r = arith.addf %p, %q : f16
    linalg.yield %r : f16
  } -> tensor<4608x24x2x10xf16>
  return %y : tensor<4608x24x2x10xf16>
}

// Pairs as integers, whose tables are in f32, and behind them another op, which IREE puts in a dispatch of its own.
#pair = affine_map<(t, h, i) -> (t, h, i)>
#turn = affine_map<(t, h, i) -> (t, i)>
func.func @wide(%x: tensor<4608x24x64xi32>, %cos: tensor<4608x64xf32>, %sin: tensor<4608x64xf32>) -> tensor<24xi32> {
  %c16 = arith.constant 16 : i32
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<4608x24x64xi32>
  %y = linalg.generic {indexing_maps = [#pair, #turn, #turn, #pair], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %cos, %sin : tensor<4608x24x64xi32>, tensor<4608x64xf32>, tensor<4608x64xf32>) outs(%e : tensor<4608x24x64xi32>) {
  ^bb0(%in: i32, %c: f32, %s: f32, %o: i32):
    %b0 = arith.trunci %in : i32 to i16
    %h0 = arith.bitcast %b0 : i16 to f16
    %x0 = arith.extf %h0 : f16 to f32
    %u = arith.shrui %in, %c16 : i32
    %b1 = arith.trunci %u : i32 to i16
    %h1 = arith.bitcast %b1 : i16 to f16
    %x1 = arith.extf %h1 : f16 to f32
    %p0 = arith.mulf %x0, %c : f32
    %q0 = arith.mulf %x1, %s : f32
    %y0 = arith.subf %p0, %q0 : f32
    %p1 = arith.mulf %x1, %c : f32
    %q1 = arith.mulf %x0, %s : f32
    %y1 = arith.addf %p1, %q1 : f32
    %t0 = arith.truncf %y0 : f32 to f16
    %t1 = arith.truncf %y1 : f32 to f16
    %i0 = arith.bitcast %t0 : f16 to i16
    %i1 = arith.bitcast %t1 : f16 to i16
    %w0 = arith.extui %i0 : i16 to i32
    %w1 = arith.extui %i1 : i16 to i32
    %v = arith.shli %w1, %c16 : i32
    %r = arith.ori %w0, %v : i32
    linalg.yield %r : i32
  } -> tensor<4608x24x64xi32>
  %b = util.optimization_barrier %y : tensor<4608x24x64xi32>
  %e1 = tensor.empty() : tensor<24xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e1 : tensor<24xi32>) -> tensor<24xi32>
  %s = linalg.reduce ins(%b : tensor<4608x24x64xi32>) outs(%f : tensor<24xi32>) dimensions = [0, 2]
    (%in: i32, %acc: i32) {
      %0 = arith.addi %in, %acc : i32
      linalg.yield %0 : i32
    }
  return %s : tensor<24xi32>
}
