// RUN: prepass-compile %s --iree-hal-target-device=hip --iree-rocm-target=gfx942 --compile-to=executable-sources \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-select-kernels{kernels=direct-matmul})' \
// RUN:   --prepass-remarks=all 2>&1 | FileCheck %s --check-prefix=GFX942
// The flag is another way to say it, and wins over the pipeline.
// RUN: prepass-compile %s --iree-hal-target-device=hip --iree-rocm-target=gfx942 --compile-to=executable-sources \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-select-kernels{kernels=none})' \
// RUN:   --prepass-kernels=direct-matmul | FileCheck %s --check-prefix=FLAG
// RUN: prepass-compile %s --iree-hal-target-device=hip --iree-rocm-target=gfx942 --compile-to=executable-sources \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-select-kernels{kernels=direct-matmul})' \
// RUN:   --prepass-kernels=none --prepass-remarks=all 2>&1 | FileCheck %s --check-prefix=NONE
// By default only those are selected that are better wherever they fit.
// RUN: prepass-compile %s --iree-hal-target-device=hip --iree-rocm-target=gfx942 --compile-to=executable-sources \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-select-kernels)' --prepass-remarks=all 2>&1 \
// RUN:   | FileCheck %s --check-prefix=DEFAULT
// Other targets are untouched.
// RUN: prepass-compile %s --iree-hal-target-device=hip --iree-rocm-target=gfx1100 --compile-to=executable-sources \
// RUN:   --prepass-kernels=direct-matmul --prepass-remarks=all 2>&1 | FileCheck %s --check-prefix=OTHER
// Before executables there is nothing to put a kernel into.
// RUN: prepass-opt %s --pass-pipeline='builtin.module(prepass-select-kernels{kernels=direct-matmul})' --prepass-remarks=all 2>&1 \
// RUN:   | FileCheck %s --check-prefix=EARLY
// Idempotence: the second time the op has its kernel.
// RUN: prepass-compile %s --iree-hal-target-device=hip --iree-rocm-target=gfx942 --compile-to=executable-sources \
// RUN:   --prepass-kernels=direct-matmul -o %t.mlir
// RUN: prepass-opt %t.mlir --pass-pipeline='builtin.module(prepass-select-kernels{kernels=direct-matmul})' -o %t2.mlir \
// RUN:   --prepass-remarks=all 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: prepass-opt %t.mlir --pass-pipeline='builtin.module()' -o %t3.mlir
// RUN: diff %t2.mlir %t3.mlir
// With the stock binary.
// RUN: not iree-compile --load=%prepass_plugin --prepass-kernels=direct-matmol %s 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not prepass-opt %s --pass-pipeline='builtin.module(prepass-select-kernels{kernels=direct-matmol})' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=COLUMN
// REQUIRES: plugin

// GFX942-DAG: applied: computed by direct-matmul [linalg.matmul]
// GFX942-DAG: missed: direct-matmul: M is dynamic [linalg.matmul]
// GFX942-DAG: missed: direct-matmul: operand 0 is computed in the same dispatch, by linalg.generic [linalg.matmul]
// GFX942-DAG: missed: direct-matmul: K is not innermost in both operands [linalg.matmul]
// GFX942-DAG: missed: direct-matmul: the loops are not M, N and K, in this order [linalg.batch_matmul]
// GFX942: hal.executable.variant
// GFX942-SAME: iree_codegen.ukernel_provider = #iree_codegen.symbolic_ukernel_provider
// GFX942-NEXT: hal.executable.export
// GFX942: util.func private @prepass_direct_matmul_f16(%{{.*}}: tensor<64x?xf16>, %{{.*}}: tensor<64x?xf16>, %{{.*}}: tensor<64x64xf32>) -> tensor<64x64xf32>
// GFX942: linalg.matmul
// GFX942-SAME: iree_codegen.ukernel = #iree_codegen.ukernel_descriptor<"prepass_direct_matmul_f16", tensor>
// GFX942: hal.executable.variant
// GFX942-NOT: iree_codegen.ukernel = 

// FLAG: util.func private @prepass_direct_matmul_f16
// DEFAULT-NOT: prepass_direct_matmul_f16
// NONE-NOT: {{applied|missed|prepass_direct_matmul_f16}}
// OTHER-COUNT-5: missed: no kernel is for gfx1100
// OTHER-NOT: ukernel_descriptor
// EARLY-COUNT-5: missed: the op is in no executable: kernels are selected after the phase executable-sources
// TWICE: missed: the op has a lowering config already [linalg.matmul]
// NAME: error: kernels: no kernel 'direct-matmol'; did you mean 'direct-matmul'?
// COLUMN: error: pass pipeline, column 16: prepass-select-kernels: no kernel 'direct-matmol'; did you mean 'direct-matmul'?

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @fits(%a: tensor<128x32xf16>, %b: tensor<64x32xf16>) -> tensor<128x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x64xf32>) -> tensor<128x64xf32>
  %r = linalg.matmul indexing_maps = [#a, #b, #c] ins(%a, %b : tensor<128x32xf16>, tensor<64x32xf16>)
      outs(%f : tensor<128x64xf32>) -> tensor<128x64xf32>
  return %r : tensor<128x64xf32>
}

// Any number of rows.
func.func @dynamic(%a: tensor<?x32xf16>, %b: tensor<64x32xf16>, %m: index) -> tensor<?x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%m) : tensor<?x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %r = linalg.matmul indexing_maps = [#a, #b, #c] ins(%a, %b : tensor<?x32xf16>, tensor<64x32xf16>)
      outs(%f : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}

// IREE computes the cast of an operand in the dispatch of the product.
func.func @computed(%a: tensor<128x32xi8>, %b: tensor<64x32xf16>) -> tensor<128x64xf32> {
  %zero = arith.constant 0.0 : f32
  %ea = tensor.empty() : tensor<128x32xf16>
  %cast = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<128x32xi8>) outs(%ea : tensor<128x32xf16>) {
  ^bb0(%x: i8, %o: f16):
    %y = arith.sitofp %x : i8 to f16
    linalg.yield %y : f16
  } -> tensor<128x32xf16>
  %e = tensor.empty() : tensor<128x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x64xf32>) -> tensor<128x64xf32>
  %r = linalg.matmul indexing_maps = [#a, #b, #c] ins(%cast, %b : tensor<128x32xf16>, tensor<64x32xf16>)
      outs(%f : tensor<128x64xf32>) -> tensor<128x64xf32>
  return %r : tensor<128x64xf32>
}

func.func @transposed(%a: tensor<128x32xf16>, %b: tensor<32x64xf16>) -> tensor<128x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x64xf32>) -> tensor<128x64xf32>
  %r = linalg.matmul ins(%a, %b : tensor<128x32xf16>, tensor<32x64xf16>) outs(%f : tensor<128x64xf32>) -> tensor<128x64xf32>
  return %r : tensor<128x64xf32>
}

func.func @batch(%a: tensor<2x128x32xf16>, %b: tensor<2x32x64xf16>) -> tensor<2x128x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x128x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x128x64xf32>) -> tensor<2x128x64xf32>
  %r = linalg.batch_matmul ins(%a, %b : tensor<2x128x32xf16>, tensor<2x32x64xf16>) outs(%f : tensor<2x128x64xf32>) -> tensor<2x128x64xf32>
  return %r : tensor<2x128x64xf32>
}
