// The stock programs know prepass passes once the plugin is loaded, and are themselves where no pipeline names one.

// REQUIRES: plugin
// RUN: iree-compile --load=%prepass_plugin %s --iree-hal-target-device=local \
// RUN:   --iree-hal-local-target-device-backends=llvm-cpu --compile-to=preprocessing \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-raise-attention)' | FileCheck %s --check-prefix=RAISED
// RUN: iree-opt --load %prepass_plugin %s --pass-pipeline='builtin.module(func.func(cse),prepass-raise-attention)' \
// RUN:   | FileCheck %s --check-prefix=RAISED
// RUN: iree-opt --load=%prepass_plugin %s --cse | FileCheck %s --check-prefix=STOCK
// RUN: iree-compile --load=%prepass_plugin %s --compile-to=abi | FileCheck %s --check-prefix=STOCK
// RUN: not iree-compile --load=%prepass_plugin %s --compile-to=flow \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-raise-attentoin)' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=ERROR
// RUN: env PREPASS_PYTHON=/nowhere/python not iree-opt --load=%prepass_plugin %s 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NOPYTHON

// RAISED: iree_linalg_ext.attention
// RAISED-NOT: linalg.softmax
// STOCK-NOT: iree_linalg_ext.attention
// STOCK: linalg.softmax
// ERROR: error: pass pipeline, column 16: unknown pass 'prepass-raise-attentoin'; did you mean 'prepass-raise-attention'?
// NOPYTHON: prepass plugin: cannot run /nowhere/python

func.func @main(%q: tensor<2x8x16xf32>, %k: tensor<2x16x8xf32>, %v: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<2x8x8xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<2x8x16xf32>, tensor<2x16x8xf32>) outs(%f0 : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x8x8xf32>) outs(%e0 : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %e1 = tensor.empty() : tensor<2x8x16xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x8x8xf32>, tensor<2x8x16xf32>) outs(%f1 : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %o : tensor<2x8x16xf32>
}
