// RUN: prepass-opt %S/Inputs/other_reductions.mlir --split-input-file --verify-diagnostics \
// RUN:   --pass-pipeline='builtin.module(prepass-configure-reductions)'

// The flag puts a whole norm in one dispatch.
// RUN: prepass-opt %s --pass-pipeline='builtin.module(prepass-configure-reductions)' --prepass-remarks=all 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NOTARGET
// RUN: prepass-compile %s --iree-hal-target-device=hip --iree-rocm-target=gfx942 --compile-to=executable-sources \
// RUN:   --iree-dispatch-creation-enable-aggressive-fusion=true \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-configure-reductions)' --prepass-remarks=all 2>&1 \
// RUN:   | FileCheck %s --check-prefix=GFX942
// RUN: prepass-compile %s --iree-hal-target-device=hip --iree-rocm-target=gfx1100 --compile-to=executable-sources \
// RUN:   --iree-dispatch-creation-enable-aggressive-fusion=true \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-configure-reductions)' --prepass-remarks=all 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OTHER

// Idempotence: the second time the ops have their configs.
// RUN: prepass-compile %s --iree-hal-target-device=hip --iree-rocm-target=gfx942 --compile-to=executable-sources \
// RUN:   --iree-dispatch-creation-enable-aggressive-fusion=true \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-configure-reductions)' \
// RUN:   | prepass-opt --pass-pipeline='builtin.module(prepass-configure-reductions)' --prepass-remarks=all 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TWICE

// NOTARGET: missed: no target is known for the op [linalg.generic]
// NOTARGET-NOT: lowering_config
// OTHER: missed: IREE's default for gfx1100 is kept [linalg.generic]
// OTHER-NOT: lowering_config
// TWICE: missed: the op has a lowering config already [linalg.generic]

// GFX942-DAG: applied: configured for gfx942 [linalg.generic]
// GFX942-DAG: missed: the sizes of the reductions are dynamic [linalg.generic]
// GFX942-DAG: missed: the reductions of the dispatch are not all over the outermost dim of an operand [linalg.generic]
// GFX942-DAG: missed: it is not one sum, maximum or minimum [linalg.generic]
// Two lanes have the 16 channels of a position, and 512 positions are read at once.
// GFX942: func.func @norm_dispatch
// GFX942: lowering_config = #iree_gpu.lowering_config<{lane_basis = {{\[}}[1, 32, 2], [0, 1, 2]], partial_reduction = [0, 512, 16], subgroup_basis = {{\[}}[1, 16, 1], [0, 1, 2]], thread = [0, 1, 8]}>
// GFX942: compilation_info = #iree_codegen.compilation_info<lowering_config = #iree_gpu.lowering_config<{lane_basis = {{\[}}[1, 32, 2], [0, 1, 2]], partial_reduction = [0, 512, 16], subgroup_basis = {{\[}}[1, 16, 1], [0, 1, 2]], thread = [0, 1, 8], workgroup = [1, 0, 0]}>, translation_info = <pipeline = #iree_gpu.pipeline<VectorDistribute> workgroup_size = [1024, 1, 1] subgroup_size = 64
// The loops of the result are in the order of its dims.
// GFX942: lowering_config = #iree_gpu.lowering_config<{lane_basis = {{\[}}[32, 1, 2], [0, 1, 2]], serial = [512, 0, 16], subgroup_basis = {{\[}}[16, 1, 1], [0, 1, 2]], thread = [1, 0, 8]}>
// GFX942: func.func @odd_dispatch
// Lanes are powers of two: 77 positions and 5 pairs of channels do not spread over them.
// GFX942: lane_basis = {{\[}}[1, 1, 1], [0, 1, 2]]
// GFX942: workgroup = [1, 0, 0]
// GFX942-NOT: lowering_config
// GFX942-NOT: compilation_info

#x = affine_map<(g, n, c) -> (n, g, c)>
#s = affine_map<(g, n, c) -> (g)>
#i = affine_map<(g) -> (g)>
#all = affine_map<(n, g, c) -> (n, g, c)>
#group = affine_map<(n, g, c) -> (g)>
#batched = affine_map<(b, g, n, c) -> (b, n, g, c)>
#sums = affine_map<(b, g, n, c) -> (b, g)>

