// Dispatches of several reductions over the outermost dim that are left to IREE, each for a reason of its own.

#x = affine_map<(g, n) -> (n, g)>
#s = affine_map<(g, n) -> (g)>
func.func @other_sizes(%x: tensor<64x8xf32>, %y: tensor<32x8xf32>, %f: tensor<8xf32>) -> tensor<8xf32> {
  %a = linalg.generic {indexing_maps = [#x, #s], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x8xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.addf %in, %out : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  // expected-remark@+1 {{missed: the reductions of the dispatch are not over the same dims}}
  %b = linalg.generic {indexing_maps = [#x, #s], iterator_types = ["parallel", "reduction"]} ins(%y : tensor<32x8xf32>) outs(%a : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.addf %in, %out : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  return %b : tensor<8xf32>
}

// -----

// The sizes are the same, but a result is read along the other dim.
#x = affine_map<(g, h, n) -> (n, g, h)>
#s = affine_map<(g, h, n) -> (g, h)>
#t = affine_map<(g, h, n) -> (h, g)>
func.func @other_dims(%x: tensor<64x8x8xf32>, %f: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %a = linalg.generic {indexing_maps = [#x, #s], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : tensor<64x8x8xf32>) outs(%f : tensor<8x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.addf %in, %out : f32
    linalg.yield %r : f32
  } -> tensor<8x8xf32>
  // expected-remark@+1 {{missed: the reductions of the dispatch are not over the same dims}}
  %b = linalg.generic {indexing_maps = [#x, #t, #s], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %a : tensor<64x8x8xf32>, tensor<8x8xf32>) outs(%f : tensor<8x8xf32>) {
  ^bb0(%in: f32, %mean: f32, %out: f32):
    %d = arith.subf %in, %mean : f32
    %r = arith.addf %d, %out : f32
    linalg.yield %r : f32
  } -> tensor<8x8xf32>
  return %b : tensor<8x8xf32>
}

// -----

// A product of two operands, one of which has only the dims that are summed over.
#x = affine_map<(g, n, c) -> (n, g, c)>
#w = affine_map<(g, n, c) -> (c)>
#s = affine_map<(g, n, c) -> (g)>
func.func @contraction(%x: tensor<64x8x4xf32>, %w: tensor<4xf32>, %f: tensor<8xf32>) -> tensor<8xf32> {
  %a = linalg.generic {indexing_maps = [#x, #s], iterator_types = ["parallel", "reduction", "reduction"]} ins(%x : tensor<64x8x4xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.addf %in, %out : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  // expected-remark@+1 {{missed: it reads an operand along some of the dims that it reduces}}
  %b = linalg.generic {indexing_maps = [#x, #w, #s], iterator_types = ["parallel", "reduction", "reduction"]} ins(%x, %w : tensor<64x8x4xf32>, tensor<4xf32>) outs(%a : tensor<8xf32>) {
  ^bb0(%in: f32, %weight: f32, %out: f32):
    %p = arith.mulf %in, %weight : f32
    %r = arith.addf %p, %out : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  return %b : tensor<8xf32>
}

// -----

#x = affine_map<(g, n) -> (n, g)>
#s = affine_map<(g, n) -> (g)>
func.func @transposed(%x: tensor<64x8xf32>, %f: tensor<8xf32>, %e: tensor<8x64xf32>) -> (tensor<8xf32>, tensor<8x64xf32>) {
  %a = linalg.generic {indexing_maps = [#x, #s], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x8xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.addf %in, %out : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  %b = linalg.generic {indexing_maps = [#x, #s, #s], iterator_types = ["parallel", "reduction"]} ins(%x, %a : tensor<64x8xf32>, tensor<8xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%in: f32, %mean: f32, %out: f32):
    %d = arith.subf %in, %mean : f32
    %r = arith.addf %d, %out : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  // expected-remark@+1 {{missed: the dispatch computes more than reductions and elementwise ops of one result}}
  %t = linalg.transpose ins(%x : tensor<64x8xf32>) outs(%e : tensor<8x64xf32>) permutation = [1, 0]
  return %b, %t : tensor<8xf32>, tensor<8x64xf32>
}

// -----

#x = affine_map<(g, n) -> (n, g)>
#s = affine_map<(g, n) -> (g)>
#all = affine_map<(i, j) -> (i, j)>
func.func @unrelated(%x: tensor<64x8xf32>, %f: tensor<8xf32>, %y: tensor<4x4xf32>) -> (tensor<8xf32>, tensor<4x4xf32>) {
  %a = linalg.generic {indexing_maps = [#x, #s], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x8xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.addf %in, %out : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  %b = linalg.generic {indexing_maps = [#x, #s, #s], iterator_types = ["parallel", "reduction"]} ins(%x, %a : tensor<64x8xf32>, tensor<8xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%in: f32, %mean: f32, %out: f32):
    %d = arith.subf %in, %mean : f32
    %r = arith.addf %d, %out : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  // expected-remark@+1 {{missed: the dims of an elementwise op are not those of the reductions}}
  %z = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<4x4xf32>) outs(%y : tensor<4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.negf %in : f32
    linalg.yield %r : f32
  } -> tensor<4x4xf32>
  return %b, %z : tensor<8xf32>, tensor<4x4xf32>
}
