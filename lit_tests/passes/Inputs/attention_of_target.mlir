// A head dim that llvm-cpu needs a config for.
func.func @large_head(%q: tensor<2x8x160xf32>, %k: tensor<2x160x8xf32>, %v: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<2x8x8xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<2x8x160xf32>, tensor<2x160x8xf32>) outs(%f0 : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x8x8xf32>) outs(%e0 : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %e1 = tensor.empty() : tensor<2x8x16xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x8x8xf32>, tensor<2x8x16xf32>) outs(%f1 : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %o : tensor<2x8x16xf32>
}

// A single key, for which attention crashes the compiler for gfx942.
func.func @one_key(%q: tensor<2x8x16xf32>, %k: tensor<2x16x1xf32>, %v: tensor<2x1x16xf32>) -> tensor<2x8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<2x8x1xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<2x8x1xf32>) -> tensor<2x8x1xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<2x8x16xf32>, tensor<2x16x1xf32>) outs(%f0 : tensor<2x8x1xf32>) -> tensor<2x8x1xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x8x1xf32>) outs(%e0 : tensor<2x8x1xf32>) -> tensor<2x8x1xf32>
  %e1 = tensor.empty() : tensor<2x8x16xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x8x1xf32>, tensor<2x1x16xf32>) outs(%f1 : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %o : tensor<2x8x16xf32>
}