func.func @norm(%x: tensor<4096x32x16xf16>) -> (tensor<32xf32>, tensor<4096x32x16xf16>) {
  %z = arith.constant 0.0 : f32
  %w = arith.constant 1.0e-3 : f32
  %e = tensor.empty() : tensor<32xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<32xf32>) -> tensor<32xf32>
  %sum = linalg.generic {indexing_maps = [#x, #s], iterator_types = ["parallel", "reduction", "reduction"]} ins(%x : tensor<4096x32x16xf16>) outs(%f : tensor<32xf32>) {
  ^bb0(%in: f16, %out: f32):
    %a = arith.extf %in : f16 to f32
    %b = arith.addf %a, %out : f32
    linalg.yield %b : f32
  } -> tensor<32xf32>
  %mean = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%sum : tensor<32xf32>) outs(%e : tensor<32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.mulf %in, %w : f32
    linalg.yield %a : f32
  } -> tensor<32xf32>
  %squares = linalg.generic {indexing_maps = [#x, #s, #s], iterator_types = ["parallel", "reduction", "reduction"]} ins(%x, %mean : tensor<4096x32x16xf16>, tensor<32xf32>) outs(%f : tensor<32xf32>) {
  ^bb0(%in: f16, %m: f32, %out: f32):
    %a = arith.extf %in : f16 to f32
    %d = arith.subf %a, %m : f32
    %p = arith.mulf %d, %d : f32
    %b = arith.addf %p, %out : f32
    linalg.yield %b : f32
  } -> tensor<32xf32>
  %o = tensor.empty() : tensor<4096x32x16xf16>
  %y = linalg.generic {indexing_maps = [#all, #group, #group, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %mean, %squares : tensor<4096x32x16xf16>, tensor<32xf32>, tensor<32xf32>) outs(%o : tensor<4096x32x16xf16>) {
  ^bb0(%in: f16, %m: f32, %v: f32, %out: f16):
    %a = arith.extf %in : f16 to f32
    %d = arith.subf %a, %m : f32
    %q = math.rsqrt %v : f32
    %p = arith.mulf %d, %q : f32
    %b = arith.truncf %p : f32 to f16
    linalg.yield %b : f16
  } -> tensor<4096x32x16xf16>
  return %mean, %y : tensor<32xf32>, tensor<4096x32x16xf16>
}

func.func @odd(%x: tensor<77x3x10xf16>) -> (tensor<3xf32>, tensor<3xf32>) {
  %z = arith.constant 0.0 : f32
  %w = arith.constant 1.0e-3 : f32
  %e = tensor.empty() : tensor<3xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %sum = linalg.generic {indexing_maps = [#x, #s], iterator_types = ["parallel", "reduction", "reduction"]} ins(%x : tensor<77x3x10xf16>) outs(%f : tensor<3xf32>) {
  ^bb0(%in: f16, %out: f32):
    %a = arith.extf %in : f16 to f32
    %b = arith.addf %a, %out : f32
    linalg.yield %b : f32
  } -> tensor<3xf32>
  %mean = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%sum : tensor<3xf32>) outs(%e : tensor<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.mulf %in, %w : f32
    linalg.yield %a : f32
  } -> tensor<3xf32>
  %squares = linalg.generic {indexing_maps = [#x, #s, #s], iterator_types = ["parallel", "reduction", "reduction"]} ins(%x, %mean : tensor<77x3x10xf16>, tensor<3xf32>) outs(%f : tensor<3xf32>) {
  ^bb0(%in: f16, %m: f32, %out: f32):
    %a = arith.extf %in : f16 to f32
    %d = arith.subf %a, %m : f32
    %p = arith.mulf %d, %d : f32
    %b = arith.addf %p, %out : f32
    linalg.yield %b : f32
  } -> tensor<3xf32>
  return %mean, %squares : tensor<3xf32>, tensor<3xf32>
}

func.func @dynamic(%x: tensor<?x32x16xf16>) -> (tensor<32xf32>, tensor<32xf32>) {
  %z = arith.constant 0.0 : f32
  %w = arith.constant 1.0e-3 : f32
  %e = tensor.empty() : tensor<32xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<32xf32>) -> tensor<32xf32>
  %sum = linalg.generic {indexing_maps = [#x, #s], iterator_types = ["parallel", "reduction", "reduction"]} ins(%x : tensor<?x32x16xf16>) outs(%f : tensor<32xf32>) {
  ^bb0(%in: f16, %out: f32):
    %a = arith.extf %in : f16 to f32
    %b = arith.addf %a, %out : f32
    linalg.yield %b : f32
  } -> tensor<32xf32>
  %mean = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%sum : tensor<32xf32>) outs(%e : tensor<32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.mulf %in, %w : f32
    linalg.yield %a : f32
  } -> tensor<32xf32>
  %squares = linalg.generic {indexing_maps = [#x, #s, #s], iterator_types = ["parallel", "reduction", "reduction"]} ins(%x, %mean : tensor<?x32x16xf16>, tensor<32xf32>) outs(%f : tensor<32xf32>) {
  ^bb0(%in: f16, %m: f32, %out: f32):
    %a = arith.extf %in : f16 to f32
    %d = arith.subf %a, %m : f32
    %p = arith.mulf %d, %d : f32
    %b = arith.addf %p, %out : f32
    linalg.yield %b : f32
  } -> tensor<32xf32>
  return %mean, %squares : tensor<32xf32>, tensor<32xf32>
}

// A sum that decays depends on the order of its terms.
func.func @decay(%x: tensor<4096x32x16xf16>) -> (tensor<32xf32>, tensor<32xf32>) {
  %z = arith.constant 0.0 : f32
  %w = arith.constant 1.0e-3 : f32
  %e = tensor.empty() : tensor<32xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<32xf32>) -> tensor<32xf32>
  %sum = linalg.generic {indexing_maps = [#x, #s], iterator_types = ["parallel", "reduction", "reduction"]} ins(%x : tensor<4096x32x16xf16>) outs(%f : tensor<32xf32>) {
  ^bb0(%in: f16, %out: f32):
    %a = arith.extf %in : f16 to f32
    %b = arith.addf %a, %out : f32
    linalg.yield %b : f32
  } -> tensor<32xf32>
  %mean = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%sum : tensor<32xf32>) outs(%e : tensor<32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.mulf %in, %w : f32
    linalg.yield %a : f32
  } -> tensor<32xf32>
  %squares = linalg.generic {indexing_maps = [#x, #s, #s], iterator_types = ["parallel", "reduction", "reduction"]} ins(%x, %mean : tensor<4096x32x16xf16>, tensor<32xf32>) outs(%f : tensor<32xf32>) {
  ^bb0(%in: f16, %m: f32, %out: f32):
    %a = arith.extf %in : f16 to f32
    %d = arith.subf %a, %m : f32
    %p = arith.mulf %d, %d : f32
    %h = arith.mulf %out, %w : f32
    %b = arith.addf %p, %h : f32
    linalg.yield %b : f32
  } -> tensor<32xf32>
  return %mean, %squares : tensor<32xf32>, tensor<32xf32>
}

// One sum is of rows, the other of columns.
func.func @channels(%x: tensor<64x64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %rows = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x64xf32>) outs(%f : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %b = arith.addf %in, %out : f32
    linalg.yield %b : f32
  } -> tensor<64xf32>
  %columns = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x, %rows : tensor<64x64xf32>, tensor<64xf32>) outs(%f : tensor<64xf32>) {
  ^bb0(%in: f32, %r: f32, %out: f32):
    %a = arith.mulf %in, %r : f32
    %b = arith.addf %a, %out : f32
    linalg.yield %b : f32
  } -> tensor<64xf32>
  return %rows, %columns : tensor<64xf32>, tensor<64xf32>
}

// One norm for each image: its positions are not the outermost dim.
func.func @batched(%x: tensor<2x4096x32x16xf16>) -> tensor<2x32xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x32xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<2x32xf32>) -> tensor<2x32xf32>
  %sum = linalg.generic {indexing_maps = [#batched, #sums], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%x : tensor<2x4096x32x16xf16>) outs(%f : tensor<2x32xf32>) {
  ^bb0(%in: f16, %out: f32):
    %a = arith.extf %in : f16 to f32
    %b = arith.addf %a, %out : f32
    linalg.yield %b : f32
  } -> tensor<2x32xf32>
  %squares = linalg.generic {indexing_maps = [#batched, #sums, #sums], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%x, %sum : tensor<2x4096x32x16xf16>, tensor<2x32xf32>) outs(%f : tensor<2x32xf32>) {
  ^bb0(%in: f16, %m: f32, %out: f32):
    %a = arith.extf %in : f16 to f32
    %d = arith.subf %a, %m : f32
    %p = arith.mulf %d, %d : f32
    %b = arith.addf %p, %out : f32
    linalg.yield %b : f32
  } -> tensor<2x32xf32>
  return %squares : tensor<2x32xf32>
}
